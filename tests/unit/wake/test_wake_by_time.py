"""Times decide what counts: not when a report arrives, and not what an earlier run of the engine saw."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model.observation import (
    DeviceState,
    LinkLost,
    ListeningProved,
    Proof,
    Status,
    StimulusHeard,
    StimulusStarted,
    Wake,
)
from harness.model.record import AttemptFinished, AttemptStarted, EngineStarted, ReviewVerdict
from harness.model.scenario import TrialKind, WakeSettings
from harness.model.time import Stamp
from harness.model.trial import EvidenceSource, Outcome, Recognition, Trial
from tests.known import known
from tests.unit.wake.wake_rows import PHRASE, WAKE_DURATION_S, WakeRows, rows_of, wake_trial

AMBIENT = TrialKind.AMBIENT
LINK = "kitchen_link"


def injected(trial: Trial, took_s: float, *reports: Wake) -> WakeRows:
    """A stimulus sent over a wire in took_s, and the reports of its device meanwhile."""
    rows = rows_of(trial, at_s=0.0)
    rows.begin(trial, 0.0, (*PHRASE, WAKE_DURATION_S), sound=(LINK, "p1", 0.0))
    for report in reports:
        rows.see(report, trial)
    rows.end(trial, took_s, sound=(LINK, "p1", WAKE_DURATION_S))
    return rows


def test_an_event_without_a_sample_is_placed_when_the_speed_of_the_sound_is_known() -> None:
    slow = injected(wake_trial(1), 2 * WAKE_DURATION_S, Wake(LINK, Stamp(2 * 1.8), "alexa"))
    assert slow.device().hits == 1
    by_clock, by_sample = Wake(LINK, Stamp(0.25 * 1.8), "alexa"), Wake(LINK, Stamp(0.1), "alexa", audio_s=0.3)
    fast = injected(wake_trial(1), 0.25 * WAKE_DURATION_S, by_clock, by_sample)
    assert (fast.device().hits, fast.device().in_vocabulary_events) == (1, 1)


def test_a_window_may_open_before_the_sound() -> None:
    trial = wake_trial(1, injected=False)
    rows = rows_of(trial, at_s=10.0)
    rows.begin(trial, 10.0, (0.0, 0.6, 2.1))
    rows.see(Wake(LINK, Stamp(9.95)), trial)
    rows.end(trial, 12.1)
    assert rows.device().hits == 1


def test_event_before_the_detected_sound_start_is_outside_it() -> None:
    trial = wake_trial(1, AMBIENT, injected=False)
    rows = rows_of(trial)
    for at_s in (9.0, 20.0):
        rows.see(ListeningProved(LINK, Stamp(at_s), Proof.HEARTBEAT))
    rows.begin(trial, 10.0, (0.0, 10.0, 10.0))
    rows.see(Wake(LINK, Stamp(10.1)), trial)
    rows.see(StimulusHeard("mic", Stamp(10.3), "p1", 0.9), trial)
    rows.end(trial, 20.0)
    assert (rows.device().false_accepts.count, rows.device().ambient_events_outside) == (0, 1)


def test_events_that_the_found_start_moves_to_the_sound_before_count_once() -> None:
    trials = wake_trial(1, AMBIENT, injected=False), wake_trial(2, AMBIENT, injected=False)
    rows = rows_of(*trials, at_s=10.0)
    for at_s in range(9, 140, 5):
        rows.see(ListeningProved(LINK, Stamp(float(at_s)), Proof.HEARTBEAT))
    for number, (trial, from_s) in enumerate(zip(trials, (10.0, 70.0), strict=True), 1):
        rows.begin(trial, from_s, (0.0, 60.0, 60.0), sound=("speaker", f"p{number}", None))
        if number == 2:
            rows.see(Wake(LINK, Stamp(from_s + 0.08)), trial)
            rows.see(Wake(LINK, Stamp(from_s + 0.33)), trial)
        rows.end(trial, from_s + 60.0, sound=("speaker", f"p{number}", 60.0))
    rows.see(StimulusHeard("mic", Stamp(70.49), "p2", 0.9), trials[1])
    device = rows.device()
    assert (device.false_accepts.count, device.suppressed) == (1, 1)
    assert rows.figures.unaccounted() == {}


@pytest.mark.parametrize("late", [False, True])
def test_an_event_is_part_of_one_of_the_stimulus_before_whenever_that_is_reported(late: bool) -> None:
    first, cut, second = (wake_trial(number, AMBIENT) for number in (1, 2, 3))
    rows = rows_of(first, cut, second)
    rows.play(first, [] if late else [("kitchen", 59.9)])
    rows.play(cut, duration_s=0.5, outcome=Outcome.INTERRUPTED)
    rows.play(second, [("kitchen", 0.7)])
    if late:
        rows.see(Wake(LINK, Stamp(60.4), "alexa", audio_s=59.9))
    assert (rows.device().false_accepts.count, rows.device().suppressed) == (1, 1)


def restarted(rows: WakeRows) -> None:
    """The host was switched off and on: its clock begins again."""
    rows.at_s = 1.0
    rows.add(EngineStarted(2, 4242, "another boot", 1.0))


def test_a_self_wake_stays_one_when_a_later_run_looks_at_its_trial_again() -> None:
    trial = wake_trial(1, AMBIENT, injected=False, settings=WakeSettings(proof_within_s=100))
    rows = rows_of(trial, at_s=10.0)
    rows.add(EngineStarted(1, 1, "boot", 1.0))
    rows.see(ListeningProved(LINK, Stamp(10.0), Proof.HEARTBEAT))
    rows.see(Status(LINK, Stamp(15.0), DeviceState.SPEAKING))
    rows.see(Status(LINK, Stamp(20.0), DeviceState.IDLE))
    rows.play(trial, [("kitchen", 6.0), ("kitchen", 40.0)])
    rows.add(EngineStarted(2, 2, "boot", 1.0))
    rows.see(Wake(LINK, Stamp(51.0), "alexa", 0.9))  # part of the second event
    assert rows.device().suppressed == 1
    assert dict(rows.device().events) == {ReviewVerdict.SELF_WAKE: 1, None: 1}
    assert rows.device().false_accepts.count == 1


def test_proofs_count_after_a_restart_of_the_host() -> None:
    first, second = (
        wake_trial(number, AMBIENT, injected=False, settings=WakeSettings(proof_within_s=100.0)) for number in (1, 2)
    )
    rows = rows_of(first, second, at_s=500.0)
    for trial in (first, second):
        rows.see(ListeningProved(LINK, Stamp(rows.at_s), Proof.HEARTBEAT))
        rows.play(trial)
        if trial is first:
            restarted(rows)
    assert rows.device().exposure_s == pytest.approx(120.0)


def test_proofs_of_before_a_restart_of_the_host_prove_nothing_after_it() -> None:
    first, second = (
        wake_trial(number, AMBIENT, injected=False, settings=WakeSettings(proof_within_s=100.0)) for number in (1, 2)
    )
    rows = rows_of(first, second)
    rows.see(ListeningProved(LINK, Stamp(0.0), Proof.HEARTBEAT))
    rows.play(first)
    restarted(rows)
    rows.play(second, proof=False)
    assert (rows.device().exposure_s, rows.device().unproven_s) == (60.0, 60.0)


def test_speech_start_from_a_killed_run_explains_nothing() -> None:
    trial = wake_trial(1, AMBIENT, injected=False, settings=WakeSettings(proof_within_s=100.0))
    rows = rows_of(trial)
    rows.see(Status(LINK, Stamp(1.0), DeviceState.SPEAKING))
    restarted(rows)
    rows.see(ListeningProved(LINK, Stamp(rows.at_s), Proof.HEARTBEAT))
    rows.play(trial, [("kitchen", 30.0)])
    assert rows.device().false_accepts.count == 1


def test_phrase_reported_after_link_loss_proves_only_earlier_time() -> None:
    def probing(number: int, kind: TrialKind) -> Trial:
        trial = wake_trial(number, kind, injected=False)
        return replace(trial, listening=replace(known(trial.listening), probe_every_s=120.0))

    probes = [probing(number, TrialKind.PROBE) for number in (1, 3, 5)]
    segments = [probing(number, AMBIENT) for number in (2, 4)]
    rows = rows_of(*probes, *segments)
    rows.play(probes[0], [("kitchen", 1.9)], proof=False)
    rows.play(segments[0], proof=False)
    rows.play(probes[1], proof=False)
    heard_s = rows.at_s - WAKE_DURATION_S + 1.9
    rows.see(LinkLost(LINK, Stamp(rows.at_s), "unplugged"))
    rows.see(Wake(LINK, Stamp(heard_s)))
    rows.play(segments[1], proof=False)
    rows.play(probes[2], [("kitchen", 1.9)], proof=False)
    assert (rows.device().exposure_s, rows.device().unproven_s) == (60.0, 60.0)


def test_a_link_whose_loss_is_reported_late_has_proved_no_less_or_more() -> None:
    for late in (False, True):
        trial = wake_trial(1, AMBIENT, injected=False, settings=WakeSettings(proof_within_s=15.0))
        rows = rows_of(trial, at_s=0.0)
        rows.begin(trial, 0.0, (0.0, 40.0, 40.0))
        loss = LinkLost(LINK, Stamp(15.0), "unplugged")
        for at_s in (0.0, 10.0, 20.0, 30.0, 40.0):
            if not late and at_s == 20.0:
                rows.see(loss)
            rows.see(ListeningProved(LINK, Stamp(at_s), Proof.HEARTBEAT))
        rows.end(trial, 40.0)
        if late:
            rows.see(loss)
        assert (rows.device().exposure_s, rows.device().unproven_s) == (30.0, 10.0)


@pytest.mark.parametrize("start_first", [True, False])
def test_an_event_may_be_reported_before_the_sound_that_it_is_in(start_first: bool) -> None:
    trial = wake_trial(1, injected=False)
    rows = rows_of(trial, at_s=10.0)
    rows.add(AttemptStarted(trial.id, 1, 1, "p1", "sha", *PHRASE, WAKE_DURATION_S, None))
    observations = [StimulusStarted("speaker", Stamp(10.0), "p1"), Wake(LINK, Stamp(10.02))]
    for observation in observations if start_first else reversed(observations):
        rows.see(observation, trial)
    rows.end(trial, 14.0)
    assert (rows.device().in_vocabulary_events, rows.device().ambient_events_outside) == (1, 0)


def test_an_event_in_a_sound_of_which_only_the_microphone_knows_is_kept() -> None:
    trial = wake_trial(1, injected=False)
    rows = rows_of(trial, at_s=10.0)
    rows.add(AttemptStarted(trial.id, 1, 1, "p1", "sha", *PHRASE, WAKE_DURATION_S, None))
    rows.add(AttemptFinished(trial.id, 1, 1, Outcome.INTERRUPTED, Recognition.NOT_ASSESSED, EvidenceSource.NONE))
    rows.see(Wake(LINK, Stamp(10.5)))
    rows.see(StimulusHeard("mic", Stamp(10.0), "p1", 0.9))
    assert rows.device().ambient_events_outside == 1
