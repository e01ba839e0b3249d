"""Comma-separated text that a spreadsheet shows as it is, and never calculates.

A cell that begins with = + - @, a tab or a line end would be a formula to a spreadsheet; it gets an apostrophe in
front. A cell that begins with an apostrophe gets one, too, so that taking one off a cell that begins with one gives
back every text (`harness judgments import` does). A number with a sign is no formula and stays as it is.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

MARK = "'"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", MARK)
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def safe_csv(rows: Iterable[Sequence[str]]) -> str:
    """The rows as RFC 4180 has them, but for line feeds at their ends."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow([safe_cell(cell) for cell in row])
    return text.getvalue()


def safe_cell(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would calculate."""
    return MARK + text if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def unmarked(text: str) -> str:
    """A CSV cell without the apostrophe that keeps a spreadsheet from calculating it."""
    return text[1:] if text.startswith(MARK) and text[1:2] in _FORMULA else text
