"""A worker process as the run sees it: what it has in hand, what it says, and how long it has been at a file."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from enum import Enum

from harness.base.plain_json import plain
from harness.model.offline import Evaluation
from harness.offline.frames import BEGUN, ONE_THREAD, Frame, FrameReader, framed

_MODULE = "harness.offline.worker"
_LAST_WORDS = 2000
_PIECE = 1 << 18


class Standing(Enum):
    """LOADING its engine, READY for files, or GONE."""

    LOADING = "loading"
    READY = "ready"
    GONE = "gone"


class WorkerProcess:
    """A child in a process group of its own; what its engine prints is kept off our streams, the last of it as
    last words."""

    def __init__(self, evaluation: Evaluation, *, nice: int, now_s: float) -> None:
        self.standing = Standing.LOADING
        self.hands: deque[int] = deque()
        self.since_s = self.busy_since_s = now_s
        self.begun = 0
        self.answered = 0
        self.sequence = False
        self._words = b""
        self._frames = FrameReader()
        self._out = bytearray(framed(Frame.EVALUATION, json.dumps(plain(evaluation, sparse=True)).encode()))
        memory = os.memfd_create("begun")
        tasks, self.tasks = os.pipe()
        self.answers, answers = os.pipe()
        self.words, words = os.pipe()
        theirs = (tasks, answers, words, memory)
        try:
            os.ftruncate(memory, BEGUN.size)
            self._memory = mmap.mmap(memory, BEGUN.size)
            told = [str(one) for one in (tasks, answers, memory, os.getpid(), nice)]
            self._child = subprocess.Popen(
                [sys.executable, "-m", _MODULE, *told],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                pass_fds=(tasks, answers, memory),
                env={**dict.fromkeys(ONE_THREAD, "1"), **os.environ},
                start_new_session=True,  # A Ctrl-C at the terminal is for the run to deal with.
            )
        except BaseException:
            for descriptor in (self.tasks, self.answers, self.words):
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        for descriptor in (self.tasks, self.answers, self.words):
            os.set_blocking(descriptor, False)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def exited(self) -> bool:
        """Whether its process has ended."""
        return self._child.poll() is not None

    @property
    def wants_writing(self) -> bool:
        return bool(self._out)

    @property
    def in_work(self) -> int | None:
        """The position that it is at, or was at when it ended; None when it is between files."""
        place = self.begun - self.answered - 1
        return self.hands[place] if 0 <= place < len(self.hands) else None

    def give(self, positions: Sequence[int], lines: bytes, now_s: float) -> None:
        if not self.hands:
            self.since_s = self.busy_since_s = now_s
        self.hands.extend(positions)
        self._out += framed(Frame.FILES, lines)

    def end_sequence(self) -> None:
        self._out += framed(Frame.END_OF_SEQUENCE)

    def look(self, now_s: float) -> None:
        """Notes which file it is at, and since when."""
        begun: int = BEGUN.unpack_from(self._memory, 0)[0]
        if begun != self.begun:
            self.begun, self.since_s = begun, now_s

    def write(self) -> None:
        """As much as the pipe takes; a worker that is gone shows when its answers end."""
        try:
            written = os.write(self.tasks, memoryview(self._out)[:_PIECE].tobytes())
        except BlockingIOError:
            return
        except OSError:
            self._out.clear()
            return
        del self._out[:written]

    def read(self) -> list[tuple[Frame, bytes]] | None:
        """What has come; None when no more will. ValueError when it is not what a worker says."""
        try:
            piece = os.read(self.answers, _PIECE)
        except BlockingIOError:
            return []
        return list(self._frames.feed(piece)) if piece else None

    def read_words(self) -> bool:
        """Takes what it printed; whether there may be more at once."""
        try:
            piece = os.read(self.words, _PIECE)
        except BlockingIOError:
            return False
        self._words = (self._words + piece)[-_LAST_WORDS:]
        return bool(piece)

    @property
    def last_words(self) -> str:
        """The last line that it printed, if any: a crash often says why there."""
        lines = [line.strip() for line in self._words.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def ended(self) -> str:
        """Kills what is left of it and says how it ended."""
        self.standing = Standing.GONE
        by_us = self._child.poll() is None
        try:
            os.killpg(self._child.pid, signal.SIGKILL)
        except ProcessLookupError:
            by_us = False
        status = self._child.wait()
        while self.read_words():
            pass
        self.no_more()
        for descriptor in (self.answers, self.words):
            os.close(descriptor)
        self._memory.close()
        if by_us:
            return "was ended"
        if status < 0:
            return f"was ended by {_signal_name(-status)}"
        return f"ended with status {status}"

    def no_more(self) -> None:
        """It ends by itself once it has done what it has."""
        if self.tasks >= 0:
            os.close(self.tasks)
            self.tasks = -1

    def wait(self, limit_s: float) -> None:
        """Until it ends, or that long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(max(0.0, limit_s))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
