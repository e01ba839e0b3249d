"""The append-only SQLite files of rows: opens them, reads them, and lets several processes write one at a time.

A file may come from somebody else, so it is checked before it is read. Errors of SQLite become LogError or LogFull.
"""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Generic, NoReturn, Protocol, TypeVar
from urllib.parse import quote

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from harness.base import threads
from harness.base.chain import COLUMN, FIRST, Link, begin_chain, is_chained, last_link, row_hash, seal_end
from harness.base.codec import RECORDS, CodecError, decode, encode
from harness.base.foreign import plain_text
from harness.base.whole_file import FREE_SPACE_LOG_IS_SAFE
from harness.model.errors import LogError, LogFull
from harness.model.frozen import frozen
from harness.model.record import Entry, JudgmentGiven, Record

APPLICATION_ID = 0x56484C47  # "VHLG"
BATCH = 500
"""Number of rows that one query reads."""
SMALL_ROOM_BYTES = 1 << 20
"""If less space is left, in bytes, a failed write counts as a full disk."""


Row = tuple[int, int, float, float, str]
"""A stored row: (seq, run, at_s, wall_s, body)."""


class HasKind(Protocol):
    @property
    def kind(self) -> str: ...


T = TypeVar("T", bound=HasKind)


@frozen
class RowFormat(Generic[T]):
    """The kind of rows in a file.

    - application_id, version: as in SQLite's header of the file.
    - whole: what the file is a part of, for people.
    - name: what the file is called, for people.
    - other_version, unreadable: remedies for a file of another version, and for a row that cannot be read.
    - adapter: converts records.
    - id_of: returns the key that identifies a record that is sent twice; None if a record may be stored twice.
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
        """The record of a row. Raises LogError, which names the row, when it cannot be read."""
        if not is_time(row[2], row[3]):
            raise LogError(f"{path}: row {row[0]} {IMPOSSIBLE_TIME}", remedy=self.unreadable)
        try:
            return decode(self.adapter, row[4])
        except CodecError as error:
            raise LogError(f"{path}: row {row[0]} cannot be read: {error.what}", remedy=self.unreadable) from error

    def text(self, record: T) -> str:
        """The body of a record's row. Raises LogError when it cannot be written as text."""
        try:
            return encode(self.adapter, record).decode("utf-8")
        except PydanticSerializationError as error:
            problem = f"a {record.kind} row cannot be written as text: {error}"
            raise LogError(problem, remedy="Remove the characters that cannot be stored") from error


IMPOSSIBLE_TIME = "has an impossible time"
WRONG_TYPES = "is damaged: a value in it has the wrong type"
ROW_TYPES = (int, int, float, float, str)
"""Types of the values of a row. A file that is damaged may hold others, although its table is STRICT."""
_FARTHEST_S = 6e10
"""Largest distance of a time from 1970, in seconds; beyond it, no date can be written."""


def is_time(at_s: float, wall_s: float) -> bool:
    """Whether a clock can have shown the times of a row."""
    return abs(at_s) < _FARTHEST_S and abs(wall_s) < _FARTHEST_S


SESSION: RowFormat[Record] = RowFormat(
    application_id=APPLICATION_ID,
    version=1,
    whole="a session",
    name="a session log",
    other_version="Use the harness version named in session.json",
    unreadable="See all damage with: harness report show SESSION --check",
    adapter=RECORDS,
    id_of=lambda record: record.judgment.id if isinstance(record, JudgmentGiven) else None,
)
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

_KNOWN_SCHEMA = {"".join(sql.split()) for sql in (*_SCHEMA, _SCHEMA[0].replace("NULL,\n        chain BLOB", "NULL"))}
"""The harness's schema without spaces. An early version's table has the same text, with a column added later."""
_SCHEMA_BYTES, _SCHEMA_STEPS = 100_000, 100_000
"""Limits on reading a schema, in bytes and in steps of SQLite, far above what the harness's own schema takes."""
_FOREIGN = "Do not use this file: somebody changed its tables, or it is not a log"
_RECOVER = "Keep the folder, and work on a copy: sqlite3 FILE .recover"
_BATCH_BYTES = 16_000_000
"""A query ends early when the bodies of its rows exceed this."""

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def _schema(content: RowFormat[Any]) -> tuple[str, ...]:
    """The statements that make an empty file one with rows of this kind."""
    return (*_SCHEMA, f"PRAGMA application_id={content.application_id}", f"PRAGMA user_version={content.version}")


def open_for_writing(path: Path, content: RowFormat[Any] = SESSION, wait_s: float = 5.0) -> sqlite3.Connection:
    """A connection for one thread at a time, in autocommit mode: WAL, synchronous=FULL.

    Creates the schema in an empty file. wait_s: how long it waits for other processes, here and at every later
    statement. Raises LogError when the file is damaged, foreign or of another version, or another process holds it for
    longer. Raises LogFull when the disk is full.
    """
    try:
        # Not only the thread that opens it: its owners have locks, so that one thread at a time uses it.
        connection = sqlite3.connect(path, isolation_level=None, timeout=wait_s, check_same_thread=False)
    except sqlite3.Error as error:
        raise_log_error(error, path)
    with _closed_on_error(connection, path):
        if path.stat().st_size:
            _demand_no_journal(path)
            with _limit_schema_work(connection, path):
                is_blank = _is_empty(connection)  # another process may be about to make the schema
            if not is_blank:
                demand_ours(connection, path, content)
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
    return connection


@contextmanager
def _closed_on_error(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Closes a connection that cannot be used, and explains the error. Raises LogFull, LogError."""
    try:
        yield
    except sqlite3.Error as error:
        connection.close()
        raise_log_error(error, path)
    except LogError:
        connection.close()
        raise


def open_for_reading(
    path: Path, *, may_be_blank: bool = False, content: RowFormat[Any] = SESSION
) -> sqlite3.Connection:
    """A read-only connection, which sees rows that a writer commits later. Raises LogError.

    may_be_blank: whether to accept a file without a schema, as one without rows.
    """
    if not path.is_file():
        raise LogError(f"{path} does not exist", remedy=f"Use the folder of {content.whole}")
    _demand_no_journal(path)
    if _is_filled(path, "-wal"):
        mode = "mode=ro"  # a writer is active, or was killed: nothing of it may be changed
    elif os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        mode = "mode=rw"  # the -wal and -shm that SQLite makes go when it is closed; they would stay with mode=ro
    else:
        mode = "mode=ro&immutable=1"  # a finished session on a read-only disk
    try:
        connection = sqlite3.connect(
            f"file:{quote(os.fsencode(path.resolve()))}?{mode}", uri=True, timeout=5.0, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise_log_error(error, path)
    with _closed_on_error(connection, path):
        connection.execute("PRAGMA query_only=ON")  # mode=rw allows writing
        with _limit_schema_work(connection, path):
            is_blank = may_be_blank and _is_empty(connection)
        if is_blank:
            connection.close()
            connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            for statement in _schema(content):
                connection.execute(statement)
        demand_ours(connection, path, content)
        guard = _signal_guard()
        next(guard)  # runs it up to its `yield`, where it can catch an exception
        connection.set_progress_handler(partial(next, guard), 100_000)
    return connection


_caught_exceptions: list[BaseException] = []
"""Exceptions of signal handlers that `_signal_guard` has caught."""


def _signal_guard() -> Iterator[int]:
    """Lets SQLite continue until a signal comes.

    SQLite swallows an exception that a signal handler raises in a Python function that it calls. This generator catches
    such an exception where it waits, in its `try`.
    """
    while True:
        try:
            yield 0
        except (KeyboardInterrupt, SystemExit) as error:
            _caught_exceptions.append(error)
            yield 1


def raise_signal() -> None:
    """Raises the exception of a signal handler that ran during SQLite's work; call it after an error of SQLite."""
    if _caught_exceptions:
        raise _caught_exceptions.pop()


def read_rows(
    path: Path, content: RowFormat[T], after_seq: int = 0, *, may_be_blank: bool = False
) -> Iterator[tuple[Row, T]]:
    """Rows after a seq that any process has committed, with their records, in order. Raises LogError."""
    with closing(open_for_reading(path, may_be_blank=may_be_blank, content=content)) as connection:
        for row in raw_rows(connection, path, after_seq):
            yield row, content.record(row, path)


def read_entries(path: Path, after_seq: int = 0, kinds: str = "", *, may_be_blank: bool = False) -> Iterator[Entry]:
    """Entries after a seq, of a session's log or the file beside it, in order. Raises LogError.

    kinds: SQL list of the kinds to read; "" for all.
    """
    with closing(open_for_reading(path, may_be_blank=may_be_blank)) as connection:
        for row in raw_rows(connection, path, after_seq, kinds):
            yield entry_of(row, path)


def raw_rows(connection: sqlite3.Connection, path: Path, after_seq: int, kinds: str = "") -> Iterator[Row]:
    """Stored rows after a seq, in order, read in batches.

    Raises LogError. kinds: SQL list of their kinds; "" for all.
    """
    kind_filter = f"AND kind IN ({kinds})" if kinds else ""
    query = f"SELECT seq, run, at_s, wall_s, body FROM entries WHERE seq > ? {kind_filter} ORDER BY seq LIMIT ?"
    while True:
        batch: list[Row] = []
        bytes_left = _BATCH_BYTES
        with translate_errors(path):
            for row in connection.execute(query, (after_seq, BATCH)):
                if tuple(map(type, row)) != ROW_TYPES:
                    raise LogError(f"{path}: row {row[0]} {WRONG_TYPES}", remedy=_RECOVER)
                batch.append(row)
                bytes_left -= len(row[4])
                if bytes_left < 0:
                    break
        if not batch:
            return
        batch.reverse()
        while batch:
            row = batch.pop()  # which frees its memory after the caller has used it
            if row[0] <= after_seq:  # in a damaged file, pages that name each other would never end
                raise LogError(f"{path} is damaged: row {row[0]} comes after row {after_seq}", remedy=_RECOVER)
            after_seq = row[0]
            yield row


def first_hash(path: Path) -> bytes:
    """The hash of a session's first row, with which the chain of its judgments begins. Raises LogError."""
    with closing(open_for_reading(path)) as connection, translate_errors(path):
        column = COLUMN if is_chained(connection) else "NULL"
        query = f"SELECT seq, run, at_s, wall_s, kind, body, {column} FROM entries WHERE seq = 1"
        row = connection.execute(query).fetchone()
    return (row[6] or row_hash(FIRST, row[:6])) if row else FIRST


def entry_of(row: Row, path: Path) -> Entry:
    """The entry of a stored row. Raises LogError, which names the row, when it cannot be read."""
    return Entry(*row[:4], SESSION.record(row, path))


def demand_ours(connection: sqlite3.Connection, path: Path, content: RowFormat[Any] = SESSION) -> None:
    """Raises LogError if a database has other rows, or another version, or anything that the harness does not write.

    A view or a generated column in a file from elsewhere would be computed for each row that is read.
    """
    with _limit_schema_work(connection, path):
        application_id = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application_id != content.application_id:
            problem = f"{path} does not belong to {content.whole} (application id {application_id:#x})"
            raise LogError(problem, remedy="Choose another folder, or move the file away if it does not belong there")
        if version != content.version:
            raise LogError(
                f"{path} is {content.name}, version {version}; this harness reads version {content.version}",
                remedy=content.other_version,
            )
        # A limit, since a foreign file may hold any number. The first one that is not ours is enough.
        for type_, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_schema LIMIT 9"):
            if "".join((sql or "").split()) not in _KNOWN_SCHEMA:
                problem = f"{path} contains the {type_} {plain_text(str(name), 80)}, which the harness does not write"
                raise LogError(problem, remedy=_FOREIGN)


@contextmanager
def _limit_schema_work(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Limits the work of reading a schema. Raises LogError when it exceeds _SCHEMA_STEPS."""
    connection.execute("PRAGMA trusted_schema=OFF")
    length_limit = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _SCHEMA_BYTES)
    # Returns 0 this many times, then 1, which ends the query. Not a Python function: SQLite would swallow what a signal
    # raises in it.
    connection.set_progress_handler(partial(next, iter([0] * (_SCHEMA_STEPS // 1000)), 1), 1000)
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter for an error that quotes damaged bytes
        code = getattr(error, "sqlite_errorcode", 0)  # an error of Python's own module has none
        if isinstance(error, UnicodeDecodeError) or code in (sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_TOOBIG):
            raise LogError(f"{path} contains tables that are not part of a session log", remedy=_FOREIGN) from error
        raise
    finally:
        connection.set_progress_handler(None, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, length_limit)


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into LogFull and LogError."""
    try:
        yield
    except sqlite3.Error as error:
        raise_log_error(error, path)


def raise_log_error(error: sqlite3.Error, path: Path) -> NoReturn:
    """Raises the error as LogFull or LogError, with a remedy."""
    raise log_error_of(error, path) from error


def log_error_of(error: sqlite3.Error, path: Path) -> LogError:
    """The error in words, with a remedy. If a signal is the cause, its exception is raised."""
    raise_signal()
    code: int = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR_WRITE and _no_room(path)):
        return LogFull(f"no disk space for {path}", remedy=FREE_SPACE_LOG_IS_SAFE)
    code &= 0xFF  # the low byte of an extended code is the primary one
    if code in _DAMAGED:
        return LogError(f"{path} is damaged or not a database: {error}", remedy=_RECOVER)
    return LogError(f"{path}: {error}", remedy="Check the folder, its disk and its permissions")


def _demand_no_journal(path: Path) -> None:
    """Raises LogError if there is a rollback journal beside the file: SQLite would play it back, and delete files.

    A process that creates the file has such a journal for a moment.
    """
    give_up_s = threads.monotonic() + 2.0
    while _is_filled(path, "-journal"):
        if threads.monotonic() > give_up_s:
            problem = f"{path.name}-journal is next to {path}, but the harness never writes one"
            raise LogError(problem, remedy="Move that file out of the folder if you know where it comes from")
        threads.sleep(0.01)


def missing_guards(connection: sqlite3.Connection) -> list[str]:
    """Names of the triggers against changes of rows that are missing or were changed; sqlite3.Error."""
    triggers = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'")}
    return [guard.split()[2] for guard in _GUARDS if guard not in triggers]


def _write_ahead(connection: sqlite3.Connection, wait_s: float) -> str:
    """Requests a write-ahead log. Returns the resulting mode. SQLite does not wait for other processes here."""
    give_up_s = threads.monotonic() + wait_s
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or threads.monotonic() > give_up_s:
                raise
        threads.sleep(0.01)


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Whether a database has neither tables nor an application id."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    return not tables and not application_id


def _no_room(path: Path) -> bool:
    """Whether a write failed for lack of space. SQLite reports ENOSPC, but neither a quota nor a file-size limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    disk = os.statvfs(path.parent)
    return limit != resource.RLIM_INFINITY or disk.f_bavail * disk.f_frsize < SMALL_ROOM_BYTES


def _is_filled(path: Path, ending: str) -> bool:
    """Whether the file with this ending beside a database exists and has bytes."""
    try:
        return os.stat(f"{path}{ending}").st_size > 0
    except OSError:
        return False


INSERT = "INSERT INTO entries (seq, run, at_s, wall_s, kind, body, chain) VALUES (?, ?, ?, ?, ?, ?, ?)"


def insert(connection: sqlite3.Connection, row: Link, previous: bytes) -> bytes:
    """Adds a row to the open transaction. Returns its hash. previous: hash of the previous row."""
    link = row_hash(previous, row)
    connection.execute(INSERT, (*row, link))
    return link


WAIT_S = 30.0
"""How long a writer waits for another one's commit, in seconds."""


class SharedRows(Generic[T]):
    """A file of rows to which several processes add; thread-safe.

    Raises LogError when it cannot be written. Raises LogFull.

    - path: path of the file.
    - check_folder: raises LogError when the folder is not the right one.
    - first: returns the hash with which the chain begins.
    """

    def __init__(
        self, path: Path, content: RowFormat[T], check_folder: Callable[[], object], first: Callable[[], bytes]
    ) -> None:
        self._path, self._content, self._check_folder, self._first = path, content, check_folder, first
        self._lock = threads.lock()
        self._opened: FilePlace | None = None
        self._open()

    def add(self, records: Sequence[T]) -> list[Row]:
        """Writes rows, all or none, as fast as one, and returns them when they are on the disk.

        A record that is already in the file is not written again; its row is returned.
        """
        rows: list[Row] = []
        with self._lock, translate_errors(self._path):
            self._reopen_if_replaced()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._catch_up()
                seq, link = self._seq, last_link(self._connection, self._first)
                new_seqs: dict[str, int] = {}
                for record in records:
                    id_ = self._content.id_of(record)
                    if id_ is not None:
                        if (known_seq := self._known.get(id_, new_seqs.get(id_))) is not None:
                            rows.append(next(raw_rows(self._connection, self._path, known_seq - 1)))
                            continue
                        new_seqs[id_] = seq + 1
                    body = self._content.text(record)
                    seq += 1
                    row = (seq, 0, threads.monotonic(), threads.wall(), record.kind, body)
                    link = insert(self._connection, row, link)
                    rows.append((*row[:4], body))
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        return rows

    def close(self) -> None:
        """Seals the end of the file. Raises LogFull or LogError when that fails, though the rows are safe."""
        with self._lock:
            place, self._opened = self._opened, None
            try:
                if place is not None and place_of(self._path) == place:
                    with translate_errors(self._path):
                        self._connection.execute("BEGIN IMMEDIATE")  # no other process can add a row
                        seal_end(self._connection, self._path)
            finally:
                self._connection.close()

    def _open(self) -> None:
        """Opens the file from its beginning: the ids of all rows are read again."""
        self._known: dict[str, int] = {}
        self._seq = 0
        self._connection = open_for_writing(self._path, self._content, WAIT_S)
        self._opened = place_of(self._path)

    def _reopen_if_replaced(self) -> None:
        """Opens the file again if another has taken its place.

        Raises LogError if its folder is gone, or this is closed.
        """
        if self._opened is None:
            raise LogError(f"{self._path} is closed", remedy="Open the log again")
        if place_of(self._path) != self._opened:
            # An open file that was removed still accepts rows, which would be lost.
            self._check_folder()
            self._connection.close()
            self._open()

    def _catch_up(self) -> None:
        """Reads the ids that other processes have written."""
        for row in raw_rows(self._connection, self._path, self._seq):
            id_ = self._content.id_of(self._content.record(row, self._path))
            self._seq = row[0]
            if id_ is not None:
                self._known[id_] = row[0]


FilePlace = tuple[tuple[int, int], ...]


def place_of(path: Path) -> FilePlace | None:
    """The identity of a file and of its write-ahead log; None when one of them is missing."""
    return place_and_size(path)[0]


def place_and_size(path: Path) -> tuple[FilePlace | None, int]:
    """The identity of a file, as `place_of` gives it, and its size in bytes."""
    try:
        file, log = os.stat(path), os.stat(f"{path}-wal")
    except OSError:
        return None, 0
    return ((file.st_dev, file.st_ino), (log.st_dev, log.st_ino)), file.st_size
