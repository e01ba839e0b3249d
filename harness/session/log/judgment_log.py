"""Judgments on a session's responses, what became of their effects, and who judges them, in a file beside its log.

Raters come and go while the engine still writes its log, and long after; so they have a file of their own, which
several processes may add rows to at the same time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from harness.base.codec import RECORDS
from harness.base.places import SessionFolder
from harness.model.record import Entry, JudgmentGiven, RatingRecord, Record, chronological
from harness.session.log.database import BATCH, SESSION, Row, SharedRows, entry_of, explained, open_for_reading


class JudgmentLog(SharedRows[Record]):
    """The judgments.sqlite of one session folder; thread-safe, and any number of processes may have it open.

    LogError when the folder holds no session or the file cannot be written; LogFull.
    """

    def __init__(self, folder: Path) -> None:
        session = SessionFolder(folder)
        super().__init__(session.demand().judgments, SESSION, session.demand)

    def append(self, record: RatingRecord) -> Entry:
        """Returns when the row is on the disk; a judgment that is there already is not written again."""
        return self.append_all([record])[0]

    def append_all(self, records: Sequence[RatingRecord]) -> list[Entry]:
        """Writes rows all or none, at the cost of one; judgments that are there already are not written again."""
        return [entry_of(row, self._path) for row in self.add(records)]

    def entries(self, after_seq: int = 0) -> Iterator[Entry]:
        """Committed rows after a seq, by whichever process, in order; LogError."""
        for (seq, run, at_s, wall_s, _), record in self.read(after_seq):
            yield Entry(seq, run, at_s, wall_s, record)

    def _id(self, record: Record) -> str | None:
        return record.judgment.id if isinstance(record, JudgmentGiven) else None

    def _kind(self, record: Record) -> str:
        return record.kind

    def _record(self, row: Row) -> Record:
        return entry_of(row, self._path).record

    @property
    def _adapter(self) -> TypeAdapter[Record]:
        return RECORDS


def rating_rows(folder: Path) -> tuple[Entry, ...]:
    """Judgments and effect answers of a session, those given at the bench and those given later, oldest first.

    LogError. seq is of the file that a row stands in, so that only a row of the same file may be compared by it.
    """
    return tuple(chronological(_of_kinds(SessionFolder(folder).demand().database), later_rows(folder)))


def later_rows(folder: Path) -> tuple[Entry, ...]:
    """Those of its own file alone, in their order; LogError."""
    judgments = SessionFolder(folder).demand().judgments
    return tuple(_of_kinds(judgments, may_be_blank=True)) if judgments.is_file() else ()


def _of_kinds(path: Path, *, may_be_blank: bool = False) -> Iterator[Entry]:
    connection: sqlite3.Connection = open_for_reading(path, may_be_blank=may_be_blank)
    try:
        with explained(path):
            found = connection.execute(
                "SELECT seq, run, at_s, wall_s, body FROM entries WHERE kind IN ('judgment_given', 'effect_answered')"
                " ORDER BY seq"
            )
            while batch := found.fetchmany(BATCH):
                for row in batch:
                    yield entry_of(row, path)
    finally:
        connection.close()
