"""Newcombe's interval of a paired difference, against his own table and by simulation."""

from itertools import product

import numpy as np
import pytest

from harness.statistics.significance import Discordance, paired_difference


def test_the_papers_example() -> None:
    """Statistics in Medicine 17 (1998), table III: 36, 12, 2, 0 by method 10."""
    found = paired_difference(Discordance(36, 12, 2, 0))
    assert found is not None
    assert found.value == pytest.approx(0.2)
    assert (found.low, found.high) == (pytest.approx(0.0569, abs=5e-5), pytest.approx(0.3404, abs=5e-5))


def test_nothing_has_no_difference() -> None:
    assert paired_difference(Discordance()) is None


@pytest.mark.parametrize("table", [(10, 0, 0, 0), (0, 0, 0, 10), (0, 10, 0, 0), (0, 0, 10, 0), (3, 1, 1, 0)])
def test_the_ends_hold_the_value_and_stay_shares(table: tuple[int, int, int, int]) -> None:
    found = paired_difference(Discordance(*table))
    assert found is not None
    assert -1 <= found.low <= found.value <= found.high <= 1


def test_systems_change_places() -> None:
    one, other = paired_difference(Discordance(20, 7, 3, 10)), paired_difference(Discordance(20, 3, 7, 10))
    assert one is not None
    assert other is not None
    assert (one.low, one.high) == (pytest.approx(-other.high), pytest.approx(-other.low))


def test_it_never_contradicts_the_exact_test_beside_it() -> None:
    for first, second, both in product(range(13), range(13), (0, 5, 80)):
        counts = Discordance(both, first, second, 3)
        found = paired_difference(counts)
        assert found is not None
        assert (counts.p is not None and counts.p < 0.05) == (not found.low <= 0 <= found.high), counts


def test_it_covers_the_truth_about_as_often_as_it_says() -> None:
    chance = np.random.default_rng(8)
    shares = (0.70, 0.12, 0.05, 0.13)
    covered = 0
    for counts in chance.multinomial(80, shares, size=2000):
        found = paired_difference(Discordance(*map(int, counts)))
        assert found is not None
        covered += found.low <= shares[1] - shares[2] <= found.high
    assert 0.93 <= covered / 2000 <= 0.975
