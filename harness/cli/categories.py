"""`harness categories`: how often first responses fall into each category, by device, class and condition."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.cells import shown
from harness.cli.options import Command, Option, csv_option, json_option, share
from harness.cli.sessions import demand_known, rated_sessions
from harness.model.choices import PARTINGS, Derived, Reading
from harness.model.errors import InputError
from harness.model.judgment import Category

if TYPE_CHECKING:
    from harness.model.choices import By, Reading
    from harness.rating.figures.categories import CountedShare, Figure
    from harness.rating.reports.categories import CategoryReport, Selection


TOO_FEW = "too few queries for an interval"


class Bound(StrEnum):
    """What a limit is on. SAFE: the end of the interval that makes it harder to keep."""

    POINT = "point"
    LOWER = "lower"
    UPPER = "upper"
    SAFE = "safe"


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that a share may be, or the least. wanted: 0–1; None: not asked for."""

    option: str
    category: Category
    wanted: float | None
    least: bool
    reading: Reading


def failures(report: CategoryReport, limit: Limit, bound: Bound) -> Iterator[str]:
    """A sentence for each device that does not hold a limit; one that has no share holds none."""
    from harness.rating.reports.categories import name_of
    from harness.transcripts.reports.summary import per_cent

    if limit.wanted is None:
        return
    groups = report.devices()
    if not groups:
        yield f"{limit.option}: {report.figures.why_not or 'there is no device'}, which no limit allows"
    for one in groups:
        share = one.figures.share(limit.category, limit.reading)
        value = _value(share, limit, bound)
        if value is not None and (value >= limit.wanted if limit.least else value <= limit.wanted):
            continue
        what = f"{name_of(limit.category)} of {shown(one.label, 60) or '(no name)'}"
        if value is None:
            yield f"{limit.option}: {what} is n/a ({one.figures.why_not or TOO_FEW}), which no limit allows"
            continue
        of = (
            ""
            if bound is Bound.POINT
            else f" ({bound} end of the 95 % interval)"
            if bound is not Bound.SAFE
            else " (safe end)"
        )
        than = "below" if limit.least else "above"
        yield f"{limit.option}: {what} is {per_cent(value)}{of}, {than} {per_cent(limit.wanted)}"


def _value(share: CountedShare, limit: Limit, bound: Bound) -> float | None:
    if bound is Bound.POINT or share.interval is None:
        return share.value if bound is Bound.POINT else None
    low, high = share.interval
    match bound:
        case Bound.LOWER:
            return low
        case Bound.UPPER:
            return high
        case Bound.SAFE:
            return low if limit.least else high


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


@click.command("categories", cls=Command)
@click.argument("named", nargs=-1, required=True, metavar="SESSION… | ROUND.yaml")
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
@click.option("--round", "round_id", metavar="ID", help="Only judgments of this round.")
@json_option("as_json", "Everything as JSON.")
@csv_option("as_csv", "Counts and shares as CSV.")
@click.option("--html", "html_target", type=click.Path(path_type=Path), help="A page that needs nothing else.")
@click.option("--min-correct", callback=share, metavar="SHARE", help="Status 1 when a device has less: 0.8, or 80%.")
@click.option("--max-wrong", callback=share, metavar="SHARE", help="Status 1 when a device has more.")
@click.option(
    "--limits-on",
    "bound",
    cls=Option,
    former=("--bound",),
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
    named: tuple[str, ...],
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

    SESSION: a folder, or a name below ./sessions; several are taken together. ROUND.yaml: the sessions of a round, and
    only judgments of the round count. Works while raters are at it.

    Exit status: 0 done · 1 a limit fails, or there is nothing to hold it to · 2 wrong usage or input · 3 a session
    cannot be read, or a report cannot be written.
    """
    from harness.cli import score_output as output
    from harness.rating.reports.categories import Selection

    if as_json and as_csv:
        raise InputError("--json and --csv exclude each other", remedy="Choose one")
    by = tuple(PARTINGS[name] for name in dict.fromkeys(partings)) or None
    selection = Selection(raters, round_id, on, by, crosses, compare)
    report = read(named, selection)
    if html_target is not None:
        from harness.rating.reports.category_page import write_html

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
    from harness.cli import score_output as output

    if as_json:
        from harness.rating.reports.categories import text_of

        return text_of(report).splitlines()
    if as_csv:
        from harness.rating.reports.categories import csv_of

        return csv_of(report).splitlines()
    from harness.rating.reports.category_text import group_lines, summary_lines

    width = output.width()
    head, *lines = [*summary_lines(report, width), *group_lines(report, width)]
    return [f"\x1b[1m{head}\x1b[0m" if output.in_colour(sys.stdout) else head, *lines]


def read(named: Sequence[str], selection: Selection) -> CategoryReport:
    """The report on some sessions, or on a round; LogError, and InputError for names that fit nothing."""
    from harness.rating.figures.judged import (
        RatedTrial,
        consensus_of,
        judged_in,
        rated_in,
        read_sessions,
        rows_asked_for,
    )
    from harness.rating.reports.categories import report_of

    asked = rated_sessions(named, selection.round_id)
    found = read_sessions(asked.folders)
    rows = [row for one in found for row in one.rated.rows]
    for rater in selection.raters:
        demand_known(rater, {row.rater for row in rows}, "rater")
    if selection.round_id is not None:
        demand_known(selection.round_id, {row.round for row in rows}, "round")
    selection = replace(selection, round_id=asked.round_id)
    judged = {
        one.rated.session_id: judged_in(
            one.progress, rows_asked_for(one.rated.rows, selection.raters, selection.round_id)
        )
        for one in found
    }
    together = consensus_of(one for of_session in judged.values() for one in of_session)
    trials: list[RatedTrial] = []
    for one in found:
        trials += rated_in(one.progress, judged[one.rated.session_id], together)
    for side in selection.compare or ():
        demand_known(side, {one.trial.device for one in trials} | judged.keys(), "device or session")
    return report_of(trials, selection, tuple(judged))
