"""Where a device's lines come from, for the monitor: a port, a broker, a file, standard input."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from harness.devices.device_monitor import HeardBytes, now_heard
from harness.model.errors import DeviceError, InputError

HELD_BYTES = 1_000_000
CHUNK_BYTES = 4096


class HeardQueue:
    """Between a reading thread and who looks, bounded by bytes: a source that can `wait` does, else the oldest go.

    lost_bytes: what went because nobody looked in time.
    """

    def __init__(self) -> None:
        self.lost_bytes = 0
        self._held: deque[HeardBytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._closed = False

    def put(self, heard: HeardBytes, *, wait: bool = False) -> None:
        with self._changed:
            while wait and self._bytes > HELD_BYTES and not self._closed:
                self._changed.wait(0.2)
            self._held.append(heard)
            self._bytes += len(heard.data)
            while not wait and self._bytes > HELD_BYTES:
                gone = len(self._held.popleft().data)
                self._bytes -= gone
                self.lost_bytes += gone

    def take(self, at_most_bytes: int) -> list[HeardBytes]:
        """What has come, in its order."""
        taken: list[HeardBytes] = []
        with self._changed:
            while self._held and at_most_bytes > 0:
                one = self._held.popleft()
                self._bytes -= len(one.data)
                at_most_bytes -= max(1, len(one.data))
                taken.append(one)
            self._changed.notify_all()
        return taken

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def heard_from(source: DeviceSource, at_most_bytes: int) -> list[HeardBytes]:
    """What has come; of a live source also that time has gone by, for what waits for further lines."""
    taken = source.queue.take(at_most_bytes)
    return [*taken, now_heard(b"")] if source.live else taken


class DeviceSource(Protocol):
    """name: for people. ended: nothing more will come. trouble: what is wrong at present; empty: nothing.

    live: what comes has just been said; of a file, nobody knows when.
    """

    name: str
    live: bool
    queue: HeardQueue
    ended: bool
    trouble: str

    def open(self) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class HasRate(DeviceSource, Protocol):
    """A line with a rate, which may be the wrong one, and an adapter, which may hold lines back."""

    baud: int
    hold_back_s: float

    def at_other_rates(self, seconds: float) -> Iterator[tuple[int, bytes | DeviceError]]:
        """What comes at each other common rate within so long, the commonest first."""
        ...


class StreamSource:
    """A file from its beginning to its end, or standard input until it ends."""

    def __init__(self, name: str, opened: Callable[[], BinaryIO], *, live: bool = True) -> None:
        self.name = name
        self.live = live
        self.queue = HeardQueue()
        self.ended = False
        self.trouble = ""
        self._opened = opened
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="monitor-stream", daemon=True)

    def open(self) -> None:
        self._stream = self._opened()
        self._thread.start()

    def close(self) -> None:
        """A thread that waits for standard input is left to the end of the program."""
        self._closing = True
        self.queue.close()
        if self._thread.is_alive():
            self._thread.join(0.2)

    def _run(self) -> None:
        try:
            with self._stream as stream:
                # read1 gives what there is: a pipe's line is not to wait for a full buffer.
                read = getattr(stream, "read1", stream.read)
                first = now_heard(b"")
                while not self._closing and (data := read(CHUNK_BYTES)):
                    # The lines of a file are of one moment: how fast we read says nothing about the device.
                    self.queue.put(now_heard(data) if self.live else replace(first, data=data), wait=True)
        except (OSError, ValueError) as error:
            self.trouble = f"it cannot be read any more: {error}"
        self.ended = True


def file_source(path: Path) -> StreamSource:
    """A file of lines."""

    def opened() -> BinaryIO:
        try:
            return path.open("rb")
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}", remedy="Name a file of lines") from error

    return StreamSource(str(path), opened, live=False)
