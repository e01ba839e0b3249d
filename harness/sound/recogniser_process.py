"""A recogniser in its own process: it may crash or hang without delaying what is timed here.

A frame is a head of two u32 in network byte order, and a payload, whose length in bytes is the second of them. To the
child: the rate in Hz, and float32 samples. From the child: OK or FAILED, and the transcript or the error as UTF-8 text.
"""

from __future__ import annotations

import os
import queue
import select
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

import numpy as np

from harness.base.child_process import ChildProcess, python_command
from harness.base.plugins import Group, load
from harness.base.ports import Recogniser
from harness.model.errors import EngineError, HarnessError
from harness.model.stimulus import Waveform

HEAD = struct.Struct("!II")
OK, FAILED = 0, 1
ResultCallback = Callable[[str | HarnessError], None]
_Job = tuple[Waveform, ResultCallback]


class RecogniserProcess:
    """Transcribes waveforms one by one in a child of low priority.

    - name: an entry point of `harness.recognisers`. If the child dies, a new one tries the same waveform once more. A
      child that does not answer within limit_s is killed; so is one that does not start within load_limit_s. `done`
      gets the text or the error, on a thread of this object.
    - nice: priority of the child, as for the command `nice`.
    """

    def __init__(self, name: str, *, nice: int = 5, limit_s: float = 20.0, load_limit_s: float = 60.0) -> None:
        self._entry = name
        self.name = name  # until the child reports its own, with the version
        self._niceness = nice
        self._limit_s = limit_s
        self._load_limit_s = load_limit_s
        self._child: ChildProcess | None = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run_jobs, name=f"recogniser {name}", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """Process id of the current child; None if there is none."""
        child = self._child
        return child.pid if child is not None and child.alive else None

    def transcribe_later(self, waveform: Waveform, done: ResultCallback) -> None:
        """Queues a waveform, and returns at once. `done` is called once for each, in order."""
        self._jobs.put((waveform, done))

    def close(self) -> None:
        """Ends the child. Pending waveforms get an EngineError."""
        self._closing.set()
        self._jobs.put(None)
        child = self._child
        if child is not None:
            child.kill()
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)

    def _run_jobs(self) -> None:
        """Runs one job after another until `close`, then ends the child."""
        while True:
            job = self._jobs.get()
            if job is None or self._closing.is_set():
                break
            self._run_job(job)
        self._end_child()
        # Every waveform gets an answer, also the one that was taken from the queue last.
        while job is not None or not self._jobs.empty():
            if job is not None:
                _, done = job
                done(EngineError("the recogniser is closed"))
            job = self._jobs.get() if not self._jobs.empty() else None

    def _run_job(self, job: _Job) -> None:
        """Transcribes a waveform, with a second attempt if the child dies, and reports the text or the error."""
        waveform, done = job
        answer: str | HarnessError
        for _ in range(2):
            try:
                answer = self._transcribe(waveform)
                break
            except _ChildDied as died:
                answer = EngineError(f"the recogniser {self._entry} exited twice on the same sound: {died}")
            except HarnessError as error:
                answer = error
                break
        done(answer)

    def _transcribe(self, waveform: Waveform) -> str:
        """The text from the child.

        Raises _ChildDied if it ends meanwhile, EngineError if it fails or takes too long.
        """
        child = self._started_child()
        content = np.ascontiguousarray(waveform.samples, dtype=np.float32).tobytes()
        deadline = time.monotonic() + self._limit_s
        try:
            self._send(child, HEAD.pack(waveform.rate_hz, len(content)) + content, deadline)
            outcome, text = self._receive(child, deadline)
        except OSError as error:
            self._end_child()
            raise _ChildDied(str(error)) from error
        if outcome != OK:
            raise EngineError(f"the recogniser {self._entry} failed: {text}")
        return text

    def _started_child(self) -> ChildProcess:
        """The child that runs, or a new one. Raises EngineError if it does not start, or this object is closed."""
        if self._child is not None and self._child.alive:
            return self._child
        if self._closing.is_set():
            raise EngineError("the recogniser is closed")
        self._end_child()
        try:
            self._child = ChildProcess(
                python_command("harness.sound.recogniser_process", self._entry, str(self._niceness)),
                # No download, and one thread, so that the recogniser delays nothing that this host times.
                environment={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
            )
            if self._closing.is_set():  # `close` may have looked for a child before there was one
                self._child.kill()
            outcome, text = self._receive(self._child, time.monotonic() + self._load_limit_s)
        except OSError as error:
            reason = self._end_child() or error
            raise EngineError(f"the recogniser {self._entry} did not start: {reason}") from error
        if outcome != OK:
            self._end_child()
            raise EngineError(f"the recogniser {self._entry} did not start: {text}")
        self.name = text
        return self._child

    def _send(self, child: ChildProcess, content: bytes, deadline: float) -> None:
        unwritten = memoryview(content)
        while unwritten:
            self._wait_until_ready(child, child.stdin.fileno(), deadline, write=True)
            unwritten = unwritten[os.write(child.stdin.fileno(), unwritten) :]

    def _receive(self, child: ChildProcess, deadline: float) -> tuple[int, str]:
        outcome, size = HEAD.unpack(self._read(child, HEAD.size, deadline))
        return outcome, self._read(child, size, deadline).decode("utf-8")

    def _read(self, child: ChildProcess, size: int, deadline: float) -> bytes:
        content = b""
        while len(content) < size:
            self._wait_until_ready(child, child.stdout.fileno(), deadline, write=False)
            piece = os.read(child.stdout.fileno(), size - len(content))
            if not piece:
                raise ConnectionResetError("it ended")
            content += piece
        return content

    def _wait_until_ready(self, child: ChildProcess, descriptor: int, deadline: float, *, write: bool) -> None:
        """Waits until a pipe to or from the child is ready. Ends the child and raises EngineError at the deadline."""
        remaining_s = max(0.0, deadline - time.monotonic())
        ready = select.select([] if write else [descriptor], [descriptor] if write else [], [], remaining_s)
        if not any(ready):
            self._end_child()
            raise EngineError(f"the recogniser {self._entry} did not answer in time and was ended")

    def _end_child(self) -> str:
        """Ends the child. Returns its last output."""
        child, self._child = self._child, None
        return "" if child is None else child.end()


class _ChildDied(Exception):
    """The child ended while it had a waveform."""


def serve(recogniser: Recogniser, source: BinaryIO, sink: BinaryIO) -> None:
    """Runs in the child: transcribes waveforms from `source` until that ends."""
    while len(head := source.read(HEAD.size)) == HEAD.size:
        rate_hz, size = HEAD.unpack(head)
        content = source.read(size)
        if len(content) < size:
            return
        try:
            _write_answer(sink, OK, recogniser.transcribe(Waveform(np.frombuffer(content, dtype=np.float32), rate_hz)))
        except (HarnessError, RuntimeError, ValueError) as error:
            _write_answer(sink, FAILED, str(error))


def _write_answer(sink: BinaryIO, outcome: int, text: str) -> None:
    content = text.encode("utf-8", errors="replace")
    sink.write(HEAD.pack(outcome, len(content)) + content)
    sink.flush()


def main(name: str, nice: int) -> None:
    """Loads the recogniser of that name, sends its name (or the error), and serves."""
    os.nice(nice)
    # Output of a library must not get between the frames.
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        recogniser: Recogniser = load(Group.RECOGNISERS, name)()
    except HarnessError as error:
        _write_answer(sink, FAILED, str(error))
        return
    _write_answer(sink, OK, recogniser.name)
    serve(recogniser, sys.stdin.buffer, sink)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
