"""The content of a category report, before it becomes text, JSON or a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from harness import __version__
from harness.base.foreign import plain_text
from harness.base.plain_json import picked, to_plain
from harness.base.table import NO_LABEL
from harness.base.text_file import safe_csv
from harness.base.text_table import shown
from harness.model.choices import GROUPINGS, By, CategoryGroup, Grouping, LimitTarget, Reading, ResultGrouping
from harness.model.frozen import frozen
from harness.model.judgment import Category
from harness.model.numbers import fixed
from harness.rating.figures.categories import (
    CategoryFigures,
    CrossedFigures,
    Figure,
    RepromptFigures,
    category_figures,
    crossed,
    grouped,
    label_by,
    reprompt_figures,
)
from harness.rating.figures.category_comparison import CategoryComparison, compare_categories
from harness.rating.figures.judged_responses import QueryOutcome, RatedTrial
from harness.rating.guide import LABELS
from harness.statistics.significance import SwapTestResult
from harness.statistics.verdict import SHARE, DeclaredLimit

GROUP_LABELS = {"satisfied": "Satisfied", "helpful": "Helpful", "asks_back": "Asks back"}
NEVER_RECOGNISED = "(not recognised)"


@frozen
class Selection:
    """What a report covers.

    - raters: only judgments of these raters count; () for all. round_id: only those of this round; None for all.
    - on: the category or group that crossed tables and comparisons show.
    - by: groupings; None for all that have more than one group.
    - crosses: pairs of groupings to cross; None for devices by query classes, if there are several of both.
    - compare: two devices or sessions to compare; None for none.
    """

    raters: tuple[str, ...] = ()
    round_id: str | None = None
    on: Figure = Category.CORRECT
    by: tuple[By, ...] | None = None
    crosses: tuple[tuple[By, By], ...] | None = None
    compare: tuple[str, str] | None = None


@frozen
class QueryGroup:
    """The results of the queries with one label of a grouping."""

    label: str
    figures: CategoryFigures
    reprompts: RepromptFigures


@frozen
class CategoryReport:
    """The content of a report.

    - sessions: their ids.
    - trials: all queries.
    - reprompts and `figures`: results over all queries.
    - groups: for each grouping, the results of each label.
    - crossed: one for each pair of groupings.
    - comparisons: one for each reading that makes a difference.
    """

    sessions: tuple[str, ...]
    selection: Selection
    trials: tuple[RatedTrial, ...]
    figures: CategoryFigures
    reprompts: RepromptFigures
    groups: tuple[tuple[By, tuple[QueryGroup, ...]], ...]
    crossed: tuple[CrossedFigures, ...]
    comparisons: tuple[CategoryComparison, ...] = ()

    def trials_with(self, outcome: QueryOutcome) -> tuple[RatedTrial, ...]:
        return tuple(trial for trial in self.trials if trial.outcome is outcome)

    def devices(self) -> tuple[QueryGroup, ...]:
        """The groups by device, also if that grouping is not selected."""
        for grouping, groups in self.groups:
            if grouping is ResultGrouping.DEVICE:
                return groups
        return _groups(self.trials, ResultGrouping.DEVICE)


def make_report(trials: Sequence[RatedTrial], selection: Selection, sessions: Sequence[str]) -> CategoryReport:
    """The report over some queries. Raises ValueError if a side of the comparison is unknown."""
    all_trials = tuple(trials)
    groupings: tuple[By, ...] = tuple(GROUPINGS.values()) if selection.by is None else selection.by
    groups = [
        (grouping, _groups(all_trials, grouping))
        for grouping in groupings
        if selection.by is not None or _is_shown(all_trials, grouping)
    ]
    crosses = selection.crosses
    if crosses is None:
        with_several = {grouping for grouping, groups_of in groups if len(groups_of) > 1}
        crosses = ()
        if {ResultGrouping.DEVICE, ResultGrouping.CLASS} <= with_several:
            crosses = ((ResultGrouping.DEVICE, ResultGrouping.CLASS),)
    return CategoryReport(
        sessions=tuple(sessions),
        selection=selection,
        trials=all_trials,
        figures=category_figures(all_trials),
        reprompts=reprompt_figures(all_trials),
        groups=tuple(groups),
        crossed=tuple(crossed(all_trials, first, second) for first, second in crosses),
        comparisons=_comparisons(all_trials, selection),
    )


def name_of(figure: Figure) -> str:
    """The name on screen of a category or derived group."""
    return LABELS[figure] if isinstance(figure, Category) else GROUP_LABELS[figure.value]


def label_in_words(label: str, grouping: By) -> str:
    """A label for people, not yet escaped."""
    return label or (NEVER_RECOGNISED if grouping is ResultGrouping.ATTEMPTS else NO_LABEL)


def _groups(trials: Sequence[RatedTrial], grouping: By) -> tuple[QueryGroup, ...]:
    return tuple(
        QueryGroup(label, category_figures(members), reprompt_figures(members))
        for label, members in grouped(trials, grouping)
    )


def _is_shown(trials: Sequence[RatedTrial], grouping: By) -> bool:
    """Whether a grouping is shown by default. It must have several groups, and not be by query. Grouping by the whole
    condition is shown only if other groupings do not already show it."""
    if grouping is ResultGrouping.QUERY:
        return False
    if grouping is Grouping.CONDITION and not any(trial.trial.needs_condition(GROUPINGS) for trial in trials):
        return False
    return len({label_by(trial, grouping) for trial in trials}) > 1


def _comparisons(trials: Sequence[RatedTrial], selection: Selection) -> tuple[CategoryComparison, ...]:
    if selection.compare is None:
        return ()
    first, second = selection.compare
    depends_on_reading = selection.on in (Category.WRONG, Category.ADMITTED_DEFEAT)
    readings = tuple(Reading) if depends_on_reading else (Reading.ADMITTED,)
    return tuple(compare_categories(trials, first, second, selection.on, reading) for reading in readings)


def category_limits(
    report: CategoryReport, option: str, category: Category, limit: float, reading: Reading, bound: LimitTarget
) -> Iterator[DeclaredLimit]:
    """A limit on the share of a category, for each device. For correct responses it is the least share, for all other
    categories the greatest.

    - option: the option with the limit, for messages.
    - bound: whether the share or an end of its interval is compared.
    """
    is_minimum, name = category is Category.CORRECT, name_of(category)
    groups = report.devices()
    if not groups:
        why_not = report.figures.why_not or "the report covers no devices"
        yield DeclaredLimit(option, name, limit, None, is_minimum=is_minimum, unit=SHARE, why_not=why_not)
    for group in groups:
        share = group.figures.share(category, reading)
        is_on_end = bound in (LimitTarget.LOWER, LimitTarget.UPPER)
        value, why_not, end_text = share.value, group.figures.why_not, ""
        if is_on_end:
            low, high = share.interval or (None, None)
            value = high if bound is LimitTarget.UPPER else low
            why_not = why_not or "too few queries for an interval"
            end_text = f", {bound} end of the 95 % interval,"
        yield DeclaredLimit(
            option,
            f"{name} of {shown(group.label, 60) or '(no name)'}{end_text}",
            limit,
            value,
            is_minimum=is_minimum,
            unit=SHARE,
            interval=None if is_on_end else share.interval,
            why_not=why_not,
            has_interval=not is_on_end,
            compares_bound=bound is LimitTarget.SAFE,
        )


COLUMNS = (
    "by", "label", "by_2", "label_2", "category", "reading", "count", "total", "share", "low", "high", "low_together",
    "high_together", "interval_over", "interval_method", "planned", "asked", "recognised", "answered", "judged",
    "disputed", "held", "flagged"
)  # fmt: skip


def to_csv(report: CategoryReport) -> str:
    """The report as CSV: all queries (with an empty `by`), then each grouping, then the crossed ones. Cells without
    data are empty."""
    rows = [row for group, figures in _csv_groups(report) for row in _csv_rows(group, figures)]
    return safe_csv([COLUMNS, *([str(cell) for cell in row] for row in rows)])


def _csv_groups(report: CategoryReport) -> Iterator[tuple[tuple[str, str, str, str], CategoryFigures]]:
    """The first four cells of a group's rows, and its results."""
    yield ("", "", "", ""), report.figures
    for grouping, groups in report.groups:
        for group in groups:
            yield (grouping.value, plain_text(group.label, 200), "", ""), group.figures
    for crossing in report.crossed:
        first, second = (grouping.value for grouping in crossing.by)
        for row, cells in zip(crossing.rows, crossing.cells, strict=True):
            for column, figures in zip(crossing.columns, cells, strict=True):
                if figures is not None:
                    yield (first, plain_text(row, 200), second, plain_text(column, 200)), figures


def _csv_rows(group: tuple[str, str, str, str], figures: CategoryFigures) -> Iterator[list[object]]:
    funnel = (figures.planned, figures.asked, figures.recognised, figures.answered, figures.judged)
    without_category = (
        figures.count(QueryOutcome.TIED),
        figures.count(QueryOutcome.HELD),
        figures.count(QueryOutcome.FLAGGED),
    )
    for figure in (*Category, *CategoryGroup):
        for reading in Reading:
            share = figures.share(figure, reading)
            low, high = share.interval or (None, None)
            low_together, high_together = share.together or (None, None)
            numbers = (share.value, low, high, low_together, high_together)
            shares = ["" if number is None else fixed(number, 6) for number in numbers]
            method = ("queries", figures.method.value) if figures.total else ("", "")
            counts = (figure.value, reading.value, share.count, share.total)
            yield [*group, *counts, *shares, *method, *funnel, *without_category]


FORMAT = 1


def to_json_text(report: CategoryReport) -> str:
    """The JSON, without a line break at its end."""
    return json.dumps(to_json(report), ensure_ascii=True, allow_nan=False, indent=1)


def to_json(report: CategoryReport) -> dict[str, Any]:
    """The JSON as a dictionary; docs/reference/categories.md names its keys."""
    selection = report.selection
    return {
        "format": FORMAT,
        "version": __version__,
        "sessions": list(report.sessions),
        "raters": list(selection.raters),
        "round": selection.round_id,
        "on": selection.on.value,
        **_figures_json(report.figures),
        "reprompts": _reprompts_json(report.reprompts),
        "groups": {
            grouping.value: [
                {"label": group.label, **_figures_json(group.figures), "reprompts": _reprompts_json(group.reprompts)}
                for group in groups
            ]
            for grouping, groups in report.groups
        },
        "crossed": [
            {
                "by": [grouping.value for grouping in crossing.by],
                "rows": list(crossing.rows),
                "columns": list(crossing.columns),
                "cells": [
                    [None if figures is None else _figures_json(figures) for figures in row] for row in crossing.cells
                ],
            }
            for crossing in report.crossed
        ],
        "comparisons": [_comparison_json(comparison) for comparison in report.comparisons],
        "disputed": [_response_json(trial) for trial in report.trials_with(QueryOutcome.TIED)],
    }


def _figures_json(figures: CategoryFigures) -> dict[str, Any]:
    return {
        "funnel": {
            **picked(figures, "planned", "asked", "recognised", "answered", "judged"),
            "not_assessed": figures.unassessed,
            "fates": {outcome.value: count for outcome, count in figures.outcomes},
        },
        **picked(figures, "why_not", "total", "queries"),
        "interval_over": "queries",
        "interval_method": figures.method.value,
        "basis": {basis.value: count for basis, count in figures.bases},
        "categories": {category.value: _shares_json(figures, category) for category in Category},
        "derived": {group.value: _shares_json(figures, group) for group in CategoryGroup},
        "core_capability": to_plain(figures.core),
        "sub_flags": {flag.value: count for flag, count in figures.sub_flags},
        "flagged_too": figures.flagged_too,
    }


def _shares_json(figures: CategoryFigures, figure: Figure) -> dict[str, Any]:
    shares = {reading.value: figures.share(figure, reading) for reading in Reading}
    return {
        reading: {
            "count": share.count,
            "share": share.value,
            "interval": share.interval,
            "interval_together": share.together,
        }
        for reading, share in shares.items()
    }


def _reprompts_json(reprompts: RepromptFigures) -> dict[str, Any]:
    return {
        "assessed": reprompts.assessed,
        "attempts": {str(attempts): queries for attempts, queries in reprompts.needed},
        "never": reprompts.never,
        "not_assessed": reprompts.unassessed,
        "first_attempt": {
            "count": reprompts.first.count,
            "share": reprompts.first.value,
            "interval": reprompts.first.interval,
        },
        **picked(reprompts, "mean", "mean_interval"),
        "interval_over": "queries",
        "waits": to_plain(reprompts.waits),
    }


def _comparison_json(comparison: CategoryComparison) -> dict[str, Any]:
    estimate = comparison.difference
    counts = None if estimate is None else estimate.discordance
    return {
        **picked(comparison, "first", "second", "on", "reading", "why_not", "queries", "strata"),
        "responses": [comparison.first_responses, comparison.second_responses],
        "unpaired": [comparison.first_unpaired, comparison.second_unpaired],
        "shares": None if estimate is None else [estimate.first, estimate.second],
        "difference": None if estimate is None else estimate.difference,
        "interval": None if estimate is None else estimate.interval,
        "pairs": None if counts is None else picked(counts, "both", "only_first", "only_second", "neither"),
        "swap": None if estimate is None else _swap_json(estimate.swap),
        "mantel_haenszel_p": None if estimate is None else estimate.alone_p,
        "swap_of_all_categories": _swap_json(comparison.all_swap),
        "differing": [
            {
                "query": query.query_id,
                "text": query.text,
                "difference": query.difference,
                "first": {category.value: count for category, count in query.first},
                "second": {category.value: count for category, count in query.second},
            }
            for query in comparison.differing
        ],
    }


def _swap_json(swap_test: SwapTestResult | None) -> dict[str, Any] | None:
    return None if swap_test is None else {"p": swap_test.p, "exact": swap_test.exact, "queries": swap_test.clusters}


def _response_json(trial: RatedTrial) -> dict[str, Any]:
    categories = [row.category for row in trial.judged.submitted] if trial.judged else []
    return {
        "session": trial.session_id,
        "trial": trial.trial.id,
        "device": trial.trial.device,
        "query": trial.trial.query_id,
        "text": trial.trial.reference,
        "given": {category.value: categories.count(category) for category in Category if category in categories},
    }
