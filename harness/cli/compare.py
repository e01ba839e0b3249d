"""`harness report compare`: compare sessions with a first one, or two evaluations of files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from harness.base.whole_file import WholeFile, write_atomically
from harness.cli.options import A_FILE, LIMIT_FAILED, argument, choose_one, json_option, option, target_option, verb
from harness.cli.sessions import session_folder
from harness.cli.streams import STREAM, drawn_progress, open_input, print_lines, refuse_overwriting, width
from harness.model.errors import InputError


@verb("compare")
def command(
    *,
    first: Path = argument("A"),
    second: Path = argument("B"),
    more: tuple[Path, ...] = argument("[C]…"),
    cluster_by: str | None = option(
        "Group files that belong together, such as one talker's: by folder, or by what REGEX matches in the file name. "
        "For sessions, REGEX matches in the name of the talker, recording or voice.",
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

    A B C…: sessions, by folder or by name in ./sessions. A is the baseline. Each measure, overall and by condition,
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
        names = [str(path) for path in (first, second, *more)]
        _compare_sessions(names, cluster_by, as_json=as_json, html=html, markdown=markdown)
        return
    if more or html is not None or markdown is not None:
        option_name = "--markdown" if html is None else "--html"
        problem = "only two evaluations can be compared" if more else f"{option_name} applies only to sessions"
        raise InputError(problem, remedy="Pass two logs, or pass sessions")
    _compare_evaluations(first, second, cluster_by, csv_target, as_json=as_json)


def _compare_evaluations(
    first: Path, second: Path, cluster_by: str | None, csv_target: str | None, *, as_json: bool
) -> None:
    """Prints the comparison, or only the files that differ if csv_target is STREAM."""
    from harness.offline.compared_evaluation import journal_of, read_evaluated
    from harness.offline.figures.comparison import Clusters, compare
    from harness.offline.reports import comparison as reports

    if csv_target is not None:
        sources = [str(path) for log in (first, second) for path in (log, journal_of(log))]
        refuse_overwriting(csv_target, sources)
    clusters = Clusters(cluster_by) if cluster_by else None
    with open_input(str(first)) as first_file, open_input(str(second)) as second_file:
        comparison = compare(
            read_evaluated(first_file.path, clusters, first_file.name),
            read_evaluated(second_file.path, clusters, second_file.name),
        )
        if csv_target == STREAM:
            click.echo("".join(reports.differing_csv(comparison)), nl=False)
            return
        if csv_target is not None:
            with WholeFile(csv_target) as file:
                for row in reports.differing_csv(comparison):
                    file.write(row.encode("utf-8", "surrogateescape"))
                file.keep()
        output = [json.dumps(reports.as_json(comparison))] if as_json else list(reports.lines(comparison))
    click.echo("\n".join(output))


def _compare_sessions(
    names: list[str], cluster_by: str | None, *, as_json: bool, html: Path | None, markdown: str | None
) -> None:
    """Writes and prints the reports, and ends with status 1 if a measure is worse than in the first session."""
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
        sys.exit(LIMIT_FAILED)
