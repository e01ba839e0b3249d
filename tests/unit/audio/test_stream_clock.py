"""Which latency is believed."""

from __future__ import annotations

import pytest

from harness.audio.packets import Packet, Word
from harness.audio.stream_clock import Latency, StreamClock

ASSUMED = Latency(0.03, 0.02)


def fed(clock: StreamClock, reports: list[float]) -> StreamClock:
    for block, reported_s in enumerate(reports):
        clock.observe(Packet(Word.TICK, 0, 480, 480 * block, 50.0 + block * 0.01, reported_s))
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


def test_on_a_path_whose_latency_is_known_no_report_counts() -> None:
    assert fed(StreamClock(ASSUMED, None), [0.342] * 100).latency == ASSUMED
