"""Chunks of BIO tags: stretches of words that are one concept each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.model.understanding import Chunking

OUTSIDE = "O"


class Chunk(NamedTuple):
    """A concept over words start to end, from 0, half open."""

    concept: str
    start: int
    end: int


def chunks(tags: Sequence[str], chunking: Chunking) -> tuple[Chunk, ...]:
    """The chunks of one utterance's tags, in their order; ValueError at a tag that is not O, B-x or I-x.

    Under both readings a chunk goes on with I- of its own concept, and ends before anything else. They differ where
    an I- continues nothing: it begins a chunk for CONLLEVAL, and belongs to none for IOB2.
    Sources: conlleval.pl of the CoNLL-2000 task; Ramshaw & Marcus 1995 with B- on every first word.
    """
    loose = chunking is Chunking.CONLLEVAL
    found: list[Chunk] = []
    concept, start = "", -1
    for at, tag in enumerate(tags):
        if tag == OUTSIDE:
            if start >= 0:
                found.append(Chunk(concept, start, at))
                start = -1
            continue
        prefix, of = tag[:2], tag[2:]
        if prefix not in ("B-", "I-") or not of:
            raise ValueError(f"{tag!r} is no tag: O, B-concept or I-concept")
        if prefix == "I-" and start >= 0 and of == concept:
            continue
        if start >= 0:
            found.append(Chunk(concept, start, at))
            start = -1
        if prefix == "B-" or loose:
            concept, start = of, at
    if start >= 0:
        found.append(Chunk(concept, start, len(tags)))
    return tuple(found)
