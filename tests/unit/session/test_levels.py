"""Levels that are heard as asked count; others are repeated, and never count."""

from __future__ import annotations

import pytest

from harness.model.calibration import Calibration
from harness.model.record import AttemptFinished, LevelMeasured, TrialFinished
from harness.model.stimulus import Channel, SpokenText, StimulusRecipe, VoiceSpec
from harness.model.trial import Outcome
from harness.session.levels import LevelRule, requested_dbfs
from tests.unit.session.house import assert_whole, house

pytestmark = pytest.mark.usefixtures("simulated_time")

EAR = Calibration("", "", "mic", "", 100.0, "A", "the device", "2026-11-24", "2126-11-24", 130.0)


def rule(loudspeaker_spl: float, tolerance_db: float | None) -> LevelRule:
    """In a room without loss, a loudspeaker of 100 dB at full scale is calibrated right."""
    mouth = Calibration("", "", "speaker", "", loudspeaker_spl, "A", "the device", "2026-11-24", "2126-11-24", 130.0)
    return LevelRule(EAR, {"speaker": mouth}, tolerance_db)


@pytest.mark.parametrize(("loudspeaker_spl", "tolerance_db"), [(100.0, 1.0), (104.0, None)])
def test_levels_within_the_tolerance_count_and_any_without_one(
    loudspeaker_spl: float, tolerance_db: float | None
) -> None:
    run = house(2, levels=rule(loudspeaker_spl, tolerance_db)).played()
    assert_whole(run.log, run.trials)
    levels = run.log.of(LevelMeasured)
    assert len(levels) >= 2
    assert [row.off_db for row in levels] == pytest.approx([100.0 - loudspeaker_spl] * len(levels), abs=0.1)
    assert all(row.outcome is Outcome.RESPONDED for row in run.log.of(TrialFinished))


def test_a_level_that_is_off_is_repeated_and_never_counts() -> None:
    run = house(1, levels=rule(104.0, 1.0)).played()
    (finished,) = run.log.of(TrialFinished)
    attempts = run.log.of(AttemptFinished)
    assert finished.outcome is Outcome.INTERRUPTED
    assert len(attempts) > 1
    assert len(run.log.of(LevelMeasured)) == len(attempts)
    assert {row.outcome for row in attempts} == {Outcome.INTERRUPTED}
    assert all(row.cause.startswith("level_off: speaker gave") for row in attempts)


@pytest.mark.parametrize(
    ("channel", "level_dbfs"), [(Channel(), -30.0), (Channel(gain_db=6.0), None), (Channel(codec="gsm"), None)]
)
def test_a_level_that_the_channel_changes_is_measured(channel: Channel, level_dbfs: float | None) -> None:
    recipe = StimulusRecipe(SpokenText("hi"), None, VoiceSpec(), level_dbfs=-30.0, channel=channel)
    assert requested_dbfs(recipe) == level_dbfs
