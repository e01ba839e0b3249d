"""The fit of a device's clock where the truth is known: delays, drift, load, jumps, reboots."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.devices.wire.device_clock import DeviceClock, PingSchedule, Sync


@dataclass
class Device:
    """A clock that began at host time `since_s` and runs fast by ppm, at the end of a line with random delays."""

    since_s: float
    ppm: float = 0.0
    way_s: float = 30e-6
    load: float = 0.0  # share of the ways that take 10–50 ms
    seed: int = 0
    wander_ppm: float = 0.0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def read_us(self, host_s: float) -> int:
        age_s = host_s - self.since_s
        return int((age_s * (1 + self.ppm * 1e-6) + self.wander_ppm * 1e-6 * age_s**2 / 600) * 1e6)

    def way(self) -> float:
        if self.random.random() < self.load:
            return self.random.uniform(0.01, 0.05)
        return self.way_s * (1 + self.random.expovariate(2.0))

    def ping(self, clock: DeviceClock, sent_s: float) -> Sync:
        received_s = sent_s + self.way()
        answered_s = received_s + self.random.uniform(5e-6, 2e-5)
        return clock.ping(sent_s, self.read_us(received_s), self.read_us(answered_s), answered_s + self.way())


def followed(device: Device, minutes: float, period_s: float = 1.0) -> tuple[list[float], list[float]]:
    """Errors and stated bounds of an event after each ping."""
    clock, now_s = DeviceClock(), device.since_s + 7.0
    clock.start("a")
    for number in range(24):
        device.ping(clock, now_s)
        now_s += 0.005 * 1.25**number
    errors, bounds = [], []
    for _ in range(int(minutes * 60 / period_s)):
        now_s += period_s
        device.ping(clock, now_s)
        event_s = now_s + device.random.uniform(-0.2, period_s)
        stamp = clock.host_time(device.read_us(event_s))
        errors.append(abs(stamp.at_s - event_s))
        bounds.append(stamp.error_s)
    return errors, bounds


@settings(max_examples=15, deadline=None)
@given(
    ppm=st.floats(-500, 500),
    since_s=st.floats(0, 1e6),
    seed=st.integers(0, 99),
    load=st.sampled_from([0.0, 0.2, 0.5]),
    wander_ppm=st.sampled_from([0.0, 0.5]),
)
def test_the_stated_error_is_no_less_than_the_true_one(
    ppm: float, since_s: float, seed: int, load: float, wander_ppm: float
) -> None:
    device = Device(since_s, ppm, load=load, seed=seed, wander_ppm=wander_ppm)
    errors, bounds = followed(device, minutes=2)
    honest = sum(error <= bound for error, bound in zip(errors, bounds, strict=True))
    assert honest >= 0.99 * len(errors)
    assert sorted(bounds)[int(0.99 * len(bounds))] < 1e-3
    assert sorted(errors)[len(errors) // 2] < 50e-6


def test_the_drift_is_found() -> None:
    device, clock = Device(1000.0, ppm=80.0), DeviceClock()
    clock.start("a")
    for second in range(120):
        device.ping(clock, 1010.0 + second)
    fit = clock.fit()
    assert fit is not None
    assert fit.boot == "a"
    assert fit.skew_ppm == pytest.approx(80.0, abs=1.0)
    assert fit.offset_s == pytest.approx(1000.0, abs=1e-3)
    assert fit.error_s < 1e-4
    # The page's formula.
    at_s = fit.offset_s + 50.0 / (1 + fit.skew_ppm * 1e-6)
    assert clock.host_time(50_000_000).at_s == pytest.approx(at_s, abs=1e-6)


def test_a_clock_that_loses_ticks_is_followed() -> None:
    errors, bounds = followed(Device(10.0, ppm=-60_000.0), minutes=1)
    assert all(error <= bound for error, bound in zip(errors, bounds, strict=True))
    assert max(bounds[5:]) < 1e-3


def test_times_far_from_any_ping_are_less_sure() -> None:
    device, clock = Device(0.0), DeviceClock()
    for number in range(30):
        device.ping(clock, 100.0 + number * 0.01)
    near, far = (clock.host_time(device.read_us(at_s)) for at_s in (100.2, 200.0))
    assert near.error_s < 1e-4
    assert far.error_s > 100 * near.error_s
    assert abs(far.at_s - 200.0) <= far.error_s


def test_a_jump_begins_a_new_fit() -> None:
    device, clock = Device(0.0), DeviceClock()
    for number in range(30):
        assert device.ping(clock, 100.0 + number) is Sync.TAKEN
    device.since_s -= 0.5
    assert device.ping(clock, 131.0) is Sync.JUMPED
    assert clock.jumps == 1
    assert clock.host_time(device.read_us(131.0)).at_s == pytest.approx(131.0, abs=1e-4)
    assert device.ping(clock, 132.0) is Sync.TAKEN


def test_a_boot_begins_a_new_fit_and_the_same_boot_does_not() -> None:
    device, clock = Device(0.0), DeviceClock()
    clock.start("a")
    device.ping(clock, 10.0)
    clock.start("a")
    assert clock.fitted
    clock.start("b")
    assert not clock.fitted
    assert clock.fit() is None
    with pytest.raises(ValueError, match="boot b"):
        clock.host_time(1)


def test_times_of_many_years_keep_their_microseconds() -> None:
    clock = DeviceClock()
    base_us = 2**50
    for number in range(20):
        clock.ping(5.0 + number, base_us + number * 1_000_000 + 30, base_us + number * 1_000_000 + 40, 5.00007 + number)
    stamp = clock.host_time(base_us + 10_000_000)
    assert stamp.at_s == pytest.approx(15.0, abs=5e-5)
    assert stamp.error_s < 1e-4


@pytest.mark.parametrize(
    ("sent_s", "received_us", "answered_us", "arrived_s"),
    [(1.0, 10, 20, 0.9), (1.0, 30, 20, 1.1), (1.0, 0, 900_000, 1.1)],
)
def test_what_cannot_be_is_not_taken(sent_s: float, received_us: int, answered_us: int, arrived_s: float) -> None:
    clock = DeviceClock()
    assert clock.ping(sent_s, received_us, answered_us, arrived_s) is Sync.IMPOSSIBLE
    assert not clock.fitted


def test_the_schedule_bursts_at_first_and_every_few_minutes() -> None:
    schedule, now_s, sent = PingSchedule(1.0, burst=10, every_s=60.0), 5.0, []
    while now_s < 5 + 130:
        wait_s = schedule.wait_s(now_s)
        if wait_s > 0:
            now_s += wait_s
            continue
        schedule.sent(now_s)
        sent.append(now_s)
        now_s += 1e-4
        schedule.answered()
    gaps = [after - before for before, after in itertools.pairwise(sent)]
    assert 27 <= sum(gap < 0.04 for gap in gaps) <= 30
    assert max(gaps) <= 1.001
    assert 110 < len(sent) < 170


def test_a_silent_device_is_not_flooded_with_pings() -> None:
    schedule, now_s, count = PingSchedule(1.0), 0.0, 0
    while now_s < 10:
        now_s += schedule.wait_s(now_s)
        schedule.sent(now_s)
        count += 1
    assert count < 40
