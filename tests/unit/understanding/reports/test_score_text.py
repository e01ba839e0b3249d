"""The rows of results of intents and slots."""

from __future__ import annotations

from harness.model.understanding import Corpus, Utterance
from harness.understanding.comparison import compare
from harness.understanding.counts import Rule
from harness.understanding.reports.score_text import SystemReport, comparison_lines, group_table
from harness.understanding.scoring import count_system, score


def test_how_many_utterances_are_over_nothing_stands_beside_the_means() -> None:
    gold = Corpus("g", (Utterance("1", ("go",), ()), Utterance("2", ("go",), ("p",)), Utterance("3", ("go",), ())))
    predicted = Corpus("p", (Utterance("1", ("go",), ()), Utterance("2", ("go",), ()), Utterance("3", ("go",), ("p",))))
    report = SystemReport(count_system([score(gold, predicted, Rule())]))
    rows = {row.key: row for row in report.rows}
    for key in ("intent_accuracy", "precision_samples", "recall_samples", "f1_samples"):
        assert (rows[key].value, rows[key].counts) == (0.0, "mean over 3 utterances; 1 is 0/0"), key
    assert rows["emr"].counts == "1 of 3 utterances"
    right = SystemReport(count_system([score(gold, gold, Rule())]))
    assert {row.key: row for row in right.rows}["intent_accuracy"].counts == "mean over 3 utterances; 2 are 0/0"


def test_groups_compare_slots_as_the_whole_does() -> None:
    """In room a, every slot has a place, but in b, the words of a prediction differ, so SFA compares lists."""
    tagged = [Utterance(room, ("to", "nice"), ("p",), ("O", "B-city"), groups=(("room", room),)) for room in "ab"]
    predicted = (
        Utterance("a", ("to", "nice"), ("p",), ("B-city", "O")),
        Utterance("b", ("nice",), ("p",), ("B-city",)),
    )
    counts = count_system([score(Corpus("g", tuple(tagged)), Corpus("p", predicted), Rule())])
    report, (detail,) = SystemReport(counts), counts.details
    ((column, labels),) = detail.groups
    assert report.figures[0].slots.frames.value == 1.0
    assert [row["sfa"] for row in group_table(column, labels, detail, report).json()] == [1.0, 1.0]


def test_utterances_without_a_query_are_independent() -> None:
    queries = {"1": "time", "2": "time", "3": "", "4": ""}
    gold = Corpus(
        "g", tuple(Utterance(id_, intents=("p",), groups=(("query", query),)) for id_, query in queries.items())
    )
    counts = score(gold, gold, Rule()).totals.queries
    assert {query: sums.utterances for query, sums in counts.items()} == {"time": 2, "3": 1, "4": 1}


def test_differences_have_a_unit_and_a_direction() -> None:
    gold = Corpus("gold", tuple(Utterance(str(number), intents=("on",)) for number in range(4)))
    wrong = Corpus("wrong", tuple(Utterance(str(number), intents=("off",)) for number in range(4)))
    comparison = compare(score(gold, wrong, Rule()), score(gold, gold, Rule()))
    *_, unit = comparison_lines([comparison], 120)
    assert unit == (
        "difference    first minus second, in percentage points; higher is better, except for error rates (CER)"
    )
