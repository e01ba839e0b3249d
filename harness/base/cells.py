"""Text in columns of a terminal: foreign text, where a letter may be two columns wide or none, and counts of things."""

from __future__ import annotations

from harness.base.foreign import ELLIPSIS, plain_text

LONGEST = 2000


def width_of(text: str) -> int:
    """Columns that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # here, since most files of transcripts never need its tables

    return cell_len(text)


def shown(text: str, width: int = LONGEST) -> str:
    """A text made harmless, at most so many columns wide; what is longer ends in an ellipsis."""
    if text.isascii() and text.isprintable() and len(text) <= width:
        return text
    safe = plain_text(text, max(1, min(width, LONGEST)))
    while safe and width_of(safe) > width:
        safe = safe.removesuffix(ELLIPSIS)[:-1] + ELLIPSIS
    return safe


def counted(number: int, what: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def padded(text: str, width: int) -> str:
    """A text that is already safe, with spaces to its right."""
    return text + " " * (width - width_of(text))


def fit(text: str, width: int) -> str:
    """A harmless cell of so many columns."""
    return padded(shown(text, width), width)
