"""Intervals against scipy's own and against their definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from harness.statistics.intervals import Share, quantile_ranks, wilson


@given(st.integers(1, 2000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_wilson_is_scipys(counts: tuple[int, int]) -> None:
    count, total = counts
    expected = binomtest(count, total).proportion_ci(0.95, method="wilson")
    found = wilson(count, total)
    assert found == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_share_of_nothing() -> None:
    assert Share().value is None
    assert Share().interval is None


def test_shares_add_as_counts() -> None:
    assert Share(1, 2) + Share(3, 8) == Share(4, 10)


@pytest.mark.parametrize(("count", "total"), [(-1, 2), (3, 2)])
def test_impossible_shares_are_refused(count: int, total: int) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        Share(count, total)


@given(st.integers(1, 300), st.sampled_from((0.5, 0.95)))
def test_ranks_are_the_tightest_that_keep_each_tail(total: int, quantile: float) -> None:
    ranks = np.arange(1, total + 1)
    below = binom.cdf(ranks - 1, total, quantile)
    low, high = quantile_ranks(total, quantile)
    allowed_low = ranks[below <= 0.025]
    allowed_high = ranks[below >= 0.975]
    assert low == (allowed_low[-1] if len(allowed_low) else None)
    assert high == (allowed_high[0] if len(allowed_high) else None)


def test_p95_needs_enough_values_for_an_upper_bound() -> None:
    assert quantile_ranks(20, 0.95)[1] is None
    assert quantile_ranks(71, 0.95)[1] is None
    assert quantile_ranks(72, 0.95)[1] == 72
