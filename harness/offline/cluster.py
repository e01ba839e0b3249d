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
from harness.offline.run import FileQueue, OnOutcome, OpenJournal, RunPace, RunProgress, do_nothing, unplayed_files
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

    - due: True for each position that is to be played, shape (len(files),).
    - task_s: most sound in a task.
    """

    def __init__(
        self, files: Sequence[ListedFile], due: np.ndarray[tuple[int], np.dtype[np.bool_]], task_s: float
    ) -> None:
        self._task_s = task_s
        self._waiting = FileQueue(files, due)
        self._files_left = int(np.count_nonzero(due))
        self._sent_s = 0.0
        self._second_tries: deque[TaskPiece] = deque()
        self._last_tries: deque[TaskPiece] = deque()
        self._runs_alone = False

    def next_piece(self, slots: int, in_flight: int) -> TaskPiece | None:
        """The next piece to send; None if nothing may be sent now.

        - slots: number of tasks that the cluster runs at once.
        - in_flight: number of tasks that have been sent and have not come back.
        """
        if self._runs_alone and in_flight:
            return None
        self._runs_alone = False
        if self._waiting:
            return self._cut_piece(max(1, slots))
        if self._second_tries:
            # At most one per slot: two suspects on one worker would end each other.
            if in_flight >= slots:
                return None
            return self._second_tries.popleft()
        if self._last_tries and not in_flight:
            self._runs_alone = True
            return self._last_tries.popleft()
        return None

    def retry_suspect(self, piece: TaskPiece) -> bool:
        """Puts back the files of a piece on which workers ended, each as a piece of its own. False after the last
        attempt: the file must be rejected."""
        if piece.attempt >= ATTEMPTS:
            return False
        singles = [TaskPiece((position,), piece.attempt + 1) for position in piece.positions]
        if piece.attempt == 1:
            self._second_tries.extend(singles)
        else:
            self._last_tries.extend(singles)
        return True

    def mark_finished(self, position: int) -> None:
        self._waiting.mark_finished(position)

    @property
    def share_done(self) -> float | None:
        """Share of the hours of sound that is done, from rough lengths; None before any length is known."""
        total_s = self._waiting.total_s
        return min(1.0, self._waiting.done_s / total_s) if total_s else None

    def _cut_piece(self, slots: int) -> TaskPiece:
        """Takes the next waiting files as one piece."""
        if not self._waiting.total_s:
            # Makes the queue look up the lengths of its first window.
            self._waiting.give_back(self._waiting.take(0.0, 1))
        left_s = self._waiting.total_s - self._sent_s
        # Half of what is left for each slot: pieces shrink towards the end, so that the slots finish together.
        max_s = min(self._task_s, max(MIN_TASK_S, left_s / (2 * slots)))
        max_files = min(MAX_FILES, math.ceil(self._files_left / (2 * slots)))
        positions = self._waiting.take(max_s, max_files)
        self._files_left -= len(positions)
        self._sent_s += sum(map(self._waiting.rough_s, positions))
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
    journal: OpenJournal,
    stop: threading.Event,
    on_outcome: OnOutcome | None = None,
    on_progress: Callable[[RunProgress], None] = do_nothing,
    on_line: Callable[[str], None] = do_nothing,
    limits: WorkerLimits = WorkerLimits(),  # noqa: B008 – frozen
    task_s: float = TASK_S,
) -> RunPace:
    """Plays the files without an outcome in the journal on the cluster at `address`; see `run.run`.

    task_s: seconds of sound in a task. InputError, before anything is played, for a wrong address, for missing or unfit
    workers, and for an evaluation that a cluster cannot run. Raises EngineError if the scheduler or the last worker is
    gone; the journal keeps the outcomes so far.
    """
    demand_shareable(evaluation)
    if not files:
        raise InputError("there are no files to evaluate")
    order = ClusterOrder(uuid4().hex, __version__, _with_absolute_paths(evaluation), limits, probes_of(files))
    with closing(ClusterLink(address)) as link:
        try:
            workers = ClusterWorkers(link, on_line)
            facts = workers.await_workers(order, stop)
            order = replace(order, expected_facts=facts_hash(facts))
            with journal(facts) as writer:
                cluster_run = _ClusterRun(
                    order=order,
                    files=files,
                    link=link,
                    workers=workers,
                    journal=writer,
                    on_outcome=on_outcome,
                    report_line=on_line,
                    task_s=task_s,
                )
                writer.end(partial=cluster_run.play(stop, on_progress), used=cluster_run.used)
            return cluster_run.pace
        finally:
            link.run_on_all(cluster_worker.end_run, order.run)


def demand_shareable(evaluation: Evaluation) -> None:
    """Raises InputError for evaluations that cannot be distributed."""
    if evaluation.continuous:
        raise InputError(
            "--continuous cannot be used with --cluster: a single worker would have to play all files",
            remedy="Run the out-of-vocabulary files on one machine and the others on the cluster",
        )
    if hasattr(engine_class(evaluation.task.engine), "most_jobs"):
        raise InputError(
            f"{evaluation.task.engine} is attached to this machine; cluster workers cannot reach it",
            remedy="Remove --cluster; to use several devices, add -j",
        )


def _with_absolute_paths(evaluation: Evaluation) -> Evaluation:
    """The evaluation with absolute paths of files and folders here, since workers run in other folders."""
    task = evaluation.task
    file_settings = {setting.name for setting in engine_class(task.engine).settings if setting.kind is SettingKind.FILE}
    model = os.path.abspath(task.model) if os.path.isfile(task.model) else task.model
    settings = tuple((name, _absolute_path(value) if name in file_settings else value) for name, value in task.settings)
    return replace(
        evaluation, task=replace(task, model=model, settings=settings), cache=_absolute_path(evaluation.cache)
    )


def _absolute_path(path: str) -> str:
    return os.path.abspath(path) if path and not is_address(path) else path


@frozen
class _TaskInFlight:
    """A task in flight.

    - addresses: the workers that may run it; empty for all workers.
    - proven: whether the engine had already played a file when the task was sent.
    - failures: number of times that a worker could not run the task at all.
    """

    piece: TaskPiece
    addresses: set[str]
    proven: bool
    failures: int


class _ClusterRun:
    """A run on the cluster, from the moment when the workers are known.

    - used: resources that the workers have used so far.
    - pace: counts and times of the run.
    """

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
        self._due = unplayed_files(files, journal.earlier)
        self._files_left = int(np.count_nonzero(self._due))
        self._splitter = TaskSplitter(files, self._due, task_s)
        self._in_flight: dict[Any, _TaskInFlight] = {}
        self._task_count = 0
        self.used = WorkerUse()
        self._proven = False
        self._checked_only = False  # set when a task failed on a worker that may be unfit
        self._stopping = False
        self.pace = RunPace(self._files_left, time.monotonic())

    def play(self, stop: threading.Event, on_progress: Callable[[RunProgress], None]) -> bool:
        """Plays until every file has its outcome. Returns True if the run was stopped before that."""
        stopped_s: float | None = None
        reported_s = time.monotonic()
        while self._files_left:
            if stop.is_set() and stopped_s is None:
                stopped_s = time.monotonic()
                self._stopping = True
                # Running tasks return what they have.
                self._link.run_on_all(cluster_worker.end_run, self._order.run)
            if stopped_s is None:
                self._send_tasks()
            elif not self._in_flight or time.monotonic() - stopped_s > GRACE_S:
                self.pace.partial = True
                break
            for future in self._link.wait_for_done(TICK_S):
                self._handle_arrival(future)
            if self._link.is_lost:
                raise self._link.lost_error()
            self._journal.tick()
            self._workers.tick()
            if time.monotonic() - reported_s >= TICK_S:
                reported_s = time.monotonic()
                self._report_progress(on_progress)
        self._report_progress(on_progress)
        return self.pace.partial

    def _send_tasks(self) -> None:
        """Asks new workers for their facts, sends the tasks of lost workers again, and fills up all slots."""
        self._workers.ask_new(self._order)
        lost = [future for future, flight in self._in_flight.items() if self._workers.are_gone(flight.addresses)]
        for future in lost:
            flight = self._in_flight.pop(future)
            future.cancel()
            self._submit(flight.piece)
        while len(self._in_flight) < AHEAD * max(1, self._workers.slots):
            piece = self._splitter.next_piece(self._workers.slots, len(self._in_flight))
            if piece is None:
                return
            self._submit(piece)

    def _submit(self, piece: TaskPiece, failures: int = 0) -> None:
        self._task_count += 1
        addresses = self._workers.fit_addresses(checked_only=self._checked_only)
        order = replace(self._order, proven=self._proven)
        files = encode_files(self._files[position] for position in piece.positions)
        future = self._link.submit(
            f"harness-{order.run}-{self._task_count}", cluster_worker.play, order.encode(), files, addresses=addresses
        )
        self._in_flight[future] = _TaskInFlight(piece, addresses, self._proven, failures)

    def _handle_arrival(self, future: Any) -> None:
        """Handles a future that is done: the facts of a worker, or the result of a task."""
        if self._workers.record_facts(future) or future not in self._in_flight:
            return
        reply = self._link.result(future)
        if reply is None:
            return
        flight = self._in_flight.pop(future)
        match reply:
            case TaskAnswered(answer=answer):
                self._handle_answer(flight, answer)
            case TaskKilled(how_often=how_often):
                self._handle_kill(flight.piece, how_often)
            case TaskFailed(error=error):
                # A worker that joined later cannot run the harness. Asking it shows which.
                if flight.failures + 1 >= ATTEMPTS:
                    raise EngineError(
                        f"cluster workers cannot run this evaluation: {error}", remedy="Continue with --resume"
                    )
                self._checked_only = True
                self._submit(flight.piece, flight.failures + 1)

    def _handle_answer(self, flight: _TaskInFlight, answer: dict[str, Any]) -> None:
        """Records the outcomes that a task returned (see `cluster_worker.play`), and sends its other files again."""
        for line in answer.get("messages", ()):
            self._report_line(line)
        for why in answer.get("lost", ()):
            self._journal.note_lost_worker(why)
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
        missing = {
            (self._files[position].kind, self._files[position].number): position for position in flight.piece.positions
        }
        outcomes = []
        for line in answer["lines"].splitlines(keepends=True):
            outcome = outcome_of(line).outcome
            position = missing.pop((outcome.kind, outcome.number))
            outcomes.append((position, outcome, line))
        self._record_outcomes(outcomes)
        if missing and not self._stopping:
            self._submit(replace(flight.piece, positions=tuple(missing.values())))

    def _handle_kill(self, piece: TaskPiece, how_often: str) -> None:
        """Has the files of a task that ended its workers tried one by one; rejects a file after its last attempt."""
        names = [self._files[position].listed for position in piece.positions]
        self._journal.note_lost_worker(f"cluster workers ended {how_often} while playing {shortened_list(names)}")
        if self._splitter.retry_suspect(piece):
            remedy = "the files are tried one by one" if len(names) > 1 else "the file is tried again alone"
            self._report_line(f"workers ended {how_often} while playing {shortened_list(names)}; {remedy}")
            return
        self._report_line(f"{names[0]} is rejected: the worker ended each time it was played")
        file = self._files[piece.positions[0]]
        outcome = file.outcome_rejected(
            RejectReason.CRASH, error=f"cluster workers ended while playing it, {how_often} in each of {ATTEMPTS} tasks"
        )
        self._record_outcomes([(piece.positions[0], outcome, outcome_line(outcome, file.listed))])

    def _record_outcomes(self, answers: Sequence[tuple[int, FileOutcome, bytes]]) -> None:
        """Adds outcomes to the journal: (position, outcome, line) of each. A file that was sent twice counts once."""
        new = [(position, outcome, line) for position, outcome, line in answers if self._due[position]]
        if not new:
            return
        self._journal.append_lines(b"".join(line for _, _, line in new))
        for position, outcome, _ in new:
            self._due[position] = False
            self._files_left -= 1
            self._proven |= outcome.rejected is None
            self._splitter.mark_finished(position)
            self.pace.add(outcome)
            if self._on_outcome is not None:
                self._on_outcome(outcome, self._files[position])

    def _report_progress(self, on_progress: Callable[[RunProgress], None]) -> None:
        on_progress(self.pace.snapshot(time.monotonic(), self._splitter.share_done))
