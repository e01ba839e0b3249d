"""The fields of a line of a time-marked file: what ctm and stm have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.base.line_stream import is_comment
from harness.base.problems import Problems, shown

_FIELD = re.compile(r"\S+")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_SECONDS = "Write seconds, such as 12.34"


def filled_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are neither blank nor comments, with their numbers."""
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.isspace() and not is_comment(line):
            yield number, line


def column_of(line: str, field: int) -> int:
    """Where a field of a line begins, from 1; behind the line's end when it has fewer fields."""
    starts = [found.start() + 1 for found in _FIELD.finditer(line)]
    return starts[field] if field < len(starts) else len(line.rstrip()) + 1


def seconds(written: str) -> float | None:
    """A time or a duration; None for everything that is no finite decimal number."""
    if _NUMBER.fullmatch(written) is None:
        return None
    value = float(written)
    return value if abs(value) < float("inf") else None


def refuse_time(problems: Problems, number: int, line: str, field: int, what: str, written: str) -> None:
    """Notes a field that is no time."""
    problems.add(number, column_of(line, field), f"{what} {shown(written)} is not a number of seconds", _SECONDS)
