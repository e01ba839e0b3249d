"""Bytes to and from an external engine: no shell, no thread, no deadlock, and no wait without a limit."""

from __future__ import annotations

import os
import selectors
import shlex
import time
import weakref
from collections import deque
from subprocess import PIPE

from harness.base.child_process import ChildProcess, ended_words
from harness.base.foreign import plain_text
from harness.model.errors import EngineError

LONGEST_LINE = 1 << 20
_MOST_UNREAD = 8 << 20
_CHUNK = 1 << 16
_LAST_WORDS = 8
_GRACE_S = 0.5
_EXIT_S = 2.0


class EnginePipe:
    """A running engine. Lines come out, bytes go in; whichever waits for the other, both go on.

    command: program (a path) and arguments. hang_s: how long nothing may move. Every fault is an EngineError that
    names the command and its last words on stderr, and ends the process.
    """

    def __init__(self, command: tuple[str, ...], hang_s: float) -> None:
        self.command = command
        self._hang_s = hang_s
        self._lines: deque[bytes] = deque()
        self._unread = 0
        self._part = b""
        self._said: deque[str] = deque(maxlen=_LAST_WORDS)
        self._said_part = b""
        self._ended_output = False
        try:
            self._child = ChildProcess(command, stderr=PIPE, guarded=True)
        except OSError as error:
            raise EngineError(f"the engine {shown(command)} cannot be started: {error.strerror}") from error
        self._in, self._out, self._err = self._child.stdin, self._child.stdout, self._child.stderr
        self._selector = selectors.DefaultSelector()
        for stream in (self._out, self._err):
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ)
        self._finalizer = weakref.finalize(self, _end, self._child, self._selector)

    @property
    def pid(self) -> int:
        """Of the process that leads the engine's group."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """False once it has been ended, by us or by itself."""
        return self._finalizer.alive and self._child.status is None

    def send(self, content: bytes) -> None:
        """Returns when all of it is in the pipe; what the engine writes meanwhile is kept."""
        rest = memoryview(content)
        deadline = time.monotonic() + self._hang_s
        while rest:
            try:
                rest = rest[os.write(self._in.fileno(), rest) :]
                deadline = time.monotonic() + self._hang_s
            except BlockingIOError:
                self._selector.register(self._in, selectors.EVENT_WRITE)
                try:
                    self._turn_until(deadline, self._hang_s, "has not taken the sound that it was sent")
                finally:
                    if self._finalizer.alive:
                        self._selector.unregister(self._in)
            except BrokenPipeError:
                self._last_moments()
                raise self.fault(f"{self._end_words()} before it had read all of the sound") from None

    def end_input(self) -> None:
        """The engine reads the end of its input."""
        self._in.close()

    def arrived(self) -> list[str]:
        """Whole lines that have come since the last look; does not wait."""
        while not self._ended_output and self._turn(0):
            pass
        found = [self._text(line) for line in self._lines]
        self._lines.clear()
        self._unread = 0
        return found

    def line(self, limit_s: float, waiting_for: str, remedy: str = "") -> str | None:
        """The next line; None at the end of its output. waiting_for: as in "has not said …", for the message."""
        deadline = time.monotonic() + limit_s
        while not self._lines and not self._ended_output:
            self._turn_until(deadline, limit_s, waiting_for, remedy)
        if not self._lines:
            return None
        found = self._lines.popleft()
        self._unread -= len(found)
        return self._text(found)

    def exit_status(self) -> int:
        """Waits for the end of the process, whose output has ended; negative is a signal."""
        deadline = time.monotonic() + self._hang_s
        while (status := self._child.status) is None:
            if time.monotonic() > deadline:
                raise self.fault(f"has closed its output and not ended in {self._hang_s:g} s", HANG_REMEDY)
            self._pause(0.02)
        return status

    def ended(self, before: str) -> EngineError:
        """The error of an engine that ended too early."""
        self._last_moments()
        return self.fault(f"{self._end_words()} {before}")

    def fault(self, what: str, remedy: str = "") -> EngineError:
        """An error with the command and its last words; the process is ended."""
        self._turn(0)
        words = list(self._said) + ([_readable(self._said_part)] if self._said_part else [])
        said = f"; it last said: {' | '.join(words)}" if words else ""
        self.end()
        return EngineError(f"the engine {shown(self.command)} {what}{said}", remedy=remedy)

    def close(self) -> None:
        """Lets it end by itself at the end of its input, for a moment; then ends it and whatever it started."""
        if self._finalizer.alive:
            self._in.close()
            deadline = time.monotonic() + _GRACE_S
            while self._child.status is None and time.monotonic() < deadline:
                self._pause(0.01)
        self.end()

    def end(self) -> None:
        """Ends it and whatever it started, at once; may be called twice."""
        self._finalizer()

    def _turn_until(self, deadline: float, limit_s: float, waiting_for: str, remedy: str = "") -> None:
        """What moves next; EngineError at the deadline. Words on stderr put nothing off."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise self.fault(f"{waiting_for} in {limit_s:g} s", remedy or HANG_REMEDY)
        self._turn(left)

    def _pause(self, limit_s: float) -> None:
        """Reads what comes in that time, also when nothing can come any more."""
        if not self._selector.get_map() or not self._turn(limit_s):
            time.sleep(limit_s / 4)

    def _turn(self, limit_s: float) -> bool:
        """Reads what there is to read; False when nothing moved in that time."""
        if not self._finalizer.alive:
            return False
        ready = self._selector.select(limit_s)
        for key, _ in ready:
            if key.fileobj is self._out:
                self._read_output()
            elif key.fileobj is self._err:
                self._read_words()
        return bool(ready)

    def _read_output(self) -> None:
        content = os.read(self._out.fileno(), _CHUNK)
        if not content:
            self._selector.unregister(self._out)
            self._ended_output = True
            if self._part:
                raise self.fault("ended its output in the middle of a line", "End every line with a newline")
            return
        *whole, self._part = (self._part + content).split(b"\n")
        self._lines += whole
        self._unread += sum(map(len, whole))
        if len(self._part) > LONGEST_LINE or any(len(line) > LONGEST_LINE for line in whole):
            raise self.fault(f"wrote a line of more than {LONGEST_LINE} bytes", "Lines are short JSON objects")
        if self._unread > _MOST_UNREAD:
            raise self.fault("writes faster than sound is sent to it", "It writes a line an event, and no more")

    def _read_words(self) -> None:
        content = os.read(self._err.fileno(), _CHUNK)
        if not content:
            self._selector.unregister(self._err)
            return
        *whole, part = (self._said_part + content).split(b"\n")
        self._said_part = part[-_CHUNK:]
        self._said += [_readable(line) for line in whole if line.strip()]

    def _text(self, line: bytes) -> str:
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError:
            raise self.fault(f"wrote a line that is not UTF-8: {_readable(line)}", "Lines are JSON in UTF-8") from None

    def _last_moments(self) -> None:
        """Its last words and its exit status are there a moment after its pipes have closed."""
        deadline = time.monotonic() + _EXIT_S
        while self._child.status is None and time.monotonic() < deadline:
            self._pause(0.02)
        while self._turn(0) and self._selector.get_map():
            pass

    def _end_words(self) -> str:
        status = self._child.status
        return "closed its streams" if status is None else ended_words(status)


HANG_REMEDY = "See whether it waits for something; -s hang-limit-s=N gives it longer"
START_REMEDY = "See whether it waits for something; -s start-limit-s=N gives it longer"


def shown(command: tuple[str, ...]) -> str:
    """The command as a shell would take it, harmless to a terminal."""
    return plain_text(shlex.join(command), 300)


def _readable(line: bytes) -> str:
    return plain_text(line.decode("utf-8", errors="backslashreplace").strip(), 200)


def _end(child: ChildProcess, selector: selectors.BaseSelector) -> None:
    selector.close()
    child.end()
