"""Reads tables of a FlatBuffers file: https://flatbuffers.dev/internals, little-endian, without a schema compiler."""

from __future__ import annotations

import struct
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

_Number = TypeVar("_Number", bound=np.generic)


class Broken(ValueError):
    """The bytes are not what they should be."""


class Table:
    """A table at a place in the bytes; fields by their number in the schema. Broken when it points outside."""

    def __init__(self, content: bytes, place: int) -> None:
        self._content = content
        self._place = place
        self._fields = place - self._read("<i", place)
        self._count = (self._read("<H", self._fields) - 4) // 2

    @classmethod
    def root(cls, content: bytes, identifier: bytes) -> Table:
        """The root table of a file that begins with that identifier."""
        if content[4:8] != identifier:
            raise Broken(f"it does not begin as a file of the kind {identifier.decode()}")
        return cls(content, struct.unpack_from("<I", content)[0])

    def number(self, field: int, form: str, default: int) -> int:
        """A whole number; form: a character of `struct`."""
        place = self._field(field)
        return int(self._read("<" + form, place)) if place else default

    def real(self, field: int, default: float) -> float:
        """A 32-bit float."""
        place = self._field(field)
        return float(self._read("<f", place)) if place else default

    def table(self, field: int) -> Table | None:
        """A table, or None where there is none."""
        place = self._field(field)
        return Table(self._content, place + self._read("<I", place)) if place else None

    def tables(self, field: int) -> list[Table]:
        """A vector of tables."""
        start, count = self._vector(field)
        return [Table(self._content, at + self._read("<I", at)) for at in range(start, start + 4 * count, 4)]

    def array(self, field: int, kind: type[_Number]) -> npt.NDArray[_Number] | None:
        """A vector of numbers, shape (n,), or None where there is none."""
        if not self._field(field):
            return None
        start, count = self._vector(field)
        try:
            return np.frombuffer(self._content, np.dtype(kind).newbyteorder("<"), count, start)
        except ValueError as error:
            raise Broken(f"a vector runs over the file's end: {error}") from None

    def element(self, field: int, number: int) -> int:
        """Where a number of a vector of 32-bit numbers lies in the file."""
        start, count = self._vector(field)
        if number >= count:
            raise Broken("a vector is shorter than it should be")
        return start + 4 * number

    def text(self, field: int) -> str:
        """A string, "" where there is none."""
        found = self.array(field, np.uint8)
        return "" if found is None else found.tobytes().decode(errors="replace")

    def _vector(self, field: int) -> tuple[int, int]:
        place = self._field(field)
        if not place:
            return 0, 0
        start = place + self._read("<I", place)
        return start + 4, self._read("<I", start)

    def _field(self, field: int) -> int:
        offset = self._read("<H", self._fields + 4 + 2 * field) if field < self._count else 0
        return self._place + offset if offset else 0

    def _read(self, form: str, place: int) -> Any:
        if place < 0:  # struct would count from the end
            raise Broken("a table points outside of the file")
        try:
            return struct.unpack_from(form, self._content, place)[0]
        except struct.error as error:
            raise Broken(f"a table points outside of the file: {error}") from None
