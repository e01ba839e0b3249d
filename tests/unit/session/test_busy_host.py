"""The conductor on a host that stores rows more slowly than they arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import pytest

from harness.base import threads
from harness.base.clocks import HostClock, ScaledClock
from harness.devices.in_process.device import InProcessOptions
from harness.model.feed import Abort, StateWord
from harness.model.observation import HostStalled, LogLine
from harness.model.record import AttemptStarted, EndReason, Entry, Observed, Record, SessionFinished
from harness.model.time import Stamp
from harness.session.plan import plan
from harness.session.run import ENDING
from tests.unit.session.house import House
from tests.unit.session.material import MemoryLog, bench, scenario

pytestmark = pytest.mark.usefixtures("simulated_time")


class BusyHostLog(MemoryLog):
    """On a host that is busy: a row takes `row_s`, during which `while_stored` may add to what is waiting."""

    row_s = 0.0
    while_stored: Callable[[], None] = staticmethod(lambda: None)

    def append(self, record: Record) -> Entry:
        threads.sleep(self.row_s)
        self.while_stored()
        return super().append(record)


@pytest.mark.parametrize("aborts", [True, False])
def test_nothing_begins_while_a_request_to_end_waits_behind_observations(aborts: bool) -> None:
    clock = ScaledClock(1.0, HostClock())
    log = BusyHostLog(clock)
    run = House(plan(scenario(2), bench()), log, clock, options=InProcessOptions(silent_share=1.0))
    with run.running():
        run.until(lambda: run.saw(StateWord.PLAYING))
        log.row_s = 3.0
        for number in range(90):
            run.conductor.enqueue(LogLine("dut_link", Stamp(clock.now_s()), str(number)))
            threads.sleep(1.0)
        count = len(log.of(AttemptStarted))
        if aborts:
            run.conductor.enqueue(Abort("a", "ann"))
        else:
            run.conductor.stop()
    assert len(log.of(AttemptStarted)) == count
    stored = [row.observation for row in log.of(Observed) if isinstance(row.observation, LogLine)]
    assert [line.text for line in stored] == [str(number) for number in range(90)], "each is stored, in its order"
    assert log.rows[-1].record == SessionFinished(EndReason.ABORTED if aborts else EndReason.STOPPED)
    assert run.states[-2].reason == ENDING


def test_stalls_while_a_stall_is_stored_do_not_keep_a_command_waiting() -> None:
    clock = ScaledClock(5.0, HostClock())
    log, stalls = BusyHostLog(clock), deque[HostStalled]()

    def taken() -> Iterator[HostStalled]:
        while stalls and len(log.rows) < 1000:
            yield stalls.popleft()

    run = House(plan(scenario(2), bench()), log, clock, new_stalls=taken)
    with run.running():
        run.until(lambda: run.saw(StateWord.PLAYING))
        log.while_stored = lambda: stalls.append(HostStalled("host", Stamp(clock.now_s()), 0.3, 40.0, None))
        stored = len(log.rows)
        assert run.ask(Abort("a", "ann")) == (True, "")
    assert len(log.rows) - stored < 200
