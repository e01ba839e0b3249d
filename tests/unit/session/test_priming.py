"""Memory pairs in a run: what is waited, what parts a pair, and what happens then; real threads and a fast clock."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from harness.base.clocks import HostClock, ScaledClock
from harness.devices.in_process.driver import InProcessOptions
from harness.model.feed import Rerun, Skip, StateWord
from harness.model.observation import LinkBack, LinkLost, SpeechEnded, SpeechStarted
from harness.model.record import (
    AttemptStarted,
    EndReason,
    Observed,
    RerunAsked,
    ResponseTranscribed,
    TrialFinished,
    TrialStarted,
)
from harness.model.time import Stamp
from harness.model.trial import Outcome
from harness.session.figures.memory import MemoryFigures, MemoryPoint, findings
from harness.session.plan import plan
from harness.session.query_trial import TrialMachine
from harness.session.take import Action
from tests.unit.session.house import House
from tests.unit.session.material import TIMING, MemoryLog, bench
from tests.unit.session.memory_material import TELLS, probe

SPEED = 6.0
LATE_S = 1.8
"""How much longer than planned a wait may be here: 0.3 real seconds, for a machine that is busy."""


def house(*waits_s: float, repeat: int = 1, log: MemoryLog | None = None, **changes: Any) -> House:
    clock = ScaledClock(changes.pop("speed", SPEED), HostClock()) if log is None else changes.pop("clock")
    options = changes.pop("options", InProcessOptions(memory_s=5.0))
    return House(
        plan(probe(*waits_s, repeat=repeat), bench(TELLS)), log or MemoryLog(clock), clock, profile=TELLS,
        options=options, **changes,
    )  # fmt: skip


def points(run: House) -> tuple[MemoryPoint, ...]:
    return MemoryFigures.of(run.log.rows, run.trials).points()


def starts(run: House, trial_id: str) -> list[AttemptStarted]:
    return [row for row in run.log.of(AttemptStarted) if row.trial_id == trial_id]


def outcomes(run: House) -> dict[tuple[str, int], Outcome]:
    return {(row.trial_id, row.take): row.outcome for row in run.log.of(TrialFinished)}


def last_speech_before(run: House, started: AttemptStarted) -> tuple[float, float]:
    """The end of the last speech before an attempt's row, and the moment of that row."""
    at = next(n for n, entry in enumerate(run.log.rows) if entry.record == started)
    ends = [
        entry.record.observation.at.at_s
        for entry in run.log.rows[:at]
        if isinstance(entry.record, Observed) and isinstance(entry.record.observation, SpeechEnded)
    ]
    return ends[-1], run.log.rows[at].at_s


def test_the_follow_up_begins_after_its_wait_and_the_device_remembers_for_as_long_as_it_does() -> None:
    slow: list[threading.Timer] = []

    def transcribe(waveform: object, told: Any) -> None:  # not of primes, which it would delay
        slow.append(threading.Timer(0.2, told, ("words",)))
        slow[-1].start()

    with house(1.0, 6.0, transcribe=transcribe).running() as run:
        pass
    assert run.reason is EndReason.COMPLETED
    found = points(run)
    assert {point.planned_s: point.shown for point in found} == {1.0: True, 6.0: False}
    for point in found:
        (started,) = starts(run, point.trial.id)
        assert point.waited_s == started.waited_s
        assert point.planned_s <= point.waited_s <= point.planned_s + LATE_S
        speech_s, begun_s = last_speech_before(run, started)
        assert begun_s - speech_s == pytest.approx(point.waited_s, abs=LATE_S)
    assert {row.trial_id for row in run.log.of(ResponseTranscribed)} == {point.trial.id for point in found}
    for trial in run.trials[2::2]:  # primes but the first
        assert (starts(run, trial.id)[0].waited_s or 0.0) >= 3.0


def test_without_an_answer_to_the_prime_there_is_no_follow_up() -> None:
    with house(1.0, 2.0, options=InProcessOptions(silent_share=1.0, memory_s=5.0), speed=40.0).running() as run:
        pass
    assert [(row.outcome, row.cause) for row in run.log.of(TrialFinished) if not row.trial_id.endswith("prime")] == [
        (Outcome.SKIPPED, f"not_primed: {trial.id} ended as no_response") for trial in run.trials[::2]
    ]
    assert {point.shown for point in points(run)} == {None}


def test_a_pair_that_an_end_of_the_engine_parted_is_primed_again() -> None:
    with house(2.0, 2.2, speed=6.0).running() as run:
        prime, follow_up = run.trials[0].id, run.trials[1].id
        run.until(lambda: (prime, 1) in outcomes(run))
        run.conductor.stop()
    assert run.reason is EndReason.STOPPED
    assert not starts(run, follow_up)
    with house(2.0, 2.2, log=run.log, clock=run.clock).running() as again:
        pass
    assert again.reason is EndReason.COMPLETED
    assert len(again.log.of(RerunAsked)) == 1
    assert outcomes(again)[(prime, 2)] is Outcome.RESPONDED
    order = [(row.trial_id, row.take) for row in again.log.of(TrialFinished)]
    assert order[:3] == [(prime, 1), (prime, 2), (follow_up, 1)]
    for point in points(again):
        assert point.shown is True
        assert point.waited_s is not None
        assert point.planned_s <= point.waited_s <= point.planned_s + LATE_S


def test_a_follow_up_that_was_cut_off_is_primed_again_before_its_next_attempt() -> None:
    with house(2.0, 2.2, speed=6.0).running() as run:
        prime, follow_up = run.trials[0].id, run.trials[1].id
        run.until(lambda: starts(run, follow_up))
        run.conductor.stop()
    # As a kill leaves it: the attempt was begun, and no row says how it ended.
    cut = next(n for n, entry in enumerate(run.log.rows) if entry.record == starts(run, follow_up)[0])
    del run.log.rows[cut + 1 :]
    with house(2.0, 2.2, log=run.log, clock=run.clock).running() as again:
        pass
    assert outcomes(again)[(prime, 2)] is Outcome.RESPONDED
    first, second = starts(again, follow_up)
    assert (first.attempt, second.attempt) == (1, 2)
    point = next(point for point in points(again) if point.trial.id == follow_up)
    assert point.waited_s == second.waited_s
    assert second.waited_s == pytest.approx(point.planned_s, abs=LATE_S)
    assert point.shown is True


def test_a_rerun_of_a_follow_up_says_its_prime_again() -> None:
    lingering = threading.Event()
    with house(1.0, 2.0, linger=lambda: not lingering.is_set()).running() as run:
        run.until(lambda: run.saw(StateWord.FINISHED))
        prime, follow_up = run.trials[0].id, run.trials[1].id
        assert run.ask(Rerun("r", "ann", follow_up)) == (True, "")
        run.until(lambda: (follow_up, 2) in outcomes(run))
        lingering.set()
    assert [(row.trial_id, row.take, row.by) for row in run.log.of(RerunAsked)] == [
        (follow_up, 2, "ann"),
        (prime, 2, "the memory probe"),
    ]
    assert [(row.trial_id, row.take) for row in run.log.of(TrialStarted)][-2:] == [(prime, 2), (follow_up, 2)]


def test_a_prime_that_was_skipped_by_hand_leaves_nothing_to_ask() -> None:
    with house(1.0, 2.0, speed=6.0).running() as run:
        run.until(lambda: run.saw(StateWord.PLAYING))
        assert run.ask(Skip("s", "ann", "wrong one")) == (True, "")
    follow_up = run.trials[1].id
    assert outcomes(run)[(follow_up, 1)] is Outcome.SKIPPED
    assert outcomes(run)[(run.trials[3].id, 1)] is Outcome.RESPONDED


def follow_up() -> TrialMachine:
    """The one of two seconds, as a machine without I/O."""
    trial = next(trial for trial in plan(probe(2.0, 9.0), bench(TELLS)) if trial.id == "memory.w2.r1")
    return TrialMachine(trial, 1, TIMING)


def begun(actions: list[Action]) -> list[AttemptStarted]:
    return [action for action in actions if isinstance(action, AttemptStarted)]


def test_a_device_that_speaks_again_begins_the_wait_anew() -> None:
    machine = follow_up()
    assert not begun(machine.begin(11.0, not_before_s=12.0, last_sound_s=10.0))
    assert machine.deadline_s == 12.0
    machine.feed(SpeechStarted("mic", Stamp(11.5), -30.0), 11.6)
    assert not begun(machine.tick(12.5))
    machine.feed(SpeechEnded("mic", Stamp(13.0)), 13.1)
    assert not begun(machine.tick(14.9))
    (row,) = begun(machine.tick(15.0))
    assert row.waited_s == pytest.approx(2.0)


def test_a_follow_up_that_was_interrupted_is_not_said_again() -> None:
    machine = follow_up()
    machine.begin(11.0, not_before_s=12.0, last_sound_s=10.0)
    assert len(begun(machine.tick(12.0))) == 1
    machine.feed(LinkLost("speaker", Stamp(12.5), "unplugged"), 12.5)
    actions = machine.feed(LinkBack("speaker", Stamp(20.0)), 20.0)
    for at_s in range(21, 60):
        actions += machine.tick(float(at_s))
    assert not begun(actions)
    (ended,) = [action for action in actions if isinstance(action, TrialFinished)]
    assert (ended.outcome, ended.attempts) == (Outcome.INTERRUPTED, 1)
    assert machine.finished


def test_a_session_finds_the_memory_of_a_device_that_forgets_by_chance_within_its_interval() -> None:
    options = InProcessOptions(memory_s=5.0, memory_spread=0.3)
    with house(1.5, 3.0, 6.0, 12.0, repeat=3, options=options, speed=30.0).running() as run:
        pass
    (found,) = findings(points(run))
    assert found.counted >= 9
    assert found.to_wake is not None
    low, high = found.to_wake.interval
    assert low <= 5.0
    assert high is not None
    assert high >= 5.0
    assert found.forgotten is not None
    assert found.forgotten.wait_s >= 4.0
