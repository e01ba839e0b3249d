"""Intervals that hold at every look: against the martingale that defines them, and by simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta, gamma

from harness.statistics.intervals import clopper_pearson, garwood
from harness.statistics.sequential import (
    PRIOR_EVENTS,
    PRIOR_EXPOSURE,
    PRIOR_NO,
    PRIOR_YES,
    rate_sequence,
    share_sequence,
)
from tests.unit.statistics.simulations import kept_rate, kept_share


def _mixed_rate(count: int, hours: float, rate: float) -> float:
    """The martingale at a rate: likelihoods over all rates by the prior, against that of this one."""
    prior = gamma(PRIOR_EVENTS, scale=1 / PRIOR_EXPOSURE)

    def weighed(root: float) -> float:
        other = root * root  # in roots, since the prior has no bound at 0
        return float((other / rate) ** count * math.exp(-(other - rate) * hours) * prior.pdf(other) * 2 * root)

    return float(quad(weighed, 0, 6, limit=200)[0])


def _mixed_share(count: int, total: int, share: float) -> float:
    prior = beta(PRIOR_YES, PRIOR_NO)

    def weighed(angle: float) -> float:
        other = math.sin(angle) ** 2
        likelihood = (other / share) ** count * ((1 - other) / (1 - share)) ** (total - count)
        return float(likelihood * prior.pdf(other) * math.sin(2 * angle))

    return float(quad(weighed, 1e-9, math.pi / 2 - 1e-9, limit=200)[0])


@pytest.mark.parametrize(("count", "hours"), [(0, 1.0), (1, 2.0), (3, 7.5), (12, 40.0)])
def test_the_rates_ends_are_where_the_mixture_reaches_twenty(count: int, hours: float) -> None:
    found = rate_sequence(count, hours)
    assert found is not None
    assert [_mixed_rate(count, hours, end) for end in found if end > 0] == pytest.approx(
        [20.0] * (2 if count else 1), rel=1e-3
    )


@pytest.mark.parametrize(("count", "total"), [(0, 10), (1, 20), (7, 30), (30, 30)])
def test_the_shares_ends_are_where_the_mixture_reaches_twenty(count: int, total: int) -> None:
    found = share_sequence(count, total)
    assert found is not None
    inner = [end for end in found if 0 < end < 1]
    assert [_mixed_share(count, total, end) for end in inner] == pytest.approx(
        [20.0] * (2 if 0 < count < total else 1), rel=1e-3
    )


@given(st.integers(0, 100_000), st.floats(1e-4, 1e4))
def test_the_rate_that_was_counted_lies_within(count: int, hours: float) -> None:
    found = rate_sequence(count, hours)
    assert found is not None
    assert 0 <= found[0] <= count / hours <= found[1]


@given(st.integers(0, 10_000), st.floats(4, 1e4))
def test_wider_than_the_interval_of_one_look(count: int, hours: float) -> None:
    # Sooner the two may differ the other way without an event: one keeps 2.5 % above, the other all of 5 %.
    always, once = rate_sequence(count, hours), garwood(count, hours)
    assert always is not None
    assert once is not None
    assert always[1] >= once[1]
    assert always[0] <= once[0]


@given(st.integers(1, 20_000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_shares_stay_within_bounds(counts: tuple[int, int]) -> None:
    found, once = share_sequence(*counts), clopper_pearson(*counts)
    assert found is not None
    assert once is not None
    assert 0 <= found[0] <= counts[0] / counts[1] <= found[1] <= 1


def test_nothing_has_no_interval() -> None:
    assert rate_sequence(0, 0.0) is None
    assert share_sequence(0, 0) is None
    with pytest.raises(ValueError, match="cannot be"):
        rate_sequence(-1, 1.0)
    with pytest.raises(ValueError, match="cannot be"):
        share_sequence(3, 2)


def test_hourly_looks_over_200_hours_keep_the_truth() -> None:
    random = np.random.default_rng(3)
    kept = kept_rate(random, rate=0.5, runs=400, looks=200, interval=rate_sequence)
    assert kept >= 0.95 * 400


def test_garwood_looked_at_hourly_does_not() -> None:
    random = np.random.default_rng(3)
    kept = kept_rate(random, rate=0.5, runs=100, looks=200, interval=garwood)
    assert kept < 0.85 * 100


def test_looks_after_every_tenth_trial_keep_the_true_share() -> None:
    random = np.random.default_rng(4)
    assert kept_share(random, share=0.05, runs=200, trials=1000, every=10) >= 0.95 * 200
