"""SLURP's metrics by hand and from their definition, concepts without places, and frames by tags."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache

import pytest

from harness.model.understanding import Corpus, Detail, Slot, Utterance
from harness.understanding.counts import FrameCounts, MatchCounts, Rule, count_frame, total
from harness.understanding.entities import character_distance, word_distance
from harness.understanding.figures import concept_f1, slu_f1s
from harness.understanding.reports.score_text import SystemReport
from harness.understanding.scoring import count_system, score
from tests.known import known

Slots = list[tuple[str, str]]


def utterance(slots: Slots, id_: str = "1") -> Utterance:
    return Utterance(id_, intents=(), slots=tuple(Slot(*slot) for slot in slots))


def counts(gold: Slots, predicted: Slots) -> FrameCounts:
    return count_frame(utterance(gold), utterance(predicted), Rule())


def f1s(frame_counts: FrameCounts) -> list[float | None]:
    return [value for value, _ in slu_f1s(frame_counts.entities)]


@pytest.mark.parametrize(
    ("gold", "predicted", "slu", "words", "characters"),
    [
        # Two pairs: 1 + 1/2 by words, 2/6 + 5/11 by characters. One slot is missed, and one is too many.
        (
            [("time", "seven"), ("date", "next monday"), ("food", "pizza")],
            [("time", "eleven"), ("date", "monday"), ("place", "rome")],
            264 / 547, 4 / 9, 132 / 250,
        ),
        # The nearest slot of gold is taken, in whatever order.
        ([("time", "five"), ("time", "six")], [("time", "six"), ("time", "five")], 1.0, 1.0, 1.0),
        # The first takes the nearest, so "ten" is left with "nine two": 2/2 by words, 7/8 by characters.
        ([("time", "ten"), ("time", "nine two")], [("time", "ten"), ("time", "ten")], 4 / 5.875, 4 / 6, 4 / 5.75),
        # Three words too many for one: the distance of words exceeds 1, that of characters does not.
        ([("genre", "jazz")], [("genre", "some smooth jazz music")], 2 / (5 + 18 / 22), 2 / 8, 2 / (2 + 36 / 22)),
        ([("time", "six")], [], 0.0, 0.0, 0.0),
        ([], [], None, None, None),
    ],
)  # fmt: skip
def test_slu_f1_matches_hand_calculation(
    gold: Slots, predicted: Slots, slu: float | None, words: float | None, characters: float | None
) -> None:
    assert f1s(counts(gold, predicted)) == pytest.approx([slu, words, characters], abs=1e-12)


def test_slots_without_a_value_are_left_out() -> None:
    gold = Utterance("1", intents=(), slots=(Slot("date", "today"), Slot("city", None)))
    prediction = Utterance("1", intents=(), slots=(Slot("date", "today"), Slot("city", "Rome"), Slot("date", None)))
    assert f1s(count_frame(gold, prediction, Rule())) == [1.0, 1.0, 1.0]


@cache
def edits(first: tuple[str, ...], other: tuple[str, ...]) -> int:
    if not first or not other:
        return len(first) + len(other)
    ends = edits(first[:-1], other[:-1]) + (first[-1] != other[-1])
    return min(ends, edits(first[:-1], other) + 1, edits(first, other[:-1]) + 1)


def wrong_words(gold: str, prediction: str) -> Fraction:
    return Fraction(edits(tuple(gold.split()), tuple(prediction.split())), len(gold.split()))


def wrong_letters(gold: str, prediction: str) -> Fraction:
    return Fraction(edits(tuple(gold), tuple(prediction)), max(len(gold), len(prediction)))


def test_slu_f1_matches_its_definition() -> None:
    source = random.Random(4)
    values = ["six", "half past six", "past two", "tea", "a tea", "half a cup"]

    def slots() -> Slots:
        return [(source.choice("abc"), source.choice(values)) for _ in range(source.randint(0, 4))]

    pairs = [(slots(), slots()) for _ in range(400)]
    pairs += [(gold_value, gold_value) for gold_value, _ in pairs[:100]]
    table: list[list[Fraction]] = []  # for each distance: true positives, false positives, false negatives
    for distance in (wrong_words, wrong_letters):
        tp = fp = fn = Fraction(0)
        for gold, prediction in pairs:
            open_ = dict(enumerate(gold))
            for concept, value in prediction:
                far = {
                    index: distance(gold_value, value)
                    for index, (other, gold_value) in open_.items()
                    if other == concept
                }
                if not far:
                    fp += 1
                    continue
                nearest = min(far, key=lambda index: far[index])
                del open_[nearest]
                tp, fp, fn = tp + 1, fp + far[nearest], fn + far[nearest]
            fn += len(open_)
        table.append([tp, fp, fn])

    def f1(row: list[Fraction]) -> float:
        precision, recall = row[0] / (row[0] + row[1]), row[0] / (row[0] + row[2])
        return float(2 * precision * recall / (precision + recall))

    sums = [sum(column) for column in zip(*table, strict=True)]
    frame_counts = total(counts(*pair) for pair in pairs)
    assert f1s(frame_counts) == pytest.approx([f1([Fraction(count) for count in sums]), *map(f1, table)], abs=1e-12)
    for value, interval in slu_f1s(frame_counts.entities):
        low, high = known(interval)
        assert low < known(value) < high


def test_distances_to_an_empty_text_are_defined() -> None:
    assert word_distance("", "") == character_distance("", "") == 0
    assert word_distance("", "a b") == 2
    assert character_distance("", "a b") == 1


def test_concepts_count_as_often_as_they_occur() -> None:
    # As a set, one of one is right; as a multiset, one of two.
    city_counts = counts([("city", "Nice"), ("city", "Brest")], [("city", "Brest")])
    assert city_counts.slots.concepts == {"city": MatchCounts(1, 1, 1)}
    assert concept_f1(city_counts.slots.multisets)[0] == pytest.approx(2 / 3)
    assert concept_f1(city_counts.valued.multisets)[0] == pytest.approx(2 / 3)
    assert concept_f1({}) == (None, None)


def reported(gold: list[Utterance], predictions: list[Utterance], rule: Rule | None = None) -> SystemReport:
    return SystemReport(
        count_system([score(Corpus("g", tuple(gold)), Corpus("p", tuple(predictions)), rule or Rule())])
    )


def intents(*names: str) -> list[Utterance]:
    return [Utterance(str(number), (), (name,) if name else ()) for number, name in enumerate(names)]


def test_scenario_and_action_are_split_at_the_first_underscore() -> None:
    gold = intents("alarm_set", "alarm_query", "audio_volume_up", "audio_volume_up", "alarm_set")
    report = reported(gold, intents("alarm_query", "alarm_query", "audio_volume_up", "lists_volume_up", ""))
    rows = [known(report.row(key)) for key in ("scenario_f1", "action_f1")]
    # An empty prediction is only missed: 3 right of 5 in gold and 4 predicted, for both.
    for row, part in zip(rows, ("scenarios", "actions"), strict=True):
        assert row.counts == f"3 right, 5 {part}, 4 predicted"
        assert row.value == pytest.approx(6 / 9)
        low, high = known(row.interval)
        assert low < 6 / 9 < high


@pytest.mark.parametrize(
    "names",
    [("alarm_set", "booking"), ("atis_fare", "atis_flight"), ("affirmative_answer", "negative_reply"), ("_set", "a_")],
)
def test_other_intents_have_no_scenario(names: tuple[str, ...]) -> None:
    assert reported(intents(*names), intents(*names)).row("scenario_f1") is None


def test_sfa_by_tags_is_shown_where_it_differs() -> None:
    words = ("to", "Nice", "now")

    def tagged(tags: str) -> list[Utterance]:
        return [Utterance("1", words, ("go",), tuple(tags.split()))]

    row = known(reported(tagged("O B-city O"), tagged("O I-city O")).row("sfa_tags"))
    assert (row.value, row.counts) == (0.0, "0 of 1 utterances; all tags the same as in gold")
    assert reported(tagged("O B-city O"), tagged("O B-city O")).row("sfa_tags") is None
    relaxed = Rule(detail=Detail.RELAX)
    report = reported(tagged("O B-city-to O"), tagged("O B-city-from O"), relaxed)
    assert known(report.row("sfa")).value == 1
    assert report.row("sfa_tags") is None
    slots = [Utterance("1", words, ("go",), None, (Slot("city", None, 1, 2),))]
    assert reported(tagged("O B-city O"), slots).row("sfa_tags") is None


def test_a_report_without_values_does_not_grow() -> None:
    words = ("to", "Nice")
    gold = [Utterance("1", words, ("go",), ("O", "B-city"))]
    keys = {row.key for row in reported(gold, gold).rows}
    assert not {"slu_f1", "concept_f1", "scenario_f1", "sfa_tags"} & keys
    valued = reported([utterance([("city", "Nice")])], [utterance([("city", "Brest")])])
    assert {"slu_f1", "slu_word_f1", "slu_character_f1", "concept_f1", "value_concept_f1"} <= {
        row.key for row in valued.rows
    }
