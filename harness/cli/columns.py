"""Cells of plain tables, as wide as a terminal draws them."""

from __future__ import annotations

import unicodedata

from harness.wire.foreign import plain_text


def fit(text: str, width: int) -> str:
    """A harmless cell of so many columns: wide characters count as two, combining ones as none."""
    shown = plain_text(text, width)
    while (columns := columns_of(shown)) > width:
        shown = plain_text(shown, len(shown) - 1)
    return shown + " " * (width - columns)


def columns_of(text: str) -> int:
    """How many columns a text takes."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
