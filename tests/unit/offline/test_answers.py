"""Outcomes on their way from a worker to its run."""

from __future__ import annotations

import pytest

from harness.model.offline import FileOutcome, ListKind, OfflineSpot, RejectReason
from harness.offline.journal_lines import outcome_line, outcome_of
from harness.offline.messages import FileAnswer, answers_of, answers_told

OUTCOMES = [
    FileOutcome(ListKind.OOV, 1, 100_001, 48000, 16000, (OfflineSpot("okay nabu", 0, 5, 0.1 + 0.2),), cpu_s=0.25),
    FileOutcome(ListKind.INV, 2, rejected=RejectReason.ERROR, error="it\nended\x85\u2028"),
    FileOutcome(ListKind.INV, 3, rejected=RejectReason.RATE, detail="48000 Hz"),
]


def test_what_a_run_counts_is_told_beside_the_journals_lines() -> None:
    found = answers_of(answers_told([FileAnswer.of(one, "a\r\x0b\n.wav") for one in OUTCOMES]))
    for answer, outcome in zip(found, OUTCOMES, strict=True):
        assert answer.line == outcome_line(outcome, "a\r\x0b\n.wav")
        assert outcome_of(answer.line).outcome == outcome
        assert (answer.seconds, answer.rejected, answer.error) == (
            outcome.seconds,
            outcome.rejected,
            bool(outcome.error),
        )


def test_what_has_changed_on_its_way_is_no_answer() -> None:
    told = answers_told([FileAnswer.of(one, "a.wav") for one in OUTCOMES])
    head = told.index(b"\n") + 1
    assert len(answers_of(told)) == 3
    for damaged in (
        told.replace(b'"samples":100001', b'"samples":100003'),
        told[:head],
        told[head:],
        told[:-10],
        told + outcome_line(OUTCOMES[0], "a.wav"),
        told + b'{"k":"inv","n":7,"file":"a"}\n',
        b"5\n" + told[head:],
        b"[5,6,7]\n" + told[head:],
        b"",
    ):
        with pytest.raises(ValueError):
            answers_of(damaged)
