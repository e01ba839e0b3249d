"""Bytes to and from an external program, without a shell, threads, deadlocks or unlimited waits."""

from __future__ import annotations

import os
import selectors
import shlex
import shutil
import time
import weakref
from collections import deque
from subprocess import PIPE

from harness.base.child_process import ChildProcess, ended_words
from harness.base.foreign import plain_text
from harness.model.errors import EngineError, InputError
from harness.model.numbers import exact

MAX_LINE_BYTES = 1 << 20
_MAX_UNREAD_BYTES = 8 << 20
"""Largest size of one line, and of all unread lines, in bytes; a program that writes without end is stopped."""
_CHUNK_BYTES = 1 << 16
HANG_REMEDY = "Check whether the program is waiting for something. For a longer limit: -s hang-limit-s=N"
_MAX_QUOTED_LINES = 8
"""Number of lines of standard error that an error quotes."""
_GRACE_S = 0.5
"""How long `close` waits for a program to exit after its input has ended, in seconds."""
_EXIT_S = 2.0
"""How long an error waits for the exit status of a program that has closed its streams, in seconds."""


class ProgramPipe:
    """A running program: lines come out, bytes go in. Reading and writing never block each other.

    - command: program (a path) and arguments.
    - hang_s: time limit without progress.
    - noun, input_noun: what messages call the program and what it is sent.
    - remedy: what to do if it hangs.

    Every fault is an EngineError with the command and its last output on stderr, and ends the process.
    """

    def __init__(
        self,
        command: tuple[str, ...],
        hang_s: float,
        *,
        noun: str = "engine",
        input_noun: str = "sound",
        remedy: str = "",
    ) -> None:
        self.command = command
        self._hang_s = hang_s
        self._noun, self._input_noun = noun, input_noun
        self._remedy = remedy or HANG_REMEDY
        self._lines: deque[bytes] = deque()
        self._unread_bytes = 0
        self._partial_line = b""
        self._stderr_lines: deque[str] = deque(maxlen=_MAX_QUOTED_LINES)
        self._partial_stderr = b""
        self._output_has_ended = False
        try:
            self._child = ChildProcess(command, stderr=PIPE, guarded=True)
        except OSError as error:
            raise EngineError(f"the {noun} {show_command(command)} cannot be started: {error.strerror}") from error
        self._in, self._out, self._err = self._child.stdin, self._child.stdout, self._child.stderr
        self._selector = selectors.DefaultSelector()
        for stream in (self._out, self._err):  # `send` registers stdin while the pipe is full
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ)
        self._finalizer = weakref.finalize(self, _end_program, self._child, self._selector)

    @property
    def pid(self) -> int:
        """The id of the process that leads the program's group."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether the process has not been ended and has not exited."""
        return self._finalizer.alive and self._child.status is None

    def send(self, content: bytes) -> None:
        """Returns when the pipe has accepted all bytes. Lines that the program writes in that time are kept."""
        unsent = memoryview(content)
        deadline = time.monotonic() + self._hang_s
        while unsent:
            try:
                unsent = unsent[os.write(self._in.fileno(), unsent) :]
                deadline = time.monotonic() + self._hang_s
            except BlockingIOError:
                self._selector.register(self._in, selectors.EVENT_WRITE)
                try:
                    self._poll_until(
                        deadline, self._hang_s, f"has not accepted the {self._input_noun} that it was sent"
                    )
                finally:
                    if self._finalizer.alive:  # else a fault has closed the selector
                        self._selector.unregister(self._in)
            except BrokenPipeError:
                self._drain_output()
                raise self.fault(f"{self._end_words()} before it had read all the {self._input_noun}") from None

    def end_input(self) -> None:
        """Closes the program's input."""
        self._in.close()

    def read_arrived(self) -> list[str]:
        """Complete lines since the last call; does not wait."""
        while not self._output_has_ended and self._read_ready(0):
            pass
        lines = [self._decode_line(line) for line in self._lines]
        self._lines.clear()
        self._unread_bytes = 0
        return lines

    def read_line(self, limit_s: float, waiting_for: str, remedy: str = "") -> str | None:
        """The next line; None at the end of the output. waiting_for: what has not come, for the message."""
        deadline = time.monotonic() + limit_s
        while not self._lines and not self._output_has_ended:
            self._poll_until(deadline, limit_s, waiting_for, remedy)
        if not self._lines:
            return None
        raw_line = self._lines.popleft()
        self._unread_bytes -= len(raw_line)
        return self._decode_line(raw_line)

    def exit_status(self) -> int:
        """Waits until the process exits after its output has ended. Its status; negative for a signal."""
        deadline = time.monotonic() + self._hang_s
        while (status := self._child.status) is None:
            if time.monotonic() > deadline:
                raise self.fault(f"closed its output but did not exit within {exact(self._hang_s)} s", self._remedy)
            self.pause(0.02)
        return status

    def early_end_error(self, context: str) -> EngineError:
        """The error of a program that ended too early."""
        self._drain_output()
        return self.fault(f"{self._end_words()} {context}")

    def fault(self, problem: str, remedy: str = "") -> EngineError:
        """An error with the command and its last output. Ends the process."""
        self._read_ready(0)
        quoted_lines = list(self._stderr_lines) + ([_readable(self._partial_stderr)] if self._partial_stderr else [])
        last_output = f"; its last output: {' | '.join(quoted_lines)}" if quoted_lines else ""
        self.end()
        return EngineError(f"the {self._noun} {show_command(self.command)} {problem}{last_output}", remedy=remedy)

    def close(self) -> None:
        """Closes its input, waits briefly for it to exit, then ends it and every process that it started."""
        if self._finalizer.alive:
            self._in.close()
            deadline = time.monotonic() + _GRACE_S
            while self._child.status is None and time.monotonic() < deadline:
                self.pause(0.01)
        self.end()

    def end(self) -> None:
        """Ends it and every process that it started, immediately. May be called twice."""
        self._finalizer()

    def _poll_until(self, deadline: float, limit_s: float, waiting_for: str, remedy: str = "") -> None:
        """Waits for any progress. Raises EngineError at the deadline. Output on stderr does not count as progress."""
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            raise self.fault(f"{waiting_for} within {exact(limit_s)} s", remedy or self._remedy)
        self._read_ready(remaining_s)

    def pause(self, limit_s: float) -> None:
        """Reads for limit_s, or waits if nothing more can come."""
        if not self._selector.get_map() or not self._read_ready(limit_s):
            time.sleep(limit_s / 4)  # without a stream left to read, nothing waits; callers poll

    def _read_ready(self, limit_s: float) -> bool:
        """Reads what has arrived. False if nothing moved in that time."""
        if not self._finalizer.alive:
            return False
        ready = self._selector.select(limit_s)
        for key, _ in ready:
            if key.fileobj is self._out:
                self._read_output()
            elif key.fileobj is self._err:
                self._read_stderr()
        return bool(ready)

    def _read_output(self) -> None:
        """Reads what has arrived on standard output.

        Raises EngineError for a line, or for lines together, that are too long.
        """
        content = os.read(self._out.fileno(), _CHUNK_BYTES)
        if not content:
            self._selector.unregister(self._out)
            self._output_has_ended = True
            if self._partial_line:
                raise self.fault("ended its output in the middle of a line", "End every line with a newline")
            return
        *lines, self._partial_line = (self._partial_line + content).split(b"\n")
        self._lines += lines
        self._unread_bytes += sum(map(len, lines))
        if len(self._partial_line) > MAX_LINE_BYTES or any(len(line) > MAX_LINE_BYTES for line in lines):
            raise self.fault(
                f"wrote a line of more than {MAX_LINE_BYTES} bytes", "Write short JSON objects, one per line"
            )
        if self._unread_bytes > _MAX_UNREAD_BYTES:
            raise self.fault(f"writes lines faster than it receives {self._input_noun}", "Write one line per result")

    def _read_stderr(self) -> None:
        """Reads what has arrived on standard error, and keeps the last lines."""
        content = os.read(self._err.fileno(), _CHUNK_BYTES)
        if not content:
            self._selector.unregister(self._err)
            return
        *lines, partial_line = (self._partial_stderr + content).split(b"\n")
        self._partial_stderr = partial_line[-_CHUNK_BYTES:]  # a line that never ends must not fill the memory
        self._stderr_lines += [_readable(line) for line in lines if line.strip()]

    def _decode_line(self, line: bytes) -> str:
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError:
            raise self.fault(
                f"wrote a line that is not UTF-8: {_readable(line)}", "Write JSON lines in UTF-8"
            ) from None

    def _drain_output(self) -> None:
        """Waits for the exit status, and reads the last output: both come a moment after the pipes have closed."""
        deadline = time.monotonic() + _EXIT_S
        while self._child.status is None and time.monotonic() < deadline:
            self.pause(0.02)
        while self._read_ready(0) and self._selector.get_map():
            pass

    def _end_words(self) -> str:
        """How the program ended, in words."""
        status = self._child.status
        return "closed its streams" if status is None else ended_words(status)


def program_command(option: str, text: str, example: str, by_interpreter: str) -> tuple[str, ...]:
    """The program, by its full path, and its arguments.

    - text: both, split as a shell splits them; or a path to a file.

    Raises InputError if there is no such program. For its message, option: the option with this text.

    - example: a right text.
    - by_interpreter: a right text for a script that cannot be executed itself.
    """
    example = f"Specify a command: {example}"
    try:
        parts = [text] if os.path.isfile(text) else shlex.split(text)  # Path.is_file raises for a long text
    except ValueError as error:
        raise InputError(
            f"the command line {plain_text(text, 80)!r} cannot be parsed: {error}", remedy=example
        ) from None
    if not parts:
        raise InputError(f"{option} needs a command", remedy=example)
    program = shutil.which(parts[0])
    if program is None:
        if os.path.isfile(parts[0]):
            raise InputError(
                f"{parts[0]} is not executable",
                remedy=f"Run chmod +x {parts[0]}, or specify its interpreter: {by_interpreter}",
            )
        raise InputError(
            f"the program {parts[0]!r} does not exist", remedy=f"{example}; paths are relative to the current folder"
        )
    return (os.path.abspath(program), *parts[1:])


def show_command(command: tuple[str, ...]) -> str:
    """The command as one would type it into a shell, sanitised for a terminal."""
    return plain_text(shlex.join(command), 300)


def _readable(line: bytes) -> str:
    return plain_text(line.decode("utf-8", errors="backslashreplace").strip(), 200)


def _end_program(child: ChildProcess, selector: selectors.BaseSelector) -> None:
    selector.close()
    child.end()
