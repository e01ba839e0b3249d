"""The wake-evaluation log as text, written as the manual has it; `wake_log_reading` reads it."""

from __future__ import annotations

import re

from harness.wake.reports.wake_log import (
    DECIMALS,
    Command,
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
NOTHING = "n/a"

SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


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
    if sign in SHORT:
        return SHORT[sign]
    if sign.isprintable():
        return sign
    point = ord(sign)
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
