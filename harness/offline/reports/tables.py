"""Tables of results: by groups of recordings (the worst group first), and of several engines (as text, JSON, CSV)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.base.table import Field, Notes, Section, Table
from harness.base.text_file import safe_csv
from harness.base.text_table import join_blocks, shown
from harness.model.numbers import NOTHING, TOO_FEW, fixed, number, percent, points, probability, seconds
from harness.offline.figures.engines import EngineRow, EnginesTable, EvaluatedEngine
from harness.offline.figures.groups import FileBreakdown, FileGroup
from harness.offline.reports.det import COLUMNS, NOT_MET, ONE_LIST, det_cells, figures_json, target_text, threshold_text
from harness.statistics.comparison import NOT_CORRECTED, MeasureKind, sentence
from harness.statistics.intervals import LatencyFigures, values_needed
from harness.statistics.text import number_interval, points_interval, voices_interval

_MAX_GROUPS = 40
P_OF_GROUPS = (
    "for the difference from all other groups together, corrected for all groups (Holm); "
    "for the largest gap, corrected for all pairs (Bonferroni)"
)


def clusters_text(clustered_by: str, units: str) -> str:
    """How intervals treat files, such as `clustered by talker (unknown ones counted as one)` or `files treated as
    independent`. units: plural of what is counted, such as `files`."""
    if not clustered_by:
        return f"{units} treated as independent"
    return f"clustered by {shown(clustered_by, 40)} (unknown ones counted as one)"


def group_lines(breakdown: FileBreakdown, width: int) -> Iterator[str]:
    """The table of a breakdown, and the gaps between the worst group and the best. width: space for the table, in
    characters."""
    rejects = any(group.rejects.total for group in breakdown.groups)
    accepts = any(group.hours for group in breakdown.groups)
    nouns = "phrases" if breakdown.labelled else "files"
    fields: list[Field[FileGroup]] = [Field("", shown(breakdown.by, 40), lambda group: shown(group.label, 40))]
    if rejects:
        fields += [
            Field("", nouns, lambda group: f"{group.rejects.total:,}"),
            Field("", "FR", lambda group: percent(group.rejects.value)),
            Field(
                "",
                "95 % interval",
                lambda group: NOTHING if group.rejects.value is None else voices_interval(group.rejects_interval),
                gives_way=2,
            ),
            Field("", "p", lambda group: probability(group.rejects_p), gives_way=1),
        ]
    if accepts:
        fields += [
            Field("", "hours", lambda group: number(group.hours), gives_way=5),
            Field("", "FA/h", lambda group: number(group.accepts_per_hour)),
            Field("", "95 % interval", lambda group: number_interval(group.accepts_interval), gives_way=4),
            Field("", "p", lambda group: probability(group.accepts_p), gives_way=3),
        ]
    pairs: list[tuple[str, str]] = []
    if rejects:
        pairs.append(("intervals of FR", clusters_text(breakdown.clustered_by, nouns)))
    pairs.append(("p", P_OF_GROUPS))
    yield ""
    yield from Section("", "", (Table(fields, breakdown.groups), Notes([*pairs, *gap_texts(breakdown)]))).lines(
        width, _MAX_GROUPS
    )


def gap_texts(breakdown: FileBreakdown) -> Iterator[tuple[str, str]]:
    """The gaps between the worst group and the best, as pairs (name of the result, gap in words)."""
    gaps = (("FR", breakdown.rejects_gap, MeasureKind.SHARE), ("FA/h", breakdown.accepts_gap, MeasureKind.RATE))
    for name, gap, measure in gaps:
        if gap is not None:
            names = shown(gap.worst, 40), shown(gap.best, 40)
            yield f"largest gap, {name}", sentence(*names, gap.difference, measure, more_is_better=False)


def accuracy_table(table: EnginesTable) -> Table[EngineRow]:
    """False rejects as run, and at one rate of false accepts with the difference from the first engine."""
    chosen_rate: list[Field[EngineRow]] = []
    if table.one_list is False:
        equal_title = "FR as chosen"
        chosen_rate = [Field("", "FA/h as chosen", lambda row: number(row.equal.per_hour) if row.equal else NOTHING)]
    elif table.target is None:
        equal_title = "FR"
    else:
        equal_title = f"FR at ≤ {number(table.target.limit)} FA/h"
    return Table(
        (
            Field("engine", "engine", lambda row: row.name),
            Field(
                "as_run",
                "FR as run",
                lambda row: (
                    figures_json(row.as_run)
                    | {"fa_per_hour_95": row.as_run_rate_interval, "fr_95": row.as_run_interval}
                ),
                lambda row: percent(row.as_run.false_rejects),
                gives_way=3,
            ),
            Field("", "FA/h as run", lambda row: number(row.as_run.per_hour), gives_way=3),
            Field("", "threshold", _threshold, gives_way=4),
            Field(
                "at_most",
                equal_title,
                lambda row: figures_json(row.equal) | {"fr_95": row.equal_interval} if row.equal else None,
                lambda row: percent(row.equal.false_rejects) if row.equal else NOTHING,
            ),
            Field(
                "",
                "95 % interval",
                lambda row: voices_interval(row.equal_interval) if row.equal else NOTHING,
                gives_way=2,
            ),
            *chosen_rate,
            Field(
                "less_the_first",
                "difference",
                lambda row: row.difference,
                lambda row: points(row.difference.difference) if row.difference else "",
            ),
            Field(
                "",
                "95 % interval",
                lambda row: points_interval(row.difference.interval) if row.difference else "",
                gives_way=1,
            ),
            Field("", "p", lambda row: probability(row.difference.p) if row.difference else ""),
            Field("wer", "", lambda row: row.wer),
        ),
        table.rows,
    )


def _threshold(row: EngineRow) -> str:
    """The threshold of the compared point. Engines without thresholds have a 0 there."""
    return threshold_text(row.equal.threshold) if row.equal and row.equal.threshold else NOTHING


def _p95_text(delays: LatencyFigures) -> str:
    if delays.p95 is None:
        return NOTHING
    if delays.total < values_needed(delays.p95.share):
        return TOO_FEW
    return seconds(delays.p95.value_s)


COST_FIELDS: tuple[Field[EngineRow], ...] = (
    Field("", "engine", lambda row: row.name),
    Field("delay", "detections timed", lambda row: row.delays, lambda row: f"{row.delays.total:,}"),
    Field("", "delay p50", lambda row: seconds(row.delays.p50.value_s if row.delays.p50 else None)),
    Field("", "p95", lambda row: _p95_text(row.delays)),
    Field("cpu_s_per_hour", "CPU s/h", lambda row: row.cpu_s_per_hour, lambda row: number(row.cpu_s_per_hour)),
    Field("peak_memory_mb", "memory", lambda row: row.memory_mb, lambda row: fixed(row.memory_mb, 0, "MB")),
)


def engine_lines(table: EnginesTable, width: int) -> Iterator[str]:
    """Two tables with their notes: accuracy, then delays and cost."""
    parts = (accuracy_table(table), Table(COST_FIELDS, table.rows), Notes([*point_notes(table), *notes(table)]))
    yield ""
    yield from join_blocks(*(part.lines(width) for part in parts))


def point_notes(table: EnginesTable) -> Iterator[tuple[str, str]]:
    """How the engines' thresholds were chosen, and what the difference means."""
    if table.target is not None and table.one_list is not None:
        chosen = ONE_LIST if table.one_list else f"chosen on the development lists: {target_text(table.target)}"
        yield "thresholds", chosen
        if any(row.equal is None for row in table.rows):
            yield NOTHING, NOT_MET
    yield "difference", f"FR minus the first engine's FR, in percentage points, on the same files; {NOT_CORRECTED}"


def notes(table: EnginesTable) -> Iterator[tuple[str, str]]:
    """What the other columns mean, in words."""
    yield "intervals", clusters_text(table.clustered_by, "files")
    ends = "the end of the phrase, by labels" if table.ends_are_labels else "the end of speech in the file, ± 100 ms"
    yield "delay", f"from {ends} to the detection"
    yield "CPU s/h, memory", "processor seconds per hour of audio (n/a with stored scores); peak of one worker"


def table_json(table: EnginesTable) -> dict[str, Any]:
    """The same as plain JSON values: shares 0–1, null without data."""
    accuracy, cost = accuracy_table(table).json(), Table(COST_FIELDS, table.rows).json()
    return {
        "fa_per_hour_at_most": None if table.target is None else table.target.limit,
        "one_list": table.one_list,
        "clustered_by": table.clustered_by or None,
        "delay_from": "label" if table.ends_are_labels else "end of speech",
        "engines": [figures | costs for figures, costs in zip(accuracy, cost, strict=True)],
    }


def det_rows(engines: Sequence[EvaluatedEngine]) -> str:
    """CSV with every threshold of every engine. The columns are those of `det_csv`, after the name of the engine."""
    rows = [[engine.name, *cells] for engine in engines for cells in det_cells(engine.det, engine.points)]
    return safe_csv([["engine", *COLUMNS], *rows])
