"""The layers that the kernel can run, read from the graphs of a model file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from harness.engines.tflite_file import Graph, Op, Operator, Tensor
from harness.model.frozen import frozen

_INT8, _UINT8 = 9, 3
"""TFLite's TensorType."""
_RELU = 1
"""TFLite's ActivationFunctionType."""
_MAX_EXACT = 1 << 24
"""Whole numbers below this are exact in a float32."""
_VECTOR = 8
"""Number of channels that the library computes, and rounds, together."""


class UnsupportedModel(ValueError):
    """The fast path does not support something in the model; the package's interpreter does."""


class LayerKind(IntEnum):
    """The kernel's kinds of layers. ANSWER: the last one, with one output."""

    DENSE = 0
    DEPTHWISE = 1
    ANSWER = 2


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One convolution.

    - stride: number of frames by which it advances.
    - weights: integers, (taps, inputs, outputs) for DENSE, else (taps, inputs).
    - start: the frames before the first one, relative to their zero point, shape (taps − stride, inputs).
    - multiplier: exact factor by which a sum is scaled, shape (outputs,).
    - away: where the shift after it rounds halves away from zero, not up.
    - zero: zero point of the output. low, high: its limits, relative to that.
    """

    kind: LayerKind
    stride: int
    weights: npt.NDArray[np.int64]
    bias: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    multiplier: npt.NDArray[np.float64]
    away: npt.NDArray[np.bool_]
    zero: int
    low: int
    high: int

    @property
    def taps(self) -> int:
        return int(self.weights.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class KernelNetwork:
    """A network for the kernel.

    - stride: frames of features per step. width: number of features in a frame.
    - input_scale, input_zero: quantisation of the features.
    - answer: the model's output for each value of the last layer (int8 + 128), shape (256,).
    - output_scale, output_zero: quantisation of that output.
    """

    stride: int
    width: int
    input_scale: float
    input_zero: int
    layers: tuple[Layer, ...]
    answer: npt.NDArray[np.uint8]
    output_scale: float
    output_zero: int


@frozen
class _Flow:
    """The last `frames` frames of the input of layer `into`, with its channels from `first` on."""

    into: int
    frames: int
    first: int
    width: int


@dataclass(frozen=True, slots=True, eq=False)
class _KernelPart:
    """A depthwise convolution over some of a layer's channels."""

    flow: _Flow
    weights: npt.NDArray[np.int64]
    bias: npt.NDArray[np.int64]
    multiplier: npt.NDArray[np.float64]


def network_of(graphs: tuple[Graph, ...]) -> KernelNetwork:
    """The chain of layers in a model's graphs. Raises UnsupportedModel, with the reason, if it is not such a chain."""
    # A scale that is not a number is found when its layer is made.
    with np.errstate(all="ignore"):
        return _GraphReader(graphs).read()


class _GraphReader:
    """Follows the operators of a graph in their order, and turns them into layers. Its dictionaries say what each
    tensor of the graph holds, by its index."""

    def __init__(self, graphs: tuple[Graph, ...]) -> None:
        self._graph = graphs[0]
        self._initial_states = _initial_states(graphs[1:], self._graph)
        self._flows: dict[int, _Flow] = {}
        self._parts: dict[int, _KernelPart] = {}
        self._variables: dict[int, int] = {}
        self._states: dict[int, npt.NDArray[np.int64]] = {}
        self._layers: list[Layer] = []
        self._last: Tensor | None = None
        self._answers: dict[int, npt.NDArray[np.uint8]] = {}
        self._handles = [op.outputs[0] for op in self._graph.operators if op.code == Op.VAR_HANDLE]

    def read(self) -> KernelNetwork:
        """Reads the whole graph. Raises UnsupportedModel, with the reason, if it is not a chain of layers."""
        graph = self._graph
        has_one_input_and_output = len(graph.inputs) == 1 and len(graph.outputs) == 1
        ends = (*graph.inputs, *graph.outputs)
        if not has_one_input_and_output or not all(0 <= number < len(graph.tensors) for number in ends):
            raise UnsupportedModel("the model does not have one input and one output")
        input_tensor, output_tensor = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
        if (
            input_tensor.type != _INT8
            or len(input_tensor.shape) != 3
            or input_tensor.shape[0] != 1
            or output_tensor.type not in (_INT8, _UINT8)
        ):
            raise UnsupportedModel(f"the input is {input_tensor.shape}, of type {input_tensor.type}")
        self._flows[graph.inputs[0]] = _Flow(0, input_tensor.shape[1], 0, input_tensor.shape[2])
        steps: dict[int, Callable[[Operator], None]] = {
            Op.RESHAPE: self._reshape, Op.READ_VARIABLE: self._read_variable, Op.CONCATENATION: self._concatenate,
            Op.STRIDED_SLICE: self._slice, Op.SPLIT: self._split, Op.SPLIT_V: self._split, Op.CONV_2D: self._dense,
            Op.ASSIGN_VARIABLE: self._assign, Op.DEPTHWISE_CONV_2D: self._depthwise, Op.LOGISTIC: self._logistic,
            Op.FULLY_CONNECTED: self._connect, Op.QUANTIZE: self._requantise,
        }  # fmt: skip
        for operator in graph.operators:
            if operator.code in (Op.CALL_ONCE, Op.VAR_HANDLE):
                continue
            if operator.code not in steps:
                raise UnsupportedModel(f"operator {operator.code}")
            try:
                steps[operator.code](operator)
            except UnsupportedModel:
                raise
            except (KeyError, IndexError, ValueError) as error:
                raise UnsupportedModel(
                    f"operator {operator.code} has an input from outside the chain: {error}"
                ) from None
        if graph.outputs[0] not in self._answers or self._layers[-1].kind is not LayerKind.ANSWER:
            raise UnsupportedModel("the chain does not end in the model's output")
        return KernelNetwork(
            stride=input_tensor.shape[1],
            width=input_tensor.shape[2],
            input_scale=float(input_tensor.scales[0]),
            input_zero=input_tensor.zero,
            layers=tuple(self._layers),
            answer=self._answers[graph.outputs[0]],
            output_scale=float(output_tensor.scales[0]),
            output_zero=output_tensor.zero,
        )

    def _reshape(self, op: Operator) -> None:
        """Frames stay frames."""
        if op.inputs[0] in self._flows:
            self._flows[op.outputs[0]] = self._flows[op.inputs[0]]
        else:
            raise UnsupportedModel("a reshape of something other than frames")

    def _read_variable(self, op: Operator) -> None:
        self._variables[op.outputs[0]] = op.inputs[0]

    def _concatenate(self, op: Operator) -> None:
        """Either puts the frames of a state before new ones (axis 1), or joins the channels of parts of a layer."""
        rank = len(self._graph.tensors[op.outputs[0]].shape)
        axis = op.integer(0) % rank
        if axis == 1 and len(op.inputs) == 2 and op.inputs[0] in self._variables:
            flow, handle = self._flows[op.inputs[1]], self._variables[op.inputs[0]]
            self._demand_same_scale(op.inputs[0], op.inputs[1], op.outputs[0])
            state = self._initial_states.get(self._handles.index(handle))
            shape = self._graph.tensors[op.inputs[0]].shape
            if state is None or state.shape != (shape[1], flow.width) or flow.first or flow.into in self._states:
                raise UnsupportedModel("a state that is not the last frames of a layer's input")
            self._states[flow.into] = state - self._graph.tensors[op.inputs[0]].zero
            self._flows[op.outputs[0]] = replace(flow, frames=flow.frames + shape[1])
        elif axis == rank - 1 and all(number in self._parts for number in op.inputs):
            self._demand_same_scale(*op.inputs, op.outputs[0])
            self._add_depthwise_parts([self._parts[number] for number in op.inputs], op.outputs[0])
        else:
            raise UnsupportedModel("a concatenation of something other than frames or channels")

    def _slice(self, op: Operator) -> None:
        """Takes the last frames. The masks allow only that."""
        flow = self._flows[op.inputs[0]]
        begin, _, strides = (self._constant(number) for number in op.inputs[1:4])
        masks = [op.integer(field) for field in range(5)]
        if masks[0] != 0b1101 or masks[1] != 0b1111 or any(masks[2:]) or strides.tolist() != [1, 1, 1, 1]:
            raise UnsupportedModel(f"a slice with masks {masks}")
        begin_frame = int(begin[1])
        frames = -begin_frame if begin_frame < 0 else flow.frames - begin_frame
        if not 0 < frames <= flow.frames:
            raise UnsupportedModel(f"a slice of {frames} out of {flow.frames} frames")
        self._flows[op.outputs[0]] = replace(flow, frames=frames)

    def _assign(self, op: Operator) -> None:
        """Checks that a state is set to the last frames of its layer's input, as the kernel does by itself."""
        flow = self._flows[op.inputs[1]]
        state = self._initial_states[self._handles.index(op.inputs[0])]
        if flow.frames != len(state) or flow.into not in self._states or flow.width != state.shape[1]:
            raise UnsupportedModel("a state that is set to something other than its last frames")

    def _split(self, op: Operator) -> None:
        """Splits frames by their channels."""
        source, axis = (op.inputs[0], op.inputs[2]) if op.code == Op.SPLIT_V else (op.inputs[1], op.inputs[0])
        flow = self._flows[source]
        if int(self._constant(axis).reshape(-1)[0]) % 4 != 3:
            raise UnsupportedModel("a split of something other than channels")
        first = flow.first
        for output in op.outputs:
            width = self._graph.tensors[output].shape[3]
            self._flows[output] = replace(flow, first=first, width=width)
            first += width
        if first != flow.first + flow.width:
            raise UnsupportedModel("a split that leaves channels out")

    def _dense(self, op: Operator) -> None:
        """Adds a convolution over all frames of its input."""
        flow, weights, bias, multiplier = self._read_weights(op)
        outputs, taps, columns, inputs = weights.shape
        stride = 1 if flow.into else self._graph.tensors[self._graph.inputs[0]].shape[1]
        gives_one_frame = taps == flow.frames and columns == 1 and inputs == flow.width and not flow.first
        is_dilated = op.integer(4, 1) != 1 or op.integer(5, 1) != 1
        if not gives_one_frame or is_dilated:
            raise UnsupportedModel(f"a convolution of {taps} taps over {flow.frames} frames")
        self._add_layer(
            op.outputs[0],
            kind=LayerKind.DENSE,
            flow=flow,
            stride=stride,
            weights=weights[:, :, 0, :].transpose(1, 2, 0),
            bias=bias,
            multiplier=multiplier,
            away=np.ones(outputs, np.bool_),
            activation=op.byte(3),
        )

    def _depthwise(self, op: Operator) -> None:
        """Adds a depthwise layer, or remembers a part of one until its channels are concatenated."""
        flow, weights, bias, multiplier = self._read_weights(op)
        _, taps, columns, outputs = weights.shape
        is_dilated = op.integer(5, 1) != 1 or op.integer(6, 1) != 1
        if taps != flow.frames or columns != 1 or outputs != flow.width or op.integer(3) != 1 or is_dilated:
            raise UnsupportedModel(f"a depthwise convolution of {taps} taps over {flow.frames} frames")
        if op.byte(4):
            raise UnsupportedModel("a depthwise convolution with an activation")
        part = _KernelPart(flow, weights[0, :, 0, :], bias, multiplier)
        if flow.first == 0 and self._is_whole_width(flow):
            self._add_depthwise_parts([part], op.outputs[0])
        else:
            self._parts[op.outputs[0]] = part

    def _is_whole_width(self, flow: _Flow) -> bool:
        """Whether a flow has all channels of the layer before it."""
        previous = self._layers[flow.into - 1] if flow.into else None
        return previous is not None and flow.width == len(previous.multiplier)

    def _add_depthwise_parts(self, parts: list[_KernelPart], output: int) -> None:
        """Adds depthwise convolutions over neighbouring channels as one layer. Shorter ones get leading zeros."""
        width = 0
        for part in parts:
            if part.flow.first != width or part.flow.into != parts[0].flow.into:
                raise UnsupportedModel("channels that are out of order")
            width += part.flow.width
        flow = replace(parts[0].flow, frames=max(part.flow.frames for part in parts), first=0, width=width)
        if not self._is_whole_width(flow):
            raise UnsupportedModel("a layer that leaves channels out")
        weights = [np.pad(part.weights, ((flow.frames - len(part.weights), 0), (0, 0))) for part in parts]
        bias = np.concatenate([part.bias for part in parts])
        multiplier = np.concatenate([part.multiplier for part in parts])
        # The library takes eight channels at a time, rounding up. Its reference code rounds the rest.
        away = np.concatenate([np.arange(len(part.bias)) >= len(part.bias) // _VECTOR * _VECTOR for part in parts])
        self._add_layer(
            output,
            kind=LayerKind.DEPTHWISE,
            flow=flow,
            stride=1,
            weights=np.concatenate(weights, axis=1),
            bias=bias,
            multiplier=multiplier,
            away=away,
            activation=0,
        )

    def _connect(self, op: Operator) -> None:
        """Adds the layer with one output."""
        flow = self._flows[op.inputs[0]]
        input_tensor, output_tensor = self._graph.tensors[op.inputs[0]], self._graph.tensors[op.outputs[0]]
        weights = self._constant(op.inputs[1])
        scales = self._graph.tensors[op.inputs[1]].scales
        if weights.shape != (1, flow.frames * flow.width) or flow.first or not self._is_whole_width(flow):
            raise UnsupportedModel(f"a dense layer of {weights.shape} over {flow.frames} frames")
        if len(scales) != 1 or self._graph.tensors[op.inputs[1]].zero:
            raise UnsupportedModel("a dense layer with a scale per channel")
        # The library multiplies these two scales as float32 before it continues in float64.
        multiplier = (input_tensor.scales[:1] * scales).astype(np.float64) / output_tensor.scales.astype(np.float64)
        self._add_layer(
            op.outputs[0],
            kind=LayerKind.ANSWER,
            flow=flow,
            stride=1,
            weights=weights.reshape(flow.frames, flow.width),
            bias=self._bias(op, 1),
            multiplier=multiplier,
            away=np.zeros(1, np.bool_),
            activation=op.byte(0),
        )
        self._last = output_tensor

    def _logistic(self, op: Operator) -> None:
        """Computes the model's output for each value of the last layer, as the library does: in float32."""
        output_tensor = self._graph.tensors[op.outputs[0]]
        if self._last is not self._graph.tensors[op.inputs[0]] or output_tensor.type != _INT8:
            raise UnsupportedModel("a logistic function of something other than the output")
        levels = self._last.scales[0] * (np.arange(-128, 128) - self._last.zero).astype(np.float32)
        raw = np.float32(1) / (np.float32(1) + np.exp(-levels)) * (np.float32(1) / output_tensor.scales[0])
        self._answers[op.outputs[0]] = _clipped_bytes(np.floor(raw + np.float32(0.5)) + output_tensor.zero, -128, 127)

    def _requantise(self, op: Operator) -> None:
        """Turns int8 outputs into uint8 ones of the same scale."""
        input_tensor, output_tensor = self._graph.tensors[op.inputs[0]], self._graph.tensors[op.outputs[0]]
        if (
            input_tensor.type != _INT8
            or output_tensor.type != _UINT8
            or input_tensor.scales[0] != output_tensor.scales[0]
        ):
            raise UnsupportedModel("a change of scale")
        values = self._answers[op.inputs[0]].view(np.int8).astype(np.float32)
        self._answers[op.outputs[0]] = _clipped_bytes(values - input_tensor.zero + output_tensor.zero, 0, 255)

    def _read_weights(
        self, op: Operator
    ) -> tuple[_Flow, npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        flow = self._flows[op.inputs[0]]
        tensors = self._graph.tensors
        input_tensor, weights, output_tensor = tensors[op.inputs[0]], tensors[op.inputs[1]], tensors[op.outputs[0]]
        outputs = output_tensor.shape[3]
        if (
            weights.type != _INT8
            or len(weights.scales) != outputs
            or output_tensor.type != _INT8
            or output_tensor.shape[1:3] != (1, 1)
        ):
            raise UnsupportedModel("a convolution that is not int8 with a scale per channel and one frame per step")
        multiplier = (
            input_tensor.scales.astype(np.float64)
            * weights.scales.astype(np.float64)
            / output_tensor.scales.astype(np.float64)
        )
        return flow, self._constant(op.inputs[1]), self._bias(op, outputs), multiplier

    def _add_layer(
        self, output: int, kind: LayerKind, flow: _Flow, stride: int, weights: npt.NDArray[np.int64],
        bias: npt.NDArray[np.int64], multiplier: npt.NDArray[np.float64], away: npt.NDArray[np.bool_],
        activation: int,
    ) -> None:  # fmt: skip
        """Adds a layer to the chain. output: the tensor of its result.

        Raises UnsupportedModel if the kernel cannot compute it exactly.
        """
        if flow.into != len(self._layers) or activation not in (0, _RELU):
            raise UnsupportedModel(f"a branch, or activation {activation}")
        history = flow.frames - stride
        state = self._states.get(flow.into, np.zeros((0, flow.width), np.int64))
        if not 0 <= history <= len(state):
            raise UnsupportedModel(f"{history} out of {len(state)} frames of history")
        output_tensor = self._graph.tensors[output]
        low = max(-128, output_tensor.zero) if activation == _RELU else -128
        if multiplier.shape != away.shape or bias.shape != away.shape or not np.isfinite(multiplier).all():
            raise UnsupportedModel("a bias or a scale that is not one per channel")
        sums = np.abs(weights).sum(axis=(0, 1) if kind is LayerKind.DENSE else 0).max() * 255 + np.abs(bias).max()
        if sums >= _MAX_EXACT or (multiplier >= 1).any() or (multiplier <= 0).any():
            raise UnsupportedModel("sums or scales that are too large")
        layer = Layer(
            kind=kind,
            stride=stride,
            weights=weights,
            bias=bias,
            start=state[len(state) - history :],
            multiplier=multiplier,
            away=away,
            zero=output_tensor.zero,
            low=low - output_tensor.zero,
            high=127 - output_tensor.zero,
        )
        self._layers.append(layer)
        self._flows[output] = _Flow(len(self._layers), 1, 0, len(multiplier))

    def _constant(self, number: int) -> npt.NDArray[np.int64]:
        values = self._graph.tensors[number].values
        if values is None:
            raise UnsupportedModel("weights that are not constant")
        return values.astype(np.int64)

    def _bias(self, op: Operator, outputs: int) -> npt.NDArray[np.int64]:
        has_bias = len(op.inputs) > 2 and op.inputs[2] >= 0
        return self._constant(op.inputs[2]) if has_bias else np.zeros(outputs, np.int64)

    def _demand_same_scale(self, *numbers: int) -> None:
        tensors = [self._graph.tensors[number] for number in numbers]
        if len({(float(tensor.scales[0]), tensor.zero) for tensor in tensors}) != 1:
            raise UnsupportedModel("a concatenation of frames with different scales")


def _initial_states(graphs: tuple[Graph, ...], main: Graph) -> dict[int, npt.NDArray[np.int64]]:
    """Initial content of the states, shape (frames, width) each, by the number of their handle."""
    numbers = {name: number for number, name in enumerate(_handle_names(main).values())}
    states: dict[int, npt.NDArray[np.int64]] = {}
    for graph in graphs:
        names = _handle_names(graph)
        for op in graph.operators:
            if op.code == Op.ASSIGN_VARIABLE and names.get(op.inputs[0]) in numbers:
                tensor = graph.tensors[op.inputs[1]]
                if tensor.values is None or len(tensor.shape) != 4 or tensor.shape[0] != 1 or tensor.shape[2] != 1:
                    raise UnsupportedModel("a state that begins with something other than constant frames")
                states[numbers[names[op.inputs[0]]]] = tensor.values.astype(np.int64)[0, :, 0, :]
    return states


def _handle_names(graph: Graph) -> dict[int, str]:
    """Name of each state, by the index of its handle. Graphs share states by these names."""
    handles = [op for op in graph.operators if op.code == Op.VAR_HANDLE]
    return {op.outputs[0]: op.options.text(1) if op.options else "" for op in handles}


def _clipped_bytes(values: npt.NDArray[np.float32], low: int, high: int) -> npt.NDArray[np.uint8]:
    return np.clip(values, low, high).astype(np.int16).astype(np.uint8)
