"""A serial port for `devices monitor` and `devices test`. One thread reads, and opens a lost port again."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace

from harness.base import threads
from harness.devices.device_sources import QUEUE_BYTES, DeviceOutputQueue, output_now
from harness.devices.serial.options import DEFAULT_HOLD_BACK_S, SerialOptions
from harness.devices.serial.port import OpenPort, PortLost, find_port, hold_back
from harness.devices.wire.console import RATES
from harness.model.errors import DeviceError
from harness.model.numbers import exact

_REOPEN_S = 1.0  # Chosen: a person waits for the port to come back.
_CHECK_INTERVAL_S = 0.1  # Interval at which the thread checks whether it is to stop.
_JOIN_S = 2.0  # Longer than the thread waits for anything but a bridge.


class SerialMonitorSource:
    """A port, read for the monitor and reopened when it was lost."""

    live = True
    ended = False

    def __init__(self, options: SerialOptions, baud: int) -> None:
        self.baud = baud
        self.queue = DeviceOutputQueue()
        self.trouble = ""
        self._options = options
        self._path = find_port(options).path
        self.hold_back_s = DEFAULT_HOLD_BACK_S
        self.name = f"{self._path} at {baud}"
        self._stop = threads.event()

    def open(self) -> None:
        """DeviceError when the port cannot be opened."""
        port = OpenPort(self._path, self.baud)
        self.hold_back_s, _ = hold_back(self._options, self._path)
        self._thread = threads.thread(self._run, port, name="monitor-serial")
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, which releases the port."""
        self._stop.set()
        self._thread.join(_JOIN_S)

    def at_other_rates(self, seconds: float) -> Iterator[tuple[int, bytes | DeviceError]]:
        for rate in RATES:
            if rate == self.baud:
                continue
            source = SerialMonitorSource(replace(self._options, baud=rate), rate)
            try:
                source.open()
            except DeviceError as error:
                yield rate, error
                continue
            threads.sleep(seconds)
            source.close()
            yield rate, b"".join(piece.data for piece in source.queue.take(QUEUE_BYTES))

    def _run(self, port: OpenPort | None) -> None:
        """Reads the port, and reopens it after each loss, until the source is closed."""
        while port is not None:
            with closing(port):
                self._read(port)
            port = self._reopen()

    def _read(self, port: OpenPort) -> None:
        """Returns when the port is lost, or the source closed."""
        self.trouble = ""
        try:
            while not self._stop.is_set():
                if select.select([port], [], [], _CHECK_INTERVAL_S)[0] and (data := port.read()):
                    self.queue.put(output_now(data))
        except PortLost:
            problem = "the port is gone (unplugged, or without power)"
            self.trouble = f"{problem}; the monitor tries again every {exact(_REOPEN_S)} s"

    def _reopen(self) -> OpenPort | None:
        """Waits until the port is back; None when the source is closed."""
        while not self._stop.wait(_REOPEN_S):
            with suppress(DeviceError):  # not back yet
                return OpenPort(self._path, self.baud)
        return None
