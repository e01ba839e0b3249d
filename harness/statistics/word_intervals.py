"""Intervals of word error rates and of differences between them. Errors cluster in bad utterances and bad speakers.

Words within an utterance are therefore not independent. Utterances count as independent units, or whole speakers if
these are given. The interval is about further utterances of these speakers, or about further speakers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harness.model.frozen import frozen
from harness.statistics.intervals import TAIL, Interval, Share, garwood, independent_units, mean_ends, share_ends
from harness.statistics.significance import (
    Difference,
    Discordance,
    SwapTestResult,
    consistent_interval,
    independent_difference,
    poisson_rates,
    swap_test,
)

Clusters = Sequence[str] | NDArray[np.integer[Any]]
"""The speaker of each utterance: a name, or a number from 0, which is much quicker."""
Sums = NDArray[Any]

MAX_EXACT_UNITS = 100
"""If at most this many units differ, and at least as many do not, a difference is tested exactly."""
MIN_QUERIES = 6
"""Fewer queries say too little about further ones."""
MIN_UNITS = 10
"""With fewer units, Student's t alone makes the interval wide enough."""

_BLOCK = 8192
"""Number of units that are processed at a time, since arrays that fit the processor's caches are quicker."""


def wer_interval(errors: ArrayLike, words: ArrayLike, clusters: Clusters | None = None) -> Interval | None:
    """Interval of a WER from the errors and reference words of each utterance; None over no words or one utterance.

    A single cluster counts as no clusters. Below a WER of 1, this is the exact interval of a share over the effective
    number of independent words. Without errors, it counts utterances instead, each right or wrong as a whole. For
    nothing shows then how errors cluster, and counting words would cover too rarely if whole utterances are wrong.
    Sources: Korn & Graubard, Survey Methodology 24 (1998). The delete-one variance of a ratio: Cochran, Sampling
    Techniques. Degrees of freedom: Carter, Schnepel & Steigerwald, Rev. Econ. Stat. 99 (2017).
    """
    wrong, word_counts = _columns(errors, words)
    total = float(word_counts.sum())
    if not total or len(word_counts) < 2:
        return None
    from harness.statistics.special_functions import special  # here, since it loads slowly

    rate = float(wrong.sum()) / total
    if rate == 0:
        return 0.0, _upper_end_of_none(len(word_counts))
    variance, degrees = _ratio_variance(*_sums_by_unit(wrong, word_counts, clusters))

    t = float(special.stdtrit(degrees, 1 - TAIL))
    # The interval is never narrower than with independent errors.
    spread = t * math.sqrt(max(variance, rate / total))
    if rate >= 1:
        return max(0.0, rate - spread), rate + spread
    narrowing = (float(special.stdtrit(max(1.0, total - 1), 1 - TAIL)) / t) ** 2
    # min() also gives the number of words if nothing varies.
    independent_words = min(total, rate * (1 - rate) * narrowing / variance if variance else total)
    low, high = share_ends(rate * independent_words, (1 - rate) * independent_words)
    # A share is at most 1 but a WER is not, which matters if it is near 1.
    return low, high if rate <= 0.5 else max(high, rate + spread)


def wer_difference(
    first: ArrayLike, second: ArrayLike, words: ArrayLike, clusters: Clusters | None = None
) -> Difference | None:
    """The WER of the first system minus that of the second, on the same utterances; None over no words or one
    utterance.

    - first, second: errors in each utterance.
    - words: its number of reference words. The influence of a difficult utterance or a bad speaker on both cancels out.
      Units and sources as in `wer_interval`. If few units differ, the sum of their differences is not normally
      distributed. Then p comes from the exact swap test, and the interval from two Poisson sums. The interval contains
      0 exactly if p is not significant.
    """
    first_errors, word_counts = _columns(first, words)
    second_errors, _ = _columns(second, words)
    total = float(word_counts.sum())
    if not total or len(word_counts) < 2:
        return None
    differences = first_errors.astype(np.float64) - second_errors
    difference = float(differences.sum()) / total
    if not differences.any():
        most = _upper_end_of_none(len(word_counts))
        return Difference(0.0, (-most, most), 1.0)
    by_unit = _sums_by_unit(differences, word_counts, clusters)
    if (few := _few_differ(*by_unit)) is not None:
        return few
    variance, degrees = _ratio_variance(*by_unit)
    error = math.sqrt(max(variance, abs(difference) / total))
    if not error:
        # The differences within every cluster sum to 0, so only single utterances show how much they vary.
        error = math.sqrt(float((differences**2).sum())) / total
    from harness.statistics.special_functions import special  # here, since it loads slowly

    spread = float(special.stdtrit(degrees, 1 - TAIL)) * error
    p = 2 * float(special.stdtr(degrees, -abs(difference) / error))
    return Difference(difference, (difference - spread, difference + spread), p)


def share_difference(first: ArrayLike, second: ArrayLike, clusters: Clusters | None = None) -> Difference | None:
    """The share of the first system minus that of the second, on the same trials; None over nothing.

    first, second: 0 or 1 for each trial, shape (n,). Without clusters: Newcombe's interval with McNemar's exact p.
    With clusters: as `wer_difference`, with the interval clipped, since shares differ by at most 1.
    """
    outcomes, other = np.asarray(first, np.int64), np.asarray(second, np.int64)
    if clusters is not None:
        difference = wer_difference(outcomes, other, np.ones(len(outcomes), np.int64), clusters)
        return None if difference is None else replace(difference, interval=_clip_to_shares(difference.interval))
    return Discordance.of(outcomes, other).difference


def unpaired_share_difference(first: Sequence[Share], second: Sequence[Share]) -> Difference | None:
    """The share of the first system minus that of the second, on different trials; None if one has too few clusters.

    first, second: the trials of each cluster. p: Fisher's exact test, with the effective number of independent trials.
    Interval: the distances from the shares to the ends of their exact intervals, added as squares.
    Sources: Korn & Graubard, Survey Methodology 24 (1998); Zou & Donner, Statistics in Medicine 27 (2008), 1693–1702.
    """
    from scipy.stats import fisher_exact

    sides: list[tuple[float, float, Interval]] = []
    for shares in (first, second):
        pooled = sum(shares, Share())
        units: float | None = pooled.total
        if any(share.total > 1 for share in shares):
            units = independent_units(
                [share.count for share in shares], [share.total for share in shares], min_effect=1.0
            )
        if pooled.value is None or units is None:
            return None
        yes, no = pooled.value * units, (1 - pooled.value) * units
        sides.append((yes, no, share_ends(yes, no)))
    p = float(fisher_exact(np.array([[round(yes), round(no)] for yes, no, _ in sides])).pvalue)
    side, other = ((yes / (yes + no), ends) for yes, no, ends in sides)
    return independent_difference(side, other, p)


def unpaired_rate_difference(first: int, first_hours: float, second: int, second_hours: float) -> Difference | None:
    """The first rate per hour minus the second, on different audio; None over nothing. p: by `poisson_rates`."""
    p = poisson_rates(first, first_hours, second, second_hours)
    interval, other = garwood(first, first_hours), garwood(second, second_hours)
    if p is None or interval is None or other is None:
        return None
    return independent_difference((first / first_hours, interval), (second / second_hours, other), p)


def unpaired_wer_difference(
    first: tuple[ArrayLike, ArrayLike, Clusters | None], second: tuple[ArrayLike, ArrayLike, Clusters | None]
) -> Difference | None:
    """The WER of the first system minus that of the second, on different utterances; None over no words or one
    utterance.

    first, second: errors, reference words and cluster of each utterance. Variances as in `wer_interval`, p by Welch's
    t (Biometrika 34, 1947).
    """
    sides: list[tuple[float, Interval]] = []
    spreads: list[tuple[float, float]] = []
    for errors, words, clusters in (first, second):
        wrong, word_counts = _columns(errors, words)
        ends = wer_interval(wrong, word_counts, clusters)
        if ends is None:
            return None
        rate = float(wrong.sum() / word_counts.sum())
        variance, degrees = _ratio_variance(*_sums_by_unit(wrong, word_counts, clusters))
        sides.append((rate, ends))
        spreads.append((max(variance, rate / float(word_counts.sum())), degrees))
    variance = sum(spread for spread, _ in spreads)
    if not variance:
        return independent_difference(sides[0], sides[1], 1.0)
    degrees = variance**2 / sum(spread**2 / side_degrees for spread, side_degrees in spreads)
    from harness.statistics.special_functions import special  # here, since it loads slowly

    p = 2 * float(special.stdtr(degrees, -abs(sides[0][0] - sides[1][0]) / math.sqrt(variance)))
    return independent_difference(sides[0], sides[1], p)


def _clip_to_shares(ends: Interval) -> Interval:
    """The interval of a difference of shares, which is from −1 to 1."""
    return max(-1.0, ends[0]), min(1.0, ends[1])


def _columns(errors: ArrayLike, words: ArrayLike) -> tuple[Sums, Sums]:
    """Both columns as arrays.

    Raises ValueError if they do not have one entry each for every utterance, or a count is negative.
    """
    wrong, word_counts = np.asarray(errors), np.asarray(words)
    if wrong.shape != word_counts.shape or wrong.ndim != 1:
        raise ValueError(f"errors of shape {wrong.shape} for words of shape {word_counts.shape}")
    if min(wrong.min(initial=0), word_counts.min(initial=0)) < 0:
        raise ValueError("negative counts")
    return wrong, word_counts


def _upper_end_of_none(utterances: int) -> float:
    """The exact upper end of the interval of a share of 0 out of `utterances`."""
    return -math.expm1(math.log(TAIL) / utterances)


def _few_differ(differences: Sums, word_counts: Sums) -> Difference | None:
    """The difference, if at most half of the units differ, and few enough for the exact test; else None.

    The sums in favour of each system come from different units, so they are independent. Each has Garwood's interval,
    scaled by the size of the units. For their difference, the distances to the ends are added as squares.
    Sources: Fisher, The Design of Experiments, 21; Zou & Donner, Statistics in Medicine 27 (2008), 1693–1702.
    """
    differing = differences[differences != 0]
    if len(differences) < MIN_UNITS or not 0 < len(differing) <= min(MAX_EXACT_UNITS, len(differences) / 2):
        return None
    swapping = swap_test([Fraction(float(amount)).limit_denominator(10**6) for amount in differing])
    assert swapping is not None  # a unit differs
    (variance, degrees), total = _ratio_variance(differences, word_counts), float(word_counts.sum())
    more, less = float(differing[differing > 0].sum()), -float(differing[differing < 0].sum())
    from harness.statistics.special_functions import special  # here, since it loads slowly

    widened = (float(special.stdtrit(degrees, TAIL)) / float(special.ndtri(TAIL))) ** 2
    size = max(1.0, widened * variance * total**2 / (more + less))
    (more_low, more_high), (less_low, less_high) = (mean_ends(amount / size) for amount in (more, less))
    down = math.hypot(more - size * more_low, size * less_high - less)
    up = math.hypot(size * more_high - more, less - size * less_low)
    difference = (more - less) / total
    interval = difference - down / total, difference + up / total
    return Difference(difference, consistent_interval(difference, interval, swapping.p), swapping.p, swapping.exact)


def _sums_by_unit(numerators: Sums, denominators: Sums, clusters: Clusters | None) -> tuple[Sums, Sums]:
    """Sums of both columns over the independent units: by cluster if there is more than one, else unchanged."""
    by_cluster = None if clusters is None else cluster_sums(numerators, denominators, clusters)
    return (numerators, denominators) if by_cluster is None or len(by_cluster[0]) < 2 else by_cluster


def _ratio_variance(numerators: Sums, denominators: Sums) -> tuple[float, float]:
    """The variance of the ratio of both sums, and its degrees of freedom (at least 1)."""
    total, units = float(denominators.sum()), len(denominators)
    ratio = float(numerators.sum()) / total
    variance = squares = 0.0
    for begin in range(0, units, _BLOCK):
        part = denominators[begin : begin + _BLOCK].astype(np.float64)
        # How much the ratio changes if a unit is left out. A unit with all words cannot be left out.
        moves = (numerators[begin : begin + _BLOCK] - ratio * part) / np.where(part < total, total - part, total)
        variance += float((moves * moves).sum())
        squares += float((part * part).sum())
    # A few large units carry less information than as many equal ones.
    return (units - 1) / units * variance, max(1.0, total**2 / squares - 1)


def cluster_sums(numerators: Sums, denominators: Sums, clusters: Clusters) -> tuple[Sums, Sums]:
    """Both columns summed by cluster, in order of first occurrence, or if clusters are numbers in their order."""
    if len(clusters) != len(numerators):
        raise ValueError(f"{len(clusters)} clusters for {len(numerators)} utterances")
    if isinstance(clusters, np.ndarray):
        groups = clusters
    else:
        numbers: defaultdict[str, int] = defaultdict(count().__next__)
        groups = np.fromiter(map(numbers.__getitem__, clusters), np.int64, len(clusters))
    occupied = np.bincount(groups) > 0
    return np.bincount(groups, numerators)[occupied], np.bincount(groups, denominators)[occupied]


@frozen
class Stratum:
    """Tries of both systems under the same circumstances.

    - first, second: numbers of tries that counted.
    - first_total, second_total: numbers of all tries, at least 1.
    """

    first: int
    first_total: int
    second: int
    second_total: int

    def __post_init__(self) -> None:
        if not (0 <= self.first <= self.first_total and 0 <= self.second <= self.second_total):
            raise ValueError(f"a stratum cannot be {self}")
        if not (self.first_total and self.second_total):
            raise ValueError("both systems need at least one trial in a stratum")

    @property
    def weight(self) -> Fraction:
        """The weight: the harmonic mean of the two numbers of tries. It is 1 with one try each, r with r tries each."""
        return Fraction(2 * self.first_total * self.second_total, self.first_total + self.second_total)

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        """The shares of tries of both systems that counted."""
        return Fraction(self.first, self.first_total), Fraction(self.second, self.second_total)

    @property
    def difference(self) -> Fraction:
        """The difference of the shares times the weight."""
        first, second = self.shares
        return self.weight * (first - second)


@frozen
class StratifiedDifference:
    """The shares of both systems, weighted over strata, and the first minus the second (Mantel–Haenszel's risk
    difference).

    - interval: 95 % interval from the differences between clusters; None with fewer than two clusters.
    - swap: test that both are equally good, by swapping them in whole clusters; None if no cluster differs.
    - alone_p: p from `mantel_haenszel`, in which every try is independent.
    - discordance: counts of strata by the systems that succeeded; None unless each stratum has one try per system.
    """

    first: float
    second: float
    difference: float
    interval: Interval | None
    swap: SwapTestResult | None
    alone_p: float | None
    discordance: Discordance | None

    @property
    def p(self) -> float | None:
        return None if self.swap is None else self.swap.p


def stratified_difference(clusters: Sequence[Sequence[Stratum]]) -> StratifiedDifference | None:
    """The difference over all strata; None without any. clusters: strata, grouped so that only those of different
    clusters are independent.

    The influence of a difficult query on both cancels out. Interval: the delete-one variance of clusters, with
    Student's t.
    Sources: Mantel & Haenszel, J. Natl. Cancer Inst. 22 (1959); as in `word_intervals.wer_difference`.
    """
    nonempty = [cluster for cluster in clusters if cluster]
    if not nonempty:
        return None
    strata = [stratum for cluster in nonempty for stratum in cluster]
    weights = [float(sum((stratum.weight for stratum in cluster), Fraction())) for cluster in nonempty]
    first_sums, second_sums = (
        [float(sum((stratum.weight * stratum.shares[side] for stratum in cluster), Fraction())) for cluster in nonempty]
        for side in (0, 1)
    )
    total = sum(weights)
    difference = wer_difference(first_sums, second_sums, weights)
    first, second = sum(first_sums) / total, sum(second_sums) / total
    discordance = None
    if all(stratum.first_total == stratum.second_total == 1 for stratum in strata):
        discordance = Discordance.of([stratum.first for stratum in strata], [stratum.second for stratum in strata])
    return StratifiedDifference(
        first=first,
        second=second,
        difference=first - second,
        interval=None if difference is None else _clip_to_shares(difference.interval),
        swap=swap_test([sum((stratum.difference for stratum in cluster), Fraction()) for cluster in nonempty]),
        alone_p=mantel_haenszel(strata),
        discordance=discordance,
    )


def mantel_haenszel(strata: Sequence[Stratum]) -> float | None:
    """Two-sided p for two systems that are equally good within strata, with independent tries; None if no stratum can
    show a difference.

    Without correction for continuity. With one try each, it is McNemar's chi-square. Sources: Cochran, Biometrics 10
    (1954); Mantel & Haenszel, J. Natl. Cancer Inst. 22 (1959).
    """
    excess = variance = 0.0
    for stratum in strata:
        total = stratum.first_total + stratum.second_total
        counted = stratum.first + stratum.second
        excess += stratum.first - stratum.first_total * counted / total
        variance += (
            stratum.first_total * stratum.second_total * counted * (total - counted) / (total * total * (total - 1))
        )
    from harness.statistics.special_functions import special  # here, since it loads slowly

    return float(special.chdtrc(1, excess * excess / variance)) if variance else None
