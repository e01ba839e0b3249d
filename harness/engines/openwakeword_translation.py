"""openWakeWord's TensorFlow Lite graphs as ONNX models, so that one thread runs them over many windows at once.

Tensors of the embedding are [1, time, mel, channel] there and [1, channel, time, mel] here. ValueError for an operator
or an option that these graphs do not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from harness.engines.openwakeword_onnx import model, node
from harness.engines.tflite_file import Graph, Op, Operator

Constants = dict[str, npt.NDArray[np.generic]]


_ARITHMETIC = {Op.ADD: "Add", Op.SUB: "Sub", Op.MUL: "Mul", Op.DIV: "Div"}
_SAME, _RELU = 0, 1


def embedding_model(graph: Graph) -> bytes:
    """mels [1, 1, time, mels] → embeddings [1, size, windows, 1]: one window each 8 frames, whatever the time is.

    Only convolutions without padding in time are taken, so that an output is the one of its window alone.
    """
    written = _Convolutions(graph)
    return written.model()


class _Convolutions:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: list[bytes] = []
        self._constants: Constants = {}
        self._names = {graph.inputs[0]: "mels"}
        self._padded: dict[int, int] = {}
        self._least: dict[int, str] = {}
        """Floors that are still to be put under a tensor: under its pool instead, which has fewer values."""

    def model(self) -> bytes:
        for operator in self._graph.operators:
            self._write(operator)
        size = self._graph.tensors[self._graph.outputs[0]].shape[3]
        bands = self._graph.tensors[self._graph.inputs[0]].shape[2]
        output = self._names[self._graph.outputs[0]]
        return model(self._nodes, self._constants, {"mels": (1, 1, "time", bands)}, {output: (1, size, "windows", 1)})

    def _write(self, operator: Operator) -> None:
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
                self._least[result] = f"low{result}"
                name = self._names[source]
            case Op.MAX_POOL_2D:
                size = operator.whole(4), operator.whole(3)
                strides = operator.whole(2), operator.whole(1)
                shape = self._graph.tensors[source].shape
                if size != strides or (operator.byte(0) == _SAME and (size[0] != 1 or shape[2] % size[1])):
                    raise ValueError("it has a pool that overlaps or is padded")
                self._nodes.append(node("MaxPool", [self._names[source]], name, kernel_shape=size, strides=strides))
                if source in self._least:
                    self._least[result] = self._least[source]
            case _:
                raise ValueError(f"its operator {operator.code} is not known")
        self._names[result] = name

    def _pad(self, operator: Operator) -> None:
        """Zeros beside the mel bands, which the convolution that follows adds itself."""
        widths = self._constant(operator.inputs[1]).reshape(-1, 2).tolist()
        before, after = widths[2]
        if before != after or any(any(pair) for place, pair in enumerate(widths) if place != 2):
            raise ValueError("it is padded elsewhere than beside the mel bands")
        self._names[operator.outputs[0]] = self._names[operator.inputs[0]]
        self._padded[operator.outputs[0]] = before

    def _convolve(self, operator: Operator, name: str) -> None:
        source, weights, bias = operator.inputs
        if source in self._least:
            self._nodes.append(node("Clip", [self._names[source], self._least.pop(source)], f"{name}c"))
            self._names[source] = f"{name}c"
        kernel = self._constant(weights).transpose(0, 3, 1, 2)
        high, wide = kernel.shape[2:]
        if (operator.whole(1), operator.whole(2), operator.byte(3)) != (1, 1, 0):
            raise ValueError("it has a convolution with a stride")
        beside = self._padded.get(source, 0)
        if operator.byte(0) == _SAME:
            if high != 1 or not wide % 2:
                raise ValueError("it is padded in time")
            beside += wide // 2
        self._constants[f"{name}w"] = np.ascontiguousarray(kernel)
        self._constants[f"{name}b"] = self._constant(bias)
        inputs = [self._names[source], f"{name}w", f"{name}b"]
        self._nodes.append(node("Conv", inputs, name, kernel_shape=(high, wide), pads=(0, beside, 0, beside)))

    def _constant(self, index: int) -> npt.NDArray[np.generic]:
        value = self._graph.tensors[index].values
        if value is None:
            raise ValueError("it works its weights out")
        return value


def classifier_model(graphs: Sequence[Graph]) -> bytes:
    """windows [batch, W, size] → scores [batch, 1]. An `If` becomes a choice, window by window, of both its results."""
    main = graphs[0]
    written = _Layers(graphs)
    names = written.write(main, {main.inputs[0]: "windows"}, "m")
    shape = main.tensors[main.inputs[0]].shape
    return model(
        written.nodes, written.constants, {"windows": ("batch", *shape[1:])}, {names[main.outputs[0]]: ("batch", 1)}
    )


class _Layers:
    def __init__(self, graphs: Sequence[Graph]) -> None:
        self._graphs = graphs
        self.nodes: list[bytes] = []
        self.constants: Constants = {}

    def write(self, graph: Graph, given: Mapping[int, str], prefix: str) -> dict[int, str]:
        """Names of all the tensors of a graph, whose inputs have the names that are given."""
        names = dict(given)
        for index, tensor in enumerate(graph.tensors):
            if tensor.values is not None and index not in names:
                names[index] = f"{prefix}{index}"
                if tensor.values.dtype == np.float32:
                    self.constants[names[index]] = tensor.values
        for operator in graph.operators:
            self._operator(graph, operator, names, prefix)
        return names

    def _operator(self, graph: Graph, operator: Operator, names: dict[int, str], prefix: str) -> None:
        result = operator.outputs[0]
        name = f"{prefix}{result}"
        inputs = [names[index] for index in operator.inputs if index >= 0 and index in names]
        match operator.code:
            case Op.ADD | Op.SUB | Op.MUL | Op.DIV:
                self._activated(_ARITHMETIC[Op(operator.code)], inputs, name, operator.byte(0))
            case Op.FULLY_CONNECTED:
                self._activated("Gemm", inputs, name, operator.byte(0), transB=1)
            case Op.LOGISTIC:
                # onnxruntime's Sigmoid is right to 1e-7, which is far off where scores are 1e-5.
                self.constants["one"] = np.array(1, np.float32)
                self._add("Neg", inputs, f"{name}n")
                self._add("Exp", [f"{name}n"], f"{name}e")
                self._add("Add", [f"{name}e", "one"], f"{name}d")
                self._add("Reciprocal", [f"{name}d"], name)
            case Op.RELU:
                self._add("Relu", inputs, name)
            case Op.SQRT:
                self._add("Sqrt", inputs, name)
            case Op.RSQRT:
                self._add("Sqrt", inputs, f"{name}s")
                self._add("Reciprocal", [f"{name}s"], name)
            case Op.MEAN:
                axes = graph.tensors[operator.inputs[1]].values
                if axes is None or axes.reshape(-1).tolist() not in ([1], [-1]):
                    raise ValueError("it has a mean over something else than a window's values")
                self._add("ReduceMean", inputs[:1], name, axes=(1,), keepdims=operator.byte(0))
            case Op.GREATER:
                self._add("Greater", inputs, name)
            case Op.GREATER_EQUAL:
                self._add("GreaterOrEqual", inputs, name)
            case Op.RESHAPE:
                if len(graph.tensors[result].shape) == 2:
                    self._add("Flatten", inputs[:1], name, axis=1)
                elif graph.tensors[result].shape == ():
                    names[result] = inputs[0]  # one window's condition: with many it stays a column
                    return
                else:
                    raise ValueError("it shapes its values in a way that is not known")
            case Op.IF:
                self._choose(operator, names, prefix)
                return
            case _:
                raise ValueError(f"its operator {operator.code} is not known")
        names[result] = name

    def _choose(self, operator: Operator, names: dict[int, str], prefix: str) -> None:
        branches = []
        for field in (0, 1):
            number = operator.whole(field)
            if not 0 < number < len(self._graphs):
                raise ValueError("it has a choice without branches")
            graph = self._graphs[number]
            given = {inner: names[outer] for inner, outer in zip(graph.inputs, operator.inputs[1:], strict=True)}
            inside = self.write(graph, given, f"{prefix}{operator.outputs[0]}_{field}_")
            branches.append(inside[graph.outputs[0]])
        name = f"{prefix}{operator.outputs[0]}"
        self._add("Where", [names[operator.inputs[0]], *branches], name)
        names[operator.outputs[0]] = name

    def _activated(self, operator: str, inputs: Sequence[str], name: str, activation: int, **more: int) -> None:
        if activation not in (0, _RELU):
            raise ValueError(f"its activation {activation} is not known")
        inner = f"{name}r" if activation else name
        self._add(operator, inputs, inner, **more)
        if activation:
            self._add("Relu", [inner], name)

    def _add(self, operator: str, inputs: Sequence[str], name: str, **attributes: int | Sequence[int]) -> None:
        self.nodes.append(node(operator, inputs, name, **attributes))
