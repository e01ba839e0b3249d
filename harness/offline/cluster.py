"""An evaluation's files through the workers of a Dask cluster, into one journal here.

The same contract as `run.run`. Files of a killed worker are played by another one.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np

from harness import __version__
from harness.engines.offline_loading import engine_class
from harness.model.errors import EngineError, InputError
from harness.model.frozen import frozen
from harness.model.offline import Evaluation, FileOutcome, ListedFile, RejectReason, SettingKind
from harness.offline import cluster_worker
from harness.offline.cluster_link import TICK_S, ClusterLink, ClusterWorkers, TaskAnswered, TaskFailed, TaskKilled
from harness.offline.cluster_worker import ClusterOrder, facts_hash, probes_of, shortened_list
from harness.offline.journal import Journal
from harness.offline.journal_lines import WorkerUse, outcome_line, outcome_of
from harness.offline.messages import encode_files
from harness.offline.pool import WorkerLimits
from harness.offline.run import FileQueue, OnOutcome, OpensJournal, RunPace, RunProgress, do_nothing, unplayed_files
from harness.sound.sound_stores import is_address

TASK_S = 3600.0
"""Seconds of sound in a task. Enough that the overhead of a task (milliseconds) does not matter, and so little that a
killed worker loses little work."""
MIN_TASK_S = 60.0
"""Tasks shrink towards the end of the lists, but not below this much sound."""
MAX_FILES = 2000
"""Most files in a task, so that its messages stay below some hundred kB."""
ATTEMPTS = 3
"""A file is tried in its task, then in a task of one file, then with no other task in flight. If workers end each time,
the file is rejected."""


@frozen
class TaskPiece:
    """The files of one task, by their positions in the list of all files. attempt: 1 for the first try."""

    positions: tuple[int, ...]
    attempt: int = 1


class TaskSplitter:
    """Splits the files into tasks, and puts back those with which workers ended (see ATTEMPTS).

    due: True for each position that is to be played, shape (len(files),). task_s: most sound in a task.
    """

    def __init__(
        self, files: Sequence[ListedFile], due: np.ndarray[tuple[int], np.dtype[np.bool_]], task_s: float
    ) -> None:
        self._task_s = task_s
        self._waiting = FileQueue(files, due)
        self._files_left = int(np.count_nonzero(due))
        self._handed_s = 0.0
        self._singles: deque[TaskPiece] = deque()
        self._single_pieces: deque[TaskPiece] = deque()
        self._on_its_own = False

    def next(self, slots: int, in_flight: int) -> TaskPiece | None:
        """The next piece; None if nothing may be sent now. slots: number of tasks that the cluster runs at once.
        in_flight: number of tasks that have been sent and have not come back."""
        if self._on_its_own and in_flight:
            return None
        self._on_its_own = False
        if self._waiting:
            return self._cut(max(1, slots))
        if self._singles:
            # At most one per slot: two suspects on one worker would end each other.
            return self._singles.popleft() if in_flight < slots else None
        if self._single_pieces and not in_flight:
            self._on_its_own = True
            return self._single_pieces.popleft()
        return None

    def retry_suspect(self, piece: TaskPiece) -> bool:
        """Puts back the files of a piece on which workers ended, each as a piece of its own. False after the last
        attempt: the file must be rejected."""
        if piece.attempt >= ATTEMPTS:
            return False
        singles = [TaskPiece((position,), piece.attempt + 1) for position in piece.positions]
        if piece.attempt == 1:
            self._singles.extend(singles)
        else:
            self._single_pieces.extend(singles)
        return True

    def finished(self, position: int) -> None:
        self._waiting.finished(position)

    @property
    def share_done(self) -> float | None:
        """Share of the hours of sound that is done, from rough lengths; None before any length is known."""
        total_s = self._waiting.total_s
        return min(1.0, self._waiting.done_s / total_s) if total_s else None

    def _cut(self, slots: int) -> TaskPiece:
        if not self._waiting.total_s:
            self._waiting.give_back(self._waiting.take(0.0, 1))  # looks at the first file, so that lengths are known
        left_s = self._waiting.total_s - self._handed_s
        # Half of what is left for each slot: pieces shrink towards the end, so that the slots finish together.
        most_s = min(self._task_s, max(MIN_TASK_S, left_s / (2 * slots)))
        positions = self._waiting.take(most_s, min(MAX_FILES, math.ceil(self._files_left / (2 * slots))))
        self._files_left -= len(positions)
        self._handed_s += sum(map(self._waiting.rough_s, positions))
        return TaskPiece(tuple(positions))


AHEAD = 2
"""Tasks in flight per slot: enough that workers never wait for the next one, few enough for the scheduler's memory."""
GRACE_S = 4.0
"""How long a stopped run waits for the outcomes that its running tasks already have."""


def run_on_cluster(
    evaluation: Evaluation,
    files: Sequence[ListedFile],
    *,
    address: str,
    journal: OpensJournal,
    stop: threading.Event,
    on_outcome: OnOutcome | None = None,
    on_progress: Callable[[RunProgress], None] = do_nothing,
    on_line: Callable[[str], None] = do_nothing,
    limits: WorkerLimits = WorkerLimits(),  # noqa: B008 – frozen
    task_s: float = TASK_S,
) -> RunPace:
    """Plays the files without an outcome in the journal on the cluster at `address`; see `run.run`.

    task_s: seconds of sound in a task. InputError, before anything is played, for a wrong address, for missing or unfit
    workers, and for an evaluation that a cluster cannot run. EngineError if the scheduler or the last worker is gone;
    the journal keeps the outcomes so far.
    """
    demand_shareable(evaluation)
    if not files:
        raise InputError("there are no files to evaluate")
    order = ClusterOrder(uuid4().hex, __version__, _with_absolute_paths(evaluation), limits, probes_of(files))
    with closing(ClusterLink(address)) as link:
        try:
            workers = ClusterWorkers(link, on_line)
            facts = workers.await_workers(order, stop)
            order = replace(order, likeness=facts_hash(facts))
            with journal(facts) as writer:
                going = _ClusterRun(
                    order=order,
                    files=files,
                    link=link,
                    workers=workers,
                    journal=writer,
                    on_outcome=on_outcome,
                    report_line=on_line,
                    task_s=task_s,
                )
                writer.end(partial=going.play(stop, on_progress), used=going.used)
            return going.pace
        finally:
            link.run_on_all(cluster_worker.end_run, order.run)


def demand_shareable(evaluation: Evaluation) -> None:
    """InputError for evaluations that cannot be distributed."""
    if evaluation.continuous:
        raise InputError(
            "--continuous cannot be used with --cluster: a single worker would have to play all files",
            remedy="Run the out-of-vocabulary files on one machine, the others on the cluster",
        )
    if hasattr(engine_class(evaluation.task.engine), "most_jobs"):
        raise InputError(
            f"{evaluation.task.engine} is attached to this machine; cluster workers cannot reach it",
            remedy="Omit --cluster; use -j for several devices",
        )


def _with_absolute_paths(evaluation: Evaluation) -> Evaluation:
    task = evaluation.task
    of_files = {setting.name for setting in engine_class(task.engine).settings if setting.kind is SettingKind.FILE}
    model = os.path.abspath(task.model) if os.path.isfile(task.model) else task.model
    settings = tuple((name, _absolute(value) if name in of_files else value) for name, value in task.settings)
    return replace(evaluation, task=replace(task, model=model, settings=settings), cache=_absolute(evaluation.cache))


def _absolute(path: str) -> str:
    return os.path.abspath(path) if path and not is_address(path) else path


@frozen
class _TaskInFlight:
    """A task in flight.

    addresses: the workers that may run it; empty for all workers. proven: whether the engine had already played a file
    when the task was sent. failures: number of times that a worker could not run the task at all.
    """

    piece: TaskPiece
    addresses: set[str]
    proven: bool
    failures: int


class _ClusterRun:
    """A run on the cluster, from the moment when the workers are known."""

    def __init__(
        self,
        order: ClusterOrder,
        files: Sequence[ListedFile],
        link: ClusterLink,
        workers: ClusterWorkers,
        journal: Journal,
        on_outcome: OnOutcome | None,
        report_line: Callable[[str], None],
        task_s: float,
    ) -> None:
        self._order, self._files, self._link, self._workers = order, files, link, workers
        self._journal, self._on_outcome, self._report_line = journal, on_outcome, report_line
        self._is_due = unplayed_files(files, journal.before)
        self._files_left = int(np.count_nonzero(self._is_due))
        self._cutting = TaskSplitter(files, self._is_due, task_s)
        self._flights: dict[Any, _TaskInFlight] = {}
        self._names = 0
        self.used = WorkerUse()
        self._proven = False
        self._stranger = self._stopping = False
        self.pace = RunPace(self._files_left, time.monotonic())

    def play(self, stop: threading.Event, on_progress: Callable[[RunProgress], None]) -> bool:
        """Plays until every file has its outcome. Returns True if the run was stopped before that."""
        stopped_s: float | None = None
        shown_s = time.monotonic()
        while self._files_left:
            if stop.is_set() and stopped_s is None:
                stopped_s, self._stopping = time.monotonic(), True
                # Running tasks return what they have.
                self._link.run_on_all(cluster_worker.end_run, self._order.run)
            if stopped_s is None:
                self._send()
            elif not self._flights or time.monotonic() - stopped_s > GRACE_S:
                self.pace.partial = True
                break
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
        return self.pace.partial

    def _send(self) -> None:
        self._workers.ask_new(self._order)
        for future in [
            lost_future for lost_future, flight in self._flights.items() if self._workers.gone(flight.addresses)
        ]:
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
        addresses = self._workers.fit(self._stranger)
        order = replace(self._order, proven=self._proven)
        files = encode_files(self._files[position] for position in piece.positions)
        future = self._link.submit(
            f"harness-{order.run}-{self._names}", cluster_worker.play, order.encoded(), files, addresses=addresses
        )
        self._flights[future] = _TaskInFlight(piece, addresses, self._proven, failures)

    def _arrived(self, future: Any) -> None:
        if self._workers.take_introduction(future) or future not in self._flights:
            return
        reply = self._link.result(future)
        if reply is None:
            return
        flight = self._flights.pop(future)
        match reply:
            case TaskAnswered(answer=answer):
                self._answered(flight, answer)
            case TaskKilled(words=words):
                self._killed(flight.piece, words)
            case TaskFailed(words=words):
                # A worker that joined later cannot run the harness. Asking it shows which.
                if flight.failures + 1 >= ATTEMPTS:
                    raise EngineError(
                        f"cluster workers cannot run this evaluation: {words}", remedy="Continue with --resume"
                    )
                self._stranger = True
                self._submit(flight.piece, flight.failures + 1)

    def _answered(self, flight: _TaskInFlight, answer: dict[str, Any]) -> None:
        for line in answer.get("messages", ()):
            self._report_line(line)
        for why in answer.get("lost", ()):
            self._journal.lost(why)
        if "misfit" in answer:
            # An engine that ended on its first files may play others.
            if flight.proven or not self._proven:
                self._workers.leave_out(answer["address"], answer["misfit"])
            self._submit(flight.piece)
            return
        cached_s, cached_files = answer.get("cached", (0.0, 0))
        host = tuple(map(tuple, answer.get("host", ())))
        use = WorkerUse(cached_s=cached_s, cached_files=cached_files, host=host)
        self.used = WorkerUse.of_all([self.used, use])
        places = {
            (self._files[position].kind, self._files[position].number): position for position in flight.piece.positions
        }
        outcomes = []
        for line in answer["lines"].splitlines(keepends=True):
            outcome = outcome_of(line).outcome
            outcomes.append((places.pop((outcome.kind, outcome.number)), outcome, line))
        self._take(outcomes)
        if places and not self._stopping:
            self._submit(replace(flight.piece, positions=tuple(places.values())))

    def _killed(self, piece: TaskPiece, words: str) -> None:
        names = [self._files[position].listed for position in piece.positions]
        self._journal.lost(f"cluster workers ended {words} while playing {shortened_list(names)}")
        if self._cutting.retry_suspect(piece):
            remedy = "the files are tried one by one" if len(names) > 1 else "the file is tried again alone"
            self._report_line(f"workers ended {words} while playing {shortened_list(names)}; {remedy}")
            return
        self._report_line(f"{names[0]} is rejected: workers ended each time that they played it")
        file = self._files[piece.positions[0]]
        outcome = file.outcome_rejected(
            RejectReason.CRASH, error=f"cluster workers ended while playing it, {words} in each of {ATTEMPTS} tasks"
        )
        self._take([(piece.positions[0], outcome, outcome_line(outcome, file.listed))])

    def _take(self, answers: Sequence[tuple[int, FileOutcome, bytes]]) -> None:
        fresh = [answer for answer in answers if self._is_due[answer[0]]]
        if not fresh:
            return
        self._journal.append_lines(b"".join(line for _, _, line in fresh))
        for position, outcome, _ in fresh:
            self._is_due[position] = False
            self._files_left -= 1
            self._proven |= outcome.rejected is None
            self._cutting.finished(position)
            self.pace.count(outcome)
            if self._on_outcome is not None:
                self._on_outcome(outcome, self._files[position])

    def _show(self, on_progress: Callable[[RunProgress], None]) -> None:
        on_progress(self.pace.snapshot(time.monotonic(), self._cutting.share_done))
