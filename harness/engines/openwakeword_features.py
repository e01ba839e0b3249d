"""openWakeWord's speech features over long stretches at once: log mel frames, and embeddings of 76 of them.

The package asks its mel model for 1760 samples each 1280 (8 frames of 160), and its embedding model for 76 frames each
8: the same sums again and again. Here each frame is worked out once, as a discrete Fourier transform of the bins that a
mel band has, with the model's own weights folded about the middle of their window; and the embedding's convolutions,
which have no padding in time, run over a stretch. What the mel model does to each call of its own stays: no value is
more than 80 dB below the loudest of the call's 8 frames. A clamp over a file instead changes what digital silence
sounds like.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harness.engines.openwakeword_kernel.native import KernelEmbedding
from harness.engines.openwakeword_onnx import Array, OnnxModel, model, node
from harness.engines.openwakeword_translation import embedding_model
from harness.engines.tflite_file import Graph, Op, read_model

STEP_SAMPLES = 1280
"""From one score to the next, 80 ms."""
CALL_SAMPLES = 1760
"""What the package asks its mel model for at a time."""
FRAMES_A_STEP = 8
EMBEDDING_FRAMES = 76
KEPT_FRAMES = EMBEDDING_FRAMES - FRAMES_A_STEP
"""Frames of an embedding that the one before has as well."""
_HOP_SAMPLES = 160
_EMBEDDING_LAG_FRAMES = 4
"""The package's first embedding waits for its tenth call, which leaves four frames over: they are always there."""


class Features:
    """Mel frames and embeddings of the package's two feature models; ValueError when they are not those we know.

    kernel: embeddings by the C kernel (NoKernel without it), or by onnxruntime, which takes half as long again.
    """

    def __init__(self, mel_file: bytes, embedding_file: bytes, *, kernel: bool) -> None:
        self._mels = _MelFrames(read_model(mel_file)[0])
        graph = read_model(embedding_file)[0]
        translated = embedding_model(graph)
        self._embedding: KernelEmbedding | OnnxEmbedding
        self._embedding = KernelEmbedding(graph) if kernel else OnnxEmbedding(translated)
        self.silent_frames = self._mels(np.zeros(10 * STEP_SAMPLES + CALL_SAMPLES, np.float32), 11)
        """Frames of digital silence, more than an embedding needs, shape (88, mels)."""
        self.silent_embedding = self.embeddings(self.silent_frames[:EMBEDDING_FRAMES])
        """Their embedding, shape (1, size)."""

    def frames(self, samples: Array, steps: int) -> Array:
        """Frames of so many calls, shape (8 · steps, mels). samples: shape (1280 · steps + 480,), as 16-bit values."""
        return self._mels(samples, steps)

    def embeddings(self, frames: Array) -> Array:
        """Embeddings of 76 frames each 8, shape (windows, size). frames: shape (68 + 8 · windows, mels)."""
        return self._embedding(frames)


class OnnxEmbedding:
    """Embeddings by onnxruntime."""

    def __init__(self, translated: bytes) -> None:
        self._model = OnnxModel(translated)

    def __call__(self, frames: Array) -> Array:
        """Shape (rows, mels) → (embeddings, size)."""
        found = self._model(mels=frames[np.newaxis, np.newaxis])
        return np.ascontiguousarray(found[0, :, :, 0].T)


class Tail:
    """What is carried from one stretch of a sound to the next: the frames that the next embeddings begin with.

    The package fills its buffer with 8 s of zeros first, so a sound begins in the midst of silence.
    """

    def __init__(self, features: Features) -> None:
        self._features = features
        self._frames = features.silent_frames[: KEPT_FRAMES + _EMBEDDING_LAG_FRAMES]

    def embeddings(self, samples: Array, steps: int) -> Array:
        """The embeddings that so many more calls of the package would give, shape (steps, size)."""
        frames = np.concatenate([self._frames, self._features.frames(samples, steps)])
        self._frames = frames[FRAMES_A_STEP * steps :]
        return self._features.embeddings(frames[: KEPT_FRAMES + FRAMES_A_STEP * steps])


class _MelFrames:
    def __init__(self, graph: Graph) -> None:
        waves, bands, least, scale, range_db = _constants(graph)
        middle = waves[0].shape[1] // 2
        cosine, sine = _even_and_odd(waves, middle)
        used = np.flatnonzero(bands.any(axis=1))
        taps = np.flatnonzero(np.abs(cosine).max(0) + np.abs(sine).max(0))[-1] + 1
        self._middle, self._taps = middle, int(taps)
        constants: dict[str, npt.NDArray[np.generic]] = {
            "cosine": np.ascontiguousarray(cosine[used, :taps].T),
            "sine": np.ascontiguousarray(sine[used, :taps].T),
            "bands": np.ascontiguousarray(bands[used]),
            "least": least, "range": range_db, "ten": np.array(10, np.float32), "two": np.array(2, np.float32),
            "calls": np.array([-1, FRAMES_A_STEP * bands.shape[1]]), "frames": np.array([-1, bands.shape[1]]),
        }  # fmt: skip
        nodes = [
            node("MatMul", ["even", "cosine"], "real"),
            node("MatMul", ["odd", "sine"], "imaginary"),
            node("Mul", ["real", "real"], "real2"),
            node("Mul", ["imaginary", "imaginary"], "imaginary2"),
            node("Add", ["imaginary2", "real2"], "power"),
            node("MatMul", ["power", "bands"], "energy"),
            node("Clip", ["energy", "least"], "floored"),
            node("Log", ["floored"], "log0"),
        ]
        for number, factor in enumerate(scale):
            constants[f"scale{number}"] = factor
            nodes.append(node("Mul", [f"log{number}", f"scale{number}"], f"log{number + 1}"))
        nodes += [
            node("Reshape", [f"log{len(scale)}", "calls"], "decibels"),
            node("ReduceMax", ["decibels"], "loudest", axes=(1,), keepdims=1),
            node("Sub", ["loudest", "range"], "lowest"),
            node("Max", ["decibels", "lowest"], "clamped"),
            node("Div", ["clamped", "ten"], "tenth"),
            node("Add", ["tenth", "two"], "shifted"),
            node("Reshape", ["shifted", "frames"], "mels"),
        ]
        inputs = {"even": ("frames", self._taps), "odd": ("frames", self._taps)}
        self._model = OnnxModel(model(nodes, constants, inputs, {"mels": ("frames", bands.shape[1])}))

    def __call__(self, samples: Array, steps: int) -> Array:
        shape = (FRAMES_A_STEP * steps, self._taps)
        size = samples.itemsize
        after = np.lib.stride_tricks.as_strided(
            samples[self._middle :], shape, (_HOP_SAMPLES * size, size), writeable=False
        )
        before = np.lib.stride_tricks.as_strided(
            samples[self._middle :], shape, (_HOP_SAMPLES * size, -size), writeable=False
        )
        return self._model(even=after + before, odd=after - before)


def _even_and_odd(waves: Sequence[Array], middle: int) -> tuple[Array, Array]:
    """The two transforms' weights from the middle on, shape (bins, middle), for sums and differences of samples that
    lie alike on both sides of it. ValueError when they are no such transforms."""
    halves: dict[int, Array] = {}
    for wave in waves:
        right, left = wave[:, middle + 1 :], wave[:, middle - 1 : 0 : -1]
        sign = 1 if np.abs(right - left).max() < np.abs(right + left).max() else -1
        if np.abs(right - sign * left).max() > 1e-5 or np.abs(wave[:, 0]).max() > 0:
            raise ValueError("its transform is not even or odd about the middle of its window")
        own = wave[:, middle : middle + 1] / 2 if sign == 1 else np.zeros_like(wave[:, :1])
        halves[sign] = np.concatenate([own, (right + sign * left) / 2], axis=1, dtype=np.float32)
    if len(halves) != 2:
        raise ValueError("its transform has not an even and an odd part")
    return halves[1], halves[-1]


def _constants(graph: Graph) -> tuple[list[Array], Array, Array, list[Array], Array]:
    """(transforms, mel bands, least energy, factors after the logarithm, range in dB) of the mel model."""
    waves: list[Array] = []
    found: dict[int, list[Array]] = {Op.MUL: [], Op.MAXIMUM: [], Op.SUB: [], Op.BATCH_MATMUL: []}
    for operator in graph.operators:
        if operator.code == Op.CONV_2D:
            if (operator.whole(1), operator.whole(2)) not in ((_HOP_SAMPLES, 1), (1, _HOP_SAMPLES)):
                raise ValueError("its frames are not 160 samples apart")
            value = graph.tensors[operator.inputs[1]].values
            if value is not None:
                waves.append(np.asarray(value, np.float32)[:, 0, :, 0])
        elif operator.code in found:
            value = graph.tensors[operator.inputs[1]].values
            if value is not None:
                found[operator.code].append(np.asarray(value, np.float32))
    sizes = [len(found[code]) for code in (Op.BATCH_MATMUL, Op.MAXIMUM, Op.SUB)]
    if len(waves) != 2 or sizes != [1, 1, 1]:
        raise ValueError("it is not the mel model that this path knows")
    return waves, found[Op.BATCH_MATMUL][0], found[Op.MAXIMUM][0], found[Op.MUL], found[Op.SUB][0]
