"""What a driver may declare beside `ports.Driver`, and how verbs work from it: no verb knows a transport by name.

Everything here is optional. A driver that declares nothing still runs on a bench; `docs/add-a-transport.md` shows one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, runtime_checkable

from pydantic import TypeAdapter, ValidationError

from harness.base.host_check import Check, Level
from harness.base.plugins import Group, load, names
from harness.base.ports import NamesHostParts
from harness.devices.device_sources import DeviceSource
from harness.model.bench import DeviceProfile
from harness.model.errors import DeviceError, InputError, PluginError
from harness.model.stimulus import RenderedStimulus
from harness.model.trial import Trial


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a connection can do with its device.

    injects: brings sound to it past its microphones. restarts: has it begin anew, by `restart()`. tunes: sets how
    sensitive its wake word is, 0 to 100, by `set_operating_point(value)`.
    """

    injects: bool = False
    restarts: bool = False
    tunes: bool = False


@dataclass(frozen=True, slots=True)
class About:
    """What a device has said of itself. rate_hz: of the sound that it takes; None: as its profile says.

    lost_events: how many it has told that never came.
    """

    firmware: str = ""
    wake_phrases: tuple[str, ...] = ()
    rate_hz: int | None = None
    lost_events: int = 0


@runtime_checkable
class DeclaresAbilities(Protocol):
    """Else `play` means that it injects, unless an option `injection` says no, and `restart` that it restarts."""

    @staticmethod
    def abilities(options: Any, profile: DeviceProfile | None) -> Abilities: ...


@runtime_checkable
class DescribesDevice(Protocol):
    """An open driver whose device says what it is; for `offline`, whose results depend on the firmware."""

    def about(self) -> About: ...


@runtime_checkable
class CanBeWatched(Protocol):
    """A driver whose device `devices test` and `devices monitor` can watch without a session."""

    @staticmethod
    def source(options: Any, profile: DeviceProfile, device: str, topics: tuple[str, ...]) -> DeviceSource:
        """Not open yet. device: what {device} stands for in topics. topics: () takes those of the profile."""
        ...


@runtime_checkable
class ChecksHost(Protocol):
    """A driver that knows what to look at on this host before a session, for `doctor`."""

    @staticmethod
    def host_checks(named: Sequence[tuple[str, Any]]) -> Iterator[Check]:
        """named: each connection of the bench by this driver, its id and options; () without a bench. Plays nothing."""
        ...


@runtime_checkable
class NamesFarEnd(Protocol):
    """Else two connections with equal options reach one device: only one evaluation at a time may use it."""

    @staticmethod
    def far_end(options: Any, id: str) -> str:
        """What no two devices have in common: a port, a broker with a name there."""
        ...


@runtime_checkable
class IsPrompted(Protocol):
    """A simulated device, which has ears for energy only: it is told the words of each sound before it is played."""

    def prompt(self, trial: Trial, stimulus: RenderedStimulus) -> None: ...


def simulated(driver: str) -> bool:
    """Whether a driver's equipment exists in this process only, where time may run faster (`simulated = True`)."""
    return bool(getattr(load(Group.DRIVERS, driver), "simulated", False))


def abilities(driver: str, options: object, profile: DeviceProfile | None) -> Abilities:
    """What a connection can do, as its driver declares it."""
    kind = load(Group.DRIVERS, driver)
    if isinstance(kind, DeclaresAbilities):
        return kind.abilities(options, profile)
    injects = hasattr(kind, "play")
    match getattr(options, "injection", True):
        case "profile":
            injects = injects and profile is not None and profile.audio is not None
        case "none" | False:
            injects = False
    return Abilities(injects, hasattr(kind, "restart"), hasattr(kind, "set_operating_point"))


def driver_taking(given: Iterable[str], profile: DeviceProfile) -> str:
    """The driver whose connection has all these keys; of several, the one that the profile names as its transport."""
    keys = set(given)
    able = [name for name in names(Group.DRIVERS) if keys <= _keys_of(name)]
    if profile.transport in able:
        return profile.transport
    if len(able) == 1:
        return able[0]
    named = ", ".join(sorted(keys))
    what = f"several connections have {named}: {', '.join(able)}" if able else f"no connection has {named}"
    raise InputError(what, remedy=f"Name the driver; installed: {', '.join(names(Group.DRIVERS))}")


def options_of(driver: str, given: Mapping[str, object], own: Mapping[str, object] | None = None) -> object:
    """Options of a driver with texts in place of some of its `own`; InputError for what cannot be."""
    kind = load(Group.DRIVERS, driver)
    known = {one.name for one in fields(kind.Options)}
    if strange := sorted(given.keys() - known):
        raise InputError(f"a {driver} connection has no {strange[0]!r}", remedy=f"It has: {', '.join(sorted(known))}")
    try:
        return TypeAdapter(kind.Options).validate_python({**(own or {}), **given})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{where} cannot be {given.get(where)!r}: {first['msg']}") from error


def source_of(
    driver: str, options: object, profile: DeviceProfile, device: str = "", topics: tuple[str, ...] = ()
) -> DeviceSource:
    """Where a device's lines come from, not open yet; InputError when the host lacks what the options name."""
    kind = load(Group.DRIVERS, driver)
    if not isinstance(kind, CanBeWatched):
        raise InputError(f"the driver {driver!r} cannot be watched", remedy="Pipe lines in, or name a file: --file")
    demand_host(driver, options)
    return kind.source(options, profile, device or profile.id, topics)


def demand_host(driver: str, options: object) -> None:
    """InputError when this host lacks what the options name, as far as the driver can say without a device."""
    kind = load(Group.DRIVERS, driver)
    if isinstance(kind, NamesHostParts):
        kind.demand_host(options)


def far_end(driver: str, options: object, id: str) -> str:
    """What no two devices have in common."""
    kind = load(Group.DRIVERS, driver)
    return f"{driver}|{kind.far_end(options, id) if isinstance(kind, NamesFarEnd) else options!r}"


def host_checks(connections: Sequence[tuple[str, str, object]]) -> Iterator[Check]:
    """What each installed driver finds on this host; connections: id, driver and options of those on a bench."""
    for driver in names(Group.DRIVERS):
        try:
            kind = load(Group.DRIVERS, driver)
        except (PluginError, AttributeError):
            continue  # doctor's own check of plug-ins reports it
        named = [(id, options) for id, by, options in connections if by == driver]
        if isinstance(kind, ChecksHost):
            yield from kind.host_checks(named)
        elif isinstance(kind, NamesHostParts):
            for id, options in named:
                try:
                    kind.demand_host(options)
                except (InputError, DeviceError) as error:
                    yield Check(driver, Level.FAIL, f"{id}: {error.what}", error.remedy)
                else:
                    yield Check(driver, Level.OK, f"{id}: this host has what its connection names")


def _keys_of(driver: str) -> set[str]:
    try:
        return {one.name for one in fields(load(Group.DRIVERS, driver).Options)}
    except (PluginError, AttributeError):
        return set()
