"""The wake-evaluation log as text: written as the manual has it, read back from us or from the original tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from harness.model.errors import InputError, Place
from harness.reports.wake_log import (
    DECIMALS,
    TOTALS,
    Command,
    Extras,
    Failure,
    Happening,
    ManySpots,
    Missed,
    Rejected,
    Spot,
    WakeLog,
    Words,
)

NAMES = "x-names"
ESCAPED = "escaped"
"""`INFO x-names escaped`: names and phrases are written with escapes. Without it they are taken as they stand."""
UNITS = {"FARATE": "/ hr", "FRRATIO": "%", "FR+SBRATIO": "%", "WER": "%"}
DOUBLES = frozenset({"FRCOUNT", "FR+SBCOUNT"})
MOST_LINES_OF_A_NAME = 4
NOTHING = "n/a"

_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LONG = {text: sign for sign, text in _SHORT.items()}
_ESCAPE = re.compile(r'\\(?:[\\"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})')
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_EXTRAS = r'(?P<extras>(?: x-[\w-]+=(?:"(?:[^"\\]|\\.)*"|[^\s"]\S*))*)'
_SCORE = rf"(?: +sv-score +(?P<score>{_NUMBER}))?"
_COUNTS = "[ ,]+".join(
    [*(rf"(?P<{name}>{_NUMBER})" for name in ("n", "subs", "adds", "dels")), rf"(?P<wer>{_NUMBER}|{NOTHING})%?"]
)


def _grammars(name: Callable[[str], str], first: str) -> dict[str, re.Pattern[str]]:
    """The form of each key's lines; name: expression of a text in quotes, as a group of that name.

    first: that of a file whose line goes on with a reference that may have no quotes.
    """
    span = rf"{name('file')} +(?P<start>{_NUMBER}) +(?P<end>{_NUMBER}) +{name('phrase')}"
    forms = {
        **dict.fromkeys(("INVTA", "INVFA", "OOVFA"), span + _SCORE),
        **dict.fromkeys(("CMDTA", "CMDSB"), rf"{span} +{name('reference')}{_SCORE}"),
        **dict.fromkeys(("STTTA", "STTSB"), rf"{span} +{name('reference')} +{_COUNTS}"),
        **dict.fromkeys(("CMDFR", "STTFR"), rf"{first}(?: +(?:{name('reference')}|(?P<bare>[^\" ].*?)))?"),
        "INVFR": name("file"),
        "INVTX": rf"{name('file')} +(?P<count>\d+) +spots?",
        "REJECT": rf'{name("file")} +(?P<reason>[^"]*?)',
    }
    return {key: re.compile(rf"{key} +{form}{_EXTRAS}\s*", re.DOTALL) for key, form in forms.items()}


def _escaped(name: str) -> str:
    return rf'"(?P<{name}>(?:[^"\\]|\\.)*)"'


_ESCAPED_LINES = _grammars(_escaped, _escaped("file"))
_RAW_LINES = _grammars(lambda name: rf'"(?P<{name}>.*)"', r'"(?P<file>.*?)(?<!\\)"(?= |$)')


def write(log: WakeLog) -> str:
    """The log's text: what was set, what happened, the totals."""
    lines = [info_line(name, detail) for name, detail in ((NAMES, ESCAPED), *log.info) if name]
    lines += [line_of(one) for one in log.happenings]
    lines += [total_line(key, value) for key, value in log.totals]
    return "\n".join(lines) + "\n"


def total_line(key: str, value: float) -> str:
    """One line of the totals, with the decimals and units of its key."""
    if key in DECIMALS:
        return f"{key} {value:.{DECIMALS[key]}f} {UNITS[key]}"
    return f"{key} {value:.1f}" if key in DOUBLES else f"{key} {value:.0f}"


def info_line(name: str, detail: str) -> str:
    """A line of what was set or found."""
    return f"INFO {name} {_bare(detail)}".rstrip()


def line_of(one: Happening) -> str:
    """One line of what happened; what it names is escaped."""
    match one:
        case Spot():
            text = f"{_span(one)} sv-score {one.sv_score:g}"
        case Command():
            text = f"{_span(one)} {quoted(one.reference)} sv-score {one.sv_score:g}"
        case Words():
            wer = NOTHING if one.wer is None else f"{one.wer:.3f}"
            counts = f"{one.words}, {one.substitutions}, {one.additions}, {one.deletions}, {wer}"
            text = f"{_span(one)} {quoted(one.reference)} {counts}"
        case Missed(key="INVFR"):
            text = quoted(one.file)
        case Missed():
            text = f"{quoted(one.file)} {quoted(one.reference)}"
        case ManySpots():
            text = f"{quoted(one.file)} {one.count} spots"
        case Rejected():
            text = f"{quoted(one.file)} {_bare(one.reason)}"
        case Failure():
            return f"ERROR {_bare(one.text)}"
    return f"{one.key} {text}" + "".join(f" {name}={_value(value)}" for name, value in one.extras)


def _span(one: Spot | Command | Words) -> str:
    return f"{quoted(one.file)} {_ms(one.start_ms)} {_ms(one.end_ms)} {quoted(one.phrase)}"


def _ms(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def quoted(text: str) -> str:
    """In quotes, with everything escaped that would end the name, the line, or reach a terminal as a command."""
    if text.isprintable() and '"' not in text and "\\" not in text:  # nearly every name, and far quicker
        return f'"{text}"'
    return '"' + "".join(map(_safe, text)) + '"'


def _bare(text: str) -> str:
    return "".join(sign if sign in '"\\' else _safe(sign) for sign in text)


def _value(text: str) -> str:
    return text if re.fullmatch(r"[\w.:+/-]+", text, re.ASCII) else quoted(text)


def _safe(sign: str) -> str:
    if sign in _SHORT:
        return _SHORT[sign]
    if sign.isprintable():
        return sign
    point = ord(sign)
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def unescaped(text: str) -> str:
    """What `quoted` was given, without the quotes; what is no escape stays as it is."""
    return _ESCAPE.sub(lambda found: _LONG.get(found[0]) or chr(int(found[0][2:], 16)), text)


def _as_it_stands(text: str) -> str:
    # No file system has a backslash before a quote in a name, so this one was escaped.
    return unescaped(text) if '\\"' in text else text


def read(text: str, name: str = "log") -> WakeLog:
    """A log of ours or of the original tool's; InputError with the line that cannot be read.

    Numbers may have decimals or none. Raw names may hold quotes, backslashes and line breaks.
    """
    lines = text.split("\n")
    escaped = any(line.rstrip("\r") == f"INFO {NAMES} {ESCAPED}" for line in lines)
    grammars, clean = (_ESCAPED_LINES, unescaped) if escaped else (_RAW_LINES, _as_it_stands)
    info: list[tuple[str, str]] = []
    happenings: list[Happening] = []
    totals: list[tuple[str, float]] = []
    decimals: list[tuple[str, int]] = []
    for number, line in _logical(lines, grammars):
        key, _, detail = line.partition(" ")
        place = Place(name, number)
        if key == "INFO":
            subkey, _, rest = detail.strip().partition(" ")
            if subkey != NAMES:
                info.append((subkey, rest.strip()))
        elif key == "ERROR":
            happenings.append(Failure(detail))
        elif key in TOTALS:
            number_text = _total(detail, place)
            totals.append((key, float(number_text)))
            decimals.append((key, _decimals(number_text)))
        elif key in grammars:
            found = grammars[key].fullmatch(line)
            if found is None:
                raise _unreadable(f"{key} has not the form of its key", place)
            happenings.append(_happening(key, found, clean))
        else:
            raise _unreadable(f"no key is called {key!r:.40}", place)
    return WakeLog(tuple(info), tuple(happenings), tuple(totals), tuple(decimals))


def _unreadable(what: str, place: Place) -> InputError:
    return InputError(what, place=place, remedy="docs/wake-log.md lists the keys and their forms")


def _total(detail: str, place: Place) -> str:
    found = re.match(rf"\s*({_NUMBER})", detail)
    if found is None:
        raise _unreadable("a total has no number", place)
    return found[1]


def _decimals(number: str) -> int:
    mantissa, _, exponent = number.lower().partition("e")
    return max(0, len(mantissa.partition(".")[2]) - int(exponent or 0))


def _logical(lines: list[str], grammars: dict[str, re.Pattern[str]]) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; where a name was broken over several, as one."""
    at = 0
    while at < len(lines):
        line, number = lines[at].rstrip("\r"), at + 1
        at += 1
        if not line.strip():
            continue
        grammar = grammars.get(line.partition(" ")[0])
        if grammar is not None and not grammar.fullmatch(line):
            for more in range(1, MOST_LINES_OF_A_NAME):
                longer = "\n".join([line, *lines[at : at + more]]).rstrip("\r")
                if grammar.fullmatch(longer):
                    line, at = longer, at + more
                    break
        yield number, line


def _happening(key: str, found: re.Match[str], clean: Callable[[str], str]) -> Happening:
    groups = found.groupdict()
    file, extras = clean(groups["file"]), _extras(groups["extras"])

    def number(name: str) -> float:
        return float(groups[name] or 0)

    def text(name: str) -> str:
        return clean(groups[name] or "")

    match key:
        case "INVTA" | "INVFA" | "OOVFA":
            return Spot(key, file, number("start"), number("end"), text("phrase"), number("score"), extras)
        case "CMDTA" | "CMDSB":
            span = number("start"), number("end")
            return Command(key, file, *span, text("phrase"), text("reference"), number("score"), extras)
        case "STTTA" | "STTSB":
            return Words(
                key,
                file,
                number("start"),
                number("end"),
                text("phrase"),
                text("reference"),
                words=int(number("n")),
                substitutions=int(number("subs")),
                additions=int(number("adds")),
                deletions=int(number("dels")),
                wer=None if groups["wer"] == NOTHING else number("wer"),
                extras=extras,
            )
        case "INVFR":
            return Missed(key, file, "", extras)
        case "CMDFR" | "STTFR":
            return Missed(key, file, text("reference") or text("bare"), extras)
        case "INVTX":
            return ManySpots(file, int(groups["count"]), extras)
        case _:
            return Rejected(file, groups["reason"].strip(), extras)


def _extras(text: str) -> Extras:
    found = re.findall(r'(x-[\w-]+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))', text)
    return tuple((name, bare or unescaped(inner)) for name, inner, bare in found)
