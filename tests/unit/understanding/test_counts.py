"""Counts of frames: what is counted, by hand; and that shards, added in any order, are the whole."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.understanding import Chunking, Detail, Slot, Utterance
from harness.statistics.intervals import Share
from harness.understanding.counts import (
    FrameCounts,
    Matched,
    Rule,
    TagChunk,
    ValueRule,
    chunks,
    count_frame,
    count_intents,
    total,
)
from harness.understanding.figures import SEED, figures
from tests.unit.understanding.random_frames import counted, pairs
from tests.unit.understanding.test_against_others import conlleval_chunks, iob2_chunks

WORDS = ("from", "Nice", "to", "Brest", "on", "Monday")
GOLD = Utterance("1", WORDS, ("book", "greet"), ("O", "B-city-from", "O", "B-city-to", "O", "B-date"))


def said(tags: str, intents: tuple[str, ...] = ("book", "greet")) -> Utterance:
    return Utterance("1", WORDS, intents, tuple(tags.split()))


def of_slots(*slots: Slot, intents: tuple[str, ...] | None = ("a",)) -> Utterance:
    return Utterance("1", intents=intents, slots=slots)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(0, 60), st.integers(1, 9), st.sampled_from(Chunking))
def test_shards_add_up_to_the_whole_in_any_order(seed: int, utterances: int, shards: int, chunking: Chunking) -> None:
    source = random.Random(seed)
    every = pairs(source, utterances)
    rule = Rule(chunking=chunking, spoken=True)
    whole = counted(every, rule)
    parts: list[list[int]] = [[] for _ in range(shards)]
    for row in range(utterances):
        parts[source.randrange(shards)].append(row)
    source.shuffle(parts)
    added = FrameCounts()
    for part in parts:
        added = added + counted([every[row] for row in part], rule)
    assert added == whole
    # Not only close: the order of addition leaves no trace in a single bit.
    assert figures(added) == figures(whole)
    assert figures(added, SEED) == figures(whole, SEED)


def test_nothing_is_nothing() -> None:
    one = count_frame(GOLD, GOLD, Rule())
    assert FrameCounts() + one == one + FrameCounts() == one
    assert total([]) == FrameCounts()


def test_adding_changes_neither() -> None:
    one, other = count_frame(GOLD, GOLD, Rule()), count_frame(GOLD, said("O O O O O O", ()), Rule())
    before = total([one]), total([other])
    _ = one + other
    assert (one, other) == before


def test_a_frame_by_hand() -> None:
    # One slot right, one in place with the wrong concept, one left out, and one put in.
    counts = count_frame(GOLD, said("B-date B-city-from O B-city-from O O", ("book",)), Rule())
    assert counts.intents.overlaps == {Matched(1, 2, 1): 1}
    assert counts.intents.labels == {"book": Matched(1, 1, 1), "greet": Matched(0, 1, 0)}
    assert counts.slots.chunks == {"city-from": Matched(1, 1, 2), "city-to": Matched(0, 1, 0), "date": Matched(0, 1, 1)}
    # F1mh: as a set, each concept once: the date was named, if elsewhere.
    assert counts.slots.concepts == {
        "city-from": Matched(1, 1, 1),
        "city-to": Matched(0, 1, 0),
        "date": Matched(1, 1, 1),
    }
    # city-from city-to date against date city-from city-from: an insertion, correct, a substitution, a deletion.
    edits = counts.slots.edits
    assert (edits.insertions, edits.correct, edits.substitutions, edits.deletions) == (1, 1, 1, 1)
    assert counts.slots.edits.wer == 1.0
    assert (counts.slots.frames.count, counts.slots.frames_placed.count) == (0, 0)


def test_the_same_concepts_elsewhere_are_right_without_places_alone() -> None:
    counts = count_frame(GOLD, said("B-city-from O O B-city-to O B-date"), Rule()).slots
    assert (counts.frames.count, counts.frames_placed.count) == (1, 0)
    assert counts.edits.errors == 0
    assert counts.chunks["city-from"] == Matched(0, 1, 1)


def test_relax_drops_specifiers_before_chunks_are_told_apart() -> None:
    relax = Rule(detail=Detail.RELAX)
    counts = count_frame(GOLD, said("O B-city-to O B-city-from O B-date"), relax).slots
    assert counts.chunks == {"city": Matched(2, 2, 2), "date": Matched(1, 1, 1)}
    assert counts.frames_placed.count == 1
    assert count_frame(GOLD, said("O B-city-to O B-city-from O B-date"), Rule()).slots.frames_placed.count == 0
    # An I- with another specifier goes on, as it would in a corpus that never had specifiers.
    slots = count_frame(GOLD, said("O B-city-to I-city-from O O O"), relax).slots
    assert slots.chunks["city"] == Matched(0, 2, 1)


@pytest.mark.parametrize(
    ("rule", "name", "concept"),
    [
        (Rule(), "temps-date-arrivee", "temps-date-arrivee"),
        (Rule(detail=Detail.RELAX), "temps-date-arrivee", "temps-date"),
        (Rule(detail=Detail.RELAX), "date", "date"),
        (Rule(detail=Detail.RELAX), "-date", "-date"),
        (Rule(detail=Detail.RELAX, separator="."), "city.from", "city"),
        (Rule(detail=Detail.RELAX, attributes=("temps-date", "temps")), "temps-date", "temps-date"),
        (Rule(detail=Detail.RELAX, attributes=("temps-date", "temps")), "temps-date-a-b", "temps-date"),
        (Rule(detail=Detail.RELAX, attributes=("temps-date", "temps")), "temps-dates", "temps"),
        (Rule(detail=Detail.RELAX, attributes=("temps-date",)), "lieu-ville", "lieu"),
    ],
)
def test_what_relax_leaves_of_a_concept(rule: Rule, name: str, concept: str) -> None:
    assert rule.concept(name) == concept


def test_intents_are_sets() -> None:
    assert count_intents(("b", "a"), ("a", "b")) == count_intents(("a", "b"), ("a", "b"))
    assert count_intents(("a", "b"), ("a", "b")).exact.count == 1


def test_only_single_intents_are_confused() -> None:
    assert count_intents(("a",), ("b",)).confusions == {("a", "b"): 1}
    assert count_intents(("a",), ("a",)).confusions == {("a", "a"): 1}
    assert not count_intents(("a",), ("a", "b")).confusions
    assert not count_intents((), ("a",)).confusions


def test_what_gold_lacks_is_not_counted() -> None:
    no_slots = count_frame(Utterance("1", WORDS, ("a",)), GOLD, Rule())
    assert (no_slots.intents.utterances, no_slots.slots.utterances, no_slots.valued.utterances) == (1, 0, 0)
    no_intents = count_frame(Utterance("1", WORDS, None, GOLD.tags), GOLD, Rule())
    assert (no_intents.intents.utterances, no_intents.slots.utterances) == (0, 1)
    # A frame is intents and slots: without one of them there is none to be right.
    assert no_intents.slots.frames.total == no_slots.slots.frames.total == 0


def test_what_the_prediction_lacks_was_predicted_to_be_none() -> None:
    counts = count_frame(GOLD, Utterance("1"), Rule())
    assert counts.intents.empty == 1
    assert counts.slots.edits.deletions == 3
    assert counts.slots.placed == 1


def test_no_intent_may_be_right() -> None:
    counts = count_intents((), ())
    assert (counts.exact.count, counts.empty, counts.empty_rightly) == (1, 1, 1)


def test_slots_in_other_words_have_no_place_in_these() -> None:
    heard = Utterance("1", ("to", "Brest"), GOLD.intents, ("O", "B-city-to"))
    counts = count_frame(GOLD, heard, Rule()).slots
    assert (counts.placed, counts.chunks) == (0, {})
    assert counts.edits.deletions == 2


def test_a_list_of_slots_without_places() -> None:
    gold = of_slots(Slot("city", "Nice"), Slot("date", "Monday"))
    heard = of_slots(Slot("date", "monday!"), Slot("city", "Nizza"))
    counts = count_frame(gold, heard, Rule(values=ValueRule.PLAIN)).slots
    assert (counts.placed, counts.edits.errors, counts.frames.count) == (0, 2, 0)
    unordered = count_frame(gold, heard, Rule(ordered=False, values=ValueRule.PLAIN))
    assert (unordered.slots.edits.errors, unordered.slots.frames.count) == (0, 1)
    assert unordered.valued.concepts == {"city": Matched(0, 1, 1), "date": Matched(1, 1, 1)}
    assert unordered.valued.edits.substitutions == 1
    verbatim = count_frame(gold, heard, Rule(ordered=False))
    assert verbatim.valued.concepts["date"] == Matched(0, 1, 1)


def test_a_gold_slot_without_value_is_right_with_any() -> None:
    gold = of_slots(Slot("city"), Slot("date", "Monday"))
    heard = of_slots(Slot("city", "Nice"), Slot("date", "Monday"))
    assert count_frame(gold, heard, Rule()).valued.frames.count == 1
    assert count_frame(heard, gold, Rule()).valued.frames.count == 0


def test_words_are_values_where_that_is_asked_for() -> None:
    other = Utterance("1", ("from", "nice", "to", "Brest", "on", "Monday"), GOLD.intents, GOLD.tags)
    assert count_frame(GOLD, other, Rule()).valued.utterances == 0
    spoken = count_frame(GOLD, other, Rule(spoken=True)).valued
    assert spoken.chunks["city-from"] == Matched(0, 1, 1)
    assert count_frame(GOLD, other, Rule(spoken=True, values=ValueRule.PLAIN)).valued.frames_placed.count == 1
    assert count_frame(GOLD, other, Rule(spoken=True, values=ValueRule.NONE)).valued.utterances == 0


def test_the_same_slot_twice_counts_twice_in_lists_and_once_in_sets() -> None:
    twice, once = of_slots(Slot("city"), Slot("city")), of_slots(Slot("city"))
    counts = count_frame(twice, once, Rule()).slots
    assert counts.concepts == {"city": Matched(1, 1, 1)}
    assert counts.edits.deletions == 1
    assert counts.frames.count == 0


def test_slots_with_and_without_a_value_go_together() -> None:
    gold = of_slots(Slot("city", "Nice", 0, 1), Slot("city", "Brest", 1, 2))
    heard = of_slots(Slot("city", None, 1, 2), Slot("city", "Nice", 0, 1))
    counts = count_frame(gold, heard, Rule())
    assert counts.slots.frames_placed == Share(1, 1)
    assert counts.valued.frames_placed == Share(0, 1)
    assert counts.valued.chunks == {"city": Matched(1, 2, 2)}


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
