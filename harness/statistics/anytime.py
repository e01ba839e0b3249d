"""Intervals that hold at every look at once, for figures on a screen that is watched while they grow.

Both are confidence sequences by mixture: the likelihood of the data under a prior on the parameter, divided by its
likelihood under one value of it, is a martingale of mean 1 when that value is the true one, so that it ever reaches
1/(1 − confidence) with at most the probability 1 − confidence (Ville's inequality). The interval is where it has not.
Sources: Robbins, Ann. Math. Stat. 41 (1970); Howard et al., Ann. Stat. 49 (2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from scipy.special import betaln, gammaln

from harness.statistics.exact import Interval
from harness.statistics.intervals import CONFIDENCE

PRIOR_EVENTS, PRIOR_EXPOSURE = 0.5, 1.0
"""Gamma prior on a rate: narrowest where devices are, between 0.1 and 2 events an hour; any prior keeps the promise."""
PRIOR_YES, PRIOR_NO = 0.5, 0.5
"""Beta prior on a share."""
_SMALLEST = 1e-12


@lru_cache(maxsize=8192)
def rate_sequence(count: int, exposure: float, confidence: float = CONFIDENCE) -> Interval | None:
    """Time-uniform interval of a Poisson rate, per unit of exposure; None over nothing. Exposure in hours."""
    if count < 0 or exposure < 0:
        raise ValueError(f"a rate cannot be {count} events in {exposure}")
    if exposure == 0:
        return None
    a, b = PRIOR_EVENTS, PRIOR_EXPOSURE
    mixed = (
        a * math.log(b)
        - float(gammaln(a))
        + float(gammaln(a + count))
        - (a + count) * math.log(b + exposure)
        + math.log(1 - confidence)
    )

    def excess(rate: float) -> float:
        # log of martingale × (1 − confidence): convex, least at count / exposure, negative inside the interval
        return mixed + rate * exposure - (count * math.log(rate) if count else 0.0)

    best = count / exposure
    high = (best or 1.0 / exposure) + 1.0 / exposure
    while excess(high) < 0:
        high *= 2
    if not count:
        return 0.0, -mixed / exposure
    return _root(excess, best * _SMALLEST, best), _root(excess, best, high)


@lru_cache(maxsize=8192)
def share_sequence(count: float, total: float, confidence: float = CONFIDENCE) -> Interval | None:
    """Time-uniform interval of a share, `count` of `total`; None over nothing.

    Of clusters, as many as independent units tell alike (`clustered_shares.independent_units`), not whole numbers then.
    """
    if not 0 <= count <= total:
        raise ValueError(f"a share cannot be {count} of {total}")
    if total == 0:
        return None
    rest = total - count
    mixed = float(betaln(PRIOR_YES + count, PRIOR_NO + rest) - betaln(PRIOR_YES, PRIOR_NO)) + math.log(1 - confidence)

    def excess(share: float) -> float:
        return mixed - (count * math.log(share) if count else 0.0) - (rest * math.log1p(-share) if rest else 0.0)

    best = count / total
    low = _root(excess, best * _SMALLEST, best) if count else 0.0
    high = _root(excess, best, 1 - (1 - best) * _SMALLEST) if rest else 1.0
    return low, high


def _root(excess: Callable[[float], float], start: float, end: float) -> float:
    """Where `excess` changes sign; an end that lies inside the interval already is the answer."""
    at_start, at_end = excess(start), excess(end)
    if at_start * at_end > 0:
        return start if abs(at_start) < abs(at_end) else end
    from scipy.optimize import brentq  # here, since it takes long to import

    return float(brentq(excess, start, end, xtol=1e-15, rtol=1e-12))
