"""A sound stream in a child process, and the thread that watches it.

If no callback comes for SILENT_S, the thread ends the child by its process id and starts children until the stream
runs. All callbacks to the owner come from this thread. Nothing here waits for the child without a limit.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from harness.base.child_process import ChildProcess, ended_words, python_command
from harness.model.errors import DeviceError, SoundError
from harness.model.numbers import exact
from harness.model.time import Stamp
from harness.sound.child import Output, Packet, PacketKind, PacketReader
from harness.sound.sound_devices import environment_of, list_command

SILENT_S = 0.6
"""Without a callback for this long, in seconds, the sound server counts as dead or frozen."""
OPEN_LIMIT_S = 4.0
"""Time limit for a child to open the stream again, in seconds."""
FIRST_OPEN_LIMIT_S = 8.0
"""Time limit for the first child, in seconds: nothing is lost by waiting, and a busy host starts a process slowly."""
BACK_OFF_S = (0.05, 0.1, 0.2, 0.3)  # Short: sound was back within 0.41 s of the repair of a server (measured).
CLOSE_LIMIT_S = 1.5  # A driver closes within 2 s (`ports.Driver`): this leaves 0.5 s for the rest.
SETTLE_LIMIT_S = 3.0
"""Time limit for the owner's times to settle, once the stream runs, in seconds."""
BROKEN = "the thread that watches its sound ended with an error; see the engine's output"

OnFault = Callable[[Stamp, str], None]
OnBack = Callable[[Stamp], None]
OnOverrun = Callable[[int], None]


class StreamOwner(Protocol):
    """Takes the packets of a stream. Called by the watching thread only."""

    def opened(self, packet: Packet, resumed: bool) -> None:
        """The stream of a child runs. resumed: again after a fault. Sample counts begin at 0."""
        ...

    def received(self, packet: Packet) -> None:
        """Any other packet of the stream has come."""
        ...

    def faulted(self, stamp: Stamp, problem: str) -> None:
        """The stream is lost; `opened` follows when it is back."""
        ...


class SupervisedStream:
    """One direction of one sound device, in a child process that may be killed at any time.

    A byte in the wake pipe wakes the watching thread from its select.
    """

    def __init__(
        self,
        kind: str,
        device: str,
        sound_server: str,
        frames_per_buffer: int,
        owner: StreamOwner,
        output: Output = Output(),
    ) -> None:
        self._kind = kind
        self._device = device
        self._sound_server = sound_server
        self._frames_per_buffer = frames_per_buffer
        self._output = output
        self._owner = owner
        self._child: ChildProcess | None = None
        self._outbox: deque[memoryview] = deque()
        self._outbox_lock = threading.Lock()
        self._closing = threading.Event()
        self._first_answer = threading.Event()
        """Set when the first child runs or has failed."""
        self.flowing = threading.Event()
        """Set by the owner when its times have settled."""
        self._failure: SoundError | None = None
        self._thread: threading.Thread | None = None
        self._wake_read_fd, self._wake_write_fd = -1, -1
        self._running = False  # written under `_outbox_lock`, so that no packet goes to a child that has ended
        self._has_run = False

    @property
    def child_pid(self) -> int | None:
        """Process id of the child; None if there is none."""
        child = self._child
        return child.pid if child is not None else None

    @property
    def running(self) -> bool:
        """Whether the stream runs, so that callbacks come."""
        return self._running

    @property
    def is_open(self) -> bool:
        """True from `open` to `close`, also while the stream is lost."""
        return self._thread is not None

    def open(self, no_flow_problem: str) -> None:
        """Returns when the owner's times have settled.

        Raises SoundError if the stream fails, or takes longer than FIRST_OPEN_LIMIT_S to open or SETTLE_LIMIT_S to
        settle. no_flow_problem: the problem if the stream runs but no callbacks come, for the error message.
        """
        if self._thread is not None:
            raise SoundError(f"the stream of {self._device!r} is already open")
        environment_of(self._sound_server)  # raises SoundError here, not in the thread
        self._closing.clear()
        self._first_answer.clear()
        self.flowing.clear()
        self._failure = None
        self._has_run = False
        self._wake_read_fd, self._wake_write_fd = os.pipe()
        os.set_blocking(self._wake_write_fd, False)
        self._thread = threading.Thread(target=self._watch, name=f"sound-{self._kind}-{self._device}", daemon=True)
        self._thread.start()
        self._first_answer.wait()
        if not self._has_run:
            failure = self._failure or SoundError(
                f"the sound server did not open {self._device!r}",
                remedy=f"List the available devices: {list_command(self._sound_server)}",
            )
            self.close()
            raise failure
        if not self.flowing.wait(SETTLE_LIMIT_S):
            self.close()
            raise SoundError(
                f"the device {self._device!r} was opened, but {no_flow_problem} within {exact(SETTLE_LIMIT_S)} s",
                remedy="If this host is busy, try again. To use another device, list the devices: "
                + list_command(self._sound_server),
            )

    def close(self) -> None:
        """Ends the child and the watching thread within CLOSE_LIMIT_S, in any state."""
        thread = self._thread
        if thread is None:
            return
        self._closing.set()
        self._wake()
        if thread is not threading.current_thread():
            thread.join(CLOSE_LIMIT_S)
        self._thread = None
        pipe_fds = self._wake_read_fd, self._wake_write_fd
        self._wake_read_fd, self._wake_write_fd = -1, -1
        # A thread that still runs watches the pipe, and other files could get the numbers of closed descriptors.
        if not thread.is_alive():
            for fd in pipe_fds:
                os.close(fd)

    def send(self, packet: Packet) -> bool:
        """Queues a packet for the child; never waits. False if no running stream can take it."""
        with self._outbox_lock:
            if not self._running:
                return False
            self._outbox.append(memoryview(packet.encode()))
        self._wake()
        return True

    def _wake(self) -> None:
        # BlockingIOError: the pipe is full, so the thread is about to wake. Another OSError: the stream is closed.
        with contextlib.suppress(OSError):
            os.write(self._wake_write_fd, b"!")

    def _end_child(self) -> str:
        """Ends the child; returns the last line that it wrote to standard error."""
        with self._outbox_lock:
            self._running = False
            self._outbox.clear()
        child, self._child = self._child, None
        return "" if child is None else child.end()

    def _watch(self) -> None:
        """The watching thread: one child after another, until the stream is closed."""
        attempt = 0
        lost = False
        try:
            while not self._closing.is_set():
                problem, ran = self._run_child(lost)
                if self._closing.is_set():
                    return
                if ran:
                    attempt, lost = 0, True
                elif not lost:
                    # It never ran: `open` reports it and gives up.
                    self._failure = self._failure or SoundError(problem)
                    return
                self._closing.wait(BACK_OFF_S[min(attempt, len(BACK_OFF_S) - 1)])
                attempt += 1
        except Exception:
            self._end_child()
            if self._has_run:
                self._owner.faulted(Stamp(time.monotonic()), BROKEN)
            raise
        finally:
            self._end_child()
            self._first_answer.set()

    def _run_child(self, lost: bool) -> tuple[str, bool]:
        """Runs one child to its end. Returns why it ended, and whether its stream ever ran.

        lost: whether an earlier stream was lost, so that `open` no longer waits for this one.
        """
        try:
            self._child = child = self._start_child()
        except (DeviceError, OSError) as error:
            return str(error), False
        packets = PacketReader()
        last_s = time.monotonic()
        limit_s = OPEN_LIMIT_S if lost else FIRST_OPEN_LIMIT_S
        problem = ""
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            selector.register(self._wake_read_fd, selectors.EVENT_READ)
            while not self._closing.is_set() and not problem:
                self._watch_for_room(selector, child)
                timeout_s = max(0.0, last_s + limit_s - time.monotonic())
                ready = {key.fileobj for key, _ in selector.select(timeout_s)}
                if self._wake_read_fd in ready:
                    os.read(self._wake_read_fd, 4096)
                if child.stdout in ready:
                    if chunk := os.read(child.stdout.fileno(), 1 << 18):
                        problem = self._pass_packets(packets.feed(chunk), lost)
                    else:
                        child.wait(CLOSE_LIMIT_S)
                        problem = f"the sound process {ended_words(child.status or 0)}"
                    last_s = time.monotonic()
                    if self._running:
                        limit_s = SILENT_S
                elif time.monotonic() - last_s >= limit_s:
                    problem = (
                        f"no sound for {limit_s} s: the sound server is dead or frozen, or this host is overloaded"
                    )
                self._write_outbox(child)
        ran = self._running
        if last_line := self._end_child():
            problem = f"{problem} ({last_line})"
        if ran and not self._closing.is_set():
            now_s = time.monotonic()
            # Between the last callback and now; half of that time is the error.
            loss_stamp = Stamp((last_s + now_s) / 2, (now_s - last_s) / 2)
            self._owner.faulted(loss_stamp, problem)
        return problem, ran

    def _start_child(self) -> ChildProcess:
        options = [f"--device={self._device}", f"--sound-server={self._sound_server}"]
        options.append(f"--frames-per-buffer={self._frames_per_buffer}")
        if self._output.count > 1:
            options.append(f"--output={self._output.number}/{self._output.count}")
        return ChildProcess(
            python_command("harness.sound.child", self._kind, *options), environment=environment_of(self._sound_server)
        )

    def _pass_packets(self, packets: Iterable[Packet], lost: bool) -> str:
        """Passes packets to the owner. Returns the problem that the child reported; "" if it reported none."""
        for packet in packets:
            if packet.kind is PacketKind.FAILED:
                return self._failure_text(packet)
            if packet.kind is PacketKind.OPENED:
                self._start_running(packet, lost)
            else:
                self._owner.received(packet)
        return ""

    def _watch_for_room(self, selector: selectors.BaseSelector, child: ChildProcess) -> None:
        """Watches for room in the pipe to the child, only while there is data to write: an empty pipe has room."""
        writing = child.stdin in selector.get_map()
        if self._outbox and not writing:
            selector.register(child.stdin, selectors.EVENT_WRITE)
        elif not self._outbox and writing:
            selector.unregister(child.stdin)

    def _start_running(self, packet: Packet, lost: bool) -> None:
        """Notes that the stream of the child runs. lost: whether an earlier stream was lost."""
        with self._outbox_lock:
            self._running = self._has_run = True
        self._owner.opened(packet, lost)
        self._first_answer.set()

    def _failure_text(self, packet: Packet) -> str:
        """The text of the error that a child reports. `open` raises the error."""
        failure = json.loads(packet.payload)
        self._failure = SoundError(failure["what"], remedy=failure["remedy"])
        return str(self._failure)

    def _write_outbox(self, child: ChildProcess) -> None:
        """Writes queued packets until the outbox is empty or the pipe is full."""
        while True:
            with self._outbox_lock:
                if not self._outbox:
                    return
                unwritten = self._outbox[0]
                try:
                    count = os.write(child.stdin.fileno(), unwritten[: 1 << 16])
                except BlockingIOError:
                    return
                except BrokenPipeError:
                    # The child has ended. Reading its standard output reports that.
                    self._outbox.clear()
                    return
                if count == len(unwritten):
                    self._outbox.popleft()
                else:
                    self._outbox[0] = unwritten[count:]
