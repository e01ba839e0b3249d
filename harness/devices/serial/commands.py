"""Stands and power switches with a line protocol on a serial port: a command a line, and a line when it is done."""

from __future__ import annotations

import select
import threading
from enum import StrEnum

import regex

from harness.base import threads
from harness.base.foreign import plain_text
from harness.base.ports import Sink, Surroundings
from harness.devices.orders import LOOK_S, OrderAnswers
from harness.devices.serial.options import SerialOptions
from harness.devices.serial.port import OpenPort, PortLost, find
from harness.model.errors import DeviceError, InputError
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.positioners import BenchOrder

_LONGEST_LINE = 4096
_DECIMAL = regex.compile(r"\d+[.,]\d+")
ASK_AGAIN_S = 0.5


class LineEnd(StrEnum):
    """What ends a command."""

    LF = "lf"
    CR = "cr"
    CRLF = "crlf"


_BYTES = {LineEnd.LF: b"\n", LineEnd.CR: b"\r", LineEnd.CRLF: b"\r\n"}


@frozen
class SerialCommandOptions:
    """Either `port` or `usb` names the port.

    port: A path, preferably in /dev/serial/by-id, or socket://host:port of a bridge.
    usb: The adapter's USB serial number, or its vid:pid if there is only one such adapter.
    baud: Baud rate.
    line_end: What ends a command: lf, cr or crlf. Answers may end with any of them.
    ready_after_s: How long the far end takes no commands after the port was opened, s. An Arduino restarts then: 2.
    """

    port: str = ""
    usb: str = ""
    baud: int = 9600
    line_end: LineEnd = LineEnd.LF
    ready_after_s: float = 0.0

    def __post_init__(self) -> None:
        _ = self.at
        if self.baud < 1:
            raise InputError(f"baud is {self.baud}", remedy="Write the baud rate")
        if not 0 <= self.ready_after_s <= 60:
            raise InputError(f"ready_after_s is {exact(self.ready_after_s)}", remedy="Choose from 0 to 60")

    @property
    def at(self) -> SerialOptions:
        """Where the port is."""
        return SerialOptions(port=self.port, usb=self.usb, baud=self.baud)


class SerialCommands:
    """Sends each order as a line, and compares each line that comes back. Opens the port again after a loss."""

    Options = SerialCommandOptions

    def __init__(self, id: str, options: SerialCommandOptions, surroundings: Surroundings) -> None:
        self.id = id
        self._options = options
        self._port: OpenPort | None = None
        self._lock = threads.lock()

    @staticmethod
    def demand_host(options: SerialCommandOptions) -> None:
        """DeviceError when the port is missing."""
        find(options.at)

    def open(self, sink: Sink) -> None:
        """DeviceError if the port cannot be opened."""
        self._open_port()

    def close(self) -> None:
        port, self._port = self._port, None
        if port is not None:
            port.close()

    def carry_out(self, order: BenchOrder, given_up: threading.Event) -> None:
        """Without `done` it returns when the port has taken the command."""
        with self._lock:
            answers = OrderAnswers(order, given_up)
            try:
                port = self._open_port()
            except DeviceError as error:
                raise DeviceError(f"{order.words}: {error.what}", remedy=error.remedy) from error
            try:
                self._say(port, order, answers)
            except PortLost as error:
                self.close()
                raise DeviceError(f"{order.words}: {error.what}", remedy="Check its cable and its power") from error

    def _open_port(self) -> OpenPort:
        if self._port is None:
            self._port = OpenPort(find(self._options.at).path, self._options.baud)
            threads.sleep(self._options.ready_after_s)
        return self._port

    def _say(self, port: OpenPort, order: BenchOrder, answers: OrderAnswers) -> None:
        while select.select([port], [], [], 0)[0]:
            port.read()  # what it sent before belongs to no order
        left = order.text.encode() + _BYTES[self._options.line_end]
        while left:
            left = left[port.write(left) :]
            if left:
                select.select([], [port], [], answers.left_s)
        unfinished = b""
        while order.done:
            if not select.select([port], [], [], answers.left_s)[0]:
                continue
            *lines, unfinished = (unfinished + port.read()).replace(b"\r", b"\n").split(b"\n")
            unfinished = unfinished[-_LONGEST_LINE:]
            if any(answers.take(raw_line.decode("utf-8", "replace")) for raw_line in lines if raw_line.strip()):
                return


def read_numbers(options: SerialCommandOptions, ask: str, seconds: float, low: float, high: float) -> list[float]:
    """What an instrument with a line protocol reads in that time: of each line, the first decimal from low to high.

    ask: what asks it for a reading, every ASK_AGAIN_S; "": it sends readings by itself. DeviceError if the port cannot
    be opened or disappears, or no line has one.
    """
    port = OpenPort(find(options.at).path, options.baud)
    numbers: list[float] = []
    unfinished, last, asked_s = b"", "", 0.0
    try:
        threads.sleep(options.ready_after_s)
        until_s = threads.monotonic() + seconds
        while (now_s := threads.monotonic()) < until_s:
            if ask and now_s >= asked_s + ASK_AGAIN_S:
                port.write(ask.encode() + _BYTES[options.line_end])
                asked_s = now_s
            if not select.select([port], [], [], LOOK_S)[0]:
                continue
            *lines, unfinished = (unfinished + port.read()).replace(b"\r", b"\n").split(b"\n")
            unfinished = unfinished[-_LONGEST_LINE:]
            for text in (each.decode("utf-8", "replace") for each in lines if each.strip()):
                last = text
                numbers += [x for x in _decimals(text) if low <= x <= high][:1]
    finally:
        port.close()
    if not numbers:
        detail = f"its last line was {plain_text(last.strip(), 80)!r}" if last else "it sent nothing"
        raise DeviceError(
            f"{options.port}: no reading from {exact(low)} to {exact(high)} in {exact(seconds)} s; {detail}",
            remedy="Check the meter, its baud rate, and what asks it for a reading",
        )
    return numbers


def _decimals(text: str) -> list[float]:
    return [float(number.replace(",", ".")) for number in _DECIMAL.findall(text)]
