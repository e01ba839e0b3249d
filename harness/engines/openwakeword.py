"""The wake engine openWakeWord for offline evaluation: the models of the package pyopen-wakeword, and model files.

Code: Apache-2.0. Packaged models: CC BY-NC-SA 4.0, so the extra is separate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from harness.base.plugins import import_extra
from harness.base.ports import ScoreStream
from harness.engines.offline_loading import NoKernel, fingerprint
from harness.engines.openwakeword_classifier import (
    EMBEDDING_SIZE,
    Classifier,
    StreamingClassifier,
    listening_classifier,
    load_classifier,
)
from harness.engines.openwakeword_kernel.native import VERSION as KERNEL_VERSION
from harness.engines.openwakeword_kernel.native import KernelEmbedding
from harness.engines.openwakeword_onnx import Array, OnnxModel, embedding_model, model_proto, node
from harness.engines.settings import LEAD_IN, OF_SCORES, number, operating_points, spot_rule
from harness.engines.tflite_file import Graph, Op, read_model
from harness.model.errors import EngineError, InputError, PluginError, did_you_mean
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, ScoreTrack, Setting, SettingKind

STEP_SAMPLES = 1280
"""Number of samples from one score to the next: 80 ms."""
CALL_SAMPLES = 1760
"""Number of samples that the package passes to its mel model at a time."""
FRAMES_PER_STEP = 8
"""Number of mel frames, of 10 ms each, from one score to the next."""
EMBEDDING_FRAMES = 76
"""Number of mel frames that the package's embedding model takes."""
SHARED_FRAMES = EMBEDDING_FRAMES - FRAMES_PER_STEP
"""Number of frames that an embedding shares with the previous one."""
_HOP_SAMPLES = 160
"""10 ms: from one mel frame to the next."""
_EMBEDDING_LAG_FRAMES = 4
"""The package computes its first embedding at its tenth call. Four frames remain from then on."""


class Features:
    """Mel frames and embeddings of the package's two feature models. Raises ValueError for other feature models.

    The package requests overlapping frames and computes the same sums again. Here each is computed once over a stretch.
    The clamp still applies to each call: no value is more than 80 dB below the loudest of the call's 8 frames.

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
        """The embedding of silence, shape (1, size)."""

    def frames(self, samples: Array, steps: int) -> Array:
        """Frames of this many calls, shape (8 · steps, mels). samples: shape (1280 · steps + 480,), as 16-bit
        values."""
        return self._mels(samples, steps)

    def embeddings(self, frames: Array) -> Array:
        """Embeddings of 76 frames, one every 8 frames, shape (windows, size). frames: shape (68 + 8 · windows,
        mels)."""
        return self._embedding(frames)


class OnnxEmbedding:
    """Embeddings by onnxruntime."""

    def __init__(self, translated: bytes) -> None:
        self._model = OnnxModel(translated)

    def __call__(self, frames: Array) -> Array:
        """The embeddings of frames: shape (rows, mels) → (embeddings, size)."""
        embeddings = self._model(mels=frames[np.newaxis, np.newaxis])
        return np.ascontiguousarray(embeddings[0, :, :, 0].T)


class EmbeddingState:
    """State between stretches of a sound: the frames with which the next embeddings begin.

    The package fills its buffer with 8 s of zeros first, so a sound begins after silence.
    """

    def __init__(self, features: Features) -> None:
        self._features = features
        self._frames = features.silent_frames[: SHARED_FRAMES + _EMBEDDING_LAG_FRAMES]

    def embeddings(self, samples: Array, steps: int) -> Array:
        """The embeddings of this many further calls of the package, shape (steps, size)."""
        frames = np.concatenate([self._frames, self._features.frames(samples, steps)])
        self._frames = frames[FRAMES_PER_STEP * steps :]
        return self._features.embeddings(frames[: SHARED_FRAMES + FRAMES_PER_STEP * steps])


class _MelFrames:
    """The package's mel model as an ONNX model over many frames at once.

    Its transforms are even and odd about the middle of a window. So each sample is added to, or subtracted from, its
    mirror image first, which halves the products.
    """

    def __init__(self, graph: Graph) -> None:
        waves, bands, least, scale, range_db = _mel_constants(graph)
        middle = waves[0].shape[1] // 2
        cosine, sine = _even_and_odd_halves(waves, middle)
        used_bins = np.flatnonzero(bands.any(axis=1))
        taps = np.flatnonzero(np.abs(cosine).max(0) + np.abs(sine).max(0))[-1] + 1
        self._middle, self._taps = middle, int(taps)
        constants: dict[str, npt.NDArray[np.generic]] = {
            "cosine": np.ascontiguousarray(cosine[used_bins, :taps].T),
            "sine": np.ascontiguousarray(sine[used_bins, :taps].T),
            "bands": np.ascontiguousarray(bands[used_bins]),
            "least": least, "range": range_db, "ten": np.array(10, np.float32), "two": np.array(2, np.float32),
            "calls": np.array([-1, FRAMES_PER_STEP * bands.shape[1]]), "frames": np.array([-1, bands.shape[1]]),
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
        for index, factor in enumerate(scale):
            constants[f"scale{index}"] = factor
            nodes.append(node("Mul", [f"log{index}", f"scale{index}"], f"log{index + 1}"))
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
        self._model = OnnxModel(model_proto(nodes, constants, inputs, {"mels": ("frames", bands.shape[1])}))

    def __call__(self, samples: Array, steps: int) -> Array:
        """The frames of this many calls, shape (8 · steps, mels). samples: as of `Features.frames`."""
        # Overlapping views of the samples after and before the middle of each window; nothing is copied here.
        shape = (FRAMES_PER_STEP * steps, self._taps)
        size = samples.itemsize
        following = np.lib.stride_tricks.as_strided(
            samples[self._middle :], shape, (_HOP_SAMPLES * size, size), writeable=False
        )
        preceding = np.lib.stride_tricks.as_strided(
            samples[self._middle :], shape, (_HOP_SAMPLES * size, -size), writeable=False
        )
        return self._model(even=following + preceding, odd=following - preceding)


def _even_and_odd_halves(waves: Sequence[Array], middle: int) -> tuple[Array, Array]:
    """The two transforms' weights from the middle on, shape (bins, middle), to be applied to sums and differences of
    mirrored samples.

    Raises ValueError if the transforms are not even and odd.
    """
    halves: dict[int, Array] = {}
    for wave in waves:
        right, left = wave[:, middle + 1 :], wave[:, middle - 1 : 0 : -1]
        sign = 1 if np.abs(right - left).max() < np.abs(right + left).max() else -1
        if np.abs(right - sign * left).max() > 1e-5 or np.abs(wave[:, 0]).max() > 0:
            raise ValueError("its transform is not even or odd about the middle of its window")
        centre = wave[:, middle : middle + 1] / 2 if sign == 1 else np.zeros_like(wave[:, :1])
        halves[sign] = np.concatenate([centre, (right + sign * left) / 2], axis=1, dtype=np.float32)
    if len(halves) != 2:
        raise ValueError("its transform does not consist of an even and an odd part")
    return halves[1], halves[-1]


def _mel_constants(graph: Graph) -> tuple[list[Array], Array, Array, list[Array], Array]:
    """(transforms, mel bands, least energy, factors after the logarithm, range in dB) of the mel model.

    Raises ValueError for another model.
    """
    waves: list[Array] = []
    constants: dict[int, list[Array]] = {Op.MUL: [], Op.MAXIMUM: [], Op.SUB: [], Op.BATCH_MATMUL: []}
    for operator in graph.operators:
        if operator.code == Op.CONV_2D:
            if (operator.integer(1), operator.integer(2)) not in ((_HOP_SAMPLES, 1), (1, _HOP_SAMPLES)):
                raise ValueError("its frames are not 160 samples apart")
            value = graph.tensors[operator.inputs[1]].values
            if value is not None:
                waves.append(np.asarray(value, np.float32)[:, 0, :, 0])
        elif operator.code in constants:
            value = graph.tensors[operator.inputs[1]].values
            if value is not None:
                constants[operator.code].append(np.asarray(value, np.float32))
    sizes = [len(constants[code]) for code in (Op.BATCH_MATMUL, Op.MAXIMUM, Op.SUB)]
    if len(waves) != 2 or sizes != [1, 1, 1]:
        raise ValueError("it is not the expected mel model")
    return waves, constants[Op.BATCH_MATMUL][0], constants[Op.MAXIMUM][0], constants[Op.MUL], constants[Op.SUB][0]


FIRST_END = CALL_SAMPLES - STEP_SAMPLES
"""The sample at which the first score is known."""
STRETCH_STEPS = 150
"""Number of steps that are computed at once (12 s), so that their convolutions fit into a core's cache."""
TOLERANCE_LOG_ODDS = 1e-3
"""Tolerance between the two paths' scores, in log odds: more than ten times the measured difference."""
_FEW_ULP = 3e-7
"""Tolerance relative to the score, in addition: a float32 near 1 has no finer resolution."""
_CALLS_BEFORE_AN_EMBEDDING = 9
"""The package computes its first embedding at its tenth call."""


class _Scores:
    """Scores that have not been taken yet."""

    def __init__(self, phrase: str) -> None:
        self._phrase = phrase
        self._parts: list[Array] = []
        self._taken_scores = 0

    def add(self, scores: Array) -> None:
        self._parts.append(scores)

    def take(self) -> tuple[ScoreTrack, ...]:
        scores = np.concatenate(self._parts) if self._parts else np.zeros(0, np.float32)
        track = ScoreTrack(self._phrase, scores, FIRST_END + self._taken_scores * STEP_SAMPLES, STEP_SAMPLES)
        self._parts = []
        self._taken_scores += len(scores)
        return (track,)


class StreamingScores:
    """A sound through the package, 80 ms at a time. features: the package's OpenWakeWordFeatures."""

    def __init__(self, phrase: str, features: Any, classifier: StreamingClassifier) -> None:
        self._scores = _Scores(phrase)
        self._features, self._classifier = features, classifier
        features.reset()
        classifier.reset()
        self._rest = np.zeros(0, np.int16)
        self._chunk_samples = FIRST_END

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        sound = np.concatenate([self._rest, samples])
        position = 0
        while len(sound) - position >= self._chunk_samples:
            self._score_chunk(sound[position : position + self._chunk_samples])
            position += self._chunk_samples
            self._chunk_samples = STEP_SAMPLES
        self._rest = sound[position:].copy()

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        """The rest of a chunk at the end completes no score; the package leaves it too."""
        return self._scores.take()

    def _score_chunk(self, samples: npt.NDArray[np.int16]) -> None:
        scores = [
            score
            for embeddings in self._features.process_streaming(samples.tobytes())
            for score in self._classifier.process_streaming(embeddings)
        ]
        self._scores.add(np.asarray(scores[-1:], np.float32))  # none before the package has enough embeddings


class CallByCall:
    """Single scores as the package computes them, from only the sound that they depend on."""

    def __init__(self, features: Any, classifier: StreamingClassifier, windows: int) -> None:
        self._features, self._classifier = features, classifier
        self.calls = windows + _CALLS_BEFORE_AN_EMBEDDING
        """Calls of the mel model that a score depends on, including its own."""

    def score(self, samples: npt.NDArray[np.int16]) -> float:
        """The score of the last of `calls` calls. samples: shape (1280 · calls + 480,)."""
        self._features.reset()
        self._classifier.reset()
        self._features.new_audio_samples = 0  # the samples contain what lies before, also silence
        scores = [
            score
            for embeddings in self._features.process_streaming(samples.tobytes())
            for score in self._classifier.process_streaming(embeddings)
        ]
        (score,) = scores  # the package completes exactly one
        return score


class FastScores:
    """A sound in stretches that begin at the same samples however it is fed, so that the scores are the same.

    decisive_thresholds: those at which detections begin. If a score is so close to one of them that the two paths could
    differ about it, `exact` computes it.
    """

    def __init__(
        self, phrase: str, features: Features, classifier: Classifier, exact: CallByCall, decisive_thresholds: Array
    ) -> None:
        self._scores = _Scores(phrase)
        self._classifier = classifier
        self._exact, self._decisive_thresholds = exact, decisive_thresholds
        self._embedding_state = EmbeddingState(features)
        # Zeros precede the sound. The first call begins 1280 samples before it, and all earlier windows have the
        # embedding of silence.
        self._context_samples = (exact.calls - 1) * STEP_SAMPLES
        self._samples = np.zeros(self._context_samples + STRETCH_STEPS * STEP_SAMPLES + FIRST_END, np.int16)
        self._filled = self._context_samples + STEP_SAMPLES
        self._embeddings = np.repeat(features.silent_embedding, classifier.windows - 1, axis=0)

    def feed(self, samples: npt.NDArray[np.int16]) -> None:
        position = 0
        while position < len(samples):
            part = samples[position : position + len(self._samples) - self._filled]
            self._samples[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            position += len(part)
            if self._filled == len(self._samples):
                self._score_stretch(STRETCH_STEPS)

    def take(self, *, flush: bool) -> tuple[ScoreTrack, ...]:
        """Scores of whole stretches only, since the sound continues."""
        steps = (self._filled - self._context_samples - FIRST_END) // STEP_SAMPLES
        if flush and steps:
            self._score_stretch(steps)
        return self._scores.take()

    def _score_stretch(self, steps: int) -> None:
        """Scores the next steps. What later scores depend on moves to the beginning of the buffer."""
        end = self._context_samples + steps * STEP_SAMPLES + FIRST_END
        samples = self._samples[self._context_samples : end].astype(np.float32)
        embeddings = np.concatenate([self._embeddings, self._embedding_state.embeddings(samples, steps)])
        self._embeddings = embeddings[steps:]
        shape = (self._classifier.windows, EMBEDDING_SIZE)
        windows = np.lib.stride_tricks.sliding_window_view(embeddings, shape)[:, 0]
        try:
            scores = self._classifier.scores(np.ascontiguousarray(windows))
        except ValueError as error:
            raise EngineError(f"openWakeWord's classifier failed: {error}") from error
        for index in find_undecided(scores, self._decisive_thresholds):
            start = int(index) * STEP_SAMPLES
            context = self._samples[start : start + self._context_samples + CALL_SAMPLES]
            scores[index] = self._exact.score(context)
        self._scores.add(scores)
        rest_samples = self._filled - steps * STEP_SAMPLES
        self._samples[:rest_samples] = self._samples[self._filled - rest_samples : self._filled]
        self._filled = rest_samples


def find_undecided(scores: Array, decisive_thresholds: Array) -> npt.NDArray[np.intp]:
    """Indices of scores within the two paths' tolerance of a threshold."""
    is_near = np.abs(scores[:, np.newaxis] - decisive_thresholds) < margin(decisive_thresholds)
    return np.flatnonzero(is_near.any(axis=1))


def margin(scores: Array) -> Array:
    """Largest difference allowed between the two paths for each of these scores."""
    return scores * (_FEW_ULP + TOLERANCE_LOG_ODDS * (1 - scores))


RATE_HZ = 16_000  # What the package's models take.
OWN_THRESHOLD = 0.5
"""The package's own threshold: a score above it is a detection."""
MODEL_LICENCE = "code Apache-2.0; model CC BY-NC-SA 4.0 (not for commercial use)"
FILE_LICENCE = "code Apache-2.0, feature models CC BY-NC-SA 4.0; the model file's own licence"
ENDINGS = (".tflite", ".onnx")
PATH = Setting(
    "path", SettingKind.CHOICE, "fast",
    "fast: features over long blocks; streaming: the package itself, 80 ms at a time, as a reference",
    choices=("fast", "streaming"), scores=True,
)  # fmt: skip
PHRASE = Setting("phrase", SettingKind.TEXT, "", "the phrase that a model file detects (default: the file's name)")
_ALIKE = 2e-3
"""Tolerance between embeddings of the two paths. Their values are some tens; they differ by 1e-4 in loud noise."""


class OpenWakeWordOffline:
    """Scores of one phrase, one every 80 ms.

    model: alexa, hey_jarvis, hey_mycroft, hey_rhasspy, okay_nabu (or with spaces), or a classifier file, .tflite or
    .onnx. Raises PluginError if the package is missing or lacks the model. Raises InputError for a file that is not a
    classifier.
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
        path_choice = settings.get(PATH.name, PATH.default)
        engine_version = f"pyopen-wakeword {version('pyopen-wakeword')}"
        package_features = package.OpenWakeWordFeatures.from_builtin()
        streaming = package_features, listening_classifier(self._path, content, package_features.lib)
        self._streaming: tuple[Any, StreamingClassifier] | None = streaming
        self._fast_parts: tuple[Features, Classifier, CallByCall] | None = None
        if path_choice == "fast":
            classifier = load_classifier(self._path, content, package_features.lib)
            features, description = fastest_features(package_features, mel, embedding)
            engine_version += f", {description}"
            self._fast_parts = features, classifier, CallByCall(*streaming, classifier.windows)
        if path_choice == "fast" or self._path.suffix.lower() == ".onnx":
            engine_version += f", onnxruntime {version('onnxruntime')}"
        rule, point = spot_rule(settings, OWN_THRESHOLD, RATE_HZ)
        points = operating_points(OWN_THRESHOLD)
        self._decisive_thresholds = np.array(
            [rule.threshold, *(operating_point.threshold for operating_point in points)], np.float32
        )
        model_sha256 = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in (mel, embedding, content)))
        self.facts = EngineFacts(
            EngineKind.WAKE,
            engine_version,
            RATE_HZ,
            (self._phrase,),
            fingerprint(type(self), engine_version, model_sha256.hexdigest(), {**settings, PATH.name: path_choice}),
            licence=MODEL_LICENCE if packaged else FILE_LICENCE,
            lead_in_ms=number(settings, LEAD_IN),
            rule=rule,
            operating_point=point,
            operating_points=points,
            settings=tuple(sorted(settings.items())),
        )

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """The packaged models. Raises PluginError if the package is not installed."""
        return tuple(
            OfflineModel(name, (name.replace("_", " "),), MODEL_LICENCE, "packaged classifier")
            for name in sorted(packaged_model.value for packaged_model in _package().Model)
        )

    def begin(self) -> ScoreStream:
        """A fresh state, after the 8 s of zeros with which the package begins."""
        if self._fast_parts is not None:
            return FastScores(self._phrase, *self._fast_parts, self._decisive_thresholds)
        if self._streaming is not None:
            return StreamingScores(self._phrase, *self._streaming)
        raise PluginError("openWakeWord is closed", remedy="Load the engine again")

    def fast_parts(self) -> tuple[Features, Classifier, CallByCall]:
        """The models of the fast path. Raises PluginError if another path was set."""
        if self._fast_parts is None:
            raise PluginError("openWakeWord was loaded without its fast path", remedy=f"Set {PATH.name}=fast")
        return self._fast_parts

    def close(self) -> None:
        """Frees the models."""
        self._fast_parts = self._streaming = None


def _package() -> Any:
    note = " (its models are CC BY-NC-SA)"
    return import_extra("pyopen_wakeword", "the engine openwakeword", "openwakeword", note)


def _models_folder(package: Any) -> Path:
    return Path(str(package.__file__)).parent / "models"


def _model_file(package: Any, name: str) -> tuple[Path, bool]:
    """The file of a model, and whether it is packaged."""
    if Path(name).suffix.lower() in ENDINGS:
        if not Path(name).is_file():
            raise InputError(
                f"the model file {name} does not exist", remedy="Check the path; it must name a .tflite or .onnx file"
            )
        return Path(name), False
    key = name.strip().lower().replace(" ", "_")
    model_names = sorted(packaged_model.value for packaged_model in package.Model)
    if key not in model_names:
        problem = f"openWakeWord has no model {name!r}" if name else "no openWakeWord model is given"
        raise PluginError(
            problem,
            remedy=f"{did_you_mean(key, model_names)}Use one of: {', '.join(model_names)}; "
            f"or pass a file that ends in {' or '.join(ENDINGS)}",
        )
    return _models_folder(package) / f"{key}.tflite", True


def fastest_features(package_features: Any, mel: bytes, embedding: bytes) -> tuple[Features, str]:
    """The kernel's features if it is built and gives right results, else onnxruntime's; and the name of the path."""
    try:
        return checked_features(package_features, mel, embedding, kernel=True), f"kernel {KERNEL_VERSION}"
    except (NoKernel, PluginError):
        return checked_features(package_features, mel, embedding, kernel=False), "no kernel"


def checked_features(package_features: Any, mel: bytes, embedding: bytes, *, kernel: bool) -> Features:
    """The fast features, once they equal the package's for a second of noise."""
    steps = 11  # Two embeddings: the package computes the first at its tenth call.
    noise = np.random.default_rng(steps).normal(0, 1000, steps * STEP_SAMPLES + CALL_SAMPLES - STEP_SAMPLES)
    samples = noise.astype(np.int16)
    package_features.reset()
    package_features.new_audio_samples = 0  # without the preceding silence, which takes a third of a second
    expected = np.concatenate(
        [vector.reshape(1, -1) for vector in package_features.process_streaming(samples.tobytes())]
    )
    try:
        own_features = Features(mel, embedding, kernel=kernel)
        embeddings = own_features.embeddings(own_features.frames(samples.astype(np.float32), steps))[: len(expected)]
    except ValueError as error:
        raise _unknown_features(f"the fast path does not support its feature models: {error}") from error
    if embeddings.shape != expected.shape or np.abs(embeddings - expected).max() > _ALIKE:
        raise _unknown_features("the fast path's features differ from the package's")
    return own_features


def _unknown_features(why: str) -> PluginError:
    return PluginError(f"openWakeWord: {why}", remedy=f"Use -s {PATH.name}=streaming, which runs the package itself")
