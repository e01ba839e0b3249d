"""How late a polling thread may see what has arrived: the error of its stamps."""

from __future__ import annotations

from collections import deque

_MIN_LATENESS_S = 0.002  # Chosen: an idle host wakes a thread within a fraction of it.
_DECAY = 0.98
"""Factor by which the lateness shrinks at each wake-up that is in time."""
_CHECKS_KEPT = 240
"""Number of latest checks that are kept: one minute, with four checks a second."""


class Lateness:
    """How late a thread wakes up. seconds: delay of the recent wake-ups, at least 2 ms; it decays after a late one."""

    def __init__(self) -> None:
        self.seconds = _MIN_LATENESS_S

    def record_sleep(self, waited_s: float, wanted_s: float) -> None:
        """Records that the thread slept for waited_s instead of wanted_s, and nothing woke it earlier."""
        self.seconds = max(_MIN_LATENESS_S, waited_s - wanted_s, self.seconds * _DECAY)

    def arrival_error_s(self, waited_s: float, wanted_s: float) -> float:
        """The error of the time of an arrival that ended a wait. If the host stalled, the bytes may have waited."""
        return waited_s if waited_s - wanted_s > _MIN_LATENESS_S else self.seconds


class StallDetector:
    """Notices stalls of the host, for threads that cannot do so: another thread calls `check` every `every_s`."""

    def __init__(self, every_s: float, now_s: float) -> None:
        self._delays_s: deque[float] = deque(maxlen=_CHECKS_KEPT)
        self._every_s, self._checked_s = every_s, now_s
        self._stall_began_s = self._stall_ends_s = now_s

    def check(self, now_s: float) -> None:
        """Records how late this call is. A call that is late by more than an interval shows a stall."""
        if now_s - self._checked_s > 2 * self._every_s:
            # Until the next check is due, data that waited during the stall may still be read.
            self._stall_began_s, self._stall_ends_s = self._checked_s, now_s + self._every_s
        self._delays_s.append(max(0.0, now_s - self._checked_s - self._every_s))
        self._checked_s = now_s

    def blind_s(self, now_s: float) -> float:
        """How long data that is read now may have waited: the lateness of recent checks, or since a stall began."""
        late_s = max(self._delays_s, default=0.0)
        if now_s - self._checked_s > 2 * self._every_s:  # a stall of the thread that checks
            return late_s + now_s - self._checked_s
        return late_s + now_s - self._stall_began_s if now_s < self._stall_ends_s else late_s
