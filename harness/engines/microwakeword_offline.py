"""microWakeWord for offline evaluation: scores of files, by the package's interpreter or by the harness's kernel."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import json
import logging
import math
import os
import random
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from harness.base.plugins import import_extra
from harness.engines.framed import FrameCutter
from harness.engines.microwakeword import RATE_HZ
from harness.engines.microwakeword_kernel.native import HOP_SAMPLES, WIDTH, WINDOW_SAMPLES, Listener, processor
from harness.engines.microwakeword_kernel.network import KernelNetwork, UnsupportedModel, network_of
from harness.engines.offline_loading import NoKernel, fingerprint
from harness.engines.settings import LEAD_IN, OF_SCORES, number, operating_points, spot_rule
from harness.engines.tflite_file import Graph, InvalidModelFile, Op, read_model, with_output
from harness.model.errors import InputError, PluginError, did_you_mean
from harness.model.frozen import frozen
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, ScoreTrack, Setting, SettingKind

_MANIFEST = "https://esphome.io/components/micro_wake_word"


@frozen
class ModelFile:
    """A model and the content of its manifest.

    - cutoff: the model's own threshold.
    - window: number of probabilities of which a score is the mean. None: not in the manifest.
    """

    path: Path
    phrase: str
    cutoff: float | None = None
    window: int | None = None


def package() -> Any:
    """pymicro_wakeword. Raises PluginError if it is not installed."""
    return import_extra("pymicro_wakeword", "the wake engine microwakeword", "offline")


def library_path() -> Path:
    """The TensorFlow Lite library in the package."""
    libraries = sorted((Path(package().__file__).parent / "lib").glob("*tensorflowlite_c.*"))
    if not libraries:
        raise PluginError(
            "pymicro-wakeword contains no TensorFlow Lite library for this machine",
            remedy="Install a pymicro-wakeword wheel that was built for this platform",
        )
    return libraries[0]


def find_packaged() -> dict[str, ModelFile]:
    """The packaged models, by name."""
    folder = Path(package().__file__).parent / "models"
    return {path.stem: _with_manifest(path) for path in sorted(folder.glob("*.tflite"))}


def find_model(text: str) -> ModelFile:
    """The model of that name or path (.tflite, or the .json beside one). Raises InputError if there is none."""
    path = Path(os.path.expanduser(text))
    match path.suffix.lower():
        case ".tflite":
            if not path.is_file():
                raise InputError(f"the model {text} does not exist", remedy="Check the path")
            return _with_manifest(path)
        case ".json":
            model_file = _read_manifest(path)
            if not model_file.path.is_file():
                raise InputError(
                    f"{text} names the model {model_file.path}, which does not exist",
                    remedy="Copy the model next to its manifest",
                )
            return model_file
    models = find_packaged()
    key = text.strip().lower().replace(" ", "_").replace("-", "_")
    if key not in models:
        problem = f"microWakeWord has no model {text!r}" if text else "no microWakeWord model is given"
        raise InputError(
            problem, remedy=f"{did_you_mean(text, models)}Use one of: {', '.join(models)}, or pass a .tflite file"
        )
    return models[key]


def _with_manifest(path: Path) -> ModelFile:
    """A model file with the content of the manifest beside it, if there is one."""
    manifest_path = path.with_suffix(".json")
    if manifest_path.is_file():
        return replace(_read_manifest(manifest_path), path=path)
    return ModelFile(path, path.stem.replace("_", " "))


def _read_manifest(path: Path) -> ModelFile:
    """The model of a manifest.

    Raises InputError for another file, and for values with which nothing can be detected.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        micro = content["micro"]
        cutoff, window = float(micro["probability_cutoff"]), int(micro["sliding_window_size"])
        model_file = ModelFile(path.parent / str(content["model"]), str(content["wake_word"]).lower(), cutoff, window)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is not a microWakeWord manifest: {type(error).__name__}: {error}",
            remedy="A manifest needs `wake_word`, `model`, `micro.probability_cutoff` and "
            f"`micro.sliding_window_size`; see {_MANIFEST}",
        ) from None
    if not 0 < cutoff < 1 or window < 1:
        raise InputError(
            f"{path}: a cutoff of {cutoff} over {window} probabilities detects nothing, or everything",
            remedy="Set `probability_cutoff` between 0 and 1, and `sliding_window_size` to at least 1",
        )
    return model_file


_SCALE = 0.0390625
"""Factor that the package applies to its logarithmic features."""


class Streaming:
    """Probabilities of steps as the package computes them, one 10 ms frame at a time: the reference for the fast
    path."""

    def __init__(self, path: Path) -> None:
        self._model = interpreter(path)
        self._features: Any = package().MicroWakeWordFeatures()
        self._blocks = FrameCutter(HOP_SAMPLES)
        self._frames = 0

    def restart(self) -> None:
        """Clears the state. The package loads the model again."""
        if self._frames or len(self._blocks.rest):
            self._model.reset()
        self._features = package().MicroWakeWordFeatures()
        self._blocks = FrameCutter(HOP_SAMPLES)
        self._frames = 0

    def feed(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.float32]:
        """Takes samples, shape (n,), any n. Returns the probabilities of the steps that are now complete, shape
        (m,)."""
        probabilities: list[float] = []
        for block in self._blocks.cut(samples):
            for features in self._features.process_streaming(block.tobytes()):
                self._frames += 1
                probability = self._model.process_streaming_prob(features)
                if self._frames % self._model.stride == 0:
                    probabilities.append(probability)
        return np.array(probabilities, np.float32)


def interpreter(path: Path) -> Any:
    """A model in the package's interpreter, with a sliding window of one, so that each mean is a single probability."""
    return package().MicroWakeWord(
        id=path.stem, wake_word=path.stem, tflite_model=path, probability_cutoff=0.5, sliding_window_size=1,
        trained_languages=[], libtensorflowlite_c_path=library_path(),
    )  # fmt: skip


def package_answers(path: Path, features: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
    """The package's raw output of a model with one output, shape (n,), to quantised features (n, stride, 40)."""
    model = interpreter(path)
    steps = np.ascontiguousarray(features)
    answers = np.empty(len(steps), np.uint8)
    for index, step in enumerate(steps):
        model.lib.TfLiteTensorCopyFromBuffer(model.input_tensor, ctypes.c_void_p(step.ctypes.data), step.nbytes)
        model.lib.TfLiteInterpreterInvoke(model.interpreter)
        target = ctypes.c_void_p(answers.ctypes.data + index)
        model.lib.TfLiteTensorCopyToBuffer(model.output_tensor, target, 1)
    model.close()
    return answers


def logged_features(samples: npt.NDArray[np.int16]) -> npt.NDArray[np.uint16]:
    """The package's features of a sound, shape (n, 40), before scaling."""
    frontend = package().MicroWakeWordFeatures()
    frames = [features.reshape(-1) for features in frontend.process_streaming(samples.tobytes())]
    return np.round(np.array(frames).reshape(len(frames), -1) / _SCALE).astype(np.uint16)


_CHECKED_STEPS = 120
"""Number of steps on which the kernel is compared with the package."""
_CHECKED_SAMPLES = 24_000
"""Number of samples on which features are compared: 24 stretches of different levels, three of them silent."""


def disagreement(content: bytes, graph: Graph, network: KernelNetwork) -> str:
    """How the kernel's results differ from the package's, in words; "" if they do not.

    Compares features of loud, faint and silent sound, and the last sums of a synthetic input.
    """
    rng = random.Random(1)  # to import NumPy's takes longer than the whole comparison
    listener = Listener(replace(network, answer=np.arange(256, dtype=np.uint8)))
    levels = np.array([10 ** rng.uniform(0, 5) for _ in range(_CHECKED_SAMPLES // 1000)]).repeat(1000)
    levels[5000:8000] = 0
    noise = np.frombuffer(rng.randbytes(2 * _CHECKED_SAMPLES), np.int16) / 20_000
    sound = np.clip(noise * levels, -32768, 32767).astype(np.int16)
    if not np.array_equal(listener.features(sound), logged_features(sound)):
        return "features differ from the package's on this machine"
    shape = (_CHECKED_STEPS, network.stride, network.width)
    steps = np.frombuffer(rng.randbytes(math.prod(shape)), np.int8).reshape(shape)
    sums_tensor = next(op.inputs[0] for op in graph.operators if op.code == Op.LOGISTIC)
    with tempfile.TemporaryDirectory(prefix="microwakeword-") as folder:
        path = Path(folder) / "sums.tflite"
        path.write_bytes(with_output(content, sums_tensor))
        package_steps = package_answers(path, steps).view(np.int8).astype(np.int16) + 128
    if not np.array_equal(listener.answer(steps), package_steps):
        return "the network's sums differ from the package's on this machine"
    return ""


_MAX_FEED_SAMPLES = 1 << 21
"""Most samples that are scored at once, so that the intermediate results fit into memory."""
_DEFAULT_CUTOFF, _DEFAULT_WINDOW = 0.5, 5
"""For a model without a manifest."""
_LOG = logging.getLogger(__name__)

PATH = Setting(
    "path", SettingKind.CHOICE, "fast",
    "fast: the harness's kernel, with the same scores; streaming: the package's interpreter, frame by frame",
    choices=("fast", "streaming"),
)  # fmt: skip
SLIDING_WINDOW = Setting(
    "sliding-window", SettingKind.WHOLE, "",
    "number of probabilities averaged into a score (default: from the manifest, else 5)", low=1, high=1000, scores=True,
)  # fmt: skip
CUTOFF = Setting(
    "probability-cutoff", SettingKind.NUMBER, "",
    "the model's own threshold, at operating point 10 (default: from the manifest, else 0.5)", low=0.0001, high=0.9999,
)  # fmt: skip
WAKE_WORD = Setting(
    "wake-word", SettingKind.TEXT, "", "the wake phrase (default: from the manifest, else from the file's name)"
)


class _StepModel(Protocol):
    """Takes samples, shape (n,), and returns the probabilities of the steps that are now complete, shape (m,)."""

    def restart(self) -> None: ...
    def feed(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.float32]: ...


class MicroWakeWordOffline:
    """Scores of one phrase every 30 ms at 16 kHz. A score is the mean of the last probabilities, 0 until there are
    enough.

    model: alexa, hey_jarvis, hey_mycroft, okay_nabu, or a .tflite file with its .json manifest beside it. Raises
    InputError for an invalid model, PluginError without the package.
    """

    settings: ClassVar[tuple[Setting, ...]] = (*OF_SCORES, PATH, SLIDING_WINDOW, CUTOFF, WAKE_WORD)

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        file = find_model(model)
        content = file.path.read_bytes()
        graphs = _read_graphs(file, content)
        model_input = graphs[0].tensors[graphs[0].inputs[0]]
        self._stride = model_input.shape[1]
        cutoff = float(settings.get(CUTOFF.name) or file.cutoff or _DEFAULT_CUTOFF)
        self._window = int(settings.get(SLIDING_WINDOW.name) or file.window or _DEFAULT_WINDOW)
        self._phrase = settings.get(WAKE_WORD.name) or file.phrase
        choice = settings.get(PATH.name, PATH.default)
        self._step_model, path, reason = _load_step_model(choice, file, content, graphs)
        rule, point = spot_rule(settings, cutoff, RATE_HZ)
        version = importlib.metadata.version("pymicro-wakeword")
        all_settings = {**settings, SLIDING_WINDOW.name: str(self._window), PATH.name: path}
        if reason:
            all_settings["path-because"] = reason
        self.facts = EngineFacts(
            kind=EngineKind.WAKE,
            version=f"pymicro-wakeword {version}",
            rate_hz=RATE_HZ,
            phrases=(self._phrase,),
            fingerprint=fingerprint(type(self), version, hashlib.sha256(content).hexdigest(), all_settings),
            licence="Apache-2.0",
            lead_in_ms=number(settings, LEAD_IN),
            rule=rule,
            operating_point=point,
            operating_points=operating_points(cutoff),
            settings=tuple(sorted(all_settings.items())),
        )
        self._stream: MicroScores | None = None

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """The package's four models; PluginError without it."""
        return tuple(
            OfflineModel(name, (file.phrase,), "Apache-2.0", f"cutoff {file.cutoff}")
            for name, file in find_packaged().items()
        )

    def begin(self) -> MicroScores:
        """A fresh state; ends the previous one. Takes microseconds on the fast path."""
        if self._stream is not None:
            self._stream.end()
        self._step_model.restart()
        self._stream = MicroScores(self._step_model, self._phrase, self._stride, self._window)
        return self._stream

    def close(self) -> None:
        """Ends the current state."""
        if self._stream is not None:
            self._stream.end()
        self._stream = None


class MicroScores:
    """A state of `MicroWakeWordOffline`. The first score is known when the last frame of the first step is complete."""

    def __init__(self, step_model: _StepModel, phrase: str, stride: int, window: int) -> None:
        self._step_model: _StepModel | None = step_model
        self._phrase = phrase
        self._stride = stride
        self._window = window
        self._last_probabilities: npt.NDArray[np.float64] = np.zeros(0)
        self._score_parts: list[npt.NDArray[np.float32]] = []
        self._taken_scores = 0

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        """Takes samples, shape (n,), any n. Raises ValueError after `begin` was called again."""
        if self._step_model is None:
            raise ValueError("this stream has ended: the engine has begun another")
        for start in range(0, len(samples), _MAX_FEED_SAMPLES):
            self._average(self._step_model.feed(samples[start : start + _MAX_FEED_SAMPLES]))

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        """The one track. flush has no effect: as in a live run, an incomplete step is not scored."""
        scores = np.concatenate(self._score_parts) if self._score_parts else np.zeros(0, np.float32)
        step = self._stride * HOP_SAMPLES
        first = WINDOW_SAMPLES - HOP_SAMPLES + step + self._taken_scores * step
        self._taken_scores += len(scores)
        self._score_parts.clear()
        return (ScoreTrack(self._phrase, scores, first, step),)

    def end(self) -> None:
        """Ends the stream: nothing can be fed afterwards."""
        self._step_model = None

    def _average(self, new_probabilities: npt.NDArray[np.float32]) -> None:
        """Adds the scores that follow from new probabilities. A score is 0 until there are `window` probabilities.

        Sums of float32 probabilities are exact in float64, so the mean is rounded once, like the package's.
        """
        probabilities = np.concatenate([self._last_probabilities, new_probabilities], dtype=np.float64)
        means = np.zeros(len(new_probabilities), np.float32)
        count = len(probabilities) - self._window + 1
        if count > 0:
            sums = np.correlate(probabilities, np.ones(self._window))
            means[len(means) - count :] = sums / self._window
        self._last_probabilities = probabilities[max(0, count) :]
        self._score_parts.append(means)


class _KernelModel:
    """The harness's kernel. probabilities: for each value of the model's output, shape (256,)."""

    def __init__(self, listener: Listener, probabilities: npt.NDArray[np.float32]) -> None:
        self._listener = listener
        self._probabilities = probabilities

    def restart(self) -> None:
        self._listener.restart()

    def feed(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.float32]:
        return self._probabilities[self._listener.feed(samples)]


def _read_graphs(file: ModelFile, content: bytes) -> tuple[Graph, ...]:
    """The graphs of a model file. Raises InputError if it is not a microWakeWord model."""
    try:
        graphs = read_model(content)
        shape = graphs[0].tensors[graphs[0].inputs[0]].shape
    except (InvalidModelFile, IndexError) as error:
        raise InputError(
            f"{file.path} is not a TensorFlow Lite model: {error}", remedy="Use a microWakeWord .tflite file"
        ) from None
    if len(shape) != 3 or shape[0] != 1 or shape[1] < 1 or shape[2] != WIDTH:
        raise InputError(
            f"{file.path} is not a microWakeWord model: its input is {shape}, not frames of {WIDTH} features",
            remedy="Use a microWakeWord model, or specify the model's engine (openwakeword:FILE.tflite)",
        )
    return graphs


def _load_step_model(
    choice: str, file: ModelFile, content: bytes, graphs: tuple[Graph, ...]
) -> tuple[_StepModel, str, str]:
    """The model, its path (`fast` or `streaming`), and why that path was chosen. It is `streaming` if `choice` says
    so, or if the kernel does not support the model."""
    if choice == "streaming":
        return Streaming(file.path), "streaming", ""
    try:
        network = network_of(graphs)
        listener = Listener(network)
        problem = disagreement(content, graphs[0], network)
    except (UnsupportedModel, NoKernel) as error:
        problem = str(error)
    if problem:
        _LOG.warning(
            "%s runs on the package's slower interpreter; the fast kernel does not support it: %s",
            file.path.name,
            problem,
        )
        return Streaming(file.path), "streaming", problem
    levels = np.arange(256, dtype=np.uint8)
    raw = levels if graphs[0].tensors[graphs[0].outputs[0]].type == _UINT8 else levels.view(np.int8)
    probabilities = (raw.astype(np.float32) - np.float32(network.output_zero)) * np.float32(network.output_scale)
    return _KernelModel(listener, probabilities), "fast", f"kernel for {processor()}"


_UINT8 = 3
"""TFLite's TensorType."""
