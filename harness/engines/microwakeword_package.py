"""microWakeWord as its package runs it: the interpreter a step at a time, the features a frame at a time."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.engines.microwakeword_models import library_path, package

_FRAME = 160
_SCALE = 0.0390625
"""What the package multiplies its logged features by."""


class Streaming:
    """Probabilities of steps as the package computes them, a 10 ms frame at a time: the reference of the fast path."""

    def __init__(self, path: Path) -> None:
        self._interpreter = Interpreter(path)
        self._features: Any = package().MicroWakeWordFeatures()
        self._rest: npt.NDArray[np.int16] = np.zeros(0, np.int16)
        self._frames = 0

    def restart(self) -> None:
        """Nothing heard before counts. The package loads the model again."""
        if self._frames or len(self._rest):
            self._interpreter.package_model.reset()
        self._features = package().MicroWakeWordFeatures()
        self._rest = self._rest[:0]
        self._frames = 0

    def hear(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.float32]:
        """Shape (n,), any n; the probabilities of the steps that are whole now."""
        model = self._interpreter.package_model
        rest = np.concatenate([self._rest, samples.astype(np.int16, copy=False)])
        whole = len(rest) - len(rest) % _FRAME
        found: list[float] = []
        for start in range(0, whole, _FRAME):
            for features in self._features.process_streaming(rest[start : start + _FRAME].tobytes()):
                self._frames += 1
                probability = model.process_streaming_prob(features)
                if self._frames % model.stride == 0:
                    found.append(probability)
        self._rest = rest[whole:]
        return np.array(found, np.float32)


class Interpreter:
    """A model in the package's interpreter."""

    def __init__(self, path: Path) -> None:
        # A sliding window of one: the mean of one probability is the probability.
        self.package_model: Any = package().MicroWakeWord(
            id=path.stem, wake_word=path.stem, tflite_model=path, probability_cutoff=0.5, sliding_window_size=1,
            trained_languages=[], libtensorflowlite_c_path=library_path(),
        )  # fmt: skip

    @classmethod
    def answers(cls, path: Path, features: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
        """The raw output of a model with one output, shape (n,), to quantised features (n, stride, 40)."""
        model = cls(path).package_model
        given = np.ascontiguousarray(features)
        found = np.empty(len(given), np.uint8)
        for number, step in enumerate(given):
            model.lib.TfLiteTensorCopyFromBuffer(model.input_tensor, ctypes.c_void_p(step.ctypes.data), step.nbytes)
            model.lib.TfLiteInterpreterInvoke(model.interpreter)
            out = ctypes.c_void_p(found.ctypes.data + number)
            model.lib.TfLiteTensorCopyToBuffer(model.output_tensor, out, 1)
        model.close()
        return found


def logged_features(samples: npt.NDArray[np.int16]) -> npt.NDArray[np.uint16]:
    """The package's features of a sound, shape (n, 40), before their scale."""
    made = package().MicroWakeWordFeatures()
    frames = [features.reshape(-1) for features in made.process_streaming(samples.tobytes())]
    return np.round(np.array(frames).reshape(len(frames), -1) / _SCALE).astype(np.uint16)
