"""`harness report`: a wake-evaluation log, of ours or of the original tool, summed up."""

from __future__ import annotations

import json
import sys

import click

from harness.cli.read_once import readable
from harness.cli.score_output import print_lines
from harness.model.errors import InputError, Place
from harness.reports.cells import shown
from harness.reports.offline.told_log import ToldLog, as_json, lines, read_sums, told
from harness.reports.wake_log_reading import demand_numbers

DISAGREES = 3


@click.command("report")
@click.argument("log", metavar="LOG")
@click.option("--json", "json_wanted", is_flag=True, help="Everything as one JSON object.")
def command(log: str, json_wanted: bool) -> None:
    """Read a wake-evaluation log, and print its console lines, intervals, and where its totals do not add up.

    LOG: of `harness evaluate`, of `harness export --wake-log`, or of the original tool; - is standard input.

    Exit status: 0 its totals are what its lines add up to · 2 it cannot be read · 3 they are not.
    """
    found = _told(log)
    print_lines([json.dumps(as_json(found), indent=2)] if json_wanted else map(shown, lines(found)))
    if found.differences:
        sys.exit(DISAGREES)


def _told(name: str) -> ToldLog:
    with readable(name) as file:
        try:
            log, sums = read_sums(file.path, file.name)
        except OSError as error:
            what = f"the log cannot be read: {error.strerror or error}"
            raise InputError(what, place=Place(file.name), remedy="Check the path and its rights") from error
    if not (log.info or sums.lines or log.totals):
        raise InputError("this log is empty", place=Place(file.name), remedy="Name a log of an evaluation")
    demand_numbers(log, file.name)
    return told(log, sums)
