"""The C kernel, loaded with ctypes from beside this module, which owns the memory."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.engines.offline_loading import load_kernel
from harness.engines.tflite_file import Graph, Op, Operator, Tensor
from harness.model.frozen import frozen

_INT8, _UINT8 = 9, 3  # TFLite's TensorType.
_RELU = 1  # TFLite's ActivationFunctionType.
_EXACT = 1 << 24
"""Whole numbers below this are exact in a float32."""
_VECTOR = 8  # Channels that the library computes, and rounds, together.


class UnsupportedModel(ValueError):
    """The fast path does not support something in the model; the package's interpreter does."""


class LayerKind(IntEnum):
    DENSE = 0
    DEPTHWISE = 1
    ANSWER = 2


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One convolution. weights: integers, (taps, inputs, outputs) for DENSE, else (taps, inputs).

    start: the frames before the first one, relative to their zero point, shape (taps − stride, inputs).
    multiplier: exact factor by which a sum is scaled, shape (outputs,).
    away: where the shift after it rounds halves away from zero, not up.
    zero: zero point of the output. low, high: its limits, relative to that.
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
    """A network for the kernel. stride: frames of features per step. answer: the model's output for each value of the
    last layer (int8 + 128), shape (256,)."""

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
    """The chain of layers in a model's graphs. UnsupportedModel, with the reason, if it is not such a chain."""
    # A scale that is not a number is found when its layer is made.
    with np.errstate(all="ignore"):
        return _GraphReader(graphs).read()


class _GraphReader:
    def __init__(self, graphs: tuple[Graph, ...]) -> None:
        self._graph = graphs[0]
        self._starts = _starts(graphs[1:], self._graph)
        self._flows: dict[int, _Flow] = {}
        self._parts: dict[int, _KernelPart] = {}
        self._variables: dict[int, int] = {}
        self._states: dict[int, npt.NDArray[np.int64]] = {}
        self._layers: list[Layer] = []
        self._last: Tensor | None = None
        self._answers: dict[int, npt.NDArray[np.uint8]] = {}
        self._handles = [op.outputs[0] for op in self._graph.operators if op.code == Op.VAR_HANDLE]

    def read(self) -> KernelNetwork:
        graph = self._graph
        ends = (*graph.inputs, *graph.outputs)
        if (
            len(graph.inputs) != 1
            or len(graph.outputs) != 1
            or not all(0 <= number < len(graph.tensors) for number in ends)
        ):
            raise UnsupportedModel("the model does not have one input and one output")
        entry, end = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
        if entry.type != _INT8 or len(entry.shape) != 3 or entry.shape[0] != 1 or end.type not in (_INT8, _UINT8):
            raise UnsupportedModel(f"the input is {entry.shape}, of type {entry.type}")
        self._flows[graph.inputs[0]] = _Flow(0, entry.shape[1], 0, entry.shape[2])
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
            stride=entry.shape[1],
            width=entry.shape[2],
            input_scale=float(entry.scales[0]),
            input_zero=entry.zero,
            layers=tuple(self._layers),
            answer=self._answers[graph.outputs[0]],
            output_scale=float(end.scales[0]),
            output_zero=end.zero,
        )

    def _reshape(self, op: Operator) -> None:
        if op.inputs[0] in self._flows:
            self._flows[op.outputs[0]] = self._flows[op.inputs[0]]
        else:
            raise UnsupportedModel("a reshape of something other than frames")

    def _read_variable(self, op: Operator) -> None:
        self._variables[op.outputs[0]] = op.inputs[0]

    def _concatenate(self, op: Operator) -> None:
        rank = len(self._graph.tensors[op.outputs[0]].shape)
        axis = op.integer(0) % rank
        if axis == 1 and len(op.inputs) == 2 and op.inputs[0] in self._variables:
            flow, handle = self._flows[op.inputs[1]], self._variables[op.inputs[0]]
            self._same_quantity(op.inputs[0], op.inputs[1], op.outputs[0])
            state = self._starts.get(self._handles.index(handle))
            shape = self._graph.tensors[op.inputs[0]].shape
            if state is None or state.shape != (shape[1], flow.width) or flow.first or flow.into in self._states:
                raise UnsupportedModel("a state that is not the last frames of a layer's input")
            self._states[flow.into] = state - self._graph.tensors[op.inputs[0]].zero
            self._flows[op.outputs[0]] = replace(flow, frames=flow.frames + shape[1])
        elif axis == rank - 1 and all(number in self._parts for number in op.inputs):
            self._same_quantity(*op.inputs, op.outputs[0])
            self._side_by_side([self._parts[number] for number in op.inputs], op.outputs[0])
        else:
            raise UnsupportedModel("a concatenation of something other than frames or channels")

    def _slice(self, op: Operator) -> None:
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
        flow = self._flows[op.inputs[1]]
        state = self._starts[self._handles.index(op.inputs[0])]
        if flow.frames != len(state) or flow.into not in self._states or flow.width != state.shape[1]:
            raise UnsupportedModel("a state that is set to something other than its last frames")

    def _split(self, op: Operator) -> None:
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
        flow, weights, bias, multiplier = self._read_weights(op)
        outputs, taps, columns, inputs = weights.shape
        stride = 1 if flow.into else self._graph.tensors[self._graph.inputs[0]].shape[1]
        one_frame = taps == flow.frames and columns == 1 and inputs == flow.width and not flow.first
        dilated = op.integer(4, 1) != 1 or op.integer(5, 1) != 1
        if not one_frame or dilated:
            raise UnsupportedModel(f"a convolution of {taps} taps over {flow.frames} frames")
        self._add(
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
        flow, weights, bias, multiplier = self._read_weights(op)
        _, taps, columns, outputs = weights.shape
        dilated = op.integer(5, 1) != 1 or op.integer(6, 1) != 1
        if taps != flow.frames or columns != 1 or outputs != flow.width or op.integer(3) != 1 or dilated:
            raise UnsupportedModel(f"a depthwise convolution of {taps} taps over {flow.frames} frames")
        if op.byte(4):
            raise UnsupportedModel("a depthwise convolution with an activation")
        part = _KernelPart(flow, weights[0, :, 0, :], bias, multiplier)
        if flow.first == 0 and self._whole_width(flow):
            self._side_by_side([part], op.outputs[0])
        else:
            self._parts[op.outputs[0]] = part

    def _whole_width(self, flow: _Flow) -> bool:
        previous = self._layers[flow.into - 1] if flow.into else None
        return previous is not None and flow.width == len(previous.multiplier)

    def _side_by_side(self, parts: list[_KernelPart], output: int) -> None:
        width = 0
        for part in parts:
            if part.flow.first != width or part.flow.into != parts[0].flow.into:
                raise UnsupportedModel("channels that are out of order")
            width += part.flow.width
        flow = replace(parts[0].flow, frames=max(part.flow.frames for part in parts), first=0, width=width)
        if not self._whole_width(flow):
            raise UnsupportedModel("a layer that leaves channels out")
        weights = [np.pad(part.weights, ((flow.frames - len(part.weights), 0), (0, 0))) for part in parts]
        bias, multiplier = (
            np.concatenate(arrays) for arrays in zip(*((p.bias, p.multiplier) for p in parts), strict=True)
        )
        # The library takes eight channels at a time, rounding up. Its reference code rounds the rest.
        away = np.concatenate([np.arange(len(p.bias)) >= len(p.bias) // _VECTOR * _VECTOR for p in parts])
        self._add(
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
        flow = self._flows[op.inputs[0]]
        entry, end = self._graph.tensors[op.inputs[0]], self._graph.tensors[op.outputs[0]]
        weights = self._constant(op.inputs[1])
        scales = self._graph.tensors[op.inputs[1]].scales
        if weights.shape != (1, flow.frames * flow.width) or flow.first or not self._whole_width(flow):
            raise UnsupportedModel(f"a dense layer of {weights.shape} over {flow.frames} frames")
        if len(scales) != 1 or self._graph.tensors[op.inputs[1]].zero:
            raise UnsupportedModel("a dense layer with a scale per channel")
        # The library multiplies these two scales as float32 before it continues in float64.
        multiplier = (entry.scales[:1] * scales).astype(np.float64) / end.scales.astype(np.float64)
        self._add(
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
        self._last = end

    def _logistic(self, op: Operator) -> None:
        end = self._graph.tensors[op.outputs[0]]
        if self._last is not self._graph.tensors[op.inputs[0]] or end.type != _INT8:
            raise UnsupportedModel("a logistic function of something other than the output")
        levels = self._last.scales[0] * (np.arange(-128, 128) - self._last.zero).astype(np.float32)
        raw = np.float32(1) / (np.float32(1) + np.exp(-levels)) * (np.float32(1) / end.scales[0])
        self._answers[op.outputs[0]] = _bytes(np.floor(raw + np.float32(0.5)) + end.zero, -128, 127)

    def _requantise(self, op: Operator) -> None:
        entry, end = self._graph.tensors[op.inputs[0]], self._graph.tensors[op.outputs[0]]
        if entry.type != _INT8 or end.type != _UINT8 or entry.scales[0] != end.scales[0]:
            raise UnsupportedModel("a change of scale")
        values = self._answers[op.inputs[0]].view(np.int8).astype(np.float32)
        self._answers[op.outputs[0]] = _bytes(values - entry.zero + end.zero, 0, 255)

    def _read_weights(
        self, op: Operator
    ) -> tuple[_Flow, npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        flow = self._flows[op.inputs[0]]
        tensors = self._graph.tensors
        entry, weights, end = tensors[op.inputs[0]], tensors[op.inputs[1]], tensors[op.outputs[0]]
        outputs = end.shape[3]
        if weights.type != _INT8 or len(weights.scales) != outputs or end.type != _INT8 or end.shape[1:3] != (1, 1):
            raise UnsupportedModel("a convolution that is not int8 with a scale per channel and one frame per step")
        multiplier = entry.scales.astype(np.float64) * weights.scales.astype(np.float64) / end.scales.astype(np.float64)
        return flow, self._constant(op.inputs[1]), self._bias(op, outputs), multiplier

    def _add(
        self, output: int, kind: LayerKind, flow: _Flow, stride: int, weights: npt.NDArray[np.int64],
        bias: npt.NDArray[np.int64], multiplier: npt.NDArray[np.float64], away: npt.NDArray[np.bool_],
        activation: int,
    ) -> None:  # fmt: skip
        if flow.into != len(self._layers) or activation not in (0, _RELU):
            raise UnsupportedModel(f"a branch, or activation {activation}")
        history = flow.frames - stride
        state = self._states.get(flow.into, np.zeros((0, flow.width), np.int64))
        if not 0 <= history <= len(state):
            raise UnsupportedModel(f"{history} out of {len(state)} frames of history")
        end = self._graph.tensors[output]
        low = max(-128, end.zero) if activation == _RELU else -128
        if multiplier.shape != away.shape or bias.shape != away.shape or not np.isfinite(multiplier).all():
            raise UnsupportedModel("a bias or a scale that is not one per channel")
        sums = np.abs(weights).sum(axis=(0, 1) if kind is LayerKind.DENSE else 0).max() * 255 + np.abs(bias).max()
        if sums >= _EXACT or (multiplier >= 1).any() or (multiplier <= 0).any():
            raise UnsupportedModel("sums or scales that are too large")
        layer = Layer(
            kind=kind,
            stride=stride,
            weights=weights,
            bias=bias,
            start=state[len(state) - history :],
            multiplier=multiplier,
            away=away,
            zero=end.zero,
            low=low - end.zero,
            high=127 - end.zero,
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

    def _same_quantity(self, *numbers: int) -> None:
        if (
            len(
                {(float(self._graph.tensors[number].scales[0]), self._graph.tensors[number].zero) for number in numbers}
            )
            != 1
        ):
            raise UnsupportedModel("a concatenation of frames with different scales")


def _starts(graphs: tuple[Graph, ...], main: Graph) -> dict[int, npt.NDArray[np.int64]]:
    """Initial content of the states, shape (frames, width) each, by the number of their handle."""
    numbers = {name: number for number, name in enumerate(_names(main).values())}
    states: dict[int, npt.NDArray[np.int64]] = {}
    for graph in graphs:
        names = _names(graph)
        for op in graph.operators:
            if op.code == Op.ASSIGN_VARIABLE and names.get(op.inputs[0]) in numbers:
                tensor = graph.tensors[op.inputs[1]]
                if tensor.values is None or len(tensor.shape) != 4 or tensor.shape[0] != 1 or tensor.shape[2] != 1:
                    raise UnsupportedModel("a state that begins with something other than constant frames")
                states[numbers[names[op.inputs[0]]]] = tensor.values.astype(np.int64)[0, :, 0, :]
    return states


def _names(graph: Graph) -> dict[int, str]:
    handles = [op for op in graph.operators if op.code == Op.VAR_HANDLE]
    return {op.outputs[0]: op.options.text(1) if op.options else "" for op in handles}


def _bytes(values: npt.NDArray[np.float32], low: int, high: int) -> npt.NDArray[np.uint8]:
    return np.clip(values, low, high).astype(np.int16).astype(np.uint8)


VERSION = 1  # VH_VERSION in vh_kernel.h, which has the sizes below, too.
WIDTH = 40  # Mel channels of the package's features.
WINDOW_SAMPLES = 480  # 30 ms.
HOP_SAMPLES = 160  # 10 ms.
_LEVELS = 2048  # More than any logged feature: 64 ln 2^32 = 1420.
_ALIGNED = 64  # Bytes of an AVX-512 register.
_MAX_STRIDE = 32
_PROCESSOR = {0: "plain", 1: "AVX2", 2: "AVX-512"}


class _CLayer(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("kind", "taps", "stride", "history", "inputs", "outputs")),
        *((name, ctypes.c_int32) for name in ("zero", "low", "high", "reserved")),
        *((name, ctypes.c_void_p) for name in ("weights", "bias", "multiplier", "half", "away", "shift", "start")),
    ]  # fmt: skip


class _CNetwork(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int32) for name in ("layers", "stride", "width", "input_zero")),
        *((name, ctypes.c_void_p) for name in ("layer", "answer", "quantised")),
    ]  # fmt: skip


@functools.cache
def library() -> ctypes.CDLL:
    """The kernel; NoKernel if it was not built."""
    kernel = load_kernel(Path(__file__).parent, VERSION)
    pointer, count = ctypes.c_void_p, ctypes.c_long
    kernel.vh_features_bytes.restype = kernel.vh_network_bytes.restype = ctypes.c_size_t
    kernel.vh_listen.restype = count
    kernel.vh_network_bytes.argtypes = [pointer]
    kernel.vh_features_begin.argtypes = kernel.vh_features_restart.argtypes = [pointer]
    kernel.vh_features_run.argtypes = [pointer, pointer, count, pointer]
    kernel.vh_network_restart.argtypes = [pointer, pointer]
    kernel.vh_network_run.argtypes = [pointer, pointer, pointer, count, pointer]
    kernel.vh_listen.argtypes = [pointer, pointer, pointer, pointer, count, pointer]
    return kernel


def processor() -> str:
    """The form that the kernel runs here: plain, AVX2 or AVX-512."""
    return _PROCESSOR[library().vh_level()]


class Listener:
    """Runs a network on sound: answers (the model's raw uint8 or int8 output) to any number of samples."""

    def __init__(self, network: KernelNetwork) -> None:
        self._kernel = library()
        if network.width != WIDTH or not 1 <= network.stride <= _MAX_STRIDE:
            raise UnsupportedModel(f"an input of {network.stride} frames of {network.width} features")
        self._network = network
        self._kept: list[object] = []
        self._packed = _pack(network, self._kept)
        self._features = _Memory(self._kernel.vh_features_bytes())
        self._state = _Memory(self._kernel.vh_network_bytes(self._packed))
        self._kernel.vh_features_begin(self._features.address)
        self._rest: npt.NDArray[np.int16] = np.zeros(0, np.int16)
        self.restart()

    def restart(self) -> None:
        """Clears the state; takes microseconds."""
        self._kernel.vh_features_restart(self._features.address)
        self._kernel.vh_network_restart(self._packed, self._state.address)
        self._rest = self._rest[:0]

    def hear(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.uint8]:
        """Takes samples, shape (n,), at 16 kHz, any n. Returns the answers, shape (m,), as bytes."""
        sound = np.ascontiguousarray(samples, np.int16)
        answers = []
        if len(self._rest):
            # First the frames that begin in the remainder, then the sound itself, which is not copied.
            rest_frames = -(-len(self._rest) // HOP_SAMPLES)
            head = rest_frames * HOP_SAMPLES - len(self._rest)
            first_samples = np.concatenate([self._rest, sound[: head + WINDOW_SAMPLES - HOP_SAMPLES]])
            if head + WINDOW_SAMPLES - HOP_SAMPLES > len(sound):
                rest_frames, head = _frames(first_samples), 0
                sound = first_samples[rest_frames * HOP_SAMPLES :]
            answers.append(self._listen(first_samples, rest_frames))
            sound = sound[head:]
        frames = _frames(sound)
        answers.append(self._listen(sound, frames))
        self._rest = sound[frames * HOP_SAMPLES :].copy()
        return answers[0] if len(answers) == 1 else np.concatenate(answers)

    def _listen(self, samples: npt.NDArray[np.int16], frames: int) -> npt.NDArray[np.uint8]:
        answers = np.empty(frames // self._network.stride + 1, np.uint8)
        count = 0
        if frames:
            count = self._kernel.vh_listen(
                self._packed, self._features.address, self._state.address,
                samples.ctypes.data, frames, answers.ctypes.data,
            )  # fmt: skip
        return answers[:count]

    def features(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.uint16]:
        """Logged features (n, 40) of the whole windows of a sound that begins here. The noise estimate continues."""
        sound = np.ascontiguousarray(samples, np.int16)
        frames = _frames(sound)
        features = np.empty((frames, WIDTH), np.uint16)
        self._kernel.vh_features_run(self._features.address, sound.ctypes.data, frames, features.ctypes.data)
        return features

    def answer(self, features: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
        """Answers (n,) of the network to quantised features, shape (n, stride, 40), that follow the previous ones."""
        steps = np.ascontiguousarray(features, np.int8)
        answers = np.empty(len(steps), np.uint8)
        self._kernel.vh_network_run(
            self._packed, self._state.address, steps.ctypes.data, len(steps), answers.ctypes.data
        )
        return answers


def _frames(samples: npt.NDArray[np.int16]) -> int:
    return max(0, (len(samples) - WINDOW_SAMPLES) // HOP_SAMPLES + 1)


class _Memory:
    """Aligned memory for the kernel."""

    def __init__(self, size: int) -> None:
        self._owner = np.zeros(size + _ALIGNED, np.uint8)
        self.address = (self._owner.ctypes.data + _ALIGNED - 1) // _ALIGNED * _ALIGNED


def _pack(network: KernelNetwork, memory: list[object]) -> int:
    """The address of a network in the kernel's form. memory: list to which all memory that it uses is added."""
    layers = (_CLayer * len(network.layers))(*(_packed_layer(layer, memory) for layer in network.layers))
    answer, levels = network.answer.copy(), quantised(network)
    first = ctypes.addressof(layers)
    packed = _CNetwork(
        layers=len(layers),
        stride=network.stride,
        width=network.width,
        input_zero=network.input_zero,
        layer=first,
        answer=answer.ctypes.data,
        quantised=levels.ctypes.data,
    )
    memory += [packed, layers, answer, levels]
    return ctypes.addressof(packed)


def quantised(network: KernelNetwork) -> npt.NDArray[np.int8]:
    """The package's value for each logged feature, shape (2048,): as float32 × 0.0390625, scaled, rounded."""
    features = (np.arange(_LEVELS, dtype=np.float32) * np.float32(0.0390625)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.round(features / network.input_scale + network.input_zero).astype(np.int8)


def _packed_layer(layer: Layer, memory: list[object]) -> _CLayer:
    inputs = layer.weights.shape[1]
    padded = _up(inputs, 8 if layer.stride > 1 else 16)
    outputs = padded if layer.kind is LayerKind.DEPTHWISE else _up(len(layer.multiplier), 16)
    extra = [(0, 0), (0, padded - inputs)]
    if layer.kind is LayerKind.DENSE:
        extra.append((0, outputs - len(layer.multiplier)))
    spare = (0, outputs - len(layer.multiplier))
    mantissa, exponent = _fix_point(layer.multiplier)
    shift = np.pad(-exponent, spare)
    half = np.where(shift > 0, 1 << np.maximum(shift - 1, 0), 0)
    away = np.where((shift > 0) & np.pad(layer.away, spare), -1, 0)
    arrays = [
        np.pad(layer.weights, extra).astype(np.float32), np.pad(layer.bias, spare).astype(np.float32),
        *(values.astype(np.int32) for values in (np.pad(mantissa, spare), half, away, shift)),
        np.pad(layer.start, ((0, 0), (0, padded - inputs))).astype(np.float32),
    ]  # fmt: skip
    arrays = [np.ascontiguousarray(array) for array in arrays]
    memory.append(arrays)
    return _CLayer(int(layer.kind), layer.taps, layer.stride, len(layer.start), padded, outputs, layer.zero, layer.low,
                   layer.high, 0, *(array.ctypes.data for array in arrays))  # fmt: skip


def _fix_point(multiplier: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The multipliers as mantissas of 31 bits and exponents, rounded as the library does."""
    fraction, exponent = np.frexp(multiplier)
    mantissa = np.floor(fraction * 2.0**31 + 0.5).astype(np.int64)
    overflows = mantissa == 1 << 31
    mantissa, exponent = np.where(overflows, mantissa // 2, mantissa), exponent.astype(np.int64) + overflows
    if (exponent > 0).any() or (exponent < -30).any():
        raise UnsupportedModel("scales that are too large or too small")
    return mantissa, exponent


def _up(count: int, multiple: int) -> int:
    return (count + multiple - 1) // multiple * multiple
