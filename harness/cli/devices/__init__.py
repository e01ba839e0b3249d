"""`harness devices`: the device profiles that there are, their tests, and a monitor to write new ones with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from harness.base.foreign import plain_text
from harness.cli.devices.monitor import monitor
from harness.cli.devices.testing import test
from harness.cli.options import Command, json_option
from harness.model.bench import DeviceProfile
from harness.model.errors import InputError

__all__ = ["command"]


@click.group("devices")
def command() -> None:
    """List device profiles, test them, watch what they make of a device."""


command.add_command(test)
command.add_command(monitor)


@command.command("list", cls=Command)
@json_option("as_json", "One JSON list instead of a table.")
def list_profiles(as_json: bool) -> None:
    """List the profiles that a bench can name; exit status 2 when one is wrong."""
    from harness.devices.profiles.profile import load_profile, profile_paths

    profiles: list[DeviceProfile] = []
    problems: list[str] = []
    for path in profile_paths(Path()).values():
        try:
            profiles.append(load_profile(path.name, beside=path.parent))
        except InputError as error:
            problems += str(error).splitlines()
    if as_json:
        click.echo(json.dumps([_row(profile) for profile in profiles], ensure_ascii=False, indent=2))
    else:
        _print(profiles)
    for line in problems:
        click.echo(plain_text(line, 2000), err=True)
    if problems:
        sys.exit(2)


def _print(profiles: list[DeviceProfile]) -> None:
    from rich.cells import cell_len, set_cell_size

    rows = [("id", "transport", "tells", "wake phrases", "title")]
    for one in profiles:
        transport = f"{one.transport.value}+sound" if one.audio else one.transport.value
        rows.append((one.id, transport, _letters(one), ", ".join(one.wake_phrases) or "none", one.title))
    plain = [tuple(plain_text(cell) for cell in row) for row in rows]
    widths = [max(cell_len(row[column]) for row in plain) for column in range(4)]
    for *cells, title in plain:
        sized = [set_cell_size(cell, width) for cell, width in zip(cells, widths, strict=True)]
        click.echo("  ".join((*sized, title)))
    click.echo(
        "\ntells: W wake, T transcript, I intent, R response, S status, L that it listens."
        " +sound: it takes sound over its wire as well."
    )


def _letters(profile: DeviceProfile) -> str:
    kinds = ("wake", "transcript", "intent", "response", "status", "listening")
    return "".join(kind[0].upper() if kind in profile.reports else "-" for kind in kinds)


def _row(profile: DeviceProfile) -> dict[str, object]:
    return {
        "id": profile.id,
        "title": profile.title,
        "transport": profile.transport.value,
        "framing": profile.console.framing.value,
        "baud": profile.console.baud,
        "reports": sorted(profile.reports),
        "audio": profile.audio.dialogue.value if profile.audio else None,
        "wake_phrases": list(profile.wake_phrases),
        "language": profile.language,
        "samples": len(profile.samples),
        "note": profile.note,
        "path": profile.path,
    }
