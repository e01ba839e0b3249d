"""Times of events against the moments at which the board took them, by a clock that is wrong on purpose."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from harness.model.observation import ClockFitted, Intent, ResponseText, Transcript
from tests.conformance.boards import posix_board
from tests.conformance.serial_bench import Bench
from tests.seen import until


@pytest.mark.usefixtures("host_keeps_time")
@pytest.mark.parametrize("ppm", [-300, *(pytest.param(ppm, marks=pytest.mark.soak) for ppm in (0, 80))])
def test_stated_errors_of_event_times_hold_and_are_small(tmp_path: Path, ppm: int) -> None:
    options = ("--clock-offset-us", "123456789012", "--clock-ppm", str(ppm))
    with posix_board(tmp_path, *options) as board, Bench(tmp_path, board.port) as bench:
        for number in range(150):
            bench.driver.say(f"word {number}")
            time.sleep(0.02)  # events over some seconds, between pings
        until(lambda: len(bench.of(ResponseText)) == 150)
        events = [event for event in bench.all if isinstance(event, Transcript | Intent | ResponseText)]
        (moments,) = board.truth()
        truth = [moments[number] * 1e-9 for number in sorted(moments)][1:]  # the first one is its start
        assert len(events) == len(truth) == 450
        errors = [abs(event.at.at_s - true_s) for event, true_s in zip(events, truth, strict=True)]
        honest = sum(error <= event.at.error_s for error, event in zip(errors, events, strict=True))
        assert honest >= 0.99 * len(errors)
        assert sorted(errors)[int(0.9 * len(errors))] < 1e-3  # the others are those of a busy host, which are stated
        assert sorted(event.at.error_s for event in events)[len(events) // 2] < 1e-3
        assert bench.of(ClockFitted)
