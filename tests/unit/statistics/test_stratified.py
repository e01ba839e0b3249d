"""Shares of two systems, like with like, against sums made by hand."""

from __future__ import annotations

import pytest
from scipy.stats import chi2

from harness.statistics.word_intervals import Stratum, mantel_haenszel, stratified_difference


def test_the_difference_weighs_strata_by_their_pairs() -> None:
    # 3 of 4 against 1 of 4 is worth 4 pairs and differs by 1/2; 1 of 1 against 1 of 3 is worth 3/2 and differs by 2/3.
    strata = [[Stratum(3, 4, 1, 4)], [Stratum(1, 1, 1, 3)]]
    found = stratified_difference(strata)
    assert found is not None
    assert found.difference == pytest.approx((4 / 2 + 3 / 2 * 2 / 3) / 5.5)
    assert found.first == pytest.approx((3 + 1.5) / 5.5)
    assert found.second == pytest.approx((1 + 0.5) / 5.5)


def test_with_one_try_each_it_is_the_plain_difference() -> None:
    pairs = [(1, 0)] * 6 + [(0, 1)] * 2 + [(1, 1)] * 8 + [(0, 0)] * 4
    found = stratified_difference([[Stratum(one, 1, other, 1)] for one, other in pairs])
    assert found is not None
    assert (found.first, found.second) == pytest.approx((0.7, 0.5))
    assert found.interval is not None
    assert found.interval[0] < 0.2 < found.interval[1]


def test_what_is_alike_in_whole_clusters_is_not_taken_for_more() -> None:
    apart = [Stratum(1, 1, 0, 1)] * 4
    even = [Stratum(0, 1, 1, 1)] * 4
    alone = stratified_difference([[one] for one in (*apart * 3, *even)])
    together = stratified_difference([apart, apart, apart, even])
    assert alone is not None
    assert together is not None
    assert alone.difference == together.difference == 0.5
    assert alone.interval is not None
    assert together.interval is not None
    assert together.interval[1] - together.interval[0] > 1.5 * (alone.interval[1] - alone.interval[0])


@pytest.mark.parametrize("clusters", [[], [[]]])
def test_nothing_has_no_difference(clusters: list[list[Stratum]]) -> None:
    assert stratified_difference(clusters) is None


def test_one_cluster_has_no_interval() -> None:
    found = stratified_difference([[Stratum(1, 2, 2, 2)]])
    assert found is not None
    assert (found.difference, found.interval) == (-0.5, None)


def test_mantel_haenszel_with_one_try_each_is_mcnemars_chi_square() -> None:
    strata = [Stratum(1, 1, 0, 1)] * 9 + [Stratum(0, 1, 1, 1)] * 3 + [Stratum(1, 1, 1, 1)] * 50
    assert mantel_haenszel(strata) == pytest.approx(float(chi2.sf((9 - 3) ** 2 / 12, 1)))


def test_mantel_haenszel_by_hand() -> None:
    # Of 10 tries 6 counted: expected 5·6/10 = 3 of the first's, variance 5·5·6·4/(100·9).
    expected = (5 - 3) ** 2 / (5 * 5 * 6 * 4 / 900)
    assert mantel_haenszel([Stratum(5, 5, 1, 5)]) == pytest.approx(float(chi2.sf(expected, 1)))
    assert mantel_haenszel([Stratum(2, 2, 3, 3)]) is None
    assert mantel_haenszel([]) is None


@pytest.mark.parametrize("counts", [(2, 1, 0, 1), (0, 1, -1, 1), (0, 0, 1, 1), (1, 1, 0, 0)])
def test_a_stratum_that_cannot_be_is_refused(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="stratum"):
        Stratum(*counts)
