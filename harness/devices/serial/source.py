"""A serial port as a source of lines for `devices monitor` and `devices test`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import serial

from harness.base import threads
from harness.devices.device_sources import CHUNK_BYTES, HELD_BYTES, DeviceOutputQueue, output_now
from harness.devices.serial.options import DEFAULT_HOLD_BACK_S, SerialOptions
from harness.devices.serial.port import find, hold_back_s, open_port
from harness.devices.wire.console import RATES
from harness.model.errors import DeviceError
from harness.model.numbers import exact

_REOPEN_S = 1.0
_JOIN_S = 2.0


class SerialSource:
    """A port, read for the monitor and reopened when it was lost. Also accepts pyserial's URLs (rfc2217://…)."""

    live = True
    ended = False

    def __init__(self, options: SerialOptions, baud: int) -> None:
        self.baud = baud
        self.queue = DeviceOutputQueue()
        self.trouble = ""
        self._options = options
        self._path = find(options).path
        driver_s = hold_back_s(self._path)
        self.hold_back_s = DEFAULT_HOLD_BACK_S if driver_s is None else driver_s
        self.name = f"{self._path} at {baud}"
        self._port: serial.SerialBase | None = None
        self._stop = threads.event()
        self._thread = threads.thread(self._run, name="monitor-serial")

    def open(self) -> None:
        """DeviceError when the port cannot be opened."""
        self._port = self._open_port()
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)

    def at_other_rates(self, seconds: float) -> Iterator[tuple[int, bytes | DeviceError]]:
        for rate in (other_rate for other_rate in RATES if other_rate != self.baud):
            source = SerialSource(replace(self._options, baud=rate), rate)
            try:
                source.open()
            except DeviceError as error:
                yield rate, error
                continue
            threads.sleep(seconds)
            source.close()
            yield rate, b"".join(piece.data for piece in source.queue.take(HELD_BYTES))

    def _open_port(self) -> serial.SerialBase:
        if "://" not in self._path:
            return open_port(self._path, self.baud, timeout=0.1)
        try:
            return serial.serial_for_url(self._path, baudrate=self.baud, timeout=0.1)
        except (OSError, ValueError) as error:  # SerialException is an OSError
            raise DeviceError(
                f"{self._path} cannot be opened: {error}", remedy="List the ports: harness check doctor"
            ) from error

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with closing(self._port or self._open_port()) as port:
                    self._port, self.trouble = None, ""
                    while not self._stop.is_set():
                        if data := port.read(max(1, min(CHUNK_BYTES, getattr(port, "in_waiting", 1)))):
                            self.queue.put(output_now(data))
            except DeviceError:
                pass  # still gone
            except (OSError, TypeError) as error:
                self.trouble = f"the port is gone ({error}); the monitor tries again every {exact(_REOPEN_S)} s"
            self._stop.wait(_REOPEN_S)
        if self._port is not None:  # closed before the first look
            self._port.close()
