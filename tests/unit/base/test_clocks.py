"""Clocks."""

from __future__ import annotations

import time

import pytest

from harness.base.clocks import HostClock, ScaledClock


def test_the_host_clock_follows_the_system_clocks() -> None:
    clock = HostClock()
    assert clock.speed == 1.0
    assert time.monotonic() <= clock.now_s() <= time.monotonic()
    assert abs(clock.wall_s() - time.time()) < 1.0
    assert clock.real_s(3.0) == 3.0


def test_a_scaled_clock_is_on_one_time_line_with_every_other_of_its_speed() -> None:
    clock, other = ScaledClock(50.0, HostClock()), ScaledClock(10.0, ScaledClock(5.0, HostClock()))
    assert clock.speed == other.speed == 50.0
    before_s = clock.now_s()
    assert other.now_s() >= before_s
    assert clock.real_s(100.0) == other.real_s(100.0) == 2.0


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
def test_a_clock_speed_must_be_positive(speed: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        ScaledClock(speed, HostClock())
