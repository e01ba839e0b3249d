"""How late a polling thread may see what has arrived: the error of its stamps."""

from __future__ import annotations

_LEAST_S = 0.002
_DECAY = 0.98


class Lateness:
    """seconds: delay of the recent wake-ups, at least 2 ms. It decays slowly after a late one."""

    def __init__(self) -> None:
        self.seconds = _LEAST_S

    def woke(self, waited_s: float, wanted_s: float) -> None:
        """The thread wanted to sleep for a time, and nothing woke it earlier."""
        self.seconds = max(_LEAST_S, waited_s - wanted_s, self.seconds * _DECAY)
