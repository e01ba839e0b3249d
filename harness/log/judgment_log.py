"""Judgments on a session's responses, and what became of their effects, in a file beside the session's log.

Raters come and go while the engine still writes its log, and long after; so they have a file of their own, which
several processes may add rows to at the same time.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic_core import PydanticSerializationError

from harness.log.database import BATCH, entry_of, explained, open_for_reading, open_for_writing, rows
from harness.log.folder import SessionFolder
from harness.model.errors import LogError
from harness.model.record import EffectAnswered, Entry, JudgmentGiven, chronological
from harness.wire.codec import RECORDS, encode

RatingRecord = JudgmentGiven | EffectAnswered
WAIT_S = 30.0
"""So long a writer waits for another one's commit."""


class JudgmentLog:
    """The judgments.sqlite of one session folder; thread-safe, and any number of processes may have it open.

    LogError when the folder holds no session or the file cannot be written; LogFull.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = SessionFolder(folder)
        self._path = self._folder.demand().judgments
        self._lock = threading.Lock()
        self._open()

    def append(self, record: RatingRecord) -> Entry:
        """Returns when the row is on the disk; a judgment that is there already is not written again."""
        return self.append_all([record])[0]

    def append_all(self, records: Sequence[RatingRecord]) -> list[Entry]:
        """Writes rows all or none, at the cost of one; judgments that are there already are not written again."""
        entries: list[Entry] = []
        with self._lock, explained(self._path):
            self._demand_place()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._catch_up()
                seq = self._seq
                fresh: dict[str, int] = {}
                for record in records:
                    if isinstance(record, JudgmentGiven):
                        id_ = record.judgment.id
                        if (there := self._known.get(id_, fresh.get(id_))) is not None:
                            entries.append(self._row(there))
                            continue
                        fresh[id_] = seq + 1
                    body = _text(record)
                    seq += 1
                    entry = Entry(seq, 0, time.monotonic(), time.time(), record)
                    self._connection.execute(
                        "INSERT INTO entries (seq, run, at_s, wall_s, kind, body) VALUES (?, ?, ?, ?, ?, ?)",
                        (entry.seq, entry.run, entry.at_s, entry.wall_s, record.kind, body),
                    )
                    entries.append(entry)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        return entries

    def entries(self, after_seq: int = 0) -> Iterator[Entry]:
        """Committed rows after a seq, by whichever process, in order; LogError."""
        connection = open_for_reading(self._path, may_be_blank=True)
        try:
            yield from rows(connection, self._path, after_seq)
        finally:
            connection.close()

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _open(self) -> None:
        self._known: dict[str, int] = {}
        self._seq = 0
        self._connection = open_for_writing(self._path)
        with explained(self._path):
            self._connection.execute(f"PRAGMA busy_timeout={round(WAIT_S * 1000)}")
        self._opened = _place(self._path)

    def _demand_place(self) -> None:
        """Opens the file anew where another one has taken its place; LogError when the session is gone."""
        if _place(self._path) != self._opened:
            # An open file that was removed still takes rows, and nobody would ever read them.
            self._folder.demand()
            self._connection.close()
            self._open()

    def _catch_up(self) -> None:
        """Learns the ids that other processes have written meanwhile."""
        for entry in rows(self._connection, self._path, self._seq):
            self._seq = entry.seq
            if isinstance(entry.record, JudgmentGiven):
                self._known[entry.record.judgment.id] = entry.seq

    def _row(self, seq: int) -> Entry:
        return next(rows(self._connection, self._path, seq - 1))


def _place(path: Path) -> tuple[int, int] | None:
    """Which file a path leads to now; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _text(record: RatingRecord) -> str:
    try:
        return encode(RECORDS, record).decode("utf-8")
    except PydanticSerializationError as error:
        what = f"a {record.kind} row cannot be written as text: {error}"
        raise LogError(what, remedy="Write it in other characters") from error


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
