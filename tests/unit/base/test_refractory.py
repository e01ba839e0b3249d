"""Which detections are the same."""

from __future__ import annotations

import pytest

from harness.base.refractory import RefractoryFilter


@pytest.mark.parametrize(
    ("refractory", "places", "separate"),
    [
        (1000, [0, 80, 160, 999, 1000], [0, 1000]),
        (1000, [0, 900, 1800, 2700], [0, 1800]),  # the time runs from the event that counts
        (0, [5, 5, 6], [5, 5, 6]),
    ],
)
def test_refractory_time_starts_at_the_event_that_counts(
    refractory: int, places: list[int], separate: list[int]
) -> None:
    separated = RefractoryFilter(refractory)
    assert [place for place in places if separated.accept("hey lab", place)] == separate


def test_each_phrase_has_its_own_refractory_time() -> None:
    separated = RefractoryFilter(1000)
    assert all(separated.accept(phrase, 0) for phrase in ("hey lab", "stop"))
    assert not separated.accept("stop", 1)
