"""Reads wake-evaluation logs of the harness or the original tool line by line, since a log may have millions of lines.

Numbers may have decimals or none. Raw names may contain quotes, backslashes and line breaks.
"""

from __future__ import annotations

import math
import re
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.numbers import NOTHING
from harness.offline.wake_log import (
    ESCAPED,
    NAMES,
    SHORT,
    TOTALS,
    ErrorLine,
    Extras,
    MissedFile,
    RejectedFile,
    Spot,
    SpotCount,
    TranscriptLine,
    WakeLog,
    WakeLogEvent,
)

MAX_LINES_OF_A_NAME = 4
"""Most lines into which line breaks in names may have split a line."""
MAX_LINE_CHARS = 1 << 24
MAX_WORDS = 10**9
"""Largest number of words that a line may state; a larger one is an error."""
Lines = Iterable[tuple[int, str]]
"""Lines without their ends, each after the byte at which it begins."""

_LONG = {text: character for character, text in SHORT.items()}
_ESCAPE = re.compile(r'\\(?:[\\"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4})')
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_EXTRAS = r'(?P<extras>(?: x-[\w-]+=(?:"(?:[^"\\]|\\.)*"|[^\s"]\S*))*)'
_SCORE = rf"(?: +sv-score +(?P<score>{_NUMBER}))?"
_COUNTS = "[ ,]+".join(
    [*(rf"(?P<{name}>{_NUMBER})" for name in ("n", "subs", "adds", "dels")), rf"(?P<wer>{_NUMBER}|{NOTHING})%?"]
)
_ESCAPED_NAMES_LINE = f"INFO {NAMES} {ESCAPED}"


@frozen
class InfoLine:
    """A line of the settings: `INFO name detail`."""

    name: str
    detail: str


@frozen
class TotalLine:
    """A line of the totals. decimals: number of decimals of the value in the file."""

    key: str
    value: float
    decimals: int


WakeLogLine = WakeLogEvent | InfoLine | TotalLine


def has_escaped_names(path: Path, name: str) -> bool:
    """Whether the log says that its names are escaped. OSError and InputError as for `entries`."""
    with path.open("rb") as file:
        return any(line == _ESCAPED_NAMES_LINE for _, line in _lines(file, name))


def entries(path: Path, name: str, *, escaped: bool) -> Iterator[tuple[int, WakeLogLine]]:
    """The entries of a log, each with the byte at which its line begins.

    Raises OSError if it cannot be read, InputError with the line if a line is invalid.

    - name: name of the log in errors.
    - escaped: whether names are escaped, from `has_escaped_names`.
    """
    with path.open("rb") as file:
        yield from _entries(_lines(file, name), name, escaped=escaped)


def entry_at(path: Path, line_offset: int, *, escaped: bool) -> WakeLogLine | None:
    """The entry of the line that begins at a byte; None at the end of the file."""
    with path.open("rb") as file:
        file.seek(line_offset)
        first = next(_entries(_lines(file, path.name), path.name, escaped=escaped), None)
        return None if first is None else first[1]


def read(text: str, name: str = "log") -> WakeLog:
    """A whole log. Raises InputError with the line that cannot be read."""
    lines = text.split("\n")
    escaped = any(line.rstrip("\r") == _ESCAPED_NAMES_LINE for line in lines)
    events: list[WakeLogEvent] = []
    log_entries = _entries(((0, line) for line in lines), name, escaped=escaped)
    log = without_events(log_entries, lambda event, _: events.append(event))
    return replace(log, events=tuple(events))


def without_events(
    log_entries: Iterable[tuple[int, WakeLogLine]], on_event: Callable[[WakeLogEvent, int], None]
) -> WakeLog:
    """A log without its events. `on_event` is called with each event and the byte at which its line begins."""
    info: list[tuple[str, str]] = []
    totals: list[TotalLine] = []
    for line_offset, entry in log_entries:
        match entry:
            case InfoLine():
                info.append((entry.name, entry.detail))
            case TotalLine():
                totals.append(entry)
            case _:
                on_event(entry, line_offset)
    stated = tuple((total.key, total.value) for total in totals)
    return WakeLog(tuple(info), (), stated, tuple((total.key, total.decimals) for total in totals))


def demand_numbers(log: WakeLog, name: str) -> None:
    """Raises InputError if an INFO line that totals depend on has no number."""
    try:
        for part in ("inv", "oov", "inv/oov"):
            if not 0 <= log.seconds(part) < math.inf:
                raise ValueError(f"{part} has {log.seconds(part)} s")
        for part in ("inv-files", "oov-files", "rejected-files", "x-phrases"):
            if (stated := log.about(part)) is not None:
                int(stated)
        if (stated := log.about("real-time-factor")) is not None:
            float(stated)
    except ValueError as error:
        raise InputError(f"an INFO line does not state a valid number: {error}", place=Place(name)) from error


def unescaped(text: str) -> str:
    """The inverse of `quoted`, without the quotes. Unknown escapes stay as they are."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda match: _LONG.get(match[0]) or chr(int(match[0][2:], 16)), text)


def _lines(file: BinaryIO, name: str) -> Iterator[tuple[int, str]]:
    """Lines, whatever their line ends, each with the byte at which it begins.

    Raises InputError for a line that is too long.
    """
    offset, number = file.tell(), 0
    while line := file.readline(MAX_LINE_CHARS):
        number += 1
        if len(line) == MAX_LINE_CHARS and not line.endswith(b"\n"):
            raise _unreadable(f"the line is longer than {MAX_LINE_CHARS >> 20} MB", Place(name, number))
        line_offset, offset = offset, offset + len(line)
        body = line.removesuffix(b"\n").removesuffix(b"\r") if line.endswith(b"\n") else line
        if not line_offset and body.startswith(BOM_UTF8):
            line_offset, body = len(BOM_UTF8), body.removeprefix(BOM_UTF8)
        if b"\r" not in body:
            yield line_offset, body.decode("utf-8", "surrogateescape")  # names need not be UTF-8
            continue
        for piece in body.split(b"\r"):
            yield line_offset, piece.decode("utf-8", "surrogateescape")
            line_offset += len(piece) + 1


def _line_patterns(name: Callable[[str], str], first: str) -> dict[str, re.Pattern[str]]:
    """The regular expression of each key's lines.

    - name: returns the expression for a quoted text, as a group with the name that it is given.
    - first: the expression for a file name that an unquoted reference may follow.
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


_ESCAPED_LINES = _line_patterns(_escaped, _escaped("file"))
_RAW_LINES = _line_patterns(lambda name: rf'"(?P<{name}>.*)"', r'"(?P<file>.*?)(?<!\\)"(?= |$)')


def _unescape_if_quoted(text: str) -> str:
    """A name of a log that does not say whether names are escaped."""
    # The writer has probably escaped a quote. (A literal backslash before a quote is therefore misread.)
    return unescaped(text) if '\\"' in text else text


def _entries(lines: Lines, name: str, *, escaped: bool) -> Iterator[tuple[int, WakeLogLine]]:
    patterns, clean = (_ESCAPED_LINES, unescaped) if escaped else (_RAW_LINES, _unescape_if_quoted)
    for number, line_offset, line, line_match in _logical_lines(iter(lines), patterns):
        try:
            entry = _parse_entry(line, line_match, clean)
        except ValueError as error:
            raise _unreadable(str(error), Place(name, number)) from error
        if not (isinstance(entry, InfoLine) and entry.name == NAMES):
            yield line_offset, entry


def _parse_entry(line: str, line_match: re.Match[str] | None, clean: Callable[[str], str]) -> WakeLogLine:
    """The entry in a line. line_match: match of the line with the expression of its key; None if there is none.

    Raises ValueError for an invalid line.
    """
    key, _, detail = line.partition(" ")
    if line_match is not None:
        return _parse_event(key, line_match, clean)
    if key == "INFO":
        subkey, _, rest = detail.strip().partition(" ")
        return InfoLine(subkey, rest.strip())
    if key == "ERROR":
        return ErrorLine(detail)
    if key in TOTALS:
        return _parse_total(key, detail)
    if key in _RAW_LINES:
        raise ValueError(f"this is not a valid {key} line")
    raise ValueError(f"unknown key {key[:40]!r}")


def _logical_lines(
    lines: Iterator[tuple[int, str]], patterns: dict[str, re.Pattern[str]]
) -> Iterator[tuple[int, int, str, re.Match[str] | None]]:
    """Number, first byte and text of each line, and its match with the expression of its key (None without). A line
    that a line break in a name has split is joined again."""
    next_lines: deque[tuple[int, str]] = deque()
    number = 1
    while True:
        if not next_lines:
            next_lines.extend(islice(lines, 1))
            if not next_lines:
                return
        line_offset, line = next_lines.popleft()
        line = line.rstrip("\r")
        length, line_match = 1, None
        pattern = patterns.get(line.partition(" ")[0])
        if pattern is not None:
            line_match = pattern.fullmatch(line)
            if line_match is None:
                next_lines.extend(islice(lines, MAX_LINES_OF_A_NAME - 1 - len(next_lines)))
                line, length, line_match = _join_name_lines(line, next_lines, pattern)
        if line.strip():
            yield number, line_offset, line, line_match
        number += length


def _join_name_lines(
    line: str, next_lines: deque[tuple[int, str]], pattern: re.Pattern[str]
) -> tuple[str, int, re.Match[str] | None]:
    """Joins a line with as many of `next_lines` as are needed to match its expression, and removes these from
    `next_lines`. Returns the text, the number of lines in it, and the match (None without)."""
    longer = line
    for length, (_, following) in enumerate(next_lines, 2):
        longer += "\n" + following
        complete = longer.rstrip("\r")
        line_match = pattern.fullmatch(complete)
        if line_match is not None:
            for _ in range(length - 1):
                next_lines.popleft()
            return complete, length, line_match
    return line, 1, None


def _unreadable(problem: str, place: Place) -> InputError:
    return InputError(problem, place=place, remedy="docs/reference/wake-log.md describes each line of a log")


def _parse_total(key: str, detail: str) -> TotalLine:
    """The total in a line: its first number, with or without a unit behind it. Raises ValueError for another detail."""
    number = re.match(rf"\s*({_NUMBER})", detail)
    if number is None:
        raise ValueError("a total has no number")
    if math.isinf(float(number[1])):
        raise ValueError("a total is too large")
    mantissa, _, exponent = number[1].lower().partition("e")
    fraction = mantissa.partition(".")[2]
    return TotalLine(key, float(number[1]), max(0, len(fraction) - int(exponent or 0)))


def _parse_event(key: str, line_match: re.Match[str], clean: Callable[[str], str]) -> WakeLogEvent:
    """The event in a matched line. clean: turns a quoted text into the original.

    Raises ValueError for an invalid count.
    """
    groups = line_match.groupdict()
    file, extras = clean(groups["file"]), _parse_extras(groups["extras"])

    def number(name: str) -> float:
        return float(groups[name] or 0)

    def count(name: str) -> int:
        if not 0 <= number(name) <= MAX_WORDS:
            raise ValueError(f"{key}: the count {groups[name][:40]} is out of range (0 to {MAX_WORDS})")
        return int(number(name))

    def text(name: str) -> str:
        return clean(groups.get(name) or "")

    match key:
        case "INVTA" | "INVFA" | "OOVFA" | "CMDTA" | "CMDSB":
            return Spot(
                key, file, number("start"), number("end"), text("phrase"), text("reference"),
                sv_score=number("score"), extras=extras,
            )  # fmt: skip
        case "STTTA" | "STTSB":
            return TranscriptLine(
                key,
                file,
                number("start"),
                number("end"),
                text("phrase"),
                text("reference"),
                words=count("n"),
                substitutions=count("subs"),
                additions=count("adds"),
                deletions=count("dels"),
                wer=None if groups["wer"] == NOTHING else number("wer"),
                extras=extras,
            )
        case "INVFR":
            return MissedFile(key, file, "", extras)
        case "CMDFR" | "STTFR":
            return MissedFile(key, file, text("reference") or text("bare"), extras)
        case "INVTX":
            return SpotCount(file, count("count"), extras)
        case _:
            return RejectedFile(file, groups["reason"].strip(), extras)


def _parse_extras(text: str) -> Extras:
    if not text:
        return ()
    fields = re.findall(r'(x-[\w-]+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))', text)
    return tuple((name, bare or unescaped(inner)) for name, inner, bare in fields)
