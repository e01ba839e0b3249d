"""Results by groups of recordings as a table, the worst group first."""

from __future__ import annotations

from collections.abc import Iterator

from harness.base.text_table import Column, note, shown, text_table
from harness.model.numbers import NOTHING, number, percent, points, probability
from harness.offline.figures.groups import FileBreakdown, GroupGap
from harness.statistics.text import number_interval, points_interval, voices_interval

_MOST_GROUPS = 40
_REJECTS = (Column("FR"), Column("95 % interval", gives_way=2), Column("p", gives_way=1))
_ACCEPTS = (
    Column("hours", gives_way=5),
    Column("FA/h"),
    Column("95 % interval", gives_way=4),
    Column("p", gives_way=3),
)


def group_lines(of: FileBreakdown, width: int) -> Iterator[str]:
    """The table of a breakdown, and how far the worst and the best group are apart."""
    rejects = any(one.rejects.total for one in of.groups)
    accepts = any(one.hours for one in of.groups)
    trials = "phrases" if of.labelled else "files"
    rows = []
    for one in of.groups:
        row = [shown(one.label, 40)]
        if rejects:
            share = (
                percent(one.rejects.value, 2),
                NOTHING if one.rejects.value is None else voices_interval(one.rejects_interval, 2),
            )
            row += [f"{one.rejects.total:,}", *share, probability(one.rejects_p)]
        if accepts:
            ends = number_interval(one.accepts_interval)
            row += [number(one.hours), number(one.accepts_per_hour), ends, probability(one.accepts_p)]
        rows.append(row)
    yield ""
    columns = (
        Column(shown(of.by, 40)),
        *((Column(trials), *_REJECTS) if rejects else ()),
        *(_ACCEPTS if accepts else ()),
    )
    yield from text_table(columns, rows, width, most=_MOST_GROUPS)
    yield ""
    if rejects:
        clusters = (
            f"{shown(of.clustered_by, 40)} as a whole, unknown ones as one"
            if of.clustered_by
            else f"each {trials[:-1]} by itself"
        )
        yield from note("intervals of FR", clusters, width)
    yield from note("p", "of the difference from all other groups together, corrected for all groups (Holm)", width)
    for title, text in gap_texts(of):
        yield from note(title, text, width)


def gap_texts(of: FileBreakdown) -> Iterator[tuple[str, str]]:
    """How far the worst and the best group are apart: what, and how far."""
    if of.rejects_gap is not None:
        apart = of.rejects_gap.apart
        text = f"{points(apart.difference)} points ({points_interval(apart.interval)})"
        yield "largest gap, FR", _gap(of.rejects_gap, text)
    if of.accepts_gap is not None:
        rate = of.accepts_gap.apart
        low, high = rate.interval
        text = f"{number(rate.difference)} FA/h ({number(low)} to {number(high)})"
        yield "largest gap, FA/h", _gap(of.accepts_gap, text)


def _gap(of: GroupGap, apart: str) -> str:
    return f"{shown(of.worst, 40)} less {shown(of.best, 40)}: {apart}"
