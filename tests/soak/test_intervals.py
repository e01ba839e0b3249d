"""The promises of intervals and sequential tests, over many more runs than a quick test can afford."""

import numpy as np
import pytest
from scipy.stats import binomtest

from harness.model.scenario import SequentialTest
from harness.statistics.intervals import garwood
from harness.statistics.sequential import SequentialVerdict, rate_sequence
from tests.unit.statistics.simulations import (
    kept_rate,
    kept_share,
    rate_verdicts,
    share_verdicts,
    voices_covered,
    voices_verdicts,
)

RUNS = 20_000


@pytest.mark.soak
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.5, 2.0, 10.0])
def test_hourly_looks_over_200_hours_keep_the_truth(rate: float) -> None:
    random = np.random.default_rng(11)
    runs = 4000
    assert kept_rate(random, rate, runs, 200, rate_sequence) >= 0.95 * runs


@pytest.mark.soak
def test_garwood_looked_at_hourly_does_not() -> None:
    random = np.random.default_rng(12)
    assert kept_rate(random, 0.5, 1000, 200, garwood) < 0.8 * 1000


@pytest.mark.soak
@pytest.mark.parametrize("share", [0.01, 0.05, 0.3])
def test_looks_after_every_trial_keep_the_true_share(share: float) -> None:
    random = np.random.default_rng(13)
    runs = 1000
    assert kept_share(random, share, runs, 2000, 1) >= 0.95 * runs


def _at_most(count: int, runs: int, declared: float) -> bool:
    """No evidence, at one in a thousand, of more than was declared."""
    return binomtest(count, runs, declared, alternative="greater").pvalue > 0.001


@pytest.mark.soak
@pytest.mark.parametrize("look_hours", [1 / 60, 0.25])
def test_error_rates_of_the_rate(look_hours: float) -> None:
    random, test = np.random.default_rng(14), SequentialTest(0.1, 0.5)
    failed = rate_verdicts(random, test, test.good, RUNS, look_hours)[SequentialVerdict.FAILED]
    passed = rate_verdicts(random, test, test.bad, RUNS, look_hours)[SequentialVerdict.PASSED]
    assert _at_most(failed, RUNS, test.alpha)
    assert _at_most(passed, RUNS, test.beta)


@pytest.mark.soak
@pytest.mark.parametrize("bad", [0.05, 0.1])
def test_error_rates_of_the_share(bad: float) -> None:
    random, test = np.random.default_rng(15), SequentialTest(0.02, bad)
    failed = share_verdicts(random, test, test.good, RUNS)[SequentialVerdict.FAILED]
    passed = share_verdicts(random, test, test.bad, RUNS)[SequentialVerdict.PASSED]
    assert _at_most(failed, RUNS, test.alpha)
    assert _at_most(passed, RUNS, test.beta)


@pytest.mark.soak
@pytest.mark.parametrize("voices", [2, 4, 8, 16])
@pytest.mark.parametrize("correlation", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.2])
def test_intervals_over_voices_cover_the_mean_of_all(voices: int, correlation: float, share: float) -> None:
    runs = 2000
    missing = voices_covered(np.random.default_rng(16), share, correlation, voices=voices, trials=36, runs=runs)
    assert _at_most(sum(missing), runs, 0.05)


@pytest.mark.soak
@pytest.mark.parametrize("voices", [4, 8, 16])
@pytest.mark.parametrize(("good", "bad"), [(0.02, 0.1), (0.05, 0.2)])
def test_error_rates_over_voices(voices: int, good: float, bad: float) -> None:
    random, test, runs = np.random.default_rng(17), SequentialTest(good, bad), 1000
    for share, wrong in ((good, SequentialVerdict.FAILED), (bad, SequentialVerdict.PASSED)):
        verdicts = voices_verdicts(random, test, share, 0.3, voices=voices, trials=40, runs=runs)
        assert _at_most(verdicts[wrong], runs, 0.05)
