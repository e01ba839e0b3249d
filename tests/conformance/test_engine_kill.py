"""An engine that is killed again and again at random moments of a run loses nothing and doubles nothing."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from harness.model.observation import StimulusEnded
from harness.model.record import (
    AttemptFinished,
    AttemptStarted,
    EndReason,
    EngineStarted,
    Entry,
    Observed,
    ResponseFrozen,
    SessionFinished,
    TrialFinished,
    TrialStarted,
)
from harness.model.trial import Outcome
from harness.session.engine.launch import start_engine
from harness.session.log.reader import check
from harness.session.take import ENGINE_ENDED
from tests.conformance.engine_runs import HERE, Runs, kill, play_out, rows, wait_for
from tests.written_sessions import plan_of, records

CONTEXT_WAIT_S = 4.0


def _run_with_kills(folder: Path, chance: random.Random, count: int) -> int:
    kills = 0
    while kills < count:
        place = start_engine(folder)
        if kills:
            time.sleep(chance.uniform(0.0, 0.8))  # any moment will do: that is what is tested
        else:
            wait_for(lambda place=place: _stopped_in_an_attempt(place.pid, folder))  # type: ignore[misc]
        if not place.alive:
            break
        kill(place)
        kills += 1
    play_out(folder)
    return kills


def _stopped_in_an_attempt(pid: int, folder: Path) -> bool:
    """Whether the engine stands still while an attempt is under way; if none is, it goes on."""
    os.kill(pid, signal.SIGSTOP)
    of_attempts = [entry.record for entry in rows(folder) if isinstance(entry.record, AttemptStarted | AttemptFinished)]
    if of_attempts and isinstance(of_attempts[-1], AttemptStarted):
        return True
    os.kill(pid, signal.SIGCONT)
    return False


@pytest.mark.parametrize(
    ("seed", "trials", "kills_wanted"),
    [(20, 18, 3), *(pytest.param(seed, 60, 20, marks=pytest.mark.soak) for seed in range(20, 36))],
)
def test_repeated_engine_kills_lose_and_double_nothing(runs: Runs, seed: int, trials: int, kills_wanted: int) -> None:
    """What a kill at any row does to counts, tests/nights checks; here the process, its files and its threads die."""
    scenario = runs.root / "sixty.yaml"
    sixty = (HERE / "sixty.yaml").read_text("utf-8")
    scenario.write_text(sixty.replace("repeat: 20", f"repeat: {trials // 3}"), encoding="utf-8")
    folder = runs.prepare(scenario)
    kills = _run_with_kills(folder, random.Random(seed), kills_wanted)
    assert kills == kills_wanted, "the run was over before it was killed often enough"
    entries = rows(folder)

    planned = list(plan_of(entries))
    assert len(planned) == trials

    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert check(folder).damage == ()
    runs_begun = [row.run for row in records(entries, EngineStarted)]
    assert runs_begun == list(range(1, len(runs_begun) + 1))
    assert [entry.run for entry in entries] == sorted(entry.run for entry in entries)

    finished = Counter(row.trial_id for row in records(entries, TrialFinished))
    assert finished == Counter(planned), "each trial is finished once"
    starts = Counter(row.trial_id for row in records(entries, TrialStarted))
    assert starts == Counter(planned)
    assert isinstance(entries[-1].record, SessionFinished)
    assert entries[-1].record.reason is EndReason.COMPLETED

    attempts = Counter(_attempt(entry) for entry in entries if isinstance(entry.record, AttemptStarted))
    assert set(attempts.values()) == {1}, "no attempt is numbered twice"
    verdicts = {_attempt(entry): entry.record for entry in entries if isinstance(entry.record, AttemptFinished)}
    assert set(attempts) <= set(verdicts), "every attempt that was begun has a verdict"

    _check_interrupted(entries, verdicts)
    _check_waits(entries)


def _attempt(entry: Entry) -> tuple[str, int, int]:
    record = entry.record
    assert isinstance(record, AttemptStarted | AttemptFinished | ResponseFrozen)
    return record.trial_id, record.take, record.attempt


def _check_interrupted(entries: list[Entry], verdicts: dict[tuple[str, int, int], AttemptFinished]) -> None:
    """An attempt that was under way when a run ended is told apart, and no other one is said to have been cut off.

    (Another cause may interrupt an attempt too: a late answer to the one before it, on a loaded machine.)
    """
    under_way: set[tuple[str, int, int]] = set()
    cut: set[tuple[str, int, int]] = set()
    run = 0
    for entry in entries:
        if entry.run != run:
            cut |= under_way
            under_way.clear()
            run = entry.run
        if isinstance(entry.record, AttemptStarted):
            under_way.add(_attempt(entry))
        elif isinstance(entry.record, AttemptFinished):
            under_way.discard(_attempt(entry))
    assert cut, "no kill hit an attempt: the test proves nothing"
    for key, verdict in verdicts.items():
        assert verdict.cause.startswith(ENGINE_ENDED) == (key in cut), (key, verdict)
        assert verdict.outcome is Outcome.INTERRUPTED or key not in cut, (key, verdict)
    for entry in entries:
        if isinstance(entry.record, TrialFinished) and entry.record.deciding_attempt is not None:
            assert (entry.record.trial_id, entry.record.take, entry.record.deciding_attempt) not in cut


def _check_waits(entries: list[Entry]) -> None:
    """Before a query is said again, and after a kill, the device is given the time to forget."""
    last_sound_s: float | None = None
    last_trial = ""
    last_run = 0
    for entry in entries:
        match entry.record:
            case AttemptStarted(trial_id=trial_id, take=take, attempt=attempt):
                same_trial = f"{trial_id}.{take}" == last_trial
                if last_sound_s is not None and (same_trial or entry.run != last_run):
                    # By the sound's own time: on a busy host its row may be written late.
                    waited_s = entry.at_s - last_sound_s
                    assert waited_s > CONTEXT_WAIT_S - 1.5, (trial_id, attempt, waited_s)
                last_trial, last_run, last_sound_s = f"{trial_id}.{take}", entry.run, entry.at_s
            case Observed(observation=StimulusEnded() as ended):
                last_sound_s = ended.at.at_s
            case _:
                pass
