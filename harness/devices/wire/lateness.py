"""How late a polling thread may see what has arrived: the error of its stamps."""

from __future__ import annotations

from collections import deque

_LEAST_S = 0.002  # Chosen: an idle host wakes a thread within a fraction of it.
_DECAY = 0.98
"""Of the lateness, at each wake-up that is in time."""
_LOOKS_KEPT = 240
"""Of a minute, with four looks a second."""


class Lateness:
    """seconds: delay of the recent wake-ups, at least 2 ms. It decays slowly after a late one."""

    def __init__(self) -> None:
        self.seconds = _LEAST_S

    def slept(self, waited_s: float, wanted_s: float) -> None:
        """The thread wanted to sleep for a time, and nothing woke it earlier."""
        self.seconds = max(_LEAST_S, waited_s - wanted_s, self.seconds * _DECAY)

    def arrival_error_s(self, waited_s: float, wanted_s: float) -> float:
        """The error of the arrival that ended a wait. On a host that stood still, the bytes may have lain there."""
        return waited_s if waited_s - wanted_s > _LEAST_S else self.seconds


class StallDetector:
    """Notices that the host stood still, for threads that cannot: another one looks every so often."""

    def __init__(self, every_s: float, now_s: float) -> None:
        self._delays_s: deque[float] = deque(maxlen=_LOOKS_KEPT)
        self._every_s, self._looked_s = every_s, now_s
        self._stall_began_s = self._stall_ends_s = now_s

    def look(self, now_s: float) -> None:
        if now_s - self._looked_s > 2 * self._every_s:
            self._stall_began_s, self._stall_ends_s = self._looked_s, now_s + self._every_s
        self._delays_s.append(max(0.0, now_s - self._looked_s - self._every_s))
        self._looked_s = now_s

    def blind_s(self, now_s: float) -> float:
        """How long what is read now may have lain there: as late as recent looks were, and since a stall began."""
        late_s = max(self._delays_s, default=0.0)
        if now_s - self._looked_s > 2 * self._every_s:
            return late_s + now_s - self._looked_s
        return late_s + now_s - self._stall_began_s if now_s < self._stall_ends_s else late_s
