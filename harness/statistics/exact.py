"""Exact intervals of a share and of a rate."""

from __future__ import annotations

from functools import lru_cache

from harness.statistics import special
from harness.statistics.intervals import CONFIDENCE

Interval = tuple[float, float]


@lru_cache(maxsize=8192)
def clopper_pearson(count: int, total: int, confidence: float = CONFIDENCE) -> Interval | None:
    """Two-sided exact interval of a share; None over nothing.

    Source: Clopper & Pearson, Biometrika 26 (1934); ends as quantiles of beta distributions.
    """
    if not 0 <= count <= total:
        raise ValueError(f"a share cannot be {count} of {total}")
    if total == 0:
        return None
    tail = (1 - confidence) / 2
    low = float(special.betaincinv(count, total - count + 1, tail)) if count else 0.0
    high = float(special.betaincinv(count + 1, total - count, 1 - tail)) if count < total else 1.0
    return low, high


@lru_cache(maxsize=8192)
def garwood(count: int, exposure: float, confidence: float = CONFIDENCE) -> Interval | None:
    """Two-sided exact interval of a Poisson rate, `count` events in `exposure`; None over nothing.

    Per unit of exposure (hours give events an hour). Valid for one look at a time fixed beforehand; for a figure that
    is watched while it grows see `anytime`. Source: Garwood, Biometrika 28 (1936).
    """
    if count < 0 or exposure < 0:
        raise ValueError(f"a rate cannot be {count} events in {exposure}")
    if exposure == 0:
        return None
    tail = (1 - confidence) / 2
    low = float(special.gammaincinv(count, tail)) if count else 0.0
    return low / exposure, float(special.gammaincinv(count + 1, 1 - tail)) / exposure
