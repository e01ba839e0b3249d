"""`harness resume`: go on with a session that was stopped or cut off."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.cli.junit_option import demand_watching, junit_option, until_watched, watch_to_report, write_report
from harness.cli.options import Command
from harness.cli.sessions import figures_of, session_folder
from harness.cli.watching import View, chosen_view, view_options
from harness.model.errors import InputError
from harness.model.record import EndReason
from harness.session.resumption import Resumption


@click.command("resume", cls=Command)
@click.argument("session")
@view_options
@junit_option
@click.option("--unattended", is_flag=True, help="Ask nobody, whatever the session began with.")
@click.option("--no-watch", is_flag=True, help="Start the engine, print the session's folder, and return.")
def command(session: str, plain: bool, as_json: bool, report: Path | None, unattended: bool, no_watch: bool) -> None:
    """Go on with a session that was stopped or cut off: every trial is finished once, none is lost.

    In the dashboard also a session that is complete: to judge its responses, and to play trials again.

    SESSION: its folder, or its name below ./sessions. One that runs is watched, as by `harness attach`.

    Exit status, over the whole session, also where nothing is left to play: 0 done · 1 a declared limit failed ·
    2 wrong usage or input, or it was aborted · 3 a fault, an abort or a stop.
    """
    from harness.session.engine.launch import start_engine
    from harness.session.log.reader import LogReader

    view = chosen_view(plain, as_json)
    demand_watching(report, no_watch)
    with until_watched(report, Path(session).name):
        folder = session_folder(session)
        with LogReader(folder) as reader:
            standing = Resumption.of(reader.entries())
        if standing.ended is EndReason.ABORTED:
            raise InputError(f"{folder} was aborted", remedy="Begin a new session: harness run")
        complete = standing.ended is EndReason.COMPLETED and not standing.pending()
        if complete and view is not View.DASHBOARD:
            click.echo(f"nothing is left to play; look at it: harness show {folder}")
            write_report(report, folder)
            sys.exit(_verdict(folder))
        place = start_engine(folder, unattended=unattended)
    if no_watch:
        click.echo(place.folder)
        return
    sys.exit(watch_to_report(place, view, report))


def _verdict(folder: Path) -> int:
    """What a run that ended here would have left with; says which limits failed."""
    from harness.session.engine.resolved import read_resolved
    from harness.session.figures.progress import check_limits

    progress, wake = figures_of(folder)
    scenario = read_resolved(folder).scenario
    verdicts = check_limits(scenario.limits, progress.totals, wake.snapshot(), scenario.stopping)
    failed = [one.name for one in verdicts if not one.ok]
    if failed:
        click.echo(f"failed: {', '.join(failed)}")
    return 1 if failed else 0
