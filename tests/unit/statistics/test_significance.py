"""Two systems against each other."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm, wilcoxon

from harness.statistics import significance as swapping
from harness.statistics.intervals import garwood
from harness.statistics.significance import (
    MAX_RANKED,
    MAX_SIMULATED_EVENTS,
    Discordance,
    clustering,
    joint_swap_test,
    matched_pairs,
    mcnemar,
    poisson_rates,
    signed_ranks,
    swap_test,
)
from tests.known import known


def test_mcnemar_equals_the_binomial_test_of_discordant_pairs() -> None:
    assert mcnemar(1, 9) == pytest.approx(2 * binom.cdf(1, 10, 0.5))
    assert mcnemar(9, 1) == mcnemar(1, 9)
    assert mcnemar(5, 5) == 1.0
    assert mcnemar(0, 0) is None
    assert Discordance(80, 1, 9, 10).p == mcnemar(1, 9)
    assert Discordance(80, 1, 9, 10).total == 100


def test_pairs_are_counted_by_who_was_right() -> None:
    assert Discordance.of([1, 1, 1, 0, 0, 0, 0], [1, 0, 0, 1, 0, 0, 0]) == Discordance(1, 2, 1, 3)
    assert Discordance.of([], []).total == 0


def test_signed_ranks_are_exact_also_with_ties() -> None:
    # Ranks 1.5, 1.5, 3: the sums ±6, ±3, ±3, 0, 0 of eight ways; 3 or more in six of them.
    assert signed_ranks([0.1, -0.1, 0.5]) == pytest.approx(6 / 8)
    assert signed_ranks([1, 2, 3, 0, 0]) == pytest.approx(2 / 8)
    assert signed_ranks([0, 0]) is None
    assert signed_ranks([]) is None


@pytest.mark.parametrize(("size", "method"), [(12, "exact"), (MAX_RANKED, "exact"), (MAX_RANKED + 1, "asymptotic")])
def test_signed_ranks_match_scipy(size: int, method: str) -> None:
    drawn = np.random.default_rng(size).normal(0.1, 1, size)
    assert signed_ranks(drawn) == pytest.approx(wilcoxon(drawn, method=method).pvalue, rel=1e-9)
    tied = np.random.default_rng(5).integers(-2, 4, 500)
    assert signed_ranks(tied) == pytest.approx(wilcoxon(tied, method="asymptotic").pvalue, rel=1e-9)


def test_matched_pairs_match_hand_calculation() -> None:
    differences = [1] * 13 + [-1] * 12 + [5] + [0] * 24
    assert matched_pairs(differences) == pytest.approx(2 * norm.sf(6 / math.sqrt(50 * np.var(differences, ddof=1))))
    assert matched_pairs([0] * 60) is None
    assert matched_pairs([1] * 60) == pytest.approx(2**-59)


def test_few_matched_pairs_are_tested_exactly() -> None:
    # Two of the eight ways to swap three pairs are as far apart. The normal distribution gives 0.046 for the second.
    assert matched_pairs([2, 2, 2]) == 0.25
    assert matched_pairs([1, 1, 3]) == 0.25
    assert matched_pairs([1]) == 1.0
    assert matched_pairs([0, 0]) is None
    # 2, -1 and 1: six of the eight sums are at least 2 from 0.
    assert matched_pairs([2, -1, 1, 0]) == 0.75
    few = np.random.default_rng(3).integers(-3, 4, 49)
    assert matched_pairs(few) == pytest.approx(swap_test(few.tolist()).p)


def test_rates_on_different_audio_are_compared() -> None:
    assert poisson_rates(5, 10.0, 10, 20.0) == pytest.approx(1.0)
    p_value = known(poisson_rates(2, 10.0, 20, 10.0))
    assert p_value < 0.001
    assert poisson_rates(0, 1.0, 0, 1.0) == 1.0
    assert poisson_rates(1, 0.0, 1, 1.0) is None


DIFFERENCES = st.lists(st.fractions(-2, 2, max_denominator=6), min_size=1, max_size=9)


@given(DIFFERENCES)
def test_swap_test_counts_every_swap(differences: list[Fraction]) -> None:
    result = swap_test(differences)
    apart = [difference for difference in differences if difference]
    if not apart:
        assert result is None
        return
    sums = [
        abs(sum(sign * difference for sign, difference in zip(signs, apart, strict=True)))
        for signs in product((1, -1), repeat=len(apart))
    ]
    assert result is not None
    assert result.exact
    assert result.clusters == len(apart)
    assert result.p == pytest.approx(sum(total >= abs(sum(apart)) for total in sums) / len(sums))


@pytest.mark.parametrize(("first", "second"), [(9, 3), (1, 0), (5, 5), (40, 12), (300, 240)])
def test_swap_test_of_single_responses_equals_mcnemars_exact_test(first: int, second: int) -> None:
    result = known(swap_test([1] * first + [-1] * second + [0] * 20))
    assert result.p == pytest.approx(mcnemar(first, second))


def test_large_swap_test_is_sampled_close_to_the_exact_p(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = [Fraction(numerator, 7) for numerator in (3, -1, 5, 2, -4, 6, 1, 1, -2, 3, 5, -1)]
    exact = swap_test(differences)
    monkeypatch.setattr(swapping, "MAX_STEPS", 0)
    drawn = swap_test(differences)
    assert exact is not None
    assert drawn is not None
    assert (exact.exact, drawn.exact) == (True, False)
    assert drawn.p == pytest.approx(exact.p, abs=0.015)
    assert drawn == swap_test(differences)


def test_joint_swap_test_matches_hand_calculation() -> None:
    # Two clusters: as they are and both swapped, the sums are (2, −2); with one swapped (0, 0). So p = 2/4.
    assert joint_swap_test(np.array([[1, -1, 0], [1, -1, 0], [0, 0, 0]])) == swapping.SwapTestResult(0.5, True, 2)
    assert joint_swap_test(np.zeros((4, 11))) is None
    assert joint_swap_test(np.zeros((0, 11))) is None


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_drawn_figures_are_near_the_exact_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    signs = rng.integers(-1, 2, (12, 3))
    exact = joint_swap_test(signs)
    most = swapping.MAX_ENUMERATED
    swapping.MAX_ENUMERATED = 0
    try:
        drawn = joint_swap_test(signs)
    finally:
        swapping.MAX_ENUMERATED = most
    assert (exact is None) == (drawn is None)
    if exact is not None and drawn is not None:
        assert drawn.p == pytest.approx(exact.p, abs=0.02)


def test_paired_interval_matches_the_published_example() -> None:
    """Statistics in Medicine 17 (1998), table III: 36, 12, 2, 0 by method 10."""
    comparison = known(Discordance(36, 12, 2, 0).difference)
    assert comparison.difference == pytest.approx(0.2)
    assert comparison.interval == (pytest.approx(0.0569, abs=5e-5), pytest.approx(0.3404, abs=5e-5))


def test_the_difference_of_no_pairs_is_undefined() -> None:
    assert Discordance().difference is None


@pytest.mark.parametrize("table", [(10, 0, 0, 0), (0, 0, 0, 10), (0, 10, 0, 0), (0, 0, 10, 0), (3, 1, 1, 0)])
def test_interval_contains_the_difference_and_stays_within_bounds(table: tuple[int, int, int, int]) -> None:
    comparison = known(Discordance(*table).difference)
    assert -1 <= comparison.interval[0] <= comparison.difference <= comparison.interval[1] <= 1


def test_swapping_systems_mirrors_the_interval() -> None:
    first, other = (known(Discordance(20, 7, 3, 10).difference), known(Discordance(20, 3, 7, 10).difference))
    assert first.interval == (pytest.approx(-other.interval[1]), pytest.approx(-other.interval[0]))


def test_interval_never_contradicts_the_exact_test() -> None:
    for first, second, neither in product(range(13), range(13), (0, 5, 80)):
        counts = Discordance(neither, first, second, 3)
        comparison = known(counts.difference)
        assert (counts.p is not None and counts.p < 0.05) == (
            not comparison.interval[0] <= 0 <= comparison.interval[1]
        ), counts


def test_clustering_over_equal_stretches_is_the_index_of_dispersion() -> None:
    counts = [0, 3, 1, 0, 7, 2, 2, 0]
    dispersion = known(clustering(counts, [0.5] * len(counts)))
    assert dispersion.index == pytest.approx(np.var(counts, ddof=1) / np.mean(counts))


def test_too_few_events_show_no_clustering() -> None:
    assert clustering([5], [1.0]) is None
    assert clustering([1, 0, 0], [1.0, 1.0, 1.0]) is None
    assert clustering([], []) is None
    assert clustering([2, 0], [1.0, 0.0]) is None  # a stretch of no length is none


def test_one_event_in_each_of_some_stretches_is_no_cluster() -> None:
    lengths = np.concatenate([np.full(16, 0.005), np.full(4, 2.0)])
    events = np.zeros(20)
    events[:4] = 1  # in short ones, which Pearson's chi-square takes for clusters
    dispersion, alone = known(clustering(events, lengths)), known(garwood(4, float(lengths.sum())))
    assert (dispersion.index < 1, dispersion.p) == (True, 1.0)
    assert dispersion.interval[0] <= alone[0]
    assert dispersion.interval[1] >= alone[1]


@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0.001, 0.1, 1.0, 7.5])), min_size=2, max_size=12))
@settings(max_examples=25)
def test_clustered_interval_is_never_narrower_than_garwood(stretches: list[tuple[int, float]]) -> None:
    counts, lengths = zip(*stretches, strict=True)
    dispersion, alone = clustering(counts, lengths), garwood(sum(counts), sum(lengths))
    if dispersion is None:
        assert sum(counts) < 2
        return
    assert alone is not None
    assert dispersion.interval[0] <= alone[0] < alone[1] <= dispersion.interval[1]


def test_a_long_stretch_has_more_events_without_being_a_cluster() -> None:
    counts, lengths = [100, 1, 0, 1, 2], [100.0, 1.0, 1.0, 1.0, 1.0]
    dispersion = known(clustering(counts, lengths))
    assert dispersion.p > 0.05


def test_independent_events_are_seldom_called_clustered() -> None:
    random = np.random.default_rng(11)
    lengths = random.uniform(0.01, 2.0, 60)
    dispersions = [clustering(random.poisson(lengths * 0.7), lengths) for _ in range(6)]
    called = sum(dispersion is not None and dispersion.p < 0.05 for dispersion in dispersions)
    assert called <= 2  # 0.3 expected; more than 2 have a chance of 1 in 500; more runs: tests/soak


@pytest.mark.parametrize("events", [40, MAX_SIMULATED_EVENTS * 2])
def test_doubled_events_are_called_clustered(events: int) -> None:
    random = np.random.default_rng(5)
    counts = 4 * random.poisson(events / 4 / 300, 300)
    dispersion = known(clustering(counts, np.ones(300)))
    assert dispersion.index == pytest.approx(4, rel=0.45)
    assert dispersion.p < 0.01


def test_the_same_numbers_give_the_same_answer() -> None:
    assert clustering([3, 0, 1], [1.0, 2.0, 3.0]) == clustering([3, 0, 1], [1.0, 2.0, 3.0])
