"""The C kernel, loaded with ctypes from beside this module, which owns the memory."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.engines.offline_loading import NoKernel, load_kernel
from harness.engines.tflite_file import Graph, Op, Operator
from harness.model.frozen import frozen

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Convolution:
    """A convolution.

    - weights: [taps in time, taps across columns, inputs, outputs].
    - side_columns: number of columns of zeros on both sides. The output is the maximum of x, slope · x and floor.
    """

    weights: Array
    bias: Array
    side_columns: int
    slope: float = 1.0
    floor: float = -np.inf


@frozen
class Pool:
    """A pooling layer: the maximum over this many rows and columns."""

    rows: int
    columns: int


def layers(graph: Graph) -> tuple[Convolution | Pool, ...]:
    """The chain of layers in a graph. Raises ValueError if it is not a chain, or has an unsupported operator."""
    chain: list[Convolution | Pool] = []
    padding, last = 0, graph.inputs[0]
    for operator in graph.operators:
        if operator.inputs[0] != last:
            raise ValueError("its layers do not form a chain")
        last = operator.outputs[0]
        previous = chain[-1] if chain else None
        match operator.code:
            case Op.PAD:
                padding = int(_constant(graph, operator.inputs[1]).reshape(-1, 2)[2, 0])
            case Op.CONV_2D:
                chain.append(_read_convolution(graph, operator, padding))
                padding = 0
            case Op.MAX_POOL_2D:
                chain.append(Pool(operator.integer(4), operator.integer(3)))
            case Op.LEAKY_RELU if isinstance(previous, Convolution):
                chain[-1] = replace(previous, slope=operator.number(0))
            case Op.MAXIMUM if isinstance(previous, Convolution):
                chain[-1] = replace(previous, floor=float(_constant(graph, operator.inputs[1])))
            case _:
                raise ValueError(f"its operator {operator.code} is not supported")
    return tuple(chain)


def _read_convolution(graph: Graph, operator: Operator, padding: int) -> Convolution:
    weights = np.asarray(_constant(graph, operator.inputs[1]), np.float32).transpose(1, 2, 3, 0)
    if operator.byte(0) == 0:  # padded to keep the size; the translation has checked that the padding is only beside
        padding += weights.shape[1] // 2
    bias = np.ascontiguousarray(_constant(graph, operator.inputs[2]), np.float32)
    return Convolution(np.ascontiguousarray(weights), bias, padding)


def _constant(graph: Graph, index: int) -> npt.NDArray[np.generic]:
    """The values of a constant tensor. Raises ValueError for a computed one."""
    value = graph.tensors[index].values
    if value is None:
        raise ValueError("it computes its weights")
    return value


VERSION = 1
"""VH_VERSION in vh_convolution.h."""
_BLOCK = 24
"""COLUMNS of the kernel: number of outputs that it computes together."""
_MAX_CHANNELS = 96
"""MAX_CHANNELS of the kernel, whose buffers have that size."""
_TILE = 4
"""Number of values that Winograd's F(4, 3) computes together."""
_SPARE_ROWS = 8
"""Rows of memory after those of a layer: the kernel reads and writes whole tiles."""
# Winograd's F(4, 3): three taps at the points 0, 1, −1, 2, −2 and infinity.
_POINTS = np.array(
    [[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]], np.float64
) / 24  # fmt: skip


class _CTaps(ctypes.Structure):
    """`vh_taps` in vh_convolution.h."""

    _fields_ = [
        *((name, ctypes.c_long) for name in ("outer", "outer_in", "outer_out", "inner", "inner_in", "inner_out")),
        *((name, ctypes.c_long) for name in ("along_in", "along_out")),
        *((name, ctypes.c_int32) for name in ("inputs", "outputs")),
        *((name, ctypes.c_void_p) for name in ("weights", "bias")),
        *((name, ctypes.c_float) for name in ("slope", "least")),
    ]  # fmt: skip


@functools.cache
def library() -> ctypes.CDLL:
    """The kernel. Raises NoKernel if it was not built, or cannot run here."""
    kernel = load_kernel(Path(__file__).parent, VERSION)
    pointer, number = ctypes.c_void_p, ctypes.c_float
    kernel.vh_three_taps.argtypes = [pointer, pointer, pointer]
    kernel.vh_dense.argtypes = [pointer, pointer, ctypes.c_long, ctypes.c_int32, ctypes.c_int32, pointer, pointer,
                                number, number]  # fmt: skip
    length, int32 = ctypes.c_long, ctypes.c_int32
    kernel.vh_pool.argtypes = [pointer, length, length, pointer, *(length for _ in range(4)), int32, int32, int32]
    kernel.vh_first.argtypes = [pointer, length, pointer, length, length, length, int32, int32, int32, pointer, pointer,
                                number, number]  # fmt: skip
    kernel.vh_clear_sides.argtypes = [pointer, length, length, length, int32]
    for function in (kernel.vh_three_taps, kernel.vh_first, kernel.vh_dense, kernel.vh_pool, kernel.vh_clear_sides):
        function.restype = None
    if not kernel.vh_ready():
        raise NoKernel("this processor has no AVX2")
    return kernel


class KernelEmbedding:
    """Embeddings by the kernel. NoKernel without it, ValueError for an unsupported graph."""

    def __init__(self, graph: Graph) -> None:
        self._kernel = library()
        if len(graph.tensors[graph.inputs[0]].shape) != 4:
            raise ValueError("its input is not mel frames")
        self._bands = graph.tensors[graph.inputs[0]].shape[2]
        columns, channels = self._bands, 1
        self._steps: list[tuple[Convolution | Pool, Array | None, bool]] = []
        self._widest = 0
        chain = layers(graph)
        for layer, following in zip(chain, (*chain[1:], None), strict=True):
            weights = None
            if isinstance(layer, Pool):
                if layer.rows > 2 or layer.columns > 2:
                    raise ValueError("it pools more than two rows or columns")
                columns //= layer.columns
            else:
                weights = _pack(layer, columns, channels)
                channels = layer.weights.shape[3]
            padded = isinstance(following, Convolution) and _is_tiled(following, columns)
            self._widest = max(self._widest, (columns + 2) * channels)
            self._steps.append((layer, weights, padded))
        self._memory: list[Array] = [np.zeros(0, np.float32) for _ in range(2)]

    def __call__(self, frames: Array) -> Array:
        """The embeddings of frames, as a copy: shape (rows, mels) → (embeddings, size)."""
        size = (len(frames) + _SPARE_ROWS) * self._widest
        if len(self._memory[0]) < size:
            self._memory = [np.zeros(size, np.float32) for _ in range(2)]
        rows, columns = len(frames), self._bands
        values = frames[:, :, np.newaxis]
        for step_index, (layer, weights, padded) in enumerate(self._steps):
            memory = self._memory[step_index % 2]
            if isinstance(layer, Pool):
                rows, columns = rows // layer.rows, columns // layer.columns
                output = self._make_room(memory, rows, columns, values.shape[2], padded)
                self._apply_pool(layer, values, output, rows)
            else:
                assert weights is not None
                tap_rows, tap_columns, _, outputs = layer.weights.shape
                output = self._make_room(memory, rows, columns, outputs, padded)
                if tap_rows == 3 and tap_columns == 1:
                    values[rows : rows + _TILE] = 0  # the last tile reads beyond the rows
                    rows -= 2
                    self._apply_three_taps(layer, weights, values, output, axis=0, tiles=(-(-rows // _TILE), columns))
                elif _is_tiled(layer, columns):
                    self._apply_three_taps(layer, weights, values, output, axis=1, tiles=(rows, columns // _TILE))
                elif values.shape[2] == 1:
                    rows -= tap_rows - 1
                    self._apply_first_layer(layer, weights, values, output, rows)
                else:
                    self._apply_dense(layer, weights, values, output, rows)
            values = output
        return values[:rows, 0].copy()

    def _apply_three_taps(
        self, layer: Convolution, weights: Array, values: Array, output: Array, *, axis: int, tiles: tuple[int, int]
    ) -> None:
        """Applies a layer with three taps along the rows (axis 0) or columns (1), with zeros on both sides."""
        step_in, step_out = _strides_in_floats(values), _strides_in_floats(output)
        lengths = (_TILE, 1) if axis == 0 else (1, _TILE)
        taps = _CTaps(
            tiles[0], lengths[0] * step_in[0], lengths[0] * step_out[0],
            tiles[1], lengths[1] * step_in[1], lengths[1] * step_out[1],
            step_in[axis], step_out[axis], values.shape[2], output.shape[2],
            weights.ctypes.data, layer.bias.ctypes.data, layer.slope, layer.floor,
        )  # fmt: skip
        start = values.ctypes.data - (values.strides[1] if axis == 1 else 0)
        self._kernel.vh_three_taps(ctypes.byref(taps), start, output.ctypes.data)

    def _apply_first_layer(self, layer: Convolution, weights: Array, values: Array, output: Array, rows: int) -> None:
        """Applies a layer with one input channel."""
        tap_rows, tap_columns, _, outputs = layer.weights.shape
        padded = np.pad(values[:, :, 0], ((0, 0), (layer.side_columns, layer.side_columns)))
        row_stride, _ = _strides_in_floats(output)
        self._kernel.vh_first(
            padded.ctypes.data, padded.shape[1], output.ctypes.data, row_stride, rows, output.shape[1],
            tap_rows, tap_columns, outputs, weights.ctypes.data, layer.bias.ctypes.data, layer.slope, layer.floor,
        )  # fmt: skip

    def _apply_dense(self, layer: Convolution, weights: Array, values: Array, output: Array, rows: int) -> None:
        """Applies a layer that takes a whole row at once."""
        inputs, outputs = values[:rows].reshape(rows, -1), output.shape[1] * output.shape[2]
        count = len(inputs)
        if count < _TILE:  # the kernel reads four rows
            inputs = np.pad(inputs, ((0, _TILE - count), (0, 0)))
        inputs = np.ascontiguousarray(inputs)
        product = np.empty((count, outputs), np.float32)
        bias = np.tile(layer.bias, outputs // len(layer.bias))
        self._kernel.vh_dense(
            inputs.ctypes.data, product.ctypes.data, count, weights.shape[1], outputs, weights.ctypes.data,
            bias.ctypes.data, layer.slope, layer.floor,
        )  # fmt: skip
        output[:rows] = product.reshape(rows, output.shape[1], output.shape[2])

    def _make_room(self, memory: Array, rows: int, columns: int, channels: int, padded: bool) -> Array:
        """Memory for a layer's values, with spare rows, and with a column of zeros on both sides if padded."""
        shape = (rows + _SPARE_ROWS, columns + 2 * padded, channels)
        room: Array = memory[: shape[0] * shape[1] * shape[2]].reshape(shape)
        if not padded:
            return room
        row = shape[1] * channels
        self._kernel.vh_clear_sides(room.ctypes.data, shape[0], row, row - channels, channels)
        inner: Array = room[:, 1:-1]
        return inner

    def _apply_pool(self, layer: Pool, values: Array, output: Array, rows: int) -> None:
        step_in, step_out = _strides_in_floats(values), _strides_in_floats(output)
        self._kernel.vh_pool(
            values.ctypes.data, step_in[0], step_in[1], output.ctypes.data, step_out[0], step_out[1],
            rows, output.shape[1], layer.rows, layer.columns, output.shape[2],
        )  # fmt: skip


def _strides_in_floats(values: Array) -> tuple[int, int]:
    """Strides of rows and of columns, in floats."""
    return values.strides[0] // values.itemsize, values.strides[1] // values.itemsize


def _is_tiled(layer: Convolution, columns: int) -> bool:
    """Whether a layer has three taps along the columns, which the kernel computes in tiles."""
    return layer.weights.shape[:2] == (1, 3) and columns % _TILE == 0


def _pack(layer: Convolution, columns: int, channels: int) -> Array:
    """A convolution's weights in the kernel's own order. Raises ValueError for an unsupported form."""
    tap_rows, tap_columns, inputs, outputs = layer.weights.shape
    if inputs != channels or outputs % _BLOCK or outputs > _MAX_CHANNELS:
        raise ValueError("its number of channels is not supported")
    if (tap_rows, tap_columns, layer.side_columns) == (3, 1, 0) or (
        (layer.side_columns == 1) and _is_tiled(layer, columns)
    ):
        if inputs % 8:
            raise ValueError("its number of channels is not supported")
        at_points = np.einsum("pt,tio->pio", _POINTS, layer.weights.reshape(3, inputs, outputs).astype(np.float64))
        return _in_blocks(at_points)
    if inputs == 1 and layer.side_columns == tap_columns // 2 and columns % _TILE == 0:
        return _in_blocks(layer.weights.reshape(tap_rows * tap_columns, outputs))
    if (tap_rows, tap_columns, layer.side_columns) == (1, 3, 1) and columns == 2:
        dense = np.zeros((columns, inputs, columns, outputs))
        for source in range(columns):
            for result in range(columns):
                dense[source, :, result] = layer.weights[0, source - result + 1]
        return _in_blocks(dense.reshape(columns * inputs, columns * outputs))
    raise ValueError("the form of one of its convolutions is not supported")


def _in_blocks(weights: npt.NDArray[np.floating]) -> Array:
    """The weights in blocks of 24 outputs: […, inputs, outputs] → […, outputs / 24, inputs, 24]."""
    *leading, inputs, outputs = weights.shape
    split = weights.reshape(*leading, inputs, outputs // _BLOCK, _BLOCK)
    return np.ascontiguousarray(np.moveaxis(split, -2, -3), np.float32)
