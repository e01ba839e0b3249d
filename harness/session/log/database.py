"""Writes the log of a session: one thread of one process, with a lock, and a rescue file beside it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import queue
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import field
from pathlib import Path
from typing import Self

from harness.base import threads
from harness.base.chain import last_link, seal_end
from harness.base.foreign import shell_word
from harness.base.places import SessionFolder
from harness.base.row_store import (
    BATCH,
    SESSION,
    insert,
    log_error_of,
    open_for_writing,
    place_and_size,
    place_of,
    raise_log_error,
    read_entries,
    translate_errors,
)
from harness.base.whole_file import disk_errors, sync_to_disk, temporary_path
from harness.model.errors import LogError
from harness.model.frozen import frozen
from harness.model.record import Clip, EngineStarted, Entry, Record
from harness.model.stimulus import Waveform
from harness.session.log.clips import ClipStore


@frozen
class _QueuedRow:
    record: Record
    body: str
    done: Future[Entry] = field(default_factory=threads.future)


class SqliteLog:
    """Implements `ports.SessionLog`: rows in SQLite (WAL, synchronous=FULL), and clips as FLAC files.

    One thread commits all queued rows at once, so that many callers share one fsync. An acknowledged row survives
    kill -9 and a power cut. A second writer on the same folder is refused.

    When the file is deleted, moved or replaced, all rows go to the rescue file of the folder. From then on `append`
    raises LogError. `restore_rescued_log` makes that file the log.

    - now_s: the session's monotonic clock.
    - wall_s: Unix time.
    - on_commit: called on the writer's thread for each row, in order, after its commit; must not block. Raises LogError
      if the folder has another writer, or its log cannot be opened.
    """

    def __init__(
        self,
        folder: Path,
        *,
        now_s: Callable[[], float] = threads.monotonic,
        wall_s: Callable[[], float] = threads.wall,
        on_commit: Callable[[Entry], None] | None = None,
    ) -> None:
        self._folder = SessionFolder(folder)
        self._now_s = now_s
        self._wall_s = wall_s
        self._on_commit = on_commit
        self._lock_fd = _lock(self._folder.lock)
        try:
            self._connection = open_for_writing(self._folder.database)
            self._opened_place, self._known_bytes = place_of(self._folder.database), 0
            self._rescued = False
            self._clips = ClipStore(self._folder.clips)
            self._next_seq, self._run, self._link = self._position()
        except LogError:
            _unlock(self._lock_fd)
            raise
        self._closing = threads.lock()
        self._closed = False
        self._queue: queue.SimpleQueue[_QueuedRow | None] = threads.simple_queue()
        self._thread = threads.thread(self._write, name="session-log")
        self._thread.start()

    @property
    def last_seq(self) -> int:
        """`seq` of the last committed row; 0 without rows."""
        return self._next_seq - 1

    def append(self, record: Record) -> Entry:
        """Commits a row, and returns when it is on the disk.

        Raises LogFull when the disk is full; it may then be called again later.
        """
        queued_row = _QueuedRow(record, SESSION.text(record))
        with self._closing:
            if self._closed:
                raise LogError("the session log is closed", remedy="Resume the session: harness run resume SESSION")
            self._queue.put(queued_row)
        return queued_row.done.result()

    def demand_place(self) -> None:
        """Raises LogError if the log's file is gone or another file has taken its place. Quick; for any thread."""
        database, known_bytes = self._folder.database, self._known_bytes
        place, size = place_and_size(database)
        if size >= known_bytes and place == self._opened_place:
            self._known_bytes = size  # rows are only added: a file that shrinks was overwritten
            return
        raise LogError(
            f"{database} was deleted, moved or replaced while the session was running",
            remedy=f"Its rows are in {self._folder.rescue.name}. "
            f"Continue: harness run resume {shell_word(self._folder.path)}",
        )

    def save_clip(self, waveform: Waveform, start_s: float) -> Clip:
        """Stores a clip, and returns when it is complete on the disk. Raises LogFull or LogError.

        start_s: time of the first sample on the host's clock.
        """
        return self._clips.save(waveform, start_s)

    def entries(self, after_seq: int = 0) -> Iterator[Entry]:
        """Committed rows after a seq, in order. Raises LogError if one cannot be read."""
        return read_entries(self._folder.database, after_seq)

    def close(self) -> None:
        """Commits the queued rows, seals the end of the log, and lets another writer in. May be called twice.

        Raises LogFull or LogError when the end cannot be sealed. Even then the rows are safe, and the log is closed.
        """
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()
        try:
            lost = self._loss()
            if lost is not None and not self._rescued:
                raise lost
            with translate_errors(self._folder.database):
                seal_end(self._connection, self._folder.database)
        finally:
            self._connection.close()
            _unlock(self._lock_fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _position(self) -> tuple[int, int, bytes]:
        """The next `seq`, the number of the last run, and the hash of the last row. Closes the file on an error."""
        try:
            last, run = self._connection.execute(
                "SELECT coalesce(max(seq), 0), coalesce(max(run), 0) FROM entries"
            ).fetchone()
            link = last_link(self._connection)
        except sqlite3.Error as error:
            self._connection.close()
            raise_log_error(error, self._folder.database)
        return last + 1, run, link

    def _write(self) -> None:
        """Commits what is queued, until `close` queues None. Runs in the writer's thread."""
        is_open = True
        while is_open:
            batch: list[_QueuedRow] = []
            queued_row = self._queue.get()
            while queued_row is not None:
                batch.append(queued_row)
                if len(batch) >= BATCH or self._queue.empty():
                    break
                queued_row = self._queue.get()
            is_open = queued_row is not None
            try:
                if batch:
                    self._commit(batch)
            except Exception as error:  # noqa: BLE001 - raised by `append`, which would otherwise wait for ever
                for row in batch:
                    if not row.done.done():
                        row.done.set_exception(error)

    def _commit(self, batch: list[_QueuedRow]) -> None:
        """Stores rows, announces them, and wakes the threads that wait for them. Their errors go to these threads."""
        try:
            entries = self._store([(queued_row.record, queued_row.body) for queued_row in batch])
        except LogError as error:
            for queued_row in batch:
                queued_row.done.set_exception(error)
            return
        for entry, queued_row in zip(entries, batch, strict=True):
            try:
                if self._on_commit is not None:
                    self._on_commit(entry)
                queued_row.done.set_result(entry)
            except Exception as error:  # noqa: BLE001 - raised by `append`; the other rows are stored, too
                queued_row.done.set_exception(error)

    def _store(self, batch: list[tuple[Record, str]]) -> list[Entry]:
        """Stores records with their texts, all or none, and returns their rows. Raises LogFull or LogError.

        If the log's file is lost, the rescue file gets the rows, but the error does not acknowledge them.
        """
        run = self._run
        entries: list[Entry] = []
        at_s, wall_s = self._now_s(), self._wall_s()
        for offset, (record, _) in enumerate(batch):
            if isinstance(record, EngineStarted):
                run = record.run
            entries.append(Entry(self._next_seq + offset, run, at_s, wall_s, record))
        rows = [
            (entry.seq, entry.run, at_s, wall_s, record.kind, body)
            for entry, (record, body) in zip(entries, batch, strict=True)
        ]
        lost, link = self._loss(), self._link
        several = len(rows) > 1  # one statement is a transaction of its own
        try:
            if several:
                self._connection.execute("BEGIN IMMEDIATE")
            for row in rows:
                link = insert(self._connection, row, link)
            if several:
                self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if not self._was_committed(entries[-1]):
                raise lost or log_error_of(error, self._folder.database) from error
        except BaseException:
            if self._connection.in_transaction:  # else the next row alone would join it, and not be committed
                self._connection.execute("ROLLBACK")
            raise
        self._next_seq += len(batch)
        self._link = link
        self._run = run
        if lost is not None:
            raise lost
        return entries

    def _was_committed(self, last: Entry) -> bool:
        """After an error, whether the rows were stored, so that a retry does not duplicate them."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            row = self._connection.execute("SELECT 1 FROM entries WHERE seq = ?", (last.seq,)).fetchone()
        except sqlite3.Error:
            return False
        return row is not None

    def _loss(self) -> LogError | None:
        """Why no row can be acknowledged any more; None while the log's file is in its place.

        On the first loss, it rescues the rows.
        """
        try:
            self.demand_place()
        except LogError as error:
            try:
                if not self._rescued:
                    self._rescue()
            except LogError as failed:
                remedy = (
                    "If the folder was moved, resume the session from the new folder. "
                    f"Its rows could not be rescued: {failed.what}"
                )
                return LogError(error.what, remedy=remedy)
            return error
        return None

    def _rescue(self) -> None:
        """Copies all rows, which the open file still contains, to the rescue file, and continues there.

        Raises LogError if they cannot all be copied.
        """
        rescue = self._folder.rescue
        with disk_errors(f"{rescue} cannot be written"), temporary_path(rescue) as part, translate_errors(rescue):
            with closing(sqlite3.connect(part)) as copy:
                self._connection.backup(copy)
                (row_count,) = copy.execute("SELECT count(*) FROM entries").fetchone()
            if row_count != self.last_seq:
                raise LogError(f"{row_count} of {self.last_seq} rows can still be read")
            part.replace(rescue)
            sync_to_disk(rescue.parent)
        connection = open_for_writing(rescue)
        self._connection.close()
        self._connection, self._rescued = connection, True


def restore_rescued_log(session: SessionFolder) -> str:
    """Makes the rescue file of a run the log again. Returns what was done; "" if there is no such file.

    A file in the place of the log is kept under another name. Raises LogError.
    """
    if not session.rescue.is_file():
        return ""
    with writer_lock(session), disk_errors(f"{session.database} cannot be written"):
        open_for_writing(session.rescue).close()  # takes in what a killed run left in its write-ahead log
        number, remark = 1, ""
        while (aside := session.path / f"log.replaced-{number}.sqlite").exists():
            number += 1
        for ending in ("-shm", "-wal", ""):
            with contextlib.suppress(FileNotFoundError):
                os.rename(f"{session.database}{ending}", f"{aside}{ending}")
                remark = f"; the file in its place is kept as {aside.name}"
        session.rescue.rename(session.database)
        sync_to_disk(session.path)
    return f"{session.database.name} was deleted, moved or replaced in an earlier run. Its rows were rescued{remark}"


@contextmanager
def resume_lock(session: SessionFolder) -> Iterator[None]:
    """Prevents a session from being resumed while it is read. Writes nothing. Raises LogError while it is running."""
    with disk_errors(f"{session.lock} cannot be opened"):
        try:
            handle = os.open(session.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:  # nothing has written here since it was copied or unpacked
            handle = -1
    try:
        if handle >= 0:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise LogError(
            f"{session.path} is running", remedy="Wait until the run has ended. Watch it: harness run attach SESSION"
        ) from error
    finally:
        if handle >= 0:
            _unlock(handle)


@contextmanager
def writer_lock(session: SessionFolder) -> Iterator[None]:
    """Takes the writer's lock for a block. Raises LogError while the session is running or being packed."""
    handle = _lock(session.lock)
    try:
        yield
    finally:
        _unlock(handle)


def _lock(path: Path) -> int:
    """Takes the writer's lock. Returns its file descriptor. The kernel releases it when the process ends."""
    with disk_errors(f"{path} cannot be opened"):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(handle, 32).decode("ascii", "replace").strip()
            os.close(handle)
            raise LogError(
                f"{path.parent} is being written by another process ({holder or 'of unknown id'})",
                remedy="Watch that run: harness run attach SESSION",
            ) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"pid {os.getpid()}\n".encode("ascii"), 0)
    return handle


def _unlock(handle: int) -> None:
    """Releases the lock, also for a child process that is just being started, and that still has a copy of it."""
    fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
