"""Trends of sessions as lines, CSV, JSON and one page of HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from harness.base.foreign import plain_text
from harness.base.pages import filled_page
from harness.base.plain_json import plain
from harness.base.text_file import safe_csv
from harness.base.text_table import Column, note, shortened, shown, text_table
from harness.base.whole_file import write_whole
from harness.model import numbers
from harness.model.numbers import counted
from harness.report.charts import Chart, chart
from harness.report.trend import FollowedFolder, FollowedSession, FollowedValue, LevelChange, Trend
from harness.statistics import text
from harness.statistics.change_points import LEAST_SERIES, LEAST_SIDE
from harness.statistics.comparison import Counted, DifferenceVerdict, difference_text

METHOD = (
    "In brackets: trials, words, hours of sound, or durations. Intervals are 95 % each.",
    f"A change needs {LEAST_SIDE} sessions on both sides, and {LEAST_SERIES} in all.",
    "p is of permuted whole sessions, corrected for all measures (Holm).",
)
_BARS = "▁▂▃▄▅▆▇█"
_MOST_FACTS = 8
Group = tuple[str, list[FollowedSession], list[Trend]]


def moment(wall_s: float) -> str:
    """`2026-01-31 02:00`, UTC."""
    return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%d %H:%M")


def cell(trend: Trend, one: FollowedValue | None) -> str:
    """`3.33 % (60)`, `1.50/h (8.000 h)`, `150 ms (58)`."""
    match trend.followed.measure.counted:
        case _ if one is None:
            return numbers.NOTHING
        case Counted.RATE:
            return f"{numbers.number(one.value)}/h ({numbers.exposure(one.of)})"
        case Counted.TIME:
            return f"{numbers.seconds(one.value)} ({numbers.fixed(one.of, 0)})"
        case _:
            return f"{numbers.percent(one.value)} ({numbers.fixed(one.of, 0)})"


def ends(trend: Trend, one: FollowedValue | None) -> str:
    """The interval of a session's value, in its unit."""
    if one is None or one.interval is None:
        return ""
    if trend.followed.measure.counted is Counted.TIME:
        return text.seconds_interval(*one.interval)
    low, high = (math.nan if end is None else end for end in one.interval)
    rate = trend.followed.measure.counted is Counted.RATE
    return text.number_interval((low, high)) if rate else text.percent_interval((low, high))


def value_in(trend: Trend, session: FollowedSession) -> FollowedValue | None:
    """None where the session has no result of it."""
    return session.values.get((trend.device, trend.followed))


def grouped(found: FollowedFolder) -> Iterator[Group]:
    """Scenario and device as a sanitised name, their sessions, and the trend of each measure."""
    for (scenario, device), of in groupby(found.trends, key=lambda one: (one.scenario, one.device)):
        trends = list(of)
        held = {one.folder for each in trends for one in each.sessions}
        name = f"Scenario {plain_text(scenario, 80)}, device {plain_text(device, 80)}"
        yield name, [one for one in found.sessions if one.folder in held], trends


def headline(found: FollowedFolder) -> str:
    """`1 worsening, 0 improvements in 6 trends of 15 sessions`."""
    changes = [one.change for trend in found.trends for one in trend.changes]
    worse, better = changes.count(DifferenceVerdict.WORSE), changes.count(DifferenceVerdict.BETTER)
    of = f"in {counted(len(found.trends), 'trend')} of {counted(len(found.sessions), 'session')}"
    return f"{counted(worse, 'worsening')}, {counted(better, 'improvement')} {of}"


def change_text(trend: Trend, one: LevelChange) -> str:
    """Levels before and after, their difference with its interval, and p."""
    apart = difference_text(trend.followed.measure.counted, one.difference, one.interval)
    return "; ".join((f"{cell(trend, one.before)} → {cell(trend, one.after)}", apart, numbers.p_is(one.p_holm)))


def facts_text(one: LevelChange) -> str:
    """What else differs from the session before."""
    told = [f"{shown(fact.what, 80)} {' → '.join(shown(value, 40) or '–' for value in fact.values)}"
            for fact in one.facts]  # fmt: skip
    return "; ".join(shortened(told, _MOST_FACTS)) or "nothing that sessions record"


def lines(found: FollowedFolder, width: int) -> Iterator[str]:
    """For a terminal."""
    for name, sessions, trends in grouped(found):
        yield f"{name}: {counted(len(sessions), 'session')}"
        told = list(_table(sessions, trends, width, True))
        narrow = told[-1].startswith("(no room for")
        yield from _table(sessions, trends, width, False) if narrow else told
        yield from ["Intervals need a wider terminal, or --html.", ""] if narrow else [""]
        names = 2 + max(len(trend.followed.name) for trend in trends)
        for trend in trends:
            changes = counted(len(trend.changes), "change") if trend.changes else "no change shown"
            few = f"; fewer than {LEAST_SERIES} sessions" if trend.p_holm is None else ""
            yield from note(trend.followed.name, f"{_bars(trend, max(8, width - 60))} {changes}{few}", width, names)
        yield ""
    yield headline(found)
    for trend in found.trends:
        for change in trend.changes:
            of = trend.sessions[change.at]
            what = f"{trend.followed.name}, {plain_text(trend.device, 80)}, from {of.folder} ({moment(of.started_s)}):"
            yield from note(change.change.value, f"{what} {change_text(trend, change)}", width, 8)
            yield from note("", f"differs from the session before: {facts_text(change)}", width, 8)
    if len({one.scenario for one in found.sessions}) > 1:
        yield "note: sessions of different scenarios are kept apart"
    yield from (f"left out: {folder}: {why}" for folder, why in found.left_out)
    yield from METHOD


def _table(sessions: Sequence[FollowedSession], trends: Sequence[Trend], width: int, full: bool) -> Iterator[str]:
    columns = [Column("#"), Column("session", left=True), Column("began (UTC)", gives_way=1)]
    columns += [Column(trend.followed.name, gives_way=at) for at, trend in enumerate(trends, 2)]
    rows = []
    for at, one in enumerate(sessions, 1):
        values = [(trend, value_in(trend, one)) for trend in trends]
        cells = [f"{cell(*each)} {ends(*each) if full else ''}".rstrip() for each in values]
        rows.append([str(at), one.folder, moment(one.started_s), *cells])
    return text_table(columns, rows, width)


def _bars(trend: Trend, most: int) -> str:
    """A block for each of the last sessions, from 0 to the highest value; a line stands before a change."""
    highest, starts = max(one.value for one in trend.values) or 1.0, {one.at for one in trend.changes}
    drawn = [
        ("│" if at in starts else "") + _BARS[min(7, math.floor(8 * one.value / highest))]
        for at, one in enumerate(trend.values)
    ]
    return ("…" if len(drawn) > most else "") + "".join(drawn[-most:])


def as_json(found: FollowedFolder) -> dict[str, Any]:
    """One object; durations are in seconds, times are Unix times. level: of all sessions between two changes."""
    return {
        "trends": [
            {"scenario": one.scenario, "device": one.device, "measure": one.followed.name,
             "unit": one.followed.measure.counted.value, "p_holm": one.p_holm, "changes": [
                 plain(each) | {"folder": one.sessions[each.at].folder, "interval": _finite(each.interval)}
                 for each in one.changes
             ], "sessions": list(_values(one))}
            for one in found.trends
        ],
        "left_out": [{"folder": folder, "why": why} for folder, why in found.left_out],
    }  # fmt: skip


def _values(trend: Trend) -> Iterator[dict[str, Any]]:
    changes = {one.at: one.change.value for one in trend.changes}
    for start, end, level in trend.levels:
        for at in range(start, end):
            one, value = trend.sessions[at], trend.values[at]
            low, high = value.interval or (None, None)
            yield {"folder": one.folder, "session": one.session, "started_s": one.started_s, "count": value.count,
                   "of": value.of, "value": value.value, "low": low, "high": high, "level": level.value,
                   "change": changes.get(at)}  # fmt: skip


def _finite(interval: tuple[float, float] | None) -> list[float | None] | None:
    return None if interval is None else [end if math.isfinite(end) else None for end in interval]


def as_csv(found: FollowedFolder) -> str:
    """One row for each session and measure; at the end those that are left out, with the reason."""
    rows = []
    for trend in found.trends:
        names = trend.scenario, trend.device, trend.followed.name, trend.followed.measure.counted.value
        rows += [dict(zip(("scenario", "device", "measure", "unit"), names, strict=True)) | one
                 for one in _values(trend)]  # fmt: skip
    rows += [{"folder": folder, "left_out": why} for folder, why in found.left_out]
    titles = list(dict.fromkeys(key for one in rows for key in one))
    cells = [["" if (of := one.get(key)) is None else plain_text(str(of)) for key in titles] for one in rows]
    return safe_csv([titles, *cells])


def write_page(found: FollowedFolder, target: Path) -> None:
    """Writes one page of HTML, completely or not at all."""
    groups = []
    for number, (name, sessions, trends) in enumerate(grouped(found)):
        drawn = (_chart(f"g{number}-{at}", one, sessions) for at, one in enumerate(trends))
        groups.append((name, sessions, trends, [one for one in drawn if one is not None]))
    page = filled_page(
        "harness.report", "trend_page.html", title="Trends of sessions", found=found, groups=groups,
        headline=headline(found), method=" ".join(METHOD), moment=moment, cell=cell, ends=ends, value_in=value_in,
        change_text=change_text, facts_text=facts_text, written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )  # fmt: skip
    write_whole(target, page.encode("utf-8"))


def _chart(id_: str, trend: Trend, sessions: Sequence[FollowedSession]) -> Chart | None:
    """Over the numbers of the table's rows."""
    units = {Counted.RATE: (1.0, "per hour"), Counted.TIME: (1000.0, "ms")}
    scale, unit = units.get(trend.followed.measure.counted, (100.0, "%"))
    numbers = {one.folder: at for at, one in enumerate(sessions, 1)}
    places = [numbers[one.folder] for one in trend.sessions]
    line = [(float(at), scale * one.value) for at, one in zip(places, trend.values, strict=True)]
    band: list[tuple[float, float, float]] = []
    for (at, _), one in zip(line, trend.values, strict=True):
        low, high = one.interval or (None, None)
        band += [(at, scale * low, scale * high)] if low is not None and high is not None else []
    level = [
        (at, scale * of.value) for low, high, of in trend.levels for at in (places[low] - 0.5, places[high - 1] + 0.5)
    ]
    whole = len(band) == len(line)
    told = [f"{one.change.value.capitalize()} from session {places[one.at]}: {change_text(trend, one)}."
            for one in trend.changes] or ["No change is shown."]  # fmt: skip
    told += [] if whole else ["No band: some sessions have too few durations for an interval."]
    curves = [("each session, with its 95 % interval" if whole else "each session", line, band if whole else []),
              ("level between changes", level, [])]  # fmt: skip
    return chart(id_, f"{trend.followed.name}, {unit}", "session (#)", " ".join(told), curves)
