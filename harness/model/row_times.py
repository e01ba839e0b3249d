"""The order of rows of several files, and their times without the jumps of the wall clock."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model.record import EngineStarted, Entry

CLOCK_JUMP_S = 2.0
"""If wall clock and monotonic clock differ by more, the wall clock was set, or the host slept.

Clocks that follow a time server drift far less.
"""


class SteadyWall:
    """Unix times of rows without the jumps of the wall clock, so that durations across a jump are right.

    Between two rows of a run the monotonic clock decides, and between two runs the wall clock.
    """

    def __init__(self) -> None:
        self._last: Entry | None = None
        self._clock_speed = 1.0
        self._jumps_s = 0.0  # total of the jumps so far; positive if the clock was set forward

    def wall_s_of(self, entry: Entry) -> float:
        """The Unix time of a row. Call it for every row of a log, in order."""
        last, self._last = self._last, entry
        if isinstance(entry.record, EngineStarted):
            self._clock_speed = entry.record.clock_speed
        elif last is not None and last.run == entry.run:
            jump_s = entry.wall_s - last.wall_s - (entry.at_s - last.at_s) / self._clock_speed
            if abs(jump_s) > CLOCK_JUMP_S:
                self._jumps_s += jump_s
        return entry.wall_s - self._jumps_s


def chronological(*files: Iterable[Entry]) -> list[Entry]:
    """Rows of several files, oldest first. Rows of one file keep their order, even if the clock was set back."""
    dated_entries: list[tuple[float, Entry]] = []
    for rows in files:
        latest_s = 0.0
        for entry in rows:
            latest_s = max(latest_s, entry.wall_s)
            dated_entries.append((latest_s, entry))
    return [entry for _, entry in sorted(dated_entries, key=lambda dated_entry: dated_entry[0])]
