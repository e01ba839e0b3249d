"""Which latency is believed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.sound.child import Packet, PacketKind
from harness.sound.stream_clock import Latency, SampleClock, StreamClock

RATE_HZ = 48000
FRAMES = 480


def deliveries(
    seconds: float, *, drift: float = 0.0, jitter_s: float = 0.0, seed: int = 1, start_s: float = 1000.0
) -> list[tuple[int, float, float]]:
    """(sample, moment of its delivery, true moment); a delivery is late by an exponential time, as loads make it."""
    chance = random.Random(seed)
    rows, last = [], 0.0
    for block in range(int(seconds * RATE_HZ / FRAMES)):
        sample = block * FRAMES
        true = start_s + sample / RATE_HZ * (1 + drift)
        late = chance.expovariate(1 / jitter_s) if jitter_s else 0.0
        last = max(last, true + late)
        rows.append((sample, last, true))
    return rows


def observed(rows: list[tuple[int, float, float]], late_s: Callable[[float], float] = lambda at_s: 0.0) -> SampleClock:
    """A clock that took these deliveries, each later by `late_s` of its place in the stream."""
    clock = SampleClock(RATE_HZ)
    for sample, moment_s, _ in rows:
        clock.observe(sample, moment_s + late_s(sample / RATE_HZ))
    return clock


def worst_error(clock: SampleClock, rows: list[tuple[int, float, float]], after_s: float) -> float:
    worst = 0.0
    for sample, moment_s, true_s in rows:
        clock.observe(sample, moment_s)
        if sample / RATE_HZ >= after_s:
            worst = max(worst, abs(clock.time_of(sample)[0] - true_s))
    return worst


def test_nothing_is_known_before_the_first_delivery() -> None:
    clock = SampleClock(RATE_HZ)
    assert not clock.settled
    with pytest.raises(ValueError, match="nothing has been observed"):
        clock.time_of(0)
    with pytest.raises(ValueError, match="nothing has been observed"):
        clock.sample_at(1.0)


def test_jitter_of_deliveries_does_not_reach_the_times() -> None:
    assert worst_error(SampleClock(RATE_HZ), deliveries(20, jitter_s=0.002), 1.0) < 0.0005


@pytest.mark.parametrize("drift", [100e-6, -100e-6, 46e-6])
def test_a_drifting_stream_is_followed(drift: float) -> None:
    # 100 ppm over 60 s are 6 ms: what an anchor set once would be off by.
    assert worst_error(SampleClock(RATE_HZ), deliveries(60, drift=drift, jitter_s=0.001), 1.0) < 0.0006


def test_first_callbacks_that_fill_a_buffer_are_no_anchor() -> None:
    clock = SampleClock(RATE_HZ)
    rows = deliveries(2)
    # Playback asks for the first blocks all at once.
    ahead = 7
    filled = [
        (sample, rows[ahead][2] if index < ahead else moment, true) for index, (sample, moment, true) in enumerate(rows)
    ]
    assert worst_error(clock, filled, 0.5) < 1e-9


def test_lost_samples_are_found_and_the_clock_starts_anew() -> None:
    clock = SampleClock(RATE_HZ)
    missing = []
    rows = deliveries(10, jitter_s=0.0005)
    for sample, moment_s, _ in rows:
        # From the 4th second on, 30 ms of samples were never counted.
        late = 0.030 if sample >= 4 * RATE_HZ else 0.0
        lost_s = clock.observe(sample, moment_s + late)
        if lost_s:
            missing.append((sample / RATE_HZ, lost_s))
    ((at_s, found_s),) = missing
    assert 4.0 <= at_s <= 5.0
    assert found_s == pytest.approx(0.030, abs=0.002)
    sample, _, true_s = rows[-1]
    assert clock.time_of(sample)[0] == pytest.approx(true_s + 0.030, abs=0.0005)


def test_possible_loss_is_stated_as_doubt_until_certain() -> None:
    clock = SampleClock(RATE_HZ)
    rows = deliveries(10, jitter_s=0.0005)
    most_s = 0.0
    for sample, moment_s, true_s in rows:
        missing_s = 0.030 if sample >= 4 * RATE_HZ else 0.0
        clock.observe(sample, moment_s + missing_s)
        if sample >= RATE_HZ:
            at_s, error_s = clock.time_of(sample)
            assert at_s - error_s <= true_s + missing_s <= at_s + error_s + clock.doubt_s(sample)
            most_s = max(most_s, clock.doubt_s(sample))
    assert most_s == pytest.approx(0.030, abs=0.005)
    assert clock.doubt_s(rows[-1][0]) < 0.005


def test_later_deliveries_remove_the_doubt() -> None:
    rows = deliveries(5)
    clock = observed(rows[:-1])
    sample, moment_s, _ = rows[-1]
    clock.observe(sample, moment_s + 0.020)
    assert clock.doubt_s(sample) == pytest.approx(0.020, abs=0.001)
    assert clock.doubt_s(sample - FRAMES) < 0.001
    with pytest.raises(ValueError, match="nothing has been observed"):
        SampleClock(RATE_HZ).doubt_s(0)


@pytest.mark.parametrize("since_s", [0.15, 2.5])
def test_deliveries_that_come_to_be_earlier_are_counted(since_s: float) -> None:
    def late_s(at_s: float) -> float:
        # Buffers fill within 0.05 s. Then, and for good, one block more is asked for in advance.
        return max(0.0, 0.05 - at_s) - (0.010 if at_s >= since_s else 0.0)

    clock = observed(deliveries(6, jitter_s=0.0002, drift=100e-6), late_s)
    assert clock.ahead_s == pytest.approx(0.010, abs=0.001)


def test_buffering_jitter_and_drift_are_not_early_delivery() -> None:
    clock = observed(deliveries(30, jitter_s=0.001, drift=-100e-6), lambda at_s: max(0.0, 0.05 - at_s))
    assert clock.ahead_s == 0.0


def test_a_stall_that_catches_up_is_no_loss() -> None:
    clock = SampleClock(RATE_HZ)
    for sample, moment_s, _ in deliveries(10):
        # A busy host: nothing is delivered between 4.0 s and 4.6 s, then all at once.
        stalled = 1000.0 + 4.6 if 4.0 <= sample / RATE_HZ < 4.6 else moment_s
        assert clock.observe(sample, stalled) == 0.0


def test_a_stream_that_jumps_ahead_is_followed_at_once() -> None:
    clock = observed(deliveries(3))
    sample = 3 * RATE_HZ
    clock.observe(sample, 1003.0 - 0.2)
    assert clock.time_of(sample)[0] == pytest.approx(1002.8)
    assert not clock.settled


def test_a_clock_says_how_much_its_anchors_disagree() -> None:
    assert observed(deliveries(20)).time_of(0)[1] < 0.0003
    # For two seconds of four the earliest delivery is 2 ms late.
    assert 0.0015 < observed(deliveries(20), lambda at_s: 0.002 if at_s % 4 > 2 else 0.0).time_of(0)[1] < 0.003


@settings(max_examples=25)
@given(
    drift=st.floats(-100e-6, 100e-6),
    jitter_s=st.floats(0.0, 0.002),
    seed=st.integers(0, 2**16),
    sample=st.integers(0, 20 * RATE_HZ),
)
def test_time_and_sample_are_inverse(drift: float, jitter_s: float, seed: int, sample: int) -> None:
    clock = observed(deliveries(8, drift=drift, jitter_s=jitter_s, seed=seed))
    assert abs(clock.sample_at(clock.time_of(sample)[0]) - sample) <= 1


ASSUMED = Latency(0.03, 0.02)


def fed(clock: StreamClock, reports: list[float]) -> StreamClock:
    for block, reported_s in enumerate(reports):
        clock.observe(Packet(PacketKind.TICK, 0, 480, 480 * block, 50.0 + block * 0.01, reported_s))
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
    "reports", [[0.02 * block for block in range(100)], [0.0] * 100, [3.0] * 100], ids=["growing", "none", "absurd"]
)
def test_impossible_latency_reports_are_ignored(reports: list[float]) -> None:
    clock = fed(StreamClock(ASSUMED, 0.01), reports)
    assert clock.settled
    assert clock.latency == ASSUMED


def test_late_callbacks_report_the_usual_latency() -> None:
    clock = StreamClock(ASSUMED, 0.0005)
    for block in range(100):
        # A busy host: every third callback is up to 40 ms late, and its report says so.
        late_s = 0.04 * (block % 7) / 6 if block % 3 == 0 else 0.0
        clock.observe(Packet(PacketKind.BLOCK, 0, 480, 480 * block, 50.0 + block * 0.01 + late_s, -0.0002 - late_s))
    assert clock.latency.shift_s == pytest.approx(-0.0002, abs=1e-6)
    assert clock.latency.error_s == 0.0005


def test_reports_go_on_after_a_gap_with_the_same_latency() -> None:
    clock = StreamClock(ASSUMED, 0.01)
    for block in range(400):
        missing_s = 0.03 if block >= 60 else 0.0
        clock.observe(Packet(PacketKind.TICK, 0, 480, 480 * block, 50.0 + block * 0.01 + missing_s, 0.045))
    assert clock.latency.shift_s == pytest.approx(0.045, abs=0.001)
    assert clock.time_of(480 * 399)[0] == pytest.approx(50.0 + 3.99 + 0.03 + 0.045, abs=0.001)


def test_a_sample_left_no_earlier_than_those_before_it() -> None:
    clock = StreamClock(ASSUMED, None)
    for block in range(300):
        # From the 2nd second on a block more is asked for in advance: the sound goes on as before.
        ahead_s = 0.01 if block >= 200 else 0.0
        clock.observe(Packet(PacketKind.TICK, 0, 480, 480 * block, 50.0 + block * 0.01 - ahead_s, 0.0))
    at_s, error_s = clock.departure_of(480 * 250)
    # Either the sound stayed where it was, or all before was late.
    assert at_s - error_s <= 50.0 + 2.5 - 0.01 + ASSUMED.shift_s - ASSUMED.error_s
    assert at_s + error_s >= 50.0 + 2.5 + ASSUMED.shift_s + ASSUMED.error_s
    assert error_s < ASSUMED.error_s + 0.008


def test_on_a_path_whose_latency_is_known_no_report_counts() -> None:
    assert fed(StreamClock(ASSUMED, None), [0.342] * 100).latency == ASSUMED
