"""`harness resume`: go on with a session that was stopped or cut off."""

from __future__ import annotations

import sys

import click

from harness.cli.watching import chosen_view, session_folder, view_options, watch
from harness.rig.launch import start_engine


@click.command("resume")
@click.argument("session")
@view_options
@click.option("--no-watch", is_flag=True, help="Start the engine, print the session's folder, and return.")
def command(session: str, plain: bool, as_json: bool, no_watch: bool) -> None:
    """Go on with a session that was stopped or cut off: every trial is finished once, none is lost.

    SESSION: its folder, or its name below ./sessions.
    """
    view = chosen_view(plain, as_json)
    folder = session_folder(session)
    place = start_engine(folder)
    if no_watch:
        click.echo(place.folder)
        return
    sys.exit(watch(place, view, attended=None, history=False))
