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
    """Move STAND of BENCH to VALUE, as a run does before a trial. The stand stays there.

    Exit status: 0 arrived · 2 the bench has no such stand, or it cannot move there · 3 it has not arrived.
    """
    from harness.base.clocks import HostClock
    from harness.scenario.bench import load_bench
    from harness.session.engine.assemble import stands_of

    loaded_bench = load_bench(bench)
    bench_stand = next((candidate for candidate in loaded_bench.stands if candidate.id == stand), None)
    if bench_stand is None:
        raise InputError(
            f"{bench} has no stand {stand!r}",
            remedy=nearest(stand, [candidate.id for candidate in loaded_bench.stands], listed="Its stands"),
        )
    if refusal := bench_stand.refusal(value):
        raise InputError(f"{stand} cannot move there: {value} {refusal}", remedy="Change the value, `low` or `high`")
    with _open_drivers(loaded_bench, bench_stand.connection) as drivers:
        driver = stands_of(replace(loaded_bench, stands=(bench_stand,)), drivers, HostClock())[stand]
        _refuse_manual(driver.request(value))
        duration_s = _measure_s(lambda: driver.set_setting(bench_stand.moves, value))
    click.echo(plain_text(f"{stand}: {bench_stand.moves} is {value}, after {seconds(duration_s)}", 400))


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

    loaded_bench, turns_on = load_bench(bench), state == "on"
    switch = next((candidate for candidate in loaded_bench.power if candidate.device == device), None)
    if switch is None:
        raise InputError(
            f"{bench} has no power switch for {device!r}",
            remedy=nearest(device, [candidate.device for candidate in loaded_bench.power], listed="Power switches"),
        )
    with _open_drivers(loaded_bench, switch.connection) as drivers:
        driver = power_of(replace(loaded_bench, power=(switch,)), drivers)[device]
        _refuse_manual(driver.request(on=turns_on))
        duration_s = _measure_s(lambda: driver.turn(on=turns_on, given_up=threading.Event()))
    click.echo(plain_text(f"{device}: its power is {state}, after {seconds(duration_s)}", 400))


@contextmanager
def _open_drivers(bench: Bench, connection: str) -> Iterator[dict[str, Driver]]:
    """Opens only the driver that takes the orders, and yields it by its id. Closes it after the block."""
    from harness.base.clocks import HostClock
    from harness.session.engine.assemble import assemble

    actuator = next(candidate for candidate in bench.actuators if candidate.id == connection)
    alone = replace(bench, devices=(), loudspeakers=(), microphone=None, monitor=None, actuators=(actuator,))
    with tempfile.TemporaryDirectory(prefix="voice-harness-") as scratch:
        drivers = dict(assemble(alone, HostClock(), seed=0, scratch=Path(scratch)))
        driver = drivers[actuator.id]
        try:
            driver.open(lambda observation: None)
            yield drivers
        finally:
            driver.close()


def _refuse_manual(request: str) -> None:
    """Raises InputError if the operator carries the order out. request: what the operator is asked to do; "" for a
    driver."""
    if request:
        raise InputError(
            "the operator carries out this order by hand, so there is nothing to test", remedy="Run the scenario"
        )


def _measure_s(work: Callable[[], None]) -> float:
    start_s = time.monotonic()
    work()
    return time.monotonic() - start_s
