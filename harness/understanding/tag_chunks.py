"""BIO tags of words as chunks: the concepts, and the words that each covers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.model.understanding import Chunking

OUTSIDE = "O"


class TagChunk(NamedTuple):
    """A concept over the words from `start` (counted from 0) to `end`, which is not included."""

    concept: str
    start: int
    end: int


def chunks(tags: Sequence[str], chunking: Chunking) -> tuple[TagChunk, ...]:
    """The chunks of one utterance's tags, in order. Raises ValueError for a tag that is not O, B-x or I-x.

    A chunk continues with I- of its own concept, and ends before any other tag. An I- that does not continue a chunk
    begins one under CONLLEVAL, and belongs to no chunk under IOB2.
    Sources: conlleval.pl of the CoNLL-2000 task; Ramshaw & Marcus 1995 with B- on every first word.
    """
    begins_with_i = chunking is Chunking.CONLLEVAL
    tag_chunks: list[TagChunk] = []
    concept, start = "", -1
    for index, tag in enumerate(tags):
        if tag == OUTSIDE:
            if start >= 0:
                tag_chunks.append(TagChunk(concept, start, index))
                start = -1
            continue
        prefix, tag_concept = tag[:2], tag[2:]
        if prefix not in ("B-", "I-") or not tag_concept:
            raise ValueError(f"{tag!r} is not a tag: use O, B-concept or I-concept")
        if prefix == "I-" and start >= 0 and tag_concept == concept:
            continue
        if start >= 0:
            tag_chunks.append(TagChunk(concept, start, index))
            start = -1
        if prefix == "B-" or begins_with_i:
            concept, start = tag_concept, index
    if start >= 0:
        tag_chunks.append(TagChunk(concept, start, len(tags)))
    return tuple(tag_chunks)
