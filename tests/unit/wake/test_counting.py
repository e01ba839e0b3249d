"""Matching of events and stimuli against all ways to match them, and the known faults of others' counting."""

import time
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wake.counting import Matching, Window, match_events

TICK = 1 / 64  # exact in binary, so that a shift rounds nothing

windows_of = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60), st.integers(0, 60)), max_size=5).map(
    lambda found: [
        Window(start * TICK, (start + length) * TICK, (start + min(near, length)) * TICK)
        for start, length, near in sorted(found)
    ]
)
events_of = st.lists(st.integers(0, 460), max_size=5).map(lambda found: [at * TICK for at in sorted(found)])


def _best(windows: list[Window], events: list[float]) -> tuple[int, float]:
    """Most pairs and least distance, by trying everything."""
    slots = [*range(len(windows)), *([None] * len(events))]
    best = (0, 0.0)
    for chosen in set(permutations(slots, len(events))):
        pairs = [(index, events[event]) for event, index in enumerate(chosen) if index is not None]
        if all(windows[index].start_s <= at_s <= windows[index].end_s for index, at_s in pairs):
            distance = sum(abs(at_s - windows[index].near_s) for index, at_s in pairs)
            best = max(best, (len(pairs), -distance))
    return best


@given(windows_of, events_of)
def test_as_many_pairs_as_can_be_with_the_least_distance(windows: list[Window], events: list[float]) -> None:
    found = match_events(windows, events, 0.0)
    distance = sum(abs(events[event] - windows[window].near_s) for window, event in found.pairs)
    count, less = _best(windows, events)
    assert len(found.pairs) == count
    assert distance == pytest.approx(-less)


@given(windows_of, events_of, st.integers(0, 200))
def test_one_to_one_and_never_outside(windows: list[Window], events: list[float], refractory: int) -> None:
    found = match_events(windows, events, refractory * TICK)
    used_windows, used_events = [one for one, _ in found.pairs], [one for _, one in found.pairs]
    assert len(set(used_windows)) == len(used_windows)
    assert len(set(used_events)) == len(used_events)
    for window, event in found.pairs:
        assert windows[window].start_s <= events[event] <= windows[window].end_s
    assert sorted([*used_windows, *found.missed]) == list(range(len(windows)))
    parts = [further for further, _ in found.same]
    assert sorted([*used_events, *found.unmatched, *parts]) == list(range(len(events)))


@given(windows_of, events_of, st.integers(0, 200), st.integers(-10_000, 1_000_000))
def test_shifting_all_times_changes_nothing(
    windows: list[Window], events: list[float], refractory: int, shift: int
) -> None:
    by = shift * TICK
    moved = [Window(one.start_s + by, one.end_s + by, one.near_s + by) for one in windows]
    found = match_events(windows, events, refractory * TICK)
    assert match_events(moved, [at_s + by for at_s in events], refractory * TICK) == found


def test_frames_are_grouped_into_events() -> None:
    # Three events of five frames each are three, not fifteen.
    frames = [start + frame * 0.08 for start in (1.0, 11.0, 21.0) for frame in range(5)]
    assert len(match_events([], frames, 2.0).unmatched) == 3


def test_an_early_event_is_not_swallowed_by_a_cool_down_that_starts_armed() -> None:
    assert match_events([], [0.0], 2.0).unmatched == (0,)


def test_hits_are_counted_by_stimulus_and_not_by_frame() -> None:
    windows = [Window(0.0, 2.0, 1.0), Window(10.0, 12.0, 11.0)]
    # Many frames of the first phrase do not stand for the second, which was missed.
    found = match_events(windows, [1.0, 1.1, 1.2, 1.3], 0.0)
    assert (len(found.pairs), found.missed) == (1, (1,))


def test_the_time_after_a_window_is_given_once() -> None:
    windows = [Window(0.0, 2.0, 1.0)]
    assert match_events(windows, [2.0], 1.0).pairs == ((0, 0),)
    assert match_events(windows, [2.0 + TICK], 1.0).unmatched == (0,)


def test_the_best_total_comes_before_the_nearest_first() -> None:
    # Nearest first would give the second window the first event, and leave the second event without one.
    windows = [Window(0.0, 3.0, 1.0), Window(2.0, 4.0, 2.6)]
    assert match_events(windows, [2.5, 3.5], 0.0).pairs == ((0, 0), (1, 1))


def test_a_stuck_device_goes_on_being_counted() -> None:
    stuck = [index * 0.5 for index in range(100)]
    assert len(match_events([], stuck, 2.0).unmatched) == 25


def test_disorder_is_refused() -> None:
    with pytest.raises(ValueError, match="order"):
        match_events([], [2.0, 1.0], 1.0)
    with pytest.raises(ValueError, match="window"):
        Window(2.0, 1.0, 1.0)


@pytest.mark.parametrize("step_s", [3.0, 1.0], ids=["apart", "overlapping"])
def test_a_hundred_thousand_events_are_quick(step_s: float) -> None:
    windows = [Window(index * step_s, index * step_s + 2.5, index * step_s + 1) for index in range(30_000)]
    events = [index * 0.7 for index in range(100_000)]
    began = time.perf_counter()
    found: Matching = match_events(windows, events, 0.0)
    # Quadratic matching would take minutes; the bound is wide for a busy machine.
    assert time.perf_counter() - began < 30
    assert len(found.pairs) > 20_000
