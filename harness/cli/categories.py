"""`harness report categories`: how often first responses fall into each category, by device, class and condition."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.text_table import bold
from harness.base.user_text import known_name
from harness.cli.options import (
    OutputFormat,
    RatedSessionOptions,
    demand_limits,
    option,
    parse_share,
    printed_options,
    repeatable,
    verb,
)
from harness.cli.sessions import demand_known, rated_sessions
from harness.cli.streams import drawn_progress, refuse_overwriting, uses_colour, width
from harness.model.choices import GROUPINGS, CategoryGroup, LimitTarget, Reading
from harness.model.judgment import Category

if TYPE_CHECKING:
    from harness.model.choices import By
    from harness.rating.figures.categories import Figure


def _parse_crosses(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> tuple[tuple[By, By], ...] | None:
    """A callback: the two groupings of each value such as `device,class`; None without any. BadParameter for others."""
    pairs: list[tuple[By, By]] = []
    for value in values:
        names = value.split(",")
        if len(names) != 2 or names[0] == names[1] or not all(name in GROUPINGS for name in names):
            groupings = ", ".join(GROUPINGS)
            raise click.BadParameter(f"{value!r} is not a pair of {groupings}. Write device,class", ctx, param)
        pairs.append((GROUPINGS[names[0]], GROUPINGS[names[1]]))
    return tuple(pairs) or None


def _parse_figure(ctx: click.Context, param: click.Parameter, value: str) -> Figure:
    return Category(value) if value in tuple(Category) else CategoryGroup(value)


@verb(
    "categories",
    sections={
        "Judgments": "round_id with_programs raters reading",
        "Groups": "groupings crosses compare on",
        "Limits": "min_correct max_wrong bound",
    },
)
def command(
    *,
    options: RatedSessionOptions,
    groupings: tuple[str, ...] = repeatable(
        "Group results only by this property; repeatable.", "--by", type=click.Choice(list(GROUPINGS))
    ),
    crosses: tuple[tuple[By, By], ...] | None = repeatable(
        "Cross-tabulate two groupings, such as device,class.", "--cross", callback=_parse_crosses
    ),
    compare: tuple[str, str] | None = option(
        "Compare two devices, or two sessions, on the same queries.", nargs=2, metavar="A B"
    ),
    on: Figure = option(
        "Category to compare and cross-tabulate.",
        default=Category.CORRECT,
        type=click.Choice([category.value for category in (*Category, *CategoryGroup)]),
        callback=_parse_figure,
    ),
    raters: tuple[str, ...] = repeatable(
        "Count only this rater's judgments, without adjudications; repeatable.", "--rater"
    ),
    printed: OutputFormat = printed_options("Print all results as one JSON object.", "Print counts and shares as CSV."),
    html_target: Path | None = option("Write a self-contained page.", "--html", writes=True),
    min_correct: float | None = option(
        "Exit with status 1 if a device's share of correct responses is below SHARE (0.8 or 80%).",
        callback=parse_share,
        metavar="SHARE",
    ),
    max_wrong: float | None = option(
        "Exit with status 1 if a device's share of wrong responses is above SHARE.",
        callback=parse_share,
        metavar="SHARE",
    ),
    bound: LimitTarget = option(
        "Compare limits with the share (point), or with an end of its 95 % interval; safe is the stricter end.",
        "--limits-on",
        former=("--bound",),
        default=LimitTarget.POINT,
    ),
    reading: Reading = option(
        "For --max-wrong: how a missing core capability counts if the device admits it: a, admitted defeat; b, wrong.",
        default=Reading.WRONG,
    ),
) -> None:
    """Count the categories of first responses, with 95 % intervals, or compare two devices on the same queries.

    SESSION: a folder, or a name in ./sessions. Several sessions are counted together. ROUND.yaml: the sessions of a
    round, with only its judgments. Raters may work at the same time.

    Exit status: 0 done · 1 a limit fails or is n/a · 2 wrong usage or input · 3 a file fault.
    """
    from harness.rating.figures.judged_responses import rated_trials, read_sessions, with_selected_rows
    from harness.rating.reports.categories import Selection, category_limits, make_report, to_csv, to_json_text
    from harness.rating.reports.category_text import report_lines

    sessions = rated_sessions(options)
    if html_target is not None:
        refuse_overwriting(str(html_target), options.named)
    with drawn_progress():
        judged_sessions = read_sessions(sessions.folders)
    rows = [row for session in judged_sessions for row in session.rows]
    rater_names = sorted({row.rater for row in rows})
    raters = tuple(known_name(rater, rater_names) for rater in raters)
    for rater in raters:
        demand_known(rater, rater_names, "rater")
    if options.round_id is not None:
        demand_known(options.round_id, {row.round for row in rows}, "round")
    ids = tuple(session.session_id for session in judged_sessions)
    trials = rated_trials(
        with_selected_rows(judged_sessions, sessions.round_id, raters, with_programs=options.with_programs)
    )
    for side in compare or ():
        demand_known(side, {rated_trial.trial.device for rated_trial in trials}.union(ids), "device or session")
    selected_groupings = tuple(GROUPINGS[name] for name in dict.fromkeys(groupings)) or None
    selection = Selection(raters, sessions.round_id, on, selected_groupings, crosses, compare)
    report = make_report(trials, selection, ids)
    if html_target is not None:
        from harness.rating.reports.category_page import write_html

        write_html(report, html_target)
    printed.print(
        json=lambda: to_json_text(report),
        csv=lambda: to_csv(report),
        lines=lambda: _emphasise_head(report_lines(report, width())),
    )
    limits = (
        ("--min-correct", Category.CORRECT, min_correct, Reading.ADMITTED),
        ("--max-wrong", Category.WRONG, max_wrong, reading),
    )
    demand_limits(
        limit
        for option_name, category, share_limit, limit_reading in limits
        if share_limit is not None
        for limit in category_limits(report, option_name, category, share_limit, limit_reading, bound)
    )


def _emphasise_head(lines: Iterable[str]) -> list[str]:
    head, *others = lines
    return [bold(head, uses_colour(sys.stdout)), *others]
