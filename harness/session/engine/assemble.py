"""Makes drivers and a clock from what is stored in a session's folder.

It is separate from prepare.py, since an engine needs no code for the files that people write, and starts faster.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter

from harness.base.clocks import HostClock, ScaledClock
from harness.base.foreign import plain_text
from harness.base.places import SessionFolder
from harness.base.plugins import Group, load
from harness.base.ports import Clock, Driver, HasSettings, Hears, Renders, SessionLog, Stimulates
from harness.base.whole_file import write_atomically
from harness.devices.declared import FindsEarcons, IsPrompted, is_simulated, program
from harness.devices.orders import AsksOperator, DevicePower, PositionerSetting, TakesOrders
from harness.model.bench import Bench, Device, DeviceProfile, Equipment
from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.model.numbers import exact
from harness.model.scenario import Scenario
from harness.model.stimulus import RenderedStimulus
from harness.model.trial import Trial
from harness.session.engine.notify import name_of
from harness.session.figures.live import LiveFigures
from harness.session.levels import LevelRule
from harness.session.log.reader import read_stored
from harness.session.run import ConductorContext
from harness.sound.stimuli.renderer import renderer

if TYPE_CHECKING:
    from harness.sound.earcons import LearnedEarcon


@frozen
class ResolvedSession:
    """The scenario and the bench of one session, with all names resolved."""

    scenario: Scenario
    bench: Bench


@cache
def _adapter() -> TypeAdapter[ResolvedSession]:
    """The adapter of stored sessions, created on first use: that takes long, and not every command needs it."""
    return TypeAdapter(ResolvedSession)


def write_resolved(folder: Path, resolved: ResolvedSession) -> None:
    """Stores scenario and bench in a session's folder. Raises LogFull or LogError."""
    write_atomically(SessionFolder(folder).resolved, _adapter().dump_json(resolved, indent=1))


def read_resolved(folder: Path) -> ResolvedSession:
    """The stored scenario and bench. Raises LogError when the file is damaged.

    Driver options stay as they are stored; `with_typed_options` gives them their types.
    """
    return read_stored(folder, _adapter())


def demand_trust(folder: Path) -> None:
    """Raises InputError if a session is from an archive, and its bench would use programs or addresses.

    The error names all of them.
    """
    if not SessionFolder(folder).manifest.exists():
        return
    bench = with_typed_options(read_resolved(folder).bench)
    programs = [shlex.join(notify.command) or name_of(notify) for notify in bench.notify]
    programs += [command for part in equipment_of(bench) if (command := program(part.driver, part.options))]
    if programs:
        raise InputError(
            f"{folder} was unpacked from an archive. On this host, its bench would use these programs and addresses: "
            + "; ".join(plain_text(command, 400) for command in programs),
            remedy="If you trust all of them, resume the session with --trust",
        )


def with_typed_options(bench: Bench) -> Bench:
    """The bench with the options of each driver in that driver's own type.

    Raises PluginError when a driver is no longer installed.
    """

    def with_types(equipment: Equipment | None) -> Any:
        if equipment is None:
            return None
        driver = load(Group.DRIVERS, equipment.driver, place=equipment.place)
        return replace(equipment, options=TypeAdapter(driver.Options).validate_python(equipment.options))

    def device_with_types(device: Device) -> Device:
        further_sources = tuple(replace(source, equipment=with_types(source.equipment)) for source in device.also)
        return replace(device, connection=with_types(device.connection), also=further_sources)

    return replace(
        bench,
        devices=tuple(device_with_types(device) for device in bench.devices),
        loudspeakers=tuple(with_types(loudspeaker) for loudspeaker in bench.loudspeakers),
        microphone=with_types(bench.microphone),
        monitor=with_types(bench.monitor),
        actuators=tuple(with_types(actuator) for actuator in bench.actuators),
    )


def equipment_of(bench: Bench) -> tuple[Equipment, ...]:
    """All equipment with a driver, each id once (`same_as` gives one piece several roles)."""
    equipment_by_id: dict[str, Equipment] = {}
    candidates = (
        *bench.actuators,
        *bench.loudspeakers,
        bench.microphone,
        bench.monitor,
        *(equipment for device in bench.devices for equipment, _ in device.equipment),
    )
    for equipment in candidates:
        if equipment is not None:
            equipment_by_id.setdefault(equipment.id, equipment)
    return tuple(equipment_by_id.values())


@frozen
class BenchSurroundings:
    """Implements `ports.Surroundings`."""

    clock: Clock
    sound_server: str
    seed: int
    folder: Path
    profile: DeviceProfile | None


def clock_of(bench: Bench) -> Clock:
    """The session's clock: faster than the host's only if the whole bench is in this process.

    Raises InputError when the parts of such a bench ask for different speeds.
    """
    equipment = equipment_of(bench)
    speeds = {part.id: float(getattr(part.options, "speed", 1.0)) for part in equipment if is_simulated(part.driver)}
    if len(set(speeds.values())) > 1:
        raise InputError(
            f"devices of one bench have different speeds: {_list_speeds(speeds)}",
            place=equipment[0].place,
            remedy="Set the same `speed` for all simulated devices",
        )
    if not speeds or set(speeds.values()) == {1.0}:
        return HostClock()
    simulated_id, speed = next(iter(speeds.items()))
    for part in equipment:
        if not is_simulated(part.driver):
            raise InputError(
                f"{simulated_id!r} has speed {exact(speed)}, but {part.id!r} is real",
                place=part.place,
                remedy="Remove `speed`: real sound and real devices run in real time",
            )
    return ScaledClock(speed, HostClock())


def assemble(bench: Bench, clock: Clock, seed: int, scratch: Path) -> Mapping[str, Driver]:
    """Makes a driver for each piece of equipment, by its id, and opens none of them.

    scratch: a folder for files of the drivers that need not outlive the session. It is made if it is missing.
    Raises PluginError if a driver or one of its packages is not installed.
    """
    profiles = {equipment.id: profile for device in bench.devices for equipment, profile in device.equipment}
    drivers: dict[str, Driver] = {}
    for equipment in equipment_of(bench):
        folder = scratch / equipment.id
        folder.mkdir(parents=True, exist_ok=True)
        surroundings = BenchSurroundings(clock, bench.sound_server, seed, folder, profiles.get(equipment.id))
        driver_type = load(Group.DRIVERS, equipment.driver, place=equipment.place)
        drivers[equipment.id] = driver_type(equipment.id, equipment.options, surroundings)
    earcons: list[LearnedEarcon] = []
    for device in bench.devices:
        if device.earcons is not None:
            from harness.sound.earcon_file import learn  # here, since few devices have chimes

            earcons += learn(device.earcon_source, device.earcons)
    if earcons and bench.microphone is not None:
        microphone = drivers[bench.microphone.id]
        assert isinstance(microphone, FindsEarcons), bench.microphone.driver
        microphone.expect_earcons(tuple(earcons))
    return drivers


def conductor_context(
    resolved: ResolvedSession,
    drivers: Mapping[str, Driver],
    log: SessionLog,
    clock: Clock,
    figures: LiveFigures,
    *,
    renders: Renders | None = None,
    **further_fields: Any,
) -> ConductorContext:
    """The context of a session's conductor. renders: default is the renderer of voices."""
    bench, scenario = resolved.bench, resolved.scenario
    return ConductorContext(
        loudspeakers={player.id: cast(Stimulates, drivers[player.id]) for player in players_of(bench)},
        microphone=cast(Hears, drivers[bench.microphone.id]) if bench.microphone else None,
        log=log,
        renders=renders or renderer(),
        clock=clock,
        on_rendered=script_words(drivers),
        between_trials_s=scenario.defaults.between_trials_s,
        life_check_after=scenario.defaults.life_check_after,
        why_needless=figures.needless_reason,
        decisions=figures.decisions,
        is_explained=figures.is_explained,
        settings={id: driver for id, driver in drivers.items() if isinstance(driver, HasSettings)},
        on_fault=bench.on_fault,
        levels=LevelRule.of(bench),
        max_noise_floor_dbfs=bench.max_noise_floor_dbfs,
        stands=stands_of(bench, drivers, clock),
        power=power_of(bench, drivers),
        **further_fields,
    )


def players_of(bench: Bench) -> tuple[Equipment, ...]:
    """Players of stimuli: loudspeakers, and connections that carry audio."""
    connections = (device.connection for device in bench.devices)
    return (
        *bench.loudspeakers,
        *(connection for connection in connections if connection is not None and connection.injects),
    )


def stands_of(bench: Bench, drivers: Mapping[str, Driver], clock: Clock) -> dict[str, PositionerSetting]:
    """The stands of a bench, by their ids."""
    return {
        stand.id: PositionerSetting(stand, _order_taker(drivers[stand.connection]), clock) for stand in bench.stands
    }


def power_of(bench: Bench, drivers: Mapping[str, Driver]) -> dict[str, DevicePower]:
    """The power of the devices that have a switch, by their ids."""
    return {switch.device: DevicePower(switch, _order_taker(drivers[switch.connection])) for switch in bench.power}


def _order_taker(driver: Driver) -> TakesOrders | AsksOperator:
    assert isinstance(driver, TakesOrders | AsksOperator), driver.id
    return driver


def script_words(drivers: Mapping[str, Driver]) -> Callable[[Trial, RenderedStimulus], None] | None:
    """A function that gives simulated devices the words of each sound before it is played; None without such devices.

    A simulated device detects sound but no words, so the log marks its sound path as simulated.
    """
    prompted = [driver for driver in drivers.values() if isinstance(driver, IsPrompted)]
    if not prompted:
        return None

    def script(trial: Trial, stimulus: RenderedStimulus) -> None:
        for driver in prompted:
            driver.prompt(trial, stimulus)

    return script


def _list_speeds(speeds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} ×{exact(speed)}" for name, speed in speeds.items())
