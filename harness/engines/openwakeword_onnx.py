"""openWakeWord's graphs as ONNX models (protocol buffers, onnx.proto3, IR 8), run over many windows."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.base.plugins import pip_install
from harness.engines.tflite_file import Graph, Op, Operator
from harness.model.errors import PluginError

_IR_VERSION, _OPSET = 8, 13
_ELEMENT_TYPES = {np.dtype(np.float32): 1, np.dtype(np.int64): 7}
"""TensorProto.DataType of each element type."""

Attribute = int | float | Sequence[int]
Dimension = int | str


def node(operator: str, inputs: Sequence[str], output: str, **attributes: Attribute) -> bytes:
    """A NodeProto with one output."""
    parts = [_text(1, name) for name in inputs]
    parts += [_text(2, output), _text(4, operator)]
    parts += [_field(5, _attribute_proto(name, value)) for name, value in attributes.items()]
    return b"".join(parts)


def model_proto(
    nodes: Sequence[bytes],
    constants: Mapping[str, npt.NDArray[np.generic]],
    inputs: Mapping[str, Sequence[Dimension]],
    outputs: Mapping[str, Sequence[Dimension]],
) -> bytes:
    """A ModelProto. inputs, outputs: shapes of float32 tensors by name; a named dimension is free."""
    graph = [_field(1, node_bytes) for node_bytes in nodes]
    graph.append(_text(2, "graph"))
    graph += [_field(5, _tensor_proto(name, value)) for name, value in constants.items()]
    graph += [_field(11, _value_info_proto(name, shape)) for name, shape in inputs.items()]
    graph += [_field(12, _value_info_proto(name, shape)) for name, shape in outputs.items()]
    return (
        _varint_field(1, _IR_VERSION) + _field(7, b"".join(graph)) + _field(8, _text(1, "") + _varint_field(2, _OPSET))
    )


def free_batch(content: bytes) -> bytes:
    """The same model with the first dimension of its inputs and outputs free.

    Raises ValueError for bytes that are not an ONNX model.
    """
    return _change_fields(content, (7,), lambda graph: _change_fields(graph, (11, 12), _free_value))


def _free_value(value: bytes) -> bytes:
    """A ValueInfoProto (field 2: its type) with the first dimension of its tensor free."""

    def tensor_type(kind: bytes) -> bytes:
        return _change_fields(kind, (1,), lambda tensor: _change_fields(tensor, (2,), _free_first))

    return _change_fields(value, (2,), tensor_type)


def _free_first(shape: bytes) -> bytes:
    """A TensorShapeProto (field 1: each dimension) with a name in place of its first size."""
    parts: list[bytes] = []
    is_first = True
    for number, wire, body in _fields(shape):
        if number == 1 and is_first:
            is_first = False
            body = _text(2, "batch")
        parts.append(_encode_field(number, wire, body))
    return b"".join(parts)


def _change_fields(message: bytes, numbers: tuple[int, ...], change: Callable[[bytes], bytes]) -> bytes:
    """A message with the bodies of the fields of these numbers changed."""
    parts = []
    for number, wire, body in _fields(message):
        if number in numbers and wire == 2:
            body = change(body)
        parts.append(_encode_field(number, wire, body))
    return b"".join(parts)


def _fields(message: bytes) -> list[tuple[int, int, bytes]]:
    """(number, wire type, body) of each field. Raises ValueError if the bytes are not a message."""
    fields: list[tuple[int, int, bytes]] = []
    position = 0
    while position < len(message):
        key, position = _read_varint(message, position)
        wire = key & 7
        match wire:
            case 0:
                _, end = _read_varint(message, position)
            case 1 | 5:
                end = position + (8 if wire == 1 else 4)
            case 2:
                length, position = _read_varint(message, position)
                end = position + length
            case _:
                raise ValueError("it is not an ONNX model")
        if end > len(message):
            raise ValueError("it is truncated")
        fields.append((key >> 3, wire, message[position:end]))
        position = end
    return fields


def _encode_field(number: int, wire: int, body: bytes) -> bytes:
    return _field(number, body) if wire == 2 else _varint(number << 3 | wire) + body


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    """A varint, and the position after it. Raises ValueError for bytes that are not a varint."""
    value = shift = 0
    while position < len(message) and shift < 70:  # 64 bits take at most ten bytes of seven.
        byte = message[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position
    raise ValueError("it is not an ONNX model")


def _attribute_proto(name: str, value: Attribute) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _varint_field(3, value) + _varint_field(20, 2)  # Field 20 is the type: INT.
    if isinstance(value, float):
        return _text(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _varint_field(20, 1)  # FLOAT.
    return _text(1, name) + b"".join(_varint_field(8, number) for number in value) + _varint_field(20, 7)  # INTS.


def _tensor_proto(name: str, value: npt.NDArray[np.generic]) -> bytes:
    dims = b"".join(_varint_field(1, size) for size in value.shape)
    return dims + _varint_field(2, _ELEMENT_TYPES[value.dtype]) + _text(8, name) + _field(9, value.tobytes())


def _value_info_proto(name: str, shape: Sequence[Dimension]) -> bytes:
    dims = b"".join(
        _field(1, _text(2, dimension) if isinstance(dimension, str) else _varint_field(1, dimension))
        for dimension in shape
    )
    return _text(1, name) + _field(2, _field(1, _varint_field(1, 1) + _field(2, dims)))


def _text(number: int, text: str) -> bytes:
    """A field with a text."""
    return _field(number, text.encode())


def _field(number: int, body: bytes) -> bytes:
    """A field with bytes or a message (wire type 2)."""
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _varint_field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    """A number as a varint. Negative numbers take ten bytes, as in two's complement of 64 bits."""
    value &= (1 << 64) - 1
    varint = bytearray()
    while value > 127:
        varint.append(value & 127 | 128)
        value >>= 7
    varint.append(value)
    return bytes(varint)


Array = npt.NDArray[np.float32]


class OnnxModel:
    """A loaded model with one output.

    Raises ValueError if onnxruntime cannot run it, PluginError if onnxruntime is missing.
    """

    def __init__(self, content: bytes) -> None:
        try:
            import onnxruntime
            from onnxruntime.capi import onnxruntime_pybind11_state as states
        except ImportError as error:
            raise PluginError(
                "openWakeWord's fast path and its ONNX models need onnxruntime, which is not installed",
                remedy=f"Install it: {pip_install('openwakeword')}",
            ) from error
        options = onnxruntime.SessionOptions()
        # An evaluation runs several processes; more threads here would take their cores.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # Errors only.
        failures = (states.Fail, states.InvalidProtobuf, states.InvalidGraph, states.InvalidArgument,
                    states.NotImplemented, states.RuntimeException, states.NoModel, states.NoSuchFile)  # fmt: skip
        try:
            self._session: Any = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except failures as error:
            raise ValueError(f"onnxruntime rejects it: {_first_line(error)}") from error
        self._failures = failures
        self.inputs: dict[str, tuple[int | str | None, ...]] = {
            tensor.name: tuple(tensor.shape) for tensor in self._session.get_inputs()
        }
        self.element_types: tuple[str, ...] = tuple(tensor.type for tensor in self._session.get_inputs())
        self.outputs = len(self._session.get_outputs())

    def __call__(self, **inputs: Array) -> Array:
        """The first output. Raises ValueError if the model fails on these shapes."""
        try:
            output: Array = self._session.run(None, inputs)[0]
        except self._failures as error:
            raise ValueError(f"onnxruntime failed while running it: {_first_line(error)}") from error
        return output


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__


Constants = dict[str, npt.NDArray[np.generic]]


_ARITHMETIC = {Op.ADD: "Add", Op.SUB: "Sub", Op.MUL: "Mul", Op.DIV: "Div"}
_EQUIVALENTS = {Op.RELU: "Relu", Op.SQRT: "Sqrt", Op.GREATER: "Greater", Op.GREATER_EQUAL: "GreaterOrEqual"}
_SAME, _RELU = 0, 1  # TFLite's Padding and ActivationFunctionType.


def embedding_model(graph: Graph) -> bytes:
    """mels [1, 1, time, mels] → embeddings [1, size, windows, 1]: one window every 8 frames, for any time.

    Tensors are [1, time, mel, channel] in the graph and [1, channel, time, mel] here. Convolutions must not be padded
    in time, so that an output depends only on its window. Raises ValueError for an unknown operator.
    """
    return _EmbeddingTranslation(graph).model()


class _EmbeddingTranslation:
    """Translates the operators of the embedding model one by one. Tensors are identified by their index in the graph;
    `_names` has their names in the ONNX model."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: list[bytes] = []
        self._constants: Constants = {}
        self._names = {graph.inputs[0]: "mels"}
        self._paddings: dict[int, int] = {}
        self._pending_floors: dict[int, str] = {}
        """Floors that are not yet applied to a tensor: its pool comes first, since it has fewer values after that."""

    def model(self) -> bytes:
        for operator in self._graph.operators:
            self._translate(operator)
        size = self._graph.tensors[self._graph.outputs[0]].shape[3]
        bands = self._graph.tensors[self._graph.inputs[0]].shape[2]
        output = self._names[self._graph.outputs[0]]
        return model_proto(
            self._nodes, self._constants, {"mels": (1, 1, "time", bands)}, {output: (1, size, "windows", 1)}
        )

    def _translate(self, operator: Operator) -> None:
        """Adds the nodes of an operator. Raises ValueError for an unsupported one."""
        source, result = operator.inputs[0], operator.outputs[0]
        name = f"t{result}"
        match operator.code:
            case Op.PAD:
                self._pad(operator)
                return
            case Op.CONV_2D:
                self._convolve(operator, name)
            case Op.LEAKY_RELU:
                self._nodes.append(node("LeakyRelu", [self._names[source]], name, alpha=operator.number(0)))
            case Op.MAXIMUM:
                self._constants[f"low{result}"] = self._constant(operator.inputs[1])
                self._pending_floors[result] = f"low{result}"
                name = self._names[source]
            case Op.MAX_POOL_2D:
                size = operator.integer(4), operator.integer(3)
                strides = operator.integer(2), operator.integer(1)
                shape = self._graph.tensors[source].shape
                if size != strides or (operator.byte(0) == _SAME and (size[0] != 1 or shape[2] % size[1])):
                    raise ValueError("it has a pool that overlaps or is padded")
                self._nodes.append(node("MaxPool", [self._names[source]], name, kernel_shape=size, strides=strides))
                if source in self._pending_floors:
                    self._pending_floors[result] = self._pending_floors[source]
            case _:
                raise ValueError(f"its operator {operator.code} is not supported")
        self._names[result] = name

    def _pad(self, operator: Operator) -> None:
        """Notes a padding with zeros beside the mel bands, which the following convolution adds itself."""
        widths = self._constant(operator.inputs[1]).reshape(-1, 2).tolist()
        left, right = widths[2]
        if left != right or any(any(pair) for position, pair in enumerate(widths) if position != 2):
            raise ValueError("it has padding other than beside the mel bands")
        self._names[operator.outputs[0]] = self._names[operator.inputs[0]]
        self._paddings[operator.outputs[0]] = left

    def _convolve(self, operator: Operator, name: str) -> None:
        """Adds a convolution, after a floor that is still pending."""
        source, weights, bias = operator.inputs
        if source in self._pending_floors:
            self._nodes.append(node("Clip", [self._names[source], self._pending_floors.pop(source)], f"{name}c"))
            self._names[source] = f"{name}c"
        kernel = self._constant(weights).transpose(0, 3, 1, 2)
        rows, columns = kernel.shape[2:]
        if (operator.integer(1), operator.integer(2), operator.byte(3)) != (1, 1, 0):
            raise ValueError("it has a convolution with a stride")
        padding = self._paddings.get(source, 0)
        if operator.byte(0) == _SAME:
            if rows != 1 or not columns % 2:
                raise ValueError("it is padded in time")
            padding += columns // 2
        self._constants[f"{name}w"] = np.ascontiguousarray(kernel)
        self._constants[f"{name}b"] = self._constant(bias)
        inputs = [self._names[source], f"{name}w", f"{name}b"]
        self._nodes.append(node("Conv", inputs, name, kernel_shape=(rows, columns), pads=(0, padding, 0, padding)))

    def _constant(self, index: int) -> npt.NDArray[np.generic]:
        value = self._graph.tensors[index].values
        if value is None:
            raise ValueError("it computes its weights")
        return value


def classifier_model(graphs: Sequence[Graph]) -> bytes:
    """windows [batch, W, size] → scores [batch, 1]. An `If` becomes a choice, per window, between both its results."""
    main = graphs[0]
    writer = _ClassifierTranslation(graphs)
    names = writer.write(main, {main.inputs[0]: "windows"}, "m")
    shape = main.tensors[main.inputs[0]].shape
    return model_proto(
        writer.nodes, writer.constants, {"windows": ("batch", *shape[1:])}, {names[main.outputs[0]]: ("batch", 1)}
    )


class _ClassifierTranslation:
    """Translates graphs of a classifier into nodes and constants of one ONNX graph."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self._graphs = graphs
        self.nodes: list[bytes] = []
        self.constants: Constants = {}

    def write(self, graph: Graph, input_names: Mapping[int, str], prefix: str) -> dict[int, str]:
        """Names of all tensors of a graph, given the names of its inputs."""
        names = dict(input_names)
        for index, tensor in enumerate(graph.tensors):
            if tensor.values is not None and index not in names:
                names[index] = f"{prefix}{index}"
                if tensor.values.dtype == np.float32:
                    self.constants[names[index]] = tensor.values
        for operator in graph.operators:
            self._translate_operator(graph, operator, names, prefix)
        return names

    def _translate_operator(self, graph: Graph, operator: Operator, names: dict[int, str], prefix: str) -> None:
        """Adds the nodes of an operator, and the name of its result to `names`.

        Raises ValueError for an unsupported one.
        """
        result = operator.outputs[0]
        name = f"{prefix}{result}"
        inputs = [names[index] for index in operator.inputs if index >= 0 and index in names]
        match operator.code:
            case Op.ADD | Op.SUB | Op.MUL | Op.DIV:
                self._activate(_ARITHMETIC[Op(operator.code)], inputs, name, operator.byte(0))
            case Op.FULLY_CONNECTED:
                self._activate("Gemm", inputs, name, operator.byte(0), transB=1)
            case Op.LOGISTIC:
                # onnxruntime's Sigmoid is exact to 1e-7 only, too little for scores of 1e-5.
                self.constants["one"] = np.array(1, np.float32)
                self._add("Neg", inputs, f"{name}n")
                self._add("Exp", [f"{name}n"], f"{name}e")
                self._add("Add", [f"{name}e", "one"], f"{name}d")
                self._add("Reciprocal", [f"{name}d"], name)
            case Op.RELU | Op.SQRT | Op.GREATER | Op.GREATER_EQUAL:
                self._add(_EQUIVALENTS[Op(operator.code)], inputs, name)
            case Op.RSQRT:
                self._add("Sqrt", inputs, f"{name}s")
                self._add("Reciprocal", [f"{name}s"], name)
            case Op.MEAN:
                axes = graph.tensors[operator.inputs[1]].values
                if axes is None or axes.reshape(-1).tolist() not in ([1], [-1]):
                    raise ValueError("it has a mean over something other than a window's values")
                self._add("ReduceMean", inputs[:1], name, axes=(1,), keepdims=operator.byte(0))
            case Op.RESHAPE:
                if len(graph.tensors[result].shape) == 2:
                    self._add("Flatten", inputs[:1], name, axis=1)
                elif graph.tensors[result].shape == ():
                    names[result] = inputs[0]  # One window's condition; with many windows it stays a column.
                    return
                else:
                    raise ValueError("it reshapes its values in an unsupported way")
            case Op.IF:
                self._choose(operator, names, prefix)
                return
            case _:
                raise ValueError(f"its operator {operator.code} is not supported")
        names[result] = name

    def _choose(self, operator: Operator, names: dict[int, str], prefix: str) -> None:
        """Translates an `If`: computes both branches, and chooses between their results for each window."""
        branches = []
        for field in (0, 1):
            number = operator.integer(field)
            if not 0 < number < len(self._graphs):
                raise ValueError("it has an `If` without branches")
            graph = self._graphs[number]
            input_names = {inner: names[outer] for inner, outer in zip(graph.inputs, operator.inputs[1:], strict=True)}
            output_names = self.write(graph, input_names, f"{prefix}{operator.outputs[0]}_{field}_")
            branches.append(output_names[graph.outputs[0]])
        name = f"{prefix}{operator.outputs[0]}"
        self._add("Where", [names[operator.inputs[0]], *branches], name)
        names[operator.outputs[0]] = name

    def _activate(self, operator: str, inputs: Sequence[str], name: str, activation: int, **attributes: int) -> None:
        if activation not in (0, _RELU):
            raise ValueError(f"its activation {activation} is not supported")
        inner = f"{name}r" if activation else name
        self._add(operator, inputs, inner, **attributes)
        if activation:
            self._add("Relu", [inner], name)

    def _add(self, operator: str, inputs: Sequence[str], name: str, **attributes: int | Sequence[int]) -> None:
        self.nodes.append(node(operator, inputs, name, **attributes))
