"""Drivers that execute orders to stands and power switches, and a stand as a device with one setting.

    session ──► PositionerSetting, DevicePower ──┬─ TakesOrders: `carry_out` sends the order and waits (OrderAnswers)
                                                 └─ AsksOperator: `request` gives the text for the operator

`carry_out` blocks the thread that calls it. `given_up` ends it early.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from harness.base import threads
from harness.base.foreign import plain_text
from harness.base.ports import Clock, Sink, Surroundings
from harness.model.bench import DeviceSetting
from harness.model.errors import DeviceError, InputError
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.positioners import BenchOrder, Positioner, PowerSwitch

ORDER_METHODS = ("carry_out", "request")
"""The methods for orders; a driver of stands and switches has one of them."""
MATCH_LIMIT_S = 0.2
"""Time limit for matching one answer, in seconds. A reasonable expression needs far less than 1 ms. The limit stops
runaway backtracking."""
CHECK_INTERVAL_S = 0.1
"""Interval at which a waiting driver checks whether it must stop, in seconds."""
_MAX_ANSWER_CHARS = 80
"""An error quotes at most this many characters of an answer."""


@runtime_checkable
class TakesOrders(Protocol):
    """A driver that carries out the orders of stands and power switches, one at a time."""

    def carry_out(self, order: BenchOrder, given_up: threading.Event) -> None:
        """Returns when the far end has reported that the order is done, or has accepted it if it cannot report.

        Raises DeviceError if that takes too long, if the far end refuses, or if `given_up` is set.
        """


@runtime_checkable
class AsksOperator(Protocol):
    """A driver whose orders a person carries out. The session pauses and shows the text until the operator resumes."""

    def request(self, order: BenchOrder) -> str:
        """The text that asks the operator to carry out the order."""


def last_line_text(line: str | None) -> str:
    """Quotes the last line of a far end, to end an error. line: "" if only blank lines arrived; None for nothing."""
    if line is None:
        return "it sent nothing"
    text = plain_text(line.strip(), _MAX_ANSWER_CHARS)
    return f"its last line was {text!r}" if text else "it sent only blank lines"


class OrderAnswers:
    """Compares the answers of a far end with an order, and waits for them until the order's time is over.

    The constructor raises DeviceError if the order was given up before it began.
    """

    def __init__(self, order: BenchOrder, given_up: threading.Event) -> None:
        import regex  # here, since few benches have stands or switches

        self._order = order
        self._given_up = given_up
        self._done_expression = regex.compile(order.done)
        self._failed_expression = regex.compile(order.failed) if order.failed else None
        self._deadline_s = threads.monotonic() + order.within_s
        self._last_answer: str | None = None
        """The last answer with text; "" if only blank ones arrived."""
        self.check()

    def check(self) -> None:
        """Raises DeviceError if the order was given up, or its time is over."""
        if self._given_up.is_set():
            raise DeviceError(f"{self._order.words}: abandoned, because the run is ending")
        if threads.monotonic() >= self._deadline_s:
            detail = last_line_text(self._last_answer)
            raise DeviceError(
                f"{self._order.words}: not done within {exact(self._order.within_s)} s; {detail}",
                remedy="Check that the equipment is on and can move, or correct `done` or `within_s` in the bench",
            )

    def next_wait_s(self) -> float:
        """How long to wait for an answer before the next check, s: at most CHECK_INTERVAL_S. Raises like `check`."""
        self.check()
        return min(max(0.0, self._deadline_s - threads.monotonic()), CHECK_INTERVAL_S)

    def reports_done(self, answer: str) -> bool:
        """Whether an answer reports that the order is done. Raises DeviceError if it reports that it has failed.

        An error about the order quotes the last answer.
        """
        text = plain_text(answer.strip(), _MAX_ANSWER_CHARS)
        if text or self._last_answer is None:
            self._last_answer = text
        try:
            if self._failed_expression is not None and self._failed_expression.search(answer, timeout=MATCH_LIMIT_S):
                raise DeviceError(
                    f"{self._order.words}: it reports {text!r}", remedy="Check the equipment and the bench"
                )
            return self._done_expression.search(answer, timeout=MATCH_LIMIT_S) is not None
        except TimeoutError as error:
            raise DeviceError(
                f"{self._order.words}: `done` or `failed` takes too long to compare with {text!r}",
                remedy="Simplify the expression",
            ) from error

    def wait(self, answers: queue.SimpleQueue[str]) -> None:
        """Returns when one of the answers that arrive reports that the order is done. Raises like `check`."""
        while True:
            try:
                if self.reports_done(answers.get(timeout=self.next_wait_s())):
                    return
            except queue.Empty:
                continue


class PositionerSetting:
    """A stand as a device with one setting (`HasSettings`): its position.

    The position is not known before the first movement, and after a movement that failed.
    """

    def __init__(self, stand: Positioner, driver: TakesOrders | AsksOperator, clock: Clock) -> None:
        self.stand = stand
        self._driver = driver
        self._clock = clock
        self._position = ""

    @property
    def by_hand(self) -> bool:
        """Whether the operator moves the stand."""
        return isinstance(self._driver, AsksOperator)

    def settings(self) -> Mapping[str, DeviceSetting]:
        return {self.stand.moves: DeviceSetting(self.stand.moves, self._position)}

    def request(self, value: str) -> str:
        """What the operator is asked to do; "" if no operator moves the stand."""
        return self._driver.request(self.stand.order(value)) if isinstance(self._driver, AsksOperator) else ""

    def set_setting(self, name: str, value: str, given_up: threading.Event | None = None) -> None:
        """Returns when the stand has arrived and settled. Raises DeviceError if it does not arrive in time.

        given_up: raises DeviceError if it is set during the movement, and returns at once if it is set while the stand
        settles. If the operator moves the stand, they have already done so when this is called.
        """
        self._position = ""
        given_up = given_up or threads.event()
        if isinstance(self._driver, TakesOrders):
            self._driver.carry_out(self.stand.order(value), given_up)
            given_up.wait(self._clock.real_s(self.stand.settle_s))
        self._position = value


class DevicePower:
    """The power of a device, which its switch turns on and off."""

    def __init__(self, switch: PowerSwitch, driver: TakesOrders | AsksOperator) -> None:
        self.switch = switch
        self._driver = driver

    @property
    def by_hand(self) -> bool:
        """Whether the operator switches the power."""
        return isinstance(self._driver, AsksOperator)

    def request(self, *, on: bool) -> str:
        """What the operator is asked to do; "" if no operator does it."""
        return self._driver.request(self.switch.order(on=on)) if isinstance(self._driver, AsksOperator) else ""

    def turn(self, *, on: bool, given_up: threading.Event) -> None:
        """Returns when the switch reports the change.

        Raises DeviceError if that takes too long, or `given_up` is set.

        If the operator switches the power, they have already done so when this is called.
        """
        if isinstance(self._driver, TakesOrders):
            self._driver.carry_out(self.switch.order(on=on), given_up)


@frozen
class SimulatedOptions:
    """Options of simulated stands and switches.

    - per_s: How far it moves in a second, in the unit of what it moves.
    - starts_at: Where it stands at the start.
    - speed: Speed relative to real time, which must be equal for all simulated equipment of a bench.
    """

    per_s: float = 30.0
    starts_at: float = 0.0
    speed: float = 1.0

    def __post_init__(self) -> None:
        for name in ("per_s", "speed"):
            if not getattr(self, name) > 0:
                raise InputError(
                    f"{name} is {exact(getattr(self, name))}, which is out of range", remedy="Use a number above 0"
                )


class Simulated:
    """A stand that moves at a stated speed, and a switch that switches at once; both exist in this process only."""

    Options = SimulatedOptions
    simulated = True

    def __init__(self, id: str, options: SimulatedOptions, surroundings: Surroundings) -> None:
        self.id = id
        self._options = options
        self._clock = surroundings.clock
        self.position = options.starts_at
        self.orders: list[BenchOrder] = []

    def open(self, sink: Sink) -> None:
        """Nothing to open."""

    def close(self) -> None:
        """Nothing to close."""

    def carry_out(self, order: BenchOrder, given_up: threading.Event) -> None:
        """Waits as long as the movement takes; DeviceError as in `TakesOrders`."""
        self.orders.append(order)
        if not order.value:  # an order to a power switch, which takes no time
            return
        goal = float(order.value)
        movement_s = abs(goal - self.position) / self._options.per_s
        if given_up.wait(self._clock.real_s(min(movement_s, order.within_s))):
            raise DeviceError(f"{order.words}: abandoned, because the run is ending")
        if movement_s > order.within_s:
            problem = f"{order.words}: not done within {exact(order.within_s)} s"
            raise DeviceError(problem, remedy="Increase `within_s` or `per_s`")
        self.position = goal


@frozen
class ManualOptions:
    """A stand or switch that the operator works has no options."""


class Manual:
    """The operator moves the stand, or switches the power, and then resumes the run."""

    Options = ManualOptions

    def __init__(self, id: str, options: ManualOptions, surroundings: Surroundings) -> None:
        self.id = id

    def open(self, sink: Sink) -> None:
        """Nothing to open."""

    def close(self) -> None:
        """Nothing to close."""

    def request(self, order: BenchOrder) -> str:
        return f"{order.words}, then resume"
