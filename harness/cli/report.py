"""`harness report`: a wake-evaluation log, of ours or of the original tool, summed up."""

from __future__ import annotations

import json
import sys

import click

from harness.cli.read_once import readable
from harness.cli.score_output import print_lines
from harness.model.errors import InputError, Place
from harness.reports.cells import shown
from harness.reports.offline.told_log import as_json, lines, told
from harness.reports.wake_log import WakeLog
from harness.reports.wake_log_text import read

DISAGREES = 3


@click.command("report")
@click.argument("log", metavar="LOG")
@click.option("--json", "json_wanted", is_flag=True, help="Everything as one JSON object.")
def command(log: str, json_wanted: bool) -> None:
    """Read a wake-evaluation log, and print its console lines, intervals, and where its totals do not add up.

    LOG: of `harness evaluate`, of `harness export --wake-log`, or of the original tool; - is standard input.

    Exit status: 0 its totals are what its lines add up to · 2 it cannot be read · 3 they are not.
    """
    found = told(_log(log))
    print_lines([json.dumps(as_json(found), indent=2)] if json_wanted else map(shown, lines(found)))
    if found.differences:
        sys.exit(DISAGREES)


def _log(name: str) -> WakeLog:
    with readable(name) as file:
        try:
            # Names need not be UTF-8, and their bytes must survive.
            text = file.path.read_text("utf-8-sig", "surrogateescape")
        except OSError as error:
            what = f"the log cannot be read: {error.strerror or error}"
            raise InputError(what, place=Place(file.name), remedy="Check the path and its rights") from error
        found = read(text, file.name)
    if not (found.info or found.happenings or found.totals):
        raise InputError("this log is empty", place=Place(file.name), remedy="Name a log of an evaluation")
    try:
        for part in ("inv", "oov", "inv/oov"):
            found.seconds(part)
        for part in ("inv-files", "oov-files", "rejected-files"):
            int(found.about(part) or 0)
        float(found.about("real-time-factor") or 0)
    except ValueError as error:
        raise InputError(f"an INFO line has no number: {error}", place=Place(file.name)) from error
    return found
