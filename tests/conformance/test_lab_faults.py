"""Faults in the lab, with real sound and the real assistant: each trial is finished once, whatever dies meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.base.places import lab_state
from harness.lab.lab import ASSISTANT, BROKER, SOUND, Lab
from harness.model.feed import StateWord
from harness.model.observation import LinkBack, LinkLost
from harness.model.record import Entry, Observed, ResponseFrozen
from harness.model.trial import Outcome
from tests.conformance.engine_runs import Watcher, kill, rows, wait_for
from tests.conformance.lab_runs import LabRuns, last_rows, starts, verdicts
from tests.written_sessions import records

pytestmark = [pytest.mark.sound, pytest.mark.speech, pytest.mark.usefixtures("host_keeps_time")]

TRIAL = "time.r1"
NOTICED_S = 1.0
CONTEXT_WAIT_S = 2.0
ENGINE_STARTS_S = 60.0  # a busy host takes long to load one
LINKS = {"near", "microphone", "monitor"}


@pytest.fixture
def runs(lab: Lab, tmp_path: Path) -> Iterator[LabRuns]:
    lab.up()  # what the test before may have left dead
    lab_runs = LabRuns(tmp_path, lab)
    yield lab_runs
    lab_runs.close()


def strike(part: str, number: signal.Signals) -> float:
    """When the part of the lab was struck."""
    os.kill(dict(lab_state().pids)[part], number)
    return time.monotonic()


def assert_whole(folder: Path) -> list[Entry]:
    """One verdict; every attempt started once, ended, and numbered without gaps; clips whole. Returns the log."""
    entries = rows(folder)
    (verdict,) = verdicts(entries)
    numbers = [row.attempt for _, row in starts(entries, TRIAL)]
    ended = last_rows(entries, TRIAL)
    assert numbers == list(range(1, verdict.attempts + 1)) == sorted(ended)
    # Whether the assistant understood is its affair; that it was asked until it was decided is ours.
    assert verdict.outcome not in (Outcome.INTERRUPTED, Outcome.SKIPPED, Outcome.ABORTED)
    assert verdict.deciding_attempt is not None
    assert ended[verdict.deciding_attempt].outcome is verdict.outcome
    shown = subprocess.run(
        [sys.executable, "-c", "from harness.cli import main; main()", "show", str(folder), "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (shown.returncode, "whole" in shown.stdout) == (0, True), shown.stdout + shown.stderr
    return entries


def lost_and_back(entries: list[Entry]) -> tuple[set[str], set[str]]:
    observations = [row.observation for row in records(entries, Observed)]
    return {observation.source for observation in observations if isinstance(observation, LinkLost)}, {
        observation.source for observation in observations if isinstance(observation, LinkBack)
    }


def interrupted(watcher: Watcher, struck_s: float, within_s: float = NOTICED_S) -> None:
    assert watcher.wait(StateWord.INTERRUPTED, struck_s, 10.0) - struck_s < within_s


@pytest.mark.parametrize(
    "words",
    [
        (StateWord.PLAYING, StateWord.LISTENING),
        pytest.param(
            (StateWord.PLAYING, StateWord.LISTENING, StateWord.RESPONSE, StateWord.WAITING), marks=pytest.mark.soak
        ),
    ],
    ids=["two", "four"],
)
def test_killed_engine_is_resumed_from_any_state(runs: LabRuns, words: tuple[StateWord, ...]) -> None:
    folder = runs.prepare()
    killed_wall_s = []
    for word in words:
        watcher = runs.start(folder)
        watcher.wait(word, within_s=ENGINE_STARTS_S)
        kill(watcher.place)
        killed_wall_s.append(time.time())
        wait_for(lambda watcher=watcher: bool(watcher.closed), event="the end of the feed")
        assert "harness run resume" in watcher.closed[0]
    last = runs.start(folder)
    assert last.goodbye(ENGINE_STARTS_S).exit_code == 0
    entries = assert_whole(folder)
    causes = [row.cause.partition(":")[0] for row in last_rows(entries, TRIAL).values()]
    assert "engine_ended" in causes  # PLAYING for certain; a busy host may learn of LISTENING when it is over
    assert len({entry.run for entry in entries}) == len(words) + 2  # the plan, each engine, and the last
    starts_s = [at_s for at_s, _ in starts(entries, TRIAL)]
    for killed_s in killed_wall_s[:2]:
        assert min(at_s for at_s in starts_s if at_s > killed_s) - killed_s > CONTEXT_WAIT_S - 0.5


def test_a_sound_server_that_freezes_and_dies_comes_back_under_the_run(runs: LabRuns) -> None:
    folder = runs.prepare()
    watcher = runs.start(folder)
    watcher.wait(StateWord.PLAYING, within_s=ENGINE_STARTS_S)
    struck_s = strike(SOUND, signal.SIGSTOP)
    try:
        interrupted(watcher, struck_s)
    finally:
        thawed_s = strike(SOUND, signal.SIGCONT)
    watcher.wait(StateWord.PLAYING, thawed_s)
    struck_s = strike(SOUND, signal.SIGKILL)
    interrupted(watcher, struck_s)
    assert runs.lab.up()
    assert runs.lab.started == (SOUND,)
    assert watcher.goodbye().exit_code == 0
    entries = assert_whole(folder)
    assert lost_and_back(entries) == (LINKS, LINKS)
    ended = last_rows(entries, TRIAL)
    assert [ended[number].outcome for number in (1, 2)] == [Outcome.INTERRUPTED] * 2
    assert all(ended[number].cause.startswith("link_lost") for number in (1, 2))


@pytest.mark.soak
def test_sound_server_freeze_during_a_response_keeps_no_partial_response(runs: LabRuns) -> None:
    folder = runs.prepare()
    watcher = runs.start(folder)
    watcher.wait(StateWord.RESPONSE, within_s=ENGINE_STARTS_S)
    heard = len(starts(rows(folder), TRIAL))
    struck_s = strike(SOUND, signal.SIGSTOP)
    try:
        interrupted(watcher, struck_s)
    finally:
        strike(SOUND, signal.SIGCONT)
    assert watcher.goodbye().exit_code == 0
    entries = assert_whole(folder)
    assert last_rows(entries, TRIAL)[heard].outcome is Outcome.INTERRUPTED
    assert heard not in [row.record.attempt for row in entries if isinstance(row.record, ResponseFrozen)]


def test_a_broker_and_a_device_that_die_come_back_under_the_run(runs: LabRuns) -> None:
    folder = runs.prepare()
    watcher = runs.start(folder)
    watcher.wait(StateWord.LISTENING, within_s=ENGINE_STARTS_S)
    struck_s = strike(BROKER, signal.SIGKILL)
    interrupted(watcher, struck_s)
    assert runs.lab.up()
    assert runs.lab.started == (BROKER,)
    watcher.wait(StateWord.LISTENING, struck_s)
    strike(ASSISTANT, signal.SIGKILL)
    assert runs.lab.up()
    assert runs.lab.started == (ASSISTANT,)
    assert watcher.goodbye().exit_code == 0
    entries = assert_whole(folder)
    assert lost_and_back(entries) == ({"assistant"}, {"assistant"})
    ended = last_rows(entries, TRIAL)
    assert ended[1].cause.startswith("link_lost: assistant")
    assert ended[2].cause.partition(":")[0] in ("device_gone", "device_restarted")
