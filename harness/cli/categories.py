"""`harness categories`: how often first responses fall into each category, by device, class and condition."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from harness.cli import score_output as output
from harness.cli.category_limits import Bound, Limit, failures
from harness.cli.score_options import share
from harness.cli.watching import progress_of, session_folder
from harness.evaluate.categories import Derived, Figure, Reading
from harness.evaluate.category_groups import PARTINGS, By
from harness.evaluate.judged import JudgedResponse, judged_in
from harness.evaluate.progress import Progress
from harness.evaluate.rated_trials import RatedTrial, consensus_of, rated_in, rows_asked_for
from harness.log.judgment_log import rating_rows
from harness.model.errors import InputError
from harness.model.judgment import Category
from harness.model.record import JudgmentGiven
from harness.reports.categories.report import CategoryReport, Selection, report_of
from harness.wire.foreign import plain_text

FAILED = 1


def _crosses(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> tuple[tuple[By, By], ...] | None:
    found: list[tuple[By, By]] = []
    for value in values:
        names = value.split(",")
        if len(names) != 2 or names[0] == names[1] or not all(name in PARTINGS for name in names):
            known = ", ".join(PARTINGS)
            raise click.BadParameter(f"{value!r} is not two of {known}; write device,class", ctx, param)
        found.append((PARTINGS[names[0]], PARTINGS[names[1]]))
    return tuple(found) or None


def _figure(ctx: click.Context, param: click.Parameter, value: str) -> Figure:
    return Category(value) if value in tuple(Category) else Derived(value)


@click.command("categories")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION…")
@click.option("--by", "partings", multiple=True, type=click.Choice(list(PARTINGS)), help="Only by this; repeatable.")
@click.option("--cross", "crosses", multiple=True, callback=_crosses, help="Two of them crossed: device,class.")
@click.option("--compare", nargs=2, metavar="A B", help="Two devices, or two sessions, on the same queries.")
@click.option(
    "--on",
    default=Category.CORRECT.value,
    type=click.Choice([one.value for one in (*Category, *Derived)]),
    callback=_figure,
    show_default=True,
    help="What is compared and crossed.",
)
@click.option("--rater", "raters", multiple=True, help="Only this rater's judgments, no adjudications; repeatable.")
@click.option("--round", "round_id", help="Only judgments of this round.")
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Counts and shares as CSV.")
@click.option("--html", "html_target", type=click.Path(path_type=Path), help="A page that needs nothing else.")
@click.option("--min-correct", callback=share, metavar="SHARE", help="Status 1 when a device has less: 0.8, or 80%.")
@click.option("--max-wrong", callback=share, metavar="SHARE", help="Status 1 when a device has more.")
@click.option(
    "--bound",
    type=click.Choice([one.value for one in Bound]),
    default=Bound.POINT.value,
    show_default=True,
    help="What a limit is on: the share, an end of its 95 % interval, or the end that is harder to keep (safe).",
)
@click.option(
    "--reading",
    type=click.Choice([one.value for one in Reading]),
    default=Reading.WRONG.value,
    show_default=True,
    help="Under which reading --max-wrong counts.",
)
def command(
    sessions: tuple[str, ...],
    partings: tuple[str, ...],
    crosses: tuple[tuple[By, By], ...] | None,
    compare: tuple[str, str] | None,
    on: Figure,
    raters: tuple[str, ...],
    round_id: str | None,
    as_json: bool,
    as_csv: bool,
    html_target: Path | None,
    min_correct: float | None,
    max_wrong: float | None,
    bound: str,
    reading: str,
) -> None:
    """Count the categories of first responses, with 95 % intervals; compare two devices on the same queries.

    SESSION: a folder, or a name below ./sessions; several are taken together. Works while raters are at it.

    Exit status: 0 done · 1 a limit fails, or there is nothing to hold it to · 2 wrong usage or input · 3 a session
    cannot be read, or a report cannot be written.
    """
    if as_json and as_csv:
        raise InputError("--json and --csv exclude each other", remedy="Choose one")
    by = tuple(PARTINGS[name] for name in dict.fromkeys(partings)) or None
    selection = Selection(raters, round_id, on, by, crosses, compare)
    report = read(sessions, selection)
    if html_target is not None:
        from harness.reports.categories.html import write_html

        write_html(report, html_target)
    output.print_lines(_lines(report, as_json=as_json, as_csv=as_csv))
    limits = [
        Limit("--min-correct", Category.CORRECT, min_correct, least=True, reading=Reading.ADMITTED),
        Limit("--max-wrong", Category.WRONG, max_wrong, least=False, reading=Reading(reading)),
    ]
    told = [line for limit in limits for line in failures(report, limit, Bound(bound))]
    for line in told:
        click.echo(f"harness: {line}", err=True)
    if told:
        sys.exit(FAILED)


def _lines(report: CategoryReport, *, as_json: bool, as_csv: bool) -> list[str]:
    if as_json:
        from harness.reports.categories.categories_json import text_of

        return text_of(report).splitlines()
    if as_csv:
        from harness.reports.categories.categories_csv import csv_of

        return csv_of(report).splitlines()
    from harness.reports.categories import summary, tables

    width = output.width()
    head, *lines = [*summary.lines(report, width), *tables.lines(report, width)]
    return [f"\x1b[1m{head}\x1b[0m" if output.in_colour(sys.stdout) else head, *lines]


def read(sessions: Sequence[str], selection: Selection) -> CategoryReport:
    """The report on some sessions; LogError, and InputError for names that fit nothing."""
    found: dict[str, tuple[Progress, tuple[JudgedResponse, ...]]] = {}
    raters: set[str] = set()
    rounds: set[str] = set()
    for name in sessions:
        folder = session_folder(name)
        progress = progress_of(folder)
        session_id = progress.session.session_id if progress.session else folder.name
        if session_id in found:
            raise InputError(f"session {plain_text(session_id, 120)} is named twice", remedy="Name it once")
        entries = rating_rows(folder)
        rows = [entry.record.judgment for entry in entries if isinstance(entry.record, JudgmentGiven)]
        raters |= {row.rater for row in rows}
        rounds |= {row.round for row in rows}
        found[session_id] = progress, judged_in(progress, rows_asked_for(rows, selection.raters, selection.round_id))
    for rater in selection.raters:
        _demand(rater, raters, "rater")
    if selection.round_id is not None:
        _demand(selection.round_id, rounds, "round")
    together = consensus_of(one for _, judged in found.values() for one in judged)
    trials: list[RatedTrial] = []
    for progress, judged in found.values():
        trials += rated_in(progress, judged, together)
    for side in selection.compare or ():
        _demand(side, {one.trial.device for one in trials} | set(found), "device or session")
    return report_of(trials, selection, tuple(found))


def _demand(name: str, known: set[str], what: str) -> None:
    if name not in known:
        from harness.library.findings import nearest  # here, since it takes long to import

        remedy = nearest(name, sorted(known)) if known else "Nothing was judged yet"
        raise InputError(f"there is no {what} {plain_text(name, 80)!r}", remedy=remedy)
