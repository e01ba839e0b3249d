"""A TensorFlow Lite model file as operators and tensors (schema: tensorflow/lite/schema/schema.fbs, TFL3)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

_Number = TypeVar("_Number", bound=np.generic)


class InvalidModelFile(ValueError):
    """The bytes are not a valid model file."""


class FlatTable:
    """A table at a position in the bytes. Its fields are read by their number in the schema.

    Raises InvalidModelFile if it points outside of the bytes.
    """

    def __init__(self, content: bytes, position: int) -> None:
        self._content = content
        self._position = position
        self._field_table = position - self._unpack("<i", position)
        self._field_count = (self._unpack("<H", self._field_table) - 4) // 2

    @classmethod
    def root(cls, content: bytes, identifier: bytes) -> FlatTable:
        """The root table of a file that begins with that identifier."""
        if content[4:8] != identifier:
            raise InvalidModelFile(f"it does not begin with the identifier of a {identifier.decode()} file")
        return cls(content, struct.unpack_from("<I", content)[0])

    def number(self, field: int, format_code: str, default: int) -> int:
        """An integer. format_code: a character of `struct`."""
        position = self._field(field)
        return int(self._unpack("<" + format_code, position)) if position else default

    def real(self, field: int, default: float) -> float:
        """A 32-bit float."""
        position = self._field(field)
        return float(self._unpack("<f", position)) if position else default

    def table(self, field: int) -> FlatTable | None:
        """A table, or None."""
        position = self._field(field)
        return FlatTable(self._content, position + self._unpack("<I", position)) if position else None

    def tables(self, field: int) -> list[FlatTable]:
        """A vector of tables."""
        start, count = self._vector(field)
        return [
            FlatTable(self._content, position + self._unpack("<I", position))
            for position in range(start, start + 4 * count, 4)
        ]

    def array(self, field: int, kind: type[_Number]) -> npt.NDArray[_Number] | None:
        """A vector of numbers, shape (n,), or None."""
        if not self._field(field):
            return None
        start, count = self._vector(field)
        try:
            return np.frombuffer(self._content, np.dtype(kind).newbyteorder("<"), count, start)
        except ValueError as error:
            raise InvalidModelFile(f"a vector extends beyond the end of the file: {error}") from None

    def element(self, field: int, number: int) -> int:
        """Byte position of an element in a vector of 32-bit numbers.

        Raises InvalidModelFile if there is no such element.
        """
        start, count = self._vector(field)
        if number >= count:
            raise InvalidModelFile("a vector is shorter than it should be")
        return start + 4 * number

    def text(self, field: int) -> str:
        """A string, or ""."""
        array = self.array(field, np.uint8)
        return "" if array is None else array.tobytes().decode(errors="replace")

    def _vector(self, field: int) -> tuple[int, int]:
        """Byte position of the first element of a vector, and the number of elements; (0, 0) for a missing field."""
        position = self._field(field)
        if not position:
            return 0, 0
        start = position + self._unpack("<I", position)
        return start + 4, self._unpack("<I", start)

    def _field(self, field: int) -> int:
        """Byte position of a field; 0 if the table does not have it."""
        offset = self._unpack("<H", self._field_table + 4 + 2 * field) if field < self._field_count else 0
        return self._position + offset if offset else 0

    def _unpack(self, format_code: str, position: int) -> Any:
        if position < 0:  # struct would count from the end
            raise InvalidModelFile("a table points outside the file")
        try:
            return struct.unpack_from(format_code, self._content, position)[0]
        except struct.error as error:
            raise InvalidModelFile(f"a table points outside the file: {error}") from None


class Op(IntEnum):
    """The operators in the models of the harness's engines, by their numbers in the schema."""

    ADD = 0
    CONCATENATION = 2
    CONV_2D = 3
    DEPTHWISE_CONV_2D = 4
    FULLY_CONNECTED = 9
    LOGISTIC = 14
    MAX_POOL_2D = 17
    MUL = 18
    RELU = 19
    RESHAPE = 22
    PAD = 34
    MEAN = 40
    SUB = 41
    DIV = 42
    STRIDED_SLICE = 45
    SPLIT = 49
    MAXIMUM = 55
    GREATER = 61
    GREATER_EQUAL = 62
    SQRT = 75
    RSQRT = 76
    LEAKY_RELU = 98
    SPLIT_V = 102
    QUANTIZE = 114
    IF = 118
    BATCH_MATMUL = 126
    CALL_ONCE = 129
    VAR_HANDLE = 142
    READ_VARIABLE = 143
    ASSIGN_VARIABLE = 144


_TYPES: dict[int, type[np.generic]] = {
    0: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 6: np.bool_, 9: np.int8,
}  # fmt: skip
Values = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor.

    - type: number of its type in the schema (9: int8).
    - values: the values of a constant; None for results, and for constants of a type that no engine here uses.
    - scales, zero: its quantisation. scales has the shape (1,), or one value for each channel.
    """

    shape: tuple[int, ...]
    type: int
    values: Values | None
    scales: npt.NDArray[np.float32]
    zero: int


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """An operator of a graph.

    - code: its number in the schema (`Op`).
    - inputs, outputs: indices of its tensors (-1: left out).
    """

    code: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: FlatTable | None

    def byte(self, field: int, default: int = 0) -> int:
        """An option of one byte: an enumeration or a truth value."""
        return self.options.number(field, "B", default) if self.options else default

    def integer(self, field: int, default: int = 0) -> int:
        """An option that is a 32-bit integer."""
        return self.options.number(field, "i", default) if self.options else default

    def number(self, field: int, default: float = 0.0) -> float:
        """An option that is a 32-bit float."""
        return self.options.real(field, default) if self.options else default


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A graph of a model.

    - operators: in the order in which they run.
    - inputs, outputs: indices of tensors in `tensors`.
    """

    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def read_model(content: bytes) -> tuple[Graph, ...]:
    """The graphs of a model file. Raises InvalidModelFile if it is not one."""
    model = FlatTable.root(content, b"TFL3")
    codes = [max(code.number(0, "b", 0), code.number(3, "i", 0)) for code in model.tables(1)]
    buffers = model.tables(4)
    try:
        graphs = tuple(_parse_graph(graph, codes, buffers) for graph in model.tables(2))
    except IndexError:
        raise InvalidModelFile("an operator or a tensor refers to an index that does not exist") from None
    if not graphs:
        raise InvalidModelFile("the file has no graph")
    return graphs


def with_output(content: bytes, tensor: int) -> bytes:
    """The model with another tensor as the output of its first graph."""
    new_content = bytearray(content)
    position = FlatTable.root(content, b"TFL3").tables(2)[0].element(2, 0)
    struct.pack_into("<i", new_content, position, tensor)
    return bytes(new_content)


def _parse_graph(graph: FlatTable, codes: list[int], buffers: list[FlatTable]) -> Graph:
    operators = [
        Operator(codes[table.number(0, "I", 0)], _integers(table, 1), _integers(table, 2), table.table(4))
        for table in graph.tables(3)
    ]
    tensors = tuple(_parse_tensor(table, buffers) for table in graph.tables(0))
    return Graph(tensors, tuple(operators), _integers(graph, 1), _integers(graph, 2))


def _parse_tensor(tensor: FlatTable, buffers: list[FlatTable]) -> Tensor:
    shape, kind = _integers(tensor, 0), tensor.number(1, "b", 0)
    content = buffers[tensor.number(2, "I", 0)].array(0, np.uint8)
    values: Values | None = None
    if content is not None and len(content) and kind in _TYPES:
        try:
            values = content.view(_TYPES[kind]).reshape(shape)
        except ValueError as error:
            raise InvalidModelFile(f"a constant does not fill its shape: {error}") from None
    quantised = tensor.table(4)
    scales = quantised.array(2, np.float32) if quantised else None
    zeros = quantised.array(3, np.int64) if quantised else None
    zero = int(zeros[0]) if zeros is not None and len(zeros) else 0
    return Tensor(shape, kind, values, np.zeros(0, np.float32) if scales is None else scales, zero)


def _integers(table: FlatTable, field: int) -> tuple[int, ...]:
    array = table.array(field, np.int32)
    return () if array is None else tuple(int(value) for value in array)
