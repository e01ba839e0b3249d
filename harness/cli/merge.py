"""`harness merge`: the parts of an evaluation put together."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.base.whole_file import WholeFile
from harness.cli.streams import print_lines


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
    from harness.offline.journal import JournalFile
    from harness.offline.reports.log import summary_line, writing_line
    from harness.offline.shards import demand_parts, merged_header, merged_lines

    journals = [JournalFile(Path(name if name.endswith(".jsonl") else f"{name}.jsonl")) for name in logs]
    demand_parts(journals, partial=partial)
    written = EvaluationFiles(Path(log))
    for one in written.all:
        refuse_overwriting(str(one), [str(journal.path) for journal in journals])
    written.demand_room(resume=False, force=force)
    with WholeFile(str(written.journal)) as file:
        for line in merged_lines(journals, merged_header(journals, ("harness", *sys.argv[1:]))):
            file.write(line)
        file.keep()
    if verbose:
        print_lines([writing_line(log)])
    print_lines([summary_line(*written.write())])
