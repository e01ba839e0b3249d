"""How long a rater was in front of a response: the time between signs of them, rests left out."""

from __future__ import annotations

from collections.abc import Callable

REST_S = 180.0
"""Who has pressed no key for so long has rested."""
BACK_S = 1.0
"""Who answers so soon after a rest has made up their mind before, nobody knows when."""


class Presence:
    """Keys, plays and pages that are loaded are signs of the rater; all times are of the clock that is given."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._busy_since_s = self._sign_s = now_s()
        self._active_s = 0.0
        self._back_s: float | None = None

    def sign(self, played_s: float = 0.0) -> None:
        """The rater is there. played_s: for so long of the time since the last sign they listened."""
        now_s = self._now_s()
        away_s = now_s - self._sign_s
        if away_s - played_s > REST_S:
            self._busy_since_s = self._back_s = now_s
        else:
            self._active_s += away_s
        self._sign_s = now_s

    def begin(self) -> None:
        """Another response comes in sight."""
        now_s = self._now_s()
        if now_s - self._sign_s > REST_S:
            self._busy_since_s = now_s
        self._sign_s = now_s
        self._active_s, self._back_s = 0.0, None

    @property
    def time_to_answer_s(self) -> float | None:
        """In front of the response, up to the last sign; None when it is answered straight out of a rest."""
        if self._back_s is not None and self._sign_s - self._back_s < BACK_S:
            return None
        return round(self._active_s, 3)

    @property
    def busy_s(self) -> float:
        """Since the last rest."""
        return self._now_s() - self._busy_since_s
