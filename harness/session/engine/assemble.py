"""Reads what a session runs, as stored beside its log. Turns the bench into drivers, a clock and texts on sound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from harness.base.clocks import HostClock, ScaledClock
from harness.base.places import SessionFolder
from harness.base.plugins import Group, load
from harness.base.ports import Clock, Driver
from harness.base.whole_file import write_whole
from harness.devices.declared import FindsEarcons, IsPrompted, simulated
from harness.devices.orders import AsksOperator, DevicePower, StandSetting, TakesOrders
from harness.model.bench import Bench, Device, DeviceProfile, Equipment
from harness.model.errors import InputError
from harness.model.scenario import Scenario
from harness.model.stimulus import RenderedStimulus
from harness.model.trial import Trial
from harness.session.log.reader import read_stored
from harness.sound.earcon_file import learned


@dataclass(frozen=True, slots=True)
class Resolved:
    """What one session runs."""

    scenario: Scenario
    bench: Bench


_ADAPTER: TypeAdapter[Resolved] = TypeAdapter(Resolved)


def write_resolved(folder: Path, resolved: Resolved) -> None:
    """LogFull, LogError."""
    write_whole(SessionFolder(folder).resolved, _ADAPTER.dump_json(resolved, indent=1))


def read_resolved(folder: Path) -> Resolved:
    """Driver options stay as they are stored; `for_drivers` types them. LogError when the file is damaged."""
    return read_stored(folder, _ADAPTER)


def for_drivers(bench: Bench) -> Bench:
    """The bench with each driver's options as that driver's own type; PluginError when one is no longer installed."""

    def typed(equipment: Equipment | None) -> Any:
        if equipment is None:
            return None
        driver = load(Group.DRIVERS, equipment.driver, place=equipment.place)
        return replace(equipment, options=TypeAdapter(driver.Options).validate_python(equipment.options))

    def device_of(device: Device) -> Device:
        also = tuple(replace(one, equipment=typed(one.equipment)) for one in device.also)
        return replace(device, connection=typed(device.connection), also=also)

    return replace(
        bench,
        devices=tuple(device_of(device) for device in bench.devices),
        loudspeakers=tuple(typed(loudspeaker) for loudspeaker in bench.loudspeakers),
        microphone=typed(bench.microphone),
        monitor=typed(bench.monitor),
        actuators=tuple(typed(actuator) for actuator in bench.actuators),
    )


def equipment_of(bench: Bench) -> tuple[Equipment, ...]:
    """All equipment with a driver, each id once (`same_as` gives one piece several roles)."""
    found: dict[str, Equipment] = {}
    candidates = (
        *bench.actuators,
        *bench.loudspeakers,
        bench.microphone,
        bench.monitor,
        *(equipment for device in bench.devices for equipment, _ in device.equipment),
    )
    for equipment in candidates:
        if equipment is not None:
            found.setdefault(equipment.id, equipment)
    return tuple(found.values())


SOUND_PATHS = {"system": "this host's sound devices", "virtual_lab": "PulseAudio in the virtual lab"}


@dataclass(frozen=True, slots=True)
class BenchSurroundings:
    """Implements `ports.Surroundings`."""

    clock: Clock
    sound_server: str
    seed: int
    folder: Path
    profile: DeviceProfile | None


def clock_of(bench: Bench) -> Clock:
    """The session's clock: faster than the host's only if the whole bench is in this process.

    InputError when the parts of such a bench ask for different speeds.
    """
    equipment = equipment_of(bench)
    speeds = {one.id: _speed(one) for one in equipment if simulated(one.driver)}
    if len(set(speeds.values())) > 1:
        raise InputError(
            f"devices of one bench have different speeds: {_listed(speeds)}",
            place=equipment[0].place,
            remedy="Give all of them the same `speed`",
        )
    fast = {name: speed for name, speed in speeds.items() if speed != 1.0}
    if not fast:
        return HostClock()
    for one in equipment:
        if not simulated(one.driver):
            raise InputError(
                f"{next(iter(fast))!r} has speed {next(iter(fast.values())):g}, but {one.id!r} is real",
                place=one.place,
                remedy="Remove `speed`: real sound and real devices run in real time",
            )
    return ScaledClock(next(iter(fast.values())), HostClock())


def sound_path(bench: Bench, trials: Iterable[Trial] = ()) -> str:
    """How sound reaches each device of the trials, as text for the log and for people."""
    known = (f"{one.id}: {one.calibration.words()}" for one in bench.loudspeakers if one.calibration is not None)
    return "; ".join([_sound_servers(bench), *_chosen_ways(bench, trials), *known])


def _chosen_ways(bench: Bench, trials: Iterable[Trial]) -> Iterator[str]:
    """For each real device with a connection, how its sound travels and why."""
    ways: dict[str, set[bool]] = {}
    for trial in trials:
        heard = trial.listening.targets if trial.listening else ()
        found = [(one.device, one.injected) for one in heard] or [(trial.device, trial.loudspeaker == trial.connection)]
        for device, injected in found:
            ways.setdefault(device, set()).add(injected)
    for device, chosen in ways.items():
        connection = bench.device(device).connection
        if connection is None or simulated(connection.driver):
            continue
        takes = f"its {connection.driver} connection takes {'sound' if connection.injects else 'none'}"
        if chosen == {True}:
            yield f"{device} receives it over its connection ({takes})"
        elif chosen == {False}:
            asked = ", but its trials are said aloud" if connection.injects else ""
            yield f"{device} hears it through the air ({takes}{asked})"
        else:
            yield f"{device} is given some over its connection and hears some through the air ({takes})"


def _sound_servers(bench: Bench) -> str:
    within_us = {simulated(one.driver) for one in equipment_of(bench) if one not in bench.actuators}
    if not bench.loudspeakers and bench.microphone is None and bench.monitor is None and True not in within_us:
        return "over the devices' own connections"
    if True not in within_us:
        return SOUND_PATHS[bench.sound_server]
    within = f"inside this process ×{clock_of(bench).speed:g}, no real sound"
    return within if within_us == {True} else f"{within}; and {SOUND_PATHS[bench.sound_server]}"


def assemble(bench: Bench, clock: Clock, seed: int, scratch: Path) -> Mapping[str, Driver]:
    """A driver for each piece of equipment, by its id, none of them opened; PluginError.

    scratch: a folder for files of the drivers that need not outlive the session; made here.
    """
    profiles = {equipment.id: profile for device in bench.devices for equipment, profile in device.equipment}
    drivers: dict[str, Driver] = {}
    for equipment in equipment_of(bench):
        folder = scratch / equipment.id
        folder.mkdir(parents=True, exist_ok=True)
        surroundings = BenchSurroundings(clock, bench.sound_server, seed, folder, profiles.get(equipment.id))
        kind = load(Group.DRIVERS, equipment.driver, place=equipment.place)
        drivers[equipment.id] = kind(equipment.id, equipment.options, surroundings)
    chiming = ((device.earcon_source, device.earcons) for device in bench.devices)
    earcons = [one for source, known in chiming if known is not None for one in learned(source, known)]
    if earcons and bench.microphone is not None:
        microphone = drivers[bench.microphone.id]
        assert isinstance(microphone, FindsEarcons), bench.microphone.driver
        microphone.expect_earcons(tuple(earcons))
    return drivers


def stands_of(bench: Bench, drivers: Mapping[str, Driver], clock: Clock) -> dict[str, StandSetting]:
    """The stands of a bench, by their ids."""
    return {one.id: StandSetting(one, _ordered(drivers[one.connection]), clock) for one in bench.stands}


def needed(bench: Bench, trials: Iterable[Trial]) -> Bench:
    """The bench without the stands and switches that no trial needs: those may be off, or elsewhere."""
    trials = tuple(trials)
    moved = {id for trial in trials for id, _ in trial.stands}
    stands = tuple(stand for stand in bench.stands if stand.id in moved)
    after_faults = bench.on_fault is not None and bench.on_fault.power_cycles > 0
    power = bench.power if after_faults or any(trial.power_cycle for trial in trials) else ()
    used = {stand.connection for stand in stands} | {switch.connection for switch in power}
    actuators = tuple(actuator for actuator in bench.actuators if actuator.id in used)
    return replace(bench, stands=stands, power=power, actuators=actuators)


def power_of(bench: Bench, drivers: Mapping[str, Driver]) -> dict[str, DevicePower]:
    """The power of the devices that have a switch, by their ids."""
    return {one.device: DevicePower(one, _ordered(drivers[one.connection])) for one in bench.power}


def _ordered(driver: Driver) -> TakesOrders | AsksOperator:
    assert isinstance(driver, TakesOrders | AsksOperator), driver.id
    return driver


def script_words(drivers: Mapping[str, Driver]) -> Callable[[Trial, RenderedStimulus], None] | None:
    """Gives simulated devices the words of each sound before it is played; None without such a device.

    A simulated device detects energy but no words, so the log marks its sound path.
    """
    prompted = [driver for driver in drivers.values() if isinstance(driver, IsPrompted)]
    if not prompted:
        return None

    def script(trial: Trial, stimulus: RenderedStimulus) -> None:
        for driver in prompted:
            driver.prompt(trial, stimulus)

    return script


def _speed(equipment: Equipment) -> float:
    return float(getattr(equipment.options, "speed", 1.0))


def _listed(speeds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} ×{speed:g}" for name, speed in speeds.items())
