"""Which device a task means, and how it is reached: `bench.yaml#id`, or a profile with a port or a broker."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from harness.base.places import runtime_folder
from harness.base.plugins import Group, load
from harness.devices.mqtt.options import MessageFraming, MqttOptions
from harness.devices.profiles.profile import load_profile
from harness.devices.serial.options import SerialOptions
from harness.model.bench import Bench, DeviceProfile
from harness.model.errors import InputError
from harness.scenario.bench import load_bench

CONNECTION = ("port", "usb", "baud", "address", "encoding", "pace")
"""Settings that are keys of a connection (docs/boards.md, docs/boards-mqtt.md)."""
WIRES = ("serial", "mqtt")
LOCK_WAIT_S = 2.0
_LOOK_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True)
class Reached:
    """A device, and what reaches it: `driver` is an entry point, options an instance of its Options."""

    id: str
    driver: str
    options: object
    profile: DeviceProfile

    @property
    def address(self) -> str:
        """What no two devices have in common: its port, its adapter, or its broker and name there."""
        named = [str(getattr(self.options, key, "")) for key in ("port", "usb", "address", "topic_device")]
        return "|".join((self.driver, *named, self.id if self.driver == "mqtt" else ""))

    @property
    def framed(self) -> bool:
        """Whether it speaks our own framing: then it can be restarted, and told how sensitive to be."""
        match self.options:
            case SerialOptions():
                return self.options.framed(self.profile)
            case MqttOptions():
                return self.options.framing_of(self.profile) is MessageFraming.VH
            case _:
                return False


def reached(model: str, settings: Mapping[str, str]) -> tuple[Reached, ...]:
    """The devices that a task names, in its order; InputError, InputProblems, PluginError. Opens nothing."""
    given = {name: value for name, value in settings.items() if name in CONNECTION and value}
    file, hash_sign, ids = model.partition("#")
    if hash_sign:
        bench = load_bench(file)
        names = [one.strip() for one in ids.split(",") if one.strip()]
        if not names or len(set(names)) != len(names):
            raise InputError(
                f"{model!r} names no device, or one twice", remedy=f"Its devices: {_listed(bench)}; as {file}#ID"
            )
        return tuple(_of_bench(bench, name, given) for name in names)
    profile = load_profile(model, beside=Path.cwd())
    driver = "mqtt" if "address" in given else "serial"
    if not {"port", "usb", "address"} & given.keys():
        raise InputError(
            f"the profile {profile.id!r} does not say where the device is",
            remedy="Set port=/dev/… or usb=…, or address=host:port of a broker; or name a bench: device:bench.yaml#ID",
        )
    return (_able(Reached(profile.id, driver, _options(driver, {}, given), profile)),)


def _of_bench(bench: Bench, name: str, given: Mapping[str, str]) -> Reached:
    try:
        device = bench.device(name)
    except KeyError:
        raise InputError(f"{bench.path} has no device {name!r}", remedy=f"Its devices: {_listed(bench)}") from None
    connection = device.connection
    if connection is None:
        raise InputError(
            f"{name!r} of {bench.path} has no connection", remedy="A black box can be evaluated live only: harness run"
        )
    own = {one.name: getattr(connection.options, one.name) for one in fields(connection.options)}  # type: ignore[arg-type]
    options = _options(connection.driver, own, given) if given else connection.options
    return _able(Reached(name, connection.driver, options, device.profile))


def _options(driver: str, own: Mapping[str, object], given: Mapping[str, str]) -> object:
    """Options of a driver with texts in place of some."""
    kind = load(Group.DRIVERS, driver)
    known = {one.name for one in fields(kind.Options)}
    if strange := sorted(given.keys() - known):
        raise InputError(f"a {driver} connection has no {strange[0]!r}", remedy=f"It has: {', '.join(sorted(known))}")
    try:
        return TypeAdapter(kind.Options).validate_python({**own, **given})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{where} cannot be {given.get(where)!r}: {first['msg']}") from error


def _able(one: Reached) -> Reached:
    """Itself; InputError for a device that takes no sound over a wire."""
    if one.driver not in WIRES:
        raise InputError(
            f"{one.id!r} is reached by the driver {one.driver!r}, over which no file can be given to it",
            remedy=f"Files are put into a device over: {', '.join(WIRES)}. Through the air: harness run",
        )
    by_profile = getattr(one.options, "injection_of", None)
    if by_profile is not None:
        takes = str(by_profile(one.profile)) != "none"
    else:
        dialogue = getattr(one.options, "dialogue", None)
        takes = dialogue is not None and dialogue(one.profile) is not None
    if not takes:
        raise InputError(
            f"{one.id!r} takes no sound over its connection",
            remedy="Set `injection` of its connection, or `audio` of its profile (docs/boards.md), if it does",
        )
    return one


@contextmanager
def first_free(devices: tuple[Reached, ...]) -> Iterator[Reached]:
    """One of them that nobody else evaluates with, held until the end; InputError when all are taken for 2 s.

    A lock of a process that has died is free: so a worker that takes another one's place finds its device.
    """
    deadline_s = time.monotonic() + LOCK_WAIT_S
    held: int | None = None
    while True:
        for one in devices:
            held = _lock(one)
            if held is not None:
                break
        if held is not None:
            break
        if time.monotonic() >= deadline_s:
            count = len(devices)
            names = ", ".join(device.id for device in devices)
            raise InputError(
                f"another process evaluates with {names} already: one device hears one file at a time",
                remedy=f"Use -j {count}, or name more devices: bench.yaml#a,b",
            )
        time.sleep(_LOOK_AGAIN_S)
    try:
        yield one
    finally:
        os.close(held)


def _lock(one: Reached) -> int | None:
    folder = runtime_folder() / "devices"
    folder.mkdir(exist_ok=True)
    name = hashlib.sha256(one.address.encode()).hexdigest()[:24]
    file = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _listed(bench: Bench) -> str:
    return ", ".join(device.id for device in bench.devices)
