"""A file of rows that several processes add to at the same time, each row once, none without being on the disk."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from harness.base.chain import last_link, linked, seal_end
from harness.base.codec import encode
from harness.model.errors import LogError
from harness.session.log.database import INSERT, Content, Row, explained, open_for_reading, open_for_writing, texts

T = TypeVar("T")
WAIT_S = 30.0
"""So long a writer waits for another one's commit."""


class SharedRows(ABC, Generic[T]):
    """One such file; thread-safe. LogError when it cannot be written or is another one; LogFull.

    path: of the file. demand: raises LogError when the folder is not what it has to be.
    """

    def __init__(self, path: Path, content: Content, demand: Callable[[], object]) -> None:
        self._path, self._content, self._demand = path, content, demand
        self._lock = threading.Lock()
        self._open()

    @abstractmethod
    def _id(self, record: T) -> str | None:
        """What makes a record the same when it is sent again; None when it may stand there twice."""

    @abstractmethod
    def _kind(self, record: T) -> str: ...

    @abstractmethod
    def _record(self, row: Row) -> T:
        """LogError naming a row that cannot be read."""

    @property
    @abstractmethod
    def _adapter(self) -> TypeAdapter[T]: ...

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
                    id_ = self._id(record)
                    if id_ is not None:
                        if (there := self._known.get(id_, fresh.get(id_))) is not None:
                            found.append(next(texts(self._connection, self._path, there - 1)))
                            continue
                        fresh[id_] = seq + 1
                    body = self._text(record)
                    seq += 1
                    row = (seq, 0, time.monotonic(), time.time(), self._kind(record), body)
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
        connection = open_for_reading(self._path, may_be_blank=True, content=self._content)
        try:
            for row in texts(connection, self._path, after_seq):
                yield row, self._record(row)
        finally:
            connection.close()

    def close(self) -> None:
        """Seals the end; LogFull, LogError when it cannot, and the rows are safe nevertheless."""
        with self._lock:
            try:
                if _place(self._path) == self._opened:
                    with explained(self._path):
                        self._connection.execute("BEGIN IMMEDIATE")  # nobody adds a row meanwhile
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
            # An open file that was removed still takes rows, and nobody would ever read them.
            self._demand()
            self._connection.close()
            self._open()

    def _catch_up(self) -> None:
        """Learns the ids that other processes have written meanwhile."""
        for row in texts(self._connection, self._path, self._seq):
            id_ = self._id(self._record(row))
            self._seq = row[0]
            if id_ is not None:
                self._known[id_] = row[0]

    def _text(self, record: T) -> str:
        try:
            return encode(self._adapter, record).decode("utf-8")
        except PydanticSerializationError as error:
            what = f"a {self._kind(record)} row cannot be written as text: {error}"
            raise LogError(what, remedy="Write it in other characters") from error


def _place(path: Path) -> tuple[int, int] | None:
    """Which file a path leads to now; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
