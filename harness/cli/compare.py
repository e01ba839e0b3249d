"""`harness compare`: two evaluations, on the same files, or two rates on different audio."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.base.whole_file import WholeFile
from harness.cli.options import STREAM, Command, json_option, target_option
from harness.cli.streams import readable, refuse_overwriting


@click.command("compare", cls=Command)
@click.argument("first", metavar="A.log", type=click.Path(path_type=Path))
@click.argument("second", metavar="B.log", type=click.Path(path_type=Path))
@click.option(
    "--cluster-by",
    metavar="folder|REGEX",
    help="Files that belong together, as a talker's: those of a folder, or in whose names REGEX finds the same.",
)
@target_option("--csv", "csv_target", "Print the files that differ, and no text.")
@json_option("as_json", "As one JSON object.")
def command(first: Path, second: Path, cluster_by: str | None, csv_target: Path | None, as_json: bool) -> None:
    """Compare two evaluations: McNemar's test on the files of both, two rates of false accepts, two WERs.

    A.log, B.log: logs of ours, whose journals (A.log.jsonl) tell more where they are there, journals, or logs of the
    original tool. Files are the same when their lists call them the same.
    """
    from harness.offline.figures.comparison import Clusters, compare
    from harness.offline.reports.comparison import as_json as comparison_json
    from harness.offline.reports.comparison import differing_csv, journal_of, lines, read_evaluated

    if csv_target is not None:
        refuse_overwriting(str(csv_target), [str(one) for log in (first, second) for one in (log, journal_of(log))])
    clusters = Clusters(cluster_by) if cluster_by else None
    with readable(str(first)) as one, readable(str(second)) as other:
        found = compare(*(read_evaluated(side.path, clusters, side.name) for side in (one, other)))
        if csv_target is not None and str(csv_target) == STREAM:
            click.echo("".join(differing_csv(found)), nl=False)
            return
        if csv_target is not None:
            with WholeFile(str(csv_target)) as file:
                for row in differing_csv(found):
                    file.write(row.encode("utf-8", "surrogateescape"))
                file.keep()
        told = [json.dumps(comparison_json(found))] if as_json else list(lines(found))
    click.echo("\n".join(told))
