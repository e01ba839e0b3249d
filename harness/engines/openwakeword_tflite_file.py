"""Reads a TensorFlow Lite file: its graphs, their tensors and operators. A FlatBuffer of the schema version 3.

Only what openWakeWord's models hold is understood; ValueError for anything that is no such file. Nothing is executed.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_TYPES: dict[int, type[np.generic]] = {0: np.float32, 2: np.int32, 4: np.int64, 6: np.bool_}
_IDENTIFIER = b"TFL3"


@dataclass(frozen=True, slots=True, eq=False)
class TfliteTensor:
    """A tensor of a graph. constant: its value, read-only, or None where it is worked out."""

    shape: tuple[int, ...]
    constant: npt.NDArray[np.generic] | None


@dataclass(frozen=True, slots=True)
class TfliteOperator:
    """One operator. code: its number in the schema; inputs, outputs: numbers of tensors, -1 for one left out.

    options: the little-endian words at the operator's option fields, by the field's number; a field that is left out
    has its default value and is not there.
    """

    code: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[int, bytes]

    def whole(self, field: int, default: int = 0) -> int:
        """The option as a 32-bit whole number."""
        return int(struct.unpack("<i", self.options[field])[0]) if field in self.options else default

    def byte(self, field: int, default: int = 0) -> int:
        """The option as one byte (an enumeration or a truth value)."""
        return self.options[field][0] if field in self.options else default

    def number(self, field: int, default: float = 0.0) -> float:
        """The option as a 32-bit float."""
        return float(struct.unpack("<f", self.options[field])[0]) if field in self.options else default


@dataclass(frozen=True, slots=True)
class TfliteGraph:
    """A graph: tensors by number, and operators in the order in which they run."""

    tensors: tuple[TfliteTensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[TfliteOperator, ...]


def read_graphs(content: bytes) -> tuple[TfliteGraph, ...]:
    """The graphs of a file, the main one first; ValueError when the bytes are no TensorFlow Lite model."""
    if content[4:8] != _IDENTIFIER:
        raise ValueError("it does not begin as a TensorFlow Lite file")
    try:
        graphs = _Reader(content).graphs()
    except (struct.error, IndexError, RecursionError, OverflowError) as error:
        raise ValueError("its tables point outside of the file") from error
    if not graphs:
        raise ValueError("it holds no graph")
    return graphs


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def graphs(self) -> tuple[TfliteGraph, ...]:
        model = self._u32(0)
        codes = [self._code(table) for table in self._tables(model, 1)]
        buffers = self._tables(model, 4)
        return tuple(self._graph(table, codes, buffers) for table in self._tables(model, 2))

    def _graph(self, table: int, codes: list[int], buffers: list[int]) -> TfliteGraph:
        return TfliteGraph(
            tuple(self._tensor(one, buffers) for one in self._tables(table, 0)),
            self._wholes(table, 1),
            self._wholes(table, 2),
            tuple(self._operator(one, codes) for one in self._tables(table, 3)),
        )

    def _tensor(self, table: int, buffers: list[int]) -> TfliteTensor:
        shape = self._wholes(table, 0)
        kind, buffer = self._field(table, 1), self._field(table, 2)
        start, length = self._vector(buffers[self._u32(buffer) if buffer else 0], 0)
        dtype = _TYPES.get(self._content[kind] if kind else 0)
        if not length or dtype is None:
            return TfliteTensor(shape, None)
        value = np.frombuffer(self._content[start : start + length], dtype)
        return TfliteTensor(shape, value.reshape(shape))

    def _operator(self, table: int, codes: list[int]) -> TfliteOperator:
        index, options = self._field(table, 0), self._field(table, 4)
        found: dict[int, bytes] = {}
        if options:
            inner = self._indirect(options)
            layout = inner - self._i32(inner)
            for number in range((self._u16(layout) - 4) // 2):
                place = self._field(inner, number)
                if place:
                    found[number] = self._content[place : place + 4]
        code = codes[self._u32(index) if index else 0]
        return TfliteOperator(code, self._wholes(table, 1), self._wholes(table, 2), found)

    def _code(self, table: int) -> int:
        old, new = self._field(table, 0), self._field(table, 3)
        return max(self._content[old] if old else 0, self._i32(new) if new else 0)

    def _tables(self, table: int, field: int) -> list[int]:
        start, length = self._vector(table, field)
        return [self._indirect(start + 4 * index) for index in range(length)]

    def _wholes(self, table: int, field: int) -> tuple[int, ...]:
        start, length = self._vector(table, field)
        return struct.unpack_from(f"<{length}i", self._content, start)

    def _vector(self, table: int, field: int) -> tuple[int, int]:
        """Where a vector's elements begin, and how many there are; none where the field is left out."""
        place = self._field(table, field)
        if not place:
            return 0, 0
        start = self._indirect(place)
        length = self._u32(start)
        if start + 4 + length > len(self._content):
            raise IndexError(start)
        return start + 4, length

    def _field(self, table: int, number: int) -> int:
        """Where a field of a table lies, or 0 where it is left out."""
        layout = table - self._i32(table)
        if 4 + 2 * number >= self._u16(layout):
            return 0
        offset = self._u16(layout + 4 + 2 * number)
        return table + offset if offset else 0

    def _indirect(self, place: int) -> int:
        return place + self._u32(place)

    def _u16(self, place: int) -> int:
        return int(struct.unpack_from("<H", self._content, _inside(place))[0])

    def _u32(self, place: int) -> int:
        return int(struct.unpack_from("<I", self._content, _inside(place))[0])

    def _i32(self, place: int) -> int:
        return int(struct.unpack_from("<i", self._content, _inside(place))[0])


def _inside(place: int) -> int:
    """Offsets are not negative: struct would count them from the end."""
    if place < 0:
        raise IndexError(place)
    return place
