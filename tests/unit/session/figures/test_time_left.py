"""How long the rest of a session takes, by the trials that were played and the ambient sound that is left."""

from __future__ import annotations

import pytest

from harness.model.record import Paused, Resumed, TrialFinished, TrialStarted
from harness.model.scenario import TrialKind
from harness.model.trial import Outcome
from tests.unit.session.figures.rows import Rows, planned
from tests.unit.wake.wake_rows import wake_trial
from tests.written_sessions import progress_of


def test_time_left_leaves_pauses_out() -> None:
    rows = Rows.of(planned(1), planned(2), planned(3))
    rows.add(TrialStarted("time-1", 1))
    rows.add(Paused("", "ann"), 5)
    rows.add(Resumed("ann"), 600)
    rows.add(TrialFinished("time-1", 1, Outcome.RESPONDED, 1, None), 5)
    progress = progress_of(rows)
    assert progress.pace_s == pytest.approx(10)
    assert progress.eta_s == pytest.approx(20)


def test_time_left_knows_how_long_ambient_sound_is() -> None:
    wakes = [wake_trial(number) for number in (1, 2, 3)]
    soak = [wake_trial(number, TrialKind.AMBIENT, ambient_s=seconds) for number, seconds in ((4, 60.0), (5, 12.0))]
    rows = Rows.of(*wakes, *soak)
    for trial, took_s in ((wakes[0], 2.0), (wakes[1], 4.0), (soak[0], 30.0)):
        rows.add(TrialStarted(trial.id, 1))
        rows.add(TrialFinished(trial.id, 1, Outcome.COUNTED, 1, None), took_s)
        if trial is wakes[0]:
            assert progress_of(rows).eta_s == pytest.approx(2 + 2 + 60 + 12)
    assert progress_of(rows).eta_s == pytest.approx(3 + 6), "this device takes sound at twice its speed"
