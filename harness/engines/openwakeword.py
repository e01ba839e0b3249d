"""The wake engine openWakeWord for offline evaluation: the models of the package pyopen-wakeword, and model files.

Code: Apache-2.0. The models that the package carries: CC BY-NC-SA 4.0, which is why it is an extra of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from harness.base.ports import ScoreStream
from harness.engines.offline_loading import NoKernel, fingerprint
from harness.engines.openwakeword_classifier import (
    EMBEDDING_SIZE,
    Classifier,
    Listens,
    listening_classifier,
    load_classifier,
)
from harness.engines.openwakeword_features import CALL_SAMPLES, STEP_SAMPLES, Features, Tail
from harness.engines.openwakeword_kernel.native import VERSION as KERNEL_VERSION
from harness.engines.openwakeword_onnx import Array
from harness.engines.settings import LEAD_IN, OF_SCORES, number, operating_points, spot_rule
from harness.model.errors import EngineError, InputError, PluginError, did_you_mean
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, ScoreTrack, Setting, SettingKind

FIRST_END = CALL_SAMPLES - STEP_SAMPLES
STRETCH_STEPS = 150
"""Steps that are worked out at once, 12 s: their convolutions fit into a core's cache."""
TOLERANCE_LOG_ODDS = 1e-3
"""How far apart the two ways' scores may lie, in log odds; more than ten times what was measured."""
_FEW_ULP = 3e-7
"""… and relative to the score: a float32 near 1 is no finer."""
_CALLS_BEFORE_AN_EMBEDDING = 9


class _Scores:
    """Scores that nobody has taken yet."""

    def __init__(self, phrase: str) -> None:
        self._phrase = phrase
        self._parts: list[Array] = []
        self._taken = 0

    def add(self, scores: Array) -> None:
        self._parts.append(scores)

    def take(self) -> tuple[ScoreTrack, ...]:
        scores = np.concatenate(self._parts) if self._parts else np.zeros(0, np.float32)
        track = ScoreTrack(self._phrase, scores, FIRST_END + self._taken * STEP_SAMPLES, STEP_SAMPLES)
        self._parts = []
        self._taken += len(scores)
        return (track,)


class StreamingScores:
    """A sound through the package, 80 ms at a time. features: the package's OpenWakeWordFeatures."""

    def __init__(self, phrase: str, features: Any, classifier: Listens) -> None:
        self._scores = _Scores(phrase)
        self._features, self._classifier = features, classifier
        features.reset()
        classifier.reset()
        self._rest = np.zeros(0, np.int16)
        self._wanted = FIRST_END

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        sound = np.concatenate([self._rest, samples])
        place = 0
        while len(sound) - place >= self._wanted:
            self._chunk(sound[place : place + self._wanted])
            place += self._wanted
            self._wanted = STEP_SAMPLES
        self._rest = sound[place:].copy()

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        """What is left of a chunk at the end completes no score; the package leaves it too."""
        return self._scores.take()

    def _chunk(self, samples: npt.NDArray[np.int16]) -> None:
        found = [
            score
            for embeddings in self._features.process_streaming(samples.tobytes())
            for score in self._classifier.process_streaming(embeddings)
        ]
        self._scores.add(np.asarray(found[-1:], np.float32))


class CallByCall:
    """Single scores as the package works them out, from the sound that they depend on alone."""

    def __init__(self, features: Any, classifier: Listens, windows: int) -> None:
        self._features, self._classifier = features, classifier
        self.calls = windows + _CALLS_BEFORE_AN_EMBEDDING
        """Calls of the mel model that a score depends on, with its own."""

    def score(self, samples: npt.NDArray[np.int16]) -> float:
        """The score of the last of `calls` calls. samples: shape (1280 · calls + 480,)."""
        self._features.reset()
        self._classifier.reset()
        self._features.new_audio_samples = 0  # what lies before, silence as well, is in the samples
        (score,) = (
            one
            for embeddings in self._features.process_streaming(samples.tobytes())
            for one in self._classifier.process_streaming(embeddings)
        )
        return score


class FastScores:
    """A sound in stretches that begin at the same samples however it is fed, so that the scores are the same.

    decisive: thresholds; a score so near one of them that the two ways could differ about it is asked of `exact`.
    """

    def __init__(
        self, phrase: str, features: Features, classifier: Classifier, exact: CallByCall, decisive: Array
    ) -> None:
        self._scores = _Scores(phrase)
        self._classifier = classifier
        self._exact, self._decisive = exact, decisive
        self._tail = Tail(features)
        # Before the sound lie zeros: the first call begins 1280 samples before it, and all of the windows before that
        # have the embedding of silence.
        self._history = (exact.calls - 1) * STEP_SAMPLES
        self._sound = np.zeros(self._history + STRETCH_STEPS * STEP_SAMPLES + FIRST_END, np.int16)
        self._filled = self._history + STEP_SAMPLES
        self._embeddings = np.repeat(features.silent_embedding, classifier.windows - 1, axis=0)

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        place = 0
        while place < len(samples):
            part = samples[place : place + len(self._sound) - self._filled]
            self._sound[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            place += len(part)
            if self._filled == len(self._sound):
                self._stretch(STRETCH_STEPS)

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        """Of sound that goes on, scores of whole stretches only."""
        steps = (self._filled - self._history - FIRST_END) // STEP_SAMPLES
        if flush and steps:
            self._stretch(steps)
        return self._scores.take()

    def _stretch(self, steps: int) -> None:
        end = self._history + steps * STEP_SAMPLES + FIRST_END
        samples = self._sound[self._history : end].astype(np.float32)
        embeddings = np.concatenate([self._embeddings, self._tail.embeddings(samples, steps)])
        self._embeddings = embeddings[steps:]
        shape = (self._classifier.windows, EMBEDDING_SIZE)
        windows = np.lib.stride_tricks.sliding_window_view(embeddings, shape)[:, 0]
        try:
            scores = self._classifier.scores(np.ascontiguousarray(windows))
        except ValueError as error:
            raise EngineError(f"openWakeWord's classifier failed: {error}") from error
        for index in undecided(scores, self._decisive):
            start = int(index) * STEP_SAMPLES
            context = self._sound[start : start + self._history + CALL_SAMPLES]
            scores[index] = self._exact.score(context)
        self._scores.add(scores)
        left = self._filled - steps * STEP_SAMPLES
        self._sound[:left] = self._sound[self._filled - left : self._filled]
        self._filled = left


def undecided(scores: Array, decisive: Array) -> npt.NDArray[np.intp]:
    """Indices of scores that lie within the two ways' tolerance of a threshold."""
    near = np.abs(scores[:, np.newaxis] - decisive) < margin(decisive)
    return np.flatnonzero(near.any(axis=1))


def margin(scores: Array) -> Array:
    """How far the other way's score may lie from each of these."""
    return scores * (_FEW_ULP + TOLERANCE_LOG_ODDS * (1 - scores))


RATE_HZ = 16_000
OWN_THRESHOLD = 0.5
"""The package's own: a phrase is there when its score is greater."""
MODEL_LICENCE = "code Apache-2.0; model CC BY-NC-SA 4.0 (not for commercial use)"
FILE_LICENCE = "code Apache-2.0; feature models CC BY-NC-SA 4.0; the model file's own licence"
ENDINGS = (".tflite", ".onnx")
PATH = Setting(
    "path", SettingKind.CHOICE, "fast",
    "fast: features over long stretches; streaming: the package, 80 ms at a time, as a reference",
    choices=("fast", "streaming"), scores=True,
)  # fmt: skip
PHRASE = Setting("phrase", SettingKind.TEXT, "", "what a model file listens for, in words; by default the file's name")
_ALIKE = 2e-3
"""Embeddings are some tens in size; the two ways differ by 1e-4 in loud noise."""


class OpenWakeWordOffline:
    """Scores of one phrase, each 80 ms.

    model: alexa, hey_jarvis, hey_mycroft, hey_rhasspy, okay_nabu (spaces do as well), or a classifier file, .tflite or
    .onnx. PluginError when the package is missing or has no such model, InputError for a file that is no classifier.
    """

    settings: ClassVar[tuple[Setting, ...]] = (*OF_SCORES, PATH, PHRASE)

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        package = _package()
        self._path, packaged = _model_file(package, model)
        try:
            content = self._path.read_bytes()
        except OSError as error:
            raise InputError(f"{self._path} cannot be read: {error.strerror}") from error
        self._phrase = settings.get(PHRASE.name) or self._path.stem.replace("_", " ")
        folder = _models_folder(package)
        mel, embedding = ((folder / f"{name}.tflite").read_bytes() for name in ("melspectrogram", "embedding_model"))
        way = settings.get(PATH.name, PATH.default)
        made = f"pyopen-wakeword {version('pyopen-wakeword')}"
        theirs = package.OpenWakeWordFeatures.from_builtin()
        streaming = theirs, listening_classifier(self._path, content, theirs.lib)
        self._streaming: tuple[Any, Listens] | None = streaming
        self._fast: tuple[Features, Classifier, CallByCall] | None = None
        if way == "fast":
            classifier = load_classifier(self._path, content, theirs.lib)
            features, how = fastest_features(theirs, mel, embedding)
            made += f", {how}"
            self._fast = features, classifier, CallByCall(*streaming, classifier.windows)
        if way == "fast" or self._path.suffix.lower() == ".onnx":
            made += f", onnxruntime {version('onnxruntime')}"
        rule, point = spot_rule(settings, OWN_THRESHOLD, RATE_HZ)
        points = operating_points(OWN_THRESHOLD)
        self._decisive = np.array([rule.threshold, *(one.threshold for one in points)], np.float32)
        model_sha256 = hashlib.sha256(b"".join(hashlib.sha256(one).digest() for one in (mel, embedding, content)))
        self.facts = EngineFacts(
            EngineKind.WAKE,
            made,
            RATE_HZ,
            (self._phrase,),
            fingerprint(type(self), made, model_sha256.hexdigest(), {**settings, PATH.name: way}),
            licence=MODEL_LICENCE if packaged else FILE_LICENCE,
            lead_in_ms=number(settings, LEAD_IN),
            rule=rule,
            operating_point=point,
            operating_points=points,
            settings=tuple(sorted(settings.items())),
        )

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """The models that the package carries; PluginError when it is not installed."""
        return tuple(
            OfflineModel(name, (name.replace("_", " "),), MODEL_LICENCE, "packaged classifier")
            for name in sorted(one.value for one in _package().Model)
        )

    def begin(self) -> ScoreStream:
        """A state that has heard nothing but the 8 s of zeros that the package begins with."""
        if self._fast is not None:
            return FastScores(self._phrase, *self._fast, self._decisive)
        if self._streaming is not None:
            return StreamingScores(self._phrase, *self._streaming)
        raise PluginError("openWakeWord was closed", remedy="Load it again")

    def fast_parts(self) -> tuple[Features, Classifier, CallByCall]:
        """What the fast path is made of; PluginError where another one was asked for."""
        if self._fast is None:
            raise PluginError("openWakeWord was loaded without its fast path", remedy=f"Set {PATH.name}=fast")
        return self._fast

    def close(self) -> None:
        """Lets go of the models."""
        self._fast = self._streaming = None


def _package() -> ModuleType:
    try:
        import pyopen_wakeword
    except ImportError as error:
        raise PluginError(
            "the engine openwakeword is not installed",
            remedy="Install the extra that carries it (its models are CC BY-NC-SA): "
            "pip install 'voice-harness[openwakeword]'",
        ) from error
    return pyopen_wakeword


def _models_folder(package: ModuleType) -> Path:
    return Path(str(package.__file__)).parent / "models"


def _model_file(package: ModuleType, model: str) -> tuple[Path, bool]:
    """The file of a model, and whether the package carries it."""
    if Path(model).suffix.lower() in ENDINGS:
        if not Path(model).is_file():
            raise InputError(f"there is no model file {model}", remedy="Name a .tflite or .onnx file that is there")
        return Path(model), False
    key = model.strip().lower().replace(" ", "_")
    known = sorted(one.value for one in package.Model)
    if key not in known:
        raise PluginError(
            f"openWakeWord has no model {model!r}",
            remedy=f"{did_you_mean(key, known)}It has: {', '.join(known)}; "
            f"or name a file that ends in {' or '.join(ENDINGS)}",
        )
    return _models_folder(package) / f"{key}.tflite", True


def fastest_features(theirs: Any, mel: bytes, embedding: bytes) -> tuple[Features, str]:
    """The kernel's where it is built and right, else onnxruntime's; and what to call them."""
    try:
        return checked_features(theirs, mel, embedding, kernel=True), f"kernel {KERNEL_VERSION}"
    except (NoKernel, PluginError):
        return checked_features(theirs, mel, embedding, kernel=False), "no kernel"


def checked_features(theirs: Any, mel: bytes, embedding: bytes, *, kernel: bool) -> Features:
    """The fast features, once they have been seen to say what the package's say of a second of noise."""
    steps = 11
    noise = np.random.default_rng(steps).normal(0, 1000, steps * STEP_SAMPLES + CALL_SAMPLES - STEP_SAMPLES)
    samples = noise.astype(np.int16)
    theirs.reset()
    theirs.new_audio_samples = 0  # without the silence before, which takes a third of a second
    expected = np.concatenate([one.reshape(1, -1) for one in theirs.process_streaming(samples.tobytes())])
    try:
        ours = Features(mel, embedding, kernel=kernel)
        found = ours.embeddings(ours.frames(samples.astype(np.float32), steps))[: len(expected)]
    except ValueError as error:
        raise _unknown_features(f"its feature models are not those that the fast path knows: {error}") from error
    if found.shape != expected.shape or np.abs(found - expected).max() > _ALIKE:
        raise _unknown_features("the fast path's features differ from the package's")
    return ours


def _unknown_features(why: str) -> PluginError:
    return PluginError(f"openWakeWord: {why}", remedy=f"Set {PATH.name}=streaming, which runs the package itself")
