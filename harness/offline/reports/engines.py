"""The table of several engines as text, JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.base.plain_json import plain
from harness.base.text_file import safe_csv
from harness.base.text_table import Column, note, text_table
from harness.model.numbers import NOTHING, exact, fixed, number, percent, points, probability, seconds
from harness.offline.figures.engines import EngineRow, EnginesTable, EvaluatedEngine
from harness.offline.reports.det import COLUMNS, det_cells, figures_json
from harness.statistics.text import points_interval, voices_interval


def accuracy_columns(table: EnginesTable) -> list[Column]:
    equal = "FR" if table.per_hour is None else f"FR at ≤ {number(table.per_hour)}/h"
    return [
        Column("engine"),
        Column("FR as run", gives_way=3),
        Column("FA/h as run", gives_way=3),
        Column("threshold", gives_way=4),
        Column(equal),
        Column("95 % interval", gives_way=2),
        Column("less the first"),
        Column("95 % interval", gives_way=1),
        Column("p"),
    ]


def accuracy_cells(one: EngineRow) -> list[str]:
    """One row, in the order of the columns."""
    own, equal, apart = one.own, one.equal, one.apart
    return [
        one.name,
        percent(own.false_rejects),
        number(own.per_hour),
        NOTHING if equal is None or not equal.threshold else exact(equal.threshold, 5),
        NOTHING if equal is None else percent(equal.false_rejects),
        NOTHING if equal is None else voices_interval(one.equal_interval),
        "" if apart is None else points(apart.difference),
        "" if apart is None else points_interval(apart.interval),
        "" if apart is None else probability(apart.p),
    ]


COST_COLUMNS = (Column("engine"), Column("detections timed"), Column("delay p50"), Column("p95"), Column("CPU s/h"),
                Column("memory"))  # fmt: skip


def cost_cells(one: EngineRow) -> list[str]:
    """One row, in the order of COST_COLUMNS."""
    delays = [NOTHING if found is None else seconds(found.value_s) for found in (one.delays.p50, one.delays.p95)]
    memory = fixed(one.memory_mb, 0, "MB")
    return [one.name, f"{one.delays.total:,}", *delays, number(one.cpu_s_per_hour), memory]


def engine_lines(table: EnginesTable, width: int) -> Iterator[str]:
    """Two tables with their notes: accuracy, then delays and cost."""
    for columns, cells in ((accuracy_columns(table), accuracy_cells), (COST_COLUMNS, cost_cells)):
        yield ""
        yield from text_table(columns, [cells(one) for one in table.rows], width)
    yield ""
    for title, text in notes(table):
        yield from note(title, text, width)


def notes(table: EnginesTable) -> Iterator[tuple[str, str]]:
    """What the columns mean, in words."""
    over = f"{table.clustered_by} as a whole, unknown ones as one" if table.clustered_by else "each file by itself"
    yield "less the first", f"points of FR on the same files, intervals take {over}; p of each pair is not corrected"
    ends = "the end of the phrase, by labels" if table.ends_are_labels else "the end of speech in the file, ± 100 ms"
    yield "delay", f"of a detection, from {ends}"
    yield "CPU s/h, memory", "processor seconds per hour of audio (n/a with stored scores); peak of one worker"


def table_json(table: EnginesTable) -> dict[str, Any]:
    """The same as plain JSON values: shares 0–1, null without data."""
    return {
        "fa_per_hour_at_most": table.per_hour,
        "clustered_by": table.clustered_by or None,
        "delay_from": "label" if table.ends_are_labels else "end of speech",
        "engines": [
            {
                "engine": one.name,
                "as_run": figures_json(one.own),
                "at_most": None if one.equal is None else figures_json(one.equal) | {"fr_95": one.equal_interval},
                "less_the_first": None if one.apart is None else plain(one.apart),
                "wer": one.wer,
                "delay": plain(one.delays),
                "cpu_s_per_hour": one.cpu_s_per_hour,
                "peak_memory_mb": one.memory_mb,
            }
            for one in table.rows
        ],
    }


def det_rows(engines: Sequence[EvaluatedEngine]) -> str:
    """CSV: every threshold of every engine, as PREFIX.csv of one, with the engine's name before it."""
    rows = [[one.name, *cells] for one in engines for cells in det_cells(one.det, one.points)]
    return safe_csv([["engine", *COLUMNS], *rows])
