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
    encode_frame,
)

_MODULE = "harness.offline.worker"
_MAX_OUTPUT_BYTES = 2000
"""What a worker printed is kept up to this length: enough for its last line."""
_KILL_WAIT_S = 10.0
_PIECE = 1 << 18
"""Most bytes that are read or written at once."""


class WorkerState(Enum):
    """LOADING its engine, READY for files, or GONE."""

    LOADING = "loading"
    READY = "ready"
    GONE = "gone"


class WorkerProcess:
    """A worker, as a child process in its own process group. What its engine prints does not reach our streams; the
    last line of it appears in errors.

    - unanswered: positions of the files that it has been given and has not answered, in their order.
    - file_since_s: when it began the current file, or was started.
    - busy_since_s: since when it has worked on the files whose time is not measured yet.
    - begun, answered: numbers of files that it has begun, and that it has answered.
    - plays_sequence: whether it plays a sequence in which the engine's state is carried over.
    - tasks_fd, answers_fd, output_fd: descriptors of the pipes to it, from it, and of what it prints.
    """

    def __init__(self, evaluation: Evaluation, *, nice: int, now_s: float) -> None:
        self.state = WorkerState.LOADING
        self.unanswered: deque[int] = deque()
        self.file_since_s = self.busy_since_s = now_s
        self.begun = 0
        self.answered = 0
        self.plays_sequence = False
        self.used = WorkerUse()
        self._last_output = b""
        self._frames = WorkerFrames()
        self._out = bytearray(
            encode_frame(WorkerFrame.EVALUATION, json.dumps(to_plain(evaluation, sparse=True)).encode())
        )
        memory = os.memfd_create("begun")
        tasks, self.tasks_fd = os.pipe()
        self.answers_fd, answers = os.pipe()
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
            os.close(self.tasks_fd)
            os.close(self.answers_fd)
            raise
        finally:
            for descriptor in (tasks, answers, memory):
                os.close(descriptor)
        self.output_fd = self._child.stdout.fileno()
        for descriptor in (self.tasks_fd, self.answers_fd, self.output_fd):
            os.set_blocking(descriptor, False)

    @property
    def exited(self) -> bool:
        return not self._child.alive

    @property
    def has_pending_output(self) -> bool:
        return bool(self._out)

    @property
    def current_position(self) -> int | None:
        """Position of the file that it is playing, or was playing when it ended; None between files."""
        index = self.begun - self.answered - 1
        return self.unanswered[index] if 0 <= index < len(self.unanswered) else None

    def queue_files(self, files: Mapping[int, ListedFile], now_s: float) -> None:
        """Queues a message with files, by their positions. `write_pending` sends it."""
        if not self.unanswered:
            self.file_since_s = self.busy_since_s = now_s
        self.unanswered.extend(files)
        self._out += encode_frame(WorkerFrame.FILES, encode_files(files.values()))

    def queue_end_of_sequence(self) -> None:
        self._out += encode_frame(WorkerFrame.END_OF_SEQUENCE)

    def update_begun(self, now_s: float) -> None:
        """Reads the number of files begun from the shared memory."""
        count: int = BEGUN.unpack_from(self._memory, 0)[0]
        if count != self.begun:
            self.begun, self.file_since_s = count, now_s

    def write_pending(self) -> None:
        """Writes as much of the queued messages as the pipe takes. A dead worker is noticed when its answers end."""
        try:
            sent = os.write(self.tasks_fd, memoryview(self._out)[:_PIECE].tobytes())
        except BlockingIOError:
            return
        except OSError:
            self._out.clear()
            return
        del self._out[:sent]

    def read_messages(self) -> list[tuple[WorkerFrame, bytes]] | None:
        """Messages that have arrived; None if the pipe has ended. Raises ValueError for invalid messages."""
        try:
            piece = os.read(self.answers_fd, _PIECE)
        except BlockingIOError:
            return []
        return list(self._frames.feed(piece)) if piece else None

    def read_output(self) -> bool:
        """Reads what the engine printed. Returns whether there may be more."""
        try:
            piece = os.read(self.output_fd, _PIECE)
        except BlockingIOError:
            return False
        self._last_output = (self._last_output + piece)[-_MAX_OUTPUT_BYTES:]
        return bool(piece)

    def end(self, ending: str = "") -> str:
        """Kills what is left of the worker. Returns how it ended, with the last line that it printed. ending: how it
        ended, if the caller knows; else this follows from its exit status."""
        self.state = WorkerState.GONE
        status = self._child.status
        self._child.kill()
        self._child.wait(_KILL_WAIT_S)
        while self.read_output():
            pass
        self._child.end()
        self.close_input()
        os.close(self.answers_fd)
        self._memory.close()
        printed_line = last_line(self._last_output)
        if not ending:
            ending = "was ended" if status is None else ended_words(status)
        return f"{ending}: {printed_line}" if printed_line else ending

    def close_input(self) -> None:
        """Lets it finish its files and exit."""
        if self.tasks_fd >= 0:
            os.close(self.tasks_fd)
            self.tasks_fd = -1

    def wait(self, limit_s: float) -> None:
        """Waits at most limit_s until its process has ended."""
        self._child.wait(limit_s)


MAX_FAILED_STARTS = 3
"""The run ends after this many workers in a row ended before their engine was loaded."""
HANG_FACTOR = 20.0
"""A file counts as hanging after this many times its expected time plus `hang_after_s`."""
EXIT_WAIT_S = 2.0
"""Longest wait for a worker that ends by itself."""


@frozen
class WorkerLimits:
    """Limits on the workers.

    - hang_after_s: time allowed for a file beyond what its length explains.
    - load_within_s: time allowed for an engine to load.
    - nice: number that is added to the workers' niceness, which lowers their priority.
    """

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
    """A worker that has ended.

    - suspect: position of the file that it was playing; None if it was playing none.
    - others: positions of the other files that it had been given.
    - reason: why the suspect is rejected if this happens with each attempt.
    - why: how it ended, in words.
    """

    worker: WorkerProcess
    suspect: int | None
    others: tuple[int, ...]
    reason: RejectReason
    why: str


class _Pipe(Enum):
    """The pipes of a worker: its answers, what it prints, and its tasks."""

    ANSWERS = "answers"
    OUTPUT = "output"
    TASKS = "tasks"


class WorkerPool:
    """The workers of a run. Its loop calls `step` repeatedly and handles what that returns.

    - workers: those that have not ended.
    - facts: of their engine; None until the first worker has loaded it.
    - report_line: takes lines for people.
    """

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
        self._files_answered = 0
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
        """Files per second of working time of one worker; 0 before anything was measured."""
        return self._files_answered / self._busy_s if self._busy_s > 0 else 0.0

    @property
    def used(self) -> WorkerUse:
        """What the workers have used, also those that have ended."""
        return WorkerUse.of_all([self._used, *(worker.used for worker in self.workers)])

    def send_files(self, worker: WorkerProcess, files: Mapping[int, ListedFile], *, last: bool = False) -> None:
        """Sends a worker files, by their positions. last: whether these are the last files of its sequence."""
        worker.queue_files(files, self._now_s())
        if last:
            worker.queue_end_of_sequence()
        self._write(worker)

    def step(self, wait_s: float, rough_s: Callable[[int], float]) -> list[FilesAnswered | LostWorker]:
        """Waits up to wait_s; returns the events of that time. EngineError, or the engine's own error, if no worker can
        be started. rough_s: the rough length of the file at a position, in seconds."""
        events: list[FilesAnswered | LostWorker] = []
        for key, _ in self._selector.select(wait_s):
            worker, pipe = key.data
            if worker.state is WorkerState.GONE:  # lost by an earlier event of this round
                continue
            match pipe:
                case _Pipe.ANSWERS:
                    events += self._read_messages(worker)
                case _Pipe.OUTPUT if not worker.read_output():
                    self._unregister(worker.output_fd)
                case _Pipe.TASKS:
                    self._write(worker)
        now_s = self._now_s()
        for worker in list(self.workers):
            worker.update_begun(now_s)
            if worker.exited:
                events += self._drain_exited(worker)
            elif self._is_late(worker, now_s, rough_s):
                events.append(self._replace_lost(worker, RejectReason.HANG, "did not answer in time"))
        return events

    def close(self, *, at_once: bool) -> None:
        """Ends all workers. Unless at_once, they have 2 s to release their resources."""
        if not at_once:
            until_s = self._now_s() + EXIT_WAIT_S
            for worker in self.workers:
                self._unregister(worker.tasks_fd)
                worker.close_input()
            for worker in self.workers:
                worker.wait(until_s - self._now_s())
        for worker in self.workers:
            worker.end()
        self.workers.clear()
        self._selector.close()

    def _start(self) -> None:
        worker = WorkerProcess(self._evaluation, nice=self._limits.nice, now_s=self._now_s())
        self.workers.append(worker)
        self._selector.register(worker.answers_fd, selectors.EVENT_READ, (worker, _Pipe.ANSWERS))
        self._selector.register(worker.output_fd, selectors.EVENT_READ, (worker, _Pipe.OUTPUT))
        self._write(worker)

    def _write(self, worker: WorkerProcess) -> None:
        """Writes what the pipe takes. If messages are left, `step` continues when the pipe has room again."""
        worker.write_pending()
        registered = worker.tasks_fd in self._selector.get_map()
        if worker.has_pending_output and not registered:
            self._selector.register(worker.tasks_fd, selectors.EVENT_WRITE, (worker, _Pipe.TASKS))
        elif registered and not worker.has_pending_output:
            self._selector.unregister(worker.tasks_fd)

    def _unregister(self, descriptor: int) -> None:
        if descriptor in self._selector.get_map():
            self._selector.unregister(descriptor)

    def _read_messages(self, worker: WorkerProcess) -> list[FilesAnswered | LostWorker]:
        """Handles the messages of a worker that have arrived. Its loss is an event if its pipe has ended, or a
        message is invalid."""
        events: list[FilesAnswered | LostWorker] = []
        # Before the answers are read: they may be of files that were begun only now.
        worker.update_begun(self._now_s())
        try:
            frames = worker.read_messages()
            if frames is None:
                # The pipe closes before the process ends. Wait for the end, since its status goes into the report.
                worker.wait(EXIT_WAIT_S)
                return [self._replace_lost(worker, RejectReason.CRASH)]
            for kind, content in frames:
                events += self._handle_message(worker, kind, content)
        except ValueError as error:
            events.append(self._replace_lost(worker, RejectReason.CRASH, f"sent an invalid answer: {error}"))
        return events

    def _drain_exited(self, worker: WorkerProcess) -> list[FilesAnswered | LostWorker]:
        """The last messages of a worker that has ended, and its loss. Needed since its own children may keep its pipe
        open, so that the pipe does not end."""
        events = self._read_messages(worker)
        if worker not in self.workers:  # its pipe had ended, so `_read_messages` has reported the loss
            return events
        return [*events, self._replace_lost(worker, RejectReason.CRASH)]

    def _handle_message(
        self, worker: WorkerProcess, kind: WorkerFrame, content: bytes
    ) -> list[FilesAnswered | LostWorker]:
        """Handles one message of a worker; returns its event, if it is one.

        Raises ValueError for an invalid message.
        """
        match kind:
            case WorkerFrame.READY:
                self.facts = self.facts or from_plain(EngineFacts, json.loads(content))
                worker.state = WorkerState.READY
                self._failed_starts = 0
            case WorkerFrame.REFUSED:
                self._handle_refusal(worker, _decode_error(content))
            case WorkerFrame.LINE:
                self.report_line(content.decode("utf-8", "replace"))
            case WorkerFrame.USED:
                worker.used = from_plain(WorkerUse, json.loads(content))
            case WorkerFrame.OUTCOMES:
                return [self._match_answers(worker, decode_answers(content))]
            case _:
                raise ValueError(f"a frame {kind}")
        return []

    def _match_answers(self, worker: WorkerProcess, answers: Sequence[FileAnswer]) -> FilesAnswered:
        """Pairs answers with the positions of their files, and adds them to the measured speed."""
        if len(answers) > len(worker.unanswered):
            raise ValueError(f"{len(answers)} outcomes for {counted(len(worker.unanswered), 'file')}")
        now_s = self._now_s()
        worker.answered += len(answers)
        self._files_answered += len(answers)
        self._played_s += sum(answer.seconds for answer in answers)
        self._busy_s += now_s - worker.busy_since_s
        worker.busy_since_s = now_s
        return FilesAnswered(worker, [(worker.unanswered.popleft(), answer) for answer in answers])

    def _is_late(self, worker: WorkerProcess, now_s: float, rough_s: Callable[[int], float]) -> bool:
        """Whether the worker has needed longer to load, or for its file, than its limits allow."""
        taken_s = now_s - worker.file_since_s
        if worker.state is WorkerState.LOADING:
            return taken_s > self._limits.load_within_s
        if not worker.unanswered:
            return False
        position = worker.current_position
        length_s = rough_s(worker.unanswered[0] if position is None else position)
        return taken_s > self._limits.hang_after_s + HANG_FACTOR * length_s / (self.speed or 1.0)

    def _replace_lost(self, worker: WorkerProcess, reason: RejectReason, ending: str = "") -> LostWorker:
        """Ends a worker and starts another one.

        Raises EngineError if no worker can be started. ending: how it ended, if that is known.
        """
        suspect = worker.current_position
        if worker.state is not WorkerState.READY:
            return self._failed_start(worker, reason, ending)
        why = self._end(worker, ending)
        self._start()
        other_positions = tuple(position for position in worker.unanswered if position != suspect)
        return LostWorker(worker, suspect, other_positions, reason, why)

    def _failed_start(self, worker: WorkerProcess, reason: RejectReason, ending: str) -> LostWorker:
        """A worker ended before its engine was loaded. Another is tried, up to a limit."""
        why = self._end(worker, ending)
        self._failed_starts += 1
        if (self._failed_starts >= MAX_FAILED_STARTS and not self.workers) or self.facts is None:
            raise EngineError(
                f"the engine of {self._evaluation.task.name} cannot be loaded: its process {why}",
                remedy="Try the engine on a single file; `harness evaluate engines` lists its requirements",
            )
        if self._failed_starts < MAX_FAILED_STARTS:
            self._start()
        else:
            self.report_line(f"continuing with {counted(len(self.workers), 'worker')}")
        return LostWorker(worker, None, (), reason, f"{why} while its engine loaded")

    def _handle_refusal(self, worker: WorkerProcess, error: HarnessError) -> None:
        """If an engine does not load, the run ends unless other workers are left. Later errors always end it."""
        loading = worker.state is WorkerState.LOADING
        self._end(worker, "")
        if self.facts is None or not self.workers or not loading:
            raise error
        name = self._evaluation.task.name
        self.report_line(
            f"a worker could not load {name}; continuing with {counted(len(self.workers), 'worker')}: {error}"
        )

    def _end(self, worker: WorkerProcess, ending: str) -> str:
        """Ends a worker and removes it. Returns how it ended, in words."""
        for descriptor in (worker.answers_fd, worker.output_fd, worker.tasks_fd):
            self._unregister(descriptor)
        self.workers.remove(worker)
        self._used = WorkerUse.of_all([self._used, worker.used])
        return worker.end(ending)


def _decode_error(content: bytes) -> HarnessError:
    """The error in a REFUSED message. One of an unknown type becomes an EngineError."""
    name, problem, remedy = json.loads(content)
    kind = getattr(errors, name, EngineError)
    if not (isinstance(kind, type) and issubclass(kind, HarnessError)) or kind is errors.InputProblems:
        kind = EngineError
    error: HarnessError = kind(problem, remedy=remedy)
    return error
