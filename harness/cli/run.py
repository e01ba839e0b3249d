"""`harness run`: run a scenario on a bench."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.cli.junit_option import demand_watching, junit_option, until_watched, watch_to_report
from harness.cli.options import SHIPPED_FILE, Command
from harness.cli.sessions import SESSIONS
from harness.cli.watching import chosen_view, view_options
from harness.model.bench import OperatorPresence
from harness.model.errors import UnmetNeed


@click.command("run", cls=Command)
@click.argument("scenario", type=SHIPPED_FILE)
@click.option("--bench", required=True, type=SHIPPED_FILE, help="The bench file.")
@click.option(
    "--sessions",
    type=click.Path(path_type=Path),
    default=SESSIONS,
    show_default=True,
    help="Where session folders are made.",
)
@click.option("--seed", type=int, help="Seed of the order and of simulated parts, instead of the scenario's.")
@view_options
@click.option(
    "--attended/--unattended",
    default=None,
    help="Whether an operator is there to answer; by itself: while the dashboard is open, unless the bench says.",
)
@junit_option
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
    from harness.report import junit
    from harness.session.engine.launch import start_engine
    from harness.session.engine.prepare import prepare

    view = chosen_view(plain, as_json)
    demand_watching(report, no_watch)
    presence = {None: None, True: OperatorPresence.PRESENT, False: OperatorPresence.ABSENT}[attended]
    with until_watched(report, scenario.stem):
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
    sys.exit(watch_to_report(place, view, report, history=True))
