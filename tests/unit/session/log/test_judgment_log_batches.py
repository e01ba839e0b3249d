"""Many judgments at once: all or none, each id once."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import LogError
from harness.model.record import JudgmentGiven
from harness.session.log.judgment_log import JudgmentLog, rating_rows
from tests.judged_sessions import answers, judged, store_session


def test_a_batch_is_written_once(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "s", answers(3))
    records = [JudgmentGiven(judged(f"q{number}-kitchen", "sha", "ann")) for number in (1, 2, 2, 3)]
    first, second = JudgmentLog(folder), JudgmentLog(folder)
    assert [entry.seq for entry in first.append_all(records)] == [1, 2, 2, 3]
    assert [entry.seq for entry in second.append_all([*records, JudgmentGiven(judged("q4", "sha", "ann"))])][-1] == 4
    assert len(rating_rows(folder)) == 4
    assert first.append_all([]) == []
    for log in (first, second):
        log.close()


def test_a_batch_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "s", answers(1))
    log = JudgmentLog(folder)
    right, wrong = judged("q1-kitchen", "sha", "ann"), judged("q1-kitchen", "sha", "bob", comment="\ud800")
    with pytest.raises((LogError, ValueError)):
        log.append_all([JudgmentGiven(right), JudgmentGiven(wrong)])
    assert rating_rows(folder) == ()
    assert log.append(JudgmentGiven(right)).seq == 1
    log.close()
