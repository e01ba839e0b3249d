"""`harness evaluate merge`: join the shards of an evaluation."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.base.whole_file import WholeFile
from harness.cli.options import argument, flag, option, verb
from harness.cli.streams import print_lines, refuse_overwriting
from harness.model.errors import HarnessError


@verb("merge")
def command(
    *,
    logs: tuple[str, ...] = argument("LOG...", required=True),
    log: str = option("Log file to write; the journal goes next to it.", "-l", required=True, metavar="FILE"),
    partial: bool = flag("Merge even if shards are missing or incomplete."),
    force: bool = flag("Overwrite an existing log."),
    verbose: int = option("Print which files are written.", "-v", count=True),
) -> None:
    """Join the shards of `harness evaluate --shard I/N` into one log, journal and summary.

    The result equals that of one run over the lists, except for times. The command reads the journals next to the
    logs (LOG.jsonl).

    Exit status: 0 done · 2 shards are missing, incomplete or different · 3 errors, or files that need a repair.
    """
    from harness.offline.evaluation_files import EvaluationFiles
    from harness.offline.journal import JournalFile
    from harness.offline.reports.log import fault_lines, recording_warnings, summary_line, writing_line
    from harness.offline.shards import demand_one_evaluation, merged_header, merged_lines

    journals = [JournalFile(Path(name if name.endswith(".jsonl") else f"{name}.jsonl")) for name in logs]
    demand_one_evaluation(journals, partial=partial)
    output = EvaluationFiles(Path(log))
    for path in output.all:
        refuse_overwriting(str(path), [str(journal.path) for journal in journals])
    output.check_output(resume=False, force=force)
    with WholeFile(str(output.journal)) as file:
        for line in merged_lines(journals, merged_header(journals, ("harness", *sys.argv[1:]))):
            file.write(line)
        file.keep()
    if verbose:
        print_lines([writing_line(log)])
    run, figures = output.write()
    faults = fault_lines(figures.counts, f"{log} says", resampling=run.header.evaluation.resample)
    warnings = (*faults, *recording_warnings(figures))
    print_lines([summary_line(run, figures), *(f"Warning: {warning}." for warning in warnings)])
    if figures.counts.has_faults:
        sys.exit(HarnessError.exit_code)
