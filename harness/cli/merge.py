"""`harness merge`: the parts of an evaluation put together."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.whole_file import WholeFile
from harness.cli.streams import standard_output

if TYPE_CHECKING:
    from harness.offline.journal import JournalFile


@click.command("merge")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "-l", "--log", "log", required=True, metavar="FILE", help="The log of all parts; its journal goes beside it."
)
@click.option("--partial", is_flag=True, help="Merge what is there, though parts are missing or were cut off.")
@click.option("--force", is_flag=True, help="Replace a log that is there.")
@click.option("-v", "--verbose", "verbose", count=True, help="Say what is written.")
def command(logs: tuple[str, ...], log: str, partial: bool, force: bool, verbose: int) -> None:
    """Put the logs of `harness evaluate --shard I/N` together: log, journal and summary of the whole evaluation.

    They are what one run over the lists would have written, apart from times. The journals beside the parts' logs
    are read (PART.log.jsonl). Exit status: 0 done · 2 parts are missing, partial, or of different evaluations.
    """
    from harness.cli.streams import refuse_overwriting
    from harness.offline.evaluating import EvaluationFiles
    from harness.offline.journal import read_journal
    from harness.offline.reports.log import summary_line, writing_line
    from harness.offline.shards import demand_parts

    journals = [read_journal(_journal(name)) for name in logs]
    demand_parts(journals, partial=partial)
    written = EvaluationFiles(Path(log))
    for one in written.all:
        refuse_overwriting(str(one), [str(journal.path) for journal in journals])
    written.demand_room(resume=False, force=force)
    _write_journal(written.journal, journals)
    if verbose:
        _say(writing_line(log))
    done, found = written.write()
    _say(summary_line(done, found))


def _journal(name: str) -> Path:
    """The journal of a log, or the one that was named itself."""
    return Path(name) if name.endswith(".jsonl") else Path(f"{name}.jsonl")


def _write_journal(path: Path, journals: list[JournalFile]) -> None:
    from harness.offline.shards import merged_header, merged_lines

    header = merged_header(journals, ("harness", *sys.argv[1:]))
    with WholeFile(str(path)) as file:
        for line in merged_lines(journals, header):
            file.write(line)
        file.keep()


def _say(line: str) -> None:
    stream = standard_output()
    stream.write(line + "\n")
    stream.flush()
