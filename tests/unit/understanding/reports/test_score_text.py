"""The rows of results of intents and slots."""

from __future__ import annotations

from harness.model.understanding import Corpus, Utterance
from harness.understanding.counts import Rule
from harness.understanding.reports.score_text import SystemReport
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
