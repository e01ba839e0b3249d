"""The composition root: a bench becomes drivers, a clock, and words for how sound travels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.base.clocks import HostClock, ScaledClock
from harness.base.plugins import Group, load
from harness.base.ports import Clock, Driver
from harness.devices.declared import IsPrompted, simulated
from harness.model.bench import Bench, DeviceProfile, Equipment
from harness.model.errors import InputError
from harness.model.stimulus import RenderedStimulus
from harness.model.trial import Trial
from harness.session.engine.resolved import equipment_of

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
    """The session's clock: faster than the host's only when everything on the bench is in this process.

    InputError when the parts of such a bench ask for different speeds.
    """
    equipment = equipment_of(bench)
    speeds = {one.id: _speed(one) for one in equipment if simulated(one.driver)}
    if len(set(speeds.values())) > 1:
        raise InputError(
            f"the parts of one bench run at different speeds: {_listed(speeds)}",
            place=equipment[0].place,
            remedy="Give them all the same `speed`",
        )
    fast = {name: speed for name, speed in speeds.items() if speed != 1.0}
    if not fast:
        return HostClock()
    for one in equipment:
        if not simulated(one.driver):
            raise InputError(
                f"{next(iter(fast))!r} asks for speed {next(iter(fast.values())):g}, and {one.id!r} is real",
                place=one.place,
                remedy="Remove `speed`: real sound and real devices keep real time",
            )
    return ScaledClock(next(iter(fast.values())), HostClock())


def sound_path(bench: Bench, trials: Iterable[Trial] = ()) -> str:
    """How sound travels, for the log and for people: with the way that was chosen for each device of the trials."""
    return "; ".join([_sound_servers(bench), *_chosen_ways(bench, trials)])


def _chosen_ways(bench: Bench, trials: Iterable[Trial]) -> Iterator[str]:
    """Where a real device has a connection, which way its sound takes and why."""
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
            yield f"{device} is given it over its connection ({takes})"
        elif chosen == {False}:
            asked = ", but its trials are said aloud" if connection.injects else ""
            yield f"{device} hears it through the air ({takes}{asked})"
        else:
            yield f"{device} is given some over its connection and hears some through the air ({takes})"


def _sound_servers(bench: Bench) -> str:
    within_us = {simulated(one.driver) for one in equipment_of(bench)}
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
    profiles = {device.connection.id: device.profile for device in bench.devices if device.connection is not None}
    drivers: dict[str, Driver] = {}
    for equipment in equipment_of(bench):
        folder = scratch / equipment.id
        folder.mkdir(parents=True, exist_ok=True)
        surroundings = BenchSurroundings(clock, bench.sound_server, seed, folder, profiles.get(equipment.id))
        kind = load(Group.DRIVERS, equipment.driver, place=equipment.place)
        drivers[equipment.id] = kind(equipment.id, equipment.options, surroundings)
    return drivers


def script_words(drivers: Mapping[str, Driver]) -> Callable[[Trial, RenderedStimulus], None] | None:
    """Tells a simulated device the words of each sound before it is played; None when there is no such device.

    That device has ears for energy and none for words, which is why its sound path is marked in the log.
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
