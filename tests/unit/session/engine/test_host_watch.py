"""The watch on stalls of the host, in simulated time."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base import threads
from harness.session.engine.host_watch import (
    CHECK_INTERVAL_S,
    JOIN_S,
    STALL_S,
    HostWatch,
    processor_times,
    stolen_share,
)

pytestmark = pytest.mark.usefixtures("simulated_time")


def test_a_gap_between_looks_is_a_stall_with_its_time() -> None:
    watch = HostWatch()
    threads.sleep(3.0)
    watch.check()
    (stall,) = watch.new_stalls()
    ends_s = threads.monotonic()
    assert stall.source == "host"
    assert stall.at.at_s - stall.at.error_s <= ends_s - 3.0 <= stall.at.at_s + stall.at.error_s
    assert stall.at.at_s + stall.lasted_s == pytest.approx(ends_s)
    assert tuple(watch.new_stalls()) == (), "each is given once"


def test_a_stall_is_known_to_whoever_asks_first_after_it() -> None:
    watch = HostWatch()
    threads.sleep(0.5)
    assert [stall.lasted_s for stall in watch.new_stalls()] == [pytest.approx(0.5 - CHECK_INTERVAL_S / 2)]


def test_stalls_with_only_moments_between_them_are_one() -> None:
    watch = HostWatch()
    for ran_s in (0.3, 0.9, JOIN_S + 0.1):
        threads.sleep(2.0)
        watch.check()
        for _ in range(round(ran_s / CHECK_INTERVAL_S)):
            threads.sleep(CHECK_INTERVAL_S)
            watch.check()
    threads.sleep(0.5)
    expected_s = [pytest.approx(7.2 - CHECK_INTERVAL_S / 2), pytest.approx(0.49)]
    assert [stall.lasted_s for stall in watch.new_stalls()] == expected_s
    threads.sleep(0.5)
    assert len(watch.new_stalls()) == 1, "a stall that was given already stays as it is"


@pytest.mark.parametrize("late_s", [0.0, 0.9 * STALL_S])
def test_a_small_delay_is_not_a_stall(late_s: float) -> None:
    watch = HostWatch()
    threads.sleep(CHECK_INTERVAL_S + late_s)
    assert tuple(watch.new_stalls()) == ()


def test_a_thread_that_looks_on_time_shows_no_stall() -> None:
    watch = HostWatch()
    threads.sleep(2.0)
    with watch.watching():
        threads.sleep(5.0)
        assert tuple(watch.new_stalls()) == (), "what was before the watch is none either"


def test_the_share_of_stolen_processor_time_is_measured(tmp_path: Path) -> None:
    ticks = tmp_path / "stat"
    ticks.write_text("cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 1 1 1\n")
    assert processor_times(ticks) == (35, 1000)
    assert processor_times(tmp_path / "none") is None
    ticks.write_text("cpu 1 2 3\n")
    assert processor_times(ticks) is None
    assert stolen_share((35, 1000), (60, 1100)) == 0.25
    assert stolen_share((35, 1000), (35, 1000)) is None
    assert stolen_share(None, (35, 1000)) is None
