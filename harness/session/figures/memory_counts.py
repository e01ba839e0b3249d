"""How long a device remembers, from pairs of which each says only whether it still did after one wait.

Nothing is assumed of the share that remembers but that it does not grow with the wait. Such data are known as current
status data; the estimate is the isotonic one. Source: Ayer et al., Ann. Math. Stat. 26 (1955); interval: Banerjee &
Wellner, Scand. J. Stat. 32 (2005), by the likelihood ratio.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import xlog1py, xlogy

from harness.statistics.intervals import CONFIDENCE, Share, clopper_pearson

CRITICAL = 3.841
"""Twice the log likelihood ratio up to which a length is in the interval: of chi-square with one degree of freedom.

The 2.28 of waits that lie everywhere would be too little for a handful of waits; docs/memory.md has the coverage.
"""
LEFT_SHARE = 0.05
"""Share of pairs that may still show memory from the recommended wait on."""
_HALF = 0.5
_SAME = 1e-9

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pair:
    """A follow-up that was asked after `wait_s`, and whether its answer showed memory."""

    wait_s: float
    shown: bool


@dataclass(frozen=True, slots=True)
class Level:
    """The pairs of one wait. fitted: the share by the isotonic estimate."""

    wait_s: float
    shown: Share
    fitted: float

    @property
    def interval(self) -> tuple[float, float]:
        """95 % exact."""
        found = clopper_pearson(self.shown.count, self.shown.total)
        assert found is not None  # a level has a pair
        return found


@dataclass(frozen=True, slots=True)
class MemoryLength:
    """The wait at which half of the pairs show memory (s).

    bracket: where the estimate crosses one half; its upper end is None when that lies beyond the longest wait, its
    lower end 0 when it lies before the shortest. interval: 95 %, in the same way.
    """

    bracket: tuple[float, float | None]
    interval: tuple[float, float | None]

    @property
    def value_s(self) -> float | None:
        """The middle of the bracket; None when it is open at an end."""
        low, high = self.bracket
        return None if high is None or low == 0 else (low + high) / 2


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A wait after which hardly any pair shows memory. left: those from there on that do.

    at_most: 95 % upper bound on the share that shows memory at this wait. surer: the longest wait that was tried, and
    the bound there; None where that is no lower.
    """

    wait_s: float
    left: Share
    at_most: float
    surer: tuple[float, float] | None = None


def levels(pairs: Sequence[Pair]) -> tuple[Level, ...]:
    """The pairs by their waits, shortest first."""
    waits, shown, totals = _counted(pairs)
    return tuple(
        Level(float(wait_s), Share(int(count), int(total)), float(fitted))
        for wait_s, count, total, fitted in zip(waits, shown, totals, _fit(shown, totals), strict=True)
    )


def memory_length(pairs: Sequence[Pair], critical: float = CRITICAL) -> MemoryLength | None:
    """How long it remembers; None without pairs."""
    if not pairs:
        return None
    waits, shown, totals = _counted(pairs)
    ends = [0.0, *(float(wait_s) for wait_s in waits), None]
    best = _log_likelihood(_fit(shown, totals), shown, totals)
    ratios = [2 * (best - _crossing_at(gap, shown, totals)) for gap in range(len(waits) + 1)]
    low, high = _ends(ratios, _SAME)
    first, last = _ends(ratios, critical)
    return MemoryLength((ends[low] or 0.0, ends[high + 1]), (ends[first] or 0.0, ends[last + 1]))


def forgotten(pairs: Sequence[Pair], length: MemoryLength, left_share: float = LEFT_SHARE) -> Forgotten | None:
    """The shortest wait, not below the upper end of the length's interval, from which on memory is rarely shown.

    None when there is none among the waits that were tried.
    """
    until_s = length.interval[1]
    if until_s is None:
        return None
    waits, shown, totals = _counted(pairs)
    for at in np.flatnonzero(waits >= until_s).tolist():
        left = Share(int(shown[at:].sum()), int(totals[at:].sum()))
        if left.count <= left_share * left.total:
            at_most, surer = _at_most(at, shown, totals), None
            # Where some are shown, bounds by several counts would not hold together; without any, the last is lowest.
            if not left.count and at + 1 < len(waits):
                surer = float(waits[-1]), _at_most(len(waits) - 1, shown, totals)
            return Forgotten(float(waits[at]), left, at_most, surer)
    return None


def _at_most(at: int, shown: Floats, totals: Floats) -> float:
    """One-sided 95 % upper bound on the share that shows memory at a wait; it holds though the pairs chose the wait.

    Longer waits do not bound it, since the share may fall; shorter ones do, since it does not grow. So it rests on the
    pairs back to the last shorter wait that showed memory, and counts all that are shown from this wait on. Where none
    is, the bounds of all waits hold together with 95 %: each fails only when all pairs from some place on show nothing,
    and of such events the one with the latest place contains the others.
    """
    count, first = int(shown[at:].sum()), at
    while first and not shown[first - 1]:
        first -= 1
    asked = int(totals[first : at + 1].sum())
    bound = clopper_pearson(min(count, asked), asked, 2 * CONFIDENCE - 1)
    assert bound is not None  # a wait has a pair
    return bound[1]


def _counted(pairs: Sequence[Pair]) -> tuple[Floats, Floats, Floats]:
    """Waits, shortest first, and for each how many pairs showed memory and how many there are; all (n,)."""
    waits, place = np.unique([pair.wait_s for pair in pairs], return_inverse=True)
    shown = np.bincount(place, weights=[pair.shown for pair in pairs], minlength=len(waits))
    return waits.astype(np.float64), shown.astype(np.float64), np.bincount(place).astype(np.float64)


def _fit(shown: Floats, totals: Floats) -> Floats:
    """Shares that do not grow and are the most likely; (n,)."""
    if not len(shown):
        return shown
    from scipy.optimize import isotonic_regression  # here, since it takes long to import

    fitted: Floats = isotonic_regression(shown / totals, weights=totals, increasing=False).x
    return np.clip(fitted, 0.0, 1.0)


def _crossing_at(gap: int, shown: Floats, totals: Floats) -> float:
    """The greatest log likelihood when the share crosses one half between the waits `gap` − 1 and `gap`."""
    before = np.maximum(_fit(shown[:gap], totals[:gap]), _HALF)
    after = np.minimum(_fit(shown[gap:], totals[gap:]), _HALF)
    return _log_likelihood(np.concatenate((before, after)), shown, totals)


def _log_likelihood(shares: Floats, shown: Floats, totals: Floats) -> float:
    return float(np.sum(xlogy(shown, shares) + xlog1py(totals - shown, -shares)))


def _ends(ratios: Sequence[float], most: float) -> tuple[int, int]:
    """The first and the last gap whose ratio is not above `most`."""
    within = [gap for gap, ratio in enumerate(ratios) if ratio <= most + _SAME]
    return within[0], within[-1]
