"""Cutting clips out of a recording by host time."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import DeviceError, SoundError
from harness.sound.capture import Block, Ring

RATE_HZ = 48000
FRAMES = 480


def block(number: int, *, start_s: float = 100.0, epoch: int = 1, drift: float = 0.0) -> Block:
    """A block whose samples are their own numbers, scaled."""
    first = number * FRAMES
    samples = (np.arange(first, first + FRAMES) / 2**20).astype(np.float32)
    return Block(first, start_s + first / RATE_HZ * (1 + drift), 0.0005, samples, epoch)


def filled(blocks: int, seconds: float = 60.0) -> Ring:
    ring = Ring(seconds)
    for number in range(blocks):
        ring.put(block(number))
    return ring


@settings(max_examples=60, deadline=None)
@given(start=st.integers(0, 40_000), length=st.integers(1, 7_000))
def test_a_cut_has_exactly_the_samples_of_its_span(start: int, length: int) -> None:
    sound, at_s = filled(100).cut(100.0 + start / RATE_HZ, 100.0 + (start + length) / RATE_HZ, wait_s=0.0)
    assert np.array_equal(sound.samples * 2**20, np.arange(start, start + length))
    assert at_s == pytest.approx(100.0 + start / RATE_HZ, abs=1e-9)


def test_a_time_between_two_samples_is_answered_with_the_time_of_the_sample() -> None:
    sound, at_s = filled(100).cut(100.0 + 10.4 / RATE_HZ, 100.5, wait_s=0.0)
    assert sound.samples[0] * 2**20 == 10
    assert at_s == pytest.approx(100.0 + 10 / RATE_HZ, abs=1e-9)


def test_a_drifting_recording_is_cut_by_the_times_of_its_blocks() -> None:
    ring = Ring(60)
    for number in range(3000):
        ring.put(block(number, drift=100e-6))
    sound, _ = ring.cut(100.0, 125.0, wait_s=0.0)
    assert len(sound.samples) == pytest.approx(25.0 / (1 + 100e-6) * RATE_HZ, abs=2)


def test_what_is_too_old_is_refused() -> None:
    ring = filled(300, seconds=1.0)
    with pytest.raises(SoundError, match="no longer"):
        ring.cut(100.5, 101.0, wait_s=0.0)
    sound, _ = ring.cut(102.1, 103.0, wait_s=0.0)
    assert len(sound.samples) == round(0.9 * RATE_HZ)


def test_a_cut_over_a_gap_is_refused_and_beside_it_is_not() -> None:
    ring = filled(100)
    for number in range(100):
        ring.put(block(number, start_s=103.0, epoch=2))
    with pytest.raises(DeviceError, match="gap"):
        ring.cut(100.5, 103.5, wait_s=0.0)
    with pytest.raises(DeviceError):
        ring.cut(102.0, 103.5, wait_s=0.0)
    sound, at_s = ring.cut(103.2, 103.4, wait_s=0.0)
    assert len(sound.samples) == round(0.2 * RATE_HZ)
    assert at_s == pytest.approx(103.2)


def test_a_short_gap_is_filled_with_silence_so_that_what_follows_keeps_its_time() -> None:
    ring = filled(50)
    # 30 ms are missing: samples 24000 to 25439 were never counted.
    for number in range(50, 100):
        ring.put(block(number, start_s=100.030, epoch=2))
    sound, at_s = ring.cut(100.4, 100.8, wait_s=0.0)
    assert len(sound.samples) == round(0.4 * RATE_HZ)
    assert at_s == pytest.approx(100.4)
    assert not sound.samples[4800 : 4800 + 1440].any()
    assert sound.samples[4799] * 2**20 == 23_999
    assert sound.samples[4800 + 1440] * 2**20 == 24_000


def test_a_cut_waits_for_samples_that_are_to_come() -> None:
    ring = filled(50)

    def feed() -> None:
        for number in range(50, 120):
            ring.put(block(number))

    feeder = threading.Timer(0.05, feed)
    feeder.start()
    sound, _ = ring.cut(100.4, 101.0, wait_s=5.0)
    feeder.join()
    assert len(sound.samples) == round(0.6 * RATE_HZ)


def test_a_cut_of_what_never_comes_ends_in_time() -> None:
    begun_s = time.monotonic()
    with pytest.raises(SoundError, match="has not arrived"):
        filled(50).cut(100.4, 200.0, wait_s=0.1)
    with pytest.raises(SoundError, match="has not arrived"):
        Ring(10).cut(0.0, 1.0, wait_s=0.1)
    assert time.monotonic() - begun_s < 1.0


def test_nothing_is_no_clip() -> None:
    with pytest.raises(SoundError, match="cannot be cut"):
        filled(50).cut(100.2, 100.2)


def test_what_was_cleared_is_gone() -> None:
    ring = filled(50)
    assert ring.end_s() == pytest.approx(100.5)
    ring.clear()
    assert ring.end_s() is None
