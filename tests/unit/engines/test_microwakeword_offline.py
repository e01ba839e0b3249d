from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import harness
from harness.base.ports import ScoresSound
from harness.engines.microwakeword import MicroWakeWord
from harness.engines.microwakeword_kernel.native import Listener, library
from harness.engines.microwakeword_kernel.network import LayerKind, UnsupportedModel, network_of
from harness.engines.microwakeword_offline import MicroWakeWordOffline, find_packaged, package_answers
from harness.engines.offline_loading import load_engine, task_of
from harness.engines.tflite_file import InvalidModelFile, Op, read_model, with_output
from harness.model.errors import InputError, PluginError
from harness.model.offline import ScoreTrack
from harness.offline.one_file import spots_of_track
from tests.files import file_with
from tests.known import known
from tests.unit.engines.wake_sound import spoken, varied

pytestmark = pytest.mark.speech
MODELS = ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")


@pytest.fixture(scope="module")
def sound() -> np.ndarray:
    return varied()


def scored(engine: MicroWakeWordOffline, *pieces: np.ndarray) -> ScoreTrack:
    stream = engine.begin()
    for piece in pieces:
        stream.feed(piece)
    (track,) = stream.take(flush=True)
    return track


def streaming(model: str, **settings: str) -> MicroWakeWordOffline:
    return MicroWakeWordOffline(model, {"path": "streaming", **{k.replace("_", "-"): v for k, v in settings.items()}})


@pytest.mark.parametrize("model", MODELS)
def test_the_fast_path_scores_as_the_package_does_however_the_sound_is_cut(model: str, sound: np.ndarray) -> None:
    fast = MicroWakeWordOffline(model, {})
    assert isinstance(fast, ScoresSound)
    assert dict(fast.facts.settings)["path"] == "fast", dict(fast.facts.settings)
    expected = scored(streaming(model), sound)
    assert len(np.unique(expected.scores)) > 20
    assert expected.scores.max() > 0.8
    rng = np.random.default_rng(2)
    cuts = np.sort(rng.integers(0, len(sound), 200))
    for pieces in ([sound], np.split(sound, cuts), np.split(sound, [1, 2, 479, 480, 800, 801])):
        track = scored(fast, *pieces)
        assert track.scores.dtype == np.float32
        np.testing.assert_array_equal(track.scores, expected.scores)
        assert (track.first_end, track.step, track.phrase) == (800, 480, model.replace("_", " "))


@pytest.mark.parametrize("model", MODELS)
def test_every_form_of_the_kernel_computes_the_same(model: str, sound: np.ndarray) -> None:
    kernel = library()
    expected = scored(MicroWakeWordOffline(model, {}), sound).scores
    try:
        for level in (0, 1):
            kernel.vh_limit(level)
            np.testing.assert_array_equal(scored(MicroWakeWordOffline(model, {}), sound).scores, expected)
    finally:
        kernel.vh_limit(2)


def test_offline_spots_match_the_hits_of_the_live_engine(sound: np.ndarray) -> None:
    live = MicroWakeWord("alexa").feed(sound)
    engine = MicroWakeWordOffline("alexa", {})
    offline_spots = spots_of_track(scored(engine, sound), known(engine.facts.rule))
    assert len(live) >= 2
    assert [(spot.end, np.float32(spot.score)) for spot in offline_spots] == [
        (hit.sample, np.float32(hit.score)) for hit in live
    ]


@pytest.mark.parametrize("samples", [0, 1, 159, 479, 480, 799, 800, 801, 1279, 1280, 3200, 3201])
def test_a_file_of_less_than_a_step_has_no_score(samples: int, sound: np.ndarray) -> None:
    head = sound[:samples]
    track = scored(MicroWakeWordOffline("alexa", {}), head)
    np.testing.assert_array_equal(track.scores, scored(streaming("alexa"), head).scores)
    assert len(track.scores) == max(0, (samples - 320) // 480)


def test_scores_are_read_in_consecutive_parts(sound: np.ndarray) -> None:
    engine = MicroWakeWordOffline("okay_nabu", {})
    whole = scored(engine, sound)
    stream = engine.begin()
    position = whole.first_end
    parts = []
    for piece in np.array_split(sound, 7):
        stream.feed(piece)
        (part,) = stream.take(flush=False)
        assert part.first_end == position
        position += len(part.scores) * part.step
        parts.append(part.scores)
    np.testing.assert_array_equal(np.concatenate(parts), whole.scores)


def test_begin_resets_the_previous_state(sound: np.ndarray) -> None:
    engine = MicroWakeWordOffline("alexa", {})
    expected = scored(engine, sound[:50_000]).scores
    before = engine.begin()
    before.feed(sound[60_000:100_123])
    np.testing.assert_array_equal(scored(engine, sound[:50_000]).scores, expected)
    with pytest.raises(ValueError, match="ended"):
        before.feed(sound)
    engine.close()
    engine.close()


@pytest.mark.parametrize("window", ["1", "2", "10", "400"])
def test_a_score_is_the_mean_of_a_sliding_window(window: str, sound: np.ndarray) -> None:
    single = scored(MicroWakeWordOffline("alexa", {"sliding-window": "1"}), sound).scores.astype(float)
    track = scored(MicroWakeWordOffline("alexa", {"sliding-window": window}), *np.array_split(sound, 900))
    n = int(window)
    means = [np.float32(np.mean(single[i - n + 1 : i + 1])) if i >= n - 1 else 0 for i in range(len(single))]
    np.testing.assert_array_equal(track.scores, np.array(means, np.float32))


def test_the_fingerprint_covers_everything_that_affects_scores() -> None:
    facts = MicroWakeWordOffline("alexa", {}).facts
    assert (
        MicroWakeWordOffline("alexa", {"path": "streaming", "threshold": "0.2"}).facts.fingerprint == facts.fingerprint
    )
    assert MicroWakeWordOffline("alexa", {"sliding-window": "5"}).facts.fingerprint == facts.fingerprint
    assert MicroWakeWordOffline("alexa", {"sliding-window": "6"}).facts.fingerprint != facts.fingerprint
    assert MicroWakeWordOffline("okay_nabu", {}).facts.fingerprint != facts.fingerprint
    assert (facts.operating_point, facts.lead_in_ms, facts.licence, facts.rate_hz) == (10, 1000.0, "Apache-2.0", 16000)
    assert facts.operating_points[9].threshold == 0.9


def test_a_model_file_with_and_without_its_manifest(tmp_path: Path, sound: np.ndarray) -> None:
    theirs = find_packaged()["alexa"].path
    bare = tmp_path / "my_word.tflite"
    shutil.copy(theirs, bare)
    engine = load_engine(task_of(str(bare)))
    assert engine.facts.phrases == ("my word",)
    assert known(engine.facts.rule).threshold == 0.5
    settings = {"wake-word": "alexa", "probability-cutoff": "0.9", "sliding-window": "5"}
    other_engine = MicroWakeWordOffline(str(bare), settings)
    assert other_engine.facts.rule == MicroWakeWordOffline("alexa", {}).facts.rule
    assert other_engine.facts.fingerprint == MicroWakeWordOffline("alexa", {}).facts.fingerprint
    manifest = {"wake_word": "Computer", "model": bare.name}
    manifest["micro"] = {"probability_cutoff": 0.7, "sliding_window_size": 3}
    bare.with_suffix(".json").write_text(json.dumps(manifest))
    for name in (bare, bare.with_suffix(".json")):
        with_manifest = MicroWakeWordOffline(str(name), {})
        assert with_manifest.facts.phrases == ("computer",)
        assert known(with_manifest.facts.rule).threshold == 0.7
        assert dict(with_manifest.facts.settings)["sliding-window"] == "3"


@pytest.mark.parametrize("spoilt", ["empty", "text", "cut", "other"])
def test_a_file_that_is_not_a_model_is_refused(tmp_path: Path, spoilt: str) -> None:
    content = find_packaged()["alexa"].path.read_bytes()
    contents = {"empty": b"", "text": b"hello, this is no model", "cut": content[:300], "other": b"\0" * 4 + b"TFL3"}
    path = file_with(tmp_path / "spoilt.tflite", contents[spoilt])
    with pytest.raises(InputError, match=r"spoilt\.tflite is not"):
        MicroWakeWordOffline(str(path), {})
    with pytest.raises(InputError, match="does not exist"):
        MicroWakeWordOffline(str(tmp_path / "gone.tflite"), {})
    with pytest.raises(InputError, match="no model 'alexia'"):
        MicroWakeWordOffline("alexia", {})
    for manifest in ("{", "[]", '{"micro": {}}'):
        path.with_suffix(".json").write_text(manifest)
        with pytest.raises(InputError, match="manifest"):
            MicroWakeWordOffline(str(path), {})


def test_a_model_that_the_kernel_does_not_know_goes_through_the_package(tmp_path: Path, sound: np.ndarray) -> None:
    """The first convolution's activation becomes RELU6, which the interpreter knows."""
    content = bytearray(find_packaged()["alexa"].path.read_bytes())
    first = next(op for op in read_model(bytes(content))[0].operators if op.code == Op.CONV_2D)
    content[known(first.options)._field(3)] = 3
    path = file_with(tmp_path / "other.tflite", content)
    engine = MicroWakeWordOffline(str(path), {})
    settings = dict(engine.facts.settings)
    assert settings["path"] == "streaming"
    assert "activation 3" in settings["path-because"]
    assert len(scored(engine, sound[:16000]).scores) == 32


def test_without_the_kernel_the_package_scores_and_the_facts_say_so(tmp_path: Path) -> None:
    source = Path(harness.__file__).parent
    shutil.copytree(source, tmp_path / "harness", ignore=shutil.ignore_patterns("*.so", "__pycache__", "static"))
    script = (
        "import harness; from harness.engines.microwakeword_offline import MicroWakeWordOffline as E;"
        "print(harness.__file__, dict(E('alexa', {}).facts.settings))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert str(tmp_path) in result.stdout
    assert "'path': 'streaming'" in result.stdout
    assert "was not built" in result.stdout
    assert "slower" in result.stderr


def pcm(*parts: np.ndarray) -> np.ndarray:
    return (np.clip(np.concatenate(parts), -1, 1) * 32767).astype(np.int16)


SECOND = np.zeros(16000, np.float32)


def test_one_hit_for_each_utterance_with_its_place() -> None:
    phrase = spoken("alexa")
    sound = pcm(SECOND, phrase, SECOND, SECOND, phrase, SECOND)
    hits = MicroWakeWord().feed(sound)
    ends = (16000 + len(phrase), 48000 + 2 * len(phrase))
    for hit, end in zip(hits, ends, strict=True):
        assert hit.phrase == "alexa"
        assert -0.2 < (hit.sample - end) / 16000 < 0.5
        assert 0.5 < hit.score <= 1


def test_scores_do_not_depend_on_block_size_or_earlier_sound() -> None:
    sound = pcm(SECOND, spoken("alexa"), SECOND)
    engine = MicroWakeWord()
    (whole,) = engine.feed(sound)
    engine.feed(sound[: 16000 + 6000])
    engine.reset()
    pieces = [hit for start in range(0, len(sound), 333) for hit in engine.feed(sound[start : start + 333])]
    assert pieces == [whole]


def test_a_long_refractory_time_joins_utterances_and_other_words_do_not_wake() -> None:
    phrase, other = spoken("alexa"), spoken("what is seven times eight")
    engine = MicroWakeWord(refractory_s=10)
    assert len(engine.feed(pcm(SECOND, phrase, SECOND, SECOND, phrase, SECOND))) == 1
    assert MicroWakeWord().feed(pcm(SECOND, other, SECOND)) == ()


def test_an_unknown_phrase_names_the_known_ones() -> None:
    with pytest.raises(PluginError, match="hey_jarvis"):
        MicroWakeWord("computer")


def test_a_network_is_the_chain_of_convolutions_of_its_model() -> None:
    network = network_of(read_model(find_packaged()["okay_nabu"].path.read_bytes()))
    dense, depth = LayerKind.DENSE, LayerKind.DEPTHWISE
    assert [(layer.kind, layer.taps) for layer in network.layers] == [
        (dense, 5), (depth, 3), (dense, 1), (depth, 9), (dense, 1), (depth, 13), (dense, 1), (depth, 15), (dense, 1),
        (depth, 17), (dense, 1), (LayerKind.ANSWER, 1),
    ]  # fmt: skip
    assert (network.stride, network.width, network.input_zero) == (3, 40, -128)
    assert [len(layer.start) for layer in network.layers][:2] == [2, 2]


@pytest.mark.parametrize("model", MODELS)
def test_logits_match_the_library(model: str, tmp_path: Path) -> None:
    """The sums before the logistic function, which takes most of them to the same probability."""
    path = find_packaged()[model].path
    content = path.read_bytes()
    graphs = read_model(content)
    network = network_of(graphs)
    sums = next(op.inputs[0] for op in graphs[0].operators if op.code == Op.LOGISTIC)
    rng = np.random.default_rng(3)
    steps = np.clip(rng.normal(-50, 70, (4000, 3, 40)), -128, 127).astype(np.int8)
    steps[::7] = -128
    changed = file_with(tmp_path / "sums.tflite", with_output(content, sums))
    theirs = package_answers(changed, steps).view(np.int8).astype(int) + 128
    ours = Listener(replace(network, answer=np.arange(256, dtype=np.uint8))).answer(steps)
    assert len(np.unique(theirs)) > 25
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(Listener(network).answer(steps), package_answers(path, steps))


def test_damaged_models_are_refused_or_do_not_crash() -> None:
    """Bytes of the graph changed at random: never an error of another kind, never a crash."""
    rng = np.random.default_rng(1)
    content = find_packaged()["alexa"].path.read_bytes()
    sound = rng.integers(-9000, 9000, 4000).astype(np.int16)
    refused = 0
    for _ in range(150):
        damaged = bytearray(content)
        for place in rng.integers(len(content) - 20_000, len(content), 5):
            damaged[place] = rng.choice([0, 1, 2, 128, 255])
        try:
            Listener(network_of(read_model(bytes(damaged)))).feed(sound)
        except (UnsupportedModel, InvalidModelFile):
            refused += 1
    assert refused > 20
