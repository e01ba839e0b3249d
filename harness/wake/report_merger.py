"""Merges the reports of a device's several sources into wake events."""

from __future__ import annotations

from harness.wake.counting import merge_sources
from harness.wake.wake_plays import HeardWake

MAX_REPORTS = 64
"""Number of a device's latest reports with which a later one may still be merged."""


class ReportMerger:
    """Merges the reports of one device's sources into events; for devices with several sources.

    Reports are grouped by their times, so a source may report seconds after the others. The time of an event is that
    of the report with the least error; a sample number counts as exact. The event keeps the row number of its first
    report, so that reviews and clips still belong to it when another report joins.
    """

    def __init__(self, sources: tuple[str, ...], within_s: float) -> None:
        self._ranks = {source: rank for rank, source in enumerate(sources)}
        self.several = len(self._ranks) > 1
        self._within_s = within_s
        self._reports: list[HeardWake] = []
        self._events: dict[tuple[int, ...], HeardWake] = {}
        """Row numbers of the reports of an event → the event."""

    def add(self, report: HeardWake) -> tuple[list[HeardWake], list[HeardWake]]:
        """Adds a report. Returns the events that it removes, and the new ones that replace them."""
        self._reports.append(report)
        times = [(self._ranks[report.source], report.at.at_s) for report in self._reports]
        groups = merge_sources(times, self._within_s)
        events = [merge_reports([self._reports[index] for index in group]) for group in groups]
        previous = self._events
        self._events = {tuple(report.seq for report in event.reports): event for event in events}
        removed = [event for seqs, event in previous.items() if seqs not in self._events]
        new = [event for seqs, event in self._events.items() if seqs not in previous]
        self._forget_oldest()
        return removed, new

    def is_part(self, seq: int) -> bool:
        """Whether the report in that row belongs to an event whose first report is in an earlier row."""
        return any(seq in seqs and event.seq != seq for seqs, event in self._events.items())

    def begin_run(self) -> None:
        """Records that another process resumes the session; the events of the earlier one do not change any more."""
        self._reports.clear()
        self._events.clear()

    def _forget_oldest(self) -> None:
        """Forgets whole events, the earliest first, until at most MAX_REPORTS reports are left.

        The reports of an event are forgotten together, so that the others keep their groups.
        """
        for seqs in sorted(self._events, key=lambda seqs: self._events[seqs].at.at_s):
            if len(self._reports) <= MAX_REPORTS:
                return
            del self._events[seqs]
            self._reports = [report for report in self._reports if report.seq not in seqs]


def merge_reports(reports: list[HeardWake]) -> HeardWake:
    """One event from the reports of different sources, which are in the order of the sources.

    Its time is that of the best report, its row that of the first. The phrase and the score are those of the best
    report, else of the first source that has one. It is inferred only if all reports are.
    """
    best = min(reports, key=lambda report: (report.error_s, report.at.at_s))
    first = min(reports, key=lambda report: report.seq)
    phrases = [best.phrase, *(report.phrase for report in reports)]
    scores = [best.score, *(report.score for report in reports)]
    return best._replace(
        seq=first.seq,
        wall_s=first.wall_s,
        phrase=next(filter(None, phrases), ""),
        score=next((score for score in scores if score is not None), None),
        reports=tuple(reports),
        inferred=best.inferred if all(report.inferred for report in reports) else "",
        plays_only=all(report.plays_only for report in reports),
    )
