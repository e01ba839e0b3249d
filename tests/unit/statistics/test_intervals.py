"""Intervals against scipy's own and against their definition."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import binom, binomtest, poisson

from harness.statistics.intervals import (
    CONFIDENCE,
    USUAL_DEVIATE,
    Share,
    clopper_pearson,
    clustered_interval,
    design_effect,
    garwood,
    quantile_ranks,
    wilson,
)
from tests.known import known


@given(st.integers(1, 2000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_wilson_interval_matches_scipy(counts: tuple[int, int]) -> None:
    count, total = counts
    expected = binomtest(count, total).proportion_ci(0.95, method="wilson")
    interval = wilson(count, total)
    assert interval == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_the_normal_quantile_matches_scipy() -> None:
    assert ndtri(0.5 + CONFIDENCE / 2) == USUAL_DEVIATE


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_the_median_matches_numpy(values: list[float]) -> None:
    assert median(values) == np.median(values)


@pytest.mark.parametrize(("count", "total"), [(-1, 2), (3, 2)])
def test_impossible_shares_are_refused(count: int, total: int) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        Share(count, total)


@given(st.integers(1, 300) | st.integers(301, 50_000), st.sampled_from((0.5, 0.95, 0.99)))
def test_quantile_ranks_are_the_tightest_valid_ones(total: int, quantile: float) -> None:
    ranks = np.arange(1, total + 1)
    below = binom.cdf(ranks - 1, total, quantile)
    low, high = quantile_ranks(total, quantile)
    allowed_low = ranks[below <= 0.025]
    allowed_high = ranks[below >= 0.975]
    assert low == (allowed_low[-1] if len(allowed_low) else None)
    assert high == (allowed_high[0] if len(allowed_high) else None)


@given(st.integers(1, 3000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_clopper_pearson_interval_matches_scipy(counts: tuple[int, int]) -> None:
    count, total = counts
    expected = binomtest(count, total).proportion_ci(0.95, method="exact")
    assert clopper_pearson(count, total) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(st.integers(0, 5000), st.floats(0.01, 1000))
def test_garwood_interval_leaves_each_tail_its_share(count: int, hours: float) -> None:
    interval = known(garwood(count, hours))
    low, high = interval
    assert poisson.cdf(count, high * hours) == pytest.approx(0.025, rel=1e-6)
    if count:
        assert poisson.sf(count - 1, low * hours) == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == 0.0


def test_an_interval_over_no_trials_is_undefined() -> None:
    assert clopper_pearson(0, 0) is None
    assert garwood(0, 0.0) is None


@pytest.mark.parametrize("wrong", [(3, 2), (-1, 2)])
def test_impossible_counts_are_refused(wrong: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        clopper_pearson(*wrong)
    with pytest.raises(ValueError, match="cannot be"):
        garwood(-1, 1.0)


CLUSTERS = st.lists(
    st.integers(1, 8).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))), min_size=2, max_size=20
)


@given(CLUSTERS)
def test_the_clustered_interval_contains_the_share_and_mirrors(clusters: list[tuple[int, int]]) -> None:
    counts, totals = zip(*clusters, strict=True)
    rest = [total - count for count, total in clusters]
    interval, mirrored = known(clustered_interval(counts, totals)), known(clustered_interval(rest, totals))
    share = sum(counts) / sum(totals)
    assert 0 <= interval[0] <= share <= interval[1] <= 1
    assert interval == pytest.approx((1 - mirrored[1], 1 - mirrored[0]))


def test_clusters_of_one_trial_give_the_exact_interval() -> None:
    counts = [1] * 30 + [0] * 170
    assert clustered_interval(counts, [1] * 200) == pytest.approx(clopper_pearson(30, 200), abs=0.001)


@pytest.mark.parametrize(("counts", "totals"), [([], []), ([1], [2]), ([0, 0], [0, 0])])
def test_empty_data_and_single_cluster_have_no_interval(counts: list[int], totals: list[int]) -> None:
    assert clustered_interval(counts, totals) is None


def test_zero_share_counts_each_cluster_as_one_unit() -> None:
    assert clustered_interval([0] * 10, [8] * 10) == (0.0, pytest.approx(1 - 0.025 ** (1 / 10)))


def test_all_or_nothing_clusters_have_the_full_design_effect() -> None:
    figures = [[8] * 10 + [0] * 10, [0] * 10 + [8] * 10]
    # Delete-one variances of 20 alike clusters are 20/19 of those of a sample; three imagined ones are all or nothing.
    assert design_effect(figures, [8] * 20) == pytest.approx((20 * 8 * 20 / 19 + 3 * 8) / 23)
    assert design_effect([[4] * 20, [4] * 20], [8] * 20) == pytest.approx((20 * 1 + 3 * 8) / 23)
    assert design_effect([[8] * 20, [0] * 20], [8] * 20) is None
    assert design_effect([[3]], [8]) is None


def test_identical_clusters_do_not_hide_possible_variation() -> None:
    """Large ones say the same, and each of them within; the small ones hide that large ones could differ."""
    totals = [12, 1] * 3
    effect = known(design_effect([[12, 0] * 3, [0, 1] * 3], totals))
    assert effect > 0.9 * sum(total * total for total in totals) / sum(totals)


def test_a_rare_share_is_as_clustered_as_the_others() -> None:
    totals = [8] * 24
    ends = []
    for count in range(6):
        interval = known(clustered_interval([1] * count + [0] * (24 - count), totals, min_effect=5.0))
        ends.append(interval[1])
    assert ends == sorted(ends)
    rare = known(clustered_interval([1, 1] + [0] * 22, totals))
    assert ends[2] > 2 * rare[1]
