"""Quantiles of durations, with the error of few values and the error of the clocks kept apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.model.time import Measured
from harness.statistics.intervals import quantile_ranks


@dataclass(frozen=True, slots=True)
class Quantile:
    """An observed duration that `share` of the observed do not exceed.

    low_s, high_s: 95 % interval by order statistics; None where there are too few values to say.
    clock_error_s: how far the clocks' errors can move value_s at most.
    """

    share: float
    value_s: float
    low_s: float | None
    high_s: float | None
    clock_error_s: float


@dataclass(frozen=True, slots=True)
class LatencyFigures:
    """Of `total` durations; the quantiles are None when there are none."""

    total: int = 0
    p50: Quantile | None = None
    p95: Quantile | None = None
    p99: Quantile | None = None


def latency_figures(durations: Sequence[Measured]) -> LatencyFigures:
    """Median, 95th and 99th percentile."""
    if not durations:
        return LatencyFigures()
    values = np.array([one.value_s for one in durations])
    errors = np.array([one.error_s for one in durations])
    ordered, earliest, latest = np.sort(values), np.sort(values - errors), np.sort(values + errors)

    def quantile(share: float) -> Quantile:
        total = len(ordered)
        # The 1e-9 keeps 0.95 × 20 from becoming rank 20 by rounding.
        at = max(1, math.ceil(share * total - 1e-9)) - 1
        low, high = quantile_ranks(total, share)
        value = float(ordered[at])
        return Quantile(
            share=share,
            value_s=value,
            low_s=None if low is None else float(ordered[low - 1]),
            high_s=None if high is None else float(ordered[high - 1]),
            # Bounds on every value bound every order statistic.
            clock_error_s=max(value - float(earliest[at]), float(latest[at]) - value),
        )

    return LatencyFigures(total=len(ordered), p50=quantile(0.5), p95=quantile(0.95), p99=quantile(0.99))
