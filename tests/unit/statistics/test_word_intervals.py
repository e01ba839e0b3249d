"""Intervals of word error rates and of their differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from harness.statistics.intervals import clopper_pearson, garwood
from harness.statistics.significance import swap_test
from harness.statistics.word_intervals import (
    Stratum,
    mantel_haenszel,
    stratified_difference,
    wer_difference,
    wer_interval,
)
from tests.known import known
from tests.unit.transcripts.word_simulations import Corpus, called_different, kept

COUNTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 10), st.sampled_from("abc")), min_size=2, max_size=12)


@given(COUNTS, st.booleans())
def test_the_interval_contains_the_word_error_rate(counts: list[tuple[int, int, str]], by_speaker: bool) -> None:
    errors, words, speakers = zip(*counts, strict=True)
    interval = wer_interval(errors, words, speakers if by_speaker else None)
    if not sum(words):
        assert interval is None
        return
    assert interval is not None
    rate = sum(errors) / sum(words)
    assert 0 <= interval[0] <= rate <= interval[1]
    assert interval[0] < interval[1]


def test_utterances_of_one_word_give_the_interval_of_a_share() -> None:
    wrong = [1] * 30 + [0] * 170
    assert wer_interval(wrong, [1] * 200) == pytest.approx(clopper_pearson(30, 200), abs=0.001)


def test_the_interval_without_errors_depends_on_the_number_of_utterances() -> None:
    assert wer_interval([0] * 50, [8] * 50) == pytest.approx(clopper_pearson(0, 50))


def test_too_little_data_gives_no_interval_or_difference() -> None:
    assert wer_interval([], []) is None
    assert wer_interval([1], [5]) is None
    assert wer_interval([1, 2], [0, 0]) is None
    assert wer_difference([1], [2], [5]) is None
    assert wer_difference([1, 1], [2, 2], [0, 0]) is None


def test_a_speaker_with_twice_the_same_utterances_tells_nothing_more() -> None:
    errors, words, speakers = [3, 0, 1, 5, 0, 2], [10, 9, 11, 10, 8, 12], list("abcdef")
    single, twice = wer_interval(errors, words, speakers), wer_interval(errors * 2, words * 2, speakers * 2)
    assert single == pytest.approx(twice, rel=0.05)
    assert single == wer_interval(errors, words)


def test_speakers_by_name_and_by_number_are_one() -> None:
    random = np.random.default_rng(1)
    words = random.integers(1, 20, 300)
    errors, speakers = random.binomial(words, 0.2), random.integers(0, 9, 300) * 2
    names = [f"speaker {number}" for number in speakers]
    assert wer_interval(errors, words, speakers) == pytest.approx(wer_interval(errors, words, names))


def test_one_speaker_alone_is_judged_by_utterances() -> None:
    assert wer_interval([1, 0, 2], [9, 9, 9], ["a", "a", "a"]) == wer_interval([1, 0, 2], [9, 9, 9])


def test_a_rate_above_one_has_an_interval() -> None:
    interval = known(wer_interval([12, 15, 11, 13], [10, 10, 10, 10]))
    assert 0.6 < interval[0] < 1.275 < interval[1] < 2


def test_shared_difficulty_cancels_in_the_difference() -> None:
    random = np.random.default_rng(2)
    talkers, words, hard = Corpus(10, 50, 0.2, between=0.4).hard_words(random)
    first = random.binomial(words, hard)
    second = np.minimum(first + (random.random(len(words)) < 0.1), words)
    comparison = wer_difference(first, second, words, talkers)
    alone = wer_interval(first, words, talkers)
    assert comparison is not None
    assert alone is not None
    assert comparison.interval[1] - comparison.interval[0] < (alone[1] - alone[0]) / 5
    assert comparison.interval[0] < comparison.difference < comparison.interval[1] < 0
    assert comparison.p < 0.001
    other = known(wer_difference(second, first, words, talkers))
    assert (other.difference, other.p) == pytest.approx((-comparison.difference, comparison.p))


@given(COUNTS)
def test_a_difference_is_told_with_its_interval_as_with_its_p(counts: list[tuple[int, int, str]]) -> None:
    first, words, speakers = zip(*counts, strict=True)
    comparison = wer_difference(first, list(reversed(first)), words, speakers)
    if comparison is not None:
        low, high = comparison.interval
        assert low < comparison.difference < high
        assert (comparison.p < 0.05) == (not low <= 0 <= high)


def test_few_units_that_differ_are_tested_exactly() -> None:
    first, words = np.array([1, 1, 1, 1] + [0] * 36), np.ones(40)
    comparison = known(wer_difference(first, np.zeros(40, int), words))
    assert comparison.p == 0.125  # two of the 16 ways in which four files can be swapped; Student's t says 0.046
    low, high = comparison.interval
    assert low < 0 < comparison.difference < high
    by_file = known(garwood(4, 40.0))
    assert high == pytest.approx(by_file[1])  # with nothing on the other side it is that of the one sum


def test_errors_in_a_single_unit_show_no_difference() -> None:
    comparison = known(wer_difference([9, *[0] * 19], [0] * 20, [1] * 20))
    assert comparison.p == 1
    assert comparison.interval[0] < 0 < comparison.interval[1]


RARE = st.lists(st.sampled_from([-3, -1, 0, 0, 0, 0, 0, 0, 1, 1, 2, 5]), min_size=6, max_size=40)


@given(RARE)
def test_an_exact_p_and_its_interval_never_contradict_each_other(apart: list[int]) -> None:
    comparison = known(wer_difference(np.maximum(apart, 0), np.maximum(np.negative(apart), 0), [1] * len(apart)))
    low, high = comparison.interval
    assert low < comparison.difference < high
    assert (comparison.p < 0.05) == (not low <= 0 <= high)
    exact = swap_test(apart)
    if exact is not None and 2 * exact.clusters <= len(apart) and len(apart) >= 10:
        assert comparison.p == exact.p


def test_the_same_errors_are_no_difference_but_not_proof_of_none() -> None:
    comparison = known(wer_difference([1, 0, 2], [1, 0, 2], [5, 5, 5]))
    assert (comparison.difference, comparison.p) == (0, 1)
    assert comparison.interval[0] < 0 < comparison.interval[1]


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        wer_interval([1, 2], [3])
    with pytest.raises(ValueError, match="negative"):
        wer_interval([-1, 2], [3, 3])
    with pytest.raises(ValueError, match="1 clusters for 2 utterances"):
        wer_interval([1, 2], [3, 3], ["a"])


def test_intervals_cover_the_truth_as_often_as_stated() -> None:
    runs, random = 400, np.random.default_rng(3)
    covered, _, _ = kept(random, Corpus(8, 20, 0.1, between=0.3, unequal=0.4), runs)
    assert covered >= 0.91 * runs
    told_apart, _ = called_different(random, Corpus(8, 20, 0.1, between=0.3, unequal=0.4), runs)
    assert told_apart <= 0.09 * runs


def test_the_difference_weighs_strata_by_their_pairs() -> None:
    # 3 of 4 against 1 of 4 is worth 4 pairs and differs by 1/2; 1 of 1 against 1 of 3 is worth 3/2 and differs by 2/3.
    strata = [[Stratum(3, 4, 1, 4)], [Stratum(1, 1, 1, 3)]]
    comparison = known(stratified_difference(strata))
    assert comparison.difference == pytest.approx((4 / 2 + 3 / 2 * 2 / 3) / 5.5)
    assert comparison.first == pytest.approx((3 + 1.5) / 5.5)
    assert comparison.second == pytest.approx((1 + 0.5) / 5.5)


def test_with_one_try_each_it_is_the_plain_difference() -> None:
    pairs = [(1, 0)] * 6 + [(0, 1)] * 2 + [(1, 1)] * 8 + [(0, 0)] * 4
    comparison = known(stratified_difference([[Stratum(first, 1, other, 1)] for first, other in pairs]))
    assert (comparison.first, comparison.second) == pytest.approx((0.7, 0.5))
    assert comparison.interval is not None
    assert comparison.interval[0] < 0.2 < comparison.interval[1]


def test_identical_clusters_do_not_narrow_the_interval() -> None:
    apart = [Stratum(1, 1, 0, 1)] * 4
    even = [Stratum(0, 1, 1, 1)] * 4
    alone = stratified_difference([[stratum] for stratum in (*apart * 3, *even)])
    together = stratified_difference([apart, apart, apart, even])
    assert alone is not None
    assert together is not None
    assert alone.difference == together.difference == 0.5
    assert alone.interval is not None
    assert together.interval is not None
    assert together.interval[1] - together.interval[0] > 1.5 * (alone.interval[1] - alone.interval[0])


@pytest.mark.parametrize("clusters", [[], [[]]])
def test_the_difference_over_no_strata_is_undefined(clusters: list[list[Stratum]]) -> None:
    assert stratified_difference(clusters) is None


def test_one_cluster_has_no_interval() -> None:
    comparison = known(stratified_difference([[Stratum(1, 2, 2, 2)]]))
    assert (comparison.difference, comparison.interval) == (-0.5, None)


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
def test_an_impossible_stratum_is_refused(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="stratum"):
        Stratum(*counts)
