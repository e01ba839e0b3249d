"""How long a board has said nothing, and whose silence it is."""

from __future__ import annotations

from collections.abc import Callable

_BROKER_ANSWERS_S = 1.2
"""It is asked each second."""
_OVERSLEPT_S = 1.5
"""More than the longest wait of the thread that looks."""


class BoardSilence:
    """Not thread-safe. broker_owes: for how long the broker has owed us an answer, s."""

    def __init__(self, broker_owes: Callable[[], float]) -> None:
        self._broker_owes = broker_owes
        self._heard_s = 0.0
        self._asked_s = float("-inf")
        self._looked_s = float("inf")

    def heard(self, now_s: float) -> None:
        """It has said something."""
        self._heard_s = now_s

    def asked(self, now_s: float) -> None:
        """It was pinged."""
        self._asked_s = now_s

    def look(self, now_s: float) -> None:
        """To be called all the time: a silence that we slept through on a busy host, its answer unread, is not its."""
        slept_s = now_s - self._looked_s
        if slept_s > _OVERSLEPT_S:
            self._heard_s += slept_s
        self._looked_s = now_s

    def too_long(self, now_s: float, limit_s: float) -> str:
        """What to say of it; "" as long as it may still answer."""
        silent_s = now_s - self._heard_s
        if silent_s <= limit_s or self._asked_s <= self._heard_s:
            return ""
        if self._broker_owes() > _BROKER_ANSWERS_S:
            return f"the broker answers nothing, and nothing has come from the board for {silent_s:.1f} s"
        return f"the board has said nothing for {silent_s:.1f} s; the broker answers"
