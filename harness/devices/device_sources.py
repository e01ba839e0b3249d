"""Sources of a device's lines for the monitor: a port, a broker, a file, standard input.

    a source's thread ── put ──► DeviceOutputQueue ── take_outputs ──► DeviceMonitor
                                 bounded in bytes                      the thread of the screen

Elsewhere, a *source* is the equipment that reports an observation (`Observation.source`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeAlias, runtime_checkable

from harness.base import threads
from harness.model.errors import DeviceError, InputError
from harness.model.frozen import frozen
from harness.model.time import Stamp

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

QUEUE_BYTES = 1_000_000  # Chosen: minutes of a board's output, while a screen is busy.
CHUNK_BYTES = 4096  # Of one reading of a file: a Linux page.


@frozen
class DeviceOutput:
    """Output of a device: console bytes, or a message when `topic` is set.

    - wall_s: Unix time of arrival.
    - retained: whether the broker had stored it earlier, so that it is not a current event.
    """

    at: Stamp
    wall_s: float
    data: bytes
    topic: str = ""
    retained: bool = False


def output_now(data: bytes, topic: str = "", *, error_s: float = 0.0, retained: bool = False) -> DeviceOutput:
    """Output that has arrived now."""
    return DeviceOutput(Stamp(threads.monotonic(), error_s), threads.wall(), data, topic, retained)


class DeviceOutputQueue:
    """A queue from a reading thread to the monitor, bounded in bytes.

    When it is full, a source that can `wait` waits; otherwise the oldest bytes are dropped.
    lost_bytes: number of bytes that were dropped.
    """

    def __init__(self) -> None:
        self.lost_bytes = 0
        self._outputs: deque[DeviceOutput] = deque()
        self._bytes = 0
        self._changed = threads.condition()
        self._closed = False

    def put(self, output: DeviceOutput, *, wait: bool = False) -> None:
        """Adds output. wait: whether to wait while the queue is full, instead of dropping the oldest output."""
        with self._changed:
            while wait and self._bytes > QUEUE_BYTES and not self._closed:
                self._changed.wait(0.2)
            self._outputs.append(output)
            self._bytes += len(output.data)
            while not wait and self._bytes > QUEUE_BYTES:
                dropped_bytes = len(self._outputs.popleft().data)
                self._bytes -= dropped_bytes
                self.lost_bytes += dropped_bytes

    def take(self, at_most_bytes: int) -> list[DeviceOutput]:
        """Output that has arrived, in order: whole pieces until they reach `at_most_bytes`; the last may exceed it."""
        outputs: list[DeviceOutput] = []
        with self._changed:
            while self._outputs and at_most_bytes > 0:
                piece = self._outputs.popleft()
                self._bytes -= len(piece.data)
                at_most_bytes -= max(1, len(piece.data))  # also empty pieces count, so that it comes to an end
                outputs.append(piece)
            self._changed.notify_all()
        return outputs

    def close(self) -> None:
        """Ends the waiting of `put`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def take_outputs(source: DeviceSource, at_most_bytes: int) -> list[DeviceOutput]:
    """Output that has arrived. A live source adds an empty piece, which shows rules that wait that time has passed."""
    outputs = source.queue.take(at_most_bytes)
    return [*outputs, output_now(b"")] if source.live else outputs


class DeviceSource(Protocol):
    """A source of a device's output for the monitor.

    - name: for display.
    - live: whether lines arrive when the device writes them; the times of a file's lines are unknown.
    - ended: whether no more output will arrive.
    - trouble: the current problem; "" if there is none.
    """

    name: str
    live: bool
    queue: DeviceOutputQueue
    ended: bool
    trouble: str

    def open(self) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class HasRate(DeviceSource, Protocol):
    """A source with a baud rate, which may be wrong, and an adapter, which may hold lines back.

    hold_back_s: how long it may hold them back; the value that a session uses, once the source is open.
    """

    baud: int
    hold_back_s: float

    def at_other_rates(self, seconds: float) -> Iterator[tuple[int, bytes | DeviceError]]:
        """What arrives within `seconds` at each other common rate, the most common rate first."""
        ...


Picture: TypeAlias = "tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]"
"""All that a camera sees, with its rectangle marked, and the rectangle alone. Each has the shape (rows, columns, 3), in
red, green and blue."""


@runtime_checkable
class ShowsPicture(DeviceSource, Protocol):
    """A source that can show the picture of a camera."""

    def picture(self, columns: int, rows: int) -> Picture: ...


class StreamSource:
    """A file from its beginning to its end, or standard input until it ends."""

    def __init__(self, name: str, open_stream: Callable[[], BinaryIO], *, live: bool = True) -> None:
        self.name = name
        self.live = live
        self.queue = DeviceOutputQueue()
        self.ended = False
        self.trouble = ""
        self._open_stream = open_stream
        self._closing = False
        self._thread = threads.thread(self._run, name="monitor-stream")

    def open(self) -> None:
        self._stream = self._open_stream()
        self._thread.start()

    def close(self) -> None:
        """A thread blocked on standard input is left until the program ends."""
        self._closing = True
        self.queue.close()
        if self._thread.is_alive():
            self._thread.join(0.2)

    def _run(self) -> None:
        try:
            with self._stream as stream:
                # read1 returns what is there, so that a line from a pipe does not wait for a full buffer.
                read = getattr(stream, "read1", stream.read)
                first = output_now(b"")
                while not self._closing and (data := read(CHUNK_BYTES)):
                    # All lines of a file get one time: the reading speed says nothing about the device.
                    self.queue.put(output_now(data) if self.live else replace(first, data=data), wait=True)
        except (OSError, ValueError) as error:
            self.trouble = f"reading failed: {error}"
        self.ended = True


def file_source(path: Path) -> StreamSource:
    """A file of lines."""

    def open_file() -> BinaryIO:
        try:
            return path.open("rb")
        except OSError as error:
            raise InputError(
                f"{path} cannot be read: {error.strerror}", remedy="Pass a text file that you can read"
            ) from error

    return StreamSource(str(path), open_file, live=False)
