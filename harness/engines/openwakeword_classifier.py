"""openWakeWord's classifiers: from about 16 embeddings to the score of a phrase, from .tflite and .onnx files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from harness.engines.openwakeword_onnx import Array, OnnxModel, classifier_model, free_batch
from harness.engines.tflite_file import read_model
from harness.model.errors import InputError

EMBEDDING_SIZE = 96
MAX_WINDOWS = 80
"""Number of embeddings that the package keeps. It never returns a score of a classifier that needs more."""
_CHECKED_WINDOWS = 5
"""Number of windows for which a changed model is compared with the original."""
_ALIKE = 1e-4
"""Largest difference between their scores."""


class Classifier(Protocol):
    """A classifier that scores many windows at once. windows: number of embeddings in a window."""

    windows: int

    def scores(self, windows: Array) -> Array:
        """The score, 0–1, of each window: shape (n, windows, 96) → (n,)."""
        ...


class StreamingClassifier(Protocol):
    """A classifier as the package uses it: it takes an embedding, and returns the scores that this completes."""

    def process_streaming(self, embeddings: Array) -> Iterable[float]: ...
    def reset(self) -> None: ...


def load_classifier(path: Path, content: bytes, interpreter: Any) -> Classifier:
    """The classifier in a file, for many windows at once.

    Raises InputError for a file that is not an openWakeWord classifier.

    interpreter: the package's library.
    """
    try:
        if path.suffix.lower() == ".onnx":
            one_window_classifier = OnnxClassifier(OnnxModel(content))
            return _with_free_batch(free_batch(content), one_window_classifier) or one_window_classifier
        windows = _tflite_window_size(content)
        _demand_runnable(path, interpreter)
        package = PackageClassifier(path, windows)
        try:
            translated = classifier_model(read_model(content))
        except ValueError:  # an operator without a translation; the package's interpreter runs all of them
            return package
        return _with_free_batch(translated, package) or package
    except ValueError as error:
        raise _refusal(path, error) from error


def listening_classifier(path: Path, content: bytes, interpreter: Any) -> StreamingClassifier:
    """The classifier as the package runs it, one embedding at a time.

    Raises InputError for a file that is not an openWakeWord classifier.
    """
    try:
        if path.suffix.lower() == ".onnx":
            return _OnnxStreamingClassifier(OnnxClassifier(OnnxModel(content)))
        _tflite_window_size(content)
        _demand_runnable(path, interpreter)
    except ValueError as error:
        raise _refusal(path, error) from error
    import pyopen_wakeword

    classifier: StreamingClassifier = pyopen_wakeword.OpenWakeWord.from_model(path)
    return classifier


class OnnxClassifier:
    """An ONNX model of a wake word, over windows of embeddings.

    Raises ValueError for a model that is not a classifier.
    """

    def __init__(self, model: OnnxModel) -> None:
        shapes = list(model.inputs.items())
        if len(shapes) != 1 or model.outputs != 1 or model.element_types != ("tensor(float)",):
            raise ValueError("it does not have one float32 input and one output")
        self._input, shape = shapes[0]
        if len(shape) != 3 or shape[2] != EMBEDDING_SIZE:
            raise ValueError(f"its input has the shape {_shape_text(shape)}, not [1, windows, {EMBEDDING_SIZE}]")
        self.windows = _checked_window_size(shape[1])
        self._takes_one_window = shape[0] == 1
        self._model = model

    def scores(self, windows: Array) -> Array:
        if not self._takes_one_window:
            return self._run(windows)
        scores = [self._run(windows[index : index + 1]) for index in range(len(windows))]
        return np.concatenate(scores) if scores else np.zeros(0, np.float32)

    def _run(self, windows: Array) -> Array:
        scores = self._model(**{self._input: np.ascontiguousarray(windows)})
        if scores.size != len(windows):
            raise ValueError(f"it returns {scores.size} values for {len(windows)} windows, not one score each")
        return scores.reshape(-1)


class PackageClassifier:
    """A .tflite file in the package's interpreter, one window at a time."""

    def __init__(self, path: Path, windows: int) -> None:
        import pyopen_wakeword

        self.windows = windows
        self._model: Any = pyopen_wakeword.OpenWakeWord.from_model(path)

    def scores(self, windows: Array) -> Array:
        scores = np.empty(len(windows), np.float32)
        for index, window in enumerate(windows):
            self._model.reset()
            (scores[index],) = self._model.process_streaming(window[np.newaxis, np.newaxis])
        return scores


class _OnnxStreamingClassifier:
    """An ONNX classifier in the form of the package's own."""

    def __init__(self, classifier: OnnxClassifier) -> None:
        self._classifier = classifier
        self._window = np.zeros((0, EMBEDDING_SIZE), np.float32)

    def process_streaming(self, embeddings: Array) -> Iterable[float]:
        for embedding in embeddings.reshape(-1, EMBEDDING_SIZE):
            history = np.concatenate([self._window, embedding[np.newaxis]])
            self._window = history[-self._classifier.windows :]
            if len(self._window) == self._classifier.windows:
                yield float(self._classifier.scores(self._window[np.newaxis])[0])

    def reset(self) -> None:
        self._window = self._window[:0]


def _with_free_batch(content: bytes, one_window_classifier: Classifier) -> Classifier | None:
    """The model with a free batch dimension; None if that changes its result for a window."""
    try:
        free = OnnxClassifier(OnnxModel(content))
        random = np.random.default_rng(_CHECKED_WINDOWS)
        loudness = np.array([0.1, 1, 5, 10, 20], np.float32)[:_CHECKED_WINDOWS, np.newaxis, np.newaxis]
        windows = (
            random.normal(size=(_CHECKED_WINDOWS, one_window_classifier.windows, EMBEDDING_SIZE)).astype(np.float32)
            * loudness
        )
        are_equal = np.allclose(free.scores(windows), one_window_classifier.scores(windows), rtol=0, atol=_ALIKE)
    except ValueError:
        return None
    return free if are_equal else None


def _tflite_window_size(content: bytes) -> int:
    """Number of embeddings that a .tflite classifier takes. Raises ValueError for another model."""
    graph = read_model(content)[0]
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise ValueError("it does not have one input and one output")
    shape = graph.tensors[graph.inputs[0]].shape
    if len(shape) != 3 or shape[0] != 1 or shape[2] != EMBEDDING_SIZE:
        raise ValueError(f"its input has the shape {_shape_text(shape)}, not [1, windows, {EMBEDDING_SIZE}]")
    if np.prod(graph.tensors[graph.outputs[0]].shape) != 1:
        raise ValueError("it returns several values, not one score")
    return _checked_window_size(shape[1])


def _demand_runnable(path: Path, interpreter: Any) -> None:
    """Raises ValueError for a file that the interpreter cannot run. The package does not check that, and crashes."""
    model = interpreter.TfLiteModelCreateFromFile(str(path).encode())
    if not model:
        raise ValueError("the interpreter cannot read it")
    instance = interpreter.TfLiteInterpreterCreate(model, None)
    is_prepared = instance and interpreter.TfLiteInterpreterAllocateTensors(instance) == 0
    if instance:
        interpreter.TfLiteInterpreterDelete(instance)
    interpreter.TfLiteModelDelete(model)
    if not is_prepared:
        raise ValueError("the interpreter does not have all of its operators")


def _checked_window_size(windows: object) -> int:
    """The same number. Raises ValueError for one with which the package never returns a score."""
    if not isinstance(windows, int) or not 1 <= windows <= MAX_WINDOWS:
        raise ValueError(f"it takes {windows} embeddings, not 1 to {MAX_WINDOWS}")
    return windows


def _shape_text(shape: Iterable[object]) -> str:
    return "[" + ", ".join(str(size) for size in shape) + "]"


def _refusal(path: Path, error: ValueError) -> InputError:
    return InputError(
        f"{path} is not an openWakeWord classifier: {error}",
        remedy="Use an openWakeWord classifier (not a microWakeWord model, and not a feature model)",
    )
