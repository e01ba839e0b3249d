"""How `test` and `monitor` reach a device: options, and the source that they mean."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import click

from harness.model.bench import DeviceProfile
from harness.model.errors import InputError

if TYPE_CHECKING:
    from harness.devices.device_monitor import DeviceMonitor
    from harness.devices.device_sources import DeviceSource, MqttSource, SerialSource, StreamSource

F = TypeVar("F", bound=Callable[..., object])
STDIN = "standard input"

_OPTIONS = (
    click.option("--port", metavar="DEV", help="A serial port, or a URL such as socket://host:port."),
    click.option("--baud", type=click.IntRange(300, 12_000_000), help="Its rate. Default: the profile's."),
    click.option("--address", metavar="HOST[:PORT]", help="A broker, or `lab`."),
    click.option("--topic", "topics", multiple=True, help="What to subscribe to. Default: the profile's topics."),
    click.option("--device", default="", help="What {device} stands for in topics. Default: the profile's id."),
    click.option("--username", default="", help="At the broker; the password is taken from --password-env."),
    click.option("--password-env", default="", metavar="NAME", help="Environment variable that holds the password."),
)


def connection_options(command: F) -> F:
    """Adds the options of a connection."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def watching(profile: str, device: str, port: str | None, baud: int | None) -> DeviceMonitor:
    """A monitor; of a port with the errors of times that a session would state."""
    from harness.devices.device_monitor import DeviceMonitor
    from harness.devices.serial.options import DEFAULT_HOLD_BACK_MS
    from harness.devices.serial.port import hold_back_s

    monitor = DeviceMonitor(profile, Path(), device)
    if port is None:
        return monitor
    rate, found_s = baud or monitor.profile.console.baud, hold_back_s(port)
    held_s = DEFAULT_HOLD_BACK_MS / 1000 if found_s is None else found_s
    return DeviceMonitor(profile, Path(), device, baud=rate, hold_back_s=held_s)


def serial_source(profile: DeviceProfile, port: str, baud: int | None) -> SerialSource:
    """A port at the profile's rate, or another; InputError when it is not there."""
    from harness.devices.device_sources import SerialSource
    from harness.devices.serial.port import listed

    if "://" not in port and not Path(port).exists():
        raise InputError(f"there is no {port}", remedy=listed())
    return SerialSource(port, baud or profile.console.baud)


def mqtt_source(
    profile: DeviceProfile, address: str, topics: tuple[str, ...], device: str, username: str, password_env: str
) -> MqttSource:
    """A broker, and the topics of the profile when none are named; InputError when there are none."""
    from harness.base.places import lab_state
    from harness.devices.device_sources import MqttSource
    from harness.devices.mqtt.options import host_and_port

    if address == "lab":
        state = lab_state()
        host, port = state.mqtt_host, state.mqtt_port
    else:
        host, port = host_and_port(address)
    named = topics or tuple(sorted({one.topic.replace("{device}", device or profile.id) for one in profile.mappings}))
    if not named:
        raise InputError(f"{profile.id} has no topics", remedy="Name what to subscribe to: --topic 'prefix/#'")
    if password_env and password_env not in os.environ:
        raise InputError(f"the environment has no {password_env}", remedy=f"export {password_env}=…")
    return MqttSource(host, port, named, username, os.environ.get(password_env, "") if password_env else "")


def standard_input() -> StreamSource:
    """Standard input, unbuffered: a thread that waits in a buffered one keeps the program from ending."""

    from harness.devices.device_sources import StreamSource

    def opened() -> BinaryIO:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)

    return StreamSource(STDIN, opened)


def chosen_source(
    profile: DeviceProfile,
    *,
    port: str | None,
    baud: int | None,
    address: str | None,
    topics: tuple[str, ...],
    device: str,
    username: str,
    password_env: str,
    file: Path | None = None,
) -> DeviceSource:
    """The one source that the options mean: port, broker, file, else standard input; InputError for two of them."""
    from harness.devices.device_sources import file_source

    if sum(one is not None for one in (port, address, file)) > 1:
        raise InputError("more than one source is named", remedy="Use one of --port, --address and --file")
    if port is not None:
        return serial_source(profile, port, baud)
    if address is not None:
        return mqtt_source(profile, address, topics, device, username, password_env)
    return file_source(file) if file is not None else standard_input()
