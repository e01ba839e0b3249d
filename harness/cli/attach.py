"""`harness attach`: watch and steer a session that is running."""

from __future__ import annotations

import sys

import click

from harness.cli.sessions import session_folder
from harness.cli.watching import chosen_view, only_running, view_options, watch
from harness.model.errors import EngineError
from harness.rig.engine_place import find


@click.command("attach")
@click.argument("session", required=False)
@view_options
def command(session: str | None, plain: bool, as_json: bool) -> None:
    """Watch and steer a session that is running.

    SESSION: its folder, or its name below ./sessions; not needed when only one is running.
    """
    view = chosen_view(plain, as_json)
    if session is None:
        place = only_running()
    else:
        folder = session_folder(session)
        found = find(folder)
        if found is None:
            raise EngineError(f"{folder} is not running", remedy=f"Go on with it: harness resume {folder}")
        place = found
    sys.exit(watch(place, view, attended=None, history=False))
