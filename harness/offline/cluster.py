"""An evaluation's files through the workers of a Dask cluster, into one journal here.

The same contract as `run.run`. Tasks of about an hour of sound go out, a few more at a time than are worked on; a
worker that is killed costs what it was at, which is played elsewhere.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import numpy as np

from harness import __version__
from harness.engines.offline_loading import engine_class
from harness.model.errors import EngineError, InputError
from harness.model.offline import Evaluation, FileOutcome, ListedFile, RejectReason, SettingKind
from harness.offline import cluster_worker
from harness.offline.cluster_link import TICK_S, ClusterLink, ClusterWorkers, Failed, Killed, TaskAnswered
from harness.offline.cluster_worker import ClusterOrder, likeness, probes_of, shortly
from harness.offline.journal import Journal
from harness.offline.journal_lines import JournalMark, outcome_line, outcome_of
from harness.offline.messages import files_told
from harness.offline.pool import WorkerLimits
from harness.offline.run import (
    HandingOut,
    OnOutcome,
    OpensJournal,
    Ran,
    RunPace,
    RunProgress,
    due_of,
    nobody,
)
from harness.sound.sound_stores import is_address

TASK_S = 3600.0
"""Sound of a task: long against the milliseconds that a task costs, short against what a killed worker costs."""
LEAST_TASK_S = 60.0
MOST_FILES = 2000
"""Of a task: what goes over the network with it stays below some hundred kB."""
ATTEMPTS = 3
"""In its task, singly, and alone; a file with which workers end each time is rejected."""


@dataclass(frozen=True, slots=True)
class TaskPiece:
    """Files of a task, by their positions. attempt: which, from 1."""

    positions: tuple[int, ...]
    attempt: int = 1


class Cutting:
    """What is to be played next. due: which positions are at all, shape (len(files),)."""

    def __init__(
        self, files: Sequence[ListedFile], due: np.ndarray[tuple[int], np.dtype[np.bool_]], task_s: float
    ) -> None:
        self._task_s = task_s
        self._waiting = HandingOut(files, due)
        self._files_left = int(np.count_nonzero(due))
        self._handed_s = 0.0
        self._singles: deque[TaskPiece] = deque()
        self._alone: deque[TaskPiece] = deque()
        self._on_its_own = False

    def next(self, slots: int, in_flight: int) -> TaskPiece | None:
        """The next piece, or None while there is none. slots: tasks that the cluster does at once."""
        if self._on_its_own and in_flight:
            return None
        self._on_its_own = False
        if self._waiting:
            return self._cut(max(1, slots))
        if self._singles:
            # No more than there are slots: beside each other on a worker, one would end for the other.
            return self._singles.popleft() if in_flight < slots else None
        if self._alone and not in_flight:
            self._on_its_own = True
            return self._alone.popleft()
        return None

    def suspect(self, piece: TaskPiece) -> bool:
        """Workers ended with it. Whether it is to be tried again; otherwise its one file is to be rejected."""
        if piece.attempt >= ATTEMPTS:
            return False
        singles = [TaskPiece((position,), piece.attempt + 1) for position in piece.positions]
        (self._singles if piece.attempt == 1 else self._alone).extend(singles)
        return True

    def finished(self, position: int) -> None:
        self._waiting.finished(position)

    @property
    def share_done(self) -> float | None:
        """Of the hours, as far as they are known."""
        total_s = self._waiting.total_s
        return min(1.0, self._waiting.done_s / total_s) if total_s else None

    def _cut(self, slots: int) -> TaskPiece:
        if not self._waiting.total_s:
            self._waiting.give_back(self._waiting.take(0.0, 1))  # lengths are known from the first on
        left_s = self._waiting.total_s - self._handed_s
        most_s = min(self._task_s, max(LEAST_TASK_S, left_s / (2 * slots)))
        positions = self._waiting.take(most_s, min(MOST_FILES, math.ceil(self._files_left / (2 * slots))))
        self._files_left -= len(positions)
        self._handed_s += sum(map(self._waiting.rough_s, positions))
        return TaskPiece(tuple(positions))


AHEAD = 2
"""Tasks out at a time, for each that is worked on: none waits for us, and a million files are not a million tasks."""
GRACE_S = 4.0


def run_on_cluster(
    evaluation: Evaluation,
    files: Sequence[ListedFile],
    *,
    address: str,
    journal: OpensJournal,
    stop: threading.Event,
    on_outcome: OnOutcome | None = None,
    on_progress: Callable[[RunProgress], None] = nobody,
    on_told: Callable[[str], None] = nobody,
    limits: WorkerLimits = WorkerLimits(),  # noqa: B008 – frozen
    task_s: float = TASK_S,
) -> Ran:
    """Plays the files that the journal has no outcome of on the cluster at `address`; see `run.run`.

    task_s: sound of a task. InputError for a wrong address, no or unfit workers, and what a cluster cannot do; nothing
    has been played then. EngineError when the scheduler, or the last worker, is gone: what came before is in the
    journal.
    """
    demand_shareable(evaluation)
    if not files:
        raise InputError("there are no files to evaluate")
    order = ClusterOrder(uuid4().hex, __version__, _elsewhere(evaluation), limits, probes_of(files))
    with ClusterLink(address) as link:
        try:
            workers = ClusterWorkers(link, on_told)
            facts = workers.meet(order, stop)
            order = replace(order, likeness=likeness(facts))
            with journal(facts) as opened:
                going = _ClusterRun(order, files, link, workers, opened, on_outcome, on_told, task_s)
                partial = going.play(stop, on_progress)
                opened.close(JournalMark.PARTIAL if partial else JournalMark.COMPLETE, "stopped" if partial else "")
            return going.pace.ran(facts, partial, time.monotonic())
        finally:
            link.everywhere(cluster_worker.dismiss, order.run)


def demand_shareable(evaluation: Evaluation) -> None:
    """InputError for what cannot be shared out."""
    if evaluation.continuous:
        raise InputError(
            "--continuous carries the engine's state from file to file: one worker has to hear all of them, and "
            "--cluster has nothing to share out",
            remedy="Run it on one machine, beside the in-vocabulary files on the cluster",
        )
    if hasattr(engine_class(evaluation.task.engine), "most_jobs"):
        raise InputError(
            f"{evaluation.task.engine} is at this machine, and a cluster's workers cannot reach it",
            remedy="Leave --cluster out; -j plays to several devices",
        )


def _elsewhere(evaluation: Evaluation) -> Evaluation:
    """The same for a worker whose current folder is another."""
    task = evaluation.task
    of_files = {one.name for one in engine_class(task.engine).settings if one.kind is SettingKind.FILE}
    model = os.path.abspath(task.model) if os.path.isfile(task.model) else task.model
    settings = tuple((name, _absolute(value) if name in of_files else value) for name, value in task.settings)
    return replace(evaluation, task=replace(task, model=model, settings=settings), cache=_absolute(evaluation.cache))


def _absolute(path: str) -> str:
    return os.path.abspath(path) if path and not is_address(path) else path


@dataclass(frozen=True, slots=True)
class _Flight:
    """A task that is out, and where it may go: anywhere when that is empty. proven: as the order said. failures: how
    often no worker could run it."""

    piece: TaskPiece
    where: set[str]
    proven: bool
    failures: int


class _ClusterRun:
    """A run once the workers have said what they are."""

    def __init__(
        self,
        order: ClusterOrder,
        files: Sequence[ListedFile],
        link: ClusterLink,
        workers: ClusterWorkers,
        journal: Journal,
        on_outcome: OnOutcome | None,
        told: Callable[[str], None],
        task_s: float,
    ) -> None:
        self._order, self._files, self._link, self._workers = order, files, link, workers
        self._journal, self._on_outcome, self._told = journal, on_outcome, told
        self._due = due_of(files, journal.before)
        self._left = int(np.count_nonzero(self._due))
        self._cutting = Cutting(files, self._due, task_s)
        self._flights: dict[Any, _Flight] = {}
        self._names = 0
        self._proven = False
        self._stranger = self._stopping = False
        self.pace = RunPace(self._left, time.monotonic())

    def play(self, stop: threading.Event, on_progress: Callable[[RunProgress], None]) -> bool:
        """Until every file has its outcome; whether it was stopped before."""
        stopped_s: float | None = None
        shown_s = time.monotonic()
        while self._left:
            if stop.is_set() and stopped_s is None:
                stopped_s, self._stopping = time.monotonic(), True
                # Tasks in work answer with what they have by then.
                self._link.everywhere(cluster_worker.dismiss, self._order.run)
            if stopped_s is None:
                self._send()
            elif not self._flights or time.monotonic() - stopped_s > GRACE_S:
                return True
            for future in self._link.arrived(TICK_S):
                self._arrived(future)
            if self._link.lost:
                raise self._link.gone()
            self._journal.tick()
            self._workers.tick()
            if time.monotonic() - shown_s >= TICK_S:
                shown_s = time.monotonic()
                self._show(on_progress)
        self._show(on_progress)
        return False

    def _send(self) -> None:
        self._workers.ask_new(self._order)
        for future in [one for one, flight in self._flights.items() if self._workers.gone(flight.where)]:
            flight = self._flights.pop(future)
            future.cancel()
            self._submit(flight.piece)
        while len(self._flights) < AHEAD * max(1, self._workers.slots):
            piece = self._cutting.next(self._workers.slots, len(self._flights))
            if piece is None:
                return
            self._submit(piece)

    def _submit(self, piece: TaskPiece, failures: int = 0) -> None:
        self._names += 1
        where = self._workers.fit(self._stranger)
        order = replace(self._order, proven=self._proven)
        files = files_told(self._files[position] for position in piece.positions)
        future = self._link.submit(
            f"harness-{order.run}-{self._names}", cluster_worker.play, order.told(), files, where=where
        )
        self._flights[future] = _Flight(piece, where, self._proven, failures)

    def _arrived(self, future: Any) -> None:
        if self._workers.introduced(future) or future not in self._flights:
            return
        found = self._link.result(future)
        if found is None:
            return
        flight = self._flights.pop(future)
        match found:
            case TaskAnswered(answer=answer):
                self._answered(flight, answer)
            case Killed(words=words):
                self._killed(flight.piece, words)
            case Failed(words=words):
                # A worker that came later and is not ours; which, shows when it is asked.
                if flight.failures + 1 >= ATTEMPTS:
                    raise EngineError(f"workers of the cluster cannot run ours: {words}", remedy="Go on with --resume")
                self._stranger = True
                self._submit(flight.piece, flight.failures + 1)

    def _answered(self, flight: _Flight, answer: dict[str, Any]) -> None:
        for line in answer.get("told", ()):
            self._told(line)
        for why in answer.get("lost", ()):
            self._journal.lost(why)
        if "misfit" in answer:
            # An engine that ended on the first files it was given may well play others.
            if flight.proven or not self._proven:
                self._workers.leave_out(answer["address"], answer["misfit"])
            self._submit(flight.piece)
            return
        places = {(self._files[one].kind, self._files[one].number): one for one in flight.piece.positions}
        outcomes = []
        for line in answer["lines"].splitlines(keepends=True):
            outcome = outcome_of(line).outcome
            outcomes.append((places.pop((outcome.kind, outcome.number)), outcome, line))
        self._take(outcomes)
        if places and not self._stopping:
            self._submit(replace(flight.piece, positions=tuple(places.values())))

    def _killed(self, piece: TaskPiece, words: str) -> None:
        names = [self._files[position].listed for position in piece.positions]
        self._journal.lost(f"workers of the cluster ended {words} with {shortly(names)}")
        if self._cutting.suspect(piece):
            then = "they are tried singly" if len(names) > 1 else "it is tried again by itself"
            self._told(f"workers ended {words} with {shortly(names)}: {then}")
            return
        self._told(f"workers ended each time that {names[0]} was played: it is rejected")
        file = self._files[piece.positions[0]]
        outcome = file.outcome_rejected(
            RejectReason.CRASH,
            error=f"workers of the cluster ended with it: {words}, in each of {ATTEMPTS} tasks",
        )
        self._take([(piece.positions[0], outcome, outcome_line(outcome, file.listed))])

    def _take(self, answers: Sequence[tuple[int, FileOutcome, bytes]]) -> None:
        fresh = [one for one in answers if self._due[one[0]]]
        if not fresh:
            return
        self._journal.append_lines(b"".join(line for _, _, line in fresh))
        for position, outcome, _ in fresh:
            self._due[position] = False
            self._left -= 1
            self._proven |= outcome.rejected is None
            self._cutting.finished(position)
            self.pace.count(outcome)
            if self._on_outcome is not None:
                self._on_outcome(outcome, self._files[position])

    def _show(self, on_progress: Callable[[RunProgress], None]) -> None:
        on_progress(self.pace.snapshot(time.monotonic(), self._cutting.share_done, self._workers.slots))
