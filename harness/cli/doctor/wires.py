"""What devices hang on: serial ports, sound devices, brokers."""

from __future__ import annotations

import contextlib
import grp
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from serial.tools import list_ports

from harness.base.places import lab_state
from harness.cli.doctor.check import Check, Level
from harness.devices.device_sources import MqttSource
from harness.devices.mqtt.options import MqttOptions
from harness.devices.serial.options import SerialOptions
from harness.devices.serial.port import find
from harness.model.bench import Bench, Equipment
from harness.model.errors import DeviceError, HarnessError, LabError
from harness.sound.sound_devices import sound_devices

BY_ID = Path("/dev/serial/by-id")
_LOCAL = ("embedded",)


PSEUDO_TERMINALS = frozenset({"/dev/ptmx", "/dev/pts/ptmx"})
"""What the maker of a pseudo-terminal has open."""


def ports(bench: Bench | None) -> Iterator[Check]:
    """Each port that there is, or that the bench names: rights, a lasting name, who has it open."""
    named: list[str] = []
    for one in _connections(bench, "serial"):
        if isinstance(one.options, SerialOptions):
            try:
                named.append(one.options.port or find(one.options).path)
            except DeviceError as error:
                yield Check("port", Level.FAIL, f"{one.id}: {error.what}", error.remedy)
    found = sorted(port.device for port in list_ports.comports())
    lasting = _lasting_names()
    for path in dict.fromkeys((*named, *found)):
        if "://" in path:
            yield Check("port", Level.OK, f"{path}: a network port; not looked at")
        else:
            yield _port(path, lasting, needed=path in named)
    if not named and not found:
        yield Check("port", Level.OK, "no serial port on this host")


def _port(path: str, lasting: dict[str, str], *, needed: bool) -> Check:
    try:
        found = os.stat(path)
    except OSError as error:
        remedy = "Plug the board in; see its kernel messages with dmesg"
        return Check("port", Level.FAIL, f"{path}: {error.strerror}", remedy)
    if not stat.S_ISCHR(found.st_mode):
        return Check("port", Level.FAIL, f"{path} is no serial port", "Name a device such as /dev/ttyUSB0")
    if not os.access(path, os.R_OK | os.W_OK):
        group = _group_name(found.st_gid)
        remedy = f"sudo usermod -aG {group} $USER, then log in again" if group != "root" else "Add a udev rule for it"
        return Check("port", Level.FAIL, f"{path}: this user may not read and write it (group {group})", remedy)
    if holders := _holders(os.path.realpath(path)):
        what = ", ".join(f"{name} ({pid})" for pid, name in holders)
        remedy = "End it: two readers of one port take each other's bytes"
        return Check("port", Level.FAIL if needed else Level.WARN, f"{path} is open in {what}", remedy)
    by_id = lasting.get(os.path.realpath(path), "")
    if needed and by_id and not path.startswith("/dev/serial/"):
        return Check("port", Level.WARN, f"{path} may be another board's name tomorrow", f"Write port: {by_id}")
    return Check("port", Level.OK, f"{path}: free, may be read and written" + (f" ({by_id})" if by_id else ""))


def _lasting_names() -> dict[str, str]:
    """Device → its name by id, which stays when it is plugged in elsewhere."""
    try:
        return {os.path.realpath(link): str(link) for link in sorted(BY_ID.iterdir())}
    except OSError:
        return {}


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _holders(device: str) -> list[tuple[int, str]]:
    """Other processes that have a device open, as far as this user may see.

    Who made a pseudo-terminal is its far end and no second reader, although it may hold the near end open as well.
    """
    holders: list[tuple[int, str]] = []
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
            opened = {os.path.realpath(link) for link in (process / "fd").iterdir()}
            if device in opened and opened.isdisjoint(PSEUDO_TERMINALS):
                holders.append((int(process.name), (process / "comm").read_text(encoding="utf-8").strip()))
    return holders


def sound(bench: Bench | None) -> Iterator[Check]:
    """Whether PortAudio finds devices, and those that the bench names."""
    server = bench.sound_server if bench is not None else "system"
    parts = [one for one in _sound_parts(bench) if hasattr(one.options, "sound_device")]
    if bench is not None and not parts:
        yield Check("sound", Level.OK, "the bench needs no sound device")
        return
    needed = Level.FAIL if parts else Level.WARN
    try:
        devices = sound_devices(server)
    except HarnessError as error:
        yield Check("sound", needed, error.what, error.remedy or "Is a sound server running? pactl info")
        return
    if not devices:
        yield Check("sound", needed, "PortAudio finds no sound device", "Is a sound server running? pactl info")
        return
    inputs, outputs = sum(one.inputs > 0 for one in devices), sum(one.outputs > 0 for one in devices)
    yield Check("sound", Level.OK, f"{len(devices)} devices: {inputs} record, {outputs} play")
    for part in parts:
        wanted = str(getattr(part.options, "sound_device", ""))
        match = [one.name for one in devices if wanted == one.name] or [
            one.name for one in devices if wanted in one.name
        ]
        if len(match) == 1:
            yield Check("sound", Level.OK, f"{part.id}: {match[0]}")
        else:
            says = f"{part.id}: {'no device is' if not match else 'several devices are'} called {wanted!r}"
            yield Check("sound", Level.FAIL, says, f"See harness sound list --sound-server {server}")


def brokers(bench: Bench | None) -> Iterator[Check]:
    """Each broker that the bench names, asked for a connection."""
    for one in _connections(bench, "mqtt"):
        options = one.options
        if isinstance(options, MqttOptions):
            yield _broker(one.id, options)


def _broker(name: str, options: MqttOptions) -> Check:
    if options.address in _LOCAL:
        return Check("broker", Level.OK, f"{name}: one of our own, started with the session")
    try:
        if options.address == "lab":
            state = lab_state()
            host, port = state.mqtt_host, state.mqtt_port
        else:
            host, port = options.broker
        password = os.environ.get(options.password_env, "") if options.password_env else ""
        if options.encrypted:
            return Check("broker", Level.OK, f"{name}: {host}:{port} with TLS; it is tried when the session opens")
        source = MqttSource(host, port, ("$SYS/broker/version",), options.username, password)
        source.open()
        source.close()
    except (DeviceError, LabError) as error:
        return Check("broker", Level.FAIL, f"{name}: {error.what}", error.remedy)
    return Check("broker", Level.OK, f"{name}: {host}:{port} answers")


def _connections(bench: Bench | None, driver: str) -> list[Equipment]:
    devices = bench.devices if bench is not None else ()
    return [one.connection for one in devices if one.connection is not None and one.connection.driver == driver]


def _sound_parts(bench: Bench | None) -> list[Equipment]:
    if bench is None:
        return []
    parts = [*bench.loudspeakers, bench.microphone, bench.monitor]
    return list({one.id: one for one in parts if one is not None}.values())
