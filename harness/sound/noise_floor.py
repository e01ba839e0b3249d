"""The level of the noise under everything, tracked while people speak."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

SILENT_DBFS = -90.0


class NoiseFloor:
    """A low percentile of the frame levels of the last seconds: speech has pauses, noise has none.

    Starts with the first frame. Falls at once, rises by at most `rise_db_per_s`, so that a long speech without pauses
    lifts it little. The percentile lies below the mean of noise by `bias_db`, which is added.
    """

    def __init__(
        self,
        frames_per_s: int = 100,
        window_s: float = 4.0,
        percentile: float = 0.15,
        bias_db: float = 1.2,
        rise_db_per_s: float = 6.0,
    ) -> None:
        self._length = int(window_s * frames_per_s)
        self._percentile = percentile
        self._bias_db = bias_db
        self._rise_db = rise_db_per_s / frames_per_s
        self.reset()

    def reset(self) -> None:
        self._levels: deque[float] = deque()
        self._sorted: list[float] = []
        self._floor_dbfs: float | None = None

    @property
    def dbfs(self) -> float:
        """dBFS; SILENT_DBFS before the first frame and in digital silence."""
        return SILENT_DBFS if self._floor_dbfs is None else self._floor_dbfs

    def feed(self, level_dbfs: float) -> float:
        """Takes the level of the next frame, gives the floor."""
        level_dbfs = max(level_dbfs, SILENT_DBFS)
        self._levels.append(level_dbfs)
        insort(self._sorted, level_dbfs)
        if len(self._levels) > self._length:
            del self._sorted[bisect_left(self._sorted, self._levels.popleft())]
        found = self._sorted[int(self._percentile * len(self._sorted))] + self._bias_db
        young = len(self._levels) < 10
        if self._floor_dbfs is None or young or found < self._floor_dbfs:
            self._floor_dbfs = found
        else:
            self._floor_dbfs = min(found, self._floor_dbfs + self._rise_db)
        return self._floor_dbfs
