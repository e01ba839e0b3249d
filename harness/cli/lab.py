"""`harness lab up | down | status | log`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from harness.base.foreign import plain_text
from harness.cli.options import SHIPPED_FILE
from harness.model.choices import LAB_PARTS as PARTS
from harness.model.errors import LabError


@click.group("lab")
def command() -> None:
    """Start, stop and show the virtual lab: a sound server, a broker and the reference assistant."""


@command.command()
@click.option("--settings", type=SHIPPED_FILE, help="Settings of the assistant (YAML).")
@click.option("--room", help="How the room is set up; `living_room` unless named.")
def up(settings: Path | None, room: str | None) -> None:
    """Start the lab; what is up already is left alone."""
    from harness.lab.lab import Lab

    lab = Lab()
    began_s = time.monotonic()
    if not lab.up(settings, room):
        click.echo("The virtual lab is up already. (harness lab down ends it.)")
        return
    if lab.started != PARTS:
        click.echo(f"Started again: {', '.join(lab.started)}. The rest of the virtual lab was up.")
        return
    click.echo(f"The virtual lab is up after {time.monotonic() - began_s:.1f} s.")
    click.echo("Next: harness run scenarios/demo.yaml --bench scenarios/benches/virtual_lab.yaml")


@command.command()
def down() -> None:
    """End the lab; only processes that it started."""
    from harness.lab.lab import Lab

    ended = Lab().down()
    click.echo(f"Ended: {', '.join(ended)}." if ended else "The virtual lab was not up.")


@command.command()
def status() -> None:
    """Show every part with its process and health. Exit status 3 when one is not well."""
    from harness.lab.lab import Lab

    parts = Lab().status()
    click.echo(f"{'part':<14}{'pid':>8}  {'uptime':>9}  health")
    for part in parts:
        pid = "–" if part.pid is None else str(part.pid)
        uptime = "–" if part.uptime_s is None else _uptime(part.uptime_s)
        click.echo(f"{part.name:<14}{pid:>8}  {uptime:>9}  {plain_text(part.health)}")
    if not all(part.healthy for part in parts):
        sys.exit(LabError.exit_code)


@command.command()
@click.argument("part", type=click.Choice([name.replace(" ", "_") for name in PARTS]), default="assistant")
@click.option("--lines", default=40, show_default=True, help="So many of the last ones.")
def log(part: str, lines: int) -> None:
    """Print what a part of the lab has said of itself."""
    from harness.lab.lab import Lab

    path = Lab().log_path(part)
    if not path.exists():
        raise LabError(f"there is no log {path}", remedy="harness lab up")
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]:
        click.echo(plain_text(line, limit=1000))


def _uptime(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
