"""Dead devices: doubted after misses in a row, asked by what they reacted to before, never counted as bad ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.base import threads
from harness.devices.in_process.driver import InProcessOptions
from harness.model.feed import Pause, Resume, StateWord
from harness.model.observation import (
    DeviceState,
    ListeningProved,
    LogLine,
    Observation,
    Proof,
    SpeechStarted,
    Status,
    StimulusStarted,
    Wake,
)
from harness.model.record import (
    AttemptStarted,
    EndReason,
    EngineStarted,
    FaultMet,
    NoteWritten,
    Paused,
    RerunAsked,
    Resumed,
    TrialFinished,
)
from harness.model.scenario import TrialKind, TrialTemplate
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.model.trial import LIFE_CHECK, LIFE_CHECK_BY, Outcome, Trial
from harness.session.liveness import Liveness
from harness.session.plan import plan
from tests.known import known
from tests.unit.session.house import House, house
from tests.unit.session.listening_material import BY_AIR, listening_trial
from tests.unit.session.material import bench, scenario, trial

pytestmark = pytest.mark.usefixtures("simulated_time")

AT = Stamp(1.0)
WOKE = Wake("dut_link", AT, "alexa")


def lived(*takes: tuple[Observation, ...], outcome: Outcome = Outcome.NO_WAKE) -> tuple[Liveness, Trial]:
    """Takes of one trial after another, each with what was seen in it."""
    only_trial = trial()
    life = Liveness([only_trial])
    for number, observations in enumerate(takes, start=1):
        life.begin_attempt()
        for observation in observations:
            life.observe(observation)
        result = Outcome.RESPONDED if WOKE in observations else outcome
        life.finish_take(only_trial, TrialFinished(only_trial.id, number, result, 1, 1))
    return life, only_trial


def test_so_many_takes_in_a_row_without_a_sign_make_a_device_doubtful() -> None:
    life, trial = lived((WOKE,), (), (), ())
    assert life.doubtful(4) == ()
    assert life.doubtful(3) == (trial.device,)
    assert life.silent(trial.device) == ((trial.id, 2), (trial.id, 3), (trial.id, 4))


@pytest.mark.parametrize(
    ("sign", "alive"),
    [
        (ListeningProved("dut_link", AT, Proof.HEARTBEAT), True),
        (Status("dut_link", AT, DeviceState.IDLE), True),
        (Status("dut_link", AT, DeviceState.GONE), False),
        (Status("dut_link", AT, DeviceState.STARTED), False),
        (ListeningProved("another", AT, Proof.HEARTBEAT), False),
        (LogLine("dut_link", AT, "tick"), False),
        (SpeechStarted("mic", AT, -30.0), False),
    ],
)
def test_signs_of_life_clear_a_doubtful_device(sign: Observation, alive: bool) -> None:
    life, _ = lived((WOKE,), (), (sign,), ())
    assert bool(life.doubtful(3)) is not alive


def test_a_sign_after_a_restart_proves_nothing_before_it() -> None:
    life, trial = lived((WOKE,), (), ())
    life.observe(Status("dut_link", AT, DeviceState.STARTED))
    life.observe(ListeningProved("dut_link", AT, Proof.HEARTBEAT))
    assert life.doubtful(3) == (trial.device,)
    assert (life.silent(trial.device), life.unproven(trial.device)) == ((), ((trial.id, 2), (trial.id, 3)))
    life.add(RerunAsked(trial.id, 4, LIFE_CHECK_BY), 10.0)
    assert life.doubtful(1) == ()


@pytest.mark.parametrize("reports", [1, 2])
def test_a_restart_within_a_take_leaves_it_unproven_however_often_it_is_reported(reports: int) -> None:
    started = Status("dut_link", Stamp(5.0), DeviceState.STARTED)
    life, trial = lived((WOKE,), (), (started, beat(6.0), *[started] * (reports - 1)))
    assert life.unproven(trial.device) == ((trial.id, 2), (trial.id, 3))
    assert life.restarts(trial.device) == 1
    life.observe(beat(7.0))
    assert life.unproven(trial.device) == ((trial.id, 2), (trial.id, 3))


def beat(at_s: float) -> ListeningProved:
    return ListeningProved("dut_link", Stamp(at_s), Proof.HEARTBEAT)


@pytest.mark.parametrize(("next_s", "proved"), [(18.0, True), (30.0, False)])
def test_a_heartbeat_after_too_long_a_silence_proves_nothing(next_s: float, proved: bool) -> None:
    life, trial = lived((WOKE,), (beat(4.0),), ())
    life.observe(beat(next_s))
    assert life.unproven(trial.device) == (() if proved else ((trial.id, 3),))
    assert bool(life.doubtful(3)) is not proved


@pytest.mark.parametrize(("last_s", "proved"), [(18.0, True), (30.0, False)])
def test_only_what_was_seen_before_a_kill_says_that_heartbeats_stopped(last_s: float, proved: bool) -> None:
    life, trial = lived((WOKE,), (beat(4.0),), ())
    life.add(NoteWritten("still there", "person"), last_s)
    life.add(EngineStarted(2, 1, "boot", 1.0), last_s + 1)
    life.observe(beat(100.0))
    assert life.unproven(trial.device) == (() if proved else ((trial.id, 3),))


@pytest.mark.parametrize(("next_s", "proved"), [(114.0, True), (130.0, False)])
def test_a_device_that_stood_still_since_before_the_run_heard_nothing(next_s: float, proved: bool) -> None:
    life, trial = lived((WOKE,), (beat(4.0),))
    life.add(EngineStarted(2, 1, "boot", 1.0), 10.0)
    life.add(AttemptStarted(trial.id, 3, 1, "p", "c", 1.0, 2.0, 2.5, None), 10.0)
    life.observe(StimulusStarted("speaker", Stamp(100.0), "p"))
    life.add(TrialFinished(trial.id, 3, Outcome.NO_WAKE, 1, 1), 10.0)
    life.observe(beat(next_s))
    assert life.unproven(trial.device) == (() if proved else ((trial.id, 3),))


@pytest.mark.parametrize(("start_s", "proved"), [(10.0, True), (30.0, False)])
def test_a_sign_within_a_take_that_ends_too_long_a_silence_proves_no_miss(start_s: float, proved: bool) -> None:
    life, trial = lived((WOKE,), (beat(4.0),))
    life.add(AttemptStarted(trial.id, 3, 1, "p", "c", 1.0, 2.0, 2.5, None), 10.0)
    life.observe(StimulusStarted("speaker", Stamp(start_s), "p"))
    life.observe(beat(start_s + 2.5))
    life.observe(beat(start_s + 10.5))
    life.add(TrialFinished(trial.id, 3, Outcome.NO_WAKE, 1, 1), 10.0)
    assert life.unproven(trial.device) == (() if proved else ((trial.id, 3),))


@pytest.mark.parametrize(("at_s", "silent"), [(11.9, True), (12.1, False)])
def test_a_sign_from_before_the_end_of_the_phrase_proves_no_miss(at_s: float, silent: bool) -> None:
    life, trial = lived((WOKE,))
    life.add(AttemptStarted(trial.id, 2, 1, "p", "c", 1.0, 2.0, 2.5, None), 10.0)
    life.observe(StimulusStarted("speaker", Stamp(10.0), "p"))
    life.observe(beat(at_s))
    life.add(TrialFinished(trial.id, 2, Outcome.NO_WAKE, 1, 1), 10.0)
    assert bool(life.silent(trial.device)) is silent


@pytest.mark.parametrize(("boot", "at_s", "silent"), [("a", 11.9, True), ("a", 12.1, False), ("b", 0.1, False)])
def test_a_sign_reported_after_a_take_proves_it_only_if_it_is_from_then(boot: str, at_s: float, silent: bool) -> None:
    life, trial = lived((WOKE,))
    life.add(EngineStarted(1, 1, "a", 1.0), 10.0)
    life.add(AttemptStarted(trial.id, 2, 1, "p", "c", 1.0, 2.0, 2.5, None), 10.0)
    life.observe(StimulusStarted("speaker", Stamp(10.0), "p"))
    life.add(TrialFinished(trial.id, 2, Outcome.NO_WAKE, 1, 1), 10.0)
    life.begin_attempt()
    if boot != "a":  # the host's clock begins anew
        life.add(EngineStarted(2, 1, boot, 1.0), 10.0)
    life.observe(beat(at_s))
    assert bool(life.silent(trial.device)) is silent


@pytest.mark.parametrize(("at_s", "silent"), [(9.9, True), (10.9, False)])
def test_a_late_report_of_the_trial_before_is_no_reaction(at_s: float, silent: bool) -> None:
    life, trial = lived((WOKE,))
    life.add(AttemptStarted(trial.id, 2, 1, "p", "c", 1.0, 2.0, 2.5, None), 10.0)
    life.observe(StimulusStarted("speaker", Stamp(10.0), "p"))
    life.observe(Wake("dut_link", Stamp(at_s), "alexa"))
    life.add(TrialFinished(trial.id, 2, Outcome.NO_WAKE, 1, 1), 10.0)
    assert bool(life.silent(trial.device)) is silent


@pytest.mark.parametrize(("at_s", "silent"), [(10.9, True), (11.1, False)])
def test_an_event_before_its_phrase_is_no_reaction_to_a_wake_trial(at_s: float, silent: bool) -> None:
    called = listening_trial(BY_AIR)
    life = Liveness([called])
    life.add(AttemptStarted(called.id, 1, 1, "p", "c", 1.0, 2.0, 2.5, None), 10.0)
    life.observe(StimulusStarted(BY_AIR.player, Stamp(10.0), "p"))
    life.observe(Wake(BY_AIR.connection, Stamp(at_s), "alexa"))
    life.add(TrialFinished(called.id, 1, Outcome.COUNTED, 1, 1), 10.0)
    assert bool(life.silent(BY_AIR.device)) is silent


def test_takes_before_a_restart_are_played_again() -> None:
    with house(4, life_check_after=3).running() as run:
        kill_after(run, 1)
        run.until(lambda: len(run.log.of(TrialFinished)) >= 3)
        now_s = run.clock.now_s()
        run.conductor.enqueue(Status("dut_link", Stamp(now_s), DeviceState.STARTED))
        run.conductor.enqueue(ListeningProved("dut_link", Stamp(now_s), Proof.HEARTBEAT))
        revive(run)
    assert run.reason is EndReason.COMPLETED
    assert any("and then it restarted: not proven" in row.what for row in run.log.of(FaultMet))
    last = {name: outcome for name, _, outcome in finished(run)}
    assert set(last.values()) == {Outcome.RESPONDED}


def test_a_resumed_run_knows_what_the_device_reacted_to() -> None:
    """The last trial is missed, after a kill: as without one, a life check shows that the device lives."""
    with house(2, life_check_after=3).running() as run:
        run.until(lambda: len(run.log.of(TrialFinished)) == 1)
        run.conductor.stop()
    resumed = House(run.trials, run.log, run.clock, life_check_after=3)
    play = resumed.speaker.play

    def missed(play_id: str, waveform: Waveform) -> None:
        heard = np.float32(play_id.startswith(LIFE_CHECK))
        play(play_id, Waveform(waveform.samples * heard, waveform.rate_hz))

    resumed.speaker.play = missed  # type: ignore[method-assign]
    resumed.played()
    assert resumed.reason is EndReason.COMPLETED
    assert [outcome for _, _, outcome in finished(resumed)] == [Outcome.RESPONDED, Outcome.NO_WAKE]
    assert any("responds, so the 1 trial that it missed" in row.text for row in run.log.of(NoteWritten))


def test_life_check_repeats_the_last_sound_that_caused_a_reaction() -> None:
    heard = ListeningProved("dut_link", AT, Proof.HEARTBEAT)
    assert lived((heard,), ())[0].life_check("dut", 1) is None
    life, trial = lived((WOKE,), ())
    check = known(life.life_check(trial.device, 7))
    assert check.listening is not None
    assert (check.id, check.recipe, check.players) == (f"{LIFE_CHECK}.7", trial.recipe, (trial.loudspeaker,))


def test_an_answer_by_voice_is_the_sign_of_a_black_box() -> None:
    box = replace(trial(), connection="")
    life = Liveness([box])
    life.begin_attempt()
    life.finish_take(box, TrialFinished(box.id, 1, Outcome.RESPONDED, 1, 1))
    life.begin_attempt()
    life.finish_take(box, TrialFinished(box.id, 2, Outcome.NO_RESPONSE, 3, 3))
    life.device_under_check = box.device
    assert life.doubtful(1)
    life.observe(SpeechStarted("mic", AT, -30.0))
    assert not life.doubtful(1)


def finished(run: House) -> list[tuple[str, int, Outcome]]:
    rows = run.log.of(TrialFinished)
    return [(row.trial_id, row.take, row.outcome) for row in rows if not row.trial_id.startswith(LIFE_CHECK)]


def kill_after(run: House, trials: int) -> None:
    """The device reacts to nothing from then on: what reaches it is silence."""
    play = run.speaker.play

    def silence(play_id: str, waveform: Waveform) -> None:
        play(play_id, Waveform(waveform.samples * np.float32(0), waveform.rate_hz))

    run.until(lambda: len(run.log.of(TrialFinished)) >= trials)
    run.speaker.play = silence  # type: ignore[method-assign]


def revive(run: House) -> None:
    del run.speaker.play  # type: ignore[method-assign]


def test_a_killed_assistant_pauses_the_run_and_its_trials_are_played_again_when_it_is_back() -> None:
    with house(7, life_check_after=2, attended=lambda: True).running() as run:
        kill_after(run, 3)
        run.until(lambda: run.log.of(Paused))
        assert "no sign of life" in run.log.of(Paused)[0].reason
        assert run.saw(StateWord.PAUSED)
        not_proven = [entry for entry in finished(run) if entry[2] is Outcome.INTERRUPTED]
        silent = [entry for entry in finished(run) if entry[2] in (Outcome.NO_WAKE, Outcome.NO_RESPONSE)]
        assert 2 <= len(silent) == len(not_proven)
        assert {entry[0] for entry in silent} == {entry[0] for entry in not_proven}
        checks = {row.trial_id for row in run.log.of(AttemptStarted) if row.trial_id.startswith(LIFE_CHECK)}
        assert len(checks) == 1, "what it had woken to was said again before anything was said of it"
        revive(run)
        assert run.ask(Resume("c", "somebody")) == (True, "")
    assert run.reason is EndReason.COMPLETED
    last = {name: outcome for name, _, outcome in finished(run)}
    assert set(last.values()) == {Outcome.RESPONDED}
    assert len(last) == 7


def test_a_deaf_moment_of_a_living_device_counts_as_it_is() -> None:
    options = InProcessOptions(wake_miss_share=0.4)
    run = house(8, options=options, life_check_after=1).played()
    assert run.reason is EndReason.COMPLETED
    assert run.log.of(Paused) == []


def test_unattended_run_resumes_when_the_device_is_back() -> None:
    with house(6, life_check_after=2, speed=100.0).running() as run:
        kill_after(run, 1)
        run.until(lambda: run.log.of(Paused))
        revive(run)
    assert run.reason is EndReason.COMPLETED
    assert [row.by for row in run.log.of(Resumed)] == ["the life check: dut is back"]
    last = {name: outcome for name, _, outcome in finished(run)}
    assert set(last.values()) == {Outcome.RESPONDED}


def test_unattended_run_stops_when_the_device_stays_dead() -> None:
    with house(3, life_check_after=2, speed=400.0).running() as run:
        kill_after(run, 1)
    assert run.reason is EndReason.STOPPED
    assert any("no operator is present" in row.what for row in run.log.of(FaultMet))
    assert run.log.of(Resumed) == []
    assert any("repeating what" in row.text for row in run.log.of(NoteWritten))


def test_a_sign_of_life_does_not_end_the_pause_of_a_person() -> None:
    template = TrialTemplate("wake", "", 2, kind=TrialKind.WAKE)
    trials = plan(replace(scenario(1), trials=(template,)), bench())
    with house(trials=trials, life_check_after=1).running() as run:
        kill_after(run, 0)
        run.until(lambda: run.saw(StateWord.PLAYING))
        assert run.ask(Pause("p1", "ann", "at the device")) == (True, "")
        run.until(lambda: finished(run) and run.states[-1].word is StateWord.PAUSED)
        run.conductor.enqueue(beat(run.clock.now_s()))
        threads.sleep(60.0)
        assert run.log.of(Resumed) == []
        revive(run)
        assert run.ask(Resume("p2", "ann")) == (True, "")
    assert run.log.of(Paused) == [Paused("at the device", "ann")]
    assert finished(run) == [(trial.id, 1, Outcome.COUNTED) for trial in trials]


def test_run_finishes_only_after_its_last_trials_are_proven() -> None:
    lingering = threads.event()
    attended = lambda: not lingering.is_set()  # noqa: E731
    with house(3, life_check_after=3, attended=attended, linger=attended).running() as run:
        kill_after(run, 2)
        run.until(lambda: run.log.of(Paused))
        assert not run.saw(StateWord.FINISHED), "nobody was told that all is done"
        (fault,) = run.log.of(FaultMet)
        assert "and no reaction to the repeated sound" in fault.what
        revive(run)
        assert run.ask(Resume("c", "somebody")) == (True, "")
        run.until(lambda: run.saw(StateWord.FINISHED))
        before = finished(run)
        lingering.set()
    assert finished(run) == before
    assert {name: outcome for name, _, outcome in before} == dict.fromkeys(
        [trial.id for trial in run.trials], Outcome.RESPONDED
    )
    assert run.reason is EndReason.COMPLETED


def test_a_device_that_never_reacted_is_not_said_to_have_missed_a_repeated_sound() -> None:
    with house(2, life_check_after=2, speed=400.0).running() as run:
        kill_after(run, 0)
    assert all("and it has reacted to no sound that could be repeated" in row.what for row in run.log.of(FaultMet)[:-1])
