"""Spots at all thresholds at once are those of one threshold after the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.offline import ScoreTrack, SpotRule
from harness.offline.figures.sweep import Grid, Steps, joined, spans
from harness.offline.one_file import crossings, spots

LEVELS = np.array([0, 0.1, 0.25, 0.5, 0.75, 0.9, 1], np.float32)


@given(
    st.lists(st.integers(0, len(LEVELS) - 1), max_size=60),
    st.integers(0, 30),
    st.integers(1, 4),
    st.sampled_from([-0.5, 0.0, 0.1, 0.2, 0.25, 0.7, 0.9, 0.95, 1.0]),
)
@settings(max_examples=120, deadline=None)
def test_spans_tell_the_spots_of_every_threshold(
    levels: list[int], refractory_samples: int, step: int, threshold: float
) -> None:
    track = ScoreTrack("hey", LEVELS[levels] if levels else np.zeros(0, np.float32), 7, step)
    found = spans(track, refractory_samples)
    at = found.index[(found.low <= np.float32(threshold)) & (np.float32(threshold) < found.high)]
    assert at.tolist() == crossings(track.scores, threshold, refractory_samples / step).tolist()
    ends = [one.end for one in spots(track, SpotRule(threshold, refractory_samples, 5))]
    assert (track.first_end + at * step).tolist() == ends


def test_steps_are_sums_of_spans() -> None:
    random = np.random.default_rng(3)
    low = random.random(5000, np.float32)
    high = (low + random.random(5000, np.float32)).astype(np.float32)
    steps = Steps(Grid(np.zeros(0, np.float32)))
    for part in range(0, 5000, 500):
        steps.add(low[part : part + 500], high[part : part + 500], 3)
    asked = np.concatenate([low[:50], random.random(50, np.float32)])
    expected = [3 * int(np.sum((low <= one) & (one < high))) for one in asked]
    assert steps.at(asked).tolist() == expected
    assert not steps.coarse


def test_a_grid_keeps_its_own_thresholds_exact() -> None:
    random = np.random.default_rng(4)
    own = np.array([0.5, 0.97, 0.123456789], np.float32)
    exact, coarse = Steps(Grid(own)), Steps(Grid(own, size=50), most=100)
    for _ in range(4):
        low = random.random(40_000, np.float32)
        high = (low + 0.1 * random.random(40_000, np.float32)).astype(np.float32)
        exact.add(low, high)
        coarse.add(low, high)
    assert coarse.at(own).tolist() == exact.at(own).tolist()
    assert coarse.coarse
    assert len(coarse.values()) < 60
    grid = Grid(own, size=50).values
    assert coarse.at(grid).tolist() == exact.at(grid).tolist()


def test_spans_are_joined_where_they_meet() -> None:
    low, high = joined(np.array([5, 1, 2, 8], np.float32), np.array([6, 2, 4, 9], np.float32))
    assert (low.tolist(), high.tolist()) == ([1, 5, 8], [4, 6, 9])
    low, high = joined(np.array([1, 2], np.float32), np.array([9, 3], np.float32))
    assert (low.tolist(), high.tolist()) == ([1], [9])
    assert not len(joined(np.zeros(0, np.float32), np.zeros(0, np.float32))[0])


@pytest.mark.parametrize("length", [0, 1, 2])
def test_short_tracks(length: int) -> None:
    found = spans(ScoreTrack("hey", np.full(length, 0.5, np.float32), 0, 480), 16_000)
    assert found.index.tolist() == [0][:length]
