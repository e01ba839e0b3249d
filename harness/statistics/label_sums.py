"""Sums over items that raw agreement, Krippendorff's alpha and Gwet's AC1 are made of, and how far those may be off.

All three depend on an item only by how many raters gave it which category, and on a table only by sums over items.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from harness.statistics.exact import Interval, clopper_pearson
from harness.statistics.intervals import CONFIDENCE

Counts = NDArray[np.int64]
Sums = NDArray[np.float64]

FEWEST_DEFINED = 0.95
"""An interval needs a value in so large a share of the resamples."""
_SHARED, _EQUAL, _UNEQUAL, _LABELLED, _FIRST = range(5)
_BLOCK_CELLS = 1 << 21
"""Numbers that the bootstrap draws at a time."""


def columns_of(counts: Counts) -> Sums:
    """What each item (row: how often it got each category) adds to the sums.

    Whether two raters or more share it, the share of their pairs that are equal, alpha's unequal pairs, whether it is
    labelled at all, the labels by category where it is shared, the share of each category among its labels.
    """
    counted = counts.astype(np.float64)
    given = counted.sum(axis=1)
    shared = given >= 2
    squares = (counted**2).sum(axis=1)
    equal = np.where(shared, (squares - given) / np.where(shared, given * (given - 1), 1), 0)
    unequal = np.where(shared, (given**2 - squares) / np.where(shared, given - 1, 1), 0)
    shares = counted / np.maximum(given, 1)[:, None]
    return np.column_stack([shared, equal, unequal, given > 0, counted * shared[:, None], shares])


def figures_of(sums: Sums) -> Sums:
    """Raw agreement, alpha and AC1, of sums along the last axis; NaN where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        raw = sums[..., _EQUAL] / sums[..., _SHARED]
        by_chance = alpha_chance(sums)
        labels = _margins(sums).sum(axis=-1)
        # Chance makes at least one pair in all of them differ, or none: what lies below is rounding.
        differing = by_chance * labels * (labels - 1) > 0.5
        alpha = np.where(differing, 1 - sums[..., _UNEQUAL] / labels / by_chance, np.nan)
        ac1 = 1 - (1 - raw) / ac1_chance(sums)
    return np.stack([raw, alpha, ac1], axis=-1)


def alpha_chance(sums: Sums) -> Sums:
    """The share of pairs that differ by chance, as alpha has it: labels put together at random."""
    margins = _margins(sums)
    labels = margins.sum(axis=-1)
    return np.asarray((labels**2 - (margins**2).sum(axis=-1)) / (labels * (labels - 1)))


def ac1_chance(sums: Sums) -> Sums:
    """The share of pairs that differ by chance, as AC1 has it: only labels given without knowing agree by chance."""
    shares = sums[..., _FIRST + _categories(sums) :] / sums[..., _LABELLED, None]
    return np.asarray(1 - (shares * (1 - shares)).sum(axis=-1) / (_categories(sums) - 1))


def resampled(columns: Sums, many: Counts, resamples: int, seed: int) -> Sums:
    """The figures (columns) of so many tables (rows), each of as many items as there are, drawn with replacement.

    many: how many items there are of each row of `columns`.
    """
    random = np.random.default_rng(seed)
    items = int(many.sum())
    at_a_time = max(1, _BLOCK_CELLS // len(many))
    found = []
    for begin in range(0, resamples, at_a_time):
        drawn = random.multinomial(items, many / items, size=min(at_a_time, resamples - begin))
        found.append(figures_of(drawn @ columns))
    return np.concatenate(found)


def bca(value: float, drawn: Sums, left_out: Sums, many: Counts, confidence: float = CONFIDENCE) -> Interval | None:
    """The bias-corrected and accelerated interval of a figure; None where too few resamples have a value.

    drawn: of resamples. left_out: the figure without one item of each sort, `many` the items of the sort.
    Source: Efron, J. Am. Stat. Assoc. 82 (1987).
    """
    known = drawn[~np.isnan(drawn)]
    if len(known) < FEWEST_DEFINED * len(drawn):
        return None
    weights = np.where(np.isnan(left_out), 0, many)
    if not weights.any():
        return None
    moves = np.nan_to_num(left_out)
    moves = np.average(moves, weights=weights) - moves
    spread = float((weights * moves**2).sum())
    if not spread:
        return None
    acceleration = float((weights * moves**3).sum()) / (6 * spread**1.5)
    below = (float((known < value - 1e-12).sum()) + 0.5 * float((np.abs(known - value) <= 1e-12).sum())) / len(known)
    bias = float(ndtri(min(max(below, 0.5 / len(known)), 1 - 0.5 / len(known))))
    tail = float(ndtri((1 - confidence) / 2))
    ends = [bias + z for z in (tail, -tail)]
    low, high = (float(ndtr(bias + end / max(1e-3, 1 - acceleration * end))) for end in ends)
    return float(np.quantile(known, low)), float(np.quantile(known, high))


def without_disagreement(items: int, by_chance: float) -> Interval:
    """Of a figure that is 1, as nobody disagrees on any item: how low it is if as many differ as that still allows.

    by_chance: the share of pairs that differ by chance. A bootstrap of such a table never varies.
    """
    exact = clopper_pearson(0, items)
    return max(-1.0, 1 - (exact[1] if exact else 1.0) / by_chance), 1.0


def _categories(sums: Sums) -> int:
    return int(sums.shape[-1] - _FIRST) // 2


def _margins(sums: Sums) -> Sums:
    return sums[..., _FIRST : _FIRST + _categories(sums)]
