"""Models of microWakeWord: those of its package, and any .tflite file with or without its manifest."""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.model.errors import InputError, PluginError, did_you_mean

_MANIFEST = "https://esphome.io/components/micro_wake_word"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What stands beside a model. None: it does not say."""

    phrase: str
    cutoff: float | None
    window: int | None


@dataclass(frozen=True, slots=True)
class ModelFile:
    path: Path
    manifest: Manifest


def package() -> Any:
    """pymicro_wakeword; PluginError when it is not installed."""
    try:
        import pymicro_wakeword
    except ImportError as error:
        raise PluginError(
            "the wake engine microwakeword is not installed",
            remedy="Install the extra that carries it: pip install 'voice-harness[offline]'",
        ) from error
    return pymicro_wakeword


def library_path() -> Path:
    """The TensorFlow Lite library that the package carries."""
    found = sorted((Path(package().__file__).parent / "lib").glob("*tensorflowlite_c.*"))
    if not found:
        raise PluginError(
            "pymicro-wakeword carries no TensorFlow Lite library for this machine",
            remedy="Install a wheel of it that was built for this platform",
        )
    return found[0]


def packaged() -> dict[str, ModelFile]:
    """The models that the package carries, by name."""
    folder = Path(package().__file__).parent / "models"
    return {path.stem: _with_manifest(path) for path in sorted(folder.glob("*.tflite"))}


def find_model(text: str) -> ModelFile:
    """The model of that name or path (.tflite, or the .json beside one). InputError when there is none."""
    path = Path(text).expanduser()
    match path.suffix.lower():
        case ".tflite":
            if not path.is_file():
                raise InputError(f"there is no model {text}", remedy="Name a model file that is there")
            return _with_manifest(path)
        case ".json":
            manifest, model = _manifest(path)
            if not model.is_file():
                raise InputError(f"{text} names the model {model}, which is not there", remedy="Put it beside it")
            return ModelFile(model, manifest)
    known = packaged()
    key = text.strip().lower().replace(" ", "_").replace("-", "_")
    if key not in known:
        raise InputError(
            f"microWakeWord has no model {text!r}",
            remedy=f"{did_you_mean(text, known)}It has: {', '.join(known)}, or name a .tflite file",
        )
    return known[key]


def _with_manifest(path: Path) -> ModelFile:
    beside = path.with_suffix(".json")
    if beside.is_file():
        return ModelFile(path, _manifest(beside)[0])
    return ModelFile(path, Manifest(path.stem.replace("_", " "), None, None))


def _manifest(path: Path) -> tuple[Manifest, Path]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        micro = content["micro"]
        cutoff, window = float(micro["probability_cutoff"]), int(micro["sliding_window_size"])
        manifest = Manifest(str(content["wake_word"]).lower(), cutoff, window)
        model = path.parent / str(content["model"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is no manifest of a microWakeWord model: {type(error).__name__}: {error}",
            remedy=f"It needs wake_word, model, micro.probability_cutoff, micro.sliding_window_size; see {_MANIFEST}",
        ) from None
    if not 0 < cutoff < 1 or window < 1:
        raise InputError(
            f"{path}: a cutoff of {cutoff} over {window} probabilities finds nothing, or everything",
            remedy="probability_cutoff lies between 0 and 1, sliding_window_size is at least 1",
        )
    return manifest, model


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
