"""Sounds of a corpus through a program that speaks the protocol of engines, and what became of each."""

from __future__ import annotations

import json
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from harness.base.text_file import safe_csv
from harness.engines.offline_loading import task_of
from harness.model.errors import InputError, InputProblems
from harness.model.understanding import Slot
from harness.offline.sound_predictions import predictions, read_sound_list
from tests.command import harness
from tests.files import file_with

LOUD = Path(__file__).parents[2] / "data" / "engines" / "loud_engine.py"
SYSTEM = f"process:{sys.executable} {LOUD} --kind frame"


def write_sound(path: Path, *loud: tuple[float, float], seconds: float = 1.0, rate_hz: int = 16000) -> None:
    samples = np.zeros(round(seconds * rate_hz), np.int16)
    for start_s, end_s in loud:
        samples[round(start_s * rate_hz) : round(end_s * rate_hz)] = 9000
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate_hz, 0, "NONE", ""))
        file.writeframes(samples.tobytes())


@pytest.fixture
def sounds(tmp_path: Path) -> Path:
    """A list of four sounds: loud, silent, without samples, and text in place of sound."""
    write_sound(tmp_path / "loud.wav", (0.2, 0.5))
    write_sound(tmp_path / "silent.wav")
    write_sound(tmp_path / "empty.wav", seconds=0)
    (tmp_path / "text.wav").write_text("not a sound")
    return file_with(
        tmp_path / "sounds.csv", "id,audio,voice\na,loud.wav,anna\nb,silent.wav,ben\nc,empty.wav,ben\nd,text.wav,ben\n"
    )


def test_each_sound_has_a_frame_or_a_reason(sounds: Path) -> None:
    a, b, c, d = predictions(task_of(SYSTEM), read_sound_list(sounds), resample=False)
    assert (a.utterance.words, a.utterance.intents, a.refused) == (("loud",), ("shout",), "")
    assert a.utterance.slots == (Slot("tenths", "3"),)
    assert a.utterance.cost is not None
    assert a.utterance.cost.sound_s == 1.0
    assert (b.utterance.intents, b.utterance.slots, b.refused) == ((), (), "")
    assert c.refused == "empty: it has no samples"
    assert d.refused.startswith("unreadable: ")


def test_a_program_is_charged_for_its_own_processor_time(tmp_path: Path) -> None:
    write_sound(tmp_path / "long.wav", (1.0, 119.0), seconds=120)
    (prediction,) = predictions(task_of(SYSTEM), {"a": tmp_path / "long.wav"}, resample=False)
    cost = prediction.utterance.cost
    assert cost is not None
    # The program sums the squares of 1,900,000 samples in plain Python; sending them takes a hundredth of that.
    assert cost.cpu_s > 0.02


def test_characters_that_are_not_text_leave_the_predictions_readable(tmp_path: Path) -> None:
    write_sound(tmp_path / "loud.wav", (0.2, 0.5))
    program = file_with(
        tmp_path / "recogniser.py",
        """import sys; sys.stdin.buffer.read(); print('{"text": "turn\\\\u2028 caf\\\\ud800 \\\\u0000on"}')""",
    )
    settings = [("mode", "once"), ("kind", "transcript")]
    task = task_of(f"process:{sys.executable} {program}", settings)
    (prediction,) = predictions(task, {"a": tmp_path / "loud.wav"}, resample=False)
    assert prediction.utterance.words == ("turn", "caf\ufffd", "\ufffdon")


def test_a_missing_file_is_refused_with_its_line_before_anything_is_played(tmp_path: Path) -> None:
    sound_list = file_with(tmp_path / "sounds.csv", "id,audio\na,gone.wav\nb,\n")
    with pytest.raises(InputProblems) as error:
        read_sound_list(sound_list)
    assert str(error.value).splitlines() == [
        f"{sound_list}:2: there is no file 'gone.wav'. Correct the name, or remove the row",
        f"{sound_list}:3: the row does not name an audio file. Correct the name, or remove the row",
    ]


def test_ids_that_a_spreadsheet_would_calculate_come_back(sounds: Path) -> None:
    sounds.write_text(safe_csv([("id", "audio"), ("=a", "loud.wav")]))
    assert list(read_sound_list(sounds)) == ["=a"]


def test_a_list_without_audio_names_its_columns(tmp_path: Path) -> None:
    sound_list = file_with(tmp_path / "sounds.csv", "id,file\na,a.wav\n")
    with pytest.raises(InputError, match=r"the header has no column audio.*Columns: file"):
        read_sound_list(sound_list)


def test_predict_writes_a_line_for_each_sound_and_names_the_others(sounds: Path, tmp_path: Path) -> None:
    out = tmp_path / "frames.jsonl"
    result = harness("understand", "predict", "--audio", sounds, "-t", SYSTEM, "--output", out)
    assert result.exit_code == 3
    assert "c: empty: it has no samples; no prediction" in result.stderr
    assert "4 sounds, 2 without a prediction" in result.stderr
    first, second = map(json.loads, out.read_text().splitlines())
    assert (first["id"], first["text"], first["intents"]) == ("a", "loud", ["shout"])
    assert first["slots"] == [{"concept": "tenths", "value": "3"}]
    assert (second["id"], second["intents"], second["slots"]) == ("b", [], [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--audio", "sounds.csv"), "--audio needs -t"),
        (("--audio", "sounds.csv", "-t", SYSTEM, "--model", "m"), "--audio cannot be combined with --model"),
        (("-t", SYSTEM), "--model is missing"),
        (("--model", "m", "-t", SYSTEM), "-t, -s and --resample need --audio"),
    ],
)
def test_predict_refuses_options_that_do_not_fit(arguments: tuple[str, ...], message: str) -> None:
    result = harness("understand", "predict", *arguments)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_predict_refuses_a_wake_engine(sounds: Path) -> None:
    task = task_of(f"process:{sys.executable} {LOUD}")
    with pytest.raises(InputError, match="is a wake engine, which does not recognise sentences"):
        list(predictions(task, read_sound_list(sounds), resample=False))
