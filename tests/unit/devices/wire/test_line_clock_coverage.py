"""Do the stated errors of console lines hold the truth? Adapters that hold lines back, in simulated time."""

from __future__ import annotations

import pytest

from tests.unit.devices.wire.held_lines import ADAPTERS, Adapter, covered


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda one: one.name)
def test_stated_errors_cover_the_truth(adapter: Adapter) -> None:
    by_clock = covered(adapter, range(15))
    assert by_clock.share >= 0.99
    if adapter.hold_back_s >= adapter.longest_s:
        by_arrival = covered(adapter, range(15), with_time=False)
        assert by_arrival.share >= 0.99
