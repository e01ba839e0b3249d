"""An evaluation's files through the workers of a Dask cluster, into one journal here.

The same contract as `run.run`. Files of a killed worker are played by another one.
"""

from __future__ import annotations

import json
import logging
import math
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import numpy as np

from harness import __version__
from harness.base.gathering import gathered
from harness.base.plain_json import plain, restored
from harness.base.plugins import pip_install
from harness.engines.offline_loading import engine_class
from harness.model.errors import EngineError, InputError, PluginError
from harness.model.numbers import exact
from harness.model.offline import EngineFacts, Evaluation, FileOutcome, ListedFile, RejectReason, SettingKind
from harness.offline import cluster_worker
from harness.offline.cluster_worker import TICK_S, ClusterOrder, likeness, probes_of
from harness.offline.journal import Journal
from harness.offline.journal_lines import WorkerUse, outcome_line, outcome_of
from harness.offline.messages import files_told
from harness.offline.pool import WorkerLimits
from harness.offline.run import HandingOut, OnOutcome, OpensJournal, RunPace, RunProgress, due_of, nobody
from harness.sound.sound_stores import is_address

TASK_S = 3600.0
"""Sound of a task: long against the milliseconds that a task takes, short against the loss of a killed worker."""
LEAST_TASK_S = 60.0
MOST_FILES = 2000
"""Most files in a task, so that its messages stay below some hundred kB."""
ATTEMPTS = 3
"""In its task, singly, and alone. A file with which workers end each time is rejected."""


@dataclass(frozen=True, slots=True)
class TaskPiece:
    """Files of a task, by their positions. attempt: counts from 1."""

    positions: tuple[int, ...]
    attempt: int = 1


class Cutting:
    """Splits the files into tasks. due: which positions are to be played, shape (len(files),)."""

    def __init__(
        self, files: Sequence[ListedFile], due: np.ndarray[tuple[int], np.dtype[np.bool_]], task_s: float
    ) -> None:
        self._task_s = task_s
        self.waiting = HandingOut(files, due)
        self._files_left = int(np.count_nonzero(due))
        self._handed_s = 0.0
        self._suspects: deque[TaskPiece] = deque()

    def next(self, slots: int, in_flight: int) -> TaskPiece | None:
        """The next piece; None if there is none yet. slots: tasks that the cluster runs at once."""
        if self.waiting:
            return self._cut(max(1, slots))
        # At most one suspect per slot: two on one worker would end each other. A last attempt is made alone.
        if self._suspects and in_flight < (slots if self._suspects[0].attempt < ATTEMPTS else 1):
            return self._suspects.popleft()
        return None

    def suspect(self, piece: TaskPiece) -> bool:
        """Puts back a piece with which workers ended, last attempts behind all others. False if its file is to be
        rejected instead."""
        if piece.attempt >= ATTEMPTS:
            return False
        singles = [TaskPiece((position,), piece.attempt + 1) for position in piece.positions]
        put_back = self._suspects.extendleft if piece.attempt == 1 else self._suspects.extend
        put_back(singles)
        return True

    def _cut(self, slots: int) -> TaskPiece:
        if not self.waiting.total_s:
            self.waiting.give_back(self.waiting.take(0.0, 1))  # looks at the first file, so that lengths are known
        left_s = self.waiting.total_s - self._handed_s
        most_s = min(self._task_s, max(LEAST_TASK_S, left_s / (2 * slots)))
        positions = self.waiting.take(most_s, min(MOST_FILES, math.ceil(self._files_left / (2 * slots))))
        self._files_left -= len(positions)
        self._handed_s += sum(map(self.waiting.rough_s, positions))
        return TaskPiece(tuple(positions))


AHEAD = 2
"""Tasks in flight per slot: workers need not wait for us, and a million files are not a million tasks."""
GRACE_S = 4.0
CONNECT_S = 10.0
ASK_S = 5.0
WORKERS_WITHIN_S = 30.0
"""Longest time that a cluster may have no worker, at the start and later."""
LOOK_S = 1.0
TURN_S = 0.05


class ClusterLink:
    """A client of the scheduler at an address. `close` closes the client only, not the cluster."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
            from distributed.comm.addressing import parse_address, parse_host_port
        except ImportError as error:
            raise PluginError(
                f"--cluster needs Dask distributed: {error}", remedy=f"Install it: {pip_install('cluster')}"
            ) from error
        self.address = address
        client: Any = distributed.Client
        self._killed: type[Exception] = distributed.KilledWorker
        logging.disable()  # the evaluation reports a lost scheduler or worker in its own words
        try:
            scheme, place = parse_address(address)
            if scheme in ("tcp", "tls"):  # Dask would go on trying where nobody listens
                socket.create_connection(parse_host_port(place), CONNECT_S).close()
            self._client = client(address, timeout=CONNECT_S, set_as_default=False, name="harness")
        except (OSError, OverflowError, ValueError, TypeError, RuntimeError) as error:
            logging.disable(logging.NOTSET)
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise InputError(
                f"no Dask scheduler answers at {address}: {why}",
                remedy="Give the address that `dask scheduler` printed, such as tcp://192.168.1.10:8786",
            ) from error

    def demand(self) -> None:
        """EngineError if the scheduler is gone, with the state of this evaluation."""
        if self._client.status != "running":
            raise self._gone()

    def workers(self, known: dict[str, int]) -> dict[str, int]:
        """Addresses of workers with the number of tasks that each runs at once; the known ones if the scheduler does
        not answer in time."""
        try:
            return dict(self._client.sync(self._client.scheduler.ncores, callback_timeout=ASK_S))
        except (OSError, TimeoutError):
            self.demand()
            return known

    def submit(self, name: str, order: bytes, files: bytes, where: Collection[str]) -> Any:
        """A future of `cluster_worker.play`. where: workers that may run it."""
        play = _by_name(cluster_worker.play)
        return self._client.submit(play, order, files, key=name, pure=False, workers=sorted(where))

    def answer(self, future: Any) -> dict[str, Any] | None:
        """What a task returned. `killed`: how often workers ended with it; `misfit`: why it could not run. None as long
        as there is nothing, also if the worker that held it has gone. EngineError if the scheduler is gone."""
        try:
            if future.status == "error":
                error = future.exception(timeout=ASK_S)
                if isinstance(error, self._killed):
                    return {"killed": f"{getattr(error, 'allowed_failures', 0) + 1} times"}
                missing = "No module named 'harness'" in str(error)
                why = f"it cannot run the harness: {type(error).__name__}: {error}"
                return {"misfit": "the harness is not installed there" if missing else why}
            if future.status != "pending":
                return dict(future.result(timeout=ASK_S))
        except CancelledError:
            raise self._gone() from None
        except (TimeoutError, OSError):
            self.demand()
        return None

    def dismiss(self, run: str) -> None:
        """Ends a run on all workers, beside their tasks."""
        with suppress(OSError, TimeoutError):  # the workers are gone, and their engines with them
            if self._client.status == "running":
                dismiss = _by_name(cluster_worker.dismiss)
                self._client.run(dismiss, run, on_error="ignore", callback_timeout=ASK_S)

    def close(self) -> None:
        with suppress(OSError, TimeoutError):
            self._client.close(timeout=2)
        logging.disable(logging.NOTSET)

    def _gone(self) -> EngineError:
        return EngineError(
            f"the scheduler at {self.address} is gone, or has dropped this evaluation",
            remedy="Start it again, then continue with --resume",
        )


def _by_name(task: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called by its name. A worker without the harness could not deserialise the function itself, and
    would end."""
    module, name = task.__module__, task.__qualname__

    def called(*given: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(module), name)(*given)

    return called


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
) -> RunPace:
    """Plays the files without an outcome in the journal on the cluster at `address`; see `run.run`.

    task_s: sound of a task. InputError for a wrong address, no or unfit workers, and evaluations that a cluster cannot
    run. Nothing has been played then. EngineError if the scheduler or the last worker is gone: the journal keeps the
    outcomes so far.
    """
    demand_shareable(evaluation)
    if not files:
        raise InputError("there are no files to evaluate")
    order = ClusterOrder(uuid4().hex, __version__, _elsewhere(evaluation), limits, probes_of(files))
    with closing(ClusterLink(address)) as link:
        try:
            workers = ClusterWorkers(order, link, on_told)
            facts = workers.meet(stop)
            with journal(facts) as opened:
                going = _ClusterRun(workers, files, opened, on_outcome, on_told, task_s)
                opened.end(partial=going.play(stop, on_progress), used=going.used)
            return going.pace
        finally:
            link.dismiss(order.run)


def demand_shareable(evaluation: Evaluation) -> None:
    """InputError for evaluations that cannot be distributed."""
    if evaluation.continuous:
        raise InputError(
            "--continuous cannot be used with --cluster: a single worker would have to play all files",
            remedy="Run the out-of-vocabulary files on one machine, the others on the cluster",
        )
    if hasattr(engine_class(evaluation.task.engine), "most_jobs"):
        raise InputError(
            f"{evaluation.task.engine} is attached to this machine; workers of a cluster cannot reach it",
            remedy="Leave --cluster out; use -j for several devices",
        )


def _elsewhere(evaluation: Evaluation) -> Evaluation:
    task = evaluation.task
    of_files = {one.name for one in engine_class(task.engine).settings if one.kind is SettingKind.FILE}
    model = os.path.abspath(task.model) if os.path.isfile(task.model) else task.model
    settings = tuple((name, _absolute(value) if name in of_files else value) for name, value in task.settings)
    return replace(evaluation, task=replace(task, model=model, settings=settings), cache=_absolute(evaluation.cache))


def _absolute(path: str) -> str:
    return os.path.abspath(path) if path and not is_address(path) else path


def shortly(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@dataclass(frozen=True, slots=True)
class _Flight:
    """A task in flight. where: workers that may run it. proven: as in its order."""

    piece: TaskPiece
    where: frozenset[str]
    proven: bool


class ClusterWorkers:
    """Workers as they come and go, and their tasks. Each first gets a task without files, which loads its engine."""

    def __init__(self, order: ClusterOrder, link: ClusterLink, told: Callable[[str], None]) -> None:
        self._order, self._link, self._told = order, link, told
        self._here: dict[str, int] = {}
        self._facts: dict[str, EngineFacts] = {}
        self._misfits: dict[str, str] = {}
        self._flights: dict[Any, _Flight] = {}
        self._names = 0
        self._met = self.proven = False
        self._looked_s, self._had_s = -math.inf, time.monotonic()

    @property
    def fit(self) -> frozenset[str]:
        return frozenset(self._facts.keys() & self._here.keys() - self._misfits.keys())

    @property
    def slots(self) -> int:
        """How many tasks the fit workers run at once."""
        return sum(self._here[address] for address in self.fit)

    @property
    def in_flight(self) -> int:
        """Tasks with files."""
        return sum(bool(flight.piece.positions) for flight in self._flights.values())

    def meet(self, stop: threading.Event) -> EngineFacts:
        """Waits for workers and checks each. InputError if one is unfit or there is none."""
        self._look()
        if not self._here:
            self._told(f"waiting up to {exact(WORKERS_WITHIN_S)} s for workers of {self._link.address}")
        until_s = time.monotonic() + self._order.limits.load_within_s + WORKERS_WITHIN_S
        while self._flights or not (self._facts or self._misfits.keys() & self._here.keys()):
            list(self.turn())
            if stop.is_set():
                raise KeyboardInterrupt
            if time.monotonic() > until_s:
                raise EngineError(
                    f"workers do not answer: {shortly(sorted(self._here.keys() - self._facts.keys()))}",
                    remedy="Check whether they are busy with other work, or have stopped",
                )
        self._demand_alike()
        facts = self._facts[min(self._facts)]
        self._order = replace(self._order, likeness=likeness(facts))
        self._met = True
        return facts

    def submit(self, piece: TaskPiece, files: Iterable[ListedFile] = (), where: Collection[str] = ()) -> None:
        """Sends a piece to the fit workers, or to those in `where`."""
        self._names += 1
        order = replace(self._order, proven=self.proven)
        flight = _Flight(piece, frozenset(where) or self.fit, self.proven)
        future = self._link.submit(
            f"harness-{order.run}-{self._names}", json.dumps(plain(order)).encode(), files_told(files), flight.where
        )
        self._flights[future] = flight

    def turn(self) -> Iterator[tuple[TaskPiece, dict[str, Any]]]:
        """Pieces that have come back, with their answers (`cluster_worker.play`, `ClusterLink.answer`). Without
        `lines`, the piece has not been played. EngineError if the scheduler or the last worker is gone."""
        time.sleep(TURN_S)
        self._link.demand()
        self._look()
        asked = {address for flight in self._flights.values() if not flight.piece.positions for address in flight.where}
        for address in self._here.keys() - self._facts.keys() - self._misfits.keys() - asked:
            self.submit(TaskPiece(()), where={address})
        for future, flight in list(self._flights.items()):
            if not flight.where & self._here.keys():
                future.cancel()
                answer: dict[str, Any] | None = {}
            else:
                answer = self._link.answer(future)
            if answer is None:
                continue
            del self._flights[future]
            for line in answer.get("told", ()):
                self._told(line)
            address = answer.get("address", min(flight.where))
            # An engine that ended on its first files may play others.
            if "misfit" in answer and flight.proven == self.proven:
                self._leave_out(address, answer["misfit"])
            if flight.piece.positions:
                yield flight.piece, answer
            elif "facts" in answer:
                self._facts[address] = restored(EngineFacts, answer["facts"])

    def dismiss(self) -> None:
        """Running tasks return what they have."""
        self._link.dismiss(self._order.run)

    def _look(self) -> None:
        """Looks for new and lost workers once a second."""
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_S:
            return
        self._looked_s = now_s
        before, self._here = self._here, self._link.workers(self._here)
        for address in before.keys() - self._here.keys():
            self._facts.pop(address, None)
            if self._met:
                self._told(f"the worker {address} is gone; another worker plays its files")
        if self._here.keys() - self._misfits.keys():
            self._had_s = now_s
        elif now_s - self._had_s > WORKERS_WITHIN_S:
            what = f"the scheduler at {self._link.address} has had no worker for {exact(WORKERS_WITHIN_S)} s"
            if self._met:
                raise EngineError(what, remedy="Start workers, then continue with --resume")
            raise InputError(what, remedy=f"Start one: dask worker {self._link.address}")

    def _leave_out(self, address: str, why: str) -> None:
        """EngineError if it was the last, once files are played."""
        known = address in self._misfits
        self._misfits[address] = why
        if not self._met:
            return
        if not known:
            self._told(f"continuing without the worker {address}: {why}")
        if not self._here.keys() - self._misfits.keys():
            raise EngineError(f"no usable worker is left: {why}", remedy="Repair a worker, then continue with --resume")

    def _demand_alike(self) -> None:
        engines = gathered((likeness(facts), address) for address, facts in sorted(self._facts.items()))
        problems = [f"{address}: {why}" for address, why in sorted(self._misfits.items()) if address in self._here]
        if len(engines) > 1:
            for alike in engines.values():
                version, fingerprint = self._facts[alike[0]].version, self._facts[alike[0]].fingerprint[:12]
                problems.append(f"{shortly(alike)}: the engine's version is {version}, its fingerprint {fingerprint}")
        if problems:
            raise InputError(
                "workers of the cluster do not fit this evaluation:\n  " + "\n  ".join(problems),
                remedy="Install the same harness and engines on all workers, and give them the same folders",
            )
        if len({facts.settings for facts in self._facts.values()}) > 1:
            self._told("workers differ in settings that do not change results; the log names those of the first")


class _ClusterRun:
    """A run once the workers are known."""

    def __init__(
        self,
        workers: ClusterWorkers,
        files: Sequence[ListedFile],
        journal: Journal,
        on_outcome: OnOutcome | None,
        told: Callable[[str], None],
        task_s: float,
    ) -> None:
        self._workers, self._files = workers, files
        self._journal, self._on_outcome, self._told = journal, on_outcome, told
        self._due = due_of(files, journal.before)
        self._left = int(np.count_nonzero(self._due))
        self._cutting = Cutting(files, self._due, task_s)
        self._again: deque[TaskPiece] = deque()
        self.used = WorkerUse()
        self.pace = RunPace(self._left, time.monotonic())

    def play(self, stop: threading.Event, on_progress: Callable[[RunProgress], None]) -> bool:
        """Plays until every file has its outcome. Whether it was stopped before."""
        stopped_s: float | None = None
        shown_s = time.monotonic()
        while self._left:
            if stop.is_set() and stopped_s is None:
                stopped_s = time.monotonic()
                self._workers.dismiss()
            if stopped_s is None:
                self._send()
            elif not self._workers.in_flight or time.monotonic() - stopped_s > GRACE_S:
                self.pace.partial = True
                break
            for piece, answer in self._workers.turn():
                self._answered(piece, answer)
            self._journal.tick()
            if time.monotonic() - shown_s >= TICK_S:
                shown_s = time.monotonic()
                self._show(on_progress)
        self._show(on_progress)
        return self.pace.partial

    def _send(self) -> None:
        slots = self._workers.slots
        while (in_flight := self._workers.in_flight) < AHEAD * slots:
            piece = self._again.popleft() if self._again else self._cutting.next(slots, in_flight)
            if piece is None:
                return
            self._workers.submit(piece, (self._files[position] for position in piece.positions))

    def _answered(self, piece: TaskPiece, answer: dict[str, Any]) -> None:
        for why in answer.get("lost", ()):
            self._journal.lost(why)
        if "killed" in answer:
            self._killed(piece, answer["killed"])
            return
        self.used = WorkerUse.of_all([self.used, WorkerUse(host=tuple(map(tuple, answer.get("host", ()))))])
        places = {(self._files[position].kind, self._files[position].number): position for position in piece.positions}
        outcomes = []
        for line in answer.get("lines", b"").splitlines(keepends=True):
            outcome = outcome_of(line).outcome
            outcomes.append((places.pop((outcome.kind, outcome.number)), outcome, line))
        self._take(outcomes)
        if places:
            self._again.append(replace(piece, positions=tuple(places.values())))

    def _killed(self, piece: TaskPiece, words: str) -> None:
        names = [self._files[position].listed for position in piece.positions]
        self._journal.lost(f"workers of the cluster ended {words} while playing {shortly(names)}")
        if self._cutting.suspect(piece):
            then = "the files are tried one by one" if len(names) > 1 else "the file is tried again alone"
            self._told(f"workers ended {words} while playing {shortly(names)}; {then}")
            return
        self._told(f"{names[0]} is rejected: workers ended each time that they played it")
        file = self._files[piece.positions[0]]
        outcome = file.outcome_rejected(
            RejectReason.CRASH,
            error=f"workers of the cluster ended while playing it, {words} in each of {ATTEMPTS} tasks",
        )
        self._take([(piece.positions[0], outcome, outcome_line(outcome, file.listed))])

    def _take(self, answers: Sequence[tuple[int, FileOutcome, bytes]]) -> None:
        fresh = [answer for answer in answers if self._due[answer[0]]]
        if not fresh:
            return
        self._journal.append_lines(b"".join(line for _, _, line in fresh))
        for position, outcome, _ in fresh:
            self._due[position] = False
            self._left -= 1
            self._workers.proven |= outcome.rejected is None
            self._cutting.waiting.finished(position)
            self.pace.count(outcome)
            if self._on_outcome is not None:
                self._on_outcome(outcome, self._files[position])

    def _show(self, on_progress: Callable[[RunProgress], None]) -> None:
        waiting = self._cutting.waiting
        share_done = min(1.0, waiting.done_s / waiting.total_s) if waiting.total_s else None
        on_progress(self.pace.snapshot(time.monotonic(), share_done, self._workers.slots))
