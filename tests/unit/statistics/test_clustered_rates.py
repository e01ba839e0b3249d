"""Clusters of events in stretches of any length."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.statistics.intervals import garwood
from harness.statistics.significance import MOST_SIMULATED, clustering


def test_over_stretches_of_one_length_it_is_the_index_of_dispersion() -> None:
    counts = [0, 3, 1, 0, 7, 2, 2, 0]
    found = clustering(counts, [0.5] * len(counts))
    assert found is not None
    assert found.index == pytest.approx(np.var(counts, ddof=1) / np.mean(counts))


def test_little_says_nothing() -> None:
    assert clustering([5], [1.0]) is None
    assert clustering([1, 0, 0], [1.0, 1.0, 1.0]) is None
    assert clustering([], []) is None
    assert clustering([2, 0], [1.0, 0.0]) is None  # a stretch of no length is none


def test_one_event_in_each_of_some_stretches_is_no_cluster() -> None:
    lengths = np.concatenate([np.full(16, 0.005), np.full(4, 2.0)])
    events = np.zeros(20)
    events[:4] = 1  # in short ones, which Pearson's chi-square takes for clusters
    found, alone = clustering(events, lengths), garwood(4, float(lengths.sum()))
    assert found is not None
    assert alone is not None
    assert (found.index < 1, found.p) == (True, 1.0)
    assert found.interval[0] <= alone[0]
    assert found.interval[1] >= alone[1]


@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0.001, 0.1, 1.0, 7.5])), min_size=2, max_size=12),
)
@settings(max_examples=25)
def test_it_is_never_surer_than_garwood(stretches: list[tuple[int, float]]) -> None:
    counts, lengths = zip(*stretches, strict=True)
    found, alone = clustering(counts, lengths), garwood(sum(counts), sum(lengths))
    if found is None:
        assert sum(counts) < 2
        return
    assert alone is not None
    assert found.interval[0] <= alone[0] < alone[1] <= found.interval[1]


def test_the_variance_for_many_events_is_that_of_all_ways_to_fall() -> None:
    lengths = np.array([0.2, 1.0, 3.0, 0.8])
    events, share = 5, lengths / lengths.sum()
    mean = square = 0.0
    for fall in product(range(4), repeat=events):
        counts = np.bincount(fall, minlength=4)
        sum_ = float((counts * (counts - 1) / lengths).sum()) * lengths.sum() / events + len(lengths) - events
        chance = float(np.prod(share[list(fall)]))
        mean, square = mean + chance * sum_, square + chance * sum_**2
    assert mean == pytest.approx(3)
    assert square - mean**2 == pytest.approx(2 * 3 * (events - 1) / events)


def test_a_long_stretch_has_more_events_without_being_a_cluster() -> None:
    counts, lengths = [100, 1, 0, 1, 2], [100.0, 1.0, 1.0, 1.0, 1.0]
    found = clustering(counts, lengths)
    assert found is not None
    assert found.p > 0.05


def test_independent_events_are_seldom_called_clustered() -> None:
    random = np.random.default_rng(11)
    lengths = random.uniform(0.01, 2.0, 60)
    found = [clustering(random.poisson(lengths * 0.7), lengths) for _ in range(20)]
    called = sum(one is not None and one.p < 0.05 for one in found)
    assert called <= 5  # 1 expected; more than 5 have a chance of 1 in 3000


@pytest.mark.parametrize("events", [40, MOST_SIMULATED * 2])
def test_doubled_events_are_called_clustered(events: int) -> None:
    random = np.random.default_rng(5)
    counts = 4 * random.poisson(events / 4 / 300, 300)
    found = clustering(counts, np.ones(300))
    assert found is not None
    assert found.index == pytest.approx(4, rel=0.45)
    assert found.p < 0.01


def test_both_ways_to_p_agree() -> None:
    random = np.random.default_rng(8)
    lengths = random.uniform(5, 15, 100)
    counts = random.poisson(lengths * 4)
    found = clustering(counts, lengths)
    more = clustering(np.concatenate([counts] * 2), np.concatenate([lengths] * 2))
    assert found is not None
    assert more is not None
    assert int(counts.sum()) < MOST_SIMULATED < 2 * int(counts.sum())
    assert more.p == pytest.approx(found.p, abs=0.3)


def test_the_bootstrap_covers_a_clustered_rate_where_independence_would_not() -> None:
    random = np.random.default_rng(21)
    by_file = by_events = 0
    runs = 20
    for _ in range(runs):
        counts = 5 * random.poisson(0.2, 200)  # a mean of 1
        found, alone = clustering(counts, np.ones(200)), garwood(int(counts.sum()), 200.0)
        assert found is not None
        assert alone is not None
        by_file += found.interval[0] <= 1 <= found.interval[1]
        by_events += alone[0] <= 1 <= alone[1]
    assert by_file / runs > 0.8
    assert by_events / runs < 0.8


def test_the_same_numbers_give_the_same_answer() -> None:
    assert clustering([3, 0, 1], [1.0, 2.0, 3.0]) == clustering([3, 0, 1], [1.0, 2.0, 3.0])
