"""The SQLite files of rows that are only added: schema, ways to open them, and what their errors mean."""

from __future__ import annotations

import os
import resource
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from harness.base.chain import begin_chain
from harness.base.codec import RECORDS, CodecError, decode
from harness.base.whole_file import MAKE_ROOM
from harness.model.errors import LogError, LogFull
from harness.model.record import Entry

APPLICATION_ID = 0x56484C47  # "VHLG"
SCHEMA_VERSION = 1
BATCH = 500
SMALL_ROOM_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Content:
    """Whose rows a file holds. whole: what it is a part of; name: of the file, for people."""

    application_id: int
    version: int
    whole: str
    name: str
    other_version: str


SESSION = Content(
    APPLICATION_ID,
    SCHEMA_VERSION,
    "a session",
    "a session log",
    "Use the version of the tool that session.json names",
)
Row = tuple[int, int, float, float, str]
"""seq, run, at_s, wall_s, body."""
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


def _schema(content: Content) -> tuple[str, ...]:
    return (
        *_SCHEMA,
        f"PRAGMA application_id={content.application_id}",
        f"PRAGMA user_version={content.version}",
    )


def open_for_writing(path: Path, content: Content = SESSION, wait_s: float = 5.0) -> sqlite3.Connection:
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
                f"{path}: this file system cannot hold a write-ahead log",
                remedy="Put the folder on a local disk",
            )
        connection.execute("PRAGMA synchronous=FULL")
        if _is_empty(connection):
            connection.execute("BEGIN IMMEDIATE")
            if _is_empty(connection):  # another process may have been quicker
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


def open_for_reading(path: Path, *, may_be_blank: bool = False, content: Content = SESSION) -> sqlite3.Connection:
    """A read-only connection that sees what is committed while a writer goes on; LogError.

    may_be_blank: a file whose maker was killed, or has not come further yet, reads as one without rows.
    """
    if not path.is_file():
        raise LogError(f"{path} does not exist", remedy=f"Name the folder of {content.whole}")
    mode = "mode=ro"
    wal = path.with_name(path.name + "-wal")
    if not wal.exists() and not _may_write(path.parent):
        mode = "mode=ro&immutable=1"  # a finished session on a read-only disk: SQLite may not make its -shm there
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(path.resolve()))}?{mode}", uri=True, timeout=5.0, check_same_thread=False
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
        for row in found:
            yield row
            after_seq = row[0]
        if len(found) < BATCH:
            return


def entry_of(row: Row, path: Path) -> Entry:
    """The entry of (seq, run, at_s, wall_s, body); LogError naming the row when it cannot be read."""
    seq, run, at_s, wall_s, body = row
    try:
        record = decode(RECORDS, body)
    except CodecError as error:
        raise LogError(
            f"{path}: row {seq} cannot be read: {error.what}",
            remedy="See all damage with: harness show SESSION --check",
        ) from error
    return Entry(seq=seq, run=run, at_s=at_s, wall_s=wall_s, record=record)


def demand_ours(connection: sqlite3.Connection, path: Path, content: Content = SESSION) -> None:
    """LogError when the database holds other rows, or rows of another version."""
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    if found != content.application_id:
        what = f"{path} is no file of {content.whole} (application id {found:#x})"
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
    """Raises what a SQLite error means for people."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR_WRITE and _no_room(path)):
        raise LogFull(f"no room for {path}", remedy=MAKE_ROOM) from error
    code &= 0xFF  # the low byte of an extended code is the primary one
    if code in _DAMAGED:
        raise LogError(
            f"{path} is damaged or no database: {error}",
            remedy=f"Keep the folder, and work on a copy: sqlite3 {path.name} .recover",
        ) from error
    raise LogError(f"{path}: {error}", remedy="Check the folder, its disk and its permissions") from error


def missing_guards(connection: sqlite3.Connection) -> list[str]:
    """Names of the triggers that keep rows as they are, and that are gone or were changed; sqlite3.Error."""
    found = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'")}
    return [guard.split()[2] for guard in _GUARDS if guard not in found]


def _write_ahead(connection: sqlite3.Connection, wait_s: float) -> str:
    """Asks for a write-ahead log; the mode that came of it. SQLite itself does not wait for others who ask, too."""
    give_up_s = time.monotonic() + wait_s
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode=WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_s:
                raise
        time.sleep(0.01)


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    return not tables and not application


def _no_room(path: Path) -> bool:
    """Whether a failed write was for want of room: SQLite tells ENOSPC, but neither a quota nor a limit on files."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    disk = os.statvfs(path.parent)
    return limit != resource.RLIM_INFINITY or disk.f_bavail * disk.f_frsize < SMALL_ROOM_BYTES


def _may_write(folder: Path) -> bool:
    return os.access(folder, os.W_OK)
