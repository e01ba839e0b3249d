"""Stands and power supplies that speak SCPI, over every interface of PyVISA: TCP, serial, USB, GPIB."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from harness.base import threads
from harness.base.foreign import plain_text
from harness.base.host_check import Check, Level
from harness.base.plugins import import_extra
from harness.base.ports import Sink, Surroundings
from harness.devices.orders import OrderAnswers
from harness.model.errors import DeviceError, HarnessError, InputError
from harness.model.frozen import frozen
from harness.model.positioners import BenchOrder, filled

_CONNECT_LIMIT_MS = 5000
_READ_MS = 300
"""A read waits this long at a time. In between, the order's deadline and a request to give up are checked."""
_ASK_INTERVAL_S = 0.2
"""Pause between two queries whether an order is done, in seconds."""
_IDENTIFY_LIMIT_S = 5.0
_MAX_IDENTITY_CHARS = 100
_NO_ERROR = ("0", "+0")
"""The first field of the answer of an empty error queue."""


@frozen
class ScpiOptions:
    """Options of instruments.

    resource: VISA address, such as TCPIP::192.168.1.30::5025::SOCKET or ASRL/dev/ttyUSB0::INSTR.
    ask: Query that shows when an order is done. It may contain {value}. It is repeated until its answer fits `done`.
        Empty: orders are not confirmed.
    errors: Query of the error queue after each order, usually SYST:ERR?. Empty: none.
    identify: Query that shows at the start that the instrument is there. Empty: none.
    baud: Baud rate of a serial resource.
    visa: VISA library for PyVISA. @py is PyVISA-py, which the extra scpi installs.
    """

    CONFIRMED_BY: ClassVar[str] = "ask"

    resource: str
    ask: str = "*OPC?"
    errors: str = ""
    identify: str = "*IDN?"
    baud: int = 9600
    visa: str = "@py"

    def __post_init__(self) -> None:
        if "::" not in self.resource:
            raise InputError(
                f"{self.resource!r} is not a VISA address",
                remedy="Use an address such as TCPIP::192.168.1.30::5025::SOCKET",
            )
        filled(self.ask, "1.5")


class Scpi:
    """Sends each order, and asks whether it is done. Connects again after a loss."""

    Options = ScpiOptions

    def __init__(self, id: str, options: ScpiOptions, surroundings: Surroundings | None = None) -> None:
        self.id = id
        self._options = options
        self._instrument: Any = None
        self._lock = threads.lock()

    @staticmethod
    def demand_host(options: ScpiOptions) -> None:
        """Raises PluginError when PyVISA or PyVISA-py is not installed."""
        _visa(options)

    @staticmethod
    def host_checks(connections: Sequence[tuple[str, ScpiOptions]]) -> Iterator[Check]:
        """Asks each instrument for its identity; moves and switches nothing."""
        for id, options in connections:
            instrument = Scpi(id, options)
            try:
                identity = instrument.identify()
            except HarnessError as error:
                yield Check("scpi", Level.FAIL, f"{id}: {error.what}", error.remedy)
            else:
                answer = f"answers: {identity}" if identity else "answers"
                yield Check("scpi", Level.OK, f"{id}: {options.resource} {answer}")
            finally:
                instrument.close()

    def open(self, sink: Sink) -> None:
        """Raises DeviceError if the instrument does not answer."""
        self.identify()

    def identify(self) -> str:
        """The identity that the instrument reports, sanitised; "" if it is not asked. DeviceError without an answer."""
        if not self._options.identify:
            self._open_instrument()
            return ""
        order = BenchOrder(
            f"{self.id}: {self._options.identify} at {self._options.resource}", "", within_s=_IDENTIFY_LIMIT_S
        )
        with self._device_errors(order):
            instrument, answers = self._open_instrument(), OrderAnswers(order, threads.event())
            instrument.write(self._options.identify)
            return plain_text(self._read_answer(instrument, answers).strip(), _MAX_IDENTITY_CHARS)

    def close(self) -> None:
        instrument, self._instrument = self._instrument, None
        if instrument is not None:
            with contextlib.suppress(Exception):  # PyVISA raises many kinds for a connection that is gone
                instrument.close()

    def carry_out(self, order: BenchOrder, given_up: threading.Event) -> None:
        """Sends an order, and waits until it is done. Without `ask`, it returns when the command has been sent."""
        with self._lock, self._device_errors(order):
            answers = OrderAnswers(order, given_up)
            instrument = self._open_instrument()
            instrument.write(order.text)
            if self._options.ask:
                self._wait_until_done(instrument, filled(self._options.ask, order.value), answers, given_up)
            if self._options.errors:
                instrument.write(self._options.errors)
                answer = self._read_answer(instrument, answers)
                if answer.split(",")[0].strip() not in _NO_ERROR:  # such as 0,"No error"
                    raise DeviceError(
                        f"{order.words}: it reports {answer.strip()!r}", remedy="Check the command in the bench"
                    )

    @contextlib.contextmanager
    def _device_errors(self, order: BenchOrder) -> Iterator[None]:
        """Converts errors of the connection to DeviceError, and closes it after any.

        So the next order connects again, and does not read a late answer to this one.
        """
        try:
            yield
        except DeviceError:
            self.close()
            raise
        except (_visa(self._options).errors.Error, OSError) as error:
            self.close()
            raise DeviceError(f"{order.words}: {self._options.resource}: {error}", remedy=_REMEDY) from error

    def _open_instrument(self) -> Any:
        """The open instrument, which is connected if it is not yet. Raises DeviceError if that fails."""
        if self._instrument is None:
            visa, resource = _visa(self._options), self._options.resource
            try:
                instrument = visa.ResourceManager(self._options.visa).open_resource(
                    resource, open_timeout=_CONNECT_LIMIT_MS
                )
                instrument.read_termination = instrument.write_termination = "\n"
                instrument.timeout = _READ_MS
                if resource.upper().startswith("ASRL"):
                    instrument.baud_rate = self._options.baud
            except Exception as error:
                raise DeviceError(f"{self.id}: {resource} cannot be reached: {error}", remedy=_REMEDY) from error
            self._instrument = instrument
        return self._instrument

    def _wait_until_done(self, instrument: Any, ask: str, answers: OrderAnswers, given_up: threading.Event) -> None:
        while True:
            instrument.write(ask)
            if answers.reports_done(self._read_answer(instrument, answers)):
                return
            given_up.wait(min(answers.next_wait_s(), _ASK_INTERVAL_S))

    def _read_answer(self, instrument: Any, answers: OrderAnswers) -> str:
        """The next line. *OPC? is answered only when the order is done.

        Raises DeviceError when the order's time is over.
        """
        visa = _visa(self._options)
        while True:
            answers.check()
            try:
                return str(instrument.read())
            except visa.errors.VisaIOError as error:
                if error.error_code != visa.constants.StatusCode.error_timeout:
                    raise


_REMEDY = "Check that the instrument is on, and that `resource` in the bench is correct"


def _visa(options: ScpiOptions) -> Any:
    """PyVISA. Raises PluginError when it is not installed, or PyVISA-py is not and the options name it."""
    if options.visa == "@py":
        import_extra("pyvisa_py", "PyVISA-py, which reaches SCPI instruments", "scpi")
    return import_extra("pyvisa", "PyVISA, which reaches SCPI instruments", "scpi")
