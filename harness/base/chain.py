"""The hash chain of rows: each row carries a SHA-256 over its content and over the hash of the previous row.

The chain shows rows that were changed, inserted or removed, and rows from before the chain began. The seal is a file
that the writer adds when it closes: the number and hash of the last row. It shows rows that are missing at the end.
The hashes have no key. Someone who rewrites all rows, all hashes and the seal leaves no trace here, but changes the
last hash. To prove more, keep the last hash elsewhere.

The chain of a session's log begins with FIRST. The chains of files beside it begin with the hash of the file to which
they belong, which shows files of another session. Earlier versions began these with FIRST, too.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import TypeAdapter

from harness.base.codec import CodecError, decode
from harness.base.whole_file import disk_errors, write_atomically
from harness.model.errors import LogError, Place
from harness.model.frozen import frozen

COLUMN = "chain"
Link = tuple[int, int, float, float, str, str]
"""(seq, run, at_s, wall_s, kind, body) of a row: the hash covers these, after the hash of the previous row."""
FIRST = bytes(32)
"""The hash with which a chain begins that is tied to no other file."""
_NUMBERS = struct.Struct(">qqddI")


def row_hash(previous: bytes, row: Link) -> bytes:
    """The hash of a row, 32 bytes. previous: the hash of the previous row, or FIRST."""
    seq, run, at_s, wall_s, kind, body = row
    name = kind.encode()
    # SQLite has no -0.0.
    numbers = _NUMBERS.pack(seq, run, at_s + 0.0, wall_s + 0.0, len(name))
    return hashlib.sha256(previous + numbers + name + body.encode("utf-8", "surrogatepass")).digest()


def is_chained(connection: sqlite3.Connection) -> bool:
    """Whether the rows have a column for their hashes; sqlite3.Error."""
    return any(name == COLUMN for _, name, *_ in connection.execute("PRAGMA table_info(entries)"))


def begin_chain(connection: sqlite3.Connection) -> None:
    """Adds a column for hashes to a file of an earlier version, if it is missing; sqlite3.Error."""
    if is_chained(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    if not is_chained(connection):  # another process may have added it first
        connection.execute(f"ALTER TABLE entries ADD COLUMN {COLUMN} BLOB")
    connection.execute("COMMIT")


def last_link(connection: sqlite3.Connection, first: Callable[[], bytes] = lambda: FIRST) -> bytes:
    """The hash of the last row, over all earlier rows, including those of earlier versions; sqlite3.Error.

    first: returns the hash with which the chain begins; called only when no row has a hash.
    """
    last_row = connection.execute(
        f"SELECT seq, {COLUMN} FROM entries WHERE {COLUMN} IS NOT NULL ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    seq, link = last_row or (0, first())
    for row in connection.execute(
        "SELECT seq, run, at_s, wall_s, kind, body FROM entries WHERE seq > ? ORDER BY seq", (seq,)
    ):
        link = row_hash(link, row)
    return bytes(link)


@frozen
class Seal:
    """The end of a file when its writer closed it.

    - rows: number of the last row.
    - sha256: its hash, in hexadecimal.
    """

    rows: int
    sha256: str


_SEAL: TypeAdapter[Seal] = TypeAdapter(Seal)
_MAX_SEAL_BYTES = 1000
"""Largest size of a seal file that is read; a real one is far smaller."""


def seal_of(database: Path) -> Path:
    """The file that keeps the seal of a database."""
    return database.with_suffix(".seal")


def read_seal(database: Path) -> Seal | None:
    """The seal, or None. Raises LogError if it cannot be read."""
    path = seal_of(database)
    if not path.exists():
        return None
    with disk_errors(f"{path} cannot be read"), path.open("rb") as stream:
        content = stream.read(_MAX_SEAL_BYTES)
    try:
        return decode(_SEAL, content)
    except CodecError as error:
        raise LogError(f"this file is not a seal: {error.what}", place=Place(str(path))) from error


def seal_end(connection: sqlite3.Connection, database: Path) -> None:
    """Writes the last row's number and hash to disk; LogFull, LogError, sqlite3.Error.

    Keeps a seal that the rows contradict: it is the evidence that some are missing or were changed.
    """
    last_row = connection.execute(f"SELECT seq, {COLUMN} FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
    if last_row is None or last_row[1] is None:
        return
    end = Seal(last_row[0], bytes(last_row[1]).hex())
    try:
        seal = read_seal(database)
    except LogError:
        return  # `check` reports it
    if seal is not None:
        sealed_row = connection.execute(f"SELECT {COLUMN} FROM entries WHERE seq = ?", (seal.rows,)).fetchone()
        if seal == end or sealed_row is None or sealed_row[0] is None or bytes(sealed_row[0]).hex() != seal.sha256:
            return
    write_atomically(seal_of(database), _SEAL.dump_json(end) + b"\n")


class ChainCheck:
    """Takes the rows of one file in order, and reports where their hashes do not match."""

    def __init__(self, seal: Seal | None, first: bytes = FIRST) -> None:
        """seal: the file's seal; None without one. first: the hash with which the chain must begin."""
        self._seal, self._first = seal, first
        # The possible hashes of the previous row. At first, that of an earlier version is possible too.
        self._links = tuple(dict.fromkeys((first, FIRST)))
        self._last = 0
        self.sealed_from: int | None = None
        """Number of the first row with a hash; None without any."""
        self._changed: list[int] = []
        self._unhashed: list[int] = []
        self._fits_seal = False
        self.tied = True
        """False if the chain is right, but begins with FIRST, as in earlier versions."""

    def add_row(self, row: Link, stored: bytes | None) -> None:
        """Takes the next row. stored: the hash that it carries; None if it has none."""
        seq = row[0]
        if seq != self._last + 1:
            self._links = ()  # the previous row is missing
        self._links = tuple(row_hash(link, row) for link in self._links)
        if stored is None:
            if self.sealed_from is not None:
                self._unhashed.append(seq)
        else:
            if self._links and stored not in self._links:
                self._changed.append(seq)
            elif self.sealed_from is None:
                self.tied = stored in self._links[:1]
            self.sealed_from = self.sealed_from or seq
            self._links = (stored,)
        self._last = seq
        if self._seal is not None and seq == self._seal.rows:
            self._fits_seal = self._seal.sha256 in [link.hex() for link in self._links]

    @property
    def end(self) -> Seal | None:
        """The last row, when it has a hash."""
        return Seal(self._last, self._links[0].hex()) if self.sealed_from and self._links else None

    def damage(self) -> Iterator[str]:
        """What the hashes and the seal show, in sentences; nothing if all rows are as they were written."""
        for first, last in _runs(self._changed):
            if first == 1 and self._first != FIRST:
                yield "row 1 has changed since it was written, or the file belongs to another session"
            elif first == self.sealed_from and first > 1:
                yield f"row {first}, or an earlier row, has changed since it was written: its SHA-256 differs"
            elif first == last:
                yield f"row {first} has changed since it was written: its SHA-256 differs"
            else:
                yield f"rows {first} to {last} have changed since they were written: their SHA-256 values differ"
        for first, last in _runs(self._unhashed):
            yield f"row {first} has no SHA-256" if first == last else f"rows {first} to {last} have no SHA-256"
        if self._seal is None:
            return
        if self._seal.rows > self._last:
            first, last = self._last + 1, self._seal.rows
            yield f"row {last} is missing" if first == last else f"rows {first} to {last} are missing"
        elif not self._fits_seal:
            yield f"row {self._seal.rows}, or an earlier row, has changed since it was sealed: the SHA-256 differs"

    def notes(self) -> Iterator[str]:
        """What the check cannot show, in sentences."""
        if not self._last:
            return
        if self.sealed_from is None:
            yield (
                "not sealed: no row has a SHA-256, and nothing shows whether rows were changed. An earlier version"
                " wrote the log, or somebody removed the SHA-256"
            )
            return
        if self.sealed_from > 1:
            yield (
                f"rows 1 to {self.sealed_from - 1} were not sealed when they were written; changes show only from row"
                f" {self.sealed_from} on"
            )
        if self._seal is None or self._seal.rows < self._last:
            yield (
                f"the end is not sealed: a writer is still running, or was killed. Rows missing after row {self._last}"
                " would not show"
            )


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """First and last number of each run of consecutive numbers."""
    first = last = 0
    for number in numbers:
        if last and number != last + 1:
            yield first, last
            first = 0
        first, last = first or number, number
    if last:
        yield first, last
