"""How often tests and intervals err, by simulation: no more often than they say."""

from __future__ import annotations

import numpy as np
import pytest

from harness.model.time import MeasuredDuration
from harness.statistics.intervals import Share, garwood, latency_figures
from harness.statistics.latency import paired_shift, unpaired_shift
from harness.statistics.significance import Discordance, clustering, poisson_rates
from harness.statistics.word_intervals import unpaired_share_difference, unpaired_wer_difference, wer_difference
from tests.known import known

pytestmark = pytest.mark.soak


def test_false_alarms_are_as_rare_as_p_says() -> None:
    random = np.random.default_rng(3)
    shown = np.zeros(4)
    for _ in range(400):
        times = [[MeasuredDuration(float(time_s)) for time_s in random.lognormal(-1, 0.4, 25)] for _ in range(2)]
        apart = [MeasuredDuration(first.value_s - other.value_s) for first, other in zip(*times, strict=True)]
        clusters = [[Share(int(count), 4) for count in random.binomial(4, random.beta(2, 6, 15))] for _ in range(2)]
        wrong = [random.binomial(8, random.beta(1, 8, 25)) for _ in range(2)]
        words, names = [8] * 25, [str(n) for n in range(25)]
        tests = (
            unpaired_shift(*times), paired_shift(apart), unpaired_share_difference(*clusters),
            unpaired_wer_difference(*((errors, words, names) for errors in wrong)),
        )  # fmt: skip
        shown += [test is not None and test.p < 0.05 for test in tests]
    assert all(shown <= 33), shown  # 20 expected; 33 is three standard errors more


def test_interval_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    true_median = np.log(2.0)
    covered = 0
    for _ in range(400):
        median = known(latency_figures([MeasuredDuration(float(v)) for v in random.exponential(size=40)]).p50)
        assert median.low_s is not None
        assert median.high_s is not None
        covered += median.low_s <= true_median <= median.high_s
    assert covered / 400 > 0.93


def test_equal_rates_are_told_apart_no_more_often_than_they_may() -> None:
    random = np.random.default_rng(1)
    pairs = random.poisson((5.0, 20.0), (1000, 2))
    p_values = [poisson_rates(int(a), 10.0, int(b), 40.0) for a, b in pairs]
    assert sum(p is not None and p < 0.05 for p in p_values) <= 50


def test_it_covers_the_truth_about_as_often_as_it_says() -> None:
    chance = np.random.default_rng(8)
    shares = (0.70, 0.12, 0.05, 0.13)
    covered = 0
    for counts in chance.multinomial(80, shares, size=2000):
        difference = known(Discordance(*map(int, counts)).difference)
        covered += difference.interval[0] <= shares[1] - shares[2] <= difference.interval[1]
    assert 0.93 <= covered / 2000 <= 0.975


def test_the_bootstrap_covers_a_clustered_rate_where_independence_would_not() -> None:
    random = np.random.default_rng(21)
    by_file = by_events = 0
    runs = 20
    for _ in range(runs):
        counts = 5 * random.poisson(0.2, 200)  # a mean of 1
        estimate, alone = known(clustering(counts, np.ones(200))), known(garwood(int(counts.sum()), 200.0))
        by_file += estimate.interval[0] <= 1 <= estimate.interval[1]
        by_events += alone[0] <= 1 <= alone[1]
    assert by_file / runs > 0.8
    assert by_events / runs < 0.8


def test_independent_events_are_seldom_called_clustered() -> None:
    random = np.random.default_rng(11)
    lengths = random.uniform(0.01, 2.0, 60)
    estimates = [clustering(random.poisson(lengths * 0.7), lengths) for _ in range(20)]
    called = sum(estimate is not None and estimate.p < 0.05 for estimate in estimates)
    assert called <= 5  # 1 expected; more than 5 have a chance of 1 in 3000


@pytest.mark.parametrize(("first", "second"), [(0.1, 0.1), (0.25, 0.05)])
def test_rare_events_are_told_apart_as_seldom_as_promised(first: float, second: float) -> None:
    random, runs = np.random.default_rng(4), 400
    significant = covered = 0
    for _ in range(runs):
        difference = known(wer_difference(random.poisson(first, 50), random.poisson(second, 50), [1] * 50))
        significant += difference.p < 0.05
        covered += difference.interval[0] <= first - second <= difference.interval[1]
    assert covered >= 0.95 * runs
    if first == second:
        assert significant <= 0.05 * runs
