"""`harness report compare`: compare sessions with a first one, or two evaluations of files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from harness.base.whole_file import WholeFile
from harness.cli.options import A_FILE, argument, choose_one, json_option, option, target_option, verb
from harness.cli.streams import STREAM, drawn_progress, print_lines, readable, refuse_overwriting, width
from harness.model.errors import InputError

WORSE = 1  # Exit status, as for a limit that failed.


@verb("compare")
def command(
    *,
    first: Path = argument("A"),
    second: Path = argument("B"),
    more: tuple[Path, ...] = argument("[C]…"),
    cluster_by: str | None = option(
        "Group files that belong together, such as one talker's: by folder, or by what REGEX matches in the name. "
        "In sessions: the name of the talker, recording or voice.",
        metavar="folder|REGEX",
        show_default="each stimulus separately",
    ),
    csv_target: str | None = target_option("--csv", "Print the files that differ as CSV."),
    as_json: bool = json_option("Print one JSON object."),
    html: Path | None = option("Sessions: write an HTML page.", type=A_FILE, writes=True),
    markdown: str | None = option(
        "Sessions: write Markdown for a pull request; - prints it.", metavar="FILE|-", writes=True
    ),
) -> None:
    """Compare sessions with a baseline, or two evaluations of files.

    A B C…: sessions, by folder or by name below ./sessions. A is the baseline. Each measure, overall and by condition,
    is worse, better, undecided, or shows no difference. p is corrected for the number of tests (Holm).

    A B: logs of `harness evaluate` (with more detail if A.jsonl is next to A), journals, or logs of the original tool.
    Compares them by McNemar's test on the shared files, false accepts per hour, and WER. Files match by their names in
    the lists.

    Exit status: 0 done, no regression shown · 1 a regression of a session is shown · 2 wrong usage or input.
    """
    if not first.is_file() and str(first) != STREAM:
        if csv_target is not None:
            raise InputError("--csv applies only to evaluations", remedy="For sessions, use --json")
        choose_one(json=as_json, markdown=markdown == STREAM)
        _sessions([str(path) for path in (first, second, *more)], cluster_by, as_json, html, markdown)
        return
    if more or html is not None or markdown is not None:
        option = "--markdown" if html is None else "--html"
        subject = "a third name" if more else option
        raise InputError(f"{subject} applies only to sessions", remedy="Name two logs, or the folders of sessions")
    from harness.offline.figures.comparison import Clusters, compare
    from harness.offline.reports.comparison import as_json as comparison_json
    from harness.offline.reports.comparison import differing_csv, journal_of, lines, read_evaluated

    if csv_target is not None:
        refuse_overwriting(csv_target, [str(path) for log in (first, second) for path in (log, journal_of(log))])
    clusters = Clusters(cluster_by) if cluster_by else None
    with readable(str(first)) as first_log, readable(str(second)) as other:
        comparison = compare(*(read_evaluated(side.path, clusters, side.name) for side in (first_log, other)))
        if csv_target is not None and csv_target == STREAM:
            click.echo("".join(differing_csv(comparison)), nl=False)
            return
        if csv_target is not None:
            with WholeFile(csv_target) as file:
                for row in differing_csv(comparison):
                    file.write(row.encode("utf-8", "surrogateescape"))
                file.keep()
        output = [json.dumps(comparison_json(comparison))] if as_json else list(lines(comparison))
    click.echo("\n".join(output))


def _sessions(names: list[str], cluster_by: str | None, as_json: bool, html: Path | None, markdown: str | None) -> None:
    from harness.base.whole_file import write_atomically
    from harness.cli.sessions import session_folder
    from harness.offline.figures.comparison import Clusters
    from harness.report import comparison_page
    from harness.report.comparison import compare_sessions
    from harness.statistics.comparison import DifferenceVerdict

    folders = [session_folder(session) for session in names]
    with drawn_progress():
        comparison = compare_sessions(folders, Clusters(cluster_by) if cluster_by else None)
    facts = comparison_page.differing_facts(comparison, folders)
    if html is not None:
        comparison_page.write_page(comparison, facts, html)
    if markdown is not None and markdown != STREAM:
        write_atomically(Path(markdown), comparison_page.markdown(comparison, facts).encode("utf-8"))
    if markdown == STREAM:
        print_lines([comparison_page.markdown(comparison, facts)])
    elif as_json:
        print_lines([json.dumps(comparison_page.as_json(comparison, facts))])
    else:
        print_lines(comparison_page.lines(comparison, facts, width()))
    if comparison.rows_with(DifferenceVerdict.WORSE):
        sys.exit(WORSE)
