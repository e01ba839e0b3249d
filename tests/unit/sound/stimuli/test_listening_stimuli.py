"""Stimuli of wake, command and ambient trials: lead-in, tail, noise floor, ambience."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.model.errors import InputError
from harness.model.stimulus import (
    Ambience,
    NoiseKind,
    NoiseSpec,
    RecordingPiece,
    Role,
    Saying,
    SpokenText,
    StimulusRecipe,
    VoiceSpec,
    Waveform,
)
from harness.sound.stimuli.level import rms_dbfs
from harness.sound.stimuli.renderer import FLOOR_DBFS, Renderer

CALL = StimulusRecipe(SpokenText("alexa"), None, VoiceSpec(), rate_hz=16_000, lead_in_s=2.0, tail_s=1.5)


def level(samples: np.ndarray, rate_hz: int = 16_000) -> float:
    found = rms_dbfs(Waveform(np.ascontiguousarray(samples, dtype=np.float32), rate_hz))
    assert found is not None, "there is digital silence"
    return found


def test_the_phrase_lies_between_lead_in_and_tail() -> None:
    made = Renderer(None).render(CALL)
    span = made.span_s(Role.QUERY)
    assert span is not None
    assert span[0] == pytest.approx(2.0, abs=1e-4)
    assert made.waveform.duration_s - span[1] == pytest.approx(1.5, abs=1e-4)
    assert made.parts[0].text == "alexa"


def test_lead_in_and_tail_are_a_noise_floor_and_no_digital_silence() -> None:
    samples = Renderer(None).render(CALL).waveform.samples
    assert level(samples[: 16_000 * 19 // 10]) == pytest.approx(FLOOR_DBFS, abs=0.5)
    assert level(samples[-16_000:]) == pytest.approx(FLOOR_DBFS, abs=0.5)


def test_a_command_has_its_gap_and_both_spans() -> None:
    recipe = replace(CALL, query=SpokenText("what time is it"), wake_phrase=SpokenText("alexa"), gap_ms=300)
    made = Renderer(None).render(recipe)
    wake, query = made.span_s(Role.WAKE_PHRASE), made.span_s(Role.QUERY)
    assert wake is not None
    assert query is not None
    assert wake[0] == pytest.approx(2.0, abs=1e-4)
    assert query[0] - wake[1] == pytest.approx(0.3, abs=1e-3)
    assert made.waveform.duration_s - query[1] == pytest.approx(1.5, abs=1e-4)


def test_noise_lies_under_all_of_it_from_the_first_sample_to_the_last() -> None:
    quiet = Renderer(None).render(CALL)
    made = Renderer(None).render(replace(CALL, noise=NoiseSpec(NoiseKind.PINK, 10.0)))
    assert made.parts == quiet.parts
    assert len(made.waveform.samples) == len(quiet.waveform.samples)
    assert level(made.waveform.samples[:16_000]) == pytest.approx(-36.0, abs=2.0)


def test_the_same_recipe_gives_the_same_samples_and_a_query_keeps_its_key(tmp_path: Path) -> None:
    one, same = Renderer(None).render(CALL), Renderer(tmp_path).render(CALL)
    assert one.sha256 == same.sha256
    assert Renderer(tmp_path).render(CALL).sha256 == one.sha256, "from the cache"
    other = Renderer(None).render(replace(CALL, tail_s=1.6))
    assert other.sha256 != one.sha256


def ambient(ambience: Ambience, level_dbfs: float = -30.0) -> StimulusRecipe:
    return StimulusRecipe(ambience, None, VoiceSpec(), level_dbfs=level_dbfs, rate_hz=16_000)


def test_generated_noise_has_its_length_level_and_seed() -> None:
    render = Renderer(None).render
    one = render(ambient(Ambience(3.0, 1, noise=NoiseKind.PINK)))
    assert len(one.waveform.samples) == 48_000
    assert level(one.waveform.samples) == pytest.approx(-30.0, abs=0.1)
    assert render(ambient(Ambience(3.0, 1, noise=NoiseKind.PINK))).sha256 == one.sha256
    assert render(ambient(Ambience(3.0, 2, noise=NoiseKind.PINK))).sha256 != one.sha256


def test_a_piece_of_a_recording_is_that_piece_at_the_level_of_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "long.wav"
    rate, seconds = 16_000, 120
    noise = np.random.default_rng(1).standard_normal(rate * seconds).astype(np.float32) * 0.05
    noise[: rate * 60] *= 0.1  # a quiet first minute
    soundfile.write(path, noise, rate, subtype="FLOAT")
    loud = Renderer(None).render(ambient(Ambience(2.0, pieces=(RecordingPiece(str(path), 90.0, 2.0),))))
    quiet = Renderer(None).render(ambient(Ambience(2.0, pieces=(RecordingPiece(str(path), 10.0, 2.0),))))
    gain_db = level(loud.waveform.samples) - level(noise[90 * rate : 92 * rate])
    assert level(quiet.waveform.samples) == pytest.approx(level(noise[10 * rate : 12 * rate]) + gain_db, abs=0.1)
    middle = slice(200, -200)
    original = noise[90 * rate : 92 * rate] * 10 ** (gain_db / 20)
    difference = loud.waveform.samples[middle] - original[middle]
    assert level(difference) == pytest.approx(FLOOR_DBFS, abs=1.0), "the piece and the noise floor, sample by sample"


def test_pieces_follow_one_another_and_other_rates_are_changed(tmp_path: Path) -> None:
    pieces = []
    for number, rate in enumerate((8_000, 44_100)):
        path = tmp_path / f"{number}.wav"
        time_s = np.arange(rate * 4) / rate
        soundfile.write(path, (0.1 * np.sin(2 * np.pi * 500 * (number + 1) * time_s)).astype(np.float32), rate)
        pieces.append(RecordingPiece(str(path), 1.0, 1.5))
    samples = Renderer(None).render(ambient(Ambience(3.0, pieces=tuple(pieces)))).waveform.samples
    assert len(samples) == 48_000
    for number, part in enumerate((samples[2000:22_000], samples[26_000:46_000])):
        spectrum = np.abs(np.fft.rfft(part))
        assert np.argmax(spectrum) * 16_000 / len(part) == pytest.approx(500 * (number + 1), abs=2)


def test_texts_are_spoken_one_after_another_until_the_time_is_filled(tmp_path: Path) -> None:
    said = (Saying("good morning", VoiceSpec()), Saying("we went home", VoiceSpec(name="en-gb")))
    made = Renderer(tmp_path).render(ambient(Ambience(12.0, 4, sayings=said)))
    assert len(made.waveform.samples) == 12 * 16_000
    seconds = made.waveform.samples.reshape(12, -1)
    assert sum(level(one) > -45 for one in seconds) >= 6, "speech in most seconds"
    assert len(list(tmp_path.glob("*.wav"))) == 2, "each saying is kept, and the twelve seconds are not"


def test_what_would_clip_is_turned_down_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "peaky.wav"
    sound = np.random.default_rng(2).standard_normal(16_000 * 4).astype(np.float32) * 0.02
    sound[20_000] = 0.9
    soundfile.write(path, sound, 16_000, subtype="FLOAT")
    made = Renderer(None).render(ambient(Ambience(3.0, pieces=(RecordingPiece(str(path), 0.0, 3.0),)), -6.0))
    assert np.abs(made.waveform.samples).max() <= 1.0
    peak = np.abs(made.waveform.samples).argmax()
    assert peak == 20_000


def test_a_silent_or_broken_recording_is_an_input_error(tmp_path: Path) -> None:
    silent, stereo = tmp_path / "silent.wav", tmp_path / "stereo.wav"
    soundfile.write(silent, np.zeros(32_000, dtype=np.float32), 16_000)
    soundfile.write(stereo, np.ones((32_000, 2), dtype=np.float32) * 0.1, 16_000)
    for path, what in ((silent, "silent"), (stereo, "2 channels"), (tmp_path / "none.wav", "cannot be read")):
        with pytest.raises(InputError, match=what):
            Renderer(None).render(ambient(Ambience(1.0, pieces=(RecordingPiece(str(path), 0.0, 1.0),))))
