from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soxr

from harness.engines.faster_whisper import FasterWhisper, demand_model_hash, packaged_model
from harness.model.errors import PluginError
from harness.model.stimulus import Waveform
from tests.heard import MAX_WRONG, word_error
from tests.unit.engines.wake_sound import spoken


@pytest.fixture(scope="module")
def recogniser() -> FasterWhisper:
    return FasterWhisper()


@pytest.mark.speech
@pytest.mark.parametrize("rate_hz", [16000, 48000])
def test_words_are_recognised_at_any_sample_rate(recogniser: FasterWhisper, rate_hz: int) -> None:
    samples = np.asarray(soxr.resample(spoken("what time is it"), 16000, rate_hz), dtype=np.float32)
    assert word_error("what time is it", recogniser.transcribe(Waveform(samples, rate_hz))) <= MAX_WRONG


@pytest.mark.speech
def test_the_same_sound_gives_the_same_words(recogniser: FasterWhisper) -> None:
    sound = Waveform(spoken("set an alarm for one", "en-us"), 16000)
    assert recogniser.transcribe(sound) == recogniser.transcribe(sound)


@pytest.mark.speech
@pytest.mark.parametrize("level", [0.0, 0.001, 0.05])
def test_silence_gives_an_empty_transcript(recogniser: FasterWhisper, level: float) -> None:
    noise = np.random.default_rng(1).normal(0, 1, 32000).astype(np.float32) * np.float32(level)
    assert recogniser.transcribe(Waveform(noise, 16000)) == ""


@pytest.mark.speech
def test_no_samples_are_empty_and_a_tone_is_too(recogniser: FasterWhisper) -> None:
    assert recogniser.transcribe(Waveform(np.zeros(0, np.float32), 16000)) == ""
    tone = (0.2 * np.sin(np.arange(32000) * 0.3)).astype(np.float32)
    assert recogniser.transcribe(Waveform(tone, 16000)) == ""


@pytest.mark.speech
def test_the_name_contains_engine_version_and_model(recogniser: FasterWhisper) -> None:
    assert recogniser.name == "faster-whisper 1.2.1 tiny.en int8"


@pytest.mark.speech
def test_another_model_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"something else")
    with pytest.raises(PluginError, match="not the expected model"):
        demand_model_hash(tmp_path, "00" * 32)
    with pytest.raises(PluginError, match="cannot be read"):
        demand_model_hash(tmp_path / "nowhere", "00" * 32)
    assert (packaged_model() / "config.json").is_file()
