"""Permutation tests of paired systems: if they are equally good, their results may be swapped within any cluster."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.statistics import special
from harness.statistics.exact import Interval
from harness.statistics.intervals import CONFIDENCE

DRAWS = 20_000
MOST_STEPS = 20_000_000
"""Work up to which every way of swapping is counted."""
MOST_ENUMERATED = 14
"""Clusters up to which every way of swapping is tried, for several figures at once."""
_BLOCK = 2048


@dataclass(frozen=True, slots=True)
class Swapping:
    """p: two-sided. exact: every way of swapping was counted, not drawn. clusters: those with a difference."""

    p: float
    exact: bool
    clusters: int


def swapped(differences: Sequence[Fraction | int], seed: int = 0) -> Swapping | None:
    """Whether a sum of differences, one of each cluster, is far from 0; None when all of them are 0.

    With differences of 1, 0 and −1 it is McNemar's exact test. Source: Fisher, The Design of Experiments, 21 (1935).
    """
    apart = [Fraction(one) for one in differences if one]
    if not apart:
        return None
    scale = math.lcm(*(one.denominator for one in apart))
    whole = [int(one * scale) for one in apart]
    common = reduce(math.gcd, whole)
    whole = [one // common for one in whole]
    found, span = abs(sum(whole)), sum(map(abs, whole))
    if span * len(whole) <= MOST_STEPS:
        # Chance of each sum of those that keep their sign: the sum of all is twice that, less the span.
        chances = np.zeros(span + 1)
        chances[0] = 1.0
        for size in map(abs, whole):
            chances[size:] = (chances[size:] + chances[: span + 1 - size]) / 2
            chances[:size] /= 2
        far = np.abs(2 * np.arange(span + 1) - span) >= found
        return Swapping(min(1.0, float(chances[far].sum())), True, len(whole))
    values = np.array(whole, dtype=np.float64)
    rng = np.random.default_rng(seed)
    as_far = sum(
        int(np.count_nonzero(np.abs(signs @ values) >= found * (1 - 1e-12))) for signs in _signs(rng, len(whole))
    )
    return Swapping((1 + as_far) / (1 + DRAWS), False, len(whole))


def in_keeping(difference: float, interval: Interval, p: float, confidence: float = CONFIDENCE) -> Interval:
    """An approximate interval of a difference that agrees with the exact test beside it on whether 0 can be.

    Where the test does not rule 0 out the interval is widened to hold it. Where it does, an end that lies beyond 0 is
    the test-based one. Source: Miettinen, American Journal of Epidemiology 103 (1976), 226–235.
    """
    low, high = interval
    if p >= 1 - confidence:
        return min(low, 0.0), max(high, 0.0)
    if low <= 0 <= high:
        nearer = difference * (1 - float(special.ndtri((1 - confidence) / 2) / special.ndtri(p / 2)))
        return (nearer, high) if difference > 0 else (low, nearer)
    return low, high


def swapped_together(differences: NDArray[Any], seed: int = 0) -> Swapping | None:
    """Whether any of several figures differs; None when none does in any cluster.

    differences: a row for each cluster, a column for each figure. Each figure counts by its square over what swapping
    makes of it on average, so that rare categories count as frequent ones do.
    """
    held = np.asarray(differences, dtype=np.float64)
    held = held[np.any(held != 0, axis=1)]
    held = held[:, np.any(held != 0, axis=0)]
    if not held.size:
        return None
    usual = (held**2).sum(axis=0)
    found = float((held.sum(axis=0) ** 2 / usual).sum()) * (1 - 1e-9)
    clusters = len(held)
    if clusters <= MOST_ENUMERATED:
        every = (np.arange(1 << clusters)[:, None] >> np.arange(clusters) & 1) * 2.0 - 1
        as_far = int(np.count_nonzero(((every @ held) ** 2 / usual).sum(axis=1) >= found))
        return Swapping(as_far / (1 << clusters), True, clusters)
    rng = np.random.default_rng(seed)
    as_far = sum(
        int(np.count_nonzero(((signs @ held) ** 2 / usual).sum(axis=1) >= found)) for signs in _signs(rng, clusters)
    )
    return Swapping((1 + as_far) / (1 + DRAWS), False, clusters)


def _signs(rng: np.random.Generator, clusters: int) -> Iterator[NDArray[Any]]:
    """DRAWS rows of +1 and −1, in blocks."""
    for begin in range(0, DRAWS, _BLOCK):
        yield rng.integers(0, 2, (min(_BLOCK, DRAWS - begin), clusters)) * 2.0 - 1
