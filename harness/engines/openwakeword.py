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

from harness.base.ports import ScoreStream
from harness.engines.kernel_library import NoKernel
from harness.engines.offline_loading import fingerprint
from harness.engines.openwakeword_classifier import Classifier, Listens, listening_classifier, load_classifier
from harness.engines.openwakeword_features import CALL_SAMPLES, STEP_SAMPLES, Features
from harness.engines.openwakeword_kernel.native import VERSION as KERNEL_VERSION
from harness.engines.openwakeword_streams import CallByCall, FastScores, StreamingScores
from harness.engines.settings import LEAD_IN, OF_SCORES, number, operating_points, spot_rule
from harness.model.errors import InputError, PluginError, did_you_mean
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, Setting, SettingKind

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
