"""The next time that the clock on the wall shows a time of day."""

from __future__ import annotations

from datetime import date, datetime, timedelta, tzinfo

_DAYS = 3


def next_time_of_day(clock: str, after_s: float, zone: tzinfo | None = None) -> float:
    """Unix time of the first HH:MM after another Unix time; zone None: this host's.

    Where clocks are put back, HH:MM comes twice, and each counts. Where they are put forward over it, it is taken to
    come as late after midnight as without the change. ValueError when it is no time of day.
    """
    hour, _, minute = clock.partition(":")
    first = datetime.fromtimestamp(after_s, zone).date()
    moments = [
        moment
        for ahead in range(_DAYS)
        for moment in _on(first + timedelta(days=ahead), int(hour), int(minute), zone)
        if moment > after_s
    ]
    return min(moments)


def _on(day: date, hour: int, minute: int, zone: tzinfo | None) -> list[float]:
    """The moments of that day at which clocks show it: one, or two; of a day that leaves it out, one after it."""
    folds = [
        datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone, fold=fold).timestamp() for fold in (0, 1)
    ]
    shown = [one for one in folds if datetime.fromtimestamp(one, zone).strftime("%H:%M") == f"{hour:02}:{minute:02}"]
    return shown or folds[:1]
