"""Slower speech: so much longer, the same voice."""

import numpy as np
import pytest
import soxr

from harness.model.stimulus import Waveform
from harness.sound.tempo import SLOWER, at_tempo
from tests.unit.sound.spoken import RATE_HZ, Mono, speech

SAID = "the weather will stay warm and dry until the end of the week"


def pitches(samples: Mono, rate_hz: int) -> list[float]:
    """Fundamental frequencies of the voiced frames, by autocorrelation between 60 and 350 Hz."""
    size, found = round(0.05 * rate_hz), []
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
            found.append(rate_hz / (peak + shortest))
    return found


@pytest.mark.parametrize("voice", ["en-us", "en-us+f3", "flite:slt", "flite:rms"])
@pytest.mark.parametrize("tempo", [SLOWER, 1.5])
def test_speech_gets_longer_and_keeps_its_pitch(voice: str, tempo: float) -> None:
    said = Waveform(speech(SAID, voice), RATE_HZ)
    slow = at_tempo(said, tempo)
    assert slow.rate_hz == RATE_HZ
    assert slow.duration_s == pytest.approx(said.duration_s / tempo, abs=0.03)
    before, after = pitches(said.samples, RATE_HZ), pitches(slow.samples, RATE_HZ)
    assert len(before) > 20
    for quantile in (0.25, 0.5, 0.75):
        assert np.quantile(after, quantile) == pytest.approx(np.quantile(before, quantile), rel=0.03)
    # As loud, and without steps between frames that were not there.
    assert np.sqrt(np.mean(slow.samples**2)) == pytest.approx(np.sqrt(np.mean(said.samples**2)), rel=0.1)
    assert np.abs(np.diff(slow.samples)).max() < 1.3 * np.abs(np.diff(said.samples)).max()


def test_a_resampled_voice_would_fail_that_test() -> None:
    said = speech(SAID)
    slow = soxr.resample(said, RATE_HZ, RATE_HZ / SLOWER)
    assert np.median(pitches(slow, RATE_HZ)) < 0.8 * np.median(pitches(said, RATE_HZ))


@pytest.mark.parametrize("rate_hz", [8000, 16000, 44100])
def test_what_is_said_when_keeps_its_order_at_any_rate(rate_hz: int) -> None:
    """Three bursts at known places are found at those places, stretched."""
    samples = np.zeros(3 * rate_hz, np.float32)
    t = np.arange(rate_hz // 5) / rate_hz
    for at_s in (0.3, 1.2, 2.4):
        first = round(at_s * rate_hz)
        samples[first : first + len(t)] = 0.5 * np.sin(2 * np.pi * 220 * t)
    slow = at_tempo(Waveform(samples, rate_hz), SLOWER)
    loud = np.abs(slow.samples) > 0.1
    starts = [at / rate_hz for at in np.flatnonzero(loud) if not loud[max(0, at - rate_hz // 10) : at].any()]
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
