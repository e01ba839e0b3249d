"""The one writer of a session log."""

from __future__ import annotations

import fcntl
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic_core import PydanticSerializationError

from harness.base.chain import last_link, linked, seal_end
from harness.base.codec import RECORDS, encode
from harness.base.places import SessionFolder
from harness.base.whole_file import disk_errors
from harness.model.errors import LogError
from harness.model.record import Clip, EngineStarted, Entry, Record
from harness.model.stimulus import Waveform
from harness.session.log.clips import ClipShelf
from harness.session.log.database import BATCH, INSERT, explain, explained, open_for_reading, open_for_writing, rows


@dataclass(frozen=True, slots=True)
class _QueuedRow:
    record: Record
    body: str
    done: Future[Entry] = field(default_factory=Future)


class SqliteLog:
    """Implements `ports.SessionLog`: rows in SQLite (WAL, synchronous=FULL), clips as FLAC files.

    One thread commits whatever is queued, so that many callers share one fsync. An acknowledged row survives kill -9
    and a power cut. A second writer on the same folder is refused.

    now_s: the session's monotonic clock; wall_s: Unix time. on_commit: called on the writer's thread for each row,
    in order, after its commit; must not block.
    """

    def __init__(
        self,
        folder: Path,
        *,
        now_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
        on_commit: Callable[[Entry], None] | None = None,
    ) -> None:
        self._folder = SessionFolder(folder)
        self._now_s = now_s
        self._wall_s = wall_s
        self._on_commit = on_commit
        self._lock_fd = _lock(self._folder.lock)
        try:
            self._connection = open_for_writing(self._folder.database)
            self._shelf = ClipShelf(self._folder.clips)
            self._next_seq, self._run, self._link = self._position()
        except LogError:
            os.close(self._lock_fd)
            raise
        self._closing = threading.Lock()
        self._closed = False
        self._queue: queue.SimpleQueue[_QueuedRow | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="session-log", daemon=True)
        self._thread.start()

    @property
    def last_seq(self) -> int:
        """seq of the last committed row; 0 when there is none."""
        return self._next_seq - 1

    def append(self, record: Record) -> Entry:
        """Returns when the row is on the disk. LogFull when there is no room; a later call works when there is."""
        try:
            body = encode(RECORDS, record).decode("utf-8")
        except PydanticSerializationError as error:
            raise LogError(f"a {record.kind} row cannot be written as text: {error}") from error
        wanted = _QueuedRow(record, body)
        with self._closing:
            if self._closed:
                raise LogError("the session log is closed", remedy="Resume the session: harness resume SESSION")
            self._queue.put(wanted)
        return wanted.done.result()

    def save_clip(self, waveform: Waveform, start_s: float) -> Clip:
        """Returns when the file is on the disk, whole; start_s: host time of sample 0. LogFull, LogError."""
        return self._shelf.save(waveform, start_s)

    def entries(self, after_seq: int = 0) -> Iterator[Entry]:
        """Committed rows after a seq, in order; LogError."""
        connection = open_for_reading(self._folder.database)
        try:
            yield from rows(connection, self._folder.database, after_seq)
        finally:
            connection.close()

    def close(self) -> None:
        """Commits what is queued, seals the end and lets another writer in; may be called twice.

        LogFull, LogError when the end cannot be sealed; the rows are safe and the log is closed nevertheless.
        """
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()
        try:
            with explained(self._folder.database):
                seal_end(self._connection, self._folder.database)
        finally:
            self._connection.close()
            os.close(self._lock_fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _position(self) -> tuple[int, int, bytes]:
        try:
            last, run = self._connection.execute(
                "SELECT coalesce(max(seq), 0), coalesce(max(run), 0) FROM entries"
            ).fetchone()
            link = last_link(self._connection)
        except sqlite3.Error as error:
            self._connection.close()
            explain(error, self._folder.database)
        return last + 1, run, link

    def _write(self) -> None:
        going = True
        while going:
            batch: list[_QueuedRow] = []
            wanted = self._queue.get()
            while wanted is not None:
                batch.append(wanted)
                if len(batch) >= BATCH or self._queue.empty():
                    break
                wanted = self._queue.get()
            going = wanted is not None
            if batch:
                self._commit(batch)

    def _commit(self, batch: list[_QueuedRow]) -> None:
        run = self._run
        entries: list[Entry] = []
        at_s, wall_s = self._now_s(), self._wall_s()
        for offset, wanted in enumerate(batch):
            if isinstance(wanted.record, EngineStarted):
                run = wanted.record.run
            entries.append(Entry(self._next_seq + offset, run, at_s, wall_s, wanted.record))
        rows_ = [
            (entry.seq, entry.run, at_s, wall_s, entry.record.kind, wanted.body)
            for entry, wanted in zip(entries, batch, strict=True)
        ]
        links: list[bytes] = []
        for row in rows_:
            links.append(linked(links[-1] if links else self._link, row))
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(INSERT, [(*row, link) for row, link in zip(rows_, links, strict=True)])
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if not self._committed_all_the_same(entries[-1]):
                self._refuse(batch, error)
                return
        self._next_seq += len(batch)
        self._link = links[-1]
        self._run = run
        for entry, wanted in zip(entries, batch, strict=True):
            if self._on_commit is not None:
                self._on_commit(entry)
            wanted.done.set_result(entry)

    def _committed_all_the_same(self, last: Entry) -> bool:
        """After an error, whether the rows are there nevertheless: a caller that tries again must not double them."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            found = self._connection.execute("SELECT 1 FROM entries WHERE seq = ?", (last.seq,)).fetchone()
        except sqlite3.Error:
            return False
        return found is not None

    def _refuse(self, batch: list[_QueuedRow], error: sqlite3.Error) -> None:
        try:
            explain(error, self._folder.database)
        except LogError as explained:
            for wanted in batch:
                wanted.done.set_exception(explained)


def _lock(path: Path) -> int:
    """Takes the writer's lock; the kernel gives it back when the process ends, however it ends."""
    with disk_errors(f"{path} cannot be opened"):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(handle, 32).decode("ascii", "replace").strip()
            os.close(handle)
            raise LogError(
                f"{path.parent} is being written by another process ({holder or 'of unknown id'})",
                remedy="Watch that run: harness attach SESSION",
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"pid {os.getpid()}\n".encode("ascii"), 0)
    return handle
