"""`harness resume`: go on with a session that was stopped or cut off."""

from __future__ import annotations

import sys

import click

from harness.cli.sessions import session_folder
from harness.cli.watching import View, chosen_view, view_options, watch
from harness.log.reader import LogReader
from harness.model.errors import InputError
from harness.model.record import EndReason
from harness.rig.launch import start_engine
from harness.session.resumption import Resumption


@click.command("resume")
@click.argument("session")
@view_options
@click.option("--no-watch", is_flag=True, help="Start the engine, print the session's folder, and return.")
def command(session: str, plain: bool, as_json: bool, no_watch: bool) -> None:
    """Go on with a session that was stopped or cut off: every trial is finished once, none is lost.

    In the dashboard also a session that is complete: to judge its responses, and to play trials again.

    SESSION: its folder, or its name below ./sessions.
    """
    view = chosen_view(plain, as_json)
    folder = session_folder(session)
    with LogReader(folder) as reader:
        standing = Resumption.of(reader.entries())
    if standing.ended is EndReason.ABORTED:
        raise InputError(f"{folder} was aborted", remedy="Begin a new session: harness run")
    if not standing.pending() and view is not View.DASHBOARD:
        click.echo(f"nothing is left to play; look at it: harness show {folder}")
        return
    place = start_engine(folder)
    if no_watch:
        click.echo(place.folder)
        return
    sys.exit(watch(place, view, attended=None, history=False))
