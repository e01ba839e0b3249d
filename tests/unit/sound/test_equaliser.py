"""The equaliser of a loudspeaker against filters whose response is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from harness.devices.loudspeaker import LoudspeakerOptions
from harness.model.stimulus import Waveform
from harness.sound.calibration import calibration_sound
from harness.sound.equaliser import CENTRES_HZ, Equaliser, band_levels, inverse, parse, response

RATE_HZ = 48_000
NOISE = calibration_sound("pink noise", -26.0, 10.0)
QUIET = Waveform(np.random.default_rng(3).normal(0, 1e-5, RATE_HZ * 2).astype(np.float32), RATE_HZ)


def small_loudspeaker(sound: Waveform) -> Waveform:
    """Falls below 300 Hz, and has a peak of 8 dB at 2 kHz."""
    low = signal.butter(1, 300, "high", fs=RATE_HZ)
    b, a = signal.iirpeak(2000, 2, fs=RATE_HZ)
    samples = signal.lfilter(*low, sound.samples)
    return Waveform((samples + (10 ** (8 / 20) - 1) * signal.lfilter(b, a, samples)).astype(np.float32), RATE_HZ)


@pytest.mark.parametrize("rate_hz", [16_000, 22_050, 48_000])
def test_a_filter_has_the_gains_that_are_asked_for(rate_hz: int) -> None:
    text = " ".join(f"{hz}:{-12 * abs(np.sin(hz)):.1f}" for hz in CENTRES_HZ[::3])
    click = np.zeros(rate_hz, np.float32)
    click[0] = 1
    spectrum = 20 * np.log10(np.abs(np.fft.rfft(Equaliser(text)(Waveform(click, rate_hz)).samples)))
    for hz, gain_db in parse(text):
        assert spectrum[round(hz)] == pytest.approx(gain_db, abs=0.3)
    # Nearly all of it comes at once: a stimulus keeps its times.
    energy = np.cumsum(np.square(Equaliser(text)(Waveform(click, rate_hz)).samples))
    assert np.argmax(energy > 0.9 * energy[-1]) / rate_hz < 0.001


def test_a_response_is_measured_and_levelled() -> None:
    heard = response(small_loudspeaker(NOISE), NOISE, QUIET)
    assert np.ptp(heard) > 12
    text = inverse(heard)
    assert max(gain for _, gain in parse(text)) == 0
    flat = response(small_loudspeaker(Equaliser(text)(NOISE)), NOISE, QUIET)
    measured = [hz >= 160 for hz in CENTRES_HZ]  # below, more than 6 dB are missing
    assert np.ptp(flat[measured]) < 1.5


def test_equaliser_gains_are_limited_and_unheard_bands_unchanged() -> None:
    measured = np.zeros(len(CENTRES_HZ))
    measured[3], measured[4], measured[5] = -30, 30, np.nan
    gains = [gain for _, gain in parse(inverse(measured))]
    assert (gains[3], gains[4], gains[5], gains[6]) == (0, -18, -6, -6)
    loud = Waveform(QUIET.samples * 300, RATE_HZ)
    assert np.isnan(response(loud, NOISE, loud)).all()
    assert set(inverse(response(loud, NOISE, loud)).split()) == {f"{hz}:0" for hz in CENTRES_HZ}


def test_band_levels_add_up_to_the_level() -> None:
    hertz = [hz for hz in CENTRES_HZ if hz in (500, 1000)]
    times = np.arange(RATE_HZ) / RATE_HZ
    tones = sum(0.1 * np.sin(2 * np.pi * hz * times) for hz in hertz)
    levels = dict(zip(CENTRES_HZ, band_levels(np.asarray(tones, np.float32), RATE_HZ), strict=True))
    assert levels[500] == pytest.approx(-23.01, abs=0.02)
    assert levels[1000] == pytest.approx(-23.01, abs=0.02)
    assert levels[2000] < -100


@pytest.mark.parametrize("text", ["125", "125:x", "125:1", "125:-50", "250:0 125:0", "125:0 125:-1", "5:0"])
def test_invalid_equaliser_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="equaliser"):
        LoudspeakerOptions(sound_device="x", equaliser=text)


def test_no_equaliser_changes_nothing() -> None:
    assert Equaliser("")(NOISE) is NOISE
