"""`harness admin lab up | down | status | log`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from harness.base.foreign import plain_text
from harness.base.text_table import Column, text_table
from harness.cli.options import SHIPPED_FILE, argument, option, verb
from harness.cli.streams import print_lines, width
from harness.model.choices import LAB_PARTS
from harness.model.errors import LabError
from harness.model.numbers import seconds


@click.group("lab")
def command() -> None:
    """Start, stop and show the virtual lab: a sound server, an MQTT broker and the reference assistant."""


@verb("up", parent=command)
def up(
    *,
    settings: Path | None = option(
        "YAML file with the assistant's settings.", "--assistant-settings", former=("--settings",), type=SHIPPED_FILE
    ),
    room: str | None = option("Room that the lab simulates.", show_default="living_room"),
) -> None:
    """Start the lab, or the parts of it that are not running."""
    from harness.lab.lab import Lab

    lab = Lab()
    start_s = time.monotonic()
    if not lab.up(settings, room):
        stuck_parts = [f"{part.name}: {part.health}" for part in lab.status() if not part.healthy]
        if stuck_parts:
            raise LabError(
                f"the virtual lab is running, but not healthy: {'; '.join(stuck_parts)}",
                remedy="Stop the lab with harness admin lab down, then start it again",
            )
        click.echo("The virtual lab is already running. To stop it: harness admin lab down")
        return
    if lab.started != LAB_PARTS:
        click.echo(f"Restarted: {', '.join(lab.started)}. The rest of the virtual lab was already running.")
        return
    click.echo(f"The virtual lab started in {seconds(time.monotonic() - start_s)}.")
    click.echo("Next: run your scenario on a bench with `sound_server: virtual_lab`, or run the demo in any folder:")
    click.echo("  harness run scenarios/demo.yaml --bench scenarios/benches/virtual_lab.yaml")


@verb("down", parent=command)
def down() -> None:
    """Stop the processes that the lab started."""
    from harness.lab.lab import Lab

    stopped_parts = Lab().down()
    click.echo(f"Stopped: {', '.join(stopped_parts)}." if stopped_parts else "The virtual lab was not running.")


@verb("status", parent=command)
def status() -> None:
    """Show the process and health of each part. Exit status 3 if a part is not healthy."""
    from harness.lab.lab import Lab

    parts = Lab().status()
    rows = [
        (
            part.name,
            "–" if part.pid is None else str(part.pid),
            "–" if part.uptime_s is None else _uptime_text(part.uptime_s),
            plain_text(part.health),
        )
        for part in parts
    ]
    columns = Column("part"), Column("pid"), Column("uptime"), Column("health", left=True)
    print_lines(text_table(columns, rows, width()))
    if not all(part.healthy for part in parts):
        sys.exit(LabError.exit_code)


@verb("log", parent=command)
def log(
    *,
    part: str = argument(type=click.Choice([name.replace(" ", "_") for name in LAB_PARTS]), default="assistant"),
    lines: int = option("Number of lines, counted from the end.", within=(1, None), default=40),
) -> None:
    """Print the log of one part of the lab."""
    from harness.lab.lab import Lab

    path = Lab().log_path(part)
    if not path.exists():
        raise LabError(f"the log {path} does not exist", remedy="Start the lab: harness admin lab up")
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]:
        click.echo(plain_text(line, limit=1000))


def _uptime_text(uptime_s: float) -> str:
    """Such as `26:03:09`, in hours, minutes and seconds."""
    minutes, seconds_left = divmod(round(uptime_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds_left:02}"
