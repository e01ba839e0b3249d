"""The worker processes of a run: started, watched, and replaced if they crash or hang."""

from __future__ import annotations

import json
import mmap
import os
import selectors
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from harness.base.child_process import ChildProcess, ended_words, last_line, python_command
from harness.base.plain_json import from_plain, to_plain
from harness.model import errors
from harness.model.choices import HANG_AFTER_S
from harness.model.errors import EngineError, HarnessError
from harness.model.frozen import frozen
from harness.model.numbers import counted
from harness.model.offline import EngineFacts, Evaluation, ListedFile, RejectReason
from harness.offline.journal_lines import WorkerUse
from harness.offline.messages import (
    BEGUN,
    ONE_THREAD,
    FileAnswer,
    WorkerFrame,
    WorkerFrames,
    decode_answers,
    encode_files,
    framed,
)

_MODULE = "harness.offline.worker"
_LAST_WORDS = 2000
_KILLED_WITHIN_S = 10.0
_PIECE = 1 << 18


class WorkerState(Enum):
    """LOADING its engine, READY for files, or GONE."""

    LOADING = "loading"
    READY = "ready"
    GONE = "gone"


class WorkerProcess:
    """A worker, as a child process in its own process group. What its engine prints does not reach our streams; the
    last line of it appears in errors.

    standing: its state. hands: positions of the files that it has been given and has not answered. begun, answered:
    numbers of files that it has begun, and that it has answered. sequence: whether it plays a sequence in which the
    engine's state is carried over.
    """

    def __init__(self, evaluation: Evaluation, *, nice: int, now_s: float) -> None:
        self.standing = WorkerState.LOADING
        self.hands: deque[int] = deque()
        self.since_s = self.busy_since_s = now_s
        self.begun = 0
        self.answered = 0
        self.sequence = False
        self.used = WorkerUse()
        self._last_output = b""
        self._frames = WorkerFrames()
        self._out = bytearray(framed(WorkerFrame.EVALUATION, json.dumps(to_plain(evaluation, sparse=True)).encode()))
        memory = os.memfd_create("begun")
        tasks, self.tasks = os.pipe()
        self.answers, answers = os.pipe()
        try:
            os.ftruncate(memory, BEGUN.size)
            self._memory = mmap.mmap(memory, BEGUN.size)
            arguments = [str(number) for number in (tasks, answers, memory, os.getpid(), nice)]
            self._child = ChildProcess(
                python_command(_MODULE, *arguments),
                stdin=subprocess.DEVNULL,
                stderr=subprocess.STDOUT,
                environment={**dict.fromkeys(ONE_THREAD, "1"), **os.environ},
                pass_fds=(tasks, answers, memory),
            )
        except BaseException:
            os.close(self.tasks)
            os.close(self.answers)
            raise
        finally:
            for descriptor in (tasks, answers, memory):
                os.close(descriptor)
        self.words = self._child.stdout.fileno()
        for descriptor in (self.tasks, self.answers, self.words):
            os.set_blocking(descriptor, False)

    @property
    def exited(self) -> bool:
        return not self._child.alive

    @property
    def wants_writing(self) -> bool:
        return bool(self._out)

    @property
    def current_position(self) -> int | None:
        """Position of the file that it is playing, or was playing when it ended; None between files."""
        place = self.begun - self.answered - 1
        return self.hands[place] if 0 <= place < len(self.hands) else None

    def give(self, files: Mapping[int, ListedFile], now_s: float) -> None:
        if not self.hands:
            self.since_s = self.busy_since_s = now_s
        self.hands.extend(files)
        self._out += framed(WorkerFrame.FILES, encode_files(files.values()))

    def end_sequence(self) -> None:
        self._out += framed(WorkerFrame.END_OF_SEQUENCE)

    def look(self, now_s: float) -> None:
        count: int = BEGUN.unpack_from(self._memory, 0)[0]
        if count != self.begun:
            self.begun, self.since_s = count, now_s

    def write(self) -> None:
        """Writes as much as the pipe takes. A dead worker is noticed when its answers end."""
        try:
            sent = os.write(self.tasks, memoryview(self._out)[:_PIECE].tobytes())
        except BlockingIOError:
            return
        except OSError:
            self._out.clear()
            return
        del self._out[:sent]

    def read(self) -> list[tuple[WorkerFrame, bytes]] | None:
        """Messages that have arrived; None if the pipe has ended. ValueError for invalid messages."""
        try:
            piece = os.read(self.answers, _PIECE)
        except BlockingIOError:
            return []
        return list(self._frames.feed(piece)) if piece else None

    def read_words(self) -> bool:
        """Reads what the engine printed. Returns whether there may be more."""
        try:
            piece = os.read(self.words, _PIECE)
        except BlockingIOError:
            return False
        self._last_output = (self._last_output + piece)[-_LAST_WORDS:]
        return bool(piece)

    def ended(self, ending: str = "") -> str:
        """Kills what is left of the worker. Returns how it ended, with the last line that it printed."""
        self.standing = WorkerState.GONE
        status = self._child.status
        self._child.kill()
        self._child.wait(_KILLED_WITHIN_S)
        while self.read_words():
            pass
        self._child.end()
        self.close_input()
        os.close(self.answers)
        self._memory.close()
        words = last_line(self._last_output)
        if not ending:
            ending = "was ended" if status is None else ended_words(status)
        return f"{ending}: {words}" if words else ending

    def close_input(self) -> None:
        """Lets it finish its files and exit."""
        if self.tasks >= 0:
            os.close(self.tasks)
            self.tasks = -1

    def wait(self, limit_s: float) -> None:
        self._child.wait(limit_s)


STARTS = 3
"""The run ends after this many workers in a row ended before their engine was loaded."""
SLOWER = 20.0
"""A file counts as hanging after this many times its expected time plus `hang_after_s`."""
END_S = 2.0


@frozen
class WorkerLimits:
    """Limits on the workers. hang_after_s: time allowed for a file beyond what its length explains. load_within_s: time
    allowed for an engine to load. nice: number that is added to the workers' niceness, which lowers their priority."""

    hang_after_s: float = HANG_AFTER_S
    load_within_s: float = 300.0
    nice: int = 5


@frozen
class FilesAnswered:
    """Outcomes of some files, each by its position in the run."""

    worker: WorkerProcess
    answers: Sequence[tuple[int, FileAnswer]]


@frozen
class LostWorker:
    """A worker that has ended. guilty: position of the file that it was playing; None if it was playing none. others:
    positions of the other files that it had been given. why: how it ended, in words."""

    worker: WorkerProcess
    guilty: int | None
    others: tuple[int, ...]
    reason: RejectReason
    why: str


class _Pipe(Enum):
    ANSWERS = "answers"
    WORDS = "words"
    TASKS = "tasks"


class WorkerPool:
    """The workers of a run. Its loop calls `step` repeatedly and handles what that returns."""

    def __init__(
        self,
        evaluation: Evaluation,
        jobs: int,
        limits: WorkerLimits,
        *,
        now_s: Callable[[], float],
        report_line: Callable[[str], None],
    ) -> None:
        self._evaluation = evaluation
        self._limits = limits
        self._now_s = now_s
        self.report_line = report_line
        self._selector = selectors.DefaultSelector()
        self._failed_starts = 0
        self._busy_s = self._played_s = 0.0
        self._answers = 0
        self.workers: list[WorkerProcess] = []
        self.facts: EngineFacts | None = None
        self._used = WorkerUse()
        try:
            for _ in range(jobs):
                self._start()
        except BaseException:
            self.close(at_once=True)
            raise

    @property
    def speed(self) -> float | None:
        """Audio time over working time of one worker; None before anything was measured."""
        return self._played_s / self._busy_s if self._busy_s > 0 and self._played_s else None

    @property
    def files_per_s(self) -> float:
        return self._answers / self._busy_s if self._busy_s > 0 else 0.0

    @property
    def used(self) -> WorkerUse:
        """What the workers have used, also those that have ended."""
        return WorkerUse.of_all([self._used, *(worker.used for worker in self.workers)])

    def give(self, worker: WorkerProcess, files: Mapping[int, ListedFile], *, last: bool = False) -> None:
        """Gives a worker files, by their positions. last: whether these are the last files of its sequence."""
        worker.give(files, self._now_s())
        if last:
            worker.end_sequence()
        self._write(worker)

    def step(self, wait_s: float, rough_s: Callable[[int], float]) -> list[FilesAnswered | LostWorker]:
        """Waits up to wait_s; returns the events of that time. EngineError, or the engine's own error, if no worker can
        be started. rough_s: the rough length of the file at a position, in seconds."""
        happened: list[FilesAnswered | LostWorker] = []
        for key, _ in self._selector.select(wait_s):
            worker, pipe = key.data
            if worker.standing is WorkerState.GONE:  # lost by an earlier event of this round
                continue
            match pipe:
                case _Pipe.ANSWERS:
                    happened += self._read(worker)
                case _Pipe.WORDS if not worker.read_words():
                    self._forget(worker.words)
                case _Pipe.TASKS:
                    self._write(worker)
        now_s = self._now_s()
        for worker in list(self.workers):
            worker.look(now_s)
            if worker.exited:
                happened += self._drain_exited(worker)
            elif self._late(worker, now_s, rough_s):
                happened.append(self._lose(worker, RejectReason.HANG, "did not answer in time"))
        return happened

    def close(self, *, at_once: bool) -> None:
        """Ends all workers. Unless at_once, they have 2 s to release their resources."""
        if not at_once:
            until_s = self._now_s() + END_S
            for worker in self.workers:
                self._forget(worker.tasks)
                worker.close_input()
            for worker in self.workers:
                worker.wait(until_s - self._now_s())
        for worker in self.workers:
            worker.ended()
        self.workers.clear()
        self._selector.close()

    def _start(self) -> None:
        worker = WorkerProcess(self._evaluation, nice=self._limits.nice, now_s=self._now_s())
        self.workers.append(worker)
        self._selector.register(worker.answers, selectors.EVENT_READ, (worker, _Pipe.ANSWERS))
        self._selector.register(worker.words, selectors.EVENT_READ, (worker, _Pipe.WORDS))
        self._write(worker)

    def _write(self, worker: WorkerProcess) -> None:
        worker.write()
        registered = worker.tasks in self._selector.get_map()
        if worker.wants_writing and not registered:
            self._selector.register(worker.tasks, selectors.EVENT_WRITE, (worker, _Pipe.TASKS))
        elif registered and not worker.wants_writing:
            self._selector.unregister(worker.tasks)

    def _forget(self, descriptor: int) -> None:
        if descriptor in self._selector.get_map():
            self._selector.unregister(descriptor)

    def _read(self, worker: WorkerProcess) -> list[FilesAnswered | LostWorker]:
        happened: list[FilesAnswered | LostWorker] = []
        worker.look(self._now_s())
        try:
            frames = worker.read()
            if frames is None:
                # The pipe closes before the process ends. Wait for the end, since its status goes into the report.
                worker.wait(END_S)
                return [self._lose(worker, RejectReason.CRASH)]
            for kind, content in frames:
                happened += self._take(worker, kind, content)
        except ValueError as error:
            happened.append(self._lose(worker, RejectReason.CRASH, f"sent an invalid answer: {error}"))
        return happened

    def _drain_exited(self, worker: WorkerProcess) -> list[FilesAnswered | LostWorker]:
        """The last messages of a worker that has ended, and its loss. Needed since its own children may keep its pipe
        open, so that the pipe does not end."""
        happened = self._read(worker)
        if worker not in self.workers:  # its pipe had ended, so `_read` has reported the loss
            return happened
        return [*happened, self._lose(worker, RejectReason.CRASH)]

    def _take(self, worker: WorkerProcess, kind: WorkerFrame, content: bytes) -> list[FilesAnswered | LostWorker]:
        match kind:
            case WorkerFrame.READY:
                self.facts = self.facts or from_plain(EngineFacts, json.loads(content))
                worker.standing = WorkerState.READY
                self._failed_starts = 0
            case WorkerFrame.REFUSED:
                self._refused(worker, _error(content))
            case WorkerFrame.TOLD:
                self.report_line(content.decode("utf-8", "replace"))
            case WorkerFrame.USED:
                worker.used = from_plain(WorkerUse, json.loads(content))
            case WorkerFrame.OUTCOMES:
                return [self._outcomes(worker, decode_answers(content))]
            case _:
                raise ValueError(f"a frame {kind}")
        return []

    def _outcomes(self, worker: WorkerProcess, answers: Sequence[FileAnswer]) -> FilesAnswered:
        if len(answers) > len(worker.hands):
            raise ValueError("an outcome of a file that it does not have")
        now_s = self._now_s()
        worker.answered += len(answers)
        self._answers += len(answers)
        self._played_s += sum(answer.seconds for answer in answers)
        self._busy_s += now_s - worker.busy_since_s
        worker.busy_since_s = now_s
        return FilesAnswered(worker, [(worker.hands.popleft(), answer) for answer in answers])

    def _late(self, worker: WorkerProcess, now_s: float, rough_s: Callable[[int], float]) -> bool:
        taken_s = now_s - worker.since_s
        if worker.standing is WorkerState.LOADING:
            return taken_s > self._limits.load_within_s
        if not worker.hands:
            return False
        position = worker.current_position
        length_s = rough_s(worker.hands[0] if position is None else position)
        return taken_s > self._limits.hang_after_s + SLOWER * length_s / (self.speed or 1.0)

    def _lose(self, worker: WorkerProcess, reason: RejectReason, ending: str = "") -> LostWorker:
        guilty = worker.current_position
        if worker.standing is not WorkerState.READY:
            return self._failed_start(worker, reason, ending)
        why = self._end(worker, ending)
        self._start()
        other_positions = tuple(position for position in worker.hands if position != guilty)
        return LostWorker(worker, guilty, other_positions, reason, why)

    def _failed_start(self, worker: WorkerProcess, reason: RejectReason, ending: str) -> LostWorker:
        """A worker ended before its engine was loaded. Another is tried, up to a limit."""
        why = self._end(worker, ending)
        self._failed_starts += 1
        if (self._failed_starts >= STARTS and not self.workers) or self.facts is None:
            raise EngineError(
                f"the engine of {self._evaluation.task.name} cannot be loaded: its process {why}",
                remedy="Try it on one file; `harness evaluate engines` lists its requirements",
            )
        if self._failed_starts < STARTS:
            self._start()
        else:
            self.report_line(f"continuing with {counted(len(self.workers), 'worker')}")
        return LostWorker(worker, None, (), reason, f"{why} while its engine loaded")

    def _refused(self, worker: WorkerProcess, error: HarnessError) -> None:
        """If an engine does not load, the run ends unless other workers are left. Later errors always end it."""
        loading = worker.standing is WorkerState.LOADING
        self._end(worker, "")
        if self.facts is None or not self.workers or not loading:
            raise error
        name = self._evaluation.task.name
        self.report_line(
            f"a worker could not load {name}, continuing with {counted(len(self.workers), 'worker')}: {error}"
        )

    def _end(self, worker: WorkerProcess, ending: str) -> str:
        for descriptor in (worker.answers, worker.words, worker.tasks):
            self._forget(descriptor)
        self.workers.remove(worker)
        self._used = WorkerUse.of_all([self._used, worker.used])
        return worker.ended(ending)


def _error(content: bytes) -> HarnessError:
    name, problem, remedy = json.loads(content)
    kind = getattr(errors, name, EngineError)
    if not (isinstance(kind, type) and issubclass(kind, HarnessError)) or kind is errors.InputProblems:
        kind = EngineError
    error: HarnessError = kind(problem, remedy=remedy)
    return error
