"""Which latency is believed."""

from __future__ import annotations

import pytest

from harness.sound.child import Packet, Verb
from harness.sound.stream_clock import Latency, StreamClock

ASSUMED = Latency(0.03, 0.02)


def fed(clock: StreamClock, reports: list[float]) -> StreamClock:
    for block, reported_s in enumerate(reports):
        clock.observe(Packet(Verb.TICK, 0, 480, 480 * block, 50.0 + block * 0.01, reported_s))
    return clock


def test_reports_that_agree_are_believed_once_the_stream_has_settled() -> None:
    # The first reports are always wrong: the buffers are being filled.
    clock = fed(StreamClock(ASSUMED, 0.01), [0.0] * 20 + [0.045, 0.046, 0.044] * 20)
    assert clock.settled
    assert clock.latency.shift_s == pytest.approx(0.045, abs=0.002)
    assert clock.latency.error_s == 0.01
    at_s, error_s = clock.time_of(480)
    assert at_s == pytest.approx(50.01 + 0.045, abs=0.002)
    assert error_s == pytest.approx(0.01, abs=0.002)
    assert clock.sample_at(at_s) == 480


@pytest.mark.parametrize(
    "reports",
    [
        [0.02 * block for block in range(100)],
        [0.0] * 100,
        [3.0] * 100,
    ],
    ids=["growing", "none", "absurd"],
)
def test_reports_that_cannot_be_are_not_believed(reports: list[float]) -> None:
    clock = fed(StreamClock(ASSUMED, 0.01), reports)
    assert clock.settled
    assert clock.latency == ASSUMED


def test_reports_of_late_callbacks_are_those_of_others() -> None:
    clock = StreamClock(ASSUMED, 0.0005)
    for block in range(100):
        # A busy host: every third callback is up to 40 ms late, and its report says so.
        late_s = 0.04 * (block % 7) / 6 if block % 3 == 0 else 0.0
        clock.observe(Packet(Verb.BLOCK, 0, 480, 480 * block, 50.0 + block * 0.01 + late_s, -0.0002 - late_s))
    assert clock.latency.shift_s == pytest.approx(-0.0002, abs=1e-6)
    assert clock.latency.error_s == 0.0005


def test_reports_go_on_after_a_gap_with_the_same_latency() -> None:
    clock = StreamClock(ASSUMED, 0.01)
    for block in range(400):
        missing_s = 0.03 if block >= 60 else 0.0
        clock.observe(Packet(Verb.TICK, 0, 480, 480 * block, 50.0 + block * 0.01 + missing_s, 0.045))
    assert clock.latency.shift_s == pytest.approx(0.045, abs=0.001)
    assert clock.time_of(480 * 399)[0] == pytest.approx(50.0 + 3.99 + 0.03 + 0.045, abs=0.001)


def test_a_sample_left_no_earlier_than_those_before_it() -> None:
    clock = StreamClock(ASSUMED, None)
    for block in range(300):
        # From the 2nd second on a block more is asked for in advance: the sound goes on as before.
        ahead_s = 0.01 if block >= 200 else 0.0
        clock.observe(Packet(Verb.TICK, 0, 480, 480 * block, 50.0 + block * 0.01 - ahead_s, 0.0))
    at_s, error_s = clock.left(480 * 250)
    # Either the sound stayed where it was, or all before was late.
    assert at_s - error_s <= 50.0 + 2.5 - 0.01 + ASSUMED.shift_s - ASSUMED.error_s
    assert at_s + error_s >= 50.0 + 2.5 + ASSUMED.shift_s + ASSUMED.error_s
    assert error_s < ASSUMED.error_s + 0.008


def test_on_a_path_whose_latency_is_known_no_report_counts() -> None:
    assert fed(StreamClock(ASSUMED, None), [0.342] * 100).latency == ASSUMED
