"""openWakeWord for offline evaluation: what can be loaded, and that every path says the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pymicro_wakeword
import pyopen_wakeword
import pytest

from harness.base.ports import OfflineEngine, ScoresSound
from harness.engines.offline_loading import load_engine, task_of
from harness.engines.openwakeword import (
    OWN_THRESHOLD,
    CallByCall,
    FastScores,
    OpenWakeWordOffline,
    checked_features,
    find_undecided,
    margin,
)
from harness.engines.openwakeword_classifier import PackageClassifier, load_classifier
from harness.engines.openwakeword_onnx import free_batch, model_proto, node
from harness.engines.settings import operating_points
from harness.model.errors import InputError, PluginError
from harness.model.offline import EngineKind, ScoreTrack, SpotRule
from harness.offline.one_file import spots_of_track
from tests.files import file_with
from tests.known import known
from tests.unit.engines.openwakeword_sounds import (
    RATE_HZ,
    SILENCE,
    SOUNDS,
    Sound,
    noise,
    pcm,
    scored,
    speech,
    speech_in_a_noise_that_stops,
)
from tests.unit.engines.wake_sound import spoken

pytestmark = pytest.mark.speech

MODELS = Path(pyopen_wakeword.__file__).parent / "models"
OTHER_ENGINES = next(Path(pymicro_wakeword.__file__).parent.rglob("*.tflite"))
INTERPRETER = pyopen_wakeword.OpenWakeWordFeatures.from_builtin().lib


def test_the_packaged_models_state_their_licence() -> None:
    models = OpenWakeWordOffline.models()
    assert [model.name for model in models] == ["alexa", "hey_jarvis", "hey_mycroft", "hey_rhasspy", "okay_nabu"]
    assert models[1].phrases == ("hey jarvis",)
    assert all("CC BY-NC-SA" in model.licence for model in models)


def test_a_task_loads_and_finds_its_phrase_where_it_was_said() -> None:
    phrase = pcm(spoken("alexa"))
    engine = load_engine(task_of("openwakeword:alexa", [("operating-point", "12")]))
    assert isinstance(engine, ScoresSound)
    facts = engine.facts
    assert (facts.kind, facts.rate_hz, facts.phrases, facts.operating_point) == (EngineKind.WAKE, 16000, ("alexa",), 12)
    assert facts.operating_points[9].threshold == 0.5
    assert facts.lead_in_ms == 1000
    assert "CC BY-NC-SA" in facts.licence
    assert facts.rule is not None
    (spot,) = spots_of_track(scored(engine, np.concatenate([SILENCE, phrase, SILENCE])), facts.rule)
    assert -0.3 < (spot.end - 16000 - len(phrase)) / 16000 < 0.5
    engine.close()
    engine.close()
    with pytest.raises(PluginError, match="closed"):
        engine.begin()


def test_a_bare_file_has_its_name_or_a_phrase_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "my_alexa.tflite"
    shutil.copy(MODELS / "alexa.tflite", file)
    assert OpenWakeWordOffline(str(file), {}).facts.phrases == ("my alexa",)
    engine = OpenWakeWordOffline(str(file), {"phrase": "computer"})
    assert engine.facts.phrases == ("computer",)
    assert "own licence" in engine.facts.licence
    sound = speech()[:40_000]
    assert np.array_equal(scored(engine, sound).scores, scored(OpenWakeWordOffline("alexa", {}), sound).scores)


def test_a_fingerprint_depends_on_model_and_path_only() -> None:
    def fingerprint(name: str, **settings: str) -> str:
        return OpenWakeWordOffline(name, settings).facts.fingerprint

    assert fingerprint("alexa") == fingerprint("alexa", path="fast", threshold="0.3", phrase="x")
    assert len({fingerprint("alexa"), fingerprint("okay_nabu"), fingerprint("alexa", path="streaming")}) == 3


@pytest.mark.parametrize(
    ("model_name", "error", "why"),
    [
        ("computer", PluginError, "hey_rhasspy"),
        ("gone.onnx", InputError, "the model file .* does not exist"),
        (
            str(next(Path(pymicro_wakeword.__file__).parent.rglob("*.tflite"))),
            InputError,
            "not an openWakeWord classifier",
        ),
    ],
    ids=["unknown", "not there", "of the other engine"],
)
def test_unsupported_model_is_refused(model_name: str, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        OpenWakeWordOffline(model_name, {})


@pytest.mark.parametrize("path", ["fast", "streaming"])
@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("empty.tflite", b"", "does not begin with"),
        ("cut.tflite", (MODELS / "alexa.tflite").read_bytes()[:5000], "outside the file"),
        ("noise.tflite", b"\x1c\0\0\0TFL3" + np.random.default_rng(1).bytes(4000), "outside the file|no graph"),
        ("features.tflite", (MODELS / "embedding_model.tflite").read_bytes(), r"shape \[1, 76, 32, 1\]"),
        ("empty.onnx", b"", "onnxruntime|one input"),
        ("noise.onnx", np.random.default_rng(2).bytes(4000), "onnxruntime|not an ONNX"),
    ],
)
def test_a_model_that_is_not_a_classifier_is_refused(
    path: str, name: str, content: bytes, why: str, tmp_path: Path
) -> None:
    file = file_with(tmp_path / name, content)
    with pytest.raises(InputError, match=why) as refused:
        OpenWakeWordOffline(str(file), {"path": path})
    assert str(file) in str(refused.value)


def alexa_ending_in(operator: int) -> bytes:
    """The packaged classifier with another operator in the place of its last, LOGISTIC (14)."""
    logistic = bytes([14, 0, 0, 0, 0, 0, 0, 14])
    content = (MODELS / "alexa.tflite").read_bytes()
    assert content.count(logistic) == 1
    return content.replace(logistic, bytes([operator, 0, 0, 0, 0, 0, 0, operator]))


@pytest.mark.parametrize("path", ["fast", "streaming"])
def test_a_file_that_the_interpreter_cannot_run_is_refused(path: str, tmp_path: Path) -> None:
    """The package itself crashes on a custom operator (32)."""
    file = file_with(tmp_path / "custom.tflite", alexa_ending_in(32))
    with pytest.raises(InputError, match="does not have all of its operators"):
        OpenWakeWordOffline(str(file), {"path": path})


def test_an_operator_that_is_not_translated_runs_in_the_package(tmp_path: Path) -> None:
    file = file_with(tmp_path / "tanh.tflite", alexa_ending_in(28))
    engine = OpenWakeWordOffline(str(file), {})
    assert isinstance(engine.fast_parts()[1], PackageClassifier)
    sound = speech()[:32_000]
    streaming = scored(OpenWakeWordOffline(str(file), {"path": "streaming"}), sound).scores
    assert np.abs(scored(engine, sound).scores - streaming).max() < 1e-4


def test_other_feature_models_are_not_taken_for_the_known_ones() -> None:
    theirs = pyopen_wakeword.OpenWakeWordFeatures.from_builtin()
    mel, embedding = ((MODELS / f"{name}.tflite").read_bytes() for name in ("melspectrogram", "embedding_model"))
    weights = np.frombuffer(mel, np.float32).copy()
    weights[(weights > 1e-3) & (weights < 0.02)] *= 1.5
    with pytest.raises(PluginError, match="path=streaming"):
        checked_features(theirs, weights.tobytes(), embedding, kernel=False)
    with pytest.raises(PluginError, match="path=streaming"):
        checked_features(theirs, embedding, mel, kernel=False)


def test_a_classifier_that_cannot_be_translated_runs_in_the_package() -> None:
    """The same scores window by window, which is what any other operator leads to."""
    file = MODELS / "hey_jarvis.tflite"
    translated = load_classifier(file, file.read_bytes(), INTERPRETER)
    package = PackageClassifier(file, 16)
    assert not isinstance(translated, PackageClassifier)
    windows = np.random.default_rng(3).normal(0, 15, (200, 16, 96)).astype(np.float32)
    ours, theirs = translated.scores(windows), package.scores(windows)
    assert np.abs(ours - theirs).max() < 1e-5
    assert theirs.min() < 0.1 < 0.9 < theirs.max(), "both branches of its choice have been taken"


def float32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_scores_near_a_threshold_equal_the_package_bit_for_bit() -> None:
    sound, reference = all_in_a_row(), streamed_in_a_row().scores
    assert np.array_equal(find_undecided(float32(0.3, 0.5 + 2e-5, 1e-4), float32(0.5, 1e-4)), [1, 2])
    features, classifier, exact = fast().fast_parts()
    places = [0, 1, 15, 30, 149, 150, len(reference) - 1]
    stream = FastScores("alexa", features, classifier, exact, reference[places])
    stream.feed(sound)
    scores = stream.take(flush=True)[0].scores
    assert np.array_equal(scores[places], reference[places])


def test_a_score_depends_on_its_own_calls_alone() -> None:
    sound = speech()[: 3 * 16_000]
    reference = scored(OpenWakeWordOffline("okay_nabu", {"path": "streaming"}), sound).scores
    exact: CallByCall = OpenWakeWordOffline("okay_nabu", {}).fast_parts()[2]
    start = 1280 * (exact.calls - 1)
    assert exact.score(sound[: start + 1760]) == pytest.approx(float(reference[exact.calls]), abs=0)


def onnx_alexa(batch: int | str) -> bytes:
    """The packaged classifier as an ONNX file, as openWakeWord's training writes them: with a batch of one."""
    from harness.engines.tflite_file import read_model

    (graph,) = read_model((MODELS / "alexa.tflite").read_bytes())
    nodes = [node("Flatten", ["input"], "flat", axis=1)]
    constants, last = {}, "flat"
    layers = [operator for operator in graph.operators if operator.code == 9]
    for number, operator in enumerate(layers):
        for name, index in zip("wb", operator.inputs[1:], strict=True):
            value = known(graph.tensors[index].values)
            constants[f"{name}{number}"] = value
        nodes.append(node("Gemm", [last, f"w{number}", f"b{number}"], f"g{number}", transB=1))
        nodes.append(node("Relu" if number + 1 < len(layers) else "Sigmoid", [f"g{number}"], f"a{number}"))
        last = f"a{number}"
    return model_proto(nodes, constants, {"input": (batch, 16, 96)}, {last: (batch, 1)})


@pytest.mark.parametrize("batch", [1, "batch"])
def test_an_onnx_file_scores_as_the_tflite_file_does(batch: int | str, tmp_path: Path) -> None:
    file = file_with(tmp_path / "alexa.onnx", onnx_alexa(batch))
    engine: OfflineEngine = load_engine(task_of(str(file)))
    assert isinstance(engine, ScoresSound)
    sound = speech()[: 3 * 16_000]
    fast = scored(engine, sound).scores
    expected = scored(OpenWakeWordOffline("alexa", {}), sound).scores
    assert expected.max() > 0.9
    assert np.abs(fast - expected).max() < 1e-5
    streaming = scored(OpenWakeWordOffline(str(file), {"path": "streaming"}), sound).scores
    assert np.abs(streaming - expected).max() < 1e-5


def test_an_onnx_file_that_only_takes_one_window_gets_one_at_a_time(tmp_path: Path) -> None:
    """It mixes what is in a batch, so that its batch cannot be opened."""
    nodes = [
        node("ReduceMean", ["input"], "mean", axes=(0, 1, 2), keepdims=0),
        node("Mul", ["mean", "tenth"], "small"),
        node("Sigmoid", ["small"], "score"),
    ]
    content = model_proto(nodes, {"tenth": np.array(0.1, np.float32)}, {"input": (1, 16, 96)}, {"score": ()})
    windows = np.random.default_rng(4).normal(size=(7, 16, 96)).astype(np.float32)
    scores = load_classifier(tmp_path / "mean.onnx", content, INTERPRETER).scores(windows)
    assert np.allclose(scores, 1 / (1 + np.exp(-windows.mean((1, 2)) / 10)), atol=1e-5)
    assert free_batch(content) != content


@pytest.mark.parametrize("shape", [(1, 16, 64), (1, 81, 96), (1, 96), ("batch", "windows", 96)])
def test_an_onnx_file_of_another_shape_is_refused(shape: tuple[int | str, ...], tmp_path: Path) -> None:
    file = file_with(
        tmp_path / "other.onnx",
        model_proto([node("Sigmoid", ["input"], "score")], {}, {"input": shape}, {"score": shape}),
    )
    with pytest.raises(InputError, match=r"other\.onnx is not an openWakeWord classifier"):
        OpenWakeWordOffline(str(file), {})


NAMES = ("alexa", "hey_jarvis", "hey_mycroft", "hey_rhasspy", "okay_nabu")


@cache
def fast(model: str = "alexa") -> OpenWakeWordOffline:
    return OpenWakeWordOffline(model, {})


@cache
def streaming(model: str = "alexa") -> OpenWakeWordOffline:
    return OpenWakeWordOffline(model, {"path": "streaming"})


def assert_alike(ours: ScoreTrack, theirs: ScoreTrack) -> None:
    """Scores within the stated tolerance, and the same spots at every operating point."""
    assert (ours.phrase, ours.first_end, ours.step) == (theirs.phrase, theirs.first_end, theirs.step)
    assert ours.scores.shape == theirs.scores.shape
    assert np.all(np.abs(ours.scores - theirs.scores) <= margin(theirs.scores))
    for point in operating_points(OWN_THRESHOLD):
        rule = SpotRule(point.threshold, RATE_HZ, 12_800)
        assert [spot.end for spot in spots_of_track(ours, rule)] == [spot.end for spot in spots_of_track(theirs, rule)]


def as_the_package_says(model: str, sound: Sound, first: int, step: int) -> list[list[float]]:
    """The package itself, fed a piece of one size and then pieces of another; its scores piece by piece."""
    features = pyopen_wakeword.OpenWakeWordFeatures.from_builtin()
    classifier = pyopen_wakeword.OpenWakeWord.from_builtin(pyopen_wakeword.Model(model))
    ends = [first, *range(first + step, len(sound) + 1, step)]
    return [
        [
            score
            for embeddings in features.process_streaming(sound[start:end].tobytes())
            for score in classifier.process_streaming(embeddings)
        ]
        for start, end in zip([0, *ends], ends, strict=False)
    ]


def all_in_a_row() -> Sound:
    return np.concatenate([sound() for sound in SOUNDS])


@cache
def streamed_in_a_row() -> ScoreTrack:
    return scored(streaming(), all_in_a_row())


@pytest.mark.parametrize(
    "sound",
    [speech_in_a_noise_that_stops, *(pytest.param(sound, marks=pytest.mark.soak) for sound in SOUNDS)],
    ids=lambda sound: sound.__name__,
)
def test_fast_and_streaming_score_alike(sound: Callable[[], Sound]) -> None:
    samples = sound()
    assert_alike(scored(fast(), samples), scored(streaming(), samples))


def test_fast_and_streaming_score_all_sounds_in_a_row_alike() -> None:
    assert_alike(scored(fast(), all_in_a_row()), streamed_in_a_row())


@pytest.mark.parametrize("model", [NAMES[-1], *(pytest.param(model, marks=pytest.mark.soak) for model in NAMES[1:-1])])
def test_every_packaged_model_scores_alike(model: str) -> None:
    samples = speech()[: 5 * RATE_HZ // 2]
    assert_alike(scored(fast(model), samples), scored(streaming(model), samples))


def test_the_streaming_path_is_the_package_in_chunks_of_80_ms() -> None:
    samples = speech()[: 3 * RATE_HZ]
    track = scored(streaming(), samples)
    chunks = as_the_package_says("alexa", samples, 480, 1280)
    assert [len(scores) for scores in chunks[1:]] == [1] * (len(chunks) - 1), "a score with each chunk, at its end"
    assert track.scores.tolist() == [scores[-1] for scores in chunks]
    assert (track.first_end, track.step) == (480, 1280)


def test_chunks_aligned_with_the_sound_give_the_same_scores_50_ms_later() -> None:
    samples = speech()[: 2 * RATE_HZ]
    track = scored(fast(), samples)
    chunks = as_the_package_says("alexa", samples, 1280, 1280)
    last_scores = [scores[-1] for scores in chunks]
    assert np.all(np.abs(track.scores[: len(last_scores)] - last_scores) <= margin(np.array(last_scores)))
    assert len(track.scores) - len(last_scores) in (0, 1)


@pytest.mark.parametrize(
    ("engine", "seconds", "pieces"),
    [
        (fast, 4, (1,)),
        (fast, 18, (160,)),
        (fast, 18, (1280,)),
        (fast, 18, (1279, 3, 0, 4001)),
        (fast, 18, (70_000, 1)),
        (streaming, 2, (333, 0, 4001)),
    ],
)
def test_splitting_the_sound_does_not_change_scores(
    engine: Callable[[], OpenWakeWordOffline], seconds: int, pieces: tuple[int, ...]
) -> None:
    samples = np.tile(speech(), 3)[: seconds * RATE_HZ]
    whole, cut = scored(engine(), samples), scored(engine(), samples, pieces)
    assert np.array_equal(whole.scores, cut.scores)


@pytest.mark.parametrize("length", [0, 1, 479, 480, 481, 1279, 1280, 1759, 1760, 1761, 3040])
def test_a_short_file_has_one_score_per_complete_call(length: int) -> None:
    samples = noise()[:length]
    track = scored(fast(), samples, (10_000,)) if length else fast().begin().take(flush=True)[0]
    assert len(track.scores) == (0 if length < 480 else (length - 480) // 1280 + 1)
    if length in (479, 480, 1760):
        assert_alike(track, scored(streaming(), samples))


def test_a_stretch_goes_on_where_the_last_one_ended() -> None:
    """Sound about the edge of a stretch, 12 s, is scored as where it lies in the midst of one."""
    samples = np.concatenate([np.zeros(11 * RATE_HZ, np.int16), speech()])
    early = scored(fast(), samples[3 * 12_800 :]).scores
    late = scored(fast(), samples).scores[30:]
    assert np.all(np.abs(early[40:] - late[40:]) <= margin(late[40:]))
    assert early.max() > 0.9


def test_silence_stays_silence() -> None:
    scores = scored(fast(), np.zeros(20 * RATE_HZ, np.int16)).scores
    assert np.ptp(scores) < 1e-6
    assert scores.max() < 0.01


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("model", NAMES)
def test_both_paths_score_an_hour_alike(model: str) -> None:
    rng = np.random.default_rng(7)
    parts: list[Sound] = []
    while sum(map(len, parts)) < 3600 * RATE_HZ:
        clip = SOUNDS[rng.integers(len(SOUNDS))]()
        gain = 10 ** rng.uniform(-2, 0.5)
        parts.append(np.clip(clip * gain, -32768, 32767).astype(np.int16)[: rng.integers(1, len(clip))])
    samples = np.concatenate(parts)
    assert_alike(scored(fast(model), samples), scored(streaming(model), samples, (1 << 19,)))
