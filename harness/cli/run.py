"""`harness run`: run a scenario on a bench."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from harness.cli.sessions import SESSIONS
from harness.cli.watching import chosen_view, view_options, watch
from harness.model.bench import OperatorPresence
from harness.model.errors import HarnessError, InputError, Place, UnmetNeed
from harness.reports import junit
from harness.rig.launch import start_engine
from harness.rig.prepare import prepare

FILE = click.Path(path_type=Path)


@click.command("run")
@click.argument("scenario", type=FILE)
@click.option("--bench", required=True, type=FILE, help="The bench file.")
@click.option("--sessions", type=FILE, default=SESSIONS, show_default=True, help="Where session folders are made.")
@click.option("--seed", type=int, help="Seed of the order and of simulated parts, instead of the scenario's.")
@view_options
@click.option(
    "--attended/--unattended",
    default=None,
    help="Whether an operator is there to answer; by itself: while the dashboard is open, unless the bench says.",
)
@click.option("--junit", "report", type=FILE, help="Write a JUnit report to this file, whatever the exit status.")
@click.option("--no-watch", is_flag=True, help="Start the engine, print the session's folder, and return.")
def command(
    scenario: Path,
    bench: Path,
    sessions: Path,
    seed: int | None,
    plain: bool,
    as_json: bool,
    attended: bool | None,
    report: Path | None,
    no_watch: bool,
) -> None:
    """Run a scenario on a bench. The run is a process of its own: leaving this one does not end it.

    Exit status: 0 done (or SKIP: the bench lacks what the scenario needs) · 1 a declared limit failed ·
    2 wrong usage or input · 3 a fault, an abort or a stop.
    """
    view = chosen_view(plain, as_json)
    if report is not None and no_watch:
        raise InputError(
            "--junit is written when the run ends, and --no-watch does not wait for that",
            remedy="Write it afterwards: harness export SESSION --junit FILE",
        )
    presence = {None: None, True: OperatorPresence.PRESENT, False: OperatorPresence.ABSENT}[attended]
    with _reported(report, scenario.stem):
        try:
            folder = prepare(scenario, bench, sessions, seed=seed, operator=presence)
        except UnmetNeed as need:
            click.echo(f"SKIP {need}")
            if report is not None:
                junit.write(report, junit.not_begun(scenario.stem, need))
            return
        place = start_engine(folder)
    if no_watch:
        click.echo(place.folder)
        return
    try:
        status = watch(place, view, attended=attended, history=True)
    finally:
        if report is not None:
            junit.write(report, junit.junit(folder))
    sys.exit(status)


@contextmanager
def _reported(report: Path | None, name: str) -> Iterator[None]:
    """Nobody reads an old report as that of this run: until it has ended, or if it never begins, the file says so."""
    if report is None:
        yield
        return
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        junit.write(report, junit.not_begun(name, "the run did not come to its end"))
    except (OSError, HarnessError) as error:
        raise InputError(
            f"the JUnit report cannot be written: {error}", place=Place(str(report)), remedy="Name another file"
        ) from error
    try:
        yield
    except HarnessError as error:
        junit.write(report, junit.not_begun(name, error))
        raise
