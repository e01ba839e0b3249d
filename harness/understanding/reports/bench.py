"""Understanders that were trained and scored on one corpus, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.plain_json import Json, picked
from harness.base.text_table import Column, text_table
from harness.model.numbers import NOTHING, number, percent
from harness.statistics.text import percent_interval
from harness.understanding.comparison import Metric
from harness.understanding.models.training import FIGURES, ContenderRow

MIN_TABLE_WIDTH = 140
"""Minimum width of the table in columns, so that no name is cut."""


def lines(rows: Sequence[ContenderRow], width: int) -> Iterator[str]:
    """The table: each metric, with its interval or standard deviation below it."""
    cells: list[tuple[str, ...]] = []
    for row in rows:
        texts = _metric_texts(row)
        values, spreads = zip(*(texts.get(metric, (NOTHING, "")) for metric in FIGURES), strict=True)
        name = f"{row.name} *" if row.from_elsewhere else row.name
        cells.append((name, *values, number(row.train_cpu_s), number(row.predict_cpu_s)))
        if not row.from_elsewhere:
            cells.append(("", *spreads, "", ""))
    heads = ("understander", "intent accuracy", "EMR", "slot F1", "F1mh", "CER", "SFA", "CPU s", "CPU s / 1,000")
    yield from text_table(list(map(Column, heads)), cells, max(width, MIN_TABLE_WIDTH))
    if any(row.from_elsewhere for row in rows):
        yield "* published result on the corpus's own splits, not measured in this run"


def _metric_texts(row: ContenderRow) -> dict[Metric, tuple[str, str]]:
    """Each metric's value, and its interval or its standard deviation over folds."""
    texts = {}
    for index, (metric, value, interval) in enumerate(row.figures):
        deviation = row.deviations[index] if row.deviations else None
        spread = percent_interval(interval, 1) if deviation is None else f"± {percent(deviation, 2)}"
        texts[metric] = percent(value, 2), spread
    return texts


def row_json(row: ContenderRow) -> Json:
    """The results of an understander for JSON; over folds, with the standard deviations `sd`."""
    figures = {
        metric.value: {"value": value, "interval_95": None if interval is None else list(interval)}
        for metric, value, interval in row.figures
    }
    for (metric, _, _), deviation in zip(row.figures, row.deviations, strict=False):
        figures[metric.value]["sd"] = deviation
    return {
        "understander": row.name, **picked(row, "from_elsewhere", "utterances"),
        "figures": figures, "train_cpu_s": row.train_cpu_s, "predict_cpu_s_per_1000": row.predict_cpu_s,
    }  # fmt: skip
