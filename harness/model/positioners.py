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
            raise InputError(problem, remedy="Use `{value}` or, for example, `{value:.1f}`") from error
        return re.escape(text) if escaped else text

    return _VALUE.sub(fill, template)


@frozen
class BenchOrder:
    """An order to a stand or a power switch.

    - words: the order in words, such as `turntable: set angle_deg to 30`.
    - text: the message to send.
    - value: the value to set, for templates among the driver's options, such as a topic; "" for a switch.
    - done: a regular expression that matches the report that the order is executed; "": the driver's own rule applies.
    - failed: a regular expression that matches the report that it has failed; "": there is no such report.
    - within_s: longest time until it is executed.
    """

    words: str
    text: str
    value: str = ""
    done: str = ""
    failed: str = ""
    within_s: float = 60.0


@frozen
class Positioner:
    """A stand, such as a turntable, a slider or a lift, which sets one number of the room."""

    id: str
    connection: str
    """Id of the equipment that executes its orders."""
    moves: str
    """The axis of the matrix, or the device setting, that it sets."""
    move: str = "{value}"
    done: str = ""
    failed: str = ""
    """Templates for `text`, `done` and `failed` of its orders."""
    low: float | None = None
    high: float | None = None
    """The ends of its range; None: not known."""
    home: float | None = None
    """The value to which it is set when a trial does not set it, and at the end; None: it stays where it is."""
    settle_s: float = 0.5
    within_s: float = 60.0
    """Longest time of a movement."""

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise InputError(
                f"`low` is {exact(self.low)}, but `high` is {exact(self.high)}",
                remedy="Set `low` to the lower end of the range",
            )
        if self.home is not None and (refusal := self.refusal(exact(self.home))):
            raise InputError(
                f"`home` is {exact(self.home)}, which {refusal}", remedy="Set `home` to a value within the range"
            )
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
        if math.isfinite(number) and low <= number <= high:
            return ""
        return f"is not between {exact(low)} and {exact(high)}"

    def order(self, value: str) -> BenchOrder:
        """The order that moves it to a value."""
        return BenchOrder(
            words=f"{self.id}: set {self.moves} to {value}",
            text=filled(self.move, value),
            value=value,
            done=filled(self.done, value, escaped=True),
            failed=filled(self.failed, value, escaped=True),
            within_s=self.within_s,
        )


@frozen
class PowerSwitch:
    """What switches the power of a device: a relay, a smart plug, a power supply."""

    device: str
    """Id of the device."""
    connection: str
    """Id of the equipment that executes its orders."""
    on: str = "ON"
    off: str = "OFF"
    """Messages that switch the power."""
    on_done: str = ""
    off_done: str = ""
    failed: str = ""
    """Regular expressions for the reports that follow, as in `BenchOrder`."""
    off_s: float = 2.0
    boot_s: float = 60.0
    """Longest time from power on until the device answers."""
    ready_s: float = 0.0
    """Pause after that."""
    within_s: float = 10.0
    """Longest time of one order."""

    def __post_init__(self) -> None:
        refuse_expressions(on_done=self.on_done, off_done=self.off_done, failed=self.failed)

    def order(self, *, on: bool) -> BenchOrder:
        """The order that switches the power on or off. It sets no value."""
        words = f"{self.device}: switch its power {'on' if on else 'off'}"
        text, done = (self.on, self.on_done) if on else (self.off, self.off_done)
        return BenchOrder(words, text, done=done, failed=self.failed, within_s=self.within_s)


def refuse_expressions(**expressions: str) -> None:
    """Raises InputError for the first key whose text is not a regular expression."""
    for key, text in expressions.items():
        try:
            re.compile(text)
        except re.error as error:
            raise InputError(
                f"{key} is not a regular expression: {error}", remedy="Use an expression such as '^OK'"
            ) from error
