"""A run whose disk is full stands still, says so, and loses nothing; real threads and a fast clock."""

from __future__ import annotations

import threading
from collections import deque

from harness.model.feed import Resume, StateWord, WriteNote
from harness.model.record import AttemptFinished, AttemptStarted, Paused, Resumed, TrialFinished
from harness.model.trial import Outcome
from tests.unit.session.house import assert_whole, house


def test_a_full_disk_interrupts_pauses_and_loses_nothing() -> None:
    full = threading.Event()
    with house(3, lambda: not full.is_set(), speed=10.0).running() as run:
        run.until(lambda: len(run.log.of(AttemptStarted)) == 1)
        full.set()
        run.until(lambda: run.saw(StateWord.PAUSED))
        assert run.ask(WriteNote("n1", "ann", "hello"))[0] is False
        full.clear()
        assert run.ask(Resume("r1", "ann")) == (True, "")
    assert_whole(run.log, run.trials)
    assert "disk_full" in [row.cause for row in run.log.of(AttemptFinished)]
    assert all(row.outcome is Outcome.RESPONDED for row in run.log.of(TrialFinished))
    assert run.log.of(Paused)[0].reason.startswith("disk full")


def test_what_had_to_wait_is_written_once_although_the_disk_is_full_again_at_once() -> None:
    full, rooms = threading.Event(), deque[bool]()
    with house(1, lambda: not full.is_set() and (not rooms or rooms.popleft()), speed=10.0).running() as run:
        run.until(lambda: len(run.log.of(AttemptStarted)) == 1)
        full.set()
        run.until(lambda: run.saw(StateWord.PAUSED))
        rooms.extend((True, False))  # there is room for what had to wait, and none to say that it had
        full.clear()
        for command in (Resume("r1", "ann"), Resume("r2", "bob")):
            run.conductor.inbox(command)
        run.until(lambda: len(run.answers) == 2)
    rows = [repr(entry.record) for entry in run.log.rows if not isinstance(entry.record, Paused | Resumed)]
    assert len(rows) == len(set(rows))
    assert not rooms
    assert_whole(run.log, run.trials)
