"""Trends of sessions as lines, CSV, JSON and one page of HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from harness.base.foreign import plain_text
from harness.base.pages import write_filled_page
from harness.base.plain_json import to_plain
from harness.base.text_file import safe_csv
from harness.base.text_table import NO_ROOM, Column, first_lines, note, shown, text_table
from harness.model import numbers
from harness.model.numbers import counted
from harness.report.charts import Chart, make_chart
from harness.report.comparison_page import finite_ends
from harness.report.trend import LevelChange, Trend, TrendFolder, TrendSession, TrendValue
from harness.statistics import text
from harness.statistics.change_points import MIN_SESSIONS, MIN_SESSIONS_PER_SIDE
from harness.statistics.comparison import DifferenceVerdict, MeasureKind, difference_text
from harness.statistics.intervals import values_needed

METHOD = (
    "In brackets: trials, words, hours of sound, or durations. All intervals are 95 %.",
    f"Detecting a change takes {MIN_SESSIONS_PER_SIDE} sessions on each side, and {MIN_SESSIONS} in all.",
    "p comes from permuting whole sessions, corrected for all measures (Holm).",
)
_BARS = "▁▂▃▄▅▆▇█"
_MAX_FACTS = 8
Group = tuple[str, list[TrendSession], list[Trend]]


def moment(wall_s: float) -> str:
    """A Unix time as text in UTC: `2026-01-31 02:00`."""
    return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%d %H:%M")


def cell(trend: Trend, value: TrendValue | None) -> str:
    """A value as text: `3.33 % (60)`, `1.50/h (8.000 h)`, `150 ms (58)`."""
    if value is None:
        return numbers.NOTHING
    match trend.measure.kind:
        case MeasureKind.RATE:
            return f"{numbers.number(value.value)}/h ({numbers.exposure(value.of)})"
        case MeasureKind.TIME:
            number_text = numbers.TOO_FEW if _too_few(trend, value) else numbers.seconds(value.value)
            return f"{number_text} ({numbers.fixed(value.of, 0)})"
        case _:
            return f"{numbers.percent(value.value)} ({numbers.fixed(value.of, 0)})"


def _too_few(trend: Trend, value: TrendValue) -> bool:
    """Whether a value is a percentile of too few durations. Tables then write "too few"; JSON, CSV and charts keep the
    value."""
    quantile = trend.measure.quantile or 0.0
    return quantile > 0.5 and value.of < values_needed(quantile)


def ends(trend: Trend, value: TrendValue | None) -> str:
    """The interval of a session's value, in its unit."""
    if value is None or value.interval is None or _too_few(trend, value):
        return ""
    if trend.measure.kind is MeasureKind.TIME:
        return text.seconds_interval(*value.interval)
    low, high = (math.nan if end is None else end for end in value.interval)
    if trend.measure.kind is MeasureKind.RATE:
        return text.number_interval((low, high))
    return text.percent_interval((low, high))


def value_in(trend: Trend, session: TrendSession) -> TrendValue | None:
    """The value of a trend's measure in a session; None if it has none."""
    return session.values.get((trend.device, trend.measure))


def groups_of(report: TrendFolder) -> Iterator[Group]:
    """Scenario and device as a sanitised name, their sessions, and the trend of each measure."""
    for (scenario, device), trend_group in groupby(report.trends, key=lambda trend: (trend.scenario, trend.device)):
        trends = list(trend_group)
        folders = {session.folder for member in trends for session in member.sessions}
        name = f"Scenario {plain_text(scenario, 80)}, device {plain_text(device, 80)}"
        yield name, [session for session in report.sessions if session.folder in folders], trends


def headline(report: TrendFolder) -> str:
    """The numbers of changes: `1 worsening, 0 improvements in 6 trends of 15 sessions`."""
    changes = [change.change for trend in report.trends for change in trend.changes]
    worse, better = changes.count(DifferenceVerdict.WORSE), changes.count(DifferenceVerdict.BETTER)
    scope = f"in {counted(len(report.trends), 'trend')} of {counted(len(report.sessions), 'session')}"
    return f"{counted(worse, 'worsening')}, {counted(better, 'improvement')} {scope}"


def change_text(trend: Trend, change: LevelChange) -> str:
    """Levels before and after, their difference with its interval, and p."""
    difference = difference_text(trend.measure.kind, change.difference, change.interval)
    return "; ".join(
        (f"{cell(trend, change.before)} → {cell(trend, change.after)}", difference, numbers.p_is(change.p_holm))
    )


def facts_text(change: LevelChange) -> str:
    """The facts that differ between the sessions on both sides of a change, in words."""
    facts = [f"{shown(fact.what, 80)} {' → '.join(shown(value, 40) or '–' for value in fact.values)}"
            for fact in change.facts]  # fmt: skip
    return "; ".join(first_lines(facts, _MAX_FACTS)) or "none of the recorded facts"


def lines(report: TrendFolder, width: int) -> Iterator[str]:
    """The report for a terminal."""
    for name, sessions, trends in groups_of(report):
        yield f"{name}: {counted(len(sessions), 'session')}"
        table = list(_table_lines(sessions, trends, width, with_intervals=True))
        if table[-1].startswith(NO_ROOM):
            yield from _table_lines(sessions, trends, width, with_intervals=False)
            yield "Intervals need a wider terminal, or --html."
        else:
            yield from table
        yield ""
        name_width = 2 + max(len(trend.measure.name) for trend in trends)
        for trend in trends:
            changes = counted(len(trend.changes), "change") if trend.changes else "no change detected"
            too_few_text = f"; fewer than {MIN_SESSIONS} sessions" if trend.p_holm is None else ""
            yield from note(
                trend.measure.name, f"{_bar_text(trend, max(8, width - 60))} {changes}{too_few_text}", width, name_width
            )
        yield ""
    yield headline(report)
    for trend in report.trends:
        for change in trend.changes:
            first_session = trend.sessions[change.at]
            start = f"from {first_session.folder} ({moment(first_session.started_s)})"
            head = f"{trend.measure.name}, {plain_text(trend.device, 80)}, {start}:"
            yield from note(change.change.value, f"{head} {change_text(trend, change)}", width, 8)
            yield from note("", f"differs from the previous session: {facts_text(change)}", width, 8)
    if len({session.scenario for session in report.sessions}) > 1:
        yield "note: sessions of different scenarios are analysed separately"
    yield from (f"left out: {folder}: {why}" for folder, why in report.left_out)
    yield from METHOD


def _table_lines(
    sessions: Sequence[TrendSession], trends: Sequence[Trend], width: int, *, with_intervals: bool
) -> Iterator[str]:
    columns = [Column("#"), Column("session", left=True), Column("began (UTC)", gives_way=1)]
    columns += [Column(trend.measure.name, gives_way=priority) for priority, trend in enumerate(trends, 2)]
    rows = []
    for number, session in enumerate(sessions, 1):
        values = [(trend, value_in(trend, session)) for trend in trends]
        cells = [
            f"{cell(trend, value)} {ends(trend, value) if with_intervals else ''}".rstrip() for trend, value in values
        ]
        rows.append([str(number), session.folder, moment(session.started_s), *cells])
    return text_table(columns, rows, width)


def _bar_text(trend: Trend, max_bars: int) -> str:
    """A bar for each of the last sessions, from 0 to the highest value, with a line before each change. max_bars: most
    bars."""
    highest, starts = max(0.0, *(value.value for value in trend.values)) or 1.0, {change.at for change in trend.changes}
    drawn = [
        ("│" if index in starts else "") + _BARS[max(0, min(7, math.floor(8 * value.value / highest)))]
        for index, value in enumerate(trend.values)
    ]
    return ("…" if len(drawn) > max_bars else "") + "".join(drawn[-max_bars:])


def as_json(report: TrendFolder) -> dict[str, Any]:
    """The report as one object for JSON. Durations are in seconds, times are Unix times. level: the value of all
    sessions between two changes together."""
    return {
        "trends": [
            {"scenario": trend.scenario, "device": trend.device, "measure": trend.measure.name,
             "unit": trend.measure.kind.value, "p_holm": trend.p_holm, "changes": [
                 to_plain(change)
                 | {"folder": trend.sessions[change.at].folder, "interval": finite_ends(change.interval)}
                 for change in trend.changes
             ], "sessions": list(_value_rows(trend))}
            for trend in report.trends
        ],
        "left_out": [{"folder": folder, "why": why} for folder, why in report.left_out],
    }  # fmt: skip


def _value_rows(trend: Trend) -> Iterator[dict[str, Any]]:
    changes = {change.at: change.change.value for change in trend.changes}
    for start, end, level in trend.levels:
        for index in range(start, end):
            session, value = trend.sessions[index], trend.values[index]
            low, high = value.interval or (None, None)
            yield {"folder": session.folder, "session": session.session, "started_s": session.started_s,
                   "count": value.count, "of": value.of, "value": value.value, "low": low, "high": high,
                   "level": level.value, "change": changes.get(index)}  # fmt: skip


def as_csv(report: TrendFolder) -> str:
    """The report as CSV: a row for each session and measure, then one for each folder that is left out, with the
    reason."""
    rows = []
    for trend in report.trends:
        names = trend.scenario, trend.device, trend.measure.name, trend.measure.kind.value
        rows += [dict(zip(("scenario", "device", "measure", "unit"), names, strict=True)) | row
                 for row in _value_rows(trend)]  # fmt: skip
    rows += [{"folder": folder, "left_out": why} for folder, why in report.left_out]
    titles = list(dict.fromkeys(key for row in rows for key in row))
    return safe_csv([titles, *([_csv_cell(row.get(key)) for key in titles] for row in rows)])


def _csv_cell(value: object) -> str:
    return "" if value is None else plain_text(str(value))


def write_page(report: TrendFolder, target: Path) -> None:
    """Writes one page of HTML, completely or not at all."""
    groups = []
    for number, (name, sessions, trends) in enumerate(groups_of(report)):
        drawn = (_trend_chart(f"g{number}-{index}", trend, sessions) for index, trend in enumerate(trends))
        groups.append((name, sessions, trends, [trend_chart for trend_chart in drawn if trend_chart is not None]))
    write_filled_page(
        target, "harness.report", "trend_page.html", title="Trends of sessions", report=report, groups=groups,
        headline=headline(report), method=" ".join(METHOD), moment=moment, cell=cell, ends=ends, value_in=value_in,
        change_text=change_text, facts_text=facts_text,
    )  # fmt: skip


def _trend_chart(id_: str, trend: Trend, sessions: Sequence[TrendSession]) -> Chart | None:
    """The chart of a trend. The x axis has the numbers of the rows in the table."""
    units = {MeasureKind.RATE: (1.0, "per hour"), MeasureKind.TIME: (1000.0, "ms")}
    scale, unit = units.get(trend.measure.kind, (100.0, "%"))
    session_numbers = {session.folder: number for number, session in enumerate(sessions, 1)}
    places = [session_numbers[session.folder] for session in trend.sessions]
    line = [(float(x), scale * value.value) for x, value in zip(places, trend.values, strict=True)]
    band: list[tuple[float, float, float]] = []
    for (x, _), value in zip(line, trend.values, strict=True):
        low, high = value.interval or (None, None)
        if low is not None and high is not None:
            band.append((x, scale * low, scale * high))
    level = [
        (x, scale * level_value.value)
        for low, high, level_value in trend.levels
        for x in (places[low] - 0.5, places[high - 1] + 0.5)
    ]
    has_band = len(band) == len(line)
    sentences = [f"{change.change.value.capitalize()} from session {places[change.at]}: {change_text(trend, change)}."
            for change in trend.changes] or ["No change was detected."]  # fmt: skip
    if not has_band:
        sentences.append("No band: some sessions have too little data for an interval.")
    curves = [("each session, with its 95 % interval" if has_band else "each session", line, band if has_band else []),
              ("level between changes", level, [])]  # fmt: skip
    return make_chart(id_, f"{trend.measure.name}, {unit}", "session (#)", " ".join(sentences), curves)
