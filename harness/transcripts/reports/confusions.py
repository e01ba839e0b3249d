"""The confusions of scored transcripts as lists for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.cells import shown
from harness.transcripts.scoring import Confusions

ARROW = " → "


def lines(found: Confusions, most: int, width: int) -> Iterator[str]:
    """The `most` most frequent of each list (0: all), none wider than `width` columns."""
    pairs = [((reference, hypothesis), count) for (reference, hypothesis), count in found.pairs]
    yield from _block("substitution pairs, reference → hypothesis", pairs, most, width)
    for title, words in (
        ("inserted words", found.inserted),
        ("deleted words", found.deleted),
        ("substituted words of the references", found.substituted),
        ("falsely recognised words of the hypotheses", found.falsely_recognised),
    ):
        yield ""
        yield from _block(title, [((word,), count) for word, count in words], most, width)


def _block(title: str, rows: Sequence[tuple[tuple[str, ...], int]], most: int, width: int) -> Iterator[str]:
    yield f"{title}: {sum(count for _, count in rows):,} in all, {len(rows):,} different"
    listed = rows[:most] if most else rows
    digits = max((len(str(count)) for _, count in listed), default=1)
    for words, count in listed:
        room = max(4, (width - digits - 4 - len(ARROW)) // len(words))
        yield f"  {count:{digits}}  {ARROW.join(shown(word, room) for word in words)}"
    if len(listed) < len(rows):
        yield f"  … and {len(rows) - len(listed):,} more"
