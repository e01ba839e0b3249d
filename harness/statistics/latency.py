"""Differences between durations in seconds. Their intervals include what the errors of the clocks may add.

The difference is the median of the paired differences, or without pairs the difference of the medians. The p is
that of the hypothesis that errors of the clocks explain the whole shift.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from harness.model.time import MeasuredDuration
from harness.statistics.intervals import Interval, Quantile, latency_figures, quantile_ranks
from harness.statistics.significance import Difference, independent_difference, mcnemar


def paired_shift(differences: Sequence[MeasuredDuration]) -> Difference | None:
    """The shift between paired durations, from their differences, by the sign test; None without differences.

    Only a difference that exceeds the error of its clocks counts as a sign. Source: Conover, Practical Nonparametric
    Statistics, 3.4.
    """
    if not differences:
        return None
    lower_bounds = sorted(difference.value_s - difference.error_s for difference in differences)
    upper_bounds = sorted(difference.value_s + difference.error_s for difference in differences)
    total = len(differences)
    low, high = quantile_ranks(total, 0.5)
    ends = (-math.inf if low is None else lower_bounds[low - 1], math.inf if high is None else upper_bounds[high - 1])
    # Differences without a certain sign count against the more frequent sign.
    signs = max(sum(bound > 0 for bound in lower_bounds), sum(bound < 0 for bound in upper_bounds))
    p = mcnemar(total - signs, signs) if 2 * signs > total else None
    # Not the lower of two middle differences, or exchanging the two sides would change more than the sign.
    return Difference(median(difference.value_s for difference in differences), ends, 1.0 if p is None else p)


def unpaired_shift(first: Sequence[MeasuredDuration], second: Sequence[MeasuredDuration]) -> Difference | None:
    """The first minus the second, for different stimuli, by Mann and Whitney's test; None if one side has no durations.

    Interval: the distances of both medians from the ends of their intervals, added as squares. For the test, each of
    the first is moved towards no difference by as much as the clocks may err.
    Sources: Mann & Whitney, Annals of Mathematical Statistics 18 (1947); Zou & Donner (`unpaired_share_difference`).
    """
    from scipy.stats import mannwhitneyu

    p50, other = latency_figures(first, math.inf).p50, latency_figures(second, math.inf).p50
    if p50 is None or other is None:
        return None
    shift, error_s = p50.value_s - other.value_s, p50.clock_error_s + other.clock_error_s
    p = 1.0
    if abs(shift) > error_s:
        nearer = [duration.value_s - math.copysign(error_s, shift) for duration in first]
        p = float(mannwhitneyu(nearer, [duration.value_s for duration in second]).pvalue)
    return independent_difference((p50.value_s, _ends(p50)), (other.value_s, _ends(other)), p, error_s)


def _ends(quantile: Quantile) -> Interval:
    """The interval of a quantile, infinite on a side with too few values."""
    return (
        -math.inf if quantile.low_s is None else quantile.low_s,
        math.inf if quantile.high_s is None else quantile.high_s,
    )
