"""Re-runs that are requested while a run waits for its last transcripts and clips."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.model.feed import Rerun
from harness.model.record import EndReason, ResponseFrozen, SessionFinished, TrialFinished
from harness.model.stimulus import Waveform
from tests.unit.session.house import house

pytestmark = pytest.mark.usefixtures("simulated_time")


def test_a_rerun_requested_while_the_last_transcript_is_awaited_is_played() -> None:
    reports: list[Callable[[str], None]] = []

    def transcribe(waveform: Waveform, report: Callable[[str], None]) -> None:
        reports.append(report)

    with house(1, transcribe=transcribe).running() as run:
        run.until(lambda: run.log.of(TrialFinished))
        assert run.ask(Rerun("r", "ann", run.trials[0].id)) == (True, "")
        reports[0]("words")
        run.until(lambda: len(run.log.of(ResponseFrozen)) == 2 or run.log.of(SessionFinished))
        for report in reports[1:]:
            report("words")
    assert [row.take for row in run.log.of(TrialFinished)] == [1, 2]
    assert run.reason is EndReason.COMPLETED
