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

from harness.metrics.exact import clopper_pearson
from harness.metrics.intervals import CONFIDENCE, Share

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
    """A wait after which hardly any pair shows memory. left: those from there on that do; at_most: 95 % upper bound."""

    wait_s: float
    left: Share
    at_most: float


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
    for wait_s in sorted({pair.wait_s for pair in pairs if pair.wait_s >= until_s}):
        later = [pair.shown for pair in pairs if pair.wait_s >= wait_s]
        left = Share(sum(later), len(later))
        if left.count <= left_share * left.total:
            bound = clopper_pearson(left.count, left.total, 2 * CONFIDENCE - 1)  # one-sided
            assert bound is not None
            return Forgotten(wait_s, left, bound[1])
    return None


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
