"""`harness sound`: list sound devices, and check that sound travels from a loudspeaker to a microphone."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import plain_text
from harness.cli.options import Command, json_option

if TYPE_CHECKING:
    from harness.model.errors import InputError

_SERVER = click.option(
    "--sound-server",
    type=click.Choice(["system", "virtual_lab"]),
    default="system",
    show_default=True,
    help="Use the host's sound server or the virtual lab's.",
)
_JSON = json_option("as_json", "Print one JSON object instead of text.")


@click.group("sound")
def command() -> None:
    """List sound devices, check the sound path with chirps, and find recordings that cannot be played."""


@command.command("list", cls=Command)
@_SERVER
@_JSON
def list_devices(sound_server: str, as_json: bool) -> None:
    """List the sound devices. A bench file names one of them as sound_device."""
    from harness.base.text_table import Column, text_table
    from harness.sound.sound_devices import sound_devices

    devices = sound_devices(sound_server)
    if as_json:
        click.echo(json.dumps([asdict(device) for device in devices]))
        return
    if not devices:
        click.echo("No sound device was found. For the virtual lab: harness lab up, then --sound-server virtual_lab")
        return
    columns = (Column("name"), Column("in"), Column("out"), Column("default rate"))
    rows = [(one.name, str(one.inputs), str(one.outputs), f"{one.rate_hz} Hz") for one in devices]
    for line in text_table(columns, rows, shutil.get_terminal_size((120, 24)).columns):
        click.echo(line)


@command.command("recordings", cls=Command)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@_JSON
def list_recordings(paths: tuple[Path, ...], as_json: bool) -> None:
    """Read recordings completely, and list those that a run would reject, each with the reason.

    PATHS are sound files, or folders that are searched with their subfolders. `harness validate` does the same for
    the recordings of a scenario.

    Exit status: 0 all can be played · 2 some cannot, or no recording was found.
    """
    from harness.base.foreign import counted

    found = list(_sound_files(paths))
    refused = [error for path in found if (error := _refusal(path)) is not None]
    if as_json:
        rows = [{"file": str(one.place), "what": one.what, "remedy": one.remedy} for one in refused]
        click.echo(json.dumps({"files": len(found), "refused": rows}))
    else:
        for one in refused:
            click.echo(plain_text(str(one), 2000))
        click.echo(f"{counted(len(found), 'recording')}, {len(refused)} cannot be played")
    if refused or not found:
        sys.exit(2)


def _sound_files(paths: Iterable[Path]) -> Iterator[Path]:
    from harness.scenario.assets import SOUND_SUFFIXES

    for path in paths:
        if path.is_dir():
            yield from sorted(one for one in path.rglob("*") if one.suffix.lower() in SOUND_SUFFIXES)
        else:
            yield path


def _refusal(path: Path) -> InputError | None:
    from harness.model.errors import InputError
    from harness.sound import recordings

    try:
        recordings.check(str(path))
    except InputError as error:
        return error
    return None


@command.command("check", cls=Command)
@click.option("--speaker", required=True, help="Sound device that plays.")
@click.option("--microphone", required=True, help="Sound device that records.")
@click.option("--count", type=click.IntRange(1, 1000), default=10, show_default=True, help="Number of chirps.")
@click.option(
    "--frames-per-buffer",
    type=click.IntRange(64, 9600),
    default=480,
    show_default=True,
    help="Buffer size in samples. Raise it if sound is late.",
)
@_SERVER
@_JSON
def check(speaker: str, microphone: str, count: int, frames_per_buffer: int, sound_server: str, as_json: bool) -> None:
    """Play chirps and look for them in the recording.

    Exit status: 0 every chirp was heard · 3 chirps were missed, or the sound server was lost.
    """
    from harness.sound.path_check import check_path, path_figures, path_words

    found = check_path(speaker, microphone, sound_server, count=count, frames_per_buffer=frames_per_buffer)
    click.echo(json.dumps(path_figures(found)) if as_json else path_words(found))
    if not found.ok:
        sys.exit(3)
