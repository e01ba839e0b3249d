"""`harness admin devices discover`: devices on the network and serial ports, each with the command that sets it up."""

from __future__ import annotations

import json
import re
import shlex
import sys
from typing import TYPE_CHECKING

import click

from harness.base.plain_json import picked
from harness.base.text_table import Column, shown, text_table
from harness.cli.init import DEVICES, NAME, TAKEN, BenchKind
from harness.cli.options import json_option, option, verb

if TYPE_CHECKING:
    from harness.devices.discovery import FoundDevice

MAX_CELL_COLUMNS = 40
KEY_ENV = "ESPHOME_KEY"
"""The environment variable with the key of an encrypted ESPHome device, in the command that sets it up."""
_NONE = """\
no device announced itself within {seconds:g} s. Check that
  - the device is on, and on the same network as this host (not a guest network or another VLAN)
  - no firewall blocks UDP port 5353, and the access point passes multicast on
  - the device announces itself: the message bus of OpenVoiceOS does not (harness init --ovos HOST)
To search longer: harness admin devices discover --seconds 30"""


@verb("discover", short_help="Find devices on the network, brokers and USB serial ports.")
def discover(
    *,
    seconds: float = option("How long to listen to the network, s.", within=(0.5, 600), default=5.0),
    as_json: bool = json_option("Print a JSON list instead of a table."),
) -> None:
    """Find voice devices, brokers and USB serial ports, and print the `harness init` command for each.

    Devices announce themselves by mDNS. The command connects to none of them and opens no port.

    Exit status: 0 something was found · 1 nothing was · 2 the extra `discover` is missing · 3 no network to ask.
    """
    from harness.devices.discovery import find_announced, serial_ports

    network = find_announced(seconds)
    devices = [*network, *serial_ports()]
    if as_json:
        fields = ("kind", "name", "address", "model", "version", "encrypted")
        rows = [picked(device, *fields) | {"command": init_command(device)} for device in devices]
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    elif devices:
        _print_devices(devices)
    if not network:
        click.echo(_NONE.format(seconds=seconds), err=True)
    sys.exit(0 if devices else 1)


def _print_devices(devices: list[FoundDevice]) -> None:
    """Prints a table, and the command that sets each device up, if there is one."""
    columns = [Column(title, left=True) for title in ("name", "kind", "address", "model", "version")]
    rows = []
    for device in devices:
        texts = (device.name, device.kind, device.address, device.model, device.version)
        rows.append(tuple(shown(text, MAX_CELL_COLUMNS) or "-" for text in texts))
    for line in text_table(columns, rows, 1000):  # no column is dropped: `shown` limits each
        click.echo(line)
    commands = [command for device in devices if (command := init_command(device))]
    if commands:
        click.echo("\nTo set up a device:")
    for command in commands:
        click.echo(f"  {command}")


def init_command(device: FoundDevice) -> str:
    """The command that writes a bench for a device, safe in a shell; "" if there is none for its kind or address."""
    option_name = next((entry.option for kind, entry in DEVICES.items() if kind.value == device.kind), "")
    if not option_name or not device.address or not device.address.isprintable():
        return ""
    words = ["harness", "init", f"--{option_name.replace('_', '-')}", device.address]
    if device.encrypted and device.kind == BenchKind.ESPHOME:
        words += ["--key-env", KEY_ENV]
    name = re.sub(r"[^a-z0-9]+", "_", device.name.lower()).strip("_")[:MAX_CELL_COLUMNS].rstrip("_")
    if NAME.fullmatch(name) and name not in TAKEN:
        words += ["--board", name, name]
    return shlex.join(words)
