"""Live against offline from rows: tables, cells, ambient events, delays, and what may explain a difference."""

from collections.abc import Mapping, Sequence

import pytest

from harness.model.offline import OfflineSpot
from harness.model.record import EventReviewed, ReviewWord
from harness.model.scenario import TrialKind
from harness.model.trial import Outcome
from harness.offline.figures.session_comparison import DeviceComparison, HeardOffline, compare_device
from harness.statistics.significance import Discordance
from tests.unit.wake.wake_rows import WakeRows, wake_trial

RATE_HZ = 16_000
DEVICE = "kitchen"


def heard(*ends_s: float, score: float | None = None, peak: float | None = None) -> HeardOffline:
    spots = tuple(OfflineSpot("alexa", 0, round(end_s * RATE_HZ), score) for end_s in ends_s)
    return HeardOffline(spots, RATE_HZ, peak)


def compared(
    rows: WakeRows,
    offline: Mapping[str, HeardOffline],
    *,
    notes: Mapping[str, Sequence[str]] | None = None,
    threshold: float | None = None,
) -> DeviceComparison:
    return compare_device(
        rows.figures,
        DEVICE,
        offline,
        clips={"sha-wake-2": "00002.flac"},
        notes=notes or {},
        why_not={"p9": "its recording is gone"},
        threshold=threshold,
    )


def session(injected: bool = True) -> WakeRows:
    """Five wake trials: live wakes in the first three; quiet ones are the last two."""
    rows = WakeRows()
    trials = [
        wake_trial(number, injected=injected, conditions=(("level", "loud" if number < 4 else "quiet"),))
        for number in range(1, 6)
    ]
    rows.plan(*trials)
    for number, trial in enumerate(trials, 1):
        rows.play(trial, [(DEVICE, 1.75)] if number < 4 else [])
    return rows


def test_the_table_counts_each_trial_once_on_both_sides() -> None:
    offline = {"p1": heard(1.7), "p2": heard(), "p3": heard(1.7), "p4": heard(1.7), "p5": heard()}
    found = compared(session(), offline)
    assert found.counts(TrialKind.WAKE) == Discordance(2, 1, 1, 1)
    assert [one.trial_id for one in found.trials if one.differs] == ["wake-2", "wake-4"]
    assert dict(found.conditions) == {"level=loud": Discordance(2, 1, 0, 0), "level=quiet": Discordance(0, 0, 1, 1)}
    difference = found.difference(TrialKind.WAKE)
    assert difference is not None
    assert difference.value == 0
    assert found.trials[1].clip == "00002.flac"
    assert found.difference(TrialKind.COMMAND) is None


def test_delays_are_set_against_each_other_where_both_woke() -> None:
    offline = {f"p{number}": heard(1.6 + 0.01 * number) for number in range(1, 6)}
    found = compared(session(), offline)
    assert found.delay_differences.total == found.live_delays.total == 3
    assert found.live_delays.p50 is not None
    assert found.live_delays.p50.value_s == pytest.approx(0.15)
    assert found.delay_differences.p50 is not None
    assert found.delay_differences.p50.value_s == pytest.approx(0.13)


def test_a_spot_outside_of_the_window_is_no_hit_and_is_told() -> None:
    late = compared(session(), {"p1": heard(3.0), "p2": heard(0.2), "p3": heard(1.7)}, threshold=0.5)
    assert late.counts(TrialKind.WAKE) == Discordance(1, 2, 0, 0)
    first, second = late.trials[:2]
    assert first.notes == ("offline an event lies +1.40 s from the phrase's end, outside its window",)
    assert second.notes == ("offline an event lies -1.40 s from the phrase's end, outside its window",)
    assert (first.offline.extra, late.trials[2].offline.extra) == (1, 0)


def test_margins_to_the_threshold_and_the_logs_own_notes() -> None:
    offline = {"p1": heard(peak=0.42), "p4": heard(1.7, score=0.91)}
    found = compared(
        session(), offline, notes={"wake-1": ["an attempt before was interrupted (link_lost)"]}, threshold=0.5
    )
    missed, woke = found.trials
    assert missed.offline.score == 0.42
    assert missed.notes == (
        "an attempt before was interrupted (link_lost)",
        "offline it scored 0.420, 0.080 below the threshold",
    )
    assert woke.notes == ("offline it scored 0.910, 0.410 above the threshold",)


def test_what_was_not_heard_is_left_out_with_its_reason() -> None:
    found = compared(session(), {"p1": heard(1.7)})
    assert len(found.trials) == 1
    assert [trial for trial, _ in found.left_out] == ["wake-2", "wake-3", "wake-4", "wake-5"]


def test_ambient_events_are_paired_within_a_second() -> None:
    rows = WakeRows()
    trial = wake_trial(1, TrialKind.AMBIENT)
    rows.plan(trial)
    rows.play(trial, [(DEVICE, 10.0), (DEVICE, 30.0)])
    found = compared(rows, {"p1": heard(10.4, 31.2, 50.0)}).ambient
    assert found.segments == 1
    assert found.counts == Discordance(1, 1, 2)
    assert (found.live_s, found.offline_s) == (pytest.approx(60.0), pytest.approx(60.0))
    assert [(one.live, one.offline) for one in found.events] == [
        (True, True), (True, False), (False, True), (False, True),
    ]  # fmt: skip


def test_a_phrase_that_is_in_the_recording_counts_on_neither_side() -> None:
    rows = WakeRows()
    trial = wake_trial(1, TrialKind.AMBIENT)
    rows.plan(trial)
    seqs = rows.play(trial, [(DEVICE, 10.0), (DEVICE, 30.0)])
    rows.add(EventReviewed(seqs[0], ReviewWord.STIMULUS_FAULT, "ann"))
    assert compared(rows, {"p1": heard(10.4, 30.1)}).ambient.counts == Discordance(1, 0, 0)


def test_one_offline_event_is_no_two_live_ones() -> None:
    rows = WakeRows()
    trial = wake_trial(1, TrialKind.AMBIENT)
    rows.plan(trial)
    rows.play(trial, [(DEVICE, 10.0), (DEVICE, 12.1)])
    assert compared(rows, {"p1": heard(11.0)}).ambient.counts == Discordance(1, 1, 0)


def test_an_interrupted_take_is_on_neither_side() -> None:
    rows = WakeRows()
    trial = wake_trial(1)
    rows.plan(trial)
    rows.play(trial, [(DEVICE, 1.7)], outcome=Outcome.INTERRUPTED, finish=False)
    rows.play(trial, [], attempt=2)
    found = compared(rows, {"p1": heard(1.7), "p2": heard(1.7)})
    assert found.counts(TrialKind.WAKE) == Discordance(0, 0, 1, 0)


def test_an_event_of_the_sound_before_takes_a_spot_with_it_as_live() -> None:
    """With one state over all stimuli, a spot within the refractory time of the one before is the same event."""
    rows = session()
    near = HeardOffline((OfflineSpot("alexa", 0, round(0.3 * RATE_HZ)),), RATE_HZ, before_s=-0.5)
    fresh = HeardOffline((OfflineSpot("alexa", 0, round(0.3 * RATE_HZ)),), RATE_HZ)
    assert compared(rows, {"p1": near}).trials[0].offline.extra == 0
    assert compared(rows, {"p1": fresh}).trials[0].offline.extra == 1


@pytest.mark.parametrize("injected", [True, False])
def test_it_knows_which_way_the_sound_went(injected: bool) -> None:
    rows = session(injected)
    found = compared(rows, {"p1": heard(1.7)})
    assert found.through_air is not injected
    assert found.counts(TrialKind.WAKE).both == 1
