"""microWakeWord for offline evaluation: scores of files, by the package's interpreter or by a kernel of our own."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import json
import logging
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from harness.engines.microwakeword_kernel.native import KernelNetwork, Listener, NotKnown, network_of, processor
from harness.engines.offline_loading import NoKernel, fingerprint
from harness.engines.settings import LEAD_IN, OF_SCORES, number, operating_points, spot_rule
from harness.engines.tflite_file import Broken, Graph, Op, read_model, with_output
from harness.model.errors import InputError, PluginError, did_you_mean
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, ScoreTrack, Setting, SettingKind

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
        for at, step in enumerate(given):
            model.lib.TfLiteTensorCopyFromBuffer(model.input_tensor, ctypes.c_void_p(step.ctypes.data), step.nbytes)
            model.lib.TfLiteInterpreterInvoke(model.interpreter)
            out = ctypes.c_void_p(found.ctypes.data + at)
            model.lib.TfLiteTensorCopyToBuffer(model.output_tensor, out, 1)
        model.close()
        return found


def logged_features(samples: npt.NDArray[np.int16]) -> npt.NDArray[np.uint16]:
    """The package's features of a sound, shape (n, 40), before their scale."""
    made = package().MicroWakeWordFeatures()
    frames = [features.reshape(-1) for features in made.process_streaming(samples.tobytes())]
    return np.round(np.array(frames).reshape(len(frames), -1) / _SCALE).astype(np.uint16)


_STEPS = 120
_SAMPLES = 24_000
Answers = Callable[[Path, npt.NDArray[np.int8]], npt.NDArray[np.uint8]]
"""What the package's interpreter answers to quantised features (n, stride, 40), with the model of that file."""
Features = Callable[[npt.NDArray[np.int16]], npt.NDArray[np.uint16]]
"""What the package's features are, shape (n, 40), logged, of samples at 16 kHz."""


def disagreement(
    content: bytes, graph: Graph, network: KernelNetwork, package_answers: Answers, package_features: Features
) -> str:
    """What differs, in words, or "": features of loud, faint and no sound, and the last sums of a made-up input."""
    rng = np.random.default_rng(1)
    listener = Listener(replace(network, answer=np.arange(256, dtype=np.uint8)))
    levels = 10 ** rng.uniform(0, 5, _SAMPLES // 1000).repeat(1000)
    levels[5000:8000] = 0
    sound = np.clip(rng.normal(0, 1, _SAMPLES) * levels, -32768, 32767).astype(np.int16)
    if not np.array_equal(listener.features(sound), package_features(sound)):
        return "features differ from the package's on this machine"
    steps = np.clip(rng.normal(-40, 60, (_STEPS, network.stride, network.width)), -128, 127).astype(np.int8)
    before = next(op.inputs[0] for op in graph.operators if op.code == Op.LOGISTIC)
    with tempfile.TemporaryDirectory(prefix="microwakeword-") as folder:
        path = Path(folder) / "sums.tflite"
        path.write_bytes(with_output(content, before))
        theirs = package_answers(path, steps).view(np.int8).astype(np.int16) + 128
    if not np.array_equal(listener.answer(steps), theirs):
        return "the network's sums differ from the package's on this machine"
    return ""


RATE_HZ = 16000

_WINDOW = 480
_WIDTH = 40
_PIECE = 1 << 21
_CUTOFF, _SLIDING = 0.5, 5
_LOG = logging.getLogger(__name__)

PATH = Setting(
    "path", SettingKind.CHOICE, "fast",
    "fast: our own kernel, the same scores; streaming: the package's interpreter, frame by frame",
    choices=("fast", "streaming"),
)  # fmt: skip
SLIDING_WINDOW = Setting(
    "sliding-window", SettingKind.WHOLE, "", "how many probabilities a score is the mean of; 5 where no manifest says",
    low=1, high=1000, scores=True,
)  # fmt: skip
CUTOFF = Setting(
    "probability-cutoff", SettingKind.NUMBER, "",
    "the model's own threshold, which operating point 10 is; 0.5 where no manifest says", low=0.0001, high=0.9999,
)  # fmt: skip
WAKE_WORD = Setting("wake-word", SettingKind.TEXT, "", "the phrase, where no manifest says; else the file's name")


class _Hears(Protocol):
    """Probabilities of steps, shape (m,), float32, to any samples."""

    def restart(self) -> None: ...
    def hear(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.float32]: ...


class MicroWakeWordOffline:
    """Scores of one phrase every 30 ms at 16 kHz. A score is the mean of the last probabilities, 0 until all are there.

    model: alexa, hey_jarvis, hey_mycroft, okay_nabu, or a .tflite file (its .json manifest is taken from beside it).
    InputError for a model that is none, PluginError without the package.
    """

    settings: ClassVar[tuple[Setting, ...]] = (*OF_SCORES, PATH, SLIDING_WINDOW, CUTOFF, WAKE_WORD)

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        file = find_model(model)
        content = file.path.read_bytes()
        graphs = _graphs(file, content)
        entry = graphs[0].tensors[graphs[0].inputs[0]]
        self._stride = entry.shape[1]
        manifest = file.manifest
        cutoff = float(settings.get(CUTOFF.name) or manifest.cutoff or _CUTOFF)
        self._window = int(settings.get(SLIDING_WINDOW.name) or manifest.window or _SLIDING)
        self._phrase = settings.get(WAKE_WORD.name) or manifest.phrase
        self._hears, path, why = _path(settings.get(PATH.name, PATH.default), file, content, graphs)
        rule, point = spot_rule(settings, cutoff, RATE_HZ)
        version = importlib.metadata.version("pymicro-wakeword")
        told = {**settings, SLIDING_WINDOW.name: str(self._window), PATH.name: path}
        if why:
            told["path-because"] = why
        self._facts = EngineFacts(
            kind=EngineKind.WAKE,
            version=f"pymicro-wakeword {version}",
            rate_hz=RATE_HZ,
            phrases=(self._phrase,),
            fingerprint=fingerprint(type(self), version, hashlib.sha256(content).hexdigest(), told),
            licence="Apache-2.0",
            lead_in_ms=number(settings, LEAD_IN),
            rule=rule,
            operating_point=point,
            operating_points=operating_points(cutoff),
            settings=tuple(sorted(told.items())),
        )
        self._stream: MicroScores | None = None

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """The package's four; PluginError without it."""
        return tuple(
            OfflineModel(name, (file.manifest.phrase,), "Apache-2.0", f"cutoff {file.manifest.cutoff}")
            for name, file in packaged().items()
        )

    @property
    def facts(self) -> EngineFacts:
        return self._facts

    def begin(self) -> MicroScores:
        """A state that has heard nothing; ends the one before. Takes microseconds on the fast path."""
        if self._stream is not None:
            self._stream.end()
        self._hears.restart()
        self._stream = MicroScores(self._hears, self._phrase, self._stride, self._window)
        return self._stream

    def close(self) -> None:
        """Ends the state in use."""
        if self._stream is not None:
            self._stream.end()
        self._stream = None


class MicroScores:
    """A state of `MicroWakeWordOffline`. The first score is known when the last frame of the first step is whole."""

    def __init__(self, hears: _Hears, phrase: str, stride: int, window: int) -> None:
        self._hears: _Hears | None = hears
        self._phrase = phrase
        self._stride = stride
        self._window = window
        self._known: npt.NDArray[np.float64] = np.zeros(0)
        self._found: list[npt.NDArray[np.float32]] = []
        self._steps = 0
        self._taken = 0

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        """Shape (n,), any n. ValueError after `begin` was called again."""
        if self._hears is None:
            raise ValueError("this state has ended: the engine has begun another")
        for start in range(0, len(samples), _PIECE):
            self._average(self._hears.hear(samples[start : start + _PIECE]))

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        """The one track. flush changes nothing: what fills no step is never scored, live neither."""
        scores = np.concatenate(self._found) if self._found else np.zeros(0, np.float32)
        step = self._stride * _FRAME
        first = _WINDOW - _FRAME + step + self._taken * step
        self._taken += len(scores)
        self._found.clear()
        return (ScoreTrack(self._phrase, scores, first, step),)

    def end(self) -> None:
        """Nothing can be fed afterwards."""
        self._hears = None

    def _average(self, fresh: npt.NDArray[np.float32]) -> None:
        """Sums of float32 probabilities are exact in float64, so that a mean is rounded once, as the package's is."""
        if not len(fresh):
            return
        known = np.concatenate([self._known, fresh.astype(np.float64)])
        missing = max(0, self._window - 1 - len(self._known))
        whole = len(known) - self._window + 1
        means = np.zeros(len(fresh))
        if whole > 0:
            sums = known[:whole].copy()
            for back in range(1, self._window):
                sums += known[back : back + whole]
            means[min(missing, len(fresh)) :] = sums / self._window
        self._known = known[max(0, len(known) - self._window + 1) :]
        self._found.append(means.astype(np.float32))
        self._steps += len(fresh)


class _Fast:
    def __init__(self, listener: Listener, probabilities: npt.NDArray[np.float32]) -> None:
        self._listener = listener
        self._probabilities = probabilities

    def restart(self) -> None:
        self._listener.restart()

    def hear(self, samples: npt.NDArray[np.int16]) -> npt.NDArray[np.float32]:
        return self._probabilities[self._listener.hear(samples)]


def _graphs(file: ModelFile, content: bytes) -> tuple[Graph, ...]:
    try:
        graphs = read_model(content)
        entry = graphs[0].tensors[graphs[0].inputs[0]]
    except (Broken, IndexError) as error:
        raise InputError(
            f"{file.path} is no TensorFlow Lite model: {error}", remedy="Name a microWakeWord .tflite file"
        ) from None
    if len(entry.shape) != 3 or entry.shape[0] != 1 or entry.shape[1] < 1 or entry.shape[2] != _WIDTH:
        raise InputError(
            f"{file.path} is no microWakeWord model: its input is {entry.shape}, not frames of {_WIDTH} features",
            remedy="Name a microWakeWord model; another engine may know this one (openwakeword:FILE.tflite)",
        )
    return graphs


def _path(asked: str, file: ModelFile, content: bytes, graphs: tuple[Graph, ...]) -> tuple[_Hears, str, str]:
    """What hears, the path that it takes, and why, in words."""
    if asked == "streaming":
        return Streaming(file.path), "streaming", ""
    try:
        network = network_of(graphs)
        listener = Listener(network)
        why = disagreement(content, graphs[0], network, Interpreter.answers, logged_features)
    except (NotKnown, NoKernel) as error:
        why = str(error)
    if why:
        _LOG.warning("%s is evaluated by the package's interpreter, which is slower: %s", file.path.name, why)
        return Streaming(file.path), "streaming", why
    levels = np.arange(256, dtype=np.uint8)
    raw = levels if graphs[0].tensors[graphs[0].outputs[0]].type == _UINT8 else levels.view(np.int8)
    probabilities = (raw.astype(np.float32) - np.float32(network.output_zero)) * np.float32(network.output_scale)
    return _Fast(listener, probabilities), "fast", f"kernel for {processor()}"


_UINT8 = 3
