"""The interval of the shortest pause before a request, on simulated devices that drop what follows the wake phrase."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtri

from harness.statistics.intervals import Share
from harness.wake.requests import RELIABLE, GapRequests, shortest_pause
from tests.known import known

pytestmark = pytest.mark.soak

RUNS = 500
GAPS_MS = (0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1250, 1500, 2000)
COARSE_MS = (0, 250, 500, 750, 1000, 1250, 1500)
MIN_COVERED = 0.93


def truth_ms(first_ms: float, spread_ms: float, woken: float) -> float:
    """The pause from which 90 % arrive, of a device that drops the first milliseconds, normally distributed."""
    if woken < RELIABLE:
        return math.inf
    above_ms = spread_ms * float(ndtri(RELIABLE / woken)) if spread_ms and woken > RELIABLE else 0.0
    return max(0.0, first_ms + above_ms)


@pytest.mark.parametrize("gaps_ms", [GAPS_MS, COARSE_MS], ids=["every 100 ms", "every 250 ms"])
@pytest.mark.parametrize("per_gap", [10, 20, 27])
@pytest.mark.parametrize("woken", [1.0, 0.97], ids=["always wakes", "wakes to 97 %"])
@pytest.mark.parametrize("spread_ms", [0.0, 50.0, 200.0])
@pytest.mark.parametrize("first_ms", [0.0, 60.0, 350.0, 600.0, 2500.0])
def test_the_interval_contains_the_truth(
    first_ms: float,
    spread_ms: float,
    woken: float,
    per_gap: int,
    gaps_ms: tuple[int, ...],
    record_property: Callable[[str, object], None],
) -> None:
    random = np.random.default_rng(36)
    truth, covered = truth_ms(first_ms, spread_ms, woken), 0
    for _ in range(RUNS):
        gaps = []
        for gap_ms in gaps_ms:
            dropped_ms = np.maximum(0.0, random.normal(first_ms, spread_ms, per_gap))
            whole = (dropped_ms <= gap_ms) & (random.random(per_gap) < woken)
            gaps.append(GapRequests(gap_ms, Share(int(whole.sum()), per_gap)))
        low_ms, high_ms = known(shortest_pause(gaps)).interval
        covered += low_ms <= truth <= (math.inf if high_ms is None else high_ms)
    record_property("covered", covered / RUNS)
    assert covered / RUNS >= MIN_COVERED, (truth, covered)


@pytest.mark.parametrize("woken", [0.92, 0.9, 0.89, 0.8], ids="wakes to {:.0%}".format)
def test_a_device_that_loses_requests_after_any_pause(
    woken: float, record_property: Callable[[str, object], None]
) -> None:
    random, covered = np.random.default_rng(37), 0
    truth = 0.0 if woken >= RELIABLE else math.inf
    for _ in range(RUNS):
        gaps = [GapRequests(gap_ms, Share(int(random.binomial(10, woken)), 10)) for gap_ms in GAPS_MS]
        low_ms, high_ms = known(shortest_pause(gaps)).interval
        covered += low_ms <= truth <= (math.inf if high_ms is None else high_ms)
    record_property("covered", covered / RUNS)
    assert covered / RUNS >= MIN_COVERED, covered
