"""A category report for a spreadsheet: one row for each category of each group, under each reading."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from harness.base.foreign import plain_text
from harness.model.choices import Derived, Reading
from harness.model.judgment import Category
from harness.rating.figures.categories import CategoryFigures
from harness.rating.figures.rated_trials import Fate
from harness.rating.reports.report import CategoryReport

COLUMNS = (
    "by", "label", "by_2", "label_2", "category", "reading", "count", "total", "share", "low", "high", "low_together",
    "high_together", "interval_over", "interval_method", "planned", "asked", "recognised", "answered", "judged",
    "disputed", "held", "flagged",
)  # fmt: skip


def csv_of(report: CategoryReport) -> str:
    """All queries (by is empty), then each grouping, then the crossed ones; empty cells where there is nothing."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for group, figures in _groups(report):
        writer.writerows(_rows(group, figures))
    return text.getvalue()


def _groups(report: CategoryReport) -> Iterator[tuple[tuple[str, str, str, str], CategoryFigures]]:
    yield ("", "", "", ""), report.figures
    for by, groups in report.groups:
        for one in groups:
            yield (by.value, plain_text(one.label, 200), "", ""), one.figures
    for found in report.crossed:
        first, second = (by.value for by in found.by)
        for row, cells in zip(found.rows, found.cells, strict=True):
            for column, figures in zip(found.columns, cells, strict=True):
                if figures is not None:
                    yield (first, plain_text(row, 200), second, plain_text(column, 200)), figures


def _rows(group: tuple[str, str, str, str], of: CategoryFigures) -> Iterator[list[object]]:
    funnel = (of.planned, of.asked, of.recognised, of.answered, of.judged)
    aside = (of.count(Fate.DISPUTED), of.count(Fate.HELD), of.count(Fate.FLAGGED))
    for figure in (*Category, *Derived):
        for reading in Reading:
            share = of.share(figure, reading)
            ends = [*(share.interval or (None, None)), *(share.together or (None, None))]
            shares = ["" if one is None else f"{one:.6f}" for one in (share.value, *ends)]
            how = ("queries", of.method.value) if of.total else ("", "")
            counts = (figure.value, reading.value, share.count, share.total)
            yield [*group, *counts, *shares, *how, *funnel, *aside]
