"""Opens and writes the append-only SQLite files of rows, and explains their errors."""

from __future__ import annotations

import fcntl
import os
import queue
import resource
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NoReturn, Protocol, Self, TypeVar
from urllib.parse import quote

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from harness.base import threads
from harness.base.chain import begin_chain, last_link, linked, seal_end
from harness.base.codec import RECORDS, CodecError, decode, encode
from harness.base.places import SessionFolder
from harness.base.whole_file import MAKE_ROOM, disk_errors
from harness.model.errors import LogError, LogFull
from harness.model.record import Clip, EngineStarted, Entry, JudgmentGiven, Record
from harness.model.stimulus import Waveform
from harness.session.log.clips import ClipShelf

APPLICATION_ID = 0x56484C47  # "VHLG"
BATCH = 500
SMALL_ROOM_BYTES = 1 << 20


Row = tuple[int, int, float, float, str]
"""seq, run, at_s, wall_s, body."""


class Kinded(Protocol):
    @property
    def kind(self) -> str: ...


T = TypeVar("T", bound=Kinded)


@dataclass(frozen=True, slots=True)
class Content(Generic[T]):
    """The kind of rows in a file. whole: what it is a part of; name: of the file, for people.

    other_version, unreadable: what to do about a file of another version, and about a row that cannot be read. id_of:
    the key that identifies a record sent twice; None if duplicates are allowed.
    """

    application_id: int
    version: int
    whole: str
    name: str
    other_version: str
    unreadable: str
    adapter: TypeAdapter[T]
    id_of: Callable[[T], str | None]

    def record(self, row: Row, path: Path) -> T:
        """The record of a row; LogError naming the row when it cannot be read."""
        try:
            return decode(self.adapter, row[4])
        except CodecError as error:
            raise LogError(f"{path}: row {row[0]} cannot be read: {error.what}", remedy=self.unreadable) from error


SESSION: Content[Record] = Content(
    APPLICATION_ID,
    1,
    "a session",
    "a session log",
    "Use the version of the tool that session.json names",
    "See all damage with: harness show SESSION --check",
    RECORDS,
    lambda record: record.judgment.id if isinstance(record, JudgmentGiven) else None,
)
INSERT = "INSERT INTO entries (seq, run, at_s, wall_s, kind, body, chain) VALUES (?, ?, ?, ?, ?, ?, ?)"

_GUARDS = (
    "CREATE TRIGGER never_changed BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'rows are only added'); END",
    "CREATE TRIGGER never_removed BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'rows are only added'); END",
)
_SCHEMA = (
    """CREATE TABLE entries (
        seq INTEGER PRIMARY KEY,
        run INTEGER NOT NULL,
        at_s REAL NOT NULL,
        wall_s REAL NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        chain BLOB
    ) STRICT""",
    *_GUARDS,
)

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def _schema(content: Content[Any]) -> tuple[str, ...]:
    return (*_SCHEMA, f"PRAGMA application_id={content.application_id}", f"PRAGMA user_version={content.version}")


def open_for_writing(path: Path, content: Content[Any] = SESSION, wait_s: float = 5.0) -> sqlite3.Connection:
    """A connection for one thread in autocommit mode: WAL, synchronous=FULL. Creates the schema in an empty file.

    wait_s: how long it waits for other processes, here and at every later statement. LogError when the file is damaged,
    foreign or of another version, or held for longer; LogFull.
    """
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=wait_s, check_same_thread=False)
    except sqlite3.Error as error:
        explain(error, path)
    try:
        if _write_ahead(connection, wait_s) != "wal":
            raise LogError(
                f"{path}: this file system cannot hold a write-ahead log", remedy="Put the folder on a local disk"
            )
        connection.execute("PRAGMA synchronous=FULL")
        if _is_empty(connection):
            connection.execute("BEGIN IMMEDIATE")
            if _is_empty(connection):  # another process may have created it first
                for statement in _schema(content):
                    connection.execute(statement)
            connection.execute("COMMIT")
        demand_ours(connection, path, content)
        begin_chain(connection)
    except sqlite3.Error as error:
        connection.close()
        explain(error, path)
    except LogError:
        connection.close()
        raise
    return connection


def open_for_reading(path: Path, *, may_be_blank: bool = False, content: Content[Any] = SESSION) -> sqlite3.Connection:
    """A read-only connection that sees what is committed while a writer goes on; LogError.

    may_be_blank: accept a file without a schema, as one without rows.
    """
    if not path.is_file():
        raise LogError(f"{path} does not exist", remedy=f"Name the folder of {content.whole}")
    mode = "mode=ro"
    wal = path.with_name(path.name + "-wal")
    if not wal.exists() and not _may_write(path.parent):
        mode = "mode=ro&immutable=1"  # a finished session on a read-only disk: SQLite may not make its -shm there
    try:
        connection = sqlite3.connect(
            f"file:{quote(os.fsencode(path.resolve()))}?{mode}", uri=True, timeout=5.0, check_same_thread=False
        )
    except sqlite3.Error as error:
        explain(error, path)
    try:
        if may_be_blank and _is_empty(connection):
            connection.close()
            connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            for statement in _schema(content):
                connection.execute(statement)
        demand_ours(connection, path, content)
    except sqlite3.Error as error:
        connection.close()
        explain(error, path)
    except LogError:
        connection.close()
        raise
    return connection


def rows(connection: sqlite3.Connection, path: Path, after_seq: int) -> Iterator[Entry]:
    """Entries of a session after a seq, in order, read in batches; LogError naming the row that cannot be read."""
    for row in texts(connection, path, after_seq):
        yield entry_of(row, path)


def texts(connection: sqlite3.Connection, path: Path, after_seq: int) -> Iterator[Row]:
    """Rows after a seq as they stand, in order, read in batches; LogError."""
    while True:
        try:
            found = connection.execute(
                "SELECT seq, run, at_s, wall_s, body FROM entries WHERE seq > ? ORDER BY seq LIMIT ?",
                (after_seq, BATCH),
            ).fetchall()
        except sqlite3.Error as error:
            explain(error, path)
        full = len(found) == BATCH
        found.reverse()
        while found:
            row = found.pop()  # each is let go at once: a plan may be of hundreds of megabytes
            after_seq = row[0]
            yield row
        if not full:
            return


def entry_of(row: Row, path: Path) -> Entry:
    """The entry of (seq, run, at_s, wall_s, body); LogError naming the row when it cannot be read."""
    return Entry(*row[:4], SESSION.record(row, path))


def demand_ours(connection: sqlite3.Connection, path: Path, content: Content[Any] = SESSION) -> None:
    """LogError when the database holds other rows, or rows of another version."""
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    if found != content.application_id:
        what = f"{path} is not a file of {content.whole} (application id {found:#x})"
        raise LogError(what, remedy="Name another folder, or put the file aside if it does not belong there")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != content.version:
        raise LogError(
            f"{path} is {content.name} of version {version}; this tool reads version {content.version}",
            remedy=content.other_version,
        )


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into LogFull and LogError."""
    try:
        yield
    except sqlite3.Error as error:
        explain(error, path)


def explain(error: sqlite3.Error, path: Path) -> NoReturn:
    """Raises the error with an explanation and a remedy."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR_WRITE and _no_room(path)):
        raise LogFull(f"no room for {path}", remedy=MAKE_ROOM) from error
    code &= 0xFF  # the low byte of an extended code is the primary one
    if code in _DAMAGED:
        raise LogError(
            f"{path} is damaged or not a database: {error}",
            remedy=f"Keep the folder, and work on a copy: sqlite3 {path.name} .recover",
        ) from error
    raise LogError(f"{path}: {error}", remedy="Check the folder, its disk and its permissions") from error


def missing_guards(connection: sqlite3.Connection) -> list[str]:
    """Names of the triggers that keep rows as they are, and that are gone or were changed; sqlite3.Error."""
    found = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'")}
    return [guard.split()[2] for guard in _GUARDS if guard not in found]


def _write_ahead(connection: sqlite3.Connection, wait_s: float) -> str:
    """Requests a write-ahead log; the resulting mode. SQLite does not wait for other processes here."""
    give_up_s = threads.monotonic() + wait_s
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or threads.monotonic() > give_up_s:
                raise
        threads.sleep(0.01)


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return not tables and not application


def _no_room(path: Path) -> bool:
    """Whether a write failed for lack of space. SQLite reports ENOSPC, but neither a quota nor a file-size limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    disk = os.statvfs(path.parent)
    return limit != resource.RLIM_INFINITY or disk.f_bavail * disk.f_frsize < SMALL_ROOM_BYTES


def _may_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


WAIT_S = 30.0
"""How long a writer waits for another one's commit."""


class SharedRows(Generic[T]):
    """One such file; thread-safe. LogError when it cannot be written or is another one; LogFull.

    path: of the file. demand: raises LogError when the folder is not what it has to be.
    """

    def __init__(self, path: Path, content: Content[T], demand: Callable[[], object]) -> None:
        self._path, self._content, self._demand = path, content, demand
        self._lock = threads.lock()
        self._open()

    def add(self, records: Sequence[T]) -> list[Row]:
        """Writes rows all or none, at the cost of one, and returns when they are on the disk.

        A record that is there already is not written again: its row comes back.
        """
        found: list[Row] = []
        with self._lock, explained(self._path):
            self._demand_place()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._catch_up()
                seq, link = self._seq, last_link(self._connection)
                fresh: dict[str, int] = {}
                for record in records:
                    id_ = self._content.id_of(record)
                    if id_ is not None:
                        if (there := self._known.get(id_, fresh.get(id_))) is not None:
                            found.append(next(texts(self._connection, self._path, there - 1)))
                            continue
                        fresh[id_] = seq + 1
                    body = self._text(record)
                    seq += 1
                    row = (seq, 0, threads.monotonic(), threads.wall(), record.kind, body)
                    link = linked(link, row)
                    self._connection.execute(INSERT, (*row, link))
                    found.append((*row[:4], body))
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        return found

    def read(self, after_seq: int = 0) -> Iterator[tuple[Row, T]]:
        """Committed rows after a seq, by whichever process, in order; LogError."""
        with closing(open_for_reading(self._path, may_be_blank=True, content=self._content)) as connection:
            for row in texts(connection, self._path, after_seq):
                yield row, self._content.record(row, self._path)

    def close(self) -> None:
        """Seals the end; LogFull, LogError when it cannot, and the rows are safe nevertheless."""
        with self._lock:
            try:
                if _place(self._path) == self._opened:
                    with explained(self._path):
                        self._connection.execute("BEGIN IMMEDIATE")  # no other process can add a row
                        seal_end(self._connection, self._path)
            finally:
                self._connection.close()

    def _open(self) -> None:
        self._known: dict[str, int] = {}
        self._seq = 0
        self._connection = open_for_writing(self._path, self._content, WAIT_S)
        self._opened = _place(self._path)

    def _demand_place(self) -> None:
        """Opens the file anew where another one has taken its place; LogError when its folder is gone."""
        if _place(self._path) != self._opened:
            # An open file that was removed still accepts rows, which would be lost.
            self._demand()
            self._connection.close()
            self._open()

    def _catch_up(self) -> None:
        """Reads the ids that other processes have written."""
        for row in texts(self._connection, self._path, self._seq):
            id_ = self._content.id_of(self._content.record(row, self._path))
            self._seq = row[0]
            if id_ is not None:
                self._known[id_] = row[0]

    def _text(self, record: T) -> str:
        try:
            return encode(self._content.adapter, record).decode("utf-8")
        except PydanticSerializationError as error:
            what = f"a {record.kind} row cannot be written as text: {error}"
            raise LogError(what, remedy="Write it in other characters") from error


def _place(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@dataclass(frozen=True, slots=True)
class _QueuedRow:
    record: Record
    body: str
    done: Future[Entry] = field(default_factory=threads.future)


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
            self._shelf = ClipShelf(self._folder.clips)
            self._next_seq, self._run, self._link = self._position()
        except LogError:
            os.close(self._lock_fd)
            raise
        self._closing = threads.lock()
        self._closed = False
        self._queue: queue.SimpleQueue[_QueuedRow | None] = threads.simple_queue()
        self._thread = threads.thread(self._write, name="session-log")
        self._thread.start()

    @property
    def last_seq(self) -> int:
        """seq of the last committed row; 0 without rows."""
        return self._next_seq - 1

    def append(self, record: Record) -> Entry:
        """Returns when the row is on the disk. LogFull when the disk is full. You can call it again later."""
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
        with closing(open_for_reading(self._folder.database)) as connection:
            yield from rows(connection, self._folder.database, after_seq)

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

    def __exit__(self, *_: object) -> None:
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
        """After an error, whether the rows were stored, so that a retry does not duplicate them."""
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


@contextmanager
def not_running(session: SessionFolder) -> Iterator[None]:
    """Keeps a session from being resumed, for reading; LogError while it is running. Writes nothing."""
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
        raise LogError(f"{session.path} is running", remedy="Wait until it ends: harness attach SESSION") from error
    finally:
        if handle >= 0:
            os.close(handle)


@contextmanager
def alone(session: SessionFolder) -> Iterator[None]:
    """Takes the writer's lock; LogError while the session is running or being packed."""
    handle = _lock(session.lock)
    try:
        yield
    finally:
        os.close(handle)


def _lock(path: Path) -> int:
    """Takes the writer's lock. The kernel releases it when the process ends."""
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
