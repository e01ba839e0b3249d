"""`harness attach`: watch and steer a session that is running."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.junit_option import junit_option, until_watched, watch_to_report
from harness.cli.options import Command
from harness.cli.sessions import session_folder
from harness.cli.watching import chosen_view, only_running, view_options
from harness.model.errors import EngineError

if TYPE_CHECKING:
    from harness.session.engine.launch import EnginePlace


@click.command("attach", cls=Command)
@click.argument("session", required=False)
@view_options
@junit_option
def command(session: str | None, plain: bool, as_json: bool, report: Path | None) -> None:
    """Watch and steer a session that is running.

    SESSION: its folder, or its name below ./sessions; not needed when only one is running.

    Exit status, over the whole session: 0 done · 1 a declared limit failed · 2 wrong usage or input · 3 a fault, an
    abort or a stop, or nothing is running.
    """
    view = chosen_view(plain, as_json)
    with until_watched(report, "attach" if session is None else Path(session).name):
        place = only_running() if session is None else _running(session)
    sys.exit(watch_to_report(place, view, report))


def _running(session: str) -> EnginePlace:
    from harness.session.engine.launch import find

    folder = session_folder(session)
    found = find(folder)
    if found is None:
        raise EngineError(f"{folder} is not running", remedy=f"Go on with it: harness resume {folder}")
    return found
