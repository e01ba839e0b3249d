"""Words, with the phrases of a named list made into what they count as."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.transcript import Rewriting
from harness.transcripts.readings import Piece, Readings, options

MOST_WAYS = 256
"""Ways through choices that are tried at one place; numerals have a few dozen."""


def rewrite(pieces: Sequence[Piece], rewriting: Rewriting) -> Readings:
    """The words after the list: from left to right, the longest phrase that fits, each word once.

    pieces: words normalised by the rewriting's base, and choices between readings, any of which a phrase may fit. The
    time grows with the number of words and the longest phrase, not with the number of pairs.
    """
    out: list[Piece] = []
    at = 0
    while at < len(pieces):
        piece = pieces[at]
        if found := _phrase_at(pieces, at, rewriting):
            meant, at = found
            out += meant
            continue
        at += 1
        if isinstance(piece, str):
            out.append(piece)
        else:
            out.append(tuple(_words(rewrite(reading, rewriting)) for reading in piece))
    return tuple(out)


def _phrase_at(pieces: Sequence[Piece], at: int, rewriting: Rewriting) -> tuple[tuple[str, ...], int] | None:
    """What the longest phrase counts as that some reading of the next pieces is, and where it ends; None for none."""
    longest = max((rewriting.lengths[one[0]][0] for one in options(pieces[at]) if one and one[0] in rewriting.lengths),
                  default=0)  # fmt: skip
    found: tuple[int, tuple[str, ...], int] | None = None
    ways: list[tuple[str, ...]] = [()] if longest else []
    while ways and at < len(pieces):
        ways = [way + one for way in ways for one in options(pieces[at]) if len(way) + len(one) <= longest][:MOST_WAYS]
        at += 1
        for way in ways:
            meant = rewriting.meanings.get(way)
            if meant is not None and (found is None or len(way) > found[0]):
                found = len(way), meant, at
    return found[1:] if found else None


def _words(pieces: Readings) -> tuple[str, ...]:
    return tuple(one for one in pieces if isinstance(one, str))
