"""Stands that move things on a bench, switches for the power of its devices, and the orders that both execute."""

from __future__ import annotations

import math
import re

from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.model.numbers import exact

_VALUE = re.compile(r"\{value(?::([^{}]*))?\}")
"""A placeholder for the value in a template. Other braces are left alone: JSON and expressions have some."""


def filled(template: str, value: str, *, escaped: bool = False) -> str:
    """The template with the value in place of each `{value}` or `{value:.1f}`.

    escaped: the template is a regular expression, so the value is escaped.
    Raises InputError for a format that numbers do not have.
    """

    def fill(match: re.Match[str]) -> str:
        try:
            text = format(float(value), match[1]) if match[1] else value
        except ValueError as error:
            problem = f"{match[0]} does not fit the number {value}: {error}"
            raise InputError(problem, remedy="Write {value} or, for example, {value:.1f}") from error
        return re.escape(text) if escaped else text

    return _VALUE.sub(fill, template)


@frozen
class BenchOrder:
    """An order to a stand or a power switch.

    words: the order in words, such as `turntable: set angle_deg to 30`. text: the message to send.
    value: the value to set, for templates among the driver's options, such as a topic; "" for a switch.
    done: a regular expression that matches the report that the order is executed; "": the driver's own rule applies.
    failed: a regular expression that matches the report that it has failed; "": there is no such report.
    within_s: longest time until it is executed.
    """

    words: str
    text: str
    value: str = ""
    done: str = ""
    failed: str = ""
    within_s: float = 60.0


@frozen
class Positioner:
    """A stand, such as a turntable, a slider or a lift, which sets one number of the room.

    - connection: id of the equipment that executes its orders.
    - moves: the axis of the matrix, or the device setting, that it sets.
    - move, done, failed: templates for `text`, `done` and `failed` of its orders.
    - low, high: the ends of its range; None: not known.
    - home: the value to which it is set when a trial does not set it, and at the end; None: it stays where it is.
    - settle_s: pause after a movement.
    - within_s: longest time of a movement.
    """

    id: str
    connection: str
    moves: str
    move: str = "{value}"
    done: str = ""
    failed: str = ""
    low: float | None = None
    high: float | None = None
    home: float | None = None
    settle_s: float = 0.5
    within_s: float = 60.0

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise InputError(
                f"low is {exact(self.low)}, but high is {exact(self.high)}", remedy="Write the lower end as `low`"
            )
        if self.home is not None and (refusal := self.refusal(exact(self.home))):
            raise InputError(f"home is {exact(self.home)}, which {refusal}", remedy="Write a place that it can reach")
        for template in (self.move, self.done, self.failed):
            filled(template, "1.5")
        refuse_expressions(done=filled(self.done, "1.5", escaped=True), failed=filled(self.failed, "1.5", escaped=True))

    def refusal(self, value: str) -> str:
        """Why it cannot be set to this value; "" if it can."""
        try:
            number = float(value)
        except ValueError:
            return "is not a number"
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return (
            "" if math.isfinite(number) and low <= number <= high else f"is not between {exact(low)} and {exact(high)}"
        )

    def order(self, value: str) -> BenchOrder:
        return BenchOrder(
            f"{self.id}: set {self.moves} to {value}",
            filled(self.move, value),
            value,
            filled(self.done, value, escaped=True),
            filled(self.failed, value, escaped=True),
            self.within_s,
        )


@frozen
class PowerSwitch:
    """What switches the power of a device: a relay, a smart plug, a power supply.

    - device: id of the device.
    - connection: id of the equipment that executes its orders.
    - on, off: messages that switch the power. on_done, off_done, failed: regular expressions for the reports that
      follow, as in `BenchOrder`.
    - off_s: how long the power stays off.
    - boot_s: longest time from power on until the device answers.
    - ready_s: pause after that.
    - within_s: longest time of one order.
    """

    device: str
    connection: str
    on: str = "ON"
    off: str = "OFF"
    on_done: str = ""
    off_done: str = ""
    failed: str = ""
    off_s: float = 2.0
    boot_s: float = 60.0
    ready_s: float = 0.0
    within_s: float = 10.0

    def __post_init__(self) -> None:
        refuse_expressions(on_done=self.on_done, off_done=self.off_done, failed=self.failed)

    def order(self, *, on: bool) -> BenchOrder:
        words = f"{self.device}: switch its power {'on' if on else 'off'}"
        text, done = (self.on, self.on_done) if on else (self.off, self.off_done)
        return BenchOrder(words, text, "", done, self.failed, self.within_s)


def refuse_expressions(**expressions: str) -> None:
    """Raises InputError for the first key whose text is not a regular expression."""
    for key, text in expressions.items():
        try:
            re.compile(text)
        except re.error as error:
            raise InputError(f"{key} is not an expression: {error}", remedy="Write, for example, '^OK'") from error
