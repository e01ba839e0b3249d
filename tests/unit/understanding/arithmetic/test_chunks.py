"""Chunks of BIO tags under both readings."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.understanding import Chunking
from harness.understanding.counts import TagChunk, chunks
from tests.unit.understanding.arithmetic.conlleval_reading import conlleval_chunks, iob2_chunks

TAGS = st.lists(st.sampled_from(["O", "B-a", "I-a", "B-b", "I-b", "B-a-b", "I-a-b"]), max_size=12)


@pytest.mark.parametrize(
    ("tags", "conlleval", "iob2"),
    [
        ("", [], []),
        ("O O", [], []),
        ("B-a I-a O", [("a", 0, 2)], [("a", 0, 2)]),
        ("B-a B-a", [("a", 0, 1), ("a", 1, 2)], [("a", 0, 1), ("a", 1, 2)]),
        # An I- that continues nothing.
        ("I-a I-a O", [("a", 0, 2)], []),
        ("O I-a", [("a", 1, 2)], []),
        ("B-a I-b I-b", [("a", 0, 1), ("b", 1, 3)], [("a", 0, 1)]),
        ("B-a I-b I-a", [("a", 0, 1), ("b", 1, 2), ("a", 2, 3)], [("a", 0, 1)]),
        ("I-a B-a", [("a", 0, 1), ("a", 1, 2)], [("a", 1, 2)]),
        # Concepts may hold hyphens.
        ("B-temps-date I-temps-date", [("temps-date", 0, 2)], [("temps-date", 0, 2)]),
    ],
)
def test_by_hand(tags: str, conlleval: list[tuple[str, int, int]], iob2: list[tuple[str, int, int]]) -> None:
    assert list(chunks(tags.split(), Chunking.CONLLEVAL)) == conlleval
    assert list(chunks(tags.split(), Chunking.IOB2)) == iob2


@given(TAGS)
def test_both_readings_are_those_of_an_independent_one(tags: list[str]) -> None:
    assert list(chunks(tags, Chunking.CONLLEVAL)) == conlleval_chunks(tags)
    assert list(chunks(tags, Chunking.IOB2)) == iob2_chunks(tags)


@given(TAGS)
def test_chunks_stand_apart_and_in_order(tags: list[str]) -> None:
    for reading in Chunking:
        found = chunks(tags, reading)
        assert all(one.start < one.end for one in found)
        assert all(one.end <= other.start for one, other in pairwise(found))


@given(TAGS)
def test_every_word_with_a_tag_is_in_a_chunk_of_its_concept_as_conlleval_reads(tags: list[str]) -> None:
    there = {at: one.concept for one in chunks(tags, Chunking.CONLLEVAL) for at in range(one.start, one.end)}
    assert there == {at: tag[2:] for at, tag in enumerate(tags) if tag != "O"}


@given(TAGS)
def test_the_readings_agree_on_well_formed_tags(tags: list[str]) -> None:
    strict = chunks(tags, Chunking.IOB2)
    written = ["O"] * len(tags)
    for concept, start, end in strict:
        written[start:end] = ["B-" + concept, *["I-" + concept] * (end - start - 1)]
    assert chunks(written, Chunking.CONLLEVAL) == chunks(written, Chunking.IOB2) == strict


@pytest.mark.parametrize("tag", ["", "B", "I-", "B-", "X-a", "b-a", "E-a", "S-a", "a"])
def test_what_is_no_tag_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="is no tag: O, B-concept or I-concept"):
        chunks(["O", tag], Chunking.CONLLEVAL)


def test_a_chunk_is_named() -> None:
    assert chunks(["B-a"], Chunking.IOB2)[0] == TagChunk(concept="a", start=0, end=1)
