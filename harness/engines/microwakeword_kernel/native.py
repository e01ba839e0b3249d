"""The C kernel: found beside this module when it was built, called through ctypes, its memory owned here."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.engines.kernel_library import load_kernel
from harness.engines.microwakeword_kernel.network import Kind, Layer, Network, NotKnown

VERSION = 1
WIDTH = 40
WINDOW_SAMPLES = 480
HOP_SAMPLES = 160
_LEVELS = 2048
_ALIGNED = 64
_MOST_STRIDE = 32
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
    """The kernel; NoKernel when it was not built."""
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
    """Which of its forms the kernel runs here: plain, AVX2 or AVX-512."""
    return _PROCESSOR[library().vh_level()]


class Listener:
    """A network that hears sound: answers (the model's raw uint8 or int8 output) to any number of samples."""

    def __init__(self, network: Network) -> None:
        self._kernel = library()
        if network.width != WIDTH or not 1 <= network.stride <= _MOST_STRIDE:
            raise NotKnown(f"an input of {network.stride} frames of {network.width} features")
        self._network = network
        self._packed = _packed(network)
        self._features = _Memory(self._kernel.vh_features_bytes())
        self._state = _Memory(self._kernel.vh_network_bytes(self._packed.address))
        self._kernel.vh_features_begin(self._features.address)
        self._rest: npt.NDArray[np.int16] = np.zeros(0, np.int16)
        self.restart()

    def restart(self) -> None:
        """Nothing heard before counts; takes microseconds."""
        self._kernel.vh_features_restart(self._features.address)
        self._kernel.vh_network_restart(self._packed.address, self._state.address)
        self._rest = self._rest[:0]

    def hear(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.uint8]:
        """Shape (n,) at 16 kHz, any n; the answers, shape (m,), as bytes."""
        heard = np.ascontiguousarray(samples, np.int16)
        found = []
        if len(self._rest):
            # Frames that begin in what was left over; then the sound itself, which is not copied.
            begun = -(-len(self._rest) // HOP_SAMPLES)
            head = begun * HOP_SAMPLES - len(self._rest)
            joined = np.concatenate([self._rest, heard[: head + WINDOW_SAMPLES - HOP_SAMPLES]])
            if head + WINDOW_SAMPLES - HOP_SAMPLES > len(heard):
                begun, head = _frames(joined), 0
                heard = joined[begun * HOP_SAMPLES :]
            found.append(self._listen(joined, begun))
            heard = heard[head:]
        frames = _frames(heard)
        found.append(self._listen(heard, frames))
        self._rest = heard[frames * HOP_SAMPLES :].copy()
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _listen(self, samples: npt.NDArray[np.int16], frames: int) -> npt.NDArray[np.uint8]:
        answers = np.empty(frames // self._network.stride + 1, np.uint8)
        count = 0
        if frames:
            count = self._kernel.vh_listen(
                self._packed.address, self._features.address, self._state.address,
                samples.ctypes.data, frames, answers.ctypes.data,
            )  # fmt: skip
        return answers[:count]

    def features(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.uint16]:
        """Logged features (n, 40) of whole windows of sound that begins here; the noise estimate goes on."""
        heard = np.ascontiguousarray(samples, np.int16)
        frames = _frames(heard)
        found = np.empty((frames, WIDTH), np.uint16)
        self._kernel.vh_features_run(self._features.address, heard.ctypes.data, frames, found.ctypes.data)
        return found

    def answer(self, features: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
        """Answers (n,) of the network to quantised features, shape (n, stride, 40), after those before."""
        given = np.ascontiguousarray(features, np.int8)
        answers = np.empty(len(given), np.uint8)
        self._kernel.vh_network_run(
            self._packed.address, self._state.address, given.ctypes.data, len(given), answers.ctypes.data
        )
        return answers


def _frames(samples: npt.NDArray[np.int16]) -> int:
    return max(0, (len(samples) - WINDOW_SAMPLES) // HOP_SAMPLES + 1)


class _Memory:
    """Aligned memory for the kernel."""

    def __init__(self, size: int) -> None:
        self._owner = np.zeros(size + _ALIGNED, np.uint8)
        self.address = (self._owner.ctypes.data + _ALIGNED - 1) // _ALIGNED * _ALIGNED


@dataclass(frozen=True, slots=True, eq=False)
class _Packed:
    """A network in the kernel's own form. kept: what its pointers point to."""

    network: _CNetwork
    kept: tuple[object, ...]

    @property
    def address(self) -> int:
        return ctypes.addressof(self.network)


def _packed(network: Network) -> _Packed:
    kept: list[object] = []
    layers = (_CLayer * len(network.layers))(*(_packed_layer(layer, kept) for layer in network.layers))
    answer, levels = network.answer.copy(), quantised(network)
    first = ctypes.addressof(layers)
    packed = _CNetwork(len(layers), network.stride, network.width, network.input_zero,
                       first, answer.ctypes.data, levels.ctypes.data)  # fmt: skip
    return _Packed(packed, (*kept, layers, answer, levels))


def quantised(network: Network) -> npt.NDArray[np.int8]:
    """What the package makes of each logged feature, shape (2048,): as float32 × 0.0390625, scaled, rounded."""
    features = (np.arange(_LEVELS, dtype=np.float32) * np.float32(0.0390625)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.round(features / network.input_scale + network.input_zero).astype(np.int8)


def _packed_layer(layer: Layer, kept: list[object]) -> _CLayer:
    inputs = layer.weights.shape[1]
    padded = _up(inputs, 8 if layer.stride > 1 else 16)
    outputs = padded if layer.kind is Kind.DEPTHWISE else _up(len(layer.multiplier), 16)
    extra = [(0, 0), (0, padded - inputs)]
    if layer.kind is Kind.DENSE:
        extra.append((0, outputs - len(layer.multiplier)))
    spare = (0, outputs - len(layer.multiplier))
    mantissa, exponent = _fixed(layer.multiplier)
    shift = np.pad(-exponent, spare)
    half = np.where(shift > 0, 1 << np.maximum(shift - 1, 0), 0)
    away = np.where((shift > 0) & np.pad(layer.away, spare), -1, 0)
    arrays = [
        np.pad(layer.weights, extra).astype(np.float32), np.pad(layer.bias, spare).astype(np.float32),
        *(values.astype(np.int32) for values in (np.pad(mantissa, spare), half, away, shift)),
        np.pad(layer.start, ((0, 0), (0, padded - inputs))).astype(np.float32),
    ]  # fmt: skip
    arrays = [np.ascontiguousarray(array) for array in arrays]
    kept.append(arrays)
    return _CLayer(int(layer.kind), layer.taps, layer.stride, len(layer.start), padded, outputs, layer.zero, layer.low,
                   layer.high, 0, *(array.ctypes.data for array in arrays))  # fmt: skip


def _fixed(multiplier: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Mantissa of 31 bits and exponent, as the library rounds them."""
    fraction, exponent = np.frexp(multiplier)
    mantissa = np.floor(fraction * 2.0**31 + 0.5).astype(np.int64)
    over = mantissa == 1 << 31
    mantissa, exponent = np.where(over, mantissa // 2, mantissa), exponent.astype(np.int64) + over
    if (exponent > 0).any() or (exponent < -30).any():
        raise NotKnown("scales that are too large or too small")
    return mantissa, exponent


def _up(count: int, to: int) -> int:
    return (count + to - 1) // to * to
