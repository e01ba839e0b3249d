"""Drivers that measure something themselves, such as light: each reading is a line with numbers, and has its own time.

A profile's thresholds turn the numbers into states, as they do for lines that a sensor prints.

    measure ──► (line, time) ──► ReadingsFarEnd ── event ──► TextStream reads all that wait ──► Console, outlet
    a thread of the far end       a queue                    the stream's thread

A monitor reads the same far end through `ReadingsSource`.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from harness.base import threads
from harness.devices.declared import Abilities
from harness.devices.device_sources import DeviceOutput, DeviceOutputQueue
from harness.devices.text_streams import END_GRACE_S, FarEnd, TextStream
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, refuse_out_of_range
from harness.model.frozen import frozen
from harness.model.time import Stamp

MAX_WAITING = 10_000  # Readings that wait; more are dropped, oldest first. Chosen: minutes of a camera's.
_POLL_MS = 50  # Interval at which the monitor's thread checks whether it is to stop.


@frozen
class ReadingsOptions:
    """hold_back_ms: How long a reading may arrive after what it shows, ms (part of the error of its time).

    silence_limit_s: Time without a reading after which the link counts as lost, s (0: never).
    """

    ready: ClassVar[str] = ""
    ready_within_s: ClassVar[float] = 15.0
    restart_line: ClassVar[str] = ""

    hold_back_ms: float = 20.0
    silence_limit_s: float = 0.0

    def __post_init__(self) -> None:
        refuse_out_of_range(self, hold_back_ms=(0, 86_400), silence_limit_s=(0, 86_400))


class ReadingsFarEnd:
    """The readings that a thread measures, as a far end. Each reading is a line and its time.

    measure: called on that thread with a function, which it calls with each reading, and an event that is set when it
    must end. It returns why it ended.
    """

    def __init__(self, name: str, measure: Callable[[Callable[[str, Stamp], None], threading.Event], str]) -> None:
        self.last_read: list[tuple[bytes, Stamp]] = []
        """The readings that the last `read` returned."""
        self._waiting = deque[tuple[bytes, Stamp]](maxlen=MAX_WAITING)
        self._lock = threads.lock()
        self._stop = threads.event()
        self._end_reason = "its thread ended with an error"
        self._ended = False
        self._measure = measure
        self._readable = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)  # set while readings wait, and at the end
        self._thread = threads.thread(self._run, name=name)
        self._thread.start()

    def fileno(self) -> int:
        return self._readable

    def read(self) -> bytes:
        """The lines of all readings that wait; b"" at the end."""
        with self._lock:
            if not self._ended:
                os.eventfd_read(self._readable)
            self.last_read = [*self._waiting]
            self._waiting.clear()
        return b"".join(line for line, _ in self.last_read)

    def write(self, data: bytes) -> None:
        raise OSError("it does not accept commands")

    def end_reason(self) -> str:
        return self._end_reason

    def close(self) -> None:
        """Asks the thread to end. One that waits for a device ends soon after."""
        self._stop.set()
        self._thread.join(END_GRACE_S)

    def _run(self) -> None:
        """Measures until the end. Then the descriptor stays readable until the far end is closed."""
        try:
            self._end_reason = self._measure(self._add_reading, self._stop)
        except DeviceError as error:
            self._end_reason = error.what
        finally:
            with self._lock:
                self._ended = True
                os.eventfd_write(self._readable, 1)
            self._stop.wait()  # until then the stream's thread may wait at the descriptor
            os.close(self._readable)

    def _add_reading(self, line: str, stamp: Stamp) -> None:
        with self._lock:
            self._waiting.append((line.encode() + b"\n", stamp))
            os.eventfd_write(self._readable, 1)


class ReadingsStream(TextStream):
    """A driver whose far end is `ReadingsFarEnd`."""

    @staticmethod
    def abilities(options: Any, profile: DeviceProfile | None) -> Abilities:
        return Abilities()

    def stamped(self, far_end: FarEnd, data: bytes, stamp: Stamp) -> Iterator[tuple[bytes, Stamp]]:
        if data and isinstance(far_end, ReadingsFarEnd):
            yield from far_end.last_read  # with their own times, whenever they were read
        else:
            yield b"", stamp

    @property
    def hold_back_s(self) -> float:
        """0, since the stamps of readings already include it."""
        return 0.0


class ReadingsSource:
    """Readings for the monitor."""

    live = True

    def __init__(self, name: str, connect: Callable[[], ReadingsFarEnd]) -> None:
        self.name = name
        self.queue = DeviceOutputQueue()
        self.ended = False
        self.trouble = ""
        self._connect = connect
        self._closing = threads.event()
        self._readings: ReadingsFarEnd | None = None

    def open(self) -> None:
        self._readings = readings = self._connect()
        self._thread = threads.thread(self._run, readings, name="monitor-readings")
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self.queue.close()
        if self._readings is not None:
            self._thread.join(END_GRACE_S)
            self._readings.close()

    def _run(self, readings: ReadingsFarEnd) -> None:
        poll = select.poll()
        poll.register(readings.fileno(), select.POLLIN)
        while not self._closing.is_set():
            if not poll.poll(_POLL_MS):
                continue
            if not readings.read():
                self.trouble = readings.end_reason()
                break
            for line, stamp in readings.last_read:
                self.queue.put(DeviceOutput(stamp, threads.wall() - (threads.monotonic() - stamp.at_s), line))
        self.ended = True
