"""The fit of a device's clock where the truth is known, and stamps of lines that its times narrow down."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.devices.wire.device_clock import DeviceClock, PingResult, PingSchedule
from harness.devices.wire.line_clock import CREDIBLE_S, DeviceTime, LineClock, read_time
from harness.model.bench import ClockKind
from harness.model.time import Stamp
from tests.known import known
from tests.unit.devices.wire.held_lines import ADAPTERS, Adapter, covered


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

    def ping(self, clock: DeviceClock, sent_s: float) -> PingResult:
        received_s = sent_s + self.way()
        answered_s = received_s + self.random.uniform(5e-6, 2e-5)
        return clock.add_ping(sent_s, self.read_us(received_s), self.read_us(answered_s), answered_s + self.way())


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


@settings(max_examples=15)
@given(
    ppm=st.floats(-500, 500),
    since_s=st.floats(0, 1e6),
    seed=st.integers(0, 99),
    load=st.sampled_from([0.0, 0.2, 0.5]),
    wander_ppm=st.sampled_from([0.0, 0.5]),
)
def test_the_stated_error_covers_the_true_error(
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
    fit = known(clock.fit("board", Stamp(1130.0)))
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


def test_times_far_from_any_ping_have_larger_errors() -> None:
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
        assert device.ping(clock, 100.0 + number) is PingResult.ACCEPTED
    device.since_s -= 0.5
    assert device.ping(clock, 131.0) is PingResult.JUMPED
    assert clock.host_time(device.read_us(131.0)).at_s == pytest.approx(131.0, abs=1e-4)
    assert device.ping(clock, 132.0) is PingResult.ACCEPTED


def test_only_a_new_boot_starts_a_new_fit() -> None:
    device, clock = Device(0.0), DeviceClock()
    clock.start("a")
    device.ping(clock, 10.0)
    clock.start("a")
    assert clock.fitted
    clock.start("b")
    assert not clock.fitted
    assert clock.fit("board", Stamp(11.0)) is None
    with pytest.raises(ValueError, match="boot b"):
        clock.host_time(1)


def test_times_of_many_years_keep_their_microseconds() -> None:
    clock = DeviceClock()
    base_us = 2**50
    for number in range(20):
        clock.add_ping(
            5.0 + number, base_us + number * 1_000_000 + 30, base_us + number * 1_000_000 + 40, 5.00007 + number
        )
    stamp = clock.host_time(base_us + 10_000_000)
    assert stamp.at_s == pytest.approx(15.0, abs=5e-5)
    assert stamp.error_s < 1e-4


@pytest.mark.parametrize(
    ("sent_s", "received_us", "answered_us", "arrived_s"),
    [(1.0, 10, 20, 0.9), (1.0, 30, 20, 1.1), (1.0, 0, 900_000, 1.1)],
)
def test_impossible_ping_times_are_ignored(sent_s: float, received_us: int, answered_us: int, arrived_s: float) -> None:
    clock = DeviceClock()
    assert clock.add_ping(sent_s, received_us, answered_us, arrived_s) is PingResult.IMPOSSIBLE
    assert not clock.fitted


def test_the_schedule_bursts_at_first_and_every_few_minutes() -> None:
    schedule, now_s, sent = PingSchedule(1.0, burst=10, every_s=60.0), 5.0, []
    while now_s < 5 + 130:
        wait_s = schedule.wait_s(now_s)
        if wait_s > 0:
            now_s += wait_s
            continue
        schedule.record_sent(now_s)
        sent.append(now_s)
        now_s += 1e-4
        schedule.record_answer()
    gaps = [after - before for before, after in itertools.pairwise(sent)]
    assert 27 <= sum(gap < 0.04 for gap in gaps) <= 30
    assert max(gaps) <= 1.001
    assert 110 < len(sent) < 170


def test_a_silent_device_is_not_flooded_with_pings() -> None:
    schedule, now_s, count = PingSchedule(1.0), 0.0, 0
    while now_s < 10:
        now_s += schedule.wait_s(now_s)
        schedule.record_sent(now_s)
        count += 1
    assert count < 40


DELAY_S = 0.02  # what a driver knows: a line arrives between 0 and 20 ms after it was written


def arrival(written_s: float, delay_s: float) -> Stamp:
    return Stamp(written_s + delay_s - DELAY_S / 2, DELAY_S / 2)


@pytest.mark.parametrize(
    ("text", "kind", "device_s", "step_s"),
    [
        ("4056", ClockKind.MS, 4.056, 0.001),
        ("12.5", ClockKind.S, 12.5, 0.1),
        ("250125", ClockKind.US, 0.250125, 1e-6),
        ("00:00:00.010,000", ClockKind.HMS, 0.01, 1e-6),
        ("12:13:48", ClockKind.HMS, 44028.0, 1.0),
        ("1:00:00:01.5", ClockKind.HMS, 86401.5, 0.1),
        ("0.496", ClockKind.AUDIO_S, 0.496, 0.001),
    ],
)
def test_device_times_are_parsed(text: str, kind: ClockKind, device_s: float, step_s: float) -> None:
    reading = known(read_time(text, kind))
    assert reading.device_s == pytest.approx(device_s)
    assert reading.step_s == pytest.approx(step_s)


@pytest.mark.parametrize("text", ["", "-1", "1e5", "x", "١٢", "1.2.3", "9" * 50, "12:1:2", "nan"])
@pytest.mark.parametrize("kind", [ClockKind.MS, ClockKind.HMS, ClockKind.NONE])
def test_other_texts_are_not_parsed_as_times(text: str, kind: ClockKind) -> None:
    assert read_time(text, kind) is None


@given(st.integers(0, 10_000), st.floats(-2e-4, 2e-4), st.floats(0.05, 2.0))
def test_stated_interval_contains_the_true_time(seed: int, drift: float, every_s: float) -> None:
    """80 lines of a crystal clock with random delays: each stated interval holds the truth."""
    stamps = run(seed, drift, every_s)
    assert all(abs(stamp.at_s - truth_s) <= stamp.error_s + 1e-9 for truth_s, stamp in stamps)


def test_the_error_shrinks_when_delays_of_every_length_were_seen() -> None:
    stamps = run(1, 5e-5, 0.3)
    assert sum(stamp.error_s for _, stamp in stamps[40:]) / 40 < 0.5 * DELAY_S / 2


def run(seed: int, drift: float, every_s: float) -> list[tuple[float, Stamp]]:
    dice, clock = random.Random(seed), LineClock(DELAY_S)
    stamps = []
    for number in range(80):
        written_s = 1000.0 + number * every_s
        time = DeviceTime(int((written_s - 990.0) * (1 + drift) * 1000) / 1000, 0.001)
        host_stamp = arrival(written_s, dice.uniform(0.0, DELAY_S))
        stamps.append((written_s, stamped(clock, time, host_stamp)))
    return stamps


def stamped(clock: LineClock, time: DeviceTime, host_stamp: Stamp) -> Stamp:
    clock.add(time, host_stamp)
    return clock.stamp(time, host_stamp)


def test_delayed_line_gets_its_write_time_and_paused_clock_recovers() -> None:
    clock = LineClock()
    for number in range(120):
        written_s, delay_s = 100.0 + number * 0.3, 0.12 if number == 50 else 0.001
        slept_s = 0.4 if number >= 60 else 0.0
        time = DeviceTime(written_s - 90.0 - slept_s, 1e-6)
        stamp = stamped(clock, time, Stamp(written_s + delay_s - 0.002, 0.002))
        assert abs(stamp.at_s - written_s) <= stamp.error_s
        if number == 50 or number >= 70:
            assert abs(stamp.at_s - written_s) < 0.02
        if number != 50 and not 60 <= number < 70:  # late, or the clock has stood still: it may be either
            assert stamp.error_s < 0.02


@pytest.mark.parametrize("stood_s", [0.9, 1.02, 1.5])
def test_a_clock_that_stood_still_for_about_a_second_is_learned_again(stood_s: float) -> None:
    clock = LineClock()
    for number in range(300):
        written_s = 100.0 + number * 0.25
        time = DeviceTime(written_s - 90.0 - (stood_s if number >= 100 else 0.0), 1e-6)
        stamp = stamped(clock, time, Stamp(written_s, 0.02))
        assert abs(stamp.at_s - written_s) <= stamp.error_s + 1e-9
    assert stamp.error_s < 0.1


def test_one_line_that_was_held_for_seconds_does_not_spoil_the_clock() -> None:
    clock = LineClock(unproven_s=0.12)
    for number in range(40):
        written_s, delay_s = 100.0 + number * 5.0, 3.3 if number == 3 else 0.025 if number % 7 == 0 else 0.001
        stamp = stamped(clock, DeviceTime(written_s - 90.0, 1e-3), Stamp(written_s + delay_s - 0.002, 0.002))
        if number != 3:
            assert abs(stamp.at_s - written_s) <= stamp.error_s
        if number > 20:
            assert stamp.error_s < 0.1


def test_a_clock_that_stood_still_is_learned_again_although_lines_are_often_late() -> None:
    clock = LineClock(unproven_s=0.12)
    for number in range(100):
        written_s, delay_s = 100.0 + number * 1.5, 0.2 if number % 6 == 0 and number < 40 else 0.001
        time = DeviceTime(written_s - 90.0 - (0.19 if number >= 40 else 0.0), 1e-3)
        stamp = stamped(clock, time, Stamp(written_s + delay_s - 0.013, 0.013))
        if not 40 <= number < 50 and delay_s < 0.2:  # at first, they may be late as usual
            assert abs(stamp.at_s - written_s) <= stamp.error_s + 1e-9
    assert stamp.error_s < 0.05


def test_lines_that_a_host_reads_late_do_not_look_like_a_clock_that_stood_still() -> None:
    clock = LineClock(unproven_s=0.12)
    for number in range(60):
        written_s, held_s = 100.0 + number * 4.0, 0.24 if 30 <= number < 35 else 0.026
        stamp = stamped(clock, DeviceTime(written_s - 90.0, 1e-3), Stamp(written_s - 0.013 + held_s / 2, held_s / 2))
        if number >= 35:
            assert abs(stamp.at_s - written_s) <= stamp.error_s < 0.05


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 0.1)), min_size=1, max_size=60))
def test_a_nonsensical_device_time_hardly_affects_the_clock(lines: list[tuple[float, float]]) -> None:
    clock = LineClock()
    for number, (device_s, delay_s) in enumerate(lines):
        host = Stamp(number + delay_s, 0.1)
        time = DeviceTime(device_s, 0.001)
        stamp = stamped(clock, time, host)
        assert stamp.error_s <= 5 * CREDIBLE_S
        assert host.at_s - host.error_s - 5 * CREDIBLE_S <= stamp.at_s <= host.at_s + host.error_s + 1e-6


def test_inaccurate_tick_clock_is_not_trusted_too_far() -> None:
    dice, clock = random.Random(1), LineClock(DELAY_S)
    for number in range(300):
        written_s = 10.0 + number * 0.3
        time = DeviceTime(round((written_s - 9.0) * 0.97, 3), 0.001)
        host_stamp = arrival(written_s, dice.uniform(0.0, DELAY_S))
        stamp = stamped(clock, time, host_stamp)
        assert abs(stamp.at_s - written_s) <= stamp.error_s + 1e-9


def test_the_fit_starts_again_after_a_restart() -> None:
    clock = LineClock()
    for number in range(40):
        clock.add(DeviceTime(float(number), 0.001), arrival(100.0 + number, 0.01))
    time, host_stamp = DeviceTime(0.5, 0.001), arrival(200.0, 0.015)
    stamp = stamped(clock, time, host_stamp)
    assert abs(stamp.at_s - 200.0) <= stamp.error_s <= host_stamp.error_s + time.step_s


def test_a_late_line_does_not_delay_the_new_start_of_the_fit() -> None:
    stamps = []
    for late_s in (0.0, 2.0):
        clock = LineClock(unproven_s=0.12)
        for number in range(21):
            clock.add(DeviceTime(float(number), 0.001), arrival(100.0 + number + (late_s if number == 20 else 0), 0.01))
        jumped = DeviceTime(30.0, 0.001)  # 9 s before its arrival by the old fit
        clock.add(jumped, arrival(121.0, 0.01))
        stamps.append(clock.stamp(DeviceTime(30.5, 0.001), arrival(121.6, 0.01)))
    assert stamps[0] == stamps[1]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_stated_errors_cover_the_truth(adapter: Adapter) -> None:
    by_clock = covered(adapter, range(15))
    assert by_clock.share >= 0.99
    if adapter.hold_back_s >= adapter.longest_s:
        by_arrival = covered(adapter, range(15), with_time=False)
        assert by_arrival.share >= 0.99
