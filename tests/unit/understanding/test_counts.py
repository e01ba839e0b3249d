"""Counts of frames by hand, shards, who is paired with whom, and the arithmetic of the paper."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.understanding import Chunking, Corpus, Detail, Slot, Utterance
from harness.statistics.intervals import Share, wilson
from harness.understanding.counts import (
    FrameCounts,
    IntentCounts,
    MatchCounts,
    Rule,
    ValueRule,
    count_frame,
    count_intents,
    total,
)
from harness.understanding.figures import (
    ONE,
    SEED,
    ZERO,
    Averages,
    IntentFigures,
    Interval,
    ZeroDivision,
    accuracy_interval,
    frame_figures,
    pooled_intervals,
    ratio_interval,
    samples_intervals,
    scope_figures,
)
from harness.understanding.scoring import FrameScoring, score
from harness.understanding.tag_chunks import chunks
from tests.known import known
from tests.unit.understanding.random_frames import Pair, counted, pairs
from tests.unit.understanding.test_against_others import conlleval_chunks, iob2_chunks

WORDS = ("from", "Nice", "to", "Brest", "on", "Monday")
GOLD = Utterance("1", WORDS, ("book", "greet"), ("O", "B-city-from", "O", "B-city-to", "O", "B-date"))


def said(tags: str, intents: tuple[str, ...] = ("book", "greet")) -> Utterance:
    return Utterance("1", WORDS, intents, tuple(tags.split()))


def of_slots(*slots: Slot, intents: tuple[str, ...] | None = ("a",)) -> Utterance:
    return Utterance("1", intents=intents, slots=slots)


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
    assert frame_figures(added) == frame_figures(whole)
    assert frame_figures(added, SEED) == frame_figures(whole, SEED)


def test_empty_counts_are_neutral_and_addition_is_pure() -> None:
    assert total([]) == FrameCounts()
    first, other = count_frame(GOLD, GOLD, Rule()), count_frame(GOLD, said("O O O O O O", ()), Rule())
    before = total([first]), total([other])
    assert FrameCounts() + first == first + FrameCounts() == first
    _ = first + other
    assert (first, other) == before


def test_counts_of_a_frame_match_hand_calculation() -> None:
    # One slot right, one in place with the wrong concept, one left out, and one put in.
    counts = count_frame(GOLD, said("B-date B-city-from O B-city-from O O", ("book",)), Rule())
    assert counts.intents.overlaps == {MatchCounts(1, 2, 1): 1}
    assert counts.intents.labels == {"book": MatchCounts(1, 1, 1), "greet": MatchCounts(0, 1, 0)}
    assert counts.slots.chunks == {
        "city-from": MatchCounts(1, 1, 2),
        "city-to": MatchCounts(0, 1, 0),
        "date": MatchCounts(0, 1, 1),
    }
    # F1mh: as a set, each concept once: the date was named, if elsewhere.
    assert counts.slots.concepts == {
        "city-from": MatchCounts(1, 1, 1),
        "city-to": MatchCounts(0, 1, 0),
        "date": MatchCounts(1, 1, 1),
    }
    # city-from city-to date against date city-from city-from: an insertion, correct, a substitution, a deletion.
    edits = counts.slots.edits
    assert (edits.insertions, edits.correct, edits.substitutions, edits.deletions) == (1, 1, 1, 1)
    assert counts.slots.edits.wer == 1.0
    assert (counts.slots.frames.count, counts.slots.frames_placed.count) == (0, 0)


def test_misplaced_concepts_count_as_correct_only_without_places() -> None:
    counts = count_frame(GOLD, said("B-city-from O O B-city-to O B-date"), Rule()).slots
    assert (counts.frames.count, counts.frames_placed.count) == (1, 0)
    assert counts.edits.errors == 0
    assert counts.chunks["city-from"] == MatchCounts(0, 1, 1)


def test_relax_drops_specifiers_before_chunks_are_told_apart() -> None:
    relax = Rule(detail=Detail.RELAX)
    counts = count_frame(GOLD, said("O B-city-to O B-city-from O B-date"), relax).slots
    assert counts.chunks == {"city": MatchCounts(2, 2, 2), "date": MatchCounts(1, 1, 1)}
    assert counts.frames_placed.count == 1
    assert count_frame(GOLD, said("O B-city-to O B-city-from O B-date"), Rule()).slots.frames_placed.count == 0
    # An I- with another specifier goes on, as it would in a corpus that never had specifiers.
    slots = count_frame(GOLD, said("O B-city-to I-city-from O O O"), relax).slots
    assert slots.chunks["city"] == MatchCounts(0, 2, 1)


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
def test_relax_removes_specifiers_from_concepts(rule: Rule, name: str, concept: str) -> None:
    assert rule.concept(name) == concept


def test_only_single_intents_are_confused() -> None:
    assert count_intents(("a",), ("b",)).confusions == {("a", "b"): 1}
    assert count_intents(("a",), ("a",)).confusions == {("a", "a"): 1}
    assert not count_intents(("a",), ("a", "b")).confusions
    assert not count_intents((), ("a",)).confusions


def test_parts_missing_from_gold_are_not_counted() -> None:
    no_slots = count_frame(Utterance("1", WORDS, ("a",)), GOLD, Rule())
    assert (no_slots.intents.utterances, no_slots.slots.utterances, no_slots.valued.utterances) == (1, 0, 0)
    no_intents = count_frame(Utterance("1", WORDS, None, GOLD.tags), GOLD, Rule())
    assert (no_intents.intents.utterances, no_intents.slots.utterances) == (0, 1)
    # A frame is intents and slots: without one of them there is none to be right.
    assert no_intents.slots.frames.total == no_slots.slots.frames.total == 0


def test_missing_prediction_parts_count_as_empty() -> None:
    counts = count_frame(GOLD, Utterance("1"), Rule())
    assert counts.intents.empty == 1
    assert counts.slots.edits.deletions == 3
    assert counts.slots.placed == 1


def test_missing_prediction_is_never_right() -> None:
    nothing = Utterance("1", WORDS, (), ("O",) * len(WORDS))
    counts = count_frame(nothing, Utterance("1"), Rule())
    assert (counts.intents.exact, counts.slots.frames, counts.frames_tagged) == (Share(0, 1),) * 3
    assert (counts.intents.empty, counts.intents.empty_rightly) == (1, 0)
    scores = frame_figures(counts, ONE).intents
    assert (scores.accuracy, scores.samples.recall, scores.samples.f1) == (0, 0, 0)
    assert scope_figures(counts.intents, "") == (Share(0, 1), Share(0, 0), Share(0, 0))
    both = counts + count_frame(nothing, Utterance("1", WORDS, ()), Rule())
    assert (both.intents.exact, both.intents.unpredicted) == (Share(1, 2), 1)


def test_predicting_no_intent_can_be_right() -> None:
    counts = count_intents((), ())
    assert (counts.exact.count, counts.empty, counts.empty_rightly) == (1, 1, 1)


def test_slots_of_different_words_are_not_compared_by_place() -> None:
    heard = Utterance("1", ("to", "Brest"), GOLD.intents, ("O", "B-city-to"))
    counts = count_frame(GOLD, heard, Rule()).slots
    assert (counts.placed, counts.chunks) == (0, {})
    assert counts.edits.deletions == 2


def test_slots_without_positions_are_compared_in_order_or_as_sets() -> None:
    gold = of_slots(Slot("city", "Nice"), Slot("date", "Monday"))
    heard = of_slots(Slot("date", "monday!"), Slot("city", "Nizza"))
    counts = count_frame(gold, heard, Rule(values=ValueRule.PLAIN)).slots
    assert (counts.placed, counts.edits.errors, counts.frames.count) == (0, 2, 0)
    unordered = count_frame(gold, heard, Rule(ordered=False, values=ValueRule.PLAIN))
    assert (unordered.slots.edits.errors, unordered.slots.frames.count) == (0, 1)
    assert unordered.valued.concepts == {"city": MatchCounts(0, 1, 1), "date": MatchCounts(1, 1, 1)}
    assert unordered.valued.edits.substitutions == 1
    verbatim = count_frame(gold, heard, Rule(ordered=False))
    assert verbatim.valued.concepts["date"] == MatchCounts(0, 1, 1)


def test_a_gold_slot_without_value_is_right_with_any() -> None:
    gold = of_slots(Slot("city"), Slot("date", "Monday"))
    heard = of_slots(Slot("city", "Nice"), Slot("date", "Monday"))
    assert count_frame(gold, heard, Rule()).valued.frames.count == 1
    assert count_frame(heard, gold, Rule()).valued.frames.count == 0


@pytest.mark.parametrize(
    ("gold", "heard", "in_places", "substitutions"),
    [
        ((None, "Lyon"), ("Nice", "Lyon"), 2, 0),
        ((None, "Lyon"), ("Nice", "Paris"), 1, 1),
        (("Lyon", None), ("Paris", "Nice"), 1, 1),
        ((None, "Lyon"), ("Lyon", "Nice"), 1, 1),
        ((None, None), ("Nice", "Paris"), 2, 0),
        ((None, "Lyon"), (None, "Paris"), 1, 1),
    ],
)
def test_a_gold_slot_without_value_frees_no_other_of_its_concept(
    gold: tuple[str | None, ...], heard: tuple[str | None, ...], in_places: int, substitutions: int
) -> None:
    sides = [of_slots(*(Slot("city", value, at, at + 1) for at, value in enumerate(side))) for side in (gold, heard)]
    counts = count_frame(*sides, Rule()).valued
    assert counts.chunks["city"] == MatchCounts(in_places, 2, 2)
    assert counts.edits.substitutions == substitutions


def test_values_in_lists_match_wherever_they_stand() -> None:
    gold, heard = of_slots(Slot("city"), Slot("city", "Lyon")), of_slots(Slot("city", "Lyon"), Slot("city", "Nice"))
    assert count_frame(gold, heard, Rule(ordered=False)).valued.multisets == {MatchCounts(2, 2, 2): 1}
    extra = of_slots(Slot("city"), Slot("city", "Lyon"), Slot("city", "Nice"))
    assert count_frame(gold, extra, Rule()).valued.multisets == {MatchCounts(2, 2, 3): 1}


def test_spoken_words_count_as_values_on_request() -> None:
    other = Utterance("1", ("from", "nice", "to", "Brest", "on", "Monday"), GOLD.intents, GOLD.tags)
    assert count_frame(GOLD, other, Rule()).valued.utterances == 0
    spoken = count_frame(GOLD, other, Rule(spoken=True)).valued
    assert spoken.chunks["city-from"] == MatchCounts(0, 1, 1)
    assert count_frame(GOLD, other, Rule(spoken=True, values=ValueRule.PLAIN)).valued.frames_placed.count == 1
    assert count_frame(GOLD, other, Rule(spoken=True, values=ValueRule.NONE)).valued.utterances == 0


def test_the_same_slot_twice_counts_twice_in_lists_and_once_in_sets() -> None:
    twice, single = of_slots(Slot("city"), Slot("city")), of_slots(Slot("city"))
    counts = count_frame(twice, single, Rule()).slots
    assert counts.concepts == {"city": MatchCounts(1, 1, 1)}
    assert counts.edits.deletions == 1
    assert counts.frames.count == 0


def test_slots_with_and_without_values_are_paired() -> None:
    gold = of_slots(Slot("city", "Nice", 0, 1), Slot("city", "Brest", 1, 2))
    heard = of_slots(Slot("city", None, 1, 2), Slot("city", "Nice", 0, 1))
    counts = count_frame(gold, heard, Rule())
    assert counts.slots.frames_placed == Share(1, 1)
    assert counts.valued.frames_placed == Share(0, 1)
    assert counts.valued.chunks == {"city": MatchCounts(1, 2, 2)}


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
def test_chunks_of_tags_match_hand_calculation(
    tags: str, conlleval: list[tuple[str, int, int]], iob2: list[tuple[str, int, int]]
) -> None:
    assert list(chunks(tags.split(), Chunking.CONLLEVAL)) == conlleval
    assert list(chunks(tags.split(), Chunking.IOB2)) == iob2


@given(TAGS)
def test_both_chunk_readings_match_an_independent_implementation(tags: list[str]) -> None:
    assert list(chunks(tags, Chunking.CONLLEVAL)) == conlleval_chunks(tags)
    assert list(chunks(tags, Chunking.IOB2)) == iob2_chunks(tags)


@pytest.mark.parametrize("tag", ["", "B", "I-", "B-", "X-a", "b-a", "E-a", "S-a", "a"])
def test_invalid_tags_are_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="is not a tag: use O, B-concept or I-concept"):
        chunks(["O", tag], Chunking.CONLLEVAL)


# Intents of the paper's test set of 187 utterances (its Table 2), with right and predicted ones that give its Table 4.
LABELS = {
    "annulation": MatchCounts(0, 1, 0),
    "incomprehension": MatchCounts(0, 4, 0),
    "modification": MatchCounts(0, 1, 0),
    "reponse_indecise": MatchCounts(0, 1, 0),
    "marqueur_discursif": MatchCounts(4, 5, 7),
    "remercier": MatchCounts(6, 6, 6),
    "renseignements": MatchCounts(18, 19, 21),
    "reponse_affirmative": MatchCounts(51, 52, 54),
    "reponse_negative": MatchCounts(57, 57, 58),
    "reservation": MatchCounts(47, 48, 49),
    "saluer": MatchCounts(6, 6, 6),
}
# 173 of 187 right, and of the others: 2 empty, 8 all wrong, 2 with half of two, 1 with one too many, 1 half right.
OVERLAPS = {
    MatchCounts(1, 1, 1): 173,
    MatchCounts(0, 1, 0): 2,
    MatchCounts(0, 1, 1): 8,
    MatchCounts(1, 2, 1): 2,
    MatchCounts(1, 1, 2): 1,
    MatchCounts(1, 2, 2): 1,
}


def of(zero: ZeroDivision) -> IntentFigures:
    return frame_figures(FrameCounts(187, IntentCounts(OVERLAPS, LABELS)), zero, tuple(LABELS)).intents


def per_cent(*shares: float | None) -> tuple[float, ...]:
    return tuple(round(100 * (share or 0), 2) for share in shares)


def test_macro_figures_match_the_paper_with_undefined_precision_as_one() -> None:
    intent_figures = of(SEED)
    assert per_cent(intent_figures.macro.precision, intent_figures.macro.recall, intent_figures.macro.f1) == (
        93.77,
        60.98,
        58.99,
    )
    assert intent_figures.never_predicted == ("annulation", "incomprehension", "modification", "reponse_indecise")


def test_undefined_precision_counts_as_zero_by_default() -> None:
    intent_figures = of(ZERO)
    assert per_cent(intent_figures.macro.precision, intent_figures.macro.recall, intent_figures.macro.f1) == (
        57.41,
        60.98,
        58.99,
    )
    # F1 counts right ones of gold and predicted together: with gold ones there is no 0/0, and all choices agree.
    assert of(ONE).macro.f1 == of(SEED).macro.f1 == intent_figures.macro.f1
    assert all(averages.f1 == 0 for name, _, averages in of(SEED).labels if name in intent_figures.never_predicted)


def test_sample_figures_match_the_paper_with_two_empty_predictions() -> None:
    intent_figures = of(SEED)
    assert per_cent(intent_figures.exact.value) == (92.51,)
    assert per_cent(intent_figures.samples.precision, intent_figures.samples.recall, intent_figures.samples.f1) == (
        95.19,
        93.85,
        93.85,
    )
    assert intent_figures.empty == 2
    assert per_cent(of(ZERO).samples.precision) == (94.12,)


def f1(counts: dict[tuple[int, int, int], int]) -> Interval | None:
    return ratio_interval(counts, lambda triple: 2 * triple[0], lambda triple: triple[1] + triple[2])


def drawn(draw: random.Random, number: int) -> dict[tuple[int, int, int], int]:
    """Utterances with four slots that are right with three chances of four, all of an utterance alike or not."""
    rows: Counter[tuple[int, int, int]] = Counter()
    for _ in range(number):
        wrong = draw.choice((0, 0, 2, 4)) if draw.random() < 0.5 else sum(draw.random() < 0.25 for _ in range(4))
        rows[4 - wrong, 4, 4] += 1
    return dict(rows)


def test_intervals_cover_the_truth_as_often_as_stated() -> None:
    draw = random.Random(1)
    true = 0.5 * (1 - 1.5 / 4) + 0.5 * 0.75
    intervals = [f1(drawn(draw, 120)) for _ in range(300)]
    covered = sum(interval is not None and interval[0] <= true <= interval[1] for interval in intervals)
    assert 0.90 <= covered / 300 <= 0.98


def test_interval_counts_utterances_where_nothing_varies() -> None:
    assert f1({(2, 2, 2): 30, (0, 0, 0): 5}) == wilson(30, 30)
    assert f1({(0, 2, 2): 30}) == wilson(0, 30)
    assert ratio_interval({(3, 3): 9}, lambda pair: pair[0], lambda pair: pair[1], None) is None
    assert ratio_interval({(0, 3): 9}, lambda pair: pair[0], lambda pair: pair[1], None) == wilson(0, 9)


@pytest.mark.parametrize("counts", [{}, {(0, 0, 0): 9}, {(3, 4, 4): 1}, {(3, 4, 4): 1, (0, 0, 0): 9}])
def test_an_interval_from_one_counted_utterance_is_undefined(counts: dict[tuple[int, int, int], int]) -> None:
    assert f1(counts) is None


def test_an_error_rate_may_go_above_one() -> None:
    interval = known(ratio_interval({(6, 2): 20, (1, 2): 20}, lambda pair: pair[0], lambda pair: pair[1], None))
    assert interval[0] < 1.75 < interval[1]
    assert interval[1] > 2


def intents_of(counts: FrameCounts) -> list[float | None]:
    intents = frame_figures(counts, SEED).intents
    averages = [value for mean in (intents.samples, intents.micro) for value in (mean.precision, mean.recall, mean.f1)]
    return [intents.accuracy, *averages]


def test_intervals_of_intents_have_the_figures_of_all_utterances_in_them() -> None:
    draw = random.Random(3)
    population = pairs(random.Random(5), 2_000)
    truth = intents_of(counted(population))
    covered = [0] * len(truth)
    for _ in range(60):
        overlaps = counted([draw.choice(population) for _ in range(100)]).intents.overlaps
        spans = [accuracy_interval(overlaps, SEED), *samples_intervals(overlaps, SEED), *pooled_intervals(overlaps)]
        for index, (value, span) in enumerate(zip(truth, spans, strict=True)):
            low, high = known(span)
            covered[index] += low <= known(value) <= high
    # 95 % of 60 is 57. Fewer than 50 would be one in a thousand.
    assert all(times >= 50 for times in covered), covered
    assert sum(covered) < 60 * len(covered)


TO_NICE = ("to", "Nice")
CITY = ("O", "B-city")


def gold(id_: str, **changed: object) -> Utterance:
    values: dict[str, object] = {"words": TO_NICE, "intents": ("go",), "tags": CITY}
    return Utterance(id_, **(values | changed))  # type: ignore[arg-type]


def scored(
    utterances: list[Utterance], predictions: list[Utterance], rule: Rule | None = None, **options: object
) -> FrameScoring:
    pair = Corpus("gold.jsonl", tuple(utterances)), Corpus("said.jsonl", tuple(predictions))
    return score(*pair, rule or Rule(), **options)  # type: ignore[arg-type]


def test_a_missing_prediction_has_predicted_nothing_and_one_without_gold_counts_nowhere() -> None:
    scoring = scored([gold("1"), gold("2"), gold("3", intents=None, tags=None)], [gold("1"), gold("4")])
    assert (scoring.missing, scoring.unknown, scoring.unannotated) == (("2",), ("4",), ("3",))
    assert [(frame.id, frame.missing) for frame in scoring.frames] == [("1", False), ("2", True)]
    assert scoring.totals.intents.labels == {"go": MatchCounts(1, 2, 1)}
    assert scoring.totals.slots.frames_placed.count == 1
    assert scoring.totals.intents.empty == 1


def test_ids_pair_in_any_order() -> None:
    utterances = [gold(str(n), intents=(f"i{n}",)) for n in range(5)]
    assert scored(utterances, utterances[::-1]).totals.intents.exact.count == 5


def test_a_system_that_never_tells_intents_has_no_figures_of_them() -> None:
    scoring = scored([gold("1"), gold("2")], [gold("1", intents=None)])
    assert (scoring.intents_given, scoring.slots_given) == (False, True)
    shown = frame_figures(scoring.totals)
    assert shown.intents.exact.value is None
    assert shown.slots.micro == Averages(1.0, 0.5, 2 / 3)
    # One that tells them for some utterances is wrong about the others.
    some = scored([gold("1"), gold("2")], [gold("1", intents=None), gold("2")])
    assert some.totals.intents.exact.count == 1
    assert some.totals.intents.exact.total == 2


def test_a_system_that_never_tells_slots_has_no_frames() -> None:
    scoring = scored([gold("1")], [Utterance("1", intents=("go",))])
    assert not scoring.slots_given
    assert frame_figures(scoring.totals).slots.frames.value is None
    assert frame_figures(scoring.totals).slots.cer is None


def test_without_predictions_every_slot_is_missing() -> None:
    scoring = scored([gold("1")], [])
    assert frame_figures(scoring.totals).intents.exact.value == 0
    assert frame_figures(scoring.totals).slots.cer == 1


def test_values_count_only_if_both_sides_give_them() -> None:
    utterance = gold("1", tags=None, slots=(Slot("city", "Nice", 1, 2),))
    bare = gold("1", tags=None, slots=(Slot("city", None, 1, 2),))
    right, none = scored([utterance], [utterance]), scored([utterance], [bare])
    assert right.values_given
    assert right.totals.valued.frames_placed.count == 1
    assert not none.values_given
    assert frame_figures(none.totals).valued is None
    assert not scored([utterance], [utterance], Rule(values=ValueRule.NONE)).values_given
    # A system that gives values, and none here, is wrong here.
    two = scored(
        [utterance, gold("2", tags=None, slots=utterance.slots)], [bare, gold("2", tags=None, slots=utterance.slots)]
    )
    assert two.totals.valued.frames_placed.count == 1
    assert two.totals.valued.utterances == 2


def test_groups_split_the_totals() -> None:
    source = random.Random(4)
    some: list[Pair] = pairs(source, 200)
    utterances = [
        Utterance(gold.id, gold.words, gold.intents, gold.tags, groups=(("voice", source.choice("ab")), ("level", "x")))
        for gold, _ in some
    ]
    utterances[7] = Utterance(utterances[7].id, utterances[7].words, utterances[7].intents, utterances[7].tags)
    scoring = scored(utterances, [prediction for _, prediction in some])
    assert [column for column, _ in scoring.groups] == ["voice", "level"]
    assert scoring.totals == counted(some)
    for _, labels in scoring.groups:
        assert total(counts for _, counts in labels) == scoring.totals
    assert [label for label, _ in scoring.groups[0][1]] == ["", "a", "b"]
    assert scoring.groups[0][1][0][1] == counted(some[7:8])
    only = scored(utterances, [], by=["voice"])
    assert [column for column, _ in only.groups] == ["voice"]


def test_prediction_without_gold_is_not_scored() -> None:
    scoring = scored([], [gold("1")])
    assert scoring.totals == FrameCounts()
    assert scoring.unknown == ("1",)
