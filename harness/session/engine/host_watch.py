"""Notices stalls of the host: no thread of the engine ran for a while, so that everything was stamped late."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.base import threads
from harness.model.observation import HostStalled
from harness.model.time import Stamp
from harness.statistics.intervals import MAX_ERROR_S

SOURCE = "host"
CHECK_INTERVAL_S = 0.02
STALL_S = MAX_ERROR_S
"""A check that runs this much too late shows a stall, which spoils the times that it falls into."""
JOIN_S = 1.0
"""Two stalls that were not reported yet count as one if the host ran for less than this between them."""


class HostWatch:
    """Watches for stalls. A thread checks the clock every 20 ms, and so does each call of `new_stalls`.

    Only a gap between all checks is a stall. This is for sessions in real time: simulated devices at another speed
    stall together with the engine.
    """

    def __init__(self) -> None:
        self._lock = threads.lock()
        self._ending = threads.event()
        self._checked_s = threads.monotonic()
        self._processor_times = self._previous_times = processor_times()
        self._stalls: deque[HostStalled] = deque()

    def new_stalls(self) -> tuple[HostStalled, ...]:
        """The stalls that were not returned before. Call it before handling events, which a stall may have delayed."""
        self.check()
        with self._lock:
            stalls = tuple(self._stalls)
            self._stalls.clear()
        return stalls

    def check(self) -> None:
        """Compares the clock with that of the last check, and records a stall if too much time has passed."""
        with self._lock:
            now_s = threads.monotonic()
            late_s = now_s - self._checked_s - CHECK_INTERVAL_S
            if late_s > STALL_S:
                start = Stamp(self._checked_s + CHECK_INTERVAL_S / 2, CHECK_INTERVAL_S / 2)
                last = self._stalls[-1] if self._stalls else None
                # A host that runs only for moments would stall again before the row of each stall is stored.
                if last is not None and start.at_s - (last.at.at_s + last.lasted_s) < JOIN_S:
                    start = self._stalls.pop().at
                else:
                    self._previous_times = self._processor_times
                self._processor_times = processor_times()
                lasted_s, load = now_s - start.at_s, os.getloadavg()[0]
                steal = stolen_share(self._previous_times, self._processor_times)
                self._stalls.append(HostStalled(SOURCE, start, lasted_s, load, steal))
            self._checked_s = now_s

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watches in a thread until the block ends."""
        self.check()
        self._stalls.clear()  # a gap before the first check is not a stall
        thread = threads.thread(self._watch, name="host-watch")
        thread.start()
        try:
            yield
        finally:
            self._ending.set()
            thread.join(1.0)

    def _watch(self) -> None:
        while not self._ending.wait(CHECK_INTERVAL_S):
            self.check()


Times = tuple[int, int]
"""Clock ticks of all processors since the start of the system: those stolen by the hypervisor, and all."""


def processor_times(path: Path = Path("/proc/stat")) -> Times | None:
    """The processor times of this machine, see proc_stat(5); None if the system does not report them."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        # "cpu user nice system idle iowait irq softirq steal guest …": guest times are part of the others.
        ticks = [int(field) for field in path.read_text().partition("\n")[0].split()[1:9]]
        return ticks[7], sum(ticks)
    return None


def stolen_share(before: Times | None, after: Times | None) -> float | None:
    """The share of steal between two readings; None if one is missing, or no time has passed."""
    if before is None or after is None:
        return None
    stolen, total = after[0] - before[0], after[1] - before[1]
    return min(1.0, max(0.0, stolen / total)) if total > 0 else None
