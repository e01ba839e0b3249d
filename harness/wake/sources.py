"""Merges the wake events that several sources of one device report, as they arrive."""

from __future__ import annotations

from dataclasses import dataclass

from harness.wake.counting import SourceEvent, merge_sources
from harness.wake.wake_plays import HeardWake

KEPT = 64
"""Number of a device's latest reports that a later one may still be merged with."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a report changes: these events are gone, and these are new in their place."""

    gone: tuple[HeardWake, ...] = ()
    new: tuple[HeardWake, ...] = ()


class Merging:
    """One device's reports by source, merged into events; for devices with several sources.

    Reports are grouped by their times, so a source may report seconds after the others. The time of an event is that
    of the report with the least error; a place on the device's audio line counts as exact. The event keeps the row
    number of its first report, so that reviews and clips still belong to it when another report joins.
    """

    def __init__(self, sources: tuple[str, ...], within_s: float) -> None:
        self._ranks = {source: rank for rank, source in enumerate(sources)}
        self._within_s = within_s
        self._reports: list[HeardWake] = []
        self._events: dict[tuple[int, ...], HeardWake] = {}

    @property
    def several(self) -> bool:
        return len(self._ranks) > 1

    def add(self, report: HeardWake) -> Change:
        self._reports.append(report)
        events = [SourceEvent(self._ranks[one.source], one.at.at_s, one.error_s) for one in self._reports]
        groups = merge_sources(events, self._within_s)
        found = [merged([self._reports[at] for at in group]) for group in groups]
        before, self._events = self._events, {_key(one): one for one in found}
        change = Change(
            tuple(one for key, one in before.items() if key not in self._events),
            tuple(one for key, one in self._events.items() if key not in before),
        )
        self._forget()
        return change

    def is_part(self, seq: int) -> bool:
        """Whether the report of that row belongs to an event that an earlier row began."""
        return any(seq in key and one.seq != seq for key, one in self._events.items())

    def begin_run(self) -> None:
        """Another process resumes the session; reports of the earlier one stay as they are."""
        self._reports.clear()
        self._events.clear()

    def _forget(self) -> None:
        """Forgets whole events, the earliest first, so that those that stay keep their groups."""
        for key in sorted(self._events, key=lambda key: self._events[key].at.at_s):
            if len(self._reports) <= KEPT:
                return
            del self._events[key]
            self._reports = [one for one in self._reports if one.seq not in key]


def merged(reports: list[HeardWake]) -> HeardWake:
    """One event from the reports of different sources, in the order of the sources."""
    best = min(reports, key=lambda one: (one.error_s, one.at.at_s))
    first = min(reports, key=lambda one: one.seq)
    phrases = [best.phrase, *(one.phrase for one in reports)]
    scores = [best.score, *(one.score for one in reports)]
    return best._replace(
        seq=first.seq,
        wall_s=first.wall_s,
        phrase=next(filter(None, phrases), ""),
        score=next((score for score in scores if score is not None), None),
        reports=tuple(reports),
        inferred=best.inferred if all(one.inferred for one in reports) else "",
    )


def _key(event: HeardWake) -> tuple[int, ...]:
    return tuple(one.seq for one in event.reports)
