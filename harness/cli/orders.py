"""`harness admin devices move` and `power`: try a stand or a power switch of a bench, without a session."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.cli.options import SHIPPED_FILE, argument, verb
from harness.model.errors import InputError, nearest
from harness.model.numbers import seconds

if TYPE_CHECKING:
    from harness.base.ports import Driver
    from harness.model.bench import Bench


@verb("move")
def move(*, bench: Path = argument(type=SHIPPED_FILE), stand: str = argument(), value: str = argument()) -> None:
    """Move STAND of BENCH to VALUE, as a run does before a trial. It stays there.

    Exit status: 0 arrived · 2 the bench has no such stand, or it cannot go there · 3 it has not arrived.
    """
    from harness.base.clocks import HostClock
    from harness.scenario.bench import load_bench
    from harness.session.engine.assemble import stands_of

    found = load_bench(bench)
    one = next((one for one in found.stands if one.id == stand), None)
    if one is None:
        raise InputError(
            f"{bench} has no stand {stand!r}",
            remedy=nearest(stand, [one.id for one in found.stands], listed="Its stands"),
        )
    if refusal := one.refusal(value):
        raise InputError(f"{stand} cannot go there: {value} {refusal}", remedy="Change the value, or `low` and `high`")
    with _opened(found, one.connection) as drivers:
        setting = stands_of(replace(found, stands=(one,)), drivers, HostClock())[stand]
        _refuse_by_hand(setting.request(value))
        lasted_s = _timed(lambda: setting.set_setting(one.moves, value))
    click.echo(plain_text(f"{stand}: {one.moves} is {value}, after {seconds(lasted_s)}", 400))


@verb("power")
def power(
    *,
    bench: Path = argument(type=SHIPPED_FILE),
    device: str = argument(),
    state: str = argument(type=click.Choice(["on", "off"])),
) -> None:
    """Switch the power of DEVICE on BENCH on or off.

    Exit status: 0 switched · 2 the bench has no switch for that device · 3 the switch does not answer.
    """
    from harness.scenario.bench import load_bench
    from harness.session.engine.assemble import power_of

    found, on = load_bench(bench), state == "on"
    one = next((one for one in found.power if one.device == device), None)
    if one is None:
        raise InputError(
            f"{bench} has no power switch for {device!r}",
            remedy=nearest(device, [one.device for one in found.power], listed="It has them for"),
        )
    with _opened(found, one.connection) as drivers:
        switched = power_of(replace(found, power=(one,)), drivers)[device]
        _refuse_by_hand(switched.request(on=on))
        lasted_s = _timed(lambda: switched.turn(on=on, given_up=threading.Event()))
    click.echo(plain_text(f"{device}: its power is {state}, after {seconds(lasted_s)}", 400))


@contextmanager
def _opened(bench: Bench, connection: str) -> Iterator[dict[str, Driver]]:
    """The driver that takes the orders, by its id."""
    from harness.base.clocks import HostClock
    from harness.session.engine.assemble import assemble

    one = next(one for one in bench.actuators if one.id == connection)
    alone = replace(bench, devices=(), loudspeakers=(), microphone=None, monitor=None, actuators=(one,))
    with tempfile.TemporaryDirectory(prefix="voice-harness-") as scratch:
        drivers = dict(assemble(alone, HostClock(), 0, Path(scratch)))
        driver = drivers[one.id]
        try:
            driver.open(lambda seen: None)
            yield drivers
        finally:
            driver.close()


def _refuse_by_hand(request: str) -> None:
    if request:
        raise InputError("the operator does that by hand, so there is nothing to try", remedy="Run the scenario")


def _timed(work: Callable[[], None]) -> float:
    begun_s = time.monotonic()
    work()
    return time.monotonic() - begun_s
