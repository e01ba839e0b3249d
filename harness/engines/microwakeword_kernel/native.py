"""The C kernel, loaded with ctypes from beside this module, which owns the memory."""

from __future__ import annotations

import ctypes
import functools
import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.engines.microwakeword_kernel.network import KernelNetwork, Layer, LayerKind, UnsupportedModel
from harness.engines.offline_loading import load_kernel

VERSION = 1
"""VH_VERSION in vh_kernel.h, which has the sizes below, too."""
WIDTH = 40
"""Number of mel channels of the package's features."""
WINDOW_SAMPLES = 480
"""30 ms."""
HOP_SAMPLES = 160
"""10 ms."""
_LEVELS = 2048
"""More than any logged feature: 64 ln 2^32 = 1420."""
_ALIGNED = 64
"""Bytes of an AVX-512 register."""
_MAX_STRIDE = 32
_PROCESSOR = {0: "plain", 1: "AVX2", 2: "AVX-512"}


class _CLayer(ctypes.Structure):
    """`vh_layer` in vh_kernel.h."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in ("kind", "taps", "stride", "history", "inputs", "outputs")),
        *((name, ctypes.c_int32) for name in ("zero", "low", "high", "reserved")),
        *((name, ctypes.c_void_p) for name in ("weights", "bias", "multiplier", "half", "away", "shift", "start")),
    ]  # fmt: skip


class _CNetwork(ctypes.Structure):
    """`vh_network` in vh_kernel.h."""

    _fields_ = [
        *((name, ctypes.c_int32) for name in ("layers", "stride", "width", "input_zero")),
        *((name, ctypes.c_void_p) for name in ("layer", "answer", "quantised")),
    ]  # fmt: skip


@functools.cache
def library() -> ctypes.CDLL:
    """The kernel. Raises NoKernel if it was not built."""
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
    """Runs a network on sound: answers (the model's raw uint8 or int8 output) to any number of samples.

    Raises UnsupportedModel for a network whose input does not fit the kernel's features.
    """

    def __init__(self, network: KernelNetwork) -> None:
        self._kernel = library()
        if network.width != WIDTH or not 1 <= network.stride <= _MAX_STRIDE:
            raise UnsupportedModel(f"an input of {network.stride} frames of {network.width} features")
        self._network = network
        self._kept_memory: list[object] = []  # arrays to which the kernel has pointers
        self._network_address = _pack(network, self._kept_memory)
        self._features = _Memory(self._kernel.vh_features_bytes())
        self._state = _Memory(self._kernel.vh_network_bytes(self._network_address))
        self._kernel.vh_features_begin(self._features.address)
        self._rest: npt.NDArray[np.int16] = np.zeros(0, np.int16)
        self.restart()

    def restart(self) -> None:
        """Clears the state; takes microseconds."""
        self._kernel.vh_features_restart(self._features.address)
        self._kernel.vh_network_restart(self._network_address, self._state.address)
        self._rest = self._rest[:0]

    def feed(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.uint8]:
        """Takes samples, shape (n,), at 16 kHz, any n. Returns the answers, shape (m,), as bytes."""
        sound = np.ascontiguousarray(samples, np.int16)
        answers = []
        if len(self._rest):
            # First the frames that begin in the remainder, then the sound itself, which is not copied.
            rest_frames = math.ceil(len(self._rest) / HOP_SAMPLES)
            head = rest_frames * HOP_SAMPLES - len(self._rest)
            first_samples = np.concatenate([self._rest, sound[: head + WINDOW_SAMPLES - HOP_SAMPLES]])
            if head + WINDOW_SAMPLES - HOP_SAMPLES > len(sound):
                rest_frames, head = _window_count(first_samples), 0
                sound = first_samples[rest_frames * HOP_SAMPLES :]
            answers.append(self._listen(first_samples, rest_frames))
            sound = sound[head:]
        frames = _window_count(sound)
        answers.append(self._listen(sound, frames))
        self._rest = sound[frames * HOP_SAMPLES :].copy()
        return answers[0] if len(answers) == 1 else np.concatenate(answers)

    def _listen(self, samples: npt.NDArray[np.int16], frames: int) -> npt.NDArray[np.uint8]:
        """The answers that the next frames complete. samples: begin with the first frame's window."""
        answers = np.empty(frames // self._network.stride + 1, np.uint8)
        count = 0
        if frames:
            count = self._kernel.vh_listen(
                self._network_address, self._features.address, self._state.address,
                samples.ctypes.data, frames, answers.ctypes.data,
            )  # fmt: skip
        return answers[:count]

    def features(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.uint16]:
        """Logged features (n, 40) of the whole windows of a sound that begins here. The noise estimate continues."""
        sound = np.ascontiguousarray(samples, np.int16)
        frames = _window_count(sound)
        features = np.empty((frames, WIDTH), np.uint16)
        self._kernel.vh_features_run(self._features.address, sound.ctypes.data, frames, features.ctypes.data)
        return features

    def answer(self, features: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
        """Answers (n,) of the network to quantised features, shape (n, stride, 40), that follow the previous ones."""
        steps = np.ascontiguousarray(features, np.int8)
        answers = np.empty(len(steps), np.uint8)
        self._kernel.vh_network_run(
            self._network_address, self._state.address, steps.ctypes.data, len(steps), answers.ctypes.data
        )
        return answers


def _window_count(samples: npt.NDArray[np.int16]) -> int:
    """Number of whole windows in a sound, one every hop."""
    return max(0, (len(samples) - WINDOW_SAMPLES) // HOP_SAMPLES + 1)


class _Memory:
    """Aligned memory for the kernel."""

    def __init__(self, size: int) -> None:
        self._owner = np.zeros(size + _ALIGNED, np.uint8)
        self.address = (self._owner.ctypes.data + _ALIGNED - 1) // _ALIGNED * _ALIGNED


def _pack(network: KernelNetwork, memory: list[object]) -> int:
    """The address of a network in the kernel's form. memory: list to which all memory that it uses is added."""
    layers = (_CLayer * len(network.layers))(*(_pack_layer(layer, memory) for layer in network.layers))
    answer, levels = network.answer.copy(), quantised(network)
    first = ctypes.addressof(layers)
    c_network = _CNetwork(
        layers=len(layers),
        stride=network.stride,
        width=network.width,
        input_zero=network.input_zero,
        layer=first,
        answer=answer.ctypes.data,
        quantised=levels.ctypes.data,
    )
    memory += [c_network, layers, answer, levels]
    return ctypes.addressof(c_network)


def quantised(network: KernelNetwork) -> npt.NDArray[np.int8]:
    """The package's value for each logged feature, shape (2048,): as float32 × 0.0390625, scaled, rounded."""
    features = (np.arange(_LEVELS, dtype=np.float32) * np.float32(0.0390625)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.round(features / network.input_scale + network.input_zero).astype(np.int8)


def _pack_layer(layer: Layer, memory: list[object]) -> _CLayer:
    """A layer in the kernel's form, with channels padded to whole registers. memory: as in `_pack`."""
    inputs = layer.weights.shape[1]
    padded = _round_up(inputs, 8 if layer.stride > 1 else 16)
    outputs = padded if layer.kind is LayerKind.DEPTHWISE else _round_up(len(layer.multiplier), 16)
    weight_padding = [(0, 0), (0, padded - inputs)]
    if layer.kind is LayerKind.DENSE:
        weight_padding.append((0, outputs - len(layer.multiplier)))
    output_padding = (0, outputs - len(layer.multiplier))
    mantissa, exponent = _fixed_point(layer.multiplier)
    shift = np.pad(-exponent, output_padding)
    half = np.where(shift > 0, 1 << np.maximum(shift - 1, 0), 0)
    away = np.where((shift > 0) & np.pad(layer.away, output_padding), -1, 0)
    arrays = [
        np.pad(layer.weights, weight_padding).astype(np.float32), np.pad(layer.bias, output_padding).astype(np.float32),
        *(values.astype(np.int32) for values in (np.pad(mantissa, output_padding), half, away, shift)),
        np.pad(layer.start, ((0, 0), (0, padded - inputs))).astype(np.float32),
    ]  # fmt: skip
    arrays = [np.ascontiguousarray(array) for array in arrays]
    memory.append(arrays)
    return _CLayer(int(layer.kind), layer.taps, layer.stride, len(layer.start), padded, outputs, layer.zero, layer.low,
                   layer.high, 0, *(array.ctypes.data for array in arrays))  # fmt: skip


def _fixed_point(multiplier: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The multipliers as mantissas of 31 bits and exponents, rounded as the library does."""
    fraction, exponent = np.frexp(multiplier)
    mantissa = np.floor(fraction * 2.0**31 + 0.5).astype(np.int64)
    overflows = mantissa == 1 << 31
    mantissa, exponent = np.where(overflows, mantissa // 2, mantissa), exponent.astype(np.int64) + overflows
    if (exponent > 0).any() or (exponent < -30).any():
        raise UnsupportedModel("scales that are too large or too small")
    return mantissa, exponent


def _round_up(count: int, multiple: int) -> int:
    return (count + multiple - 1) // multiple * multiple
