"""A worker process of an offline run: `python -m harness.offline.worker TASKS ANSWERS BEGUN PARENT NICE`.

Files arrive in batches on one pipe. Outcomes return on another, in the order of the files. Shared memory holds the
number of files begun, which shows after a crash which file was playing. The worker ends when its pipe closes.

TASKS, ANSWERS and BEGUN are file descriptors: two pipes and the shared memory. PARENT is a process id.
"""

from __future__ import annotations

import ctypes
import gc
import json
import mmap
import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.base.foreign import plain_text
from harness.base.garbage_collection import collect_rarely
from harness.base.plain_json import from_plain, to_plain
from harness.base.processor import host_facts
from harness.engines.offline_loading import load_engine
from harness.model.errors import HarnessError
from harness.model.offline import Evaluation, FileOutcome, ListedFile, ListKind
from harness.offline.messages import (
    BEGUN,
    FileAnswer,
    WorkerFrame,
    WorkerFrames,
    decode_files,
    encode_answers,
    encode_frame,
    resource_use,
)
from harness.offline.one_file import FilePlayer
from harness.offline.score_cache import ScoreCache

if TYPE_CHECKING:
    from harness.offline.continuous import ContinuousListening

FLUSH_S = 0.2
"""Interval at which outcomes are sent, checked after each file. A message for each would take most of the time of a
short file. Making the journal's lines together also takes half the time, since it evicts the engine from the
processor's caches less often."""
_PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>


class Worker:
    """Plays files with the engine, and sends their outcomes to the run.

    - answers_fd: descriptor of the pipe for messages.
    - counter: shared memory, see `BEGUN`.
    """

    def __init__(self, answers_fd: int, counter: mmap.mmap, evaluation: Evaluation) -> None:
        self._answers_fd, self._begun_counter, self._evaluation = answers_fd, counter, evaluation
        self._begun_count = 0
        self._current_file = ""
        self._engine = load_engine(evaluation.task)
        is_cached = evaluation.cache and not self._engine.facts.carries_state
        cache = ScoreCache(evaluation.cache, self._report_line) if is_cached else None
        self._player = FilePlayer(self._engine, evaluation, cache)
        self._host = host_facts()  # after the engine was loaded, since that may set the number of threads
        self._waiting: list[tuple[FileOutcome, str]] = []
        self._flushed_s = time.monotonic()
        self._sequence: ContinuousListening | None = None
        self._listed_names: dict[int, str] = {}
        self._send(WorkerFrame.READY, json.dumps(to_plain(self._engine.facts)).encode())

    def play(self, files: Iterable[ListedFile]) -> None:
        """Plays files in their order, and sends their outcomes. Out-of-vocabulary files are one sound with
        --continuous."""
        for file in files:
            self._begun_count += 1
            BEGUN.pack_into(self._begun_counter, 0, self._begun_count)
            self._current_file = file.listed
            if self._evaluation.continuous and file.kind is ListKind.OOV:
                if self._sequence is None:
                    from harness.offline.continuous import ContinuousListening  # imported here, since it is rarely used

                    self._sequence = ContinuousListening(self._engine, self._evaluation)
                self._listed_names[file.number] = file.listed
                self._answer_sequence(self._sequence.play_file(file))
            else:
                self._answer(self._player.play(file), file.listed)
        self.flush()

    def end_sequence(self) -> None:
        """Ends the continuous sound, and sends the outcomes that its last files still lack."""
        if self._sequence is not None:
            self._answer_sequence(self._sequence.finish())
            self._sequence = None
        self.flush()

    def flush(self) -> None:
        """Sends the outcomes that wait, preceded by the resources used so far."""
        if self._waiting:
            used = resource_use(self._player.cached_s, self._player.cached_files, self._host)
            self._send(WorkerFrame.USED, json.dumps(to_plain(used)).encode())
            answers = [FileAnswer.of(outcome, name) for outcome, name in self._waiting]
            self._send(WorkerFrame.OUTCOMES, encode_answers(answers))
            self._waiting.clear()
        self._flushed_s = time.monotonic()

    def close(self) -> None:
        self._engine.close()

    @property
    def progress_prefix(self) -> str:
        """Beginning of an error's text, with the engine and the file that it played last: `vosk:en at a.wav: `. "" if
        it has played none."""
        return f"{self._evaluation.task.name} at {plain_text(self._current_file)}: " if self._current_file else ""

    def _report_line(self, line: str) -> None:
        self._send(WorkerFrame.LINE, line.encode("utf-8", "replace"))

    def _answer_sequence(self, outcomes: Iterable[FileOutcome]) -> None:
        for outcome in outcomes:
            self._answer(outcome, self._listed_names.pop(outcome.number))

    def _answer(self, outcome: FileOutcome, name: str) -> None:
        self._waiting.append((outcome, name))
        if time.monotonic() - self._flushed_s >= FLUSH_S:
            self.flush()

    def _send(self, kind: WorkerFrame, content: bytes) -> None:
        _write(self._answers_fd, encode_frame(kind, content))


def _write(descriptor: int, content: bytes) -> None:
    unwritten = memoryview(content)
    while unwritten:
        unwritten = unwritten[os.write(descriptor, unwritten) :]


def _die_with(parent: int) -> None:
    """Makes the kernel end this process when its parent ends. Ends it at once if the parent has already ended."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def _refusal(error: HarnessError, worker: Worker | None) -> bytes:
    """The content of a REFUSED message: type, text and remedy of the error, with the engine and the file that it was
    playing."""
    place = str(error.place) + ": " if error.place else ""
    prefix = worker.progress_prefix if worker is not None else ""
    return json.dumps([type(error).__name__, prefix + place + error.what, error.remedy]).encode()


def main(arguments: list[str]) -> int:
    """Runs a worker until its pipe of tasks closes. Returns the exit status."""
    collect_rarely()
    tasks, answers, begun, parent, nice = map(int, arguments)
    _die_with(parent)
    os.nice(nice)
    for descriptor in (tasks, answers, begun):
        os.set_inheritable(descriptor, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    counter = mmap.mmap(begun, BEGUN.size)
    frames = WorkerFrames()
    worker: Worker | None = None
    try:
        while piece := os.read(tasks, 1 << 16):
            for kind, content in frames.feed(piece):
                match kind:
                    case WorkerFrame.EVALUATION:
                        worker = Worker(answers, counter, from_plain(Evaluation, json.loads(content)))
                    case WorkerFrame.FILES if worker is not None:
                        worker.play(decode_files(content))
                    case WorkerFrame.END_OF_SEQUENCE if worker is not None:
                        worker.end_sequence()
                    case _:
                        raise ValueError(f"unexpected frame {kind}")
    except HarnessError as error:
        # The engine does not load, or a device is gone for good: the run ends.
        if worker is not None:
            worker.flush()
        _write(answers, encode_frame(WorkerFrame.REFUSED, _refusal(error, worker)))
        return error.exit_code
    if worker is not None:
        worker.close()
    gc.freeze()  # as in harness.cli
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
