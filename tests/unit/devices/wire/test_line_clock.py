"""Device times narrow a line's stamp down, truly, or leave it as it is."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.devices.wire.line_clock import CREDIBLE_S, DeviceTime, LineClock, read_time
from harness.model.bench import ClockKind
from harness.model.time import Stamp
from tests.unit.devices.wire.held_lines import ADAPTERS, Adapter, covered

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
def test_times_are_read(text: str, kind: ClockKind, device_s: float, step_s: float) -> None:
    found = read_time(text, kind)
    assert found is not None
    assert found.device_s == pytest.approx(device_s)
    assert found.step_s == pytest.approx(step_s)


@pytest.mark.parametrize("text", ["", "-1", "1e5", "x", "١٢", "1.2.3", "9" * 50, "12:1:2", "nan"])
@pytest.mark.parametrize("kind", [ClockKind.MS, ClockKind.HMS, ClockKind.NONE])
def test_other_texts_are_no_times(text: str, kind: ClockKind) -> None:
    assert read_time(text, kind) is None


@given(st.integers(0, 10_000), st.floats(-2e-4, 2e-4), st.floats(0.05, 2.0))
@settings(max_examples=60, deadline=None)
def test_the_truth_stays_inside(seed: int, drift: float, every_s: float) -> None:
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
        at = arrival(written_s, dice.uniform(0.0, DELAY_S))
        clock.add(time, at)
        stamps.append((written_s, clock.stamp(time, at)))
    return stamps


def test_a_line_that_is_held_back_is_stamped_when_it_was_written() -> None:
    clock = LineClock()
    for number in range(60):
        written_s, delay_s = 100.0 + number * 0.3, 0.12 if number == 50 else 0.001
        time, at = DeviceTime(written_s - 90.0, 1e-6), Stamp(written_s + delay_s - 0.002, 0.002)
        clock.add(time, at)
        stamp = clock.stamp(time, at)
        if number == 50:
            assert abs(stamp.at_s - written_s) <= stamp.error_s < 0.02


def test_a_clock_that_stood_still_is_found_again() -> None:
    clock = LineClock()
    for number in range(120):
        written_s = 100.0 + number * 0.3
        time = DeviceTime(written_s - 90.0 - (0.4 if number >= 60 else 0.0), 1e-6)  # it slept for 0.4 s
        at = Stamp(written_s - 0.001, 0.002)
        clock.add(time, at)
        stamp = clock.stamp(time, at)
        if number >= 70:
            assert abs(stamp.at_s - written_s) <= stamp.error_s < 0.02


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 0.1)), min_size=1, max_size=60))
@settings(deadline=None)
def test_a_device_time_that_is_nonsense_does_little_harm(lines: list[tuple[float, float]]) -> None:
    clock = LineClock()
    for number, (device_s, delay_s) in enumerate(lines):
        at = Stamp(number + delay_s, 0.1)
        time = DeviceTime(device_s, 0.001)
        clock.add(time, at)
        stamp = clock.stamp(time, at)
        assert stamp.error_s <= 5 * CREDIBLE_S
        assert at.at_s - at.error_s - 5 * CREDIBLE_S <= stamp.at_s <= at.at_s + at.error_s + 1e-6


def test_a_clock_that_counts_ticks_loses_percents_and_is_not_believed_too_far() -> None:
    dice, clock = random.Random(1), LineClock(DELAY_S)
    for number in range(300):
        written_s = 10.0 + number * 0.3
        time = DeviceTime(round((written_s - 9.0) * 0.97, 3), 0.001)
        at = arrival(written_s, dice.uniform(0.0, DELAY_S))
        clock.add(time, at)
        stamp = clock.stamp(time, at)
        assert abs(stamp.at_s - written_s) <= stamp.error_s + 1e-9


def test_after_a_restart_it_begins_anew() -> None:
    clock = LineClock()
    for number in range(40):
        clock.add(DeviceTime(float(number), 0.001), arrival(100.0 + number, 0.01))
    time, at = DeviceTime(0.5, 0.001), arrival(200.0, 0.015)
    clock.add(time, at)
    stamp = clock.stamp(time, at)
    assert abs(stamp.at_s - 200.0) <= stamp.error_s <= at.error_s + time.step_s


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda one: one.name)
def test_stated_errors_cover_the_truth(adapter: Adapter) -> None:
    by_clock = covered(adapter, range(15))
    assert by_clock.share >= 0.99
    if adapter.hold_back_s >= adapter.longest_s:
        by_arrival = covered(adapter, range(15), with_time=False)
        assert by_arrival.share >= 0.99
