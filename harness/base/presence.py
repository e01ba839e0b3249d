"""How long a rater worked on a response: the time between signs of activity, without rests."""

from __future__ import annotations

from collections.abc import Callable

REST_S = 180.0
"""A longer time without a key is a rest, in seconds."""
BACK_S = 1.0
"""If an answer follows a rest this soon, in seconds, the rater decided during the rest, at an unknown time."""


class Presence:
    """Measures the time from signs of activity: keys, plays and page loads. All times come from the given clock."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._busy_since_s = self._last_activity_s = now_s()
        self._active_s = 0.0
        self._back_s: float | None = None  # when the last rest with this response ended
        self.began_earlier = False
        """Whether the response was shown before this sitting, for an unknown time."""

    def note_activity(self, played_s: float = 0.0) -> None:
        """Notes activity. played_s: how long the rater listened since the last activity."""
        now_s = self._now_s()
        away_s = now_s - self._last_activity_s
        if away_s - played_s > REST_S:
            self._busy_since_s = self._back_s = now_s
        else:
            self._active_s += away_s
        self._last_activity_s = now_s

    def note_return(self) -> None:
        """Notes that the person returns from other work, whose time does not count for this response."""
        self._last_activity_s = self._now_s()

    def begin(self) -> None:
        """Starts with another response, which is now shown."""
        now_s = self._now_s()
        if now_s - self._last_activity_s > REST_S:
            self._busy_since_s = now_s
        self._last_activity_s = now_s
        self._active_s, self._back_s, self.began_earlier = 0.0, None, False

    @property
    def time_to_answer_s(self) -> float | None:
        """Time with the response up to the last activity, s.

        None if the answer follows directly on a rest, or if the response was shown before this sitting.
        """
        if self.began_earlier:
            return None
        if self._back_s is not None and self._last_activity_s - self._back_s < BACK_S:
            return None
        return round(self._active_s, 3)

    @property
    def busy_s(self) -> float:
        """Time from the last rest to the last activity, s."""
        return self._last_activity_s - self._busy_since_s
