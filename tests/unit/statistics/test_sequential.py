"""Wald's test and the planning numbers of the specification."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta, binom, binomtest, gamma, poisson

from harness.model.scenario import SequentialTest
from harness.statistics.intervals import Share, clopper_pearson, garwood
from harness.statistics.planning import (
    Discordant,
    design_effect,
    files_for_difference,
    hours_for_claim,
    hours_with_power,
    mcnemar_power,
    utterances_for_claim,
    utterances_for_events,
    utterances_with_power,
    voices_for_claim,
)
from harness.statistics.sequential import (
    PRIOR_EVENTS,
    PRIOR_EXPOSURE,
    PRIOR_NO,
    PRIOR_YES,
    SequentialVerdict,
    hours_to_pass,
    rate_boundaries,
    rate_sequence,
    rate_verdict,
    share_boundaries,
    share_sequence,
    share_verdict,
    wald,
)
from harness.statistics.voices import over_voices
from tests.known import known
from tests.unit.statistics.simulations import kept_rate

RATE = SequentialTest(0.1, 0.5)
SHARE = SequentialTest(0.02, 0.08)


def test_rate_test_passes_at_7_4_hours() -> None:
    assert hours_to_pass(RATE) == pytest.approx(7.4, abs=0.05)
    assert rate_verdict(RATE, 0, 7.3) is SequentialVerdict.OPEN
    assert rate_verdict(RATE, 0, 7.45) is SequentialVerdict.PASSED


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        (rate_verdict(RATE, 0, 0.0), SequentialVerdict.OPEN),
        (rate_verdict(RATE, 1, 0.1), SequentialVerdict.OPEN),
        (rate_verdict(RATE, 2, 0.1), SequentialVerdict.FAILED),
        (share_verdict(SHARE, 0, 0), SequentialVerdict.OPEN),
        (share_verdict(SHARE, 0, 200), SequentialVerdict.PASSED),
        (share_verdict(SHARE, 20, 100), SequentialVerdict.FAILED),
    ],
)
def test_a_sequential_test_gives_the_expected_verdict(result: SequentialVerdict, verdict: SequentialVerdict) -> None:
    assert result is verdict


def test_walds_boundaries_use_each_error_probability_correctly() -> None:
    test = SequentialTest(0.1, 0.5, alpha=0.01, beta=0.2)
    assert wald(test) == pytest.approx((math.log(0.2 / 0.99), math.log(0.8 / 0.01)))


@pytest.mark.parametrize("test", [RATE, SHARE, SequentialTest(0.02, 0.025), SequentialTest(0.001, 0.5)])
def test_boundaries_lie_between_wald_and_worst_case(test: SequentialTest) -> None:
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


def _exactly(test: SequentialTest, share: float, trials: int = 20_000) -> dict[SequentialVerdict, float]:
    """How likely each verdict is, trial by trial over all counts that are still open."""
    probabilities = dict.fromkeys(SequentialVerdict, 0.0)
    alive = {0: 1.0}
    for total in range(1, trials + 1):
        after: dict[int, float] = {}
        for count, likely in alive.items():
            after[count] = after.get(count, 0.0) + likely * (1 - share)
            after[count + 1] = after.get(count + 1, 0.0) + likely * share
        alive = {}
        for count, likely in after.items():
            verdict = share_verdict(test, count, total)
            probabilities[verdict] += likely if verdict is not SequentialVerdict.OPEN else 0.0
            if verdict is SequentialVerdict.OPEN and likely > 1e-15:
                alive[count] = likely
    return probabilities


@pytest.mark.parametrize("test", [SHARE, SequentialTest(0.1, 0.4, 0.1, 0.02), SequentialTest(0.001, 0.5)])
def test_error_rates_of_the_share_are_at_most_as_declared(test: SequentialTest) -> None:
    good, bad = _exactly(test, test.good, 3000), _exactly(test, test.bad, 3000)
    assert good[SequentialVerdict.PASSED] + good[SequentialVerdict.FAILED] == pytest.approx(1.0, abs=1e-6)
    assert good[SequentialVerdict.FAILED] <= test.alpha
    assert bad[SequentialVerdict.PASSED] <= test.beta


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
def test_rate_interval_ends_where_the_mixture_reaches_twenty(count: int, hours: float) -> None:
    interval = known(rate_sequence(count, hours))
    assert [_mixed_rate(count, hours, end) for end in interval if end > 0] == pytest.approx(
        [20.0] * (2 if count else 1), rel=1e-3
    )


@pytest.mark.parametrize(("count", "total"), [(0, 10), (1, 20), (7, 30), (30, 30)])
def test_share_interval_ends_where_the_mixture_reaches_twenty(count: int, total: int) -> None:
    interval = known(share_sequence(count, total))
    inner = [end for end in interval if 0 < end < 1]
    assert [_mixed_share(count, total, end) for end in inner] == pytest.approx(
        [20.0] * (2 if 0 < count < total else 1), rel=1e-3
    )


@given(st.integers(0, 100_000), st.floats(1e-4, 1e4))
def test_the_sequential_interval_contains_the_observed_rate(count: int, hours: float) -> None:
    interval = known(rate_sequence(count, hours))
    assert 0 <= interval[0] <= count / hours <= interval[1]


@given(st.integers(0, 10_000), st.floats(4, 1e4))
def test_sequential_interval_is_wider_than_a_single_look(count: int, hours: float) -> None:
    # Sooner the two may differ the other way without an event: one keeps 2.5 % above, the other all of 5 %.
    always, single = known(rate_sequence(count, hours)), known(garwood(count, hours))
    assert always[1] >= single[1]
    assert always[0] <= single[0]


@given(st.integers(1, 20_000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
@example((99_999, 100_000))  # nearly all
def test_the_sequential_interval_contains_the_observed_share(counts: tuple[int, int]) -> None:
    interval = known(share_sequence(*counts))
    assert 0 <= interval[0] <= counts[0] / counts[1] <= interval[1] <= 1


def test_a_sequential_interval_without_data_is_undefined() -> None:
    assert rate_sequence(0, 0.0) is None
    assert share_sequence(0, 0) is None
    with pytest.raises(ValueError, match="cannot be"):
        rate_sequence(-1, 1.0)
    with pytest.raises(ValueError, match="cannot be"):
        share_sequence(3, 2)


def test_repeated_looks_cover_the_true_rate() -> None:
    """Over 4,000 runs, with shares and verdicts: tests/soak/test_intervals.py."""
    covered_runs = kept_rate(np.random.default_rng(3), rate=0.5, runs=60, looks=100, interval=rate_sequence)
    assert covered_runs >= 0.95 * 60


@pytest.mark.parametrize(("events", "hours"), [(0, 30.0), (1, 47.4), (2, 63.0)])
def test_hours_for_less_than_one_in_ten_hours(events: int, hours: float) -> None:
    assert hours_for_claim(0.1, events) == pytest.approx(hours, abs=0.05)


def test_hours_with_power_match_the_claim() -> None:
    plan = hours_with_power(0.1, 0.02, 0.8)
    assert (round(plan.amount, 1), plan.events) == (63.0, 2)
    assert plan.power == pytest.approx(poisson.cdf(2, 0.02 * plan.amount))
    assert plan.power >= 0.8
    assert poisson.cdf(1, 0.02 * 47.44) < 0.8
    assert hours_with_power(0.1, 0).events == 0


def test_utterances_for_events_is_the_smallest_number() -> None:
    for events in (0, 1, 3, 17):
        least = utterances_for_events(0.05, events)
        shown, before = known(clopper_pearson(events, least)), known(clopper_pearson(events, least - 1))
        assert shown[1] < 0.05 <= before[1]
    assert utterances_for_events(0.05, 3) == 173  # 2 % of 173, rounded, is 3: the figure of a claim without power
    assert utterances_for_claim(0.05, 0.02) == 173


def test_utterances_with_power_reach_the_power() -> None:
    plan = utterances_with_power(0.05, 0.02, 0.9)
    assert plan.power == pytest.approx(binom.cdf(plan.events, int(plan.amount), 0.02))
    assert plan.power >= 0.9


def test_mcnemar_power_matches_simulation() -> None:
    differing = Discordant(0.08, 0.03)
    random = np.random.default_rng(1)
    drawn = random.multinomial(200, [0.08, 0.03, 0.89], 600)
    significant = [a + b > 0 and binomtest(int(a), int(a + b)).pvalue <= 0.05 for a, b, _ in drawn[:, :3]]
    assert mcnemar_power(200, differing) == pytest.approx(np.mean(significant), abs=0.06)
    assert mcnemar_power(4, differing) == 0  # too few to ever be significant
    assert mcnemar_power(100, Discordant(0, 0)) == 0


def test_files_for_difference_have_the_power() -> None:
    differing = Discordant.of(0.05, 0.03)
    files = files_for_difference(differing)
    assert mcnemar_power(files, differing) >= 0.8 > mcnemar_power(files - 40, differing)
    alike = files_for_difference(Discordant.of(0.05, 0.03, 0.02))
    assert alike < files / 2  # systems that err on the same files are told apart by fewer
    with pytest.raises(ValueError, match="equally good"):
        files_for_difference(Discordant(0.1, 0.1))
    with pytest.raises(ValueError, match="can differ"):
        Discordant.of(0.05, 0.03, 0.01)


def test_impossible_claim_is_refused() -> None:
    with pytest.raises(ValueError, match="below"):
        hours_with_power(0.1, 0.1)
    with pytest.raises(ValueError, match="below"):
        utterances_with_power(0.05, 0.06)
    with pytest.raises(ValueError, match="below"):
        utterances_for_claim(0.02, 0.02)
    with pytest.raises(ValueError, match="below"):
        hours_for_claim(0.0)
    with pytest.raises(ValueError, match="more than"):
        hours_with_power(0.1, 0.0999)


@pytest.mark.parametrize("per_voice", [1, 5, 20])
def test_voices_for_a_claim_are_the_fewest_whose_reported_interval_ends_below(per_voice: int) -> None:
    voices = voices_for_claim(0.05, per_voice)
    ends = [known(over_voices([Share(0, per_voice)] * count)).interval[1] for count in (voices - 1, voices)]
    assert ends[1] < 0.05 <= ends[0]


def test_design_effect_matches_its_formula() -> None:
    assert design_effect(1, 0.5) == 1
    assert design_effect(20, 0.1) == pytest.approx(2.9)
    assert design_effect(20, 1) == 20
    with pytest.raises(ValueError, match="design"):
        design_effect(0, 0.1)
