"""How far a word error rate, or the difference of two, may be off: errors come in bad utterances and bad speakers.

The units that vary freely are utterances, or whole speakers where those are given; words within them do not. Which
it is decides what the interval speaks of: further utterances of these speakers, or further speakers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, stdtr, stdtrit

from harness.metrics.exact import Interval
from harness.metrics.intervals import CONFIDENCE

Clusters = Sequence[str] | NDArray[np.integer[Any]]
"""The speaker of each utterance: a name, or a number from 0 up, which is much quicker."""
Sums = NDArray[Any]

_BLOCK = 8192
"""Units at a time: what fits the caches is quicker than columns of new memory."""


@dataclass(frozen=True, slots=True)
class WerDifference:
    """The first system's WER less the second's. p: two-sided, that such a difference comes by chance."""

    difference: float
    interval: Interval
    p: float


def wer_interval(
    errors: ArrayLike, words: ArrayLike, clusters: Clusters | None = None, confidence: float = CONFIDENCE
) -> Interval | None:
    """Interval of a WER from the errors and reference words of each utterance; None over no words or one utterance.

    A single cluster counts as none given. Below a WER of 1 the ends are those of the exact interval of a share over
    as many words as would vary alike. Without errors utterances stand for words, each wrong or right as a whole.
    Sources: Korn & Graubard, Survey Methodology 24 (1998); the delete-one variance of a ratio, Cochran, Sampling
    Techniques; degrees of freedom by Carter, Schnepel & Steigerwald, Rev. Econ. Stat. 99 (2017).
    """
    wrong, of = _columns(errors, words)
    total = float(of.sum())
    if not total or len(of) < 2:
        return None
    tail = (1 - confidence) / 2
    rate = float(wrong.sum()) / total
    if rate == 0:
        return 0.0, _above_nothing(len(of), tail)
    found = _vary(wrong, of, clusters)
    t = float(stdtrit(found.degrees, 1 - tail))
    # Never surer than if each error came by itself.
    spread = t * math.sqrt(max(found.variance, rate / total))
    if rate >= 1:
        return max(0.0, rate - spread), rate + spread
    narrowing = (float(stdtrit(max(1.0, total - 1), 1 - tail)) / t) ** 2
    # min() also takes the words when nothing varies.
    alike = min(total, rate * (1 - rate) * narrowing / found.variance if found.variance else total)
    low = float(betaincinv(rate * alike, (1 - rate) * alike + 1, tail))
    high = float(betaincinv(rate * alike + 1, (1 - rate) * alike, 1 - tail))
    # A share ends at 1; a WER does not, which matters once it is near.
    return low, high if rate <= 0.5 else max(high, rate + spread)


def wer_difference(
    first: ArrayLike,
    second: ArrayLike,
    words: ArrayLike,
    clusters: Clusters | None = None,
    confidence: float = CONFIDENCE,
) -> WerDifference | None:
    """Two systems' errors on the same utterances, which have `words`; None over no words or one utterance.

    What the two share (a hard utterance, a bad speaker) falls out. Units and sources as in `wer_interval`.
    """
    left, of = _columns(first, words)
    right, _ = _columns(second, words)
    total = float(of.sum())
    if not total or len(of) < 2:
        return None
    tail = (1 - confidence) / 2
    apart = left.astype(np.float64) - right
    difference = float(apart.sum()) / total
    if not apart.any():
        most = _above_nothing(len(of), tail)
        return WerDifference(0.0, (-most, most), 1.0)
    found = _vary(apart, of, clusters)
    error = math.sqrt(max(found.variance, abs(difference) / total))
    if not error:
        # Every cluster's errors even out exactly: only single utterances tell how much they vary.
        error = math.sqrt(float((apart**2).sum())) / total
    spread = float(stdtrit(found.degrees, 1 - tail)) * error
    p = 2 * float(stdtr(found.degrees, -abs(difference) / error))
    return WerDifference(difference, (difference - spread, difference + spread), p)


def _columns(errors: ArrayLike, words: ArrayLike) -> tuple[Sums, Sums]:
    wrong, of = np.asarray(errors), np.asarray(words)
    if wrong.shape != of.shape or wrong.ndim != 1:
        raise ValueError(f"errors of shape {wrong.shape} for words of shape {of.shape}")
    if min(wrong.min(initial=0), of.min(initial=0)) < 0:
        raise ValueError("negative counts")
    return wrong, of


def _above_nothing(utterances: int, tail: float) -> float:
    """The exact upper end of a share of none of so many."""
    return -math.expm1(math.log(tail) / utterances)


@dataclass(frozen=True, slots=True)
class _Variation:
    """Of a ratio of sums. degrees: of freedom, 1 and up."""

    variance: float
    degrees: float


def _vary(top: Sums, bottom: Sums, clusters: Clusters | None) -> _Variation:
    if clusters is not None:
        by_cluster = _sums(top, bottom, clusters)
        if len(by_cluster[0]) > 1:
            top, bottom = by_cluster
    total, units = float(bottom.sum()), len(bottom)
    ratio = float(top.sum()) / total
    variance = squares = 0.0
    for begin in range(0, units, _BLOCK):
        part = bottom[begin : begin + _BLOCK].astype(np.float64)
        # How far the ratio moves when a unit is left out; one that has all the words cannot be.
        moves = (top[begin : begin + _BLOCK] - ratio * part) / np.where(part < total, total - part, total)
        variance += float((moves * moves).sum())
        squares += float((part * part).sum())
    # A few large units tell less than as many equal ones.
    return _Variation((units - 1) / units * variance, max(1.0, total**2 / squares - 1))


def _sums(top: Sums, bottom: Sums, clusters: Clusters) -> tuple[Sums, Sums]:
    if len(clusters) != len(top):
        raise ValueError(f"{len(clusters)} clusters for {len(top)} utterances")
    if isinstance(clusters, np.ndarray):
        of = clusters
    else:
        number: defaultdict[str, int] = defaultdict(count().__next__)
        of = np.fromiter(map(number.__getitem__, clusters), np.int64, len(clusters))
    held = np.bincount(of) > 0
    return np.bincount(of, top)[held], np.bincount(of, bottom)[held]
