"""The active speech level meter against known levels; slower speech."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from harness.model.errors import InputError
from harness.model.stimulus import Samples, SpokenText, StimulusRecipe, VoiceSpec, Waveform
from harness.sound.level import (
    TIME_CONSTANT_S,
    _envelope,
    a_weight_db,
    a_weighting_of,
    active_speech_level,
    amplify,
    at_level,
    quiet_end_s,
    refuse_clipping,
)
from harness.sound.stimuli.renderer import renderer
from harness.sound.tempo import SLOWER, at_tempo
from tests.known import known
from tests.unit.sound.spoken import RATE_HZ, Mono, speech

RATE = 16_000


def tone(seconds: float, amplitude: float = 0.5) -> Samples:
    t = np.arange(round(seconds * RATE)) / RATE
    return (amplitude * np.sin(2 * np.pi * 500 * t)).astype(np.float32)


def bursts(on_s: float, off_s: float, count: int, amplitude: float = 0.5) -> Waveform:
    quiet = np.zeros(round(off_s * RATE), dtype=np.float32)
    return Waveform(np.concatenate([tone(on_s, amplitude), quiet] * count), RATE)


@pytest.mark.parametrize("count", [0, 1, 3839, 3840, 3841, 50_000])
def test_the_envelope_is_that_of_scipys_recursive_filter(count: int) -> None:
    x = np.random.default_rng(count).standard_normal(count)
    g = math.exp(-1 / (RATE * TIME_CONSTANT_S))
    expected = signal.lfilter([(1 - g) ** 2], [1, -2 * g, g * g], np.abs(x))
    np.testing.assert_allclose(_envelope(x, RATE), expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(
    ("samples", "level_dbfs"), [(tone(20, 1.0), -3.01), (np.sign(tone(20, 1.0) + 1e-9).astype(np.float32), 0.0)]
)
def test_a_full_scale_sine_is_3_db_below_a_full_scale_square(samples: Samples, level_dbfs: float) -> None:
    level = known(active_speech_level(Waveform(samples, RATE)))
    assert level.level_dbfs == pytest.approx(level_dbfs, abs=0.05)
    assert level.activity == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(("on_s", "off_s"), [(1.0, 1.0), (1.0, 3.0), (2.0, 1.0), (0.5, 2.0)])
def test_bursts_are_active_while_they_last_and_for_the_hangover(on_s: float, off_s: float) -> None:
    level = known(active_speech_level(bursts(on_s, off_s, 10)))
    # After a burst the envelope takes about 0.1 s to fall 15.9 dB; then come 0.2 s of hangover.
    assert level.activity == pytest.approx((on_s + 0.3) / (on_s + off_s), rel=0.06)
    long_term_db = 20 * math.log10(0.5) - 3.01 + 10 * math.log10(on_s / (on_s + off_s))
    assert level.level_dbfs == pytest.approx(long_term_db - 10 * math.log10(level.activity), abs=0.01)


def test_pauses_shorter_than_the_hangover_are_speech() -> None:
    level = known(active_speech_level(bursts(0.5, 0.15, 20)))
    assert level.activity > 0.98


def test_silence_around_speech_does_not_change_its_level() -> None:
    speech = bursts(1.0, 0.4, 4)
    padding = np.zeros(10 * RATE, dtype=np.float32)
    padded = Waveform(np.concatenate([padding, speech.samples, padding]), RATE)
    alone, within = known(active_speech_level(speech)), known(active_speech_level(padded))
    assert within.level_dbfs == pytest.approx(alone.level_dbfs, abs=0.1)


def by_the_text_of_p56(waveform: Waveform) -> float:
    """Method B one sample after another, with the thresholds of a 16-bit converter, interpolated in dB (8.1, 8.2)."""
    g, hold = math.exp(-1 / (waveform.rate_hz * 0.03)), round(0.2 * waveform.rate_hz)
    thresholds = [2.0**-bit for bit in range(15, 0, -1)]
    active, hangover = [0] * len(thresholds), [hold] * len(thresholds)
    p = q = energy = 0.0
    for x in waveform.samples.tolist():
        energy += x * x
        p = g * p + (1 - g) * abs(x)
        q = g * q + (1 - g) * p
        for j, threshold in enumerate(thresholds):
            hangover[j] = 0 if q >= threshold else hangover[j] + 1
            active[j] += hangover[j] <= hold
    levels = [10 * math.log10(energy / count) for count in active if count]
    above = [level - 20 * math.log10(c) - 15.9 for level, c in zip(levels, thresholds, strict=False)]
    last = next(j for j, margin in enumerate(above) if margin <= 0)
    share = above[last - 1] / (above[last - 1] - above[last])
    return levels[last - 1] + share * (levels[last] - levels[last - 1])


@pytest.mark.parametrize("level_dbfs", [-40.0, -26.0, -15.0])
@pytest.mark.parametrize("text", ["alexa", "what are the names of the moons of Mars"])
def test_the_level_of_speech_is_that_of_a_second_implementation(text: str, level_dbfs: float) -> None:
    voice = VoiceSpec("flite", "slt")
    waveform = renderer().render(StimulusRecipe(SpokenText(text), None, voice, rate_hz=RATE)).waveform
    changed = amplify(waveform, level_dbfs + 26)
    assert known(active_speech_level(changed)).level_dbfs == pytest.approx(by_the_text_of_p56(changed), abs=0.1)


@settings(max_examples=20)
@given(gain_db=st.floats(-70, 5))
def test_a_gain_changes_the_level_by_that_gain(gain_db: float) -> None:
    speech = bursts(0.7, 0.6, 3)
    plain, changed = known(active_speech_level(speech)), known(active_speech_level(amplify(speech, gain_db)))
    assert changed.level_dbfs - plain.level_dbfs == pytest.approx(gain_db, abs=0.1)


@pytest.mark.parametrize("samples", [np.zeros(0), np.zeros(RATE), np.full(RATE, 1e-6)])
def test_silence_has_no_level(samples: Samples) -> None:
    silent = Waveform(samples.astype(np.float32), RATE)
    assert active_speech_level(silent) is None
    with pytest.raises(InputError, match="silent"):
        at_level(silent, -26, "it")


def test_suggested_highest_level_is_possible_and_the_next_is_not() -> None:
    speech = bursts(0.6, 0.5, 4)
    with pytest.raises(InputError, match="would clip") as refusal:
        refuse_clipping(at_level(speech, 0, "it"), 0, "it")
    highest = float(refusal.value.remedy.split("level_dbfs to ")[1].split()[0])
    refuse_clipping(at_level(speech, highest, "it"), highest, "it")
    with pytest.raises(InputError):
        refuse_clipping(at_level(speech, highest + 0.11, "it"), highest + 0.11, "it")


SAID = "the weather will stay warm and dry until the end of the week"


def pitches(samples: Mono, rate_hz: int) -> list[float]:
    """Fundamental frequencies of the voiced frames, by autocorrelation between 60 and 350 Hz."""
    size, pitches_hz = round(0.05 * rate_hz), []
    shortest, longest = rate_hz // 350, rate_hz // 60
    loud = 0.1 * float(np.abs(samples).max())
    for first in range(0, len(samples) - size - longest, size // 2):
        frame = samples[first : first + size + longest].astype(float)
        if np.sqrt(np.mean(frame**2)) < loud:
            continue
        alike = np.correlate(frame, frame[:size], mode="valid")[shortest:]
        energy = np.convolve(frame**2, np.ones(size), mode="valid")[shortest:]
        alike /= np.sqrt(energy * energy[0]) + 1e-12
        peak = int(np.argmax(alike))
        if alike[peak] > 0.85:
            pitches_hz.append(rate_hz / (peak + shortest))
    return pitches_hz


@pytest.mark.parametrize("voice", ["en-us+f3", "flite:rms"])
@pytest.mark.parametrize("tempo", [SLOWER, 1.5])
def test_speech_gets_longer_and_keeps_its_pitch(voice: str, tempo: float) -> None:
    original = Waveform(speech(SAID, voice), RATE_HZ)
    slow = at_tempo(original, tempo)
    assert slow.rate_hz == RATE_HZ
    assert slow.duration_s == pytest.approx(original.duration_s / tempo, abs=0.03)
    before, after = pitches(original.samples, RATE_HZ), pitches(slow.samples, RATE_HZ)
    assert len(before) > 20
    for quantile in (0.25, 0.5, 0.75):
        assert np.quantile(after, quantile) == pytest.approx(np.quantile(before, quantile), rel=0.03)
    # As loud, and without steps between frames that were not there.
    assert np.sqrt(np.mean(slow.samples**2)) == pytest.approx(np.sqrt(np.mean(original.samples**2)), rel=0.1)
    assert np.abs(np.diff(slow.samples)).max() < 1.3 * np.abs(np.diff(original.samples)).max()


@pytest.mark.parametrize("rate_hz", [8000, 16000, 44100])
def test_stretched_speech_keeps_its_order_at_any_rate(rate_hz: int) -> None:
    """Three bursts at known places are found at those places, stretched."""
    samples = np.zeros(3 * rate_hz, np.float32)
    t = np.arange(rate_hz // 5) / rate_hz
    for at_s in (0.3, 1.2, 2.4):
        first = round(at_s * rate_hz)
        samples[first : first + len(t)] = 0.5 * np.sin(2 * np.pi * 220 * t)
    slow = at_tempo(Waveform(samples, rate_hz), SLOWER)
    loud = np.abs(slow.samples) > 0.1
    starts = [
        index / rate_hz for index in np.flatnonzero(loud) if not loud[max(0, index - rate_hz // 10) : index].any()
    ]
    assert starts == pytest.approx([0.4, 1.6, 3.2], abs=0.03)


@pytest.mark.parametrize("count", [0, 1, 100, 700])
def test_a_sound_shorter_than_a_frame_stays_as_it_is(count: int) -> None:
    short = Waveform(np.ones(count, np.float32), RATE_HZ)
    assert at_tempo(short, SLOWER) == short


def test_silence_stays_silent_and_a_wild_tempo_is_refused() -> None:
    assert not at_tempo(Waveform(np.zeros(48000, np.float32), RATE_HZ), SLOWER).samples.any()
    for tempo in (0.0, 0.4, 2.1, float("nan")):
        with pytest.raises(ValueError):
            at_tempo(Waveform(np.zeros(48000, np.float32), RATE_HZ), tempo)


A_WEIGHTS = (
    (20, -50.5), (31.5, -39.4), (63, -26.2), (100, -19.1), (125, -16.1), (250, -8.6), (500, -3.2), (1000, 0.0),
    (2000, 1.2), (2500, 1.3), (4000, 1.0), (8000, -1.1), (12500, -4.3), (16000, -6.6), (20000, -9.3),
)  # fmt: skip
"""Nominal frequency, Hz, and A-weighting, dB: IEC 61672-1, table 3."""


@pytest.mark.parametrize(("nominal_hz", "weight_db"), A_WEIGHTS)
def test_a_weighting_is_that_of_the_standard(nominal_hz: float, weight_db: float) -> None:
    exact_hz = 10 ** (round(10 * np.log10(nominal_hz)) / 10)
    assert a_weight_db(np.array([exact_hz]))[0] == pytest.approx(weight_db, abs=0.051)


def test_a_weighting_lowers_100_hz_by_19_db() -> None:
    tone = np.sin(2 * np.pi * 100 * np.arange(48_000) / 48_000).astype(np.float32)
    assert a_weighting_of(Waveform(tone, 48_000)) == pytest.approx(-19.1, abs=0.1)
    assert a_weighting_of(Waveform(np.zeros(480, np.float32), 48_000)) == 0.0


@pytest.mark.parametrize(("noise", "tail_s"), [(0.0, 0.0), (0.0, 0.3), (0.0003, 0.1), (0.003, 0.0), (0.03, 0.6)])
def test_the_quiet_at_the_end_of_a_clip_is_measured_in_noise(noise: float, tail_s: float) -> None:
    times_s = np.arange(RATE) / RATE
    words = 0.5 * np.sin(2 * np.pi * 300 * times_s) * (np.sin(2 * np.pi * 3 * times_s) ** 2 > 0.1)
    sound = np.concatenate([np.zeros(RATE), words[: RATE * 2 // 5], np.zeros(round(tail_s * RATE))])
    sound += np.random.default_rng(3).normal(0, noise, len(sound)) if noise else 0
    assert quiet_end_s((32767 * sound).astype(np.int16), RATE) == pytest.approx(tail_s, abs=0.021)


def test_steady_noise_and_silence_hide_where_speech_ends() -> None:
    noise = np.random.default_rng(4).normal(0, 3000, 2 * RATE)
    for sound in (noise, np.zeros(RATE), np.zeros(10)):
        assert quiet_end_s(sound.astype(np.int16), RATE) is None
