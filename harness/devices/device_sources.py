"""Where a device's lines come from, for the monitor: a port, a broker, a file, standard input."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Protocol

import paho.mqtt.client as mqtt
import serial
from paho.mqtt.enums import CallbackAPIVersion

from harness.devices.device_monitor import Heard, now_heard
from harness.model.errors import DeviceError, InputError

HELD_BYTES = 1_000_000
CHUNK_BYTES = 4096
REOPEN_S = 1.0
JOIN_S = 2.0


class HeardQueue:
    """Between a reading thread and who looks, bounded by bytes: a source that can `wait` does, else the oldest go.

    lost_bytes: what went because nobody looked in time.
    """

    def __init__(self) -> None:
        self.lost_bytes = 0
        self._held: deque[Heard] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._closed = False

    def put(self, heard: Heard, *, wait: bool = False) -> None:
        with self._changed:
            while wait and self._bytes > HELD_BYTES and not self._closed:
                self._changed.wait(0.2)
            self._held.append(heard)
            self._bytes += len(heard.data)
            while not wait and self._bytes > HELD_BYTES:
                gone = len(self._held.popleft().data)
                self._bytes -= gone
                self.lost_bytes += gone

    def take(self, at_most_bytes: int) -> list[Heard]:
        """What has come, in its order."""
        taken: list[Heard] = []
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


def heard_from(source: DeviceSource, at_most_bytes: int) -> list[Heard]:
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


def first_bytes(port: str, baud: int, seconds: float) -> bytes:
    """What comes from a port at a rate within so long; DeviceError when it cannot be opened."""
    source = SerialSource(port, baud)
    source.open()
    try:
        time.sleep(seconds)
    finally:
        source.close()
    return b"".join(one.data for one in source.queue.take(HELD_BYTES))


class SerialSource:
    """A serial port (a device, or a URL that pyserial knows, such as socket://host:port); opened again when lost."""

    def __init__(self, port: str, baud: int) -> None:
        self.name = f"{port} at {baud}"
        self.live = True
        self.queue = HeardQueue()
        self.ended = False
        self.trouble = ""
        self._port, self._baud = port, baud
        self._line: serial.SerialBase | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="monitor-serial", daemon=True)

    def open(self) -> None:
        """DeviceError when the port cannot be opened."""
        self._line = self._opened()
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        line = self._line
        if line is not None and hasattr(line, "cancel_read"):
            with contextlib.suppress(OSError, TypeError, AttributeError):
                line.cancel_read()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)

    def _opened(self) -> serial.SerialBase:
        try:
            if "://" in self._port:
                return serial.serial_for_url(self._port, baudrate=self._baud, timeout=0.1)
            return serial.Serial(self._port, self._baud, timeout=0.1, exclusive=True)
        except (serial.SerialException, OSError, ValueError) as error:
            raise DeviceError(
                f"{self._port} cannot be opened: {error}", remedy="See which ports there are: harness doctor"
            ) from error

    def _run(self) -> None:
        while not self._stop.is_set():
            line = self._line
            if line is None:
                self._stop.wait(REOPEN_S)
                with contextlib.suppress(DeviceError):
                    self._line = self._opened()
                    self.trouble = ""
                continue
            try:
                data = line.read(max(1, min(CHUNK_BYTES, getattr(line, "in_waiting", 1))))
            except (serial.SerialException, OSError, TypeError) as error:
                self.trouble = f"the port is gone ({error}); it is tried again every {REOPEN_S:g} s"
                self._shut()
                continue
            if data:
                self.queue.put(now_heard(data))
        self._shut()

    def _shut(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            with contextlib.suppress(OSError):
                line.close()


class MqttSource:
    """Messages of a broker on some topics; paho connects again by itself."""

    def __init__(self, host: str, port: int, topics: tuple[str, ...], username: str = "", password: str = "") -> None:
        self.name = f"{host}:{port} {' '.join(topics)}"
        self.live = True
        self.queue = HeardQueue()
        self.ended = False
        self.trouble = ""
        self._host, self._port, self._topics = host, port, topics
        self._answered = threading.Event()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2)
        if username:
            self._client.username_pw_set(username, password or None)
        self._client.on_connect = self._connected
        self._client.on_disconnect = self._disconnected
        self._client.on_message = self._message

    def open(self) -> None:
        """DeviceError when the broker does not answer or refuses."""
        try:
            self._client.connect_timeout = 5.0
            self._client.connect(self._host, self._port, keepalive=10)
        except OSError as error:
            raise self._unusable(str(error)) from error
        self._client.loop_start()
        if not self._answered.wait(5.0) or self.trouble:
            why = self.trouble or "it takes the connection, but does not answer"
            self.close()
            raise self._unusable(why)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _unusable(self, why: str) -> DeviceError:
        return DeviceError(f"the broker at {self._host}:{self._port} cannot be used: {why}", remedy="Check --address")

    # The callbacks touch plain values only: an exception in one would end paho's thread.
    def _connected(self, client: mqtt.Client, _: object, __: object, reason: object, ___: object) -> None:
        failed = bool(getattr(reason, "is_failure", False))
        self.trouble = f"it refuses: {reason}" if failed else ""
        if not failed:
            client.subscribe([(topic, 1) for topic in self._topics])
        self._answered.set()

    def _disconnected(self, *_: object) -> None:
        self.trouble = "the connection to the broker is gone"

    def _message(self, _: mqtt.Client, __: object, message: mqtt.MQTTMessage) -> None:
        self.queue.put(now_heard(bytes(message.payload), message.topic, retained=message.retain))
