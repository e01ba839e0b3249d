"""Two systems against each other."""

import numpy as np
import pytest
from scipy.stats import binom

from harness.statistics.significance import Discordance, mcnemar, poisson_rates


def test_mcnemar_is_the_binomial_of_those_that_differ() -> None:
    assert mcnemar(1, 9) == pytest.approx(2 * binom.cdf(1, 10, 0.5))
    assert mcnemar(5, 5) == 1.0
    assert Discordance(80, 1, 9, 10).p == mcnemar(1, 9)
    assert Discordance(80, 1, 9, 10).total == 100


def test_systems_that_never_differ_have_no_p() -> None:
    assert mcnemar(0, 0) is None


def test_mcnemar_does_not_take_a_side() -> None:
    assert mcnemar(2, 12) == pytest.approx(mcnemar(12, 2))


def test_poisson_rates_on_different_audio() -> None:
    assert poisson_rates(5, 10.0, 10, 20.0) == pytest.approx(1.0)
    found = poisson_rates(2, 10.0, 20, 10.0)
    assert found is not None
    assert found < 0.001
    assert poisson_rates(0, 1.0, 0, 1.0) == 1.0
    assert poisson_rates(1, 0.0, 1, 1.0) is None


def test_equal_rates_are_told_apart_no_more_often_than_they_may() -> None:
    random = np.random.default_rng(1)
    pairs = random.poisson((5.0, 20.0), (1000, 2))
    found = [poisson_rates(int(a), 10.0, int(b), 40.0) for a, b in pairs]
    assert sum(p is not None and p < 0.05 for p in found) <= 50
