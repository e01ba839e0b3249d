"""Scorings by group: who is in which, in which order, and figures that add up."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from harness.base.text_table import sorted_labels
from harness.model.errors import InputError
from harness.model.transcript import ColumnGrouping, WordCounts
from harness.transcripts.groups import (
    MAX_LABELS,
    GroupFigures,
    Groupings,
    IntervalUnit,
    compare,
    compare_by_group,
    group_figures,
    group_words,
    interval_of,
)
from harness.transcripts.scoring import Scoring
from tests.unit.transcripts.reports.scorings import scored

WORDS = ("on", "off", "the", "light")


def listed(rows: dict[str, str], name: str = "noise", order: tuple[str, ...] = ()) -> Groupings:
    return Groupings("groups.csv", tuple(rows), (ColumnGrouping(name, tuple(rows.values()), order),))


def corpus(seed: int, size: int = 300) -> tuple[Scoring, Scoring, Groupings]:
    """Two systems with errors at random; each has lost some utterances, and the list has no row for others."""
    draw = random.Random(seed)
    ids = [f"{draw.choice('abcdefg')}_{number}" for number in range(size)]
    references = {id_: " ".join(draw.choices(WORDS, k=draw.randint(0, 8))) for id_ in ids}

    def heard(rate: float) -> dict[str, str]:
        texts = {
            id_: " ".join(draw.choice(WORDS) if draw.random() < rate else word for word in text.split())
            for id_, text in references.items()
        }
        return {id_: text for id_, text in texts.items() if draw.random() < 0.95}

    groupings = tuple(
        ColumnGrouping(name, tuple(draw.choice(labels) for _ in ids[3:]))
        for name, labels in (("noise", ("fan", "", "quiet")), ("level", ("-26", "-8", "-38")))
    )
    return (
        scored(references, heard(0.2), title="one"),
        scored(references, heard(0.6), title="two"),
        Groupings("groups.csv", tuple(ids[3:]), groupings),
    )


@pytest.mark.parametrize("seed", range(3))
def test_groups_add_up_to_the_whole_in_every_way(seed: int) -> None:
    scoring, _, groups = corpus(seed)
    breakdown = group_figures(scoring, [groups], [("noise", "level")])
    for grouped in breakdown.grouped:
        assert sum((words.counts for _, words in grouped.values), WordCounts()) == scoring.totals
    (cross,) = breakdown.crossed
    assert cross.total.counts == scoring.totals
    assert cross.total.interval == interval_of(scoring)
    for label, row, total in zip(cross.rows, cross.cells, cross.row_sums, strict=True):
        assert sum((cell.counts for cell in row if cell), WordCounts()) == total.counts, label
    for column, total in enumerate(cross.column_sums):
        assert sum((row[column].counts for row in cross.cells if row[column]), WordCounts()) == total.counts  # type: ignore[union-attr]
    assert cross.columns == ("-38", "-26", "-8", "")
    assert cross.cells[0][3] is None  # only those without a row have no level, and these have no noise either


def test_each_value_has_the_words_of_its_utterances() -> None:
    scoring, _, groups = corpus(7)
    noise = dict(zip(groups.ids, groups.groupings[0].labels, strict=True))
    for label, words in group_figures(scoring, [groups]).grouped[0].values:
        rows = [row for row, id_ in enumerate(scoring.ids) if noise.get(id_, "") == label]
        assert words == group_words(scoring, np.array(rows, np.intp))
        assert words.counts == sum((utterance.counts for utterance in scoring.utterances(rows)), WordCounts())


def test_ids_without_groups_and_group_rows_without_utterances_are_reported() -> None:
    scoring = scored({"a_1": "x", "A_2": "y", "b_1": "z"}, {"a_1": "x", "c_9": "q", "b_1": "z"}, drop=True)
    groups = listed({"A_1": "fan", "b_9": "fan", "C_9": "fan", "a_2": "fan"})
    breakdown = group_figures(scoring, [groups])
    assert [(label, words.counts.sentences) for label, words in breakdown.grouped[0].values] == [("fan", 1), ("", 1)]
    assert (breakdown.without_row, breakdown.unmatched_ids) == (("b_1",), ("b_9",))


def test_an_id_as_it_is_written_goes_before_one_in_another_case() -> None:
    scoring = scored({"a.wav": "x", "A.wav": "y"}, {"a.wav": "x", "A.wav": "z"})
    rows = {"A.wav": "loud", "a.wav": "soft"}
    values = group_figures(scoring, [listed(rows)]).grouped[0].values
    assert [(label, words.counts.errors) for label, words in values] == [("loud", 1), ("soft", 0)]


def test_an_interval_is_over_speakers_where_there_are_five() -> None:
    texts = {f"{speaker}_{number}": "one two three" for speaker in "abcde" for number in range(4)}
    heard = {id_: "one two" if id_ < "c" else text for id_, text in texts.items()}
    labels = {id_: "all" if id_.endswith("0") else id_[0] for id_ in texts}
    values = dict(group_figures(scored(texts, heard), [listed(labels)]).grouped[0].values)
    assert values["all"].unit is IntervalUnit.SPEAKERS
    assert values["a"].unit is IntervalUnit.UTTERANCES
    assert values["a"].interval is not None


def test_a_rate_without_words_is_undefined() -> None:
    scoring = scored({"a_1": "", "a_2": "x"}, {"a_1": "uh", "a_2": "x"})
    values = dict(group_figures(scoring, [listed({"a_1": "fan", "a_2": "quiet"})]).grouped[0].values)
    assert (values["fan"].counts.wer, values["fan"].interval, values["fan"].counts.insertions) == (None, None, 1)
    assert group_figures(scored({}, {}), [listed({"a_1": "fan"})]).grouped[0].values == ()


def test_notes_on_single_utterances_are_no_groups() -> None:
    texts = {f"a_{number}": "x" for number in range(MAX_LABELS + 1)}
    scoring = scored(texts, texts)
    breakdown = group_figures(scoring, [listed({id_: id_ for id_ in texts}, "file")])
    assert (breakdown.grouped, breakdown.left_out) == ((), (("file", MAX_LABELS + 1),))
    with pytest.raises(InputError, match="file"):
        group_figures(scoring, [listed({id_: id_ for id_ in texts}, "file")], [("file", "file")])


@pytest.mark.parametrize(
    ("labels", "first", "expected"),
    [
        (("-8", "-26", "+3", "", "-38.5", "1e1"), (), ["-38.5", "-26", "-8", "+3", "1e1", ""]),
        (("quiet", "20 dB", "3 dB", "10 dB"), (), ["3 dB", "10 dB", "20 dB", "quiet"]),
        (("−5", "3", "-4"), (), ["−5", "-4", "3"]),
        (("room10", "Room2", "attic", "room2"), (), ["attic", "Room2", "room2", "room10"]),
        (("5 dB", "2 m", "1 dB"), (), ["1 dB", "2 m", "5 dB"]),
        (("Read", "Free", "x", "Other"), ("Read", "Free", "gone"), ["Read", "Free", "Other", "x"]),
        (("9" * 5000, "8"), (), ["8", "9" * 5000]),
        (("a" + "9" * 5000, "b", ""), (), ["a" + "9" * 5000, "b", ""]),
        ((), ("x",), []),
    ],
)
def test_labels_are_sorted_as_expected(labels: tuple[str, ...], first: tuple[str, ...], expected: list[str]) -> None:
    assert sorted_labels(labels, first) == expected


def test_two_systems_are_compared_within_each_value_on_what_both_have() -> None:
    first, two, groups = corpus(11, 600)
    breakdown: GroupFigures = group_figures(first, [groups])
    for partition in breakdown.partitions:
        values = compare_by_group(first, two, partition).values
        assert [label for label, _ in values] == list(partition.labels)
        (whole,) = compare([first, two])
        assert sum(pair.utterances for _, pair in values) == whole.utterances
        assert sum((pair.first_counts for _, pair in values), WordCounts()) == whole.first_counts
        assert sum((pair.second_counts for _, pair in values), WordCounts()) == whole.second_counts
        for _, pair in values:
            assert pair.difference is not None
            assert pair.difference == pytest.approx(pair.first_counts.wer - pair.second_counts.wer)  # type: ignore[operator]
            assert pair.interval is not None
            assert pair.interval[0] < pair.difference < pair.interval[1]


def test_a_single_group_compares_like_the_whole() -> None:
    first, two, groups = corpus(13)
    everything = listed(dict.fromkeys((*groups.ids, *first.ids), "all"))
    (partition,) = group_figures(first, [everything]).partitions
    ((_, pair),) = compare_by_group(first, two, partition).values
    assert pair == replace(compare([first, two])[0], tests=())
