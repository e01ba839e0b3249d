"""Stands and power switches with a line protocol on a serial port: a command a line, and a line when it is done.

    harness   far end
    GOTO 90   …                    any lines, each compared with `done` and `failed` of the order
              OK 90                `done` matches: the order is carried out

The thread that gives the order writes, reads and waits. A lock lets one order at a time use the port.
"""

from __future__ import annotations

import select
import threading
from contextlib import closing
from enum import StrEnum
from typing import ClassVar

import regex

from harness.base import threads
from harness.base.ports import Sink, Surroundings
from harness.devices.orders import CHECK_INTERVAL_S, OrderAnswers, last_line_text
from harness.devices.serial.options import SerialOptions
from harness.devices.serial.port import OpenPort, PortLost, find_port
from harness.model.errors import DeviceError, InputError, refuse_out_of_range
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.positioners import BenchOrder

_MAX_LINE_BYTES = 4096  # Of an unfinished answer, the last bytes are kept.
_DECIMAL = regex.compile(r"\d+[.,]\d+")
ASK_INTERVAL_S = 0.5  # Chosen: meters give about two readings a second.


class LineEnd(StrEnum):
    """What ends a command."""

    LF = "lf"
    CR = "cr"
    CRLF = "crlf"


_LINE_ENDS = {LineEnd.LF: b"\n", LineEnd.CR: b"\r", LineEnd.CRLF: b"\r\n"}


@frozen
class SerialCommandOptions:
    """Either `port` or `usb` names the port.

    - port: A path, preferably in /dev/serial/by-id, or socket://host:port of a bridge.
    - usb: The adapter's USB serial number, or its vid:pid if there is only one such adapter.
    - baud: Baud rate.
    - line_end: What ends a command: lf, cr or crlf. Answers may end with any of them.
    - ready_after_s: How long the far end takes no commands after the port was opened, s. An Arduino restarts then: 2.
    """

    CONFIRMED_BY: ClassVar[str] = "done"

    port: str = ""
    usb: str = ""
    baud: int = 9600
    line_end: LineEnd = LineEnd.LF
    ready_after_s: float = 0.0

    def __post_init__(self) -> None:
        _ = self.port_options  # raises InputError for a wrong port
        if self.baud < 1:
            raise InputError(f"baud is {self.baud}", remedy="Use a baud rate of at least 1")
        refuse_out_of_range(self, ready_after_s=(0, 60))

    @property
    def port_options(self) -> SerialOptions:
        """Where the port is, as a serial connection names it."""
        return SerialOptions(port=self.port, usb=self.usb, baud=self.baud)


class CommandPort:
    """An open port with a line protocol. unsent: bytes that the port has not accepted yet.

    The constructor raises DeviceError if the port cannot be opened. Later, PortLost means that it has disappeared.
    """

    def __init__(self, options: SerialCommandOptions) -> None:
        self.unsent = b""
        self._unfinished = b""
        self._line_end = _LINE_ENDS[options.line_end]
        self._port = OpenPort(find_port(options.port_options).path, options.baud)

    def close(self) -> None:
        self._port.close()

    def send(self, command: str) -> None:
        """Queues a command, which `exchange_lines` writes in as many pieces as the port accepts."""
        self.unsent = command.encode() + self._line_end

    def exchange_lines(self, limit_s: float) -> list[str]:
        """Writes what is unsent and reads what arrives, each once, within limit_s. Returns the lines that are complete.

        Blank lines are left out, except one if nothing else has arrived. A command may need several calls.
        """
        readable, writable, _ = select.select([self._port], [self._port] if self.unsent else [], [], limit_s)
        if writable:
            self.unsent = self.unsent[self._port.write(self.unsent) :]
        if not readable:
            return []
        *lines, unfinished = (self._unfinished + self._port.read()).replace(b"\r", b"\n").split(b"\n")
        self._unfinished = unfinished[-_MAX_LINE_BYTES:]
        texts = [line.decode("utf-8", "replace") for line in lines if line.strip()]
        return texts or ([""] if lines else [])

    def discard_input(self) -> None:
        """Drops what has arrived, even an unfinished line."""
        while select.select([self._port], [], [], 0)[0]:
            self._port.read()
        self._unfinished = b""


class SerialCommands:
    """Sends each order as a line, and compares each line that comes back. Opens the port again after a loss."""

    Options = SerialCommandOptions

    def __init__(self, id: str, options: SerialCommandOptions, surroundings: Surroundings) -> None:
        self.id = id
        self._options = options
        self._port: CommandPort | None = None
        self._lock = threads.lock()

    @staticmethod
    def demand_host(options: SerialCommandOptions) -> None:
        """Raises DeviceError when the port is missing."""
        find_port(options.port_options)

    def open(self, sink: Sink) -> None:
        """Raises DeviceError if the port cannot be opened."""
        self._open_port()

    def close(self) -> None:
        port, self._port = self._port, None
        if port is not None:
            port.close()

    def carry_out(self, order: BenchOrder, given_up: threading.Event) -> None:
        """Sends an order, and waits until it is done; without `done`, until the port has accepted the command."""
        with self._lock:
            answers = OrderAnswers(order, given_up)
            try:
                port = self._open_port()
            except DeviceError as error:
                raise DeviceError(f"{order.words}: {error.what}", remedy=error.remedy) from error
            try:
                self._send_and_wait(port, order, answers)
            except PortLost as error:
                self.close()
                raise DeviceError(
                    f"{order.words}: {error.what}", remedy="Check the cable and the power of the equipment"
                ) from error

    def _open_port(self) -> CommandPort:
        if self._port is None:
            self._port = CommandPort(self._options)
            threads.sleep(self._options.ready_after_s)
        return self._port

    def _send_and_wait(self, port: CommandPort, order: BenchOrder, answers: OrderAnswers) -> None:
        port.discard_input()  # it belongs to no order, or to an earlier one
        port.send(order.text)
        while port.unsent or order.done:
            lines = port.exchange_lines(answers.next_wait_s())
            if order.done and any(answers.reports_done(line) for line in lines):
                return


def read_numbers(options: SerialCommandOptions, ask: str, seconds: float, low: float, high: float) -> list[float]:
    """Reads an instrument with a line protocol: from each line, the first number with decimals between low and high.

    - ask: the query for a reading, which is sent every ASK_INTERVAL_S; "": it sends readings by itself.
    - seconds: how long to read. Raises DeviceError if the port cannot be opened or disappears, or no line has a
      reading.
    """
    readings: list[float] = []
    last_line: str | None = None
    with closing(CommandPort(options)) as port:
        threads.sleep(options.ready_after_s)
        last_query_s = 0.0
        until_s = threads.monotonic() + seconds
        while (now_s := threads.monotonic()) < until_s:
            if ask and not port.unsent and now_s >= last_query_s + ASK_INTERVAL_S:
                port.send(ask)
                last_query_s = now_s
            for line in port.exchange_lines(CHECK_INTERVAL_S):
                if line or last_line is None:
                    last_line = line
                numbers = (float(decimal.replace(",", ".")) for decimal in _DECIMAL.findall(line))
                reading = next((number for number in numbers if low <= number <= high), None)
                if reading is not None:
                    readings.append(reading)
    if not readings:
        detail = last_line_text(last_line)
        raise DeviceError(
            f"{options.port}: no reading from {exact(low)} to {exact(high)} in {exact(seconds)} s; {detail}",
            remedy="Check the meter, its baud rate, and the command that requests a reading",
        )
    return readings
