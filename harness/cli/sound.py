"""`harness sound`: which sound devices there are, and whether sound really travels between two of them."""

from __future__ import annotations

import json
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
    from harness.sound.path_check import PathCheck

_SERVER = click.option(
    "--sound-server",
    type=click.Choice(["system", "virtual_lab"]),
    default="system",
    show_default=True,
    help="The host's own sound, or that of the virtual lab.",
)
_JSON = json_option("as_json", "One JSON object instead of text.")


@click.group("sound")
def command() -> None:
    """List sound devices; check the sound path with a chirp; find recordings that cannot be played."""


@command.command("list", cls=Command)
@_SERVER
@_JSON
def list_devices(sound_server: str, as_json: bool) -> None:
    """List the sound devices by name: what a bench file names as sound_device."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from harness.sound.sound_devices import sound_devices

    devices = sound_devices(sound_server)
    if as_json:
        click.echo(json.dumps([asdict(device) for device in devices]))
        return
    if not devices:
        click.echo("No sound device answers. For the virtual lab: harness lab up, then --sound-server virtual_lab")
        return
    table = Table(box=None, pad_edge=False)
    for heading, side in (("name", "left"), ("in", "right"), ("out", "right"), ("default rate", "right")):
        table.add_column(heading, justify="right" if side == "right" else "left")
    for device in devices:
        rate = f"{device.rate_hz} Hz"
        table.add_row(Text(plain_text(device.name)), str(device.inputs), str(device.outputs), rate)
    Console(file=sys.stdout, soft_wrap=True).print(table)


@command.command("recordings", cls=Command)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@_JSON
def list_recordings(paths: tuple[Path, ...], as_json: bool) -> None:
    """Read recordings whole, and list those that a run would refuse, each with the reason.

    PATHS are sound files, or folders of them with all that is below. `harness validate` does the same for what a
    scenario names.

    Exit status: 0 all can be played · 2 some cannot.
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
@click.option("--speaker", required=True, help="The sound device that plays.")
@click.option("--microphone", required=True, help="The sound device that records.")
@click.option("--count", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many chirps.")
@click.option(
    "--frames-per-buffer", type=click.IntRange(64, 9600), default=480, show_default=True, help="More if sound is late."
)
@_SERVER
@_JSON
def check(speaker: str, microphone: str, count: int, frames_per_buffer: int, sound_server: str, as_json: bool) -> None:
    """Play chirps and find them in the recording; exit status 3 when they are not heard."""
    from harness.sound.path_check import check_path

    found = check_path(speaker, microphone, sound_server, count=count, frames_per_buffer=frames_per_buffer)
    click.echo(json.dumps(_figures(found)) if as_json else _words(found))
    if not found.ok:
        sys.exit(3)


def _figures(found: PathCheck) -> dict[str, object]:
    """Units in the names; what was not measured is null."""
    from harness.sound.path_check import percentiles

    figures: dict[str, object] = {
        "speaker": found.speaker,
        "microphone": found.microphone,
        "ok": found.ok,
        "played": found.played,
        "heard": len(found.heard),
        "best_correlation": round(found.best_correlation, 4),
        "noise_dbfs": round(found.noise_dbfs, 1),
        "stamp_error_ms": round(found.stamp_error_ms, 2),
        "xruns": found.xruns,
        "faults": list(found.faults),
    }
    for name, values in (
        ("round_trip_ms", [one.round_trip_ms for one in found.heard]),
        ("path_ms", [one.path_ms for one in found.heard]),
        ("level_dbfs", [one.level_dbfs for one in found.heard]),
    ):
        three = percentiles(values) if values else (None, None, None)
        labels = ("p5", "p50", "p95")
        figures[name] = {label: value and round(value, 3) for label, value in zip(labels, three, strict=True)}
    return figures


def _words(found: PathCheck) -> str:
    from harness.sound.path_check import percentiles

    lines = [f"{plain_text(found.speaker)} -> {plain_text(found.microphone)}: {found.played} chirps played"]
    if found.heard:
        trip = percentiles([one.round_trip_ms for one in found.heard])
        path = percentiles([one.path_ms for one in found.heard])
        level = percentiles([one.level_dbfs for one in found.heard])
        lines += [
            f"  heard         {len(found.heard)} of {found.played}, correlation up to {found.best_correlation:.3f}",
            f"  round trip    {trip[1]:.1f} ms (p5 to p95: {trip[0]:.1f} to {trip[2]:.1f}), from the call to play",
            f"  path          {path[1]:.2f} ms (p5 to p95: {path[0]:.2f} to {path[2]:.2f}), from leaving to arriving",
            f"  stamps        claim an error of {found.stamp_error_ms:.1f} ms at most",
            f"  level         {level[1]:.1f} dBFS, noise floor {found.noise_dbfs:.1f} dBFS",
        ]
    lines.append(f"  late or lost  {found.xruns} callbacks")
    lines += [f"  fault         {plain_text(fault)}" for fault in found.faults]
    return "\n".join([*lines, _verdict(found)])


def _verdict(found: PathCheck) -> str:
    if not found.heard:
        return (
            f"NOT HEARD: the chirp is not in the recording (best correlation {found.best_correlation:.2f}, noise"
            f" {found.noise_dbfs:.0f} dBFS). Is the volume up, and do both devices stand in one room?"
        )
    if found.faults:
        return "INTERRUPTED: the sound server was lost while the check ran."
    if not found.ok:
        return f"UNRELIABLE: {found.played - len(found.heard)} of {found.played} chirps were not heard."
    if found.xruns:
        return "OK, but sound was late: try --frames-per-buffer 2400, and in the bench frames_per_buffer: 2400."
    return "OK: every chirp was heard."
