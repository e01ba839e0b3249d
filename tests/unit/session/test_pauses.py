"""Pauses on faults: each with its reason, retried as the bench says, and never a count of a trial in the fault.

Also how a run ends that is closed when nothing is left to play.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.base import threads
from harness.devices.in_process.device import InProcessOptions
from harness.model.bench import AfterRetries, OnFault
from harness.model.errors import DeviceError
from harness.model.feed import Abort, Rerun, Resume, Skip, StateWord
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EndReason,
    FaultMet,
    NoteWritten,
    Paused,
    RerunAsked,
    Resumed,
    SessionFinished,
    TrialFinished,
)
from harness.model.scenario import RepromptRule, TrialKind, TrialTemplate
from harness.model.stimulus import Waveform
from harness.model.trial import Outcome
from harness.session.pauses import ON_FAULT_BY
from harness.session.plan import plan
from tests.unit.session.house import House, house
from tests.unit.session.material import TELLS, MemoryLog, bench, probe, scenario

pytestmark = pytest.mark.usefixtures("simulated_time")

POLICY = OnFault(retry_after_s=20.0, retries=3)
PATIENT = OnFault(retry_after_s=20.0, retries=10_000)


def last_outcomes(log: MemoryLog) -> dict[str, Outcome]:
    return {row.trial_id: row.outcome for row in log.of(TrialFinished)}


def pauses_of(run: House) -> list[Paused]:
    return [row for row in run.log.of(Paused) if row.by == ON_FAULT_BY]


def pull_the_plug(run: House, play: int, until: int = 0) -> None:
    """The loudspeaker is lost at its n-th sound, and at each later one up to `until`."""
    sounds, plays = run.speaker.play, [0]

    def lost(play_id: str, waveform: Waveform) -> None:
        plays[0] += 1
        if play <= plays[0] <= max(play, until):
            run.speaker.lose_link("the plug is pulled")
        sounds(play_id, waveform)

    run.speaker.play = lost  # type: ignore[method-assign]


def test_a_lost_device_pauses_the_run_until_it_is_back_and_its_trial_is_played_again() -> None:
    run = house(3, on_fault=PATIENT)
    pull_the_plug(run, 2)
    with run.running():
        run.until(lambda: any(row.text.startswith("retry 1 of 10000") for row in run.log.of(NoteWritten)))
        run.speaker.mend_link()
    assert run.reason is EndReason.COMPLETED
    (paused,) = pauses_of(run)
    assert "link lost: speaker did not come back" in paused.reason
    assert paused.reason.endswith("; the harness tries again every 20 s")
    assert run.log.of(Resumed) == [Resumed("on_fault: speaker is back")]
    assert any("the plug is pulled" in row.text for row in run.log.of(NoteWritten))
    assert list(last_outcomes(run.log).values()) == [Outcome.RESPONDED] * 3
    (rerun,) = run.log.of(RerunAsked)
    takes = {(row.trial_id, row.take): row.outcome for row in run.log.of(TrialFinished)}
    assert takes[rerun.trial_id, 1] is Outcome.INTERRUPTED
    assert takes[rerun.trial_id, rerun.take] is Outcome.RESPONDED


def test_without_a_device_the_run_ends_after_the_last_retry_and_its_trial_is_left_to_play() -> None:
    run = house(3, on_fault=POLICY)
    pull_the_plug(run, 2)
    run.played()
    assert run.reason is EndReason.STOPPED
    (fault,) = [row for row in run.log.of(FaultMet) if row.source == ON_FAULT_BY]
    assert fault.what.startswith("retry 3 of 3: speaker is still lost (the plug is pulled)")
    (rerun,) = run.log.of(RerunAsked)
    assert (rerun.trial_id, rerun.take) in run.conductor._run.resumption.pending()
    assert list(last_outcomes(run.log).values()).count(Outcome.RESPONDED) >= 1


def test_a_trial_that_makes_its_device_fail_is_not_retried_forever() -> None:
    run = house(1, on_fault=OnFault(20.0, 2), speed=100.0)
    pull_the_plug(run, 1, until=100)
    with run.running():
        for number in (1, 2):
            run.until(lambda number=number: len(pauses_of(run)) == number)
            run.speaker.mend_link()
    assert run.reason is EndReason.STOPPED
    assert run.log.of(Resumed) == [Resumed("on_fault: speaker is back")] * 2
    assert [row.outcome for row in run.log.of(TrialFinished)] == [Outcome.INTERRUPTED] * 3


def refuse(run: House, plays: int) -> None:
    """The loudspeaker refuses its next sounds."""
    play, left = run.speaker.play, [plays]

    def refused(play_id: str, waveform: Waveform) -> None:
        if left[0]:
            left[0] -= 1
            raise DeviceError("the sound server is busy")
        play(play_id, waveform)

    run.speaker.play = refused  # type: ignore[method-assign]


def test_a_fault_without_a_lost_link_is_tried_again_after_a_while() -> None:
    run = house(3, on_fault=POLICY, speed=100.0)
    refuse(run, 14)  # 5 interruptions are allowed: the first two trials end with their 6th
    run.played()
    assert run.reason is EndReason.COMPLETED
    assert [row.reason.split(": ")[1] for row in pauses_of(run)] == ["too many interruptions"] * 2
    assert run.log.of(Resumed) == [Resumed(f"on_fault: retry {number} of 3") for number in (1, 2)]
    assert set(last_outcomes(run.log).values()) == {Outcome.RESPONDED}


def test_a_trial_that_always_fails_is_left_interrupted_and_the_others_go_on() -> None:
    run = house(2, on_fault=OnFault(5.0, 1, AfterRetries.SKIP), speed=200.0)
    refuse(run, 1000)
    run.played()
    assert run.reason is EndReason.COMPLETED
    assert set(last_outcomes(run.log).values()) == {Outcome.INTERRUPTED}
    assert len(pauses_of(run)) == 1
    assert any("no retry is left" in row.text for row in run.log.of(NoteWritten))


def test_a_prime_is_retried_as_often_as_other_trials() -> None:
    trials = plan(probe(2.0, rule=RepromptRule(max_interruptions=0)), bench(TELLS))
    run = house(trials=trials, profile=TELLS, on_fault=POLICY, speed=100.0)
    refuse(run, 2)
    run.played()
    assert [(row.trial_id, row.outcome) for row in run.log.of(TrialFinished)] == [
        (trials[0].id, Outcome.INTERRUPTED),
        (trials[0].id, Outcome.INTERRUPTED),
        (trials[0].id, Outcome.RESPONDED),
        (trials[1].id, Outcome.RESPONDED),
    ]


def test_a_trial_that_a_fault_ended_is_played_again_although_the_run_was_killed_before_its_verdict() -> None:
    run = house(1, on_fault=POLICY, speed=100.0)
    refuse(run, 6)
    with run.running():
        run.until(lambda: len(run.log.of(AttemptFinished)) == 6)
        run.conductor.stop()
    assert run.log.of(TrialFinished) == []
    resumed = house(1, on_fault=POLICY, log=run.log, clock=run.clock).played()
    assert [row.outcome for row in resumed.log.of(TrialFinished)] == [Outcome.INTERRUPTED, Outcome.RESPONDED]


def test_a_person_may_repeat_a_trial_that_a_sequential_test_no_longer_needs() -> None:
    template = TrialTemplate("wake", "", 2, kind=TrialKind.WAKE)
    lingering = threads.event()
    trials = plan(replace(scenario(1), trials=(template,)), bench())
    run = house(
        trials=trials,
        linger=lambda: not lingering.is_set(),
        why_needless=lambda trial: "decided" if run.log.of(TrialFinished) else "",
    )
    with run.running():
        run.until(lambda: run.saw(StateWord.FINISHED))
        for trial in trials:
            assert run.ask(Rerun(f"r{trial.id}", "ann", trial.id)) == (True, "")
        run.until(lambda: len(run.log.of(TrialFinished)) == 4)
        lingering.set()
    outcomes = [(row.trial_id, row.outcome) for row in run.log.of(TrialFinished)]
    counted, skipped = (trials[0].id, Outcome.COUNTED), (trials[1].id, Outcome.SKIPPED)
    assert outcomes == [counted, skipped, counted, skipped]


def test_a_disk_with_too_little_room_pauses_the_run_before_a_trial() -> None:
    short = ["disk: 0.4 GB are free, and the bench requires 1 GB"]
    run = house(2, disk_space_problem=lambda: short[0])
    with run.running():
        run.until(lambda: run.saw(StateWord.PAUSED))
        assert run.log.of(AttemptStarted) == []
        short[0] = ""
    (paused,) = run.log.of(Paused)
    assert (paused.reason, paused.by) == ("disk: 0.4 GB are free, and the bench requires 1 GB", "min_free_gb")
    assert run.log.of(Resumed) == [Resumed("min_free_gb: there is enough disk space again")]
    assert set(last_outcomes(run.log).values()) == {Outcome.RESPONDED}


def test_a_room_that_is_too_loud_pauses_the_run_before_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    run, floor = house(2, max_noise_floor_dbfs=-60.0), [-41.0]
    monkeypatch.setattr(run.mic, "noise_floor_dbfs", lambda: floor[0])
    with run.running():
        run.until(lambda: run.saw(StateWord.PAUSED))
        assert run.log.of(AttemptStarted) == []
        floor[0] = -60.0
    (paused,) = run.log.of(Paused)
    assert paused.by == "max_noise_floor_dbfs"
    assert paused.reason == "noise: the noise floor is -41 dBFS, and the bench allows at most -60 dBFS"
    assert run.log.of(Resumed) == [Resumed("max_noise_floor_dbfs: it is quiet again")]
    assert set(last_outcomes(run.log).values()) == {Outcome.RESPONDED}


def test_the_operator_may_play_a_trial_in_the_room_that_is_left() -> None:
    run = house(2, disk_space_problem=lambda: "disk: full")
    with run.running():
        for number in (1, 2):
            run.until(lambda number=number: len(run.log.of(Paused)) == number)
            assert run.ask(Resume(str(number), "ann")) == (True, "")
    assert run.reason is EndReason.COMPLETED
    assert len(run.log.of(TrialFinished)) == 2


def test_the_operator_may_resume_before_the_time() -> None:
    run = house(2, on_fault=OnFault(36_000.0, 3))
    refuse(run, 6)
    with run.running():
        run.until(lambda: pauses_of(run))
        assert run.ask(Resume("r", "ann")) == (True, "")
    assert run.log.of(Resumed) == [Resumed("ann")]
    assert set(last_outcomes(run.log).values()) == {Outcome.RESPONDED}


@pytest.mark.parametrize("closing", ["abort", "stop"])
def test_a_session_that_is_closed_after_its_last_trial_is_complete(closing: str) -> None:
    with house(1, linger=lambda: True).running() as run:
        run.until(lambda: run.saw(StateWord.FINISHED))
        if closing == "abort":
            run.conductor.enqueue(Abort("a", "ann"))
        else:
            run.conductor.stop()
    assert [row.reason for row in run.log.of(SessionFinished)] == [EndReason.COMPLETED]


@pytest.mark.parametrize("stopped", [False, True])
def test_a_wait_for_a_late_answer_that_is_cut_short_begins_anew(stopped: bool) -> None:
    silent = InProcessOptions(silent_share=1.0)
    with house(2, speed=5.0, options=silent).running() as run:
        run.until(lambda: run.states and run.states[-1].reason == "for a late answer")
        if stopped:
            run.conductor.stop()
        else:
            assert run.ask(Skip("s", "ann", "no need to wait")) == (True, "")
    if stopped:
        run = House(run.trials, run.log, run.clock, options=silent).played()
    ends_s = next(entry.at_s for entry in run.log.rows if isinstance(entry.record, TrialFinished))
    begins_s = next(
        entry.at_s for entry in run.log.rows if isinstance(entry.record, AttemptStarted) and entry.at_s >= ends_s
    )
    assert begins_s - ends_s >= RepromptRule().context_wait_s
    assert {row.outcome for row in run.log.of(TrialFinished)} == {Outcome.NO_RESPONSE}
