"""Devices that only print lines: a program that follows their log, or a TCP socket.

    connect ──► reads until it is ready: a line matched `ready`, or the far end has not ended at once ──► reads on
       ▲              │ no such line in time                               its end, or a silence │
       │              ▼                                                                        ▼
       └── a pause that doubles ◄──────────────────── LinkLost ◄───────────────────────────────┘

Threads: the stream's own thread runs `_run`. It reads, stamps and maps lines, and opens a lost far end again. `open`
waits for its first result. Commands are lines, too; the caller's thread writes them.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
import shutil
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, BinaryIO, ClassVar, Protocol, cast

from harness.base import threads
from harness.base.child_process import ChildProcess, ended_words
from harness.base.foreign import plain_text, strip_terminal_codes
from harness.base.host_check import Check, check_each
from harness.base.ports import Sink, Surroundings
from harness.devices import tcp
from harness.devices.declared import Abilities
from harness.devices.device_sources import StreamSource
from harness.devices.outlet import BROKEN, DriverOutlet
from harness.devices.wire.console import Console, HeartbeatThrottle, maps_lines
from harness.devices.wire.lateness import Lateness
from harness.devices.wire.lines import LINE_ENDS
from harness.devices.wire.segments import EVENT_TIMEOUT_S
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError, LoginRefused, refuse_out_of_range
from harness.model.frozen import frozen
from harness.model.numbers import exact, seconds
from harness.model.time import Stamp

CONNECT_LIMIT_S = 5.0  # Chosen: a device in the local network that does not answer by then is off.
# Chosen: how long a program or a thread may take to end by itself. With JOIN_S it keeps the 2 s of `ports.Driver`.
END_GRACE_S = 0.5
JOIN_S = 1.5
PIECE_BYTES = 65_536  # Most bytes of one reading, and of an unfinished line that may match `ready`.
MONITOR_WAIT_S = 60.0  # Chosen: for a device that a person switches on for the monitor.
STOP_CHECK_S = 0.2  # Interval at which a thread that waits checks whether it is to stop.
TICK_S = 0.05  # Chosen: how soon time limits and rules that wait for further lines are noticed without output.
FAR_END = "far end"  # The part of the driver whose loss the outlet keeps.
_LINES_IN_ERROR = 3  # Chosen: an error shows them all on one line.


@frozen
class TextStreamOptions:
    """Options of programs and TCP ports.

    - ready: Regular expression. The connection is open when a line matches it.
    - ready_within_s: Time within which that line must arrive, s.
    - hold_back_ms: How long the far end may hold a line back, ms (part of the error of its times).
    - silence_limit_s: Time without a line after which the link counts as lost, s (0: never).
    - restart_line: A line that makes the device restart.
    """

    ready: str = ""
    ready_within_s: float = 15.0
    hold_back_ms: float = 20.0
    silence_limit_s: float = 0.0
    restart_line: str = ""

    def __post_init__(self) -> None:
        try:
            re.compile(self.ready)
        except re.error as error:
            raise InputError(f"`ready` is not a regular expression: {error}", remedy="Correct `ready`") from error
        refuse_out_of_range(self, ready_within_s=(0, 86_400), hold_back_ms=(0, 86_400), silence_limit_s=(0, 86_400))
        if "\n" in self.restart_line or "\r" in self.restart_line:
            raise InputError("`restart_line` has several lines", remedy="Use a single line")


@frozen
class CommandOptions(TextStreamOptions):
    """command: the program with its arguments, as a list, or as text with shell quoting. No shell runs it."""

    command: tuple[str, ...] | str = ()

    def __post_init__(self) -> None:
        super(CommandOptions, self).__post_init__()  # noqa: UP008 (slots: the class is made anew)
        if not self.arguments:
            raise InputError(
                "a command connection needs `command`",
                remedy="Add a program, such as command: [adb, logcat, -v, epoch]",
            )

    @property
    def arguments(self) -> list[str]:
        """The program and its arguments. Raises InputError for text with unbalanced quotes."""
        try:
            return shlex.split(self.command) if isinstance(self.command, str) else list(self.command)
        except ValueError as error:
            raise InputError(
                f"command: {error}", remedy="Write the command as a list: [adb, logcat, -v, epoch]"
            ) from error


@frozen
class TcpOptions(TextStreamOptions):
    """address: host:port.

    listen: wait at this address until the device connects, instead of connecting to it.
    """

    address: str = ""
    listen: bool = False

    def __post_init__(self) -> None:
        super(TcpOptions, self).__post_init__()  # noqa: UP008 (slots: the class is made anew)
        tcp.host_and_port(self.address)


class FarEnd(Protocol):
    """An open connection."""

    def fileno(self) -> int:
        """A file descriptor that is readable when `read` returns at once."""

    def read(self) -> bytes:
        """The bytes that have arrived; b"" at its end."""

    def write(self, data: bytes) -> None:
        """Sends bytes. Raises OSError when that fails."""

    def end_reason(self) -> str:
        """Why it ended, in words."""

    def close(self) -> None:
        """Releases it, in any state."""


class RunningCommand:
    """A program in its own process group, which ends when the harness ends."""

    def __init__(self, options: CommandOptions) -> None:
        arguments = options.arguments
        self._name = plain_text(arguments[0], 80)
        stdin = subprocess.PIPE if options.restart_line else subprocess.DEVNULL
        try:
            self._child = ChildProcess(arguments, stdin=stdin, guarded=True)
        except OSError as error:
            raise DeviceError(
                f"{self._name} cannot be started: {error}", remedy="Install the program, or correct `command`"
            ) from error

    def fileno(self) -> int:
        return self._child.stdout.fileno()

    def read(self) -> bytes:
        try:
            return os.read(self.fileno(), PIECE_BYTES)
        except OSError:
            return b""

    def write(self, data: bytes) -> None:
        self._child.stdin.write(data)

    def end_reason(self) -> str:
        self._child.wait(END_GRACE_S)
        status = self._child.status
        ending = "has closed its output" if status is None else ended_words(status)
        error_line = plain_text(self._child.last_error_line(), 300)
        return f"{self._name} {ending}: {error_line}" if error_line else f"{self._name} {ending}"

    def close(self) -> None:
        self._child.end(END_GRACE_S)


class TcpConnection:
    """An open socket."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        tcp.limit_unacknowledged(connection)
        self._socket, self._address = connection, address
        self._end_reason = "the device closed the connection"

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> bytes:
        try:
            return self._socket.recv(PIECE_BYTES)
        except OSError as error:
            self._end_reason = str(error)
            return b""

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def end_reason(self) -> str:
        return f"{self._address}: {self._end_reason}"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def connect_tcp(options: TcpOptions) -> TcpConnection:
    """Connects to the device. Raises DeviceError when it is not there."""
    try:
        connection = tcp.connect(*tcp.host_and_port(options.address), CONNECT_LIMIT_S)
    except OSError as error:
        raise DeviceError(
            f"{options.address} cannot be reached: {error}",
            remedy="Check that the device is on, and that `address` is correct",
        ) from error
    return TcpConnection(connection, options.address)


class TcpListener:
    """A server for one device at a time."""

    def __init__(self, options: TcpOptions) -> None:
        self._address = options.address
        self._server = tcp.listen(options.address)
        self._server.settimeout(STOP_CHECK_S)

    def accept(self, stop: threading.Event, limit_s: float) -> TcpConnection:
        """Waits until the device connects. Raises DeviceError if it does not, or when `stop` is set."""
        deadline_s = threads.monotonic() + limit_s
        while not stop.is_set() and threads.monotonic() < deadline_s:
            with contextlib.suppress(TimeoutError):
                connection, address = self._server.accept()
                connection.settimeout(None)
                tcp.keep_alive(connection)
                return TcpConnection(connection, f"{address[0]}:{address[1]}")
        raise DeviceError(
            f"no device connected to {self._address} within {exact(limit_s)} s",
            remedy="Switch the device on, and have it connect to this address",
        )

    def close(self) -> None:
        self._server.close()


class TextStream:
    """Observes a device by its lines. After a loss (LinkLost), the far end is opened again, at growing intervals.

    BACK_OFF_S: the first interval, which doubles up to the second value. If the far end refuses the login, it stays
    lost, since only a person can help.
    """

    Options: ClassVar[type]
    BACK_OFF_S: ClassVar[tuple[float, float]] = (0.2, 10.0)
    SETTLE_S: ClassVar[float] = 0.2
    """Time after which a far end has not failed at once, in seconds."""
    EVENT_TIMEOUT_S: ClassVar[float] = EVENT_TIMEOUT_S

    def __init__(self, id: str, options: Any, surroundings: Surroundings) -> None:
        self.id = id
        self._options = options
        self._clock = surroundings.clock
        self._profile = surroundings.profile
        self._outlet = DriverOutlet(id, surroundings)
        self._open_is_decided = threads.event()
        self._was_ready = False  # since `open`
        self._stop = threads.event()
        self._thread: threading.Thread | None = None
        self._far_end: FarEnd | None = None
        self._bell: threads.Bell | None = None  # wakes the stream's thread when the stream is closed
        self._lateness = Lateness()
        self._last_lines = deque[str](maxlen=_LINES_IN_ERROR)  # before it was ready
        self._end_reason = ""

    def connect(self) -> FarEnd:
        """Opens the far end. Raises DeviceError when it is not there."""
        raise NotImplementedError

    def stamped(self, far_end: FarEnd, data: bytes, stamp: Stamp) -> Iterator[tuple[bytes, Stamp]]:
        """The bytes that were read, in pieces with the time of each. stamp: when they were read."""
        yield data, stamp

    @property
    def hold_back_s(self) -> float:
        """How long the far end may hold a line back."""
        return float(self._options.hold_back_ms) / 1000

    @staticmethod
    def abilities(options: TextStreamOptions, profile: DeviceProfile | None) -> Abilities:
        return Abilities(restarts=bool(options.restart_line), hears=maps_lines(profile))

    def open(self, sink: Sink) -> None:
        """Returns when a line has matched `ready` or, without `ready`, when the far end has not ended at once."""
        self._was_ready = False
        self._open_is_decided.clear()
        self._stop.clear()
        self._far_end = far_end = self.connect()
        self._outlet.open(sink)
        self._bell = bell = threads.bell()
        self._last_lines.clear()
        self._thread = threads.thread(self._run, far_end, bell, name=f"text {self.id}")
        self._thread.start()
        self._open_is_decided.wait()
        if not self._was_ready:
            lines = f"; the last lines: {' / '.join(self._last_lines)}" if self._last_lines else ""
            self.close()
            raise DeviceError(
                f"{self.id}: {self._end_reason}{lines}",
                remedy="Check what the device or program prints without the harness",
            )

    def close(self) -> None:
        self._stop.set()
        self._outlet.close()
        thread, self._thread = self._thread, None
        bell, self._bell = self._bell, None
        if thread is not None and bell is not None:
            bell.ring()
            thread.join(JOIN_S)
            if not thread.is_alive():
                bell.close()

    def restart(self) -> None:
        """Sends `restart_line`. Raises DeviceError when there is none, or it cannot be sent."""
        if not self._options.restart_line:
            raise DeviceError(
                f"{self.id} cannot be restarted", remedy="Set `restart_line` in the connection of the device"
            )
        self._send_line(self._options.restart_line)

    def _send_line(self, line: str) -> None:
        """Sends a line. Raises DeviceError when it cannot be sent."""
        far_end = self._far_end
        try:
            if far_end is None:
                raise OSError("the link is lost")
            far_end.write(line.encode() + b"\n")
        except OSError as error:
            raise DeviceError(
                f"{self.id} did not accept a command: {error}", remedy="Wait until the device is connected again"
            ) from error

    def _run(self, far_end: FarEnd, bell: threads.Bell) -> None:
        """Runs in the stream's thread. `open` waits until it is decided whether the far end is ready."""
        self._end_reason = BROKEN
        try:
            with self._outlet.reports_errors():
                self._use_far_ends(far_end, bell)
        finally:
            self._open_is_decided.set()

    def _use_far_ends(self, first: FarEnd, bell: threads.Bell) -> None:
        """Uses one far end after the other, until the stream is closed or the login refused."""
        far_end: FarEnd | None = first
        self._back_off_s = self.BACK_OFF_S[0]
        while far_end is not None:
            began_s = self._clock.now_s()
            self._end_reason = self._read_to_end(far_end, bell)
            with self._outlet.lock:
                self._far_end = None
            far_end.close()
            if not self._was_ready or self._stop.is_set():
                return  # `open` reports what failed
            self._outlet.lose(FAR_END, self._end_reason)
            if self._clock.now_s() - began_s > self.BACK_OFF_S[1]:
                self._back_off_s = self.BACK_OFF_S[0]
            far_end = self._reopen()

    def _reopen(self) -> FarEnd | None:
        """Waits until the far end is back; None when the stream is closed or the login refused."""
        while not self._stop.wait(self._back_off_s):
            self._back_off_s = min(self._back_off_s * 2, self.BACK_OFF_S[1])
            try:
                far_end = self.connect()
            except LoginRefused as error:
                self._outlet.lose(FAR_END, str(error), urgent=True)
                break
            except (DeviceError, OSError):  # OSError: such as too many open files
                continue  # not there yet: the next attempt may find it
            with self._outlet.lock:
                self._far_end = far_end
            return far_end
        return None

    def _read_to_end(self, far_end: FarEnd, bell: threads.Bell) -> str:
        """Reads until the far end ends or counts as lost. Returns why; "" when the stream was closed.

        Time limits, and rules that wait for further lines, are checked each TICK_S without output.
        """
        options, outlet = self._options, self._outlet
        console = Console(
            self._profile, self.id, hold_back_s=self.hold_back_s, measured=False, event_timeout_s=self.EVENT_TIMEOUT_S
        )
        throttle = HeartbeatThrottle()
        ready_line = re.compile(options.ready) if options.ready else None
        began_s = received_s = self._clock.now_s()
        is_ready, unfinished_line = False, b""
        while not self._stop.is_set():
            before_s = self._clock.now_s()
            readable, _ = bell.wait(far_end, TICK_S)
            now_s = self._clock.now_s()
            waited_s = now_s - before_s
            if readable:
                data = far_end.read()
                arrival = Stamp(now_s, self._lateness.arrival_error_s(waited_s, TICK_S))
                if not data:
                    for observation in console.flush(arrival):
                        outlet.tell(observation)
                    return far_end.end_reason()
                received_s = now_s
            else:
                self._lateness.record_sleep(waited_s, TICK_S)
                data, arrival = b"", Stamp(now_s, self._lateness.seconds)
            if not is_ready:
                if data:
                    unfinished_line, ready_line = self._search_ready_line(ready_line, unfinished_line + data)
                # A device that was silent may be so again: an open connection does not show that it is back.
                has_settled = now_s - began_s > self.SETTLE_S and not (self._was_ready and options.silence_limit_s)
                if ready_line is None and (options.ready or has_settled or (data and self._was_ready)):
                    is_ready = self._was_ready = True
                    self._open_is_decided.set()
                    outlet.back(FAR_END)
            for piece, stamp in self.stamped(far_end, data, arrival):
                for observation in console.feed(piece, stamp):
                    if throttle.passes(observation):
                        outlet.tell(observation)
            if ready_line is not None and now_s - began_s > options.ready_within_s:
                return f"no line matched `ready` within {exact(options.ready_within_s)} s"
            if options.silence_limit_s and now_s - received_s > options.silence_limit_s:
                return f"no line arrived for {seconds(now_s - received_s)}"
        return ""

    def _search_ready_line(
        self, ready_line: re.Pattern[str] | None, data: bytes
    ) -> tuple[bytes, re.Pattern[str] | None]:
        """Searches the complete lines for the pattern, and keeps the last ones for an error.

        Returns the unfinished line, and the pattern, or None once a line has matched it.
        """
        *lines, unfinished = LINE_ENDS.split(data)
        for line in lines:
            text = strip_terminal_codes(line.decode("utf-8", "backslashreplace"))
            self._last_lines.append(plain_text(text.strip(), 200))
            if ready_line is not None and ready_line.search(text):
                return b"", None
        return unfinished[-PIECE_BYTES:], ready_line


class CommandLog(TextStream):
    """The lines of a program, such as `adb logcat`, `esphome logs` or `journalctl -f`."""

    Options: ClassVar[type] = CommandOptions
    BACK_OFF_S = (0.5, 30.0)
    SETTLE_S = 1.0  # A program takes longer to fail than a connection.

    def connect(self) -> FarEnd:
        return RunningCommand(self._options)

    @staticmethod
    def source(options: CommandOptions, profile: DeviceProfile, device: str, topics: tuple[str, ...]) -> StreamSource:
        return CommandSource(options)

    @staticmethod
    def demand_host(options: CommandOptions) -> None:
        """Raises InputError when the program is not installed."""
        name = options.arguments[0]
        if shutil.which(name) is None:
            raise InputError(
                f"the program {name!r} is not installed", remedy="Install the program, or correct `command`"
            )

    @staticmethod
    def far_end(options: CommandOptions, id: str) -> str:
        return shlex.join(options.arguments)

    @staticmethod
    def program(options: CommandOptions) -> str:
        return shlex.join(options.arguments)


class TcpLog(TextStream):
    """The lines of a TCP socket."""

    Options: ClassVar[type] = TcpOptions
    EVENT_TIMEOUT_S = math.inf  # A far end is one connection.
    _listener: TcpListener | None = None

    def connect(self) -> FarEnd:
        options: TcpOptions = self._options
        if not options.listen:
            return connect_tcp(options)
        self._listener = self._listener or TcpListener(options)
        return self._listener.accept(self._stop, options.ready_within_s)

    def open(self, sink: Sink) -> None:
        try:
            super().open(sink)
        except DeviceError:
            self._stop_listening()
            raise

    def close(self) -> None:
        super().close()
        self._stop_listening()

    def _stop_listening(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    @staticmethod
    def source(options: TcpOptions, profile: DeviceProfile, device: str, topics: tuple[str, ...]) -> StreamSource:
        return StreamSource(options.address, lambda: cast(BinaryIO, FarEndFile(_connect_for_monitor(options))))

    @staticmethod
    def host_checks(connections: Sequence[tuple[str, TcpOptions]]) -> Iterator[Check]:
        def attempt(options: TcpOptions) -> str:
            if options.listen:
                TcpListener(options).close()
                return f"{options.address} is free to listen on"
            connect_tcp(options).close()
            return f"{options.address} answers"

        return check_each("tcp", connections, attempt)

    @staticmethod
    def far_end(options: TcpOptions, id: str) -> str:
        return options.address


def _connect_for_monitor(options: TcpOptions) -> FarEnd:
    """The connection that a monitor reads; if the device connects to the harness, its first connection."""
    if not options.listen:
        return connect_tcp(options)
    with closing(TcpListener(options)) as listener:
        return listener.accept(threads.event(), MONITOR_WAIT_S)


class FarEndFile:
    """A far end, wrapped as a file for a monitor."""

    def __init__(self, far_end: FarEnd) -> None:
        self._far_end = far_end

    def __enter__(self) -> FarEndFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._far_end.close()

    def read(self, _: int) -> bytes:
        return self._far_end.read()


class CommandSource(StreamSource):
    """A program for the monitor; it ends with the monitor."""

    def __init__(self, options: CommandOptions) -> None:
        self._running: RunningCommand | None = None
        open_stream = cast("Callable[[], BinaryIO]", lambda: self._start(options))
        super().__init__(shlex.join(options.arguments), open_stream)

    def _start(self, options: CommandOptions) -> FarEndFile:
        self._running = RunningCommand(options)
        return FarEndFile(self._running)

    def close(self) -> None:
        if self._running is not None:
            self._running.close()
        super().close()
