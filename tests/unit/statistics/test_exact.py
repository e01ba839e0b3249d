"""Exact intervals against scipy's own and against their definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, poisson

from harness.statistics.intervals import clopper_pearson, garwood


@given(st.integers(1, 3000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_clopper_pearson_is_scipys(counts: tuple[int, int]) -> None:
    count, total = counts
    expected = binomtest(count, total).proportion_ci(0.95, method="exact")
    assert clopper_pearson(count, total) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(st.integers(0, 5000), st.floats(0.01, 1000))
def test_garwoods_ends_leave_each_tail_its_part(count: int, hours: float) -> None:
    found = garwood(count, hours)
    assert found is not None
    low, high = found
    assert poisson.cdf(count, high * hours) == pytest.approx(0.025, rel=1e-6)
    if count:
        assert poisson.sf(count - 1, low * hours) == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == 0.0


def test_the_manuals_example_has_an_interval() -> None:
    found = garwood(118, 142.984)
    assert found is not None
    assert found[0] < 118 / 142.984 < found[1]


def test_nothing_has_no_interval() -> None:
    assert clopper_pearson(0, 0) is None
    assert garwood(0, 0.0) is None


@pytest.mark.parametrize("wrong", [(3, 2), (-1, 2)])
def test_impossible_counts_are_refused(wrong: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        clopper_pearson(*wrong)
    with pytest.raises(ValueError, match="cannot be"):
        garwood(-1, 1.0)
