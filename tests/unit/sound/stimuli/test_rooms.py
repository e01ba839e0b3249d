"""Stimuli in simulated rooms: level, time of the direct sound, reverberation, directivity, recorded responses."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from harness.model.errors import InputError
from harness.model.stimulus import (
    ImpulseResponse,
    LevelAt,
    NoiseKind,
    NoiseSpec,
    Pattern,
    Placement,
    RoomSpec,
    Samples,
    ShoeBox,
    SpokenText,
    StimulusRecipe,
    VoiceSpec,
    Waveform,
)
from harness.sound.level import a_weighting_of, active_speech_level, rms_dbfs
from harness.sound.stimuli.renderer import Renderer
from harness.sound.stimuli.rooms import apply_room

FREE = RoomSpec("free", ShoeBox((12, 12, 6), 0.0, (2, 6, 1.5)))
LIVING = RoomSpec("living", ShoeBox((5, 4, 2.6), 0.45, (0.6, 2, 0.9)))
RATE = 16_000
DRY = StimulusRecipe(SpokenText("what time is it?"), SpokenText("Alexa"), VoiceSpec("espeak", "en-us+f3"), rate_hz=RATE)


def click() -> Waveform:
    samples = np.zeros(RATE, np.float32)
    samples[1000] = 0.5
    return Waveform(samples, RATE)


def level_dbfs(waveform: Waveform) -> float:
    level = active_speech_level(waveform)
    assert level is not None
    return level.level_dbfs


def decay_s(response: Samples, rate_hz: int) -> float:
    """T30 by Schroeder's backward integration: 60 dB at the slope of a line through −5 to −35 dB."""
    left = 10 * np.log10(np.cumsum((response.astype(np.float64) ** 2)[::-1])[::-1] + 1e-30)
    left -= left[0]
    first, last = int(np.argmax(left <= -5)), int(np.argmax(left <= -35))
    slope = np.polyfit(np.arange(first, last) / rate_hz, left[first:last], 1)[0]
    return float(-60 / slope)


@pytest.mark.parametrize("distance_m", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_without_reflections_the_level_falls_by_6_db_for_each_doubling_and_nothing_moves(distance_m: float) -> None:
    near = Renderer(None).render(DRY)
    far = Renderer(None).render(replace(DRY, placement=FREE.placement(distance_m, 0.0)))
    fall_db = level_dbfs(near.waveform) - level_dbfs(far.waveform)
    assert fall_db == pytest.approx(20 * math.log10(distance_m), abs=0.2)
    assert far.parts == near.parts
    samples = near.waveform.samples.astype(np.float64)
    heard = far.waveform.samples[: len(samples)].astype(np.float64)
    lags = range(-8, 9)
    assert max(lags, key=lambda lag: float(np.dot(samples, np.roll(heard, lag)))) in (-1, 0, 1)


@pytest.mark.parametrize(
    ("size_m", "rt60_s"),
    [((5.0, 4.0, 2.6), 0.25), ((5.0, 4.0, 2.6), 0.45), ((3.0, 3.2, 2.5), 0.3), ((8.0, 6.0, 3.0), 0.6)],
)
def test_a_room_has_the_reverberation_time_asked_for(size_m: tuple[float, float, float], rt60_s: float) -> None:
    box = ShoeBox(size_m, rt60_s, (0.5 * size_m[0], 0.3 * size_m[1], 0.9))
    heard = apply_room(click(), RoomSpec("room", box).placement(1.1, 80.0)).samples[1000:]
    assert decay_s(heard, RATE) == pytest.approx(rt60_s, rel=0.15)


def test_a_room_that_needs_more_memory_than_there_is_is_refused() -> None:
    box = ShoeBox((1.2, 1.0, 1.0), 5.0, (0.3, 0.3, 0.5), talker_height_m=0.5)
    with pytest.raises(InputError, match="1 × 1 m with a reverberation time of 5 s needs 7606 GB of memory"):
        apply_room(click(), RoomSpec("box", box).placement(0.5, 45.0))


@pytest.mark.parametrize(
    ("pattern", "angle_deg", "fall_db"),
    [
        (Pattern.CARDIOID, 0, 0.0),
        (Pattern.CARDIOID, 90, 6.02),
        (Pattern.SUBCARDIOID, 180, 6.02),
        (Pattern.OMNI, 180, 0.0),
    ],
)
def test_a_device_hears_less_from_its_side(pattern: Pattern, angle_deg: float, fall_db: float) -> None:
    box = ShoeBox((10, 10, 10), 0.0, (5, 5, 1.5), device_faces_deg=30.0, device_pattern=pattern)
    in_front = apply_room(click(), Placement(RoomSpec("all", replace(box, device_pattern=Pattern.OMNI)), 2.0, 0.0))
    heard = apply_room(click(), Placement(RoomSpec("some", box), 2.0, angle_deg))
    assert rms_dbfs(in_front.samples) - rms_dbfs(heard.samples) == pytest.approx(fall_db, abs=0.1)


@pytest.mark.parametrize("pattern", [Pattern.CARDIOID, Pattern.FIGURE_EIGHT])
@pytest.mark.parametrize("height_m", [0.4, 1.0, 2.2])
def test_a_talker_above_or_below_the_device_faces_it(pattern: Pattern, height_m: float) -> None:
    box = ShoeBox((10, 10, 10), 0.0, (5, 5, 1.0), talker_height_m=height_m)
    equal_on_all_sides = apply_room(click(), Placement(RoomSpec("all", box), 0.5, 20.0))
    facing = apply_room(click(), Placement(RoomSpec("some", replace(box, talker_pattern=pattern)), 0.5, 20.0))
    assert rms_dbfs(facing.samples) == pytest.approx(rms_dbfs(equal_on_all_sides.samples), abs=0.05)


def test_the_snr_is_that_at_the_device() -> None:
    noise = NoiseSpec(NoiseKind.PINK, 9.0)
    alone = Renderer(None).render(replace(DRY, placement=LIVING.placement(3.0, 10.0)))
    mixed = Renderer(None).render(replace(DRY, placement=LIVING.placement(3.0, 10.0), noise=noise))
    before = mixed.waveform.samples[: RATE // 2]  # half a second of noise alone
    assert level_dbfs(alone.waveform) - rms_dbfs(before) == pytest.approx(9.0, abs=0.5)


def test_an_a_weighted_snr_compares_a_weighted_levels() -> None:
    alone = Renderer(None).render(DRY)
    mixed = Renderer(None).render(replace(DRY, noise=NoiseSpec(NoiseKind.PINK, 9.0, a_weighted=True)))
    first, last = alone.parts[0].start_sample, alone.parts[-1].end_sample
    speech, noise = alone.waveform.samples[first:last], mixed.waveform.samples[: RATE // 2]
    speech_db = level_dbfs(alone.waveform) + a_weighting_of(Waveform(speech, RATE))
    noise_db = rms_dbfs(noise) + a_weighting_of(Waveform(noise, RATE))
    assert speech_db - noise_db == pytest.approx(9.0, abs=0.5)


def test_a_recorded_response_is_heard_as_it_was_recorded(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    tail = chance.standard_normal(4000) * np.exp(-np.arange(4000) / 900) * 0.05
    response = np.concatenate((np.zeros(123), [0.7], tail)).astype(np.float32)
    path = tmp_path / "kitchen.wav"
    soundfile.write(path, response, RATE, subtype="FLOAT")
    kitchen = RoomSpec("kitchen", None, (ImpulseResponse(str(path), 2.0, 45.0),), LevelAt.TALKER)
    sound = Renderer(None).render(DRY).waveform
    heard = apply_room(sound, kitchen.placement(2.0, 45.0))
    expected = np.convolve(sound.samples.astype(np.float64), response)[123:]
    np.testing.assert_allclose(heard.samples, expected, atol=1e-6)
    at_device = replace(kitchen, level_at=LevelAt.DEVICE)
    rendered = Renderer(None).render(replace(DRY, placement=at_device.placement(2.0, 45.0)))
    assert level_dbfs(rendered.waveform) == pytest.approx(-26.0, abs=0.1)
    with pytest.raises(InputError, match="no impulse response"):
        apply_room(sound, kitchen.placement(2.0, 44.0))


@pytest.mark.parametrize("rate_hz", [8000, 16_000, 48_000])
def test_the_gain_of_a_recorded_response_is_the_same_at_every_rate(tmp_path: Path, rate_hz: int) -> None:
    response = np.zeros(4800)
    response[100] = 0.5
    soundfile.write(tmp_path / "response.wav", response, 48_000, subtype="FLOAT")
    hall = RoomSpec("hall", None, (ImpulseResponse(str(tmp_path / "response.wav")),), LevelAt.TALKER)
    tone = np.sin(2 * np.pi * 1000 * np.arange(rate_hz) / rate_hz).astype(np.float32)
    heard = apply_room(Waveform(tone, rate_hz), hall.placement(1.0, 0.0))
    assert rms_dbfs(heard.samples[: rate_hz // 2]) == pytest.approx(rms_dbfs(tone) - 6.02, abs=0.1)


def test_a_stimulus_lasts_until_its_last_reverberation_and_is_cached_by_its_room(tmp_path: Path) -> None:
    recipe = replace(DRY, placement=LIVING.placement(2.0, 0.0))
    renderer = Renderer(tmp_path)
    first = renderer.render(recipe)
    assert Renderer(tmp_path).render(recipe).sha256 == Renderer(None).render(recipe).sha256 == first.sha256
    elsewhere = replace(recipe, placement=LIVING.placement(2.5, 0.0))
    assert renderer.render(elsewhere).sha256 != first.sha256
    assert first.waveform.duration_s > first.parts[-1].end_sample / RATE + 0.45
