"""Writes an ONNX model, byte for byte, and frees the batch dimension of one (protocol buffers, onnx.proto3, IR 8)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.model.errors import PluginError

_IR_VERSION, _OPSET = 8, 13
_ELEMENT = {np.dtype(np.float32): 1, np.dtype(np.int64): 7}

Attribute = int | float | Sequence[int]
Dimension = int | str


def node(operator: str, inputs: Sequence[str], output: str, **attributes: Attribute) -> bytes:
    """A NodeProto with one output."""
    made = [_text(1, name) for name in inputs]
    made += [_text(2, output), _text(4, operator)]
    made += [_field(5, _attribute(name, value)) for name, value in attributes.items()]
    return b"".join(made)


def model(
    nodes: Sequence[bytes],
    constants: Mapping[str, npt.NDArray[np.generic]],
    inputs: Mapping[str, Sequence[Dimension]],
    outputs: Mapping[str, Sequence[Dimension]],
) -> bytes:
    """A ModelProto. inputs, outputs: shapes of float32 tensors by name; a dimension in words is free."""
    graph = [_field(1, one) for one in nodes]
    graph.append(_text(2, "graph"))
    graph += [_field(5, _tensor(name, value)) for name, value in constants.items()]
    graph += [_field(11, _value(name, shape)) for name, shape in inputs.items()]
    graph += [_field(12, _value(name, shape)) for name, shape in outputs.items()]
    return _whole(1, _IR_VERSION) + _field(7, b"".join(graph)) + _field(8, _text(1, "") + _whole(2, _OPSET))


def free_batch(content: bytes) -> bytes:
    """The same model with the first dimension of its inputs and outputs left open; ValueError for no ONNX model."""
    return _changed(content, (7,), lambda graph: _changed(graph, (11, 12), _free_value))


def _free_value(value: bytes) -> bytes:
    def tensor_type(kind: bytes) -> bytes:
        return _changed(kind, (1,), lambda tensor: _changed(tensor, (2,), _free_first))

    return _changed(value, (2,), tensor_type)


def _free_first(shape: bytes) -> bytes:
    made, first = [], True
    for number, wire, body in _fields(shape):
        if number == 1 and first:
            body, first = _text(2, "batch"), False
        made.append(_again(number, wire, body))
    return b"".join(made)


def _changed(message: bytes, numbers: tuple[int, ...], change: Callable[[bytes], bytes]) -> bytes:
    made = []
    for number, wire, body in _fields(message):
        if number in numbers and wire == 2:
            body = change(body)
        made.append(_again(number, wire, body))
    return b"".join(made)


def _fields(message: bytes) -> list[tuple[int, int, bytes]]:
    """(number, wire type, body) of each field; ValueError when the bytes are no message."""
    found: list[tuple[int, int, bytes]] = []
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        wire = key & 7
        match wire:
            case 0:
                _, end = _read_varint(message, place)
            case 1 | 5:
                end = place + (8 if wire == 1 else 4)
            case 2:
                length, place = _read_varint(message, place)
                end = place + length
            case _:
                raise ValueError("it is no ONNX model")
        if end > len(message):
            raise ValueError("it is cut off")
        found.append((key >> 3, wire, message[place:end]))
        place = end
    return found


def _again(number: int, wire: int, body: bytes) -> bytes:
    return _field(number, body) if wire == 2 else _varint(number << 3 | wire) + body


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(message) and shift < 70:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
    raise ValueError("it is no ONNX model")


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _whole(3, value) + _whole(20, 2)
    if isinstance(value, float):
        return _text(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _whole(20, 1)
    return _text(1, name) + b"".join(_whole(8, one) for one in value) + _whole(20, 7)


def _tensor(name: str, value: npt.NDArray[np.generic]) -> bytes:
    dims = b"".join(_whole(1, size) for size in value.shape)
    return dims + _whole(2, _ELEMENT[value.dtype]) + _text(8, name) + _field(9, value.tobytes())


def _value(name: str, shape: Sequence[Dimension]) -> bytes:
    dims = b"".join(_field(1, _text(2, one) if isinstance(one, str) else _whole(1, one)) for one in shape)
    return _text(1, name) + _field(2, _field(1, _whole(1, 1) + _field(2, dims)))


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _whole(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    """Negative numbers take ten bytes, as in two's complement of 64 bits."""
    value &= (1 << 64) - 1
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


Array = npt.NDArray[np.float32]


class OnnxModel:
    """A loaded model with one output; ValueError when onnxruntime cannot run it, PluginError when it is missing."""

    def __init__(self, content: bytes) -> None:
        try:
            import onnxruntime
            from onnxruntime.capi import onnxruntime_pybind11_state as states
        except ImportError as error:
            raise PluginError(
                "openWakeWord's fast path and its ONNX models need onnxruntime, which is not installed",
                remedy="Install the extra that carries it: pip install 'voice-harness[openwakeword]'",
            ) from error
        options = onnxruntime.SessionOptions()
        # Processes are what an evaluation runs side by side; a thread of its own would take another one's core.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        failures = (states.Fail, states.InvalidProtobuf, states.InvalidGraph, states.InvalidArgument,
                    states.NotImplemented, states.RuntimeException, states.NoModel, states.NoSuchFile)  # fmt: skip
        try:
            self._session: Any = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except failures as error:
            raise ValueError(f"onnxruntime does not take it: {_first_line(error)}") from error
        self._failures = failures
        self.inputs: dict[str, tuple[int | str | None, ...]] = {
            one.name: tuple(one.shape) for one in self._session.get_inputs()
        }
        self.element_types: tuple[str, ...] = tuple(one.type for one in self._session.get_inputs())
        self.outputs = len(self._session.get_outputs())

    def __call__(self, **inputs: Array) -> Array:
        """The first output; ValueError when the model fails on these shapes."""
        try:
            found: Array = self._session.run(None, inputs)[0]
        except self._failures as error:
            raise ValueError(f"onnxruntime failed in it: {_first_line(error)}") from error
        return found


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__
