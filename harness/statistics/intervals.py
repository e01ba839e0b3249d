"""Shares, and quantiles of durations, with their intervals. Counts are kept; a rate over nothing is None."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from harness.model.choices import CONFIDENCE as CONFIDENCE
from harness.model.frozen import frozen
from harness.model.time import MeasuredDuration

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]


@frozen
class Share:
    """`count` of `total` (0 ≤ count ≤ total)."""

    count: int = 0
    total: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.count <= self.total:
            raise ValueError(f"a share cannot be {self.count} of {self.total}")

    @property
    def value(self) -> float | None:
        """The share, 0–1; None if the total is 0."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % Wilson score interval."""
        return wilson(self.count, self.total)

    def __add__(self, other: Share) -> Share:
        return Share(self.count + other.count, self.total + other.total)


def wilson(count: int, total: int, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Wilson score interval of a share, without continuity correction; None over nothing.

    Source: Wilson, J. Am. Stat. Assoc. 22 (1927).
    """
    if total == 0:
        return None
    z = _deviate(confidence)
    share = count / total
    centre = share + z * z / (2 * total)
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    # The ends are exactly 0 and 1 where rounding would miss them.
    low = 0.0 if count == 0 else max(0.0, (centre - spread) / scale)
    high = 1.0 if count == total else min(1.0, (centre + spread) / scale)
    return low, high


TAIL = (1 - CONFIDENCE) / 2
"""Largest error of an interval on each side."""
USUAL_DEVIATE = 1.959963984540054
"""The normal deviate of CONFIDENCE, as SciPy calculates it."""


def _deviate(confidence: float) -> float:
    """The normal deviate of a two-sided confidence."""
    if confidence == CONFIDENCE:
        return USUAL_DEVIATE
    from harness.statistics.special_functions import special  # here, since it loads slowly

    return float(special.ndtri(0.5 + confidence / 2))


def quantile_ranks(total: int, quantile: float) -> tuple[int | None, int | None]:
    """Ranks (from 1) of the order statistics that enclose a quantile; no assumption on the distribution.

    On each side, the error is at most TAIL. None for a side on which no observation is far enough out,
    as usual for a high quantile of few values. Source: David & Nagaraja, Order Statistics, 7.1.
    """
    import numpy as np  # here, since shares need no arrays

    # P(X_(r) > q) = P(fewer than r values ≤ q), which grows with r. Summed here, because SciPy loads slowly.
    counts = np.arange(total + 1)
    factorials = np.cumsum(np.log(np.maximum(counts, 1)))
    chances = np.exp(
        factorials[-1] - factorials - factorials[::-1]
        + counts * math.log(quantile) + (total - counts) * math.log1p(-quantile)
    )  # fmt: skip
    fewer = np.cumsum(chances)[:total]
    low, high = np.searchsorted(fewer, TAIL, "right"), np.searchsorted(fewer, 1 - TAIL) + 1
    return int(low) or None, int(high) if high <= total else None  # there is no rank 0, and none above total


Interval = tuple[float, float]


@lru_cache(maxsize=8192)
def clopper_pearson(count: float, total: float, confidence: float = CONFIDENCE) -> Interval | None:
    """Two-sided exact interval of a share; None over nothing. Counts need not be whole.

    Source: Clopper & Pearson, Biometrika 26 (1934); ends as quantiles of beta distributions.
    """
    if not 0 <= count <= total:
        raise ValueError(f"a share cannot be {count} of {total}")
    if total == 0:
        return None
    return share_ends(count, total - count, confidence)


def share_ends(yes: float, no: float, confidence: float = CONFIDENCE) -> Interval:
    """The exact ends of the interval of a share, `yes` out of `yes + no`. The counts need not be whole."""
    tail = (1 - confidence) / 2
    from harness.statistics.special_functions import special  # here, since it loads slowly

    low = float(special.betaincinv(yes, no + 1, tail)) if yes else 0.0
    return low, float(special.betaincinv(yes + 1, no, 1 - tail)) if no else 1.0


def mean_ends(count: float, confidence: float = CONFIDENCE) -> Interval:
    """The exact ends of the interval of a Poisson mean. The count need not be whole."""
    tail = (1 - confidence) / 2
    from harness.statistics.special_functions import special  # here, since it loads slowly

    low = float(special.gammaincinv(count, tail)) if count else 0.0
    return low, float(special.gammaincinv(count + 1, 1 - tail))


@lru_cache(maxsize=8192)
def garwood(count: float, exposure: float, confidence: float = CONFIDENCE) -> Interval | None:
    """Two-sided exact interval of a Poisson rate, `count` events in `exposure`; None over nothing.

    Per unit of exposure (with hours, events per hour). Valid for one look at a time fixed beforehand. For a rate that
    is watched while it grows, see `sequential.rate_sequence`. Source: Garwood, Biometrika 28 (1936).
    """
    if count < 0 or exposure < 0:
        raise ValueError(f"a rate cannot be {count} events in {exposure}")
    if exposure == 0:
        return None
    low, high = mean_ends(count, confidence)
    return low / exposure, high / exposure


IMAGINED = 3.0
"""Number of pseudo-clusters without variation inside that are added. A few clusters that happen not to differ do not
prove that no clusters differ."""


def clustered_interval(
    counts: Sequence[int], totals: Sequence[int], confidence: float = CONFIDENCE, min_effect: float | None = None
) -> Interval | None:
    """Interval of the share sum(counts) / sum(totals), from the differences between clusters; None over nothing or one
    cluster.

    - counts, totals: one for each cluster. The interval is exact for the effective number of independent units.
    - min_effect: a lower bound of the design effect (`design_effect`), from other shares of the same clusters. It
      matters for rare outcomes. Without it, a share of 0 or 1 counts as many units as there are clusters.

    Sources: Korn & Graubard, Survey Methodology 24 (1998); the delete-one variance of a ratio, Cochran, Sampling
    Techniques.
    """
    units = independent_units(counts, totals, confidence, min_effect)
    if units is None:
        return None
    share = sum(counts) / sum(totals)
    return share_ends(share * units, (1 - share) * units, confidence)


def independent_units(
    counts: Sequence[int], totals: Sequence[int], confidence: float = CONFIDENCE, min_effect: float | None = None
) -> float | None:
    """The number of independent units with as much information as these clusters; None over nothing or one cluster.

    Arguments and sources as for `clustered_interval`.
    """
    hits, sizes = _nonempty_clusters(counts, totals)
    total = float(sizes.sum())
    if len(sizes) < 2:
        return None
    tail = (1 - confidence) / 2
    share = float(hits.sum()) / total
    unclustered_variance = share * (1 - share) / total
    if not unclustered_variance and min_effect is None:
        return total**2 / float((sizes * sizes).sum())
    observed = _variance(hits, sizes) / unclustered_variance if unclustered_variance else 0.0
    effect = max(1.0, observed, min_effect or 0.0)
    degrees = max(1.0, total**2 / float((sizes * sizes).sum()) - 1)
    from harness.statistics.special_functions import special  # here, since it loads slowly

    # With fewer clusters than units there are fewer degrees of freedom, which counts as fewer units (Korn & Graubard).
    narrowing = (float(special.stdtrit(max(1.0, total - 1), 1 - tail)) / float(special.stdtrit(degrees, 1 - tail))) ** 2
    return total / effect * narrowing


def design_effect(shares: Sequence[Sequence[int]], totals: Sequence[int]) -> float | None:
    """The variance of shares with these clusters over that without clusters, for several shares together. At least 1;
    None if no share varies, or with one cluster.

    - shares: for each share, its count in each cluster.
    - totals: the total of each cluster.

    The result is the larger of two effects: of differences between clusters, and of similarity within a cluster. The
    second one guards against a few clusters that happen to be equal.

    Sources: the mean generalised design effect, Rao & Scott, J. Am. Stat. Assoc. 76 (1981); the effect of unequal
    clusters, Kish, Survey Sampling (1965), from the analysis-of-variance correlation, Ridout, Demétrio & Firth,
    Biometrics 55 (1999).
    """
    clustered = unclustered_variance = between = within = 0.0
    for counts in shares:
        hits, sizes = _nonempty_clusters(counts, totals)
        if len(sizes) < 2:
            return None
        share, total = float(hits.sum() / sizes.sum()), float(sizes.sum())
        clustered += _variance(hits, sizes)
        unclustered_variance += share * (1 - share) / total
        between += float(((hits - share * sizes) ** 2 / sizes).sum()) / (len(sizes) - 1)
        within += float((hits * (sizes - hits) / sizes).sum()) / max(1.0, total - len(sizes))
    if not unclustered_variance:
        return None
    _, sizes = _nonempty_clusters(totals, totals)
    total, squares = float(sizes.sum()), float((sizes * sizes).sum())
    mean_size = (total - squares / total) / (len(sizes) - 1)
    correlation = max(0.0, (between - within) / (between + (mean_size - 1) * within))
    observed = max(1.0, clustered / unclustered_variance, 1 + correlation * (squares / total - 1))
    return (len(sizes) * observed + IMAGINED * squares / total) / (len(sizes) + IMAGINED)


def _nonempty_clusters(counts: Sequence[int], totals: Sequence[int]) -> tuple[Column, Column]:
    """Both columns as arrays, without the clusters whose total is 0."""
    import numpy as np  # here: a verb's help knows shares, and needs no arrays

    hits, sizes = np.asarray(counts, np.float64), np.asarray(totals, np.float64)
    is_filled = sizes > 0
    return hits[is_filled], sizes[is_filled]


def _variance(counts: Column, totals: Column) -> float:
    """The delete-one variance of the share of all clusters together."""
    total, clusters = float(totals.sum()), len(totals)
    share = float(counts.sum()) / total
    # How much the share changes if a cluster is left out.
    influences = (counts - share * totals) / (total - totals)
    return (clusters - 1) / clusters * float((influences * influences).sum())


@frozen
class Quantile:
    """A quantile of durations: an observed duration that a share of them does not exceed (0.95 for p95).

    - low_s, high_s: 95 % interval by order statistics; an end is None with too few values.
    - clock_error_s: the most by which errors of the clocks can change value_s.
    """

    share: float
    value_s: float
    low_s: float | None
    high_s: float | None
    clock_error_s: float


def values_needed(share: float) -> int:
    """Least number of values for which a quantile is not simply the largest value: 20 for p95, 100 for p99."""
    return math.ceil(1 / (1 - share) - 1e-9)  # as a float, 1 / (1 − 0.9) is above 10


MAX_ERROR_S = 0.25
"""A duration with a larger error says too little. Quantiles and comparisons leave it out, and reports count it."""


def is_exact_enough(duration: MeasuredDuration) -> bool:
    """Whether the error of a duration is at most MAX_ERROR_S."""
    return duration.error_s <= MAX_ERROR_S


def may_be_nothing(duration: MeasuredDuration) -> bool:
    """Whether the duration has a large error that exceeds it, so that its end may have come before its start."""
    return not is_exact_enough(duration) and duration.error_s >= abs(duration.value_s)


@frozen
class LatencyFigures:
    """Quantiles of `total` durations; each is None without durations.

    - error_s: the median of their errors.
    - excluded: number of further durations, whose errors are too large.
    - p95_between_s: the 95th percentile if all excluded durations were the shortest, and if they were the longest.
    """

    total: int = 0
    p50: Quantile | None = None
    p95: Quantile | None = None
    p99: Quantile | None = None
    error_s: float = 0.0
    excluded: int = 0
    p95_between_s: Interval = (-math.inf, math.inf)

    @property
    def measured(self) -> int:
        """Number of all durations."""
        return self.total + self.excluded


def latency_figures(measured: Sequence[MeasuredDuration], max_error_s: float = MAX_ERROR_S) -> LatencyFigures:
    """Median, 95th and 99th percentile of the durations whose error is at most `max_error_s`."""
    from statistics import median  # here, as numpy, since shares need neither; np.median would import masked arrays

    import numpy as np

    durations = [duration for duration in measured if duration.error_s <= max_error_s]
    excluded = len(measured) - len(durations)
    if not durations:
        return LatencyFigures(excluded=excluded)
    values = np.array([duration.value_s for duration in durations])
    errors = np.array([duration.error_s for duration in durations])
    ordered, earliest, latest = np.sort(values), np.sort(values - errors), np.sort(values + errors)

    def index_of(share: float, total: int) -> int:
        # Of the quantile, among values in ascending order. The 1e-9 keeps 0.95 × 20 from becoming rank 20 by rounding.
        return max(1, math.ceil(share * total - 1e-9)) - 1

    def quantile(share: float) -> Quantile:
        total = len(ordered)
        rank = index_of(share, total)
        low, high = quantile_ranks(total, share)
        value = float(ordered[rank])
        return Quantile(
            share=share,
            value_s=value,
            low_s=None if low is None else float(ordered[low - 1]),
            high_s=None if high is None else float(ordered[high - 1]),
            # Bounds of all values also give bounds of every order statistic.
            clock_error_s=max(value - float(earliest[rank]), float(latest[rank]) - value),
        )

    slowest = index_of(0.95, len(measured))
    fastest = slowest - excluded
    return LatencyFigures(
        total=len(ordered),
        p50=quantile(0.5),
        p95=quantile(0.95),
        p99=quantile(0.99),
        error_s=median(errors.tolist()),
        excluded=excluded,
        p95_between_s=(
            -math.inf if fastest < 0 else float(ordered[fastest]),
            math.inf if slowest >= len(ordered) else float(ordered[slowest]),
        ),
    )
