"""Compares two systems, by exact tests where possible, and tests whether events come in clusters.

If both systems have the same units (stimuli, speakers or files), chance could have swapped the two systems within each
unit. The p of a difference is the share of all such swaps that make it at least as large. With many units there are too
many swaps; a sample of them is then drawn, or the normal distribution is used. Rates on different audio are compared as
Poisson counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harness.model.frozen import frozen
from harness.statistics.intervals import CONFIDENCE, TAIL, Interval, garwood, wilson


@frozen
class Difference:
    """The first system minus the second, in shares, errors per word, events per hour, or seconds.

    - interval: 95 % interval; an end is infinite with too few durations.
    - p: two-sided probability of such a difference by chance.
    - exact: whether p counts every way in which chance could swap the two within units.
    """

    difference: float
    interval: Interval
    p: float
    exact: bool = False


@frozen
class Discordance:
    """Two systems on the same stimuli: numbers of stimuli that both, only the first, only the second or neither heard.

    p: probability that two equally good systems differ so much by chance; None if they never differ.
    """

    both: int = 0
    only_first: int = 0
    only_second: int = 0
    neither: int = 0

    @classmethod
    def of(cls, first: ArrayLike, second: ArrayLike) -> Discordance:
        """Counts the stimuli that both, one or no system heard. first, second: 1 if heard, else 0, of shape (n,)."""
        kinds = np.bincount(2 * np.asarray(first, np.int64) + np.asarray(second, np.int64), minlength=4)
        return cls(int(kinds[3]), int(kinds[2]), int(kinds[1]), int(kinds[0]))

    @property
    def total(self) -> int:
        """Number of all stimuli."""
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def p(self) -> float | None:
        return mcnemar(self.only_first, self.only_second)

    @property
    def difference(self) -> Difference | None:
        """The share that the first heard minus the share that the second heard; None over nothing.

        The square-and-add interval from Wilson's intervals, with the correlation of the pairs corrected for continuity.
        It contains 0 exactly if McNemar's exact test is not significant.
        Source: Newcombe, Statistics in Medicine 17 (1998), 2635–2650, method 10.
        """
        a, b, c, d = self.both, self.only_first, self.only_second, self.neither
        total = self.total
        first, second = wilson(a + b, total), wilson(a + c, total)
        if first is None or second is None:
            return None
        share, other = (a + b) / total, (a + c) / total
        cross = a * d - b * c
        corrected = max(cross - total / 2, 0.0) if cross > 0 else float(cross)
        margins = (a + b) * (c + d) * (a + c) * (b + d)
        phi = corrected / math.sqrt(margins) if margins else 0.0
        value = (b - c) / total
        down, up = share - first[0], first[1] - share
        other_down, other_up = other - second[0], second[1] - other
        low = value - math.sqrt(max(0.0, down**2 - 2 * phi * down * other_up + other_up**2))
        high = value + math.sqrt(max(0.0, up**2 - 2 * phi * up * other_down + other_down**2))
        p = 1.0 if self.p is None else self.p
        return Difference(value, consistent_interval(value, (max(-1.0, low), min(1.0, high)), p), p, exact=True)


def mcnemar(only_first: int, only_second: int) -> float | None:
    """Exact two-sided p of McNemar's test, from the numbers of stimuli on which two systems differ; None if there are
    none.

    Source: McNemar, Psychometrika 12 (1947), with the binomial distribution in place of its approximation.
    """
    if not (differing := only_first + only_second):
        return None
    from harness.statistics.special_functions import special  # here, since it loads slowly

    return min(1.0, 2 * float(special.bdtr(min(only_first, only_second), differing, 0.5)))


MAX_RANKED = 200
"""Up to this many differences, every way of swapping signed ranks is counted."""


def signed_ranks(differences: ArrayLike) -> float | None:
    """Two-sided p of Wilcoxon's signed ranks, for paired differences that are symmetric about 0; None if all are 0.

    Differences of 0 are left out; equal ones share the mean of their ranks. Exact up to MAX_RANKED differences, also
    with ties; beyond, by the normal distribution. Source: Wilcoxon, Biometrics Bulletin 1 (1945), 80–83.
    """
    nonzero = np.asarray(differences, np.float64)
    nonzero = nonzero[nonzero != 0]
    _, ranks, tie_sizes = np.unique(np.abs(nonzero), return_inverse=True, return_counts=True)
    twice = (2 * np.cumsum(tie_sizes) - tie_sizes + 1)[ranks] * np.sign(nonzero).astype(np.int64)
    if not len(twice) or len(twice) > MAX_RANKED:
        return normal_p(float(twice.sum()), float((twice.astype(np.float64) ** 2).sum()))
    result = swap_test(twice.tolist())
    return None if result is None else result.p


MIN_NORMAL_PAIRS = 50
"""With at least this many matched pairs, the mean of their differences counts as normally distributed."""


def matched_pairs(differences: ArrayLike) -> float | None:
    """Two-sided p for paired differences (whole numbers) that are 0 on average; None if the test is not possible.

    Below MIN_NORMAL_PAIRS, every way of swapping the pairs is counted. From there on, the normal distribution is used,
    which would make p too small for fewer. Source: Gillick & Cox, ICASSP (1989), 532–535, who require about 50.
    """
    values = np.asarray(differences, np.int64)
    if len(values) >= MIN_NORMAL_PAIRS and np.any(values != values[0]):
        return normal_p(float(values.sum()), len(values) * float(values.var(ddof=1)))
    result = swap_test(values.tolist())
    return None if result is None else result.p


def normal_p(total: float, variance: float) -> float | None:
    """Two-sided p of a sum that is 0 on average, by the normal distribution; None without variance."""
    from harness.statistics.special_functions import special  # here, since it loads slowly

    return 2 * float(special.ndtr(-abs(total) / math.sqrt(variance))) if variance else None


def poisson_rates(first: int, first_hours: float, second: int, second_hours: float) -> float | None:
    """Exact two-sided p for two equal Poisson rates on different audio; None over nothing.

    Given the sum of both, the first count is binomial. Source: Przyborowski & Wilenski, Biometrika 31 (1940).
    """
    from scipy.stats import binomtest  # here, since it takes longer to import than most of what we print takes to make

    if first_hours <= 0 or second_hours <= 0:
        return None
    if first + second == 0:
        return 1.0
    return float(binomtest(first, first + second, first_hours / (first_hours + second_hours)).pvalue)


def holm(ps: Sequence[float | None], weights: Sequence[float] | None = None) -> tuple[float | None, ...]:
    """Each p, adjusted for the number of tests. The chance of any false alarm among them is then at most the level at
    which each is judged. At most 1.

    A p of None stands for no test: it stays None and does not count.
    weights: above 0; a test with twice the weight is corrected half as much (None: equal weights).
    Source: Holm, Scandinavian Journal of Statistics 6 (1979), 65–70, with weights as in its section 4.
    """
    test_weights = [1.0] * len(ps) if weights is None else weights
    tested = [(p, index) for index, p in enumerate(ps) if p is not None]
    weight_left, highest = math.fsum(test_weights[index] for _, index in tested), 0.0
    adjusted: list[float | None] = [None] * len(ps)
    for p, index in sorted(tested, key=lambda test: test[0] / test_weights[test[1]]):
        highest = max(highest, min(1.0, p * weight_left / test_weights[index]))
        adjusted[index] = highest
        weight_left -= test_weights[index]
    return tuple(adjusted)


DRAWS = 20_000
"""Number of random ways of swapping. With so many, the standard error of a p of 0.05 is 0.0015."""
MAX_STEPS = 20_000_000
"""Most steps that counting every way of swapping may take; beyond, swaps are drawn."""
MAX_ENUMERATED = 14
"""Up to this many clusters, every way of swapping is tried for several statistics at once."""
_DRAWS_PER_BLOCK = 2048


@frozen
class SwapTestResult:
    """The result of a swap test.

    - p: two-sided.
    - exact: whether every way of swapping was counted, not drawn.
    - clusters: number of clusters with a difference.
    """

    p: float
    exact: bool
    clusters: int


def swap_test(differences: Sequence[Fraction | int]) -> SwapTestResult | None:
    """Tests whether the sum of differences is 0; None if all of them are 0. differences: one for each cluster.

    With differences of 1, 0 and −1 it is McNemar's exact test. Source: Fisher, The Design of Experiments, 21 (1935).
    """
    nonzero = [Fraction(difference) for difference in differences if difference]
    if not nonzero:
        return None
    scale = math.lcm(*(difference.denominator for difference in nonzero))
    integers = [int(difference * scale) for difference in nonzero]
    divisor = reduce(math.gcd, integers)
    integers = [difference // divisor for difference in integers]
    statistic, span = abs(sum(integers)), sum(map(abs, integers))
    if span * len(integers) <= MAX_STEPS:
        # The probability of each sum of the differences that keep their sign. The sum of all is twice that minus span.
        chances = np.zeros(span + 1)
        chances[0] = 1.0
        for size in map(abs, integers):
            chances[size:] = (chances[size:] + chances[: span + 1 - size]) / 2
            chances[:size] /= 2
        is_as_far = np.abs(2 * np.arange(span + 1) - span) >= statistic
        return SwapTestResult(min(1.0, float(chances[is_as_far].sum())), True, len(integers))
    values = np.array(integers, dtype=np.float64)
    as_far = sum(
        int(np.count_nonzero(np.abs(signs @ values) >= statistic * (1 - 1e-12)))
        for signs in _random_signs(len(integers))
    )
    return SwapTestResult((1 + as_far) / (1 + DRAWS), False, len(integers))


def consistent_interval(difference: float, interval: Interval, p: float) -> Interval:
    """An approximate interval of a difference, changed so that it contains 0 exactly if the test's p does not rule it
    out.

    If p does not rule out 0, the interval is widened to contain it. If it does, an end that lies beyond 0 is replaced
    by that of the test-based interval. Source: Miettinen, American Journal of Epidemiology 103 (1976), 226–235.
    """
    low, high = interval
    if p >= 1 - CONFIDENCE:
        return min(low, 0.0), max(high, 0.0)
    if low <= 0 <= high:
        from harness.statistics.special_functions import special  # here, since it loads slowly

        nearer = difference * (1 - float(special.ndtri(TAIL) / special.ndtri(p / 2)))
        return (nearer, high) if difference > 0 else (low, nearer)
    return low, high


def independent_difference(
    first: tuple[float, Interval], second: tuple[float, Interval], p: float, error: float = 0.0
) -> Difference:
    """The difference of two independent values, with an interval that is consistent with p.

    - first, second: each value with its interval.
    - error: the most by which other errors may change the difference. The distances from the values to the ends of
      their intervals are added as squares. Source: Zou & Donner, Statistics in Medicine 27 (2008), 1693–1702.
    """
    (estimate, (low, high)), (other, (other_low, other_high)) = first, second
    ends = (
        estimate - other - math.hypot(estimate - low, other_high - other) - error,
        estimate - other + math.hypot(high - estimate, other - other_low) + error,
    )
    return Difference(estimate - other, consistent_interval(estimate - other, ends, p), p)


def joint_swap_test(differences: NDArray[Any]) -> SwapTestResult | None:
    """Tests whether any of several statistics differs; None if none differs in any cluster.

    differences: a row for each cluster, a column for each statistic. Each is squared and divided by its mean square
    under swapping, so that rare categories have the same weight as frequent ones.
    """
    nonzero = np.asarray(differences, dtype=np.float64)
    nonzero = nonzero[np.any(nonzero != 0, axis=1)]
    nonzero = nonzero[:, np.any(nonzero != 0, axis=0)]
    if not nonzero.size:
        return None
    usual = (nonzero**2).sum(axis=0)
    statistic = float((nonzero.sum(axis=0) ** 2 / usual).sum()) * (1 - 1e-9)
    clusters = len(nonzero)
    if clusters <= MAX_ENUMERATED:
        all_signs = (np.arange(1 << clusters)[:, None] >> np.arange(clusters) & 1) * 2.0 - 1
        as_far = int(np.count_nonzero(((all_signs @ nonzero) ** 2 / usual).sum(axis=1) >= statistic))
        return SwapTestResult(as_far / (1 << clusters), True, clusters)
    as_far = sum(
        int(np.count_nonzero(((signs @ nonzero) ** 2 / usual).sum(axis=1) >= statistic))
        for signs in _random_signs(clusters)
    )
    return SwapTestResult((1 + as_far) / (1 + DRAWS), False, clusters)


def _random_signs(clusters: int) -> Iterator[NDArray[Any]]:
    """DRAWS rows of +1 and −1, in blocks; the same ones each time."""
    rng = np.random.default_rng(0)
    for begin in range(0, DRAWS, _DRAWS_PER_BLOCK):
        yield rng.integers(0, 2, (min(_DRAWS_PER_BLOCK, DRAWS - begin), clusters)) * 2.0 - 1


Column = NDArray[np.float64]
MAX_SIMULATED_EVENTS = 5000
"""Most events that are simulated; with more, the normal distribution is used."""
SIMULATIONS = 999  # With the observed one, p is a multiple of a thousandth.
REPLICATES, MIN_REPLICATES = 2000, 200
"""Usual and least number of samples of the bootstrap. Of the least, five lie beyond each end of a 95 % interval."""
MAX_DRAWS = 20_000_000
"""Most stretches that the bootstrap draws, in all samples together."""


@frozen
class Clustering:
    """How far events cluster in stretches of audio.

    - index: index of dispersion, 1 for independent events, more for clusters.
    - p: one-sided, for independent events.
    - interval: 95 % interval of the rate per unit of exposure, by a bootstrap of whole stretches. It contains Garwood's
      interval, since clustered events never carry more information than independent ones.
    - stretches: number of stretches.
    """

    index: float
    p: float
    interval: Interval
    stretches: int


def clustering(counts: ArrayLike, exposures: ArrayLike, *, seed: int = 1) -> Clustering | None:
    """Index of dispersion over stretches of any length, with its p and a cluster bootstrap. None without two stretches
    and two events. The same numbers always give the same result.

    - counts: number of events in each stretch.
    - exposures: its length. index: Pearson's chi-square over its degrees of freedom, but only pairs of events in the
      same stretch count. The contribution of a single event would depend on the length of its stretch. For equal
      stretches both are the same. p: by simulating events in proportion to the exposures, or with many events by the
      exact mean and variance.

    Sources: Fisher (Statistical Methods, 16), Haldane (Biometrika 29, 1937), and Efron & Tibshirani (An Introduction to
    the Bootstrap, 8).
    """
    events, exposure = np.asarray(counts, np.float64), np.asarray(exposures, np.float64)
    exposed = exposure > 0
    events, exposure = events[exposed], exposure[exposed]
    total, length = float(events.sum()), float(exposure.sum())
    stretches = len(events)
    if stretches < 2 or total < 2:
        return None
    nonzero = events > 0
    pairs = _weighted_pairs(events[nonzero], exposure[nonzero])
    chi_square = pairs * length / total + stretches - total
    random = np.random.Generator(np.random.PCG64(seed))
    from harness.statistics.special_functions import special  # here, since it loads slowly

    if total <= MAX_SIMULATED_EVENTS:
        p = _p_simulated(random, exposure, int(total), pairs) if pairs else 1.0
    else:
        deviation = (2 * (stretches - 1) * (total - 1) / total) ** 0.5
        p = float(special.ndtr(-(chi_square - (stretches - 1)) / deviation))
    by_stretch = _bootstrap(random, events[nonzero], exposure[nonzero], exposure[~nonzero])
    by_event = garwood(int(total), length)
    assert by_event is not None  # a stretch has a length
    interval = min(by_stretch[0], by_event[0]), max(by_stretch[1], by_event[1])
    return Clustering(chi_square / (stretches - 1), p, interval, stretches)


def _weighted_pairs(events: Column, exposure: Column) -> float:
    """Number of ordered pairs of events in the same stretch, each divided by the exposure of the stretch."""
    return float((events * (events - 1) / exposure).sum())


def _p_simulated(random: np.random.Generator, exposure: Column, events: int, pairs: float) -> float:
    """The share of simulations with at least as many pairs, if so many events are independent. pairs: of the data, as
    `_weighted_pairs` counts them."""
    edges = np.cumsum(exposure)
    as_much = 0
    for _ in range(SIMULATIONS):
        stretches = np.searchsorted(edges, random.random(events) * edges[-1], side="right")
        occupied, counts = np.unique(np.minimum(stretches, len(exposure) - 1), return_counts=True)
        as_much += _weighted_pairs(counts.astype(np.float64), exposure[occupied]) >= pairs * (1 - 1e-12)
    return (1 + as_much) / (1 + SIMULATIONS)


def _bootstrap(random: np.random.Generator, events: Column, exposure: Column, silent: Column) -> Interval:
    """The interval of the rate: percentiles over samples of stretches, drawn with replacement.

    - events, exposure: of the stretches with events.
    - silent: exposures of those without. Only the sum of the latter matters, which is normally distributed if there are
      many.
    """
    with_events, without = len(events), len(silent)
    stretches = with_events + without
    replicates = max(MIN_REPLICATES, min(REPLICATES, MAX_DRAWS // with_events))
    mean = float(silent.mean()) if without else 0.0
    deviation = float(silent.std()) if without else 0.0
    rates = np.empty(replicates)
    stretch_numbers: NDArray[np.integer[Any]]
    for index in range(replicates):
        with_events_drawn = int(random.binomial(stretches, with_events / stretches))
        stretch_numbers = random.integers(0, with_events, with_events_drawn)
        without_events_drawn = stretches - with_events_drawn
        quiet_deviation = deviation * without_events_drawn**0.5
        quiet_exposure = without_events_drawn * mean + quiet_deviation * float(random.standard_normal())
        simulated = float(exposure[stretch_numbers].sum()) + max(0.0, quiet_exposure)
        rates[index] = float(events[stretch_numbers].sum()) / simulated if simulated > 0 else 0.0
    low, high = np.percentile(rates, [100 * TAIL, 100 - 100 * TAIL])
    return float(low), float(high)
