"""The file of judgments, effect answers and moved shares beside a session's log.

Raters work while the engine still writes its log, and long after, so they write a separate file. Several processes may
write it at the same time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from harness.base.places import SessionFolder
from harness.base.row_store import SESSION, SharedRows, entry_of, first_hash, read_entries
from harness.model.record import Entry, RatingRecord, Record


class JudgmentLog(SharedRows[Record]):
    """The judgments.sqlite of one session folder. Safe for several threads and processes.

    LogError when the folder holds no session or the file cannot be written; LogFull.
    """

    def __init__(self, folder: Path) -> None:
        session = SessionFolder(folder)
        first = partial(first_hash, session.database)
        super().__init__(session.demand().judgments, SESSION, session.demand, first)

    def append(self, record: RatingRecord) -> Entry:
        """Returns when the row is on the disk; skips a judgment that is already there."""
        return self.append_all([record])[0]

    def append_all(self, records: Sequence[RatingRecord]) -> list[Entry]:
        """Writes all rows or none in one transaction; skips judgments that are already there."""
        return [entry_of(row, self._path) for row in self.add(records)]

    def entries(self, after_seq: int = 0) -> Iterator[Entry]:
        """Committed rows after a seq, from all processes, in order; LogError."""
        return read_entries(self._path, after_seq, may_be_blank=True)
