"""`harness compare`: two evaluations, on the same files, or two rates on different audio."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.cli.read_once import refuse_overwriting
from harness.evaluate.offline.comparison import FOLDER, Clusters, compare
from harness.log.folder import write_whole
from harness.reports.offline.comparison_lines import as_json as comparison_json
from harness.reports.offline.comparison_lines import differing_csv, lines
from harness.reports.offline.evaluated import journal_of, read_evaluated


@click.command("compare")
@click.argument("first", metavar="A.log", type=click.Path(path_type=Path))
@click.argument("second", metavar="B.log", type=click.Path(path_type=Path))
@click.option(
    "--cluster-by",
    metavar="folder|REGEX",
    help=f"Files that belong together, as a talker's: those of a {FOLDER}, or in whose names REGEX finds the same.",
)
@click.option("--csv", "csv_target", type=click.Path(path_type=Path), metavar="FILE", help="Files that differ.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def command(first: Path, second: Path, cluster_by: str | None, csv_target: Path | None, as_json: bool) -> None:
    """Compare two evaluations: McNemar's test on the files of both, two rates of false accepts, two WERs.

    A.log, B.log: logs of ours, whose journals (A.log.jsonl) tell more where they are there, journals, or logs of the
    original tool. Files are the same when their lists call them the same.
    """
    if csv_target is not None:
        refuse_overwriting(str(csv_target), [str(one) for log in (first, second) for one in (log, journal_of(log))])
    found = compare(read_evaluated(first), read_evaluated(second), Clusters(cluster_by) if cluster_by else None)
    if csv_target is not None:
        write_whole(csv_target, differing_csv(found).encode("utf-8", "surrogateescape"))
    click.echo(json.dumps(comparison_json(found)) if as_json else "\n".join(lines(found)))
