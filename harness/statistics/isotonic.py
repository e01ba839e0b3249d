"""Estimates where a share that only falls as a setting grows crosses a level, with an interval.

Points are the values of the setting, such as waits or pauses, ascending. At each point there are a count and a total.
The shares are fitted by isotonic regression. The interval contains every crossing that the likelihood ratio test does
not reject.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

CRITICAL = 3.841
"""A crossing is in the interval if twice its log likelihood ratio is at most this. It is the 95 % quantile of
chi-square with one degree of freedom.

The value for densely spaced points, 2.28, would be too small for a handful of points. For the coverage, see
docs/how-to/measure-memory.md.
"""
_SAME = 1e-9
"""Likelihood ratios that differ by less count as equal."""


Span = tuple[float, float | None]
"""Two points, between which a crossing lies. The lower is 0 before the first point, the upper None beyond the last."""


def falling_shares(counts: Sequence[float] | Floats, totals: Sequence[float] | Floats) -> Floats:
    """The most likely shares that do not grow from point to point, shape (n,)."""
    import numpy as np

    weights = np.asarray(totals, np.float64)
    if not len(weights):
        return weights
    from scipy.optimize import isotonic_regression  # imported here because it is slow

    fitted: Floats = isotonic_regression(np.asarray(counts, np.float64) / weights, weights=weights, increasing=False).x
    return np.clip(fitted, 0.0, 1.0)  # only rounding can put means of shares outside of 0–1


def crossing(
    points: Sequence[float] | Floats,
    counts: Sequence[float] | Floats,
    totals: Sequence[float] | Floats,
    level: float,
    critical: float = CRITICAL,
) -> tuple[Span, Span]:
    """Where the share falls to the level: the points between which the estimate does, and the 95 % interval.

    There must be at least one point, and every total must be above 0. critical: see CRITICAL.
    """
    import numpy as np

    hits, trials = np.asarray(counts, np.float64), np.asarray(totals, np.float64)
    ends = [0.0, *(float(point) for point in points), None]
    best = _log_likelihood(falling_shares(hits, trials), hits, trials)
    ratios = [2 * (best - _crossing_at(gap, hits, trials, level)) for gap in range(len(trials) + 1)]
    low, high = _first_and_last(ratios, _SAME)
    first, last = _first_and_last(ratios, critical)
    return (ends[low] or 0.0, ends[high + 1]), (ends[first] or 0.0, ends[last + 1])


def _crossing_at(gap: int, counts: Floats, totals: Floats, level: float) -> float:
    """The greatest log likelihood if the share crosses the level between the points `gap` − 1 and `gap`."""
    import numpy as np

    # The most likely falling shares that stay on one side of the level are the unrestricted ones, clipped at it.
    before = np.maximum(falling_shares(counts[:gap], totals[:gap]), level)
    after = np.minimum(falling_shares(counts[gap:], totals[gap:]), level)
    return _log_likelihood(np.concatenate((before, after)), counts, totals)


def _log_likelihood(shares: Floats, counts: Floats, totals: Floats) -> float:
    import numpy as np
    from scipy.special import xlog1py, xlogy

    return float(np.sum(xlogy(counts, shares) + xlog1py(totals - counts, -shares)))


def _first_and_last(ratios: Sequence[float], limit: float) -> tuple[int, int]:
    """The first and the last gap whose ratio is not above `limit`."""
    within = [gap for gap, ratio in enumerate(ratios) if ratio <= limit + _SAME]
    return within[0], within[-1]
