"""Wald's test: its boundaries, the planning number of the specification, and how often it errs."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from harness.model.scenario import SequentialTest
from harness.statistics.sequential import (
    Verdict,
    hours_to_pass,
    rate_boundaries,
    rate_verdict,
    share_boundaries,
    share_verdict,
    wald,
)
from tests.unit.statistics.simulations import rate_verdicts, share_verdicts

RATE = SequentialTest(0.1, 0.5)
SHARE = SequentialTest(0.02, 0.08)


def test_a_tenth_against_a_half_passes_at_7_4_hours() -> None:
    assert hours_to_pass(RATE) == pytest.approx(7.4, abs=0.05)
    assert rate_verdict(RATE, 0, 7.3) is Verdict.OPEN
    assert rate_verdict(RATE, 0, 7.45) is Verdict.PASSED


def test_many_events_fail_at_once() -> None:
    assert rate_verdict(RATE, 1, 0.1) is Verdict.OPEN
    assert rate_verdict(RATE, 2, 0.1) is Verdict.FAILED


def test_nothing_decides_nothing() -> None:
    assert rate_verdict(RATE, 0, 0.0) is Verdict.OPEN
    assert share_verdict(SHARE, 0, 0) is Verdict.OPEN


def test_shares() -> None:
    assert share_verdict(SHARE, 0, 200) is Verdict.PASSED
    assert share_verdict(SHARE, 20, 100) is Verdict.FAILED


def test_walds_boundaries_have_each_error_in_its_place() -> None:
    test = SequentialTest(0.1, 0.5, alpha=0.01, beta=0.2)
    assert wald(test) == pytest.approx((math.log(0.2 / 0.99), math.log(0.8 / 0.01)))


@pytest.mark.parametrize("test", [RATE, SHARE, SequentialTest(0.02, 0.025), SequentialTest(0.001, 0.5)])
def test_boundaries_lie_between_walds_and_those_that_are_safe_without_a_look_at_the_rest(test: SequentialTest) -> None:
    low, high = wald(test)
    for passed, failed in (rate_boundaries(test), share_boundaries(test)):
        assert math.log(test.beta) <= passed <= low
        assert high <= failed <= -math.log(test.alpha)


@pytest.mark.parametrize("wrong", [SequentialTest(0.5, 0.1), SequentialTest(0, 1), SequentialTest(0.1, 0.5, 0.5, 0.5)])
def test_a_test_that_cannot_decide_is_refused(wrong: SequentialTest) -> None:
    with pytest.raises(ValueError, match="sequential test"):
        rate_boundaries(wrong)
    with pytest.raises(ValueError, match="below 1"):
        share_verdict(SequentialTest(0.5, 1.5), 0, 1)


def _exactly(test: SequentialTest, share: float, trials: int = 20_000) -> dict[Verdict, float]:
    """How likely each verdict is, trial by trial over all counts that are still open."""
    found = dict.fromkeys(Verdict, 0.0)
    alive = {0: 1.0}
    for total in range(1, trials + 1):
        after: dict[int, float] = {}
        for count, likely in alive.items():
            after[count] = after.get(count, 0.0) + likely * (1 - share)
            after[count + 1] = after.get(count + 1, 0.0) + likely * share
        alive = {}
        for count, likely in after.items():
            verdict = share_verdict(test, count, total)
            found[verdict] += likely if verdict is not Verdict.OPEN else 0.0
            if verdict is Verdict.OPEN and likely > 1e-15:
                alive[count] = likely
    return found


@pytest.mark.parametrize("test", [SHARE, SequentialTest(0.1, 0.4, 0.1, 0.02), SequentialTest(0.001, 0.5)])
def test_error_rates_of_the_share_are_at_most_as_declared(test: SequentialTest) -> None:
    good, bad = _exactly(test, test.good, 3000), _exactly(test, test.bad, 3000)
    assert good[Verdict.PASSED] + good[Verdict.FAILED] == pytest.approx(1.0, abs=1e-6)
    assert good[Verdict.FAILED] <= test.alpha
    assert bad[Verdict.PASSED] <= test.beta


def _at_most(count: int, runs: int, declared: float) -> bool:
    """No evidence, at one in a thousand, of more than was declared."""
    return bool(binomtest(count, runs, declared, alternative="greater").pvalue > 0.001)


def test_error_rates_by_simulation() -> None:
    random, runs = np.random.default_rng(5), 1500
    assert _at_most(rate_verdicts(random, RATE, RATE.good, runs, 0.25)[Verdict.FAILED], runs, RATE.alpha)
    assert _at_most(rate_verdicts(random, RATE, RATE.bad, runs, 0.25)[Verdict.PASSED], runs, RATE.beta)
    assert _at_most(share_verdicts(random, SHARE, SHARE.good, runs)[Verdict.FAILED], runs, SHARE.alpha)
    assert _at_most(share_verdicts(random, SHARE, SHARE.bad, runs)[Verdict.PASSED], runs, SHARE.beta)
