"""The file of judgments, effect answers and moved shares beside a session's log.

Raters work while the engine still writes its log, and long after, so they write a separate file. Several processes may
write it at the same time.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from harness.base.places import SessionFolder
from harness.base.row_store import SESSION, SharedRows, first_hash
from harness.model.record import RatingRecord, Record


class JudgmentLog(SharedRows[Record]):
    """The judgments.sqlite of one session folder. Safe for several threads and processes.

    Raises LogError if the folder does not contain a session, or the file cannot be written, and LogFull.
    """

    def __init__(self, folder: Path) -> None:
        session = SessionFolder(folder)
        first = partial(first_hash, session.database)
        super().__init__(session.demand().judgments, SESSION, session.demand, first)

    def append(self, record: RatingRecord) -> None:
        """Adds a row. Returns once it is on the disk. A judgment that is already there is skipped."""
        self.add([record])
