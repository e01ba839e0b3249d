"""Recipes to sound: positions, level, noise, recordings, the cache, lead-in, tail, ambience."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.model.errors import InputError, PluginError, VoiceError
from harness.model.stimulus import (
    Ambience,
    NoiseKind,
    NoiseSpec,
    Opening,
    Recording,
    RecordingPiece,
    Role,
    Samples,
    Saying,
    SpokenText,
    StimulusRecipe,
    VoiceSpec,
    Waveform,
)
from harness.sound.level import active_speech_level, rms_dbfs
from harness.sound.stimuli.renderer import FLOOR_DBFS, Renderer
from tests.known import known

RECIPE = StimulusRecipe(SpokenText("what time is it?"), SpokenText("Alexa"), VoiceSpec("espeak", "en-us+f3"))


def burst(seconds: float, before_s: float, after_s: float, amplitude: float = 0.1, rate: int = 16_000) -> Samples:
    t = np.arange(round(seconds * rate)) / rate
    parts = np.zeros(round(before_s * rate)), amplitude * np.sin(2 * np.pi * 400 * t), np.zeros(round(after_s * rate))
    return np.concatenate(parts).astype(np.float32)


def wav(path: Path, samples: Samples, rate: int = 16_000) -> Recording:
    soundfile.write(path, samples, rate, subtype="FLOAT")
    return Recording(str(path))


@pytest.mark.parametrize("gap_ms", [0, 10, 250, 2000])
def test_the_gap_lies_between_active_end_and_active_start(gap_ms: int) -> None:
    rendered = Renderer(None).render(replace(RECIPE, gap_ms=gap_ms))
    wake, gap, query = rendered.parts
    assert [part.role for part in rendered.parts] == [Role.WAKE_PHRASE, Role.GAP, Role.QUERY]
    assert (wake.text, query.text) == ("Alexa", "what time is it?")
    assert wake.end_sample == gap.start_sample
    assert gap.end_sample == query.start_sample
    assert query.start_sample - wake.end_sample == gap_ms * 48
    silence = rendered.waveform.samples[wake.end_sample + 960 : query.start_sample - 960]
    assert not silence.any()


def test_lead_and_tail_are_silent_and_the_speech_is_inside() -> None:
    rendered = Renderer(None).render(RECIPE)
    samples = rendered.waveform.samples
    assert rendered.waveform.rate_hz == 48_000
    assert not samples[:2400].any()
    assert not samples[-2400:].any()
    assert 2400 <= rendered.parts[0].start_sample <= 2400 + 960
    assert len(samples) - 2400 - 960 <= rendered.parts[-1].end_sample <= len(samples) - 2400


@pytest.mark.parametrize("level_dbfs", [-26.0, -56.0, -20.5])
@pytest.mark.parametrize("rate_hz", [16_000, 48_000])
def test_the_level_of_the_whole_is_as_asked(level_dbfs: float, rate_hz: int) -> None:
    rendered = Renderer(None).render(replace(RECIPE, level_dbfs=level_dbfs, rate_hz=rate_hz))
    level = known(active_speech_level(rendered.waveform))
    assert level.level_dbfs == pytest.approx(level_dbfs, abs=0.02)


def test_the_level_that_would_clip_is_refused_with_the_highest_possible() -> None:
    with pytest.raises(InputError, match="would clip at -3 dBFS") as refusal:
        Renderer(None).render(replace(RECIPE, level_dbfs=-3))
    highest = float(refusal.value.remedy.split("level_dbfs to ")[1].split()[0])
    peak = np.abs(Renderer(None).render(replace(RECIPE, level_dbfs=highest)).waveform.samples).max()
    assert 0.98 < peak <= 1


def test_spans_of_recordings_are_where_the_sound_is(tmp_path: Path) -> None:
    query = wav(tmp_path / "query.wav", burst(1.0, 0.7, 0.4))
    wake = wav(tmp_path / "wake.wav", burst(0.5, 0.3, 0.3, amplitude=0.01, rate=44_100), 44_100)
    rendered = Renderer(None).render(StimulusRecipe(query, wake, VoiceSpec()))
    first, second = (rendered.span_s(role) for role in (Role.WAKE_PHRASE, Role.QUERY))
    assert first is not None
    assert second is not None
    assert first[1] - first[0] == pytest.approx(0.5, abs=0.01)
    assert second[1] - second[0] == pytest.approx(1.0, abs=0.01)
    assert second[0] - first[1] == pytest.approx(0.25, abs=1e-6)
    # A phrase that was recorded 20 dB lower is brought to the level of the query.
    samples, rate = rendered.waveform.samples, rendered.waveform.rate_hz
    middles = [samples[round((a + 0.1) * rate) : round((b - 0.1) * rate)] for a, b in (first, second)]
    levels = [20 * np.log10(np.sqrt(np.mean(middle**2))) for middle in middles]
    assert levels[0] == pytest.approx(levels[1], abs=2.0)


def test_a_recording_in_room_noise_is_cut_to_its_speech(tmp_path: Path) -> None:
    samples = burst(1.0, 0.8, 0.6)
    noise = np.random.default_rng(1).standard_normal(len(samples)).astype(np.float32) * 0.002
    rendered = Renderer(None).render(StimulusRecipe(wav(tmp_path / "q.wav", samples + noise), None, VoiceSpec()))
    (query,) = rendered.parts
    assert (query.end_sample - query.start_sample) / 48_000 == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("kind", [NoiseKind.WHITE, NoiseKind.PINK, NoiseKind.RECORDING])
def test_noise_has_its_level_and_shifts_the_marks(kind: NoiseKind, tmp_path: Path) -> None:
    path = wav(tmp_path / "hum.wav", burst(0.4, 0, 0)).path if kind is NoiseKind.RECORDING else ""
    quiet = Renderer(None).render(RECIPE)
    noisy = Renderer(None).render(replace(RECIPE, noise=NoiseSpec(kind, 10.0, path)))
    assert len(noisy.waveform.samples) == len(quiet.waveform.samples) + 48_000
    for before, after in zip(quiet.parts, noisy.parts, strict=True):
        assert (after.start_sample, after.end_sample) == (before.start_sample + 24_000, before.end_sample + 24_000)
    added = noisy.waveform.samples.copy()
    added[24_000:-24_000] -= quiet.waveform.samples
    assert rms_dbfs(added) == pytest.approx(-36, abs=0.05)
    assert np.abs(noisy.waveform.samples[:24_000]).max() > 0
    repeated = Renderer(None).render(replace(RECIPE, noise=NoiseSpec(kind, 10.0, path)))
    assert repeated.sha256 == noisy.sha256


def test_pink_noise_falls_3_db_an_octave() -> None:
    noisy = Renderer(None).render(replace(RECIPE, noise=NoiseSpec(NoiseKind.PINK, 0.0)))
    power = np.abs(np.fft.rfft(noisy.waveform.samples[:24_000])) ** 2
    hz = np.fft.rfftfreq(24_000, 1 / 48_000)
    low, high = (power[(hz >= f) & (hz < 2 * f)].mean() for f in (500, 8000))
    assert 10 * np.log10(low / high) == pytest.approx(12, abs=1.5)


@pytest.mark.parametrize(
    "recipe",
    [
        replace(RECIPE, rate_hz=4000),
        replace(RECIPE, gap_ms=-1),
        replace(RECIPE, level_dbfs=3.0),
        replace(RECIPE, level_dbfs=float("nan")),
        replace(RECIPE, noise=NoiseSpec(NoiseKind.RECORDING, 10.0)),
        replace(RECIPE, noise=NoiseSpec(NoiseKind.PINK, 10.0, "x.wav")),
        replace(RECIPE, query=Recording("/nowhere/r.wav")),
        replace(RECIPE, voice=VoiceSpec("espeek")),
        replace(RECIPE, voice=VoiceSpec("espeak", "xx-xx")),
    ],
)
def test_settings_out_of_range_and_what_is_missing_are_refused(recipe: StimulusRecipe) -> None:
    with pytest.raises((InputError, PluginError, VoiceError)):
        Renderer(None).render(recipe)


def test_rendered_stimulus_is_read_from_the_cache(tmp_path: Path) -> None:
    first = Renderer(tmp_path).render(RECIPE)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    second = Renderer(tmp_path).render(RECIPE)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert (second.sha256, second.parts) == (first.sha256, first.parts)
    np.testing.assert_array_equal(second.waveform.samples, first.waveform.samples)
    assert Renderer(None).render(RECIPE).sha256 == first.sha256
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("damage", ["cut", "flip", "json", "part", "gone"])
def test_a_damaged_entry_is_made_again(damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = Renderer(tmp_path).render(RECIPE)
    (sound,), (record,) = tmp_path.glob("*.wav"), tmp_path.glob("*.json")
    whole = sound.read_bytes()
    match damage:
        case "cut":
            sound.write_bytes(whole[: len(whole) // 2])
        case "flip":
            sound.write_bytes(whole[:-20_000] + b"\x01" + whole[-19_999:])
        case "json":
            record.write_text("{")
        case "part":
            entry = json.loads(record.read_text())
            entry["parts"][0]["end_sample"] += 1
            record.write_text(json.dumps(entry))
        case "gone":
            sound.unlink()
    with caplog.at_level(logging.WARNING):
        assert Renderer(tmp_path).render(RECIPE).sha256 == first.sha256
    assert ("damaged" in caplog.text) == (damage != "gone")
    caplog.clear()
    assert Renderer(tmp_path).render(RECIPE).sha256 == first.sha256
    assert "damaged" not in caplog.text


def test_a_changed_recording_is_another_stimulus_and_a_moved_one_is_not(tmp_path: Path) -> None:
    recording = wav(tmp_path / "a.wav", burst(1.0, 0.2, 0.2))
    (tmp_path / "b.wav").write_bytes((tmp_path / "a.wav").read_bytes())
    first, moved = (
        Renderer(tmp_path / "cache").render(StimulusRecipe(Recording(path), None, VoiceSpec())).sha256
        for path in (recording.path, str(tmp_path / "b.wav"))
    )
    assert first == moved
    wav(tmp_path / "a.wav", burst(0.9, 0.2, 0.2))
    assert Renderer(tmp_path / "cache").render(StimulusRecipe(recording, None, VoiceSpec())).sha256 != first


def test_a_cache_that_cannot_be_written_does_not_stop_the_rendering(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    with caplog.at_level(logging.WARNING):
        assert Renderer(tmp_path / "file").render(RECIPE).sha256 == Renderer(None).render(RECIPE).sha256
    assert "could not be saved" in caplog.text


def test_two_processes_may_render_the_same_at_once(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from harness.sound.stimuli.renderer import Renderer;"
        "from harness.model.stimulus import *;"
        "print(Renderer(Path(sys.argv[1])).render(StimulusRecipe(SpokenText('what time is it?'),"
        "SpokenText('Alexa'), VoiceSpec('espeak', 'en-us+f3'))).sha256)"
    )
    argv = [sys.executable, "-c", script, str(tmp_path)]
    started = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    printed = {process.communicate(timeout=60)[0].strip() for process in started}
    assert printed == {Renderer(tmp_path).render(RECIPE).sha256}
    assert len(list(tmp_path.iterdir())) == 2


def test_a_recording_as_it_was_recorded_is_the_file_itself(tmp_path: Path) -> None:
    samples = burst(0.5, 0.3, 0.4, amplitude=0.037)
    recording = wav(tmp_path / "a.wav", samples)
    recipe = replace(RECIPE, query=recording, wake_phrase=None, rate_hz=16_000, as_recorded=True, level_dbfs=-60.0)
    rendered = Renderer(None).render(recipe)
    start = rendered.parts[0].start_sample - round(0.3 * 16_000)
    assert abs(start - round(0.05 * 16_000)) <= 80
    lead = round(0.05 * 16_000)
    np.testing.assert_array_equal(rendered.waveform.samples[lead : lead + len(samples)], samples)


def test_a_recording_at_full_scale_keeps_its_level_at_another_rate(tmp_path: Path) -> None:
    square = np.where(np.arange(16_000) // 8 % 2, 32767, -32768).astype(np.int16)
    soundfile.write(tmp_path / "loud.wav", square, 16_000)
    recording = Recording(str(tmp_path / "loud.wav"))
    recipe = replace(RECIPE, query=recording, wake_phrase=None, as_recorded=True)
    peak = float(np.abs(Renderer(None).render(recipe).waveform.samples).max())
    assert 0.98 <= peak <= 1.0


def test_stated_phrase_end_overrides_the_energy(tmp_path: Path) -> None:
    """Speech, then a door: by energy the phrase would end 0.6 s late."""
    samples = np.concatenate([burst(0.5, 0.2, 0.3), burst(0.1, 0.0, 0.2)])
    recording = wav(tmp_path / "a.wav", samples)
    for recipe in (replace(RECIPE, wake_phrase=None), replace(RECIPE, wake_phrase=None, as_recorded=True)):
        by_energy = Renderer(None).render(replace(recipe, query=recording)).parts[0]
        stated = Renderer(None).render(replace(recipe, query=replace(recording, phrase_end_s=0.7))).parts[0]
        assert (by_energy.end_sample - by_energy.start_sample) / 48_000 == pytest.approx(0.9, abs=0.02)
        assert (stated.end_sample - stated.start_sample) / 48_000 == pytest.approx(0.5, abs=0.02)


CALL = StimulusRecipe(SpokenText("alexa"), None, VoiceSpec(), rate_hz=16_000, lead_in_s=2.0, tail_s=1.5)


def test_the_phrase_lies_between_lead_in_and_tail() -> None:
    rendering = Renderer(None).render(CALL)
    span = known(rendering.span_s(Role.QUERY))
    assert span[0] == pytest.approx(2.0, abs=1e-4)
    assert rendering.waveform.duration_s - span[1] == pytest.approx(1.5, abs=1e-4)
    assert rendering.parts[0].text == "alexa"
    assert Renderer(None).render(replace(CALL, tail_s=1.6)).sha256 != rendering.sha256


def test_lead_in_and_tail_are_a_noise_floor_and_no_digital_silence() -> None:
    samples = Renderer(None).render(CALL).waveform.samples
    assert rms_dbfs(samples[: 16_000 * 19 // 10]) == pytest.approx(FLOOR_DBFS, abs=0.5)
    assert rms_dbfs(samples[-16_000:]) == pytest.approx(FLOOR_DBFS, abs=0.5)


def test_noise_lies_under_all_of_it_from_the_first_sample_to_the_last() -> None:
    quiet = Renderer(None).render(CALL)
    rendering = Renderer(None).render(replace(CALL, noise=NoiseSpec(NoiseKind.PINK, 10.0)))
    assert rendering.parts == quiet.parts
    assert len(rendering.waveform.samples) == len(quiet.waveform.samples)
    assert rms_dbfs(rendering.waveform.samples[:16_000]) == pytest.approx(-36.0, abs=2.0)


def ambient(ambience: Ambience, level_dbfs: float = -30.0) -> StimulusRecipe:
    return StimulusRecipe(ambience, None, VoiceSpec(), level_dbfs=level_dbfs, rate_hz=16_000)


def test_generated_noise_has_its_length_level_and_seed() -> None:
    render = Renderer(None).render
    noise = render(ambient(Ambience(3.0, 1, noise=NoiseKind.PINK)))
    assert len(noise.waveform.samples) == 48_000
    assert rms_dbfs(noise.waveform.samples) == pytest.approx(-30.0, abs=0.1)
    assert render(ambient(Ambience(3.0, 1, noise=NoiseKind.PINK))).sha256 == noise.sha256
    assert render(ambient(Ambience(3.0, 2, noise=NoiseKind.PINK))).sha256 != noise.sha256


@pytest.mark.parametrize("from_a_pipe", [False, True])
def test_a_piece_of_a_recording_is_that_piece_at_the_level_of_the_whole(tmp_path: Path, from_a_pipe: bool) -> None:
    path = tmp_path / "long.wav"
    rate, seconds = 16_000, 120
    noise = np.random.default_rng(1).standard_normal(rate * seconds).astype(np.float32) * 0.05
    noise[: rate * 60] *= 0.1  # a quiet first minute
    soundfile.write(path, noise, rate, subtype="FLOAT")
    if from_a_pipe:
        path = tmp_path / "long.flac"
        soundfile.write(path, noise, rate, subtype="PCM_24")
        content = bytearray(path.read_bytes())
        content[21:26] = bytes([content[21] & 0xF0, 0, 0, 0, 0])  # its header does not state the length
        path.write_bytes(content)
    loud = Renderer(None).render(ambient(Ambience(2.0, pieces=(RecordingPiece(str(path), 90.0, 2.0),))))
    quiet = Renderer(None).render(ambient(Ambience(2.0, pieces=(RecordingPiece(str(path), 10.0, 2.0),))))
    gain_db = rms_dbfs(loud.waveform.samples) - rms_dbfs(noise[90 * rate : 92 * rate])
    assert rms_dbfs(quiet.waveform.samples) == pytest.approx(rms_dbfs(noise[10 * rate : 12 * rate]) + gain_db, abs=0.1)
    middle = slice(200, -200)
    original = noise[90 * rate : 92 * rate] * 10 ** (gain_db / 20)
    difference = loud.waveform.samples[middle] - original[middle]
    assert rms_dbfs(difference) == pytest.approx(FLOOR_DBFS, abs=1.0), "the piece and the noise floor, sample by sample"


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
    sayings = (Saying("good morning", VoiceSpec()), Saying("we went home", VoiceSpec(name="en-gb")))
    rendering = Renderer(tmp_path).render(ambient(Ambience(12.0, 4, sayings=sayings)))
    assert len(rendering.waveform.samples) == 12 * 16_000
    seconds = rendering.waveform.samples.reshape(12, -1)
    assert sum(rms_dbfs(second) > -45 for second in seconds) >= 6, "speech in most seconds"
    assert len(list(tmp_path.glob("*.wav"))) == 2, "each saying is kept, and the twelve seconds are not"


def test_what_would_clip_is_turned_down_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "peaky.wav"
    sound = np.random.default_rng(2).standard_normal(16_000 * 4).astype(np.float32) * 0.02
    sound[20_000] = 0.9
    soundfile.write(path, sound, 16_000, subtype="FLOAT")
    rendering = Renderer(None).render(ambient(Ambience(3.0, pieces=(RecordingPiece(str(path), 0.0, 3.0),)), -6.0))
    assert np.abs(rendering.waveform.samples).max() <= 1.0
    peak = np.abs(rendering.waveform.samples).argmax()
    assert peak == 20_000


def test_a_silent_or_broken_recording_is_an_input_error(tmp_path: Path) -> None:
    silent, stereo = tmp_path / "silent.wav", tmp_path / "stereo.wav"
    soundfile.write(silent, np.zeros(32_000, dtype=np.float32), 16_000)
    soundfile.write(stereo, np.ones((32_000, 2), dtype=np.float32) * 0.1, 16_000)
    for path, message in ((silent, "silent"), (stereo, "2 channels"), (tmp_path / "none.wav", "cannot be read")):
        with pytest.raises(InputError, match=message):
            Renderer(None).render(ambient(Ambience(1.0, pieces=(RecordingPiece(str(path), 0.0, 1.0),))))


@pytest.mark.parametrize("pause_s", [0.1, 1.0, 4.0])
def test_an_opening_is_said_so_long_before_the_phrase_and_changes_nothing_of_it(pause_s: float) -> None:
    plain = replace(RECIPE, query=SpokenText("Alexa"), wake_phrase=None, lead_in_s=1.5, tail_s=1.0, variant=3)
    opening = Opening(pause_s, say="tell me a story", then="stop", level_dbfs=-20.0)
    alone, whole = Renderer(None).render(plain), Renderer(None).render(replace(plain, opening=opening))
    first, _, request, phrase, last, _, final = whole.parts
    assert [part.role for part in whole.parts] == [
        Role.OPENING, Role.GAP, Role.REQUEST, Role.QUERY, Role.CLOSING, Role.GAP, Role.REQUEST,
    ]  # fmt: skip
    assert (first.text, request.text, phrase.text, last.text, final.text) == (
        "Alexa", "tell me a story", "Alexa", "Alexa", "stop",
    )  # fmt: skip
    assert phrase.start_sample - request.end_sample == round(pause_s * 48_000)
    phrase_alone = alone.parts[0]
    begins = phrase.start_sample - phrase_alone.start_sample
    assert phrase.end_sample - phrase.start_sample == phrase_alone.end_sample - phrase_alone.start_sample
    span = slice(phrase_alone.start_sample - 960, phrase_alone.end_sample + 960)
    heard = whole.waveform.samples[begins:][span]
    assert np.array_equal(heard, alone.waveform.samples[span])
    assert last.start_sample >= begins + len(alone.waveform.samples)
    assert whole.sha256 != alone.sha256
    prelude = Waveform(whole.waveform.samples[: request.end_sample], 48_000)
    assert known(active_speech_level(prelude)).level_dbfs == pytest.approx(-20.0, abs=0.7)


def test_an_opening_may_have_a_voice_of_its_own() -> None:
    plain = replace(RECIPE, query=SpokenText("Alexa"), wake_phrase=None, opening=Opening(1.0, say="hello", then="stop"))
    other = VoiceSpec("espeak", "en-gb", rate_wpm=120)
    same_voice, other_voice = (
        Renderer(None).render(replace(plain, opening=replace(known(plain.opening), voice=voice)))
        for voice in (None, other)
    )
    lengths = [
        [part.end_sample - part.start_sample for part in rendering.parts] for rendering in (same_voice, other_voice)
    ]
    differ = {part.role for part, first, two in zip(same_voice.parts, *lengths, strict=True) if first != two}
    assert differ == {Role.OPENING, Role.REQUEST, Role.CLOSING}


def test_noise_rises_before_the_first_word_and_falls_after_the_last() -> None:
    noise = NoiseSpec(NoiseKind.WHITE, 0.0, ramp_s=2.0)
    plain = replace(RECIPE, noise=replace(noise, ramp_s=0.0))
    steady, ramped = Renderer(None).render(plain), Renderer(None).render(replace(RECIPE, noise=noise))
    first, last = ramped.parts[0].start_sample, ramped.parts[-1].end_sample
    assert first >= 2 * 48_000

    def level(at_s: float) -> float:
        middle = first + round(at_s * 48_000)
        return rms_dbfs(ramped.waveform.samples[middle - 2400 : middle + 2400])

    full = rms_dbfs(steady.waveform.samples[:24_000])
    assert level(-1.0) - full == pytest.approx(-6.0, abs=0.7)
    assert level(-0.5) - full == pytest.approx(-2.5, abs=0.7)
    assert level(-1.8) - full == pytest.approx(-20.0, abs=1.5)
    assert np.abs(ramped.waveform.samples[:480]).max() < 10 ** ((full - 20) / 20)
    assert np.abs(ramped.waveform.samples[-480:]).max() < 10 ** ((full - 20) / 20)
    assert len(ramped.waveform.samples) - last >= 2 * 48_000
