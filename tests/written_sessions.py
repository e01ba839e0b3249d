"""Sessions of tests: writes rows that a test has made, reads rows back, and computes results from them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from harness.model.record import Entry, Record, SessionStarted
from harness.model.trial import Trial
from harness.session.figures.progress import Progress, SessionFigures
from harness.session.log.database import SqliteLog
from harness.session.log.reader import LogReader
from harness.wake.wake import WakeFigures

R = TypeVar("R", bound=Record)


class HasEntries(Protocol):
    entries: list[Entry]


Made = HasEntries | Iterable[Entry] | Iterable[Record]


def progress_of(rows: HasEntries | Iterable[Entry]) -> Progress:
    """The results of a session with these rows."""
    figures = SessionFigures()
    for entry in getattr(rows, "entries", rows):
        figures.add(entry)
    return figures.snapshot()


def wake_of(entries: Iterable[Entry]) -> WakeFigures:
    """The results of its wake, command and ambient trials."""
    figures = WakeFigures()
    for entry in entries:
        figures.add(entry)
    return figures


def written(folder: Path, rows: Made, **clocks: Any) -> Path:
    """Writes a log of these rows to a folder, and returns the folder. clocks: now_s and wall_s of the writer."""
    folder.mkdir(parents=True, exist_ok=True)
    with SqliteLog(folder, **clocks) as log:
        for row in getattr(rows, "entries", rows):
            log.append(getattr(row, "record", row))
    return folder


def rows(folder: Path) -> list[Entry]:
    with LogReader(folder) as reader:
        return list(reader.entries())


def records(source: Path | Iterable[Entry], kind: type[R]) -> list[R]:
    """The records of that kind in a session's folder, or among rows that were read."""
    entries = rows(source) if isinstance(source, Path) else source
    return [entry.record for entry in entries if isinstance(entry.record, kind)]


def plan_of(entries: Iterable[Entry]) -> dict[str, Trial]:
    """The planned trials, by id."""
    (started,) = records(entries, SessionStarted)
    return {trial.id: trial for trial in started.trials}
