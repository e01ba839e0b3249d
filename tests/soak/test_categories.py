"""The promises of category figures: intervals hold the share of all such queries, and tests seldom cry wolf."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.judgment import Category
from harness.rating.figures.categories import category_figures
from harness.rating.figures.category_comparison import compare_categories, trials_of_side
from harness.statistics.intervals import clustered_interval, design_effect, wilson
from tests.unit.rating.figures.rated_rows import Fleet, simulated

RUNS = 1000
SPREAD_OUT = [
    Fleet(40, 1),
    Fleet(40, 2),
    Fleet(12, 6),
    Fleet(40, 4, spread=0.9),
    Fleet(100, 3, 0.9, 0.9),
    Fleet(60, 3, own=0.1),
]


@pytest.mark.soak
@pytest.mark.parametrize("fleet", SPREAD_OUT, ids=str)
def test_intervals_of_shares_hold_the_share_of_all_such_queries(fleet: Fleet) -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(RUNS):
        low, high = category_figures(trials_of_side(simulated(rng, fleet), "a")).share(Category.CORRECT).interval or (
            1.0,
            0.0,
        )
        covered += low <= fleet.first <= high
    assert covered >= 0.93 * RUNS, covered / RUNS


@pytest.mark.soak
def test_wilson_on_responses_would_not() -> None:
    rng = np.random.default_rng(5)
    fleet = Fleet(40, 4, spread=0.9)
    covered = 0
    for _ in range(RUNS):
        right = category_figures(trials_of_side(simulated(rng, fleet), "a")).share(Category.CORRECT)
        low, high = wilson(right.count, right.total) or (1.0, 0.0)
        covered += low <= fleet.first <= high
    assert covered <= 0.8 * RUNS, covered / RUNS


@pytest.mark.soak
@pytest.mark.parametrize("fleet", SPREAD_OUT, ids=str)
def test_equally_good_devices_are_seldom_told_apart(fleet: Fleet) -> None:
    rng = np.random.default_rng(6)
    comparisons = [compare_categories(simulated(rng, fleet), "a", "b", Category.CORRECT) for _ in range(RUNS)]
    for which in ("swap", "all_swap"):
        called = sum(p is not None and p.p <= 0.05 for p in (getattr(comparison, which) for comparison in comparisons))
        assert called <= 0.065 * RUNS, (which, called / RUNS)


@pytest.mark.soak
@pytest.mark.parametrize(
    "fleet",
    [
        Fleet(40, 1, 0.8, 0.6),
        Fleet(40, 3, 0.8, 0.6),
        Fleet(15, 4, 0.75, 0.5),
        Fleet(100, 2, 0.9, 0.85),
        Fleet(40, 3, 0.7, 0.7),
    ],
    ids=str,
)
def test_intervals_of_differences_hold_them(fleet: Fleet) -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(RUNS):
        difference = compare_categories(simulated(rng, fleet), "a", "b", Category.CORRECT).difference
        assert difference is not None
        low, high = difference.interval or (1.0, 0.0)
        covered += low <= fleet.first - fleet.second <= high
    assert covered >= 0.93 * RUNS, covered / RUNS


RARE = np.array([0.6, 0.15, 0.1, 0.08, 0.04, 0.02, 0.01])


@pytest.mark.soak
@pytest.mark.parametrize(
    ("queries", "repeats", "alike"), [(24, 8, 0.8), (24, 8, 0.3), (60, 3, 0.8), (12, 4, 0.8), (100, 2, 0.0)]
)
def test_intervals_of_rare_categories_hold_too(queries: int, repeats: int, alike: float) -> None:
    rng = np.random.default_rng(8)
    covered = np.zeros(len(RARE))
    totals = [repeats] * queries
    for _ in range(RUNS):
        usual = rng.choice(len(RARE), queries, p=RARE)
        counts = np.zeros((len(RARE), queries), np.int64)
        for _ in range(repeats):
            other = rng.choice(len(RARE), queries, p=RARE)
            counts[np.where(rng.random(queries) < alike, usual, other), np.arange(queries)] += 1
        effect = design_effect(counts.tolist(), totals)
        for index, share in enumerate(RARE):
            low, high = clustered_interval(counts[index].tolist(), totals, min_effect=effect) or (1.0, 0.0)
            covered[index] += low <= share <= high
    assert (covered >= 0.94 * RUNS).all(), covered / RUNS
