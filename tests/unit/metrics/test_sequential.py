"""Wald's test: its boundaries, the planning number of the specification, and how often it errs."""

import math

import numpy as np
import pytest

from harness.metrics.sequential import Verdict, boundaries, hours_to_pass, rate_verdict, share_verdict
from harness.model.scenario import SequentialTest
from tests.unit.metrics.simulations import rate_verdicts, share_verdicts

RATE = SequentialTest(0.1, 0.5)
SHARE = SequentialTest(0.02, 0.08)


def test_a_tenth_against_a_half_passes_at_7_4_hours() -> None:
    assert hours_to_pass(RATE) == pytest.approx(7.4, abs=0.05)
    assert rate_verdict(RATE, 0, 7.3) is Verdict.OPEN
    assert rate_verdict(RATE, 0, 7.4) is Verdict.PASSED


def test_many_events_fail_at_once() -> None:
    assert rate_verdict(RATE, 1, 0.1) is Verdict.OPEN
    assert rate_verdict(RATE, 2, 0.1) is Verdict.FAILED


def test_nothing_decides_nothing() -> None:
    assert rate_verdict(RATE, 0, 0.0) is Verdict.OPEN
    assert share_verdict(SHARE, 0, 0) is Verdict.OPEN


def test_shares() -> None:
    assert share_verdict(SHARE, 0, 200) is Verdict.PASSED
    assert share_verdict(SHARE, 20, 100) is Verdict.FAILED


def test_the_two_errors_have_their_own_boundaries() -> None:
    passed, failed = boundaries(SequentialTest(0.1, 0.5, alpha=0.01, beta=0.2))
    assert (passed, failed) == pytest.approx((math.log(0.2 / 0.99), math.log(0.8 / 0.01)))


@pytest.mark.parametrize("wrong", [SequentialTest(0.5, 0.1), SequentialTest(0, 1), SequentialTest(0.1, 0.5, 0.5, 0.5)])
def test_a_test_that_cannot_decide_is_refused(wrong: SequentialTest) -> None:
    with pytest.raises(ValueError, match="sequential test"):
        boundaries(wrong)
    with pytest.raises(ValueError, match="below 1"):
        share_verdict(SequentialTest(0.5, 1.5), 0, 1)


def test_error_rates_of_the_rate_are_at_most_as_declared() -> None:
    random = np.random.default_rng(5)
    runs = 1000
    assert rate_verdicts(random, RATE, RATE.good, runs, 0.25)[Verdict.FAILED] <= RATE.alpha * runs
    assert rate_verdicts(random, RATE, RATE.bad, runs, 0.25)[Verdict.PASSED] <= RATE.beta * runs


def test_error_rates_of_the_share_are_at_most_as_declared() -> None:
    random = np.random.default_rng(6)
    runs = 1000
    assert share_verdicts(random, SHARE, SHARE.good, runs)[Verdict.FAILED] <= SHARE.alpha * runs
    assert share_verdicts(random, SHARE, SHARE.bad, runs)[Verdict.PASSED] <= SHARE.beta * runs
