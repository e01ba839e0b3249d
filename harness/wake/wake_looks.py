"""Counts with their intervals, and how they narrowed while a session ran."""

from __future__ import annotations

from functools import lru_cache

from harness.statistics.intervals import Share, clopper_pearson, clustered_interval, garwood, independent_units
from harness.statistics.sequential import rate_sequence, share_sequence
from harness.wake.wake_progress import Look, Rate, Ratio

LOOKS = 240


Speakers = tuple[Share, ...]
"""The trials of each speaker."""


@lru_cache(maxsize=4096)
def ratio(share: Share, speakers: Speakers = ()) -> Ratio:
    """A share with both of its intervals; over speakers where there are several."""
    counts, totals = [one.count for one in speakers], [one.total for one in speakers]
    units = independent_units(counts, totals, least_effect=1.0)
    if units is None or share.value is None:
        return Ratio(share, clopper_pearson(share.count, share.total), share_sequence(share.count, share.total))
    interval = clustered_interval(counts, totals, least_effect=1.0)
    return Ratio(share, interval, share_sequence(share.value * units, units), len(speakers))


@lru_cache(maxsize=4096)
def rate(count: int, hours: float) -> Rate:
    """A rate with both of its intervals."""
    return Rate(count, hours, garwood(count, hours), rate_sequence(count, hours))


RawLook = tuple[float, Share, Speakers, float, int]


class Looks:
    """One look per counted trial, thinned so that at most LOOKS are kept, evenly; the latest is always among them."""

    def __init__(self) -> None:
        self._raw: list[RawLook] = []
        self._last: RawLook | None = None
        self._stride, self._seen = 1, 0

    def add(
        self, wall_s: float, false_rejects: Share, speakers: Speakers, exposure_s: float, false_accepts: int
    ) -> None:
        self._last = (wall_s, false_rejects, speakers, exposure_s, false_accepts)
        if self._seen % self._stride == 0:
            self._raw.append(self._last)
            if len(self._raw) >= LOOKS:
                self._raw = self._raw[::2]
                self._stride *= 2
        self._seen += 1

    def snapshot(self) -> tuple[Look, ...]:
        chosen = list(self._raw)
        if self._last is not None and (not chosen or chosen[-1] is not self._last):
            chosen.append(self._last)
        return tuple(_look(*one) for one in chosen)


@lru_cache(maxsize=8192)
def _look(wall_s: float, false_rejects: Share, speakers: Speakers, exposure_s: float, false_accepts: int) -> Look:
    hours = exposure_s / 3600
    return Look(wall_s, false_rejects.total, ratio(false_rejects, speakers), hours, rate(false_accepts, hours))
