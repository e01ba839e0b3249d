"""Where a share that only falls along a line crosses a level: isotonic shares, and the interval of the crossing.

Points are waits, pauses or other settings, ascending; counts and totals are of each point. The interval holds every
crossing that the likelihood ratio does not reject.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

CRITICAL = 3.841
"""Twice the log likelihood ratio up to which a crossing is in the interval: of chi-square with one degree of freedom.

The 2.28 of points that lie everywhere would be too little for a handful of points. For the coverage, see
docs/how-to/measure-memory.md.
"""
_SAME = 1e-9
"""Ratios that differ by less are equal."""


Span = tuple[float, float | None]
"""Two points: the lower end is 0 before the first, the upper end None beyond the last."""


def falling_shares(counts: Sequence[float] | Floats, totals: Sequence[float] | Floats) -> Floats:
    """Shares that do not grow and are the most likely; (n,)."""
    import numpy as np

    weights = np.asarray(totals, np.float64)
    if not len(weights):
        return weights
    from scipy.optimize import isotonic_regression  # imported here because it is slow

    fitted: Floats = isotonic_regression(np.asarray(counts, np.float64) / weights, weights=weights, increasing=False).x
    return np.clip(fitted, 0.0, 1.0)  # means of shares leave 0–1 by rounding only


def crossing(
    points: Sequence[float] | Floats,
    counts: Sequence[float] | Floats,
    totals: Sequence[float] | Floats,
    level: float,
    critical: float = CRITICAL,
) -> tuple[Span, Span]:
    """Where the share falls to the level: points between which the estimate does, and the 95 % interval.

    Every total is above 0, and there is a point.
    """
    import numpy as np

    hits, trials = np.asarray(counts, np.float64), np.asarray(totals, np.float64)
    ends = [0.0, *(float(point) for point in points), None]
    best = _log_likelihood(falling_shares(hits, trials), hits, trials)
    ratios = [2 * (best - _crossing_at(gap, hits, trials, level)) for gap in range(len(trials) + 1)]
    low, high = _ends(ratios, _SAME)
    first, last = _ends(ratios, critical)
    return (ends[low] or 0.0, ends[high + 1]), (ends[first] or 0.0, ends[last + 1])


def _crossing_at(gap: int, counts: Floats, totals: Floats, level: float) -> float:
    """The greatest log likelihood when the share crosses the level between the points `gap` − 1 and `gap`."""
    import numpy as np

    # The most likely falling shares that also stay on their side of the level are the free ones, cut off at it.
    before = np.maximum(falling_shares(counts[:gap], totals[:gap]), level)
    after = np.minimum(falling_shares(counts[gap:], totals[gap:]), level)
    return _log_likelihood(np.concatenate((before, after)), counts, totals)


def _log_likelihood(shares: Floats, counts: Floats, totals: Floats) -> float:
    import numpy as np
    from scipy.special import xlog1py, xlogy

    return float(np.sum(xlogy(counts, shares) + xlog1py(totals - counts, -shares)))


def _ends(ratios: Sequence[float], most: float) -> tuple[int, int]:
    """The first and the last gap whose ratio is not above `most`."""
    within = [gap for gap, ratio in enumerate(ratios) if ratio <= most + _SAME]
    return within[0], within[-1]
