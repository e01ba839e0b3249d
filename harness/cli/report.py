"""`harness report`: a wake-evaluation log, of ours or of the original tool, summed up."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.foreign import shown
from harness.cli.options import Command, json_option
from harness.cli.streams import readable
from harness.model.errors import InputError, Place
from harness.wake.reports.wake_log_reading import demand_numbers

if TYPE_CHECKING:
    from harness.offline.reports.told_log import ToldLog

DISAGREES = 3
_JOURNAL = b'{"journal":'


@click.command("report", cls=Command)
@click.argument("log", metavar="LOG")
@json_option("json_wanted", "Everything as one JSON object.")
def command(log: str, json_wanted: bool) -> None:
    """Read a wake-evaluation log, and print its console lines, intervals, and where its totals do not add up.

    LOG: of `harness evaluate`, of `harness export --wake-log`, or of the original tool; - is standard input. A journal
    (LOG.jsonl) is summed up as the log that would be made of it now: of a run that was killed, or that goes on.

    Exit status: 0 its totals are what its lines add up to · 2 it cannot be read · 3 they are not.
    """
    from harness.cli.streams import print_lines
    from harness.offline.reports.told_log import as_json, lines

    found = _told(log)
    print_lines([json.dumps(as_json(found), indent=2)] if json_wanted else map(shown, lines(found)))
    if found.differences:
        sys.exit(DISAGREES)


def _told(name: str) -> ToldLog:
    from harness.offline.reports.told_log import read_sums, told

    with readable(name) as file:
        try:
            with _log_of(file.path) as path:
                log, sums = read_sums(path, file.name)
        except OSError as error:
            what = f"the log cannot be read: {error.strerror or error}"
            raise InputError(what, place=Place(file.name), remedy="Check the path and its rights") from error
    if not (log.info or sums.lines or log.totals):
        raise InputError("this log is empty", place=Place(file.name), remedy="Name a log of an evaluation")
    demand_numbers(log, file.name)
    return told(log, sums)


@contextmanager
def _log_of(path: Path) -> Iterator[Path]:
    """The log itself, or what a journal comes to as a log, kept meanwhile."""
    from harness.offline.journal import JournalFile
    from harness.offline.reports.log import run_of, write_log

    with path.open("rb") as file:
        is_journal = file.read(len(_JOURNAL)) == _JOURNAL
    if not is_journal:
        yield path
        return
    import tempfile  # here, since it takes long to import and few need it

    journal = JournalFile(path)
    with tempfile.TemporaryDirectory(prefix="harness-report-") as folder:
        kept = Path(folder) / "log"
        with kept.open("w", encoding="utf-8", newline="\n") as stream:
            write_log(stream, run_of(journal), journal.outcomes())
        yield kept
