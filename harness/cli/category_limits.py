"""Limits on categories, which every device must hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from harness.base.cells import shown
from harness.model.judgment import Category

if TYPE_CHECKING:
    from harness.model.choices import Reading
    from harness.rating.figures.categories import CountedShare
    from harness.rating.reports.report import CategoryReport

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
    from harness.rating.reports.report import name_of
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
