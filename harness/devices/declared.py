"""What a driver can declare beyond `ports.Driver`, and how commands use it: no command names a transport.

A command calls a function of this module. If the driver's class has the method, the function calls it; otherwise it
returns a default. `isinstance(driver_class, …)` asks whether the class itself has the method, since no driver is made.

Everything here is optional. A driver that declares nothing still runs on a bench.
`docs/how-to/add-a-transport.md` shows one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pydantic import TypeAdapter, ValidationError

from harness.base.host_check import Check, check_each
from harness.base.plugins import Group, load, names
from harness.base.ports import NamesHostParts
from harness.devices.device_sources import DeviceSource
from harness.devices.orders import ORDER_METHODS, AsksOperator
from harness.model.bench import DeviceProfile
from harness.model.errors import InputError, PluginError
from harness.model.frozen import frozen
from harness.model.stimulus import RenderedStimulus
from harness.model.trial import Trial

if TYPE_CHECKING:
    from harness.sound.earcons import LearnedEarcon


@frozen
class Abilities:
    """What a connection can do with its device.

    - injects: it sends sound to the device, past its microphones.
    - restarts: `restart()` restarts the device.
    - tunes: `set_operating_point(value)` sets the sensitivity of the wake word, 0 to 100.
    - sets: it can change the settings of the device (`HasSettings`).
    - hears: the profile has rules for what it receives.
    """

    injects: bool = False
    restarts: bool = False
    tunes: bool = False
    sets: bool = False
    hears: bool = True


@frozen
class About:
    """What a device reports about itself.

    - rate_hz: sample rate of the sound that it accepts; None: the profile's rate.
    - lost_events: number of its events that never arrived.
    """

    firmware: str = ""
    wake_phrases: tuple[str, ...] = ()
    rate_hz: int | None = None
    lost_events: int = 0


@frozen
class SetupAdvice:
    """Advice for a new bench file, from what a device reports.

    - wake_phrases: the phrases that it listens for, or may listen for; () if it reports none.
    - profile: a profile that fits it better than the usual one; "" if none does.
    - keys: keys of the connection for that profile.
    - reached: how the device is reached with these keys, in words.
    - why: why they fit better.
    """

    wake_phrases: tuple[str, ...] = ()
    profile: str = ""
    keys: Mapping[str, str | int] = field(default_factory=dict)
    reached: str = ""
    why: str = ""


@runtime_checkable
class AdvisesSetup(Protocol):
    """A driver that asks its device before `init` writes a bench."""

    @staticmethod
    def setup_advice(options: Any) -> SetupAdvice:
        """Returns within a few seconds. Raises HarnessError when the device does not answer."""
        ...


@runtime_checkable
class DeclaresAbilities(Protocol):
    """A driver that declares what it can do.

    Without this, a driver with `play` injects (unless `injection` is none), and one with `restart` restarts.
    """

    @staticmethod
    def abilities(options: Any, profile: DeviceProfile | None) -> Abilities: ...


@runtime_checkable
class DescribesDevice(Protocol):
    """An open driver that describes its device; `offline` needs it, since results depend on the firmware."""

    def about(self) -> About: ...


@runtime_checkable
class CanBeWatched(Protocol):
    """A driver whose device `devices test` and `devices monitor` can watch without a session."""

    @staticmethod
    def source(options: Any, profile: DeviceProfile, device: str, topics: tuple[str, ...]) -> DeviceSource:
        """The source of the device's lines, not open yet.

        - device: text for {device} in topics.
        - topics: MQTT topics to listen to; () means the profile's.
        """
        ...


@runtime_checkable
class ChecksHost(Protocol):
    """A driver that can check this host before a session, for `doctor`."""

    @staticmethod
    def host_checks(connections: Sequence[tuple[str, Any]]) -> Iterator[Check]:
        """connections: id and options of each connection that uses this driver; () without a bench. Plays nothing."""
        ...


@runtime_checkable
class NamesFarEnd(Protocol):
    """A driver that identifies its device, since only one evaluation at a time may use a device.

    Without this, equal options mean the same device.
    """

    @staticmethod
    def far_end(options: Any, id: str) -> str:
        """A text that identifies the device: a port, or a broker and a name there."""
        ...


@runtime_checkable
class RunsProgram(Protocol):
    """A driver whose options name a program of this host."""

    @staticmethod
    def program(options: Any) -> str:
        """The program with its arguments, as one would type it into a shell."""
        ...


@runtime_checkable
class IsPrompted(Protocol):
    """A simulated device, which detects sound but no words: it receives the words before the sound is played."""

    def prompt(self, trial: Trial, stimulus: RenderedStimulus) -> None: ...


@runtime_checkable
class FindsEarcons(Protocol):
    """A microphone that finds learned chimes, and reports them under the source of each."""

    def expect_earcons(self, earcons: tuple[LearnedEarcon, ...]) -> None:
        """Called once, before `open`."""
        ...


def is_simulated(driver: str) -> bool:
    """Whether a driver's equipment exists in this process only, where time may run faster (`simulated = True`)."""
    return bool(getattr(load(Group.DRIVERS, driver), "simulated", False))


def by_hand(driver: str) -> bool:
    """Whether the operator carries out a driver's orders."""
    return isinstance(load(Group.DRIVERS, driver), AsksOperator)


def abilities(driver: str, options: object, profile: DeviceProfile | None) -> Abilities:
    """What a connection can do, as its driver declares it."""
    driver_class = load(Group.DRIVERS, driver)
    if isinstance(driver_class, DeclaresAbilities):
        return driver_class.abilities(options, profile)
    injects = hasattr(driver_class, "play")
    match getattr(options, "injection", True):  # a word in most drivers, true or false in the simulated one
        case "profile":
            injects = injects and profile is not None and profile.audio is not None
        case "none" | False:
            injects = False
    return Abilities(
        injects=injects,
        restarts=hasattr(driver_class, "restart"),
        tunes=hasattr(driver_class, "set_operating_point"),
        sets=hasattr(driver_class, "set_setting"),
    )


def setup_advice(driver: str, options: object) -> SetupAdvice | None:
    """Advice for a bench file; None if the driver does not ask its device.

    Raises HarnessError if that does not answer.
    """
    driver_class = load(Group.DRIVERS, driver)
    return driver_class.setup_advice(options) if isinstance(driver_class, AdvisesSetup) else None


def takes_orders(driver: str) -> bool:
    """Whether a driver moves stands or switches power, and so has no device under test."""
    driver_class = load(Group.DRIVERS, driver)
    return any(hasattr(driver_class, method) for method in ORDER_METHODS)


def driver_with_keys(given_keys: Iterable[str], profile: DeviceProfile) -> str:
    """The driver whose connection has all these keys. Among several, the one that the profile names as transport.

    Raises InputError if there is none, or the profile names none of several.
    """
    keys = set(given_keys)
    drivers: list[str] = []
    for driver in names(Group.DRIVERS):
        known_keys = _keys_of(driver)
        if known_keys and keys <= known_keys and not takes_orders(driver):
            drivers.append(driver)
    if profile.transport in drivers:
        return profile.transport
    if len(drivers) == 1:
        return drivers[0]
    keys_in_words = ", ".join(sorted(keys))
    problem = (
        f"several drivers have {keys_in_words}: {', '.join(drivers)}" if drivers else f"no driver has {keys_in_words}"
    )
    raise InputError(
        problem, remedy=f"Choose a driver with `--driver`. Installed drivers: {', '.join(names(Group.DRIVERS))}"
    )


def options_of(driver: str, values: Mapping[str, object], own_values: Mapping[str, object] | None = None) -> object:
    """Options of a driver, with values given as text. Raises InputError for a wrong key or value.

    own_values: further values, which `values` override.
    """
    driver_class = load(Group.DRIVERS, driver)
    known_keys = _keys_of(driver)
    if unknown_keys := sorted(values.keys() - known_keys):
        raise InputError(
            f"a {driver} connection has no key {unknown_keys[0]!r}", remedy=f"Keys: {', '.join(sorted(known_keys))}"
        )
    try:
        return TypeAdapter(driver_class.Options).validate_python({**(own_values or {}), **values})
    except ValidationError as error:
        first_error = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first_error["loc"])
        remedy = f"Set `{key}` in a bench file, which can hold a list" if first_error["type"] == "tuple_type" else ""
        raise InputError(f"{key}: {values.get(key)!r} is not valid: {first_error['msg']}", remedy=remedy) from error


def source_of(
    driver: str, options: object, profile: DeviceProfile, device: str = "", topics: tuple[str, ...] = ()
) -> DeviceSource:
    """The source of a device's lines, not open yet. Raises InputError when the host lacks what the options name."""
    driver_class = load(Group.DRIVERS, driver)
    if not isinstance(driver_class, CanBeWatched):
        raise InputError(
            f"the monitor does not support the driver {driver!r}",
            remedy="Pipe the lines in, or read a file with `--from`",
        )
    demand_host(driver, options)
    return driver_class.source(options, profile, device or profile.id, topics)


def demand_host(driver: str, options: object) -> None:
    """Raises if this host lacks what the options name, where the driver can check that without a device.

    DeviceError: a port or a device. InputError: a program, a file or a password.
    """
    driver_class = load(Group.DRIVERS, driver)
    if isinstance(driver_class, NamesHostParts):
        driver_class.demand_host(options)


def program(driver: str, options: object) -> str:
    """The program that the driver runs; "" if none."""
    driver_class = load(Group.DRIVERS, driver)
    return driver_class.program(options) if isinstance(driver_class, RunsProgram) else ""


def far_end(driver: str, options: object, id: str) -> str:
    """A text that identifies the device of a connection."""
    driver_class = load(Group.DRIVERS, driver)
    if isinstance(driver_class, NamesFarEnd):
        return f"{driver}|{driver_class.far_end(options, id)}"
    return f"{driver}|{options!r}"


def host_checks(connections: Sequence[tuple[str, str, object]]) -> Iterator[Check]:
    """The host checks of each installed driver. connections: (id, driver, options) of each connection on a bench."""
    for driver in names(Group.DRIVERS):
        try:
            driver_class = load(Group.DRIVERS, driver)
        except PluginError:
            continue  # doctor reports this in its check of plug-ins
        driver_connections = [(id, options) for id, driver_of_id, options in connections if driver_of_id == driver]
        if isinstance(driver_class, ChecksHost):
            yield from driver_class.host_checks(driver_connections)
        elif isinstance(driver_class, NamesHostParts):
            yield from check_each(driver, driver_connections, partial(_demand_host, driver_class))


def _demand_host(driver_class: NamesHostParts, options: object) -> str:
    driver_class.demand_host(options)
    return "this host has everything that the connection needs"


def _keys_of(driver: str) -> set[str]:
    """The keys of a driver's connections; none if it cannot be loaded, or has no dataclass of options."""
    try:
        return {option.name for option in fields(load(Group.DRIVERS, driver).Options)}
    except (PluginError, AttributeError, TypeError):
        return set()
