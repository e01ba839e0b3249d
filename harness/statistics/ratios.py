"""Compares two systems by ratios of sums over the same units, such as F1: intervals by resampling, p by swapping.

Units with the same counts share a row, so the time of a draw depends only on the number of different rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.model.frozen import frozen
from harness.statistics.intervals import CONFIDENCE, TAIL, Interval
from harness.statistics.significance import Discordance

Numbers = NDArray[np.float64]
K = TypeVar("K")
MIN_RESAMPLED_UNITS = 10
"""With fewer units there is no interval."""
_MAX_VALUES_AT_ONCE = 4_000_000
"""Most values that are drawn and in memory at once."""


@frozen
class MetricDifference:
    """A metric of the first system minus that of the second. p: two-sided probability of such a difference by chance.

    All are None over nothing. The interval is also None over few units, and if all samples are equal.
    """

    first: float | None
    second: float | None
    difference: float | None
    interval: Interval | None
    p: float | None


@frozen
class RatioColumns(Generic[K]):
    """Counts of units. A row stands for all units whose counts are equal in every system.

    - unit_counts: number of units of each row.
    - numerators, denominators: shape (systems, rows, ratios).
    - columns: for each metric, the ratios whose mean it is.
    - empty_values: value of a ratio over nothing, for metrics that count it; a metric without an entry is then NaN.
    """

    unit_counts: NDArray[np.int64]
    numerators: Numbers
    denominators: Numbers
    columns: Mapping[K, slice]
    empty_values: Mapping[K, float]

    @property
    def units(self) -> int:
        """Number of all units."""
        return int(self.unit_counts.sum())

    def estimates(self) -> dict[K, Numbers]:
        """Each metric over all units, shape (systems,). NaN over nothing."""
        weights = self.unit_counts.astype(np.float64)[None]
        return {metric: values[:, 0] for metric, values in self._metrics([weights] * len(self.numerators)).items()}

    def differences(self, shares: Collection[K], *, draws: int, seed: int) -> dict[K, MetricDifference]:
        """The metrics of the first system minus those of the second.

        shares: metrics that are shares: each unit is right or wrong.

        Shares: Newcombe's interval of paired shares, McNemar's exact p. Other metrics: the middle 95 % of the
        difference over bootstrap samples, with the same units for both. Their p comes from random swaps of the two
        systems within units.
        Sources: Efron & Tibshirani, An Introduction to the Bootstrap, 13 (the interval); Noreen, Computer-Intensive
        Methods for Testing Hypotheses, 1989 (approximate randomisation).
        """
        resampled, swapped = self.resampled(draws, seed), self.swapped(draws, seed + 1)
        differing: dict[K, MetricDifference] = {}
        for metric, values in self.estimates().items():
            first, second = (None if np.isnan(value) else float(value) for value in values)
            if first is None or second is None:
                differing[metric] = MetricDifference(first, second, None, None, None)
            elif metric in shares:
                estimate = self._discordance(metric).difference
                if estimate is None:
                    differing[metric] = MetricDifference(first, second, None, None, None)
                else:
                    differing[metric] = MetricDifference(
                        first, second, estimate.difference, estimate.interval, estimate.p
                    )
            else:
                interval = None
                if self.units >= MIN_RESAMPLED_UNITS:
                    interval = middle_interval(resampled[metric][0] - resampled[metric][1])
                by_chance = np.abs(swapped[metric][0] - swapped[metric][1])
                # The margin is needed since sums in another order may differ in their last digits.
                as_far = int(np.count_nonzero(by_chance >= abs(first - second) - 1e-12))
                p = (1 + as_far) / (1 + draws)
                differing[metric] = MetricDifference(first, second, first - second, interval, p)
        return differing

    def resampled(self, draws: int, seed: int) -> dict[K, Numbers]:
        """Each metric over samples with replacement, with the same units for every system. Shape (systems, draws)."""
        rng = np.random.default_rng(seed)
        shares = self.unit_counts / self.units

        def draw_weights(size: int) -> list[Numbers]:
            return [rng.multinomial(self.units, shares, size).astype(np.float64)] * len(self.numerators)

        return self._evaluate_draws(draws, draw_weights)

    def swapped(self, draws: int, seed: int) -> dict[K, Numbers]:
        """Each metric of two systems that are swapped at random within units. Shape (2, draws)."""
        rng = np.random.default_rng(seed)

        def draw_weights(size: int) -> list[Numbers]:
            unchanged = rng.binomial(self.unit_counts, 0.5, (size, len(self.unit_counts))).astype(np.float64)
            return [unchanged, self.unit_counts - unchanged]

        # Each row occurs twice: unchanged and swapped.
        numerators, denominators = (
            np.concatenate([side, side[::-1]], 1) for side in (self.numerators, self.denominators)
        )
        doubled = RatioColumns(np.tile(self.unit_counts, 2), numerators, denominators, self.columns, self.empty_values)
        return doubled._evaluate_draws(draws, lambda size: [np.concatenate(draw_weights(size), 1)] * 2)

    def without_each(self) -> dict[K, Numbers]:
        """Each metric over all rows except one, shape (systems, rows), for `jackknife_interval`. Each row must be one
        unit."""
        return self._metrics([1.0 - np.eye(len(self.unit_counts))] * len(self.numerators))

    def _evaluate_draws(self, draws: int, draw_weights: Callable[[int], list[Numbers]]) -> dict[K, Numbers]:
        """Each metric of random weights, shape (systems, draws). draw_weights: returns the weights of so many draws, as
        for `_metrics`."""
        at_once = max(1, _MAX_VALUES_AT_ONCE // max(1, len(self.unit_counts)))
        sizes = [min(at_once, draws - begin) for begin in range(0, draws, at_once)]
        blocks = [self._metrics(draw_weights(size)) for size in sizes]
        return {metric: np.concatenate([block[metric] for block in blocks], 1) for metric in self.columns}

    def _metrics(self, weights: list[Numbers]) -> dict[K, Numbers]:
        """Each metric of weighted rows, shape (systems, samples). weights: for each system, shape (samples, rows)."""
        numerators = np.stack([weight @ side for weight, side in zip(weights, self.numerators, strict=True)])
        denominators = np.stack([weight @ side for weight, side in zip(weights, self.denominators, strict=True)])
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.where(denominators > 0, numerators / denominators, np.nan)
        for metric, value in self.empty_values.items():
            of_metric = ratios[..., self.columns[metric]]
            ratios[..., self.columns[metric]] = np.where(np.isnan(of_metric), value, of_metric)
        return {
            metric: ratios[..., metric_columns].mean(axis=-1)
            if metric_columns.stop > metric_columns.start
            else np.full(ratios.shape[:2], np.nan)
            for metric, metric_columns in self.columns.items()
        }

    def _discordance(self, metric: K) -> Discordance:
        """Numbers of units that both systems, only one or neither has right, among those that count for both."""
        column = self.columns[metric].start
        counted = np.all(self.denominators[:2, :, column] > 0, axis=0)
        unit_counts = self.unit_counts[counted]
        return Discordance.of(*(np.repeat(side[counted, column] > 0, unit_counts) for side in self.numerators[:2]))


def sum_by_cluster(parts: Sequence[RatioColumns[K]]) -> RatioColumns[K]:
    """A row for each cluster (a talker, for example), with the sums over its units. parts: the units of each cluster,
    with the same ratios."""

    def sums(tables: Iterable[Numbers]) -> Numbers:
        weighted = [np.einsum("r,srm->sm", part.unit_counts, table) for part, table in zip(parts, tables, strict=True)]
        return np.stack(weighted, axis=1)

    numerators, denominators = sums(part.numerators for part in parts), sums(part.denominators for part in parts)
    return RatioColumns(
        np.ones(len(parts), np.int64), numerators, denominators, parts[0].columns, parts[0].empty_values
    )


MIN_CLUSTERS = 3
"""With fewer clusters there is no interval."""


def jackknife_interval(value: float | None, without_each: Numbers) -> Interval | None:
    """95 % interval of a value. without_each: the value without each cluster, shape (clusters,). None for too few
    clusters.

    Uses the delete-one variance, and Student's t since there are few clusters.
    Source: Shao & Tu, The Jackknife and Bootstrap, 1995, 2.1.
    """
    clusters = len(without_each)
    if value is None or clusters < MIN_CLUSTERS or np.isnan(without_each).any():
        return None
    from harness.statistics.special_functions import special  # here, since it loads slowly

    variance = (clusters - 1) / clusters * float(((without_each - without_each.mean()) ** 2).sum())
    half = float(special.stdtrit(clusters - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)
    return (value - half, value + half) if half else None


def middle_interval(values: Numbers) -> Interval | None:
    """The interval of the middle 95 % of samples; NaN samples do not count. None if all samples are equal."""
    defined = values[~np.isnan(values)]
    if not defined.size or defined.min() == defined.max():
        return None
    low, high = np.quantile(defined, [TAIL, 1 - TAIL])
    return float(low), float(high)
