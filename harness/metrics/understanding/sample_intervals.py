"""How far a figure may be off: utterances are drawn again, from how many of them count what.

What an utterance counts (a row) and how many utterances count the same are enough for it, so that shards put together
have the interval of the whole, to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from harness.metrics.intervals import CONFIDENCE, wilson

Interval = tuple[float, float]
Row = TypeVar("Row", bound=tuple[int, ...])

DRAWS = 2000
_SEED = 20221
_AT_ONCE = 1 << 22
"""Numbers that are drawn together."""


def ratio_interval(
    counts: Mapping[Row, int], part: Callable[[Row], float], whole: Callable[[Row], float], most: float | None = 1.0
) -> Interval | None:
    """95 % percentile interval of Σ part / Σ whole over utterances drawn with replacement; None of fewer than two.

    counts: row → utterances. part, whole: what a row adds above and below. Utterances with nothing below, and draws
    of them alone, do not count. Where the figure is 0, or the most it can be, nothing varies: utterances stand for
    what is counted, each right or wrong as a whole. Always the same for the same counts.
    Source: Efron & Tibshirani, An Introduction to the Bootstrap, 13.
    """
    rows = sorted(counts)
    numbers = np.array([counts[row] for row in rows], np.int64)
    utterances = int(numbers.sum())
    above = np.array([part(row) for row in rows])
    below = np.array([whole(row) for row in rows])
    total = float(below @ numbers)
    heavy = int(numbers[below > 0].sum())
    if heavy < 2:
        return None
    value = float(above @ numbers) / total
    if value in (0.0, most):
        return wilson(heavy if value else 0, heavy)
    draw = np.random.default_rng(_SEED)
    found = []
    at_once = max(1, _AT_ONCE // len(rows))
    for begin in range(0, DRAWS, at_once):
        drawn = draw.multinomial(utterances, numbers / utterances, size=min(at_once, DRAWS - begin))
        sums = drawn @ below
        found.append((drawn @ above)[sums > 0] / sums[sums > 0])
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(np.concatenate(found), [tail, 100 - tail])
    return (float(low), float(high)) if low < high else None
