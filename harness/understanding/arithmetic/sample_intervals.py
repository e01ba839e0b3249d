"""How far a figure may be off: utterances are drawn again, from how many of them count what.

What an utterance counts (a row) and how many utterances count the same are enough for it, so that shards put together
have the interval of the whole, to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from harness.statistics.intervals import CONFIDENCE, wilson
from harness.understanding.arithmetic.counts import Matched
from harness.understanding.arithmetic.zero_division import ZeroDivision

Interval = tuple[float, float]
Edits = tuple[int, int]
"""Concept errors and gold concepts of an utterance."""
Row = TypeVar("Row", bound=tuple[int, ...])

DRAWS = 2000
_SEED = 20221
_AT_ONCE = 1 << 22
"""Numbers that are drawn together."""


class Spans(NamedTuple):
    """The intervals of one way of averaging."""

    precision: Interval | None
    recall: Interval | None
    f1: Interval | None


def accuracy_interval(overlaps: Mapping[Matched, int], zero: ZeroDivision) -> Interval | None:
    """Of intent accuracy. overlaps: as in `IntentCounts`."""

    def jaccard(one: Matched) -> float:
        either = one.gold + one.predicted - one.right
        return one.right / either if either else zero.accuracy

    return ratio_interval(overlaps, jaccard, lambda _: 1.0)


def samples_spans(overlaps: Mapping[Matched, int], zero: ZeroDivision) -> Spans:
    """Of means over utterances. overlaps: as in `IntentCounts`."""

    def share(part: float, whole: int, nothing: float) -> float:
        return part / whole if whole else nothing

    return Spans(
        ratio_interval(overlaps, lambda one: share(one.right, one.predicted, zero.precision), lambda _: 1.0),
        ratio_interval(overlaps, lambda one: share(one.right, one.gold, zero.recall), lambda _: 1.0),
        ratio_interval(overlaps, lambda one: share(2 * one.right, one.gold + one.predicted, zero.f1), lambda _: 1.0),
    )


def pooled_spans(counts: Mapping[Matched, int]) -> Spans:
    """Of what is pooled. counts: right, gold and predicted ones of an utterance → utterances."""
    return Spans(
        ratio_interval(counts, lambda one: one.right, lambda one: one.predicted),
        ratio_interval(counts, lambda one: one.right, lambda one: one.gold),
        pooled_f1_interval(counts),
    )


def pooled_f1_interval(counts: Mapping[Matched, int]) -> Interval | None:
    """Of F1 alone, as in `pooled_spans`."""
    return ratio_interval(counts, lambda one: 2 * one.right, lambda one: one.gold + one.predicted)


def cer_interval(edits: Mapping[Edits, int]) -> Interval | None:
    """Of the concept error rate, which may be above 1."""
    return ratio_interval(edits, lambda one: one[0], lambda one: one[1], None)


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
