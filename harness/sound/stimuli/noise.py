"""Noise under a stimulus: white, pink, or a recording that is repeated."""

from __future__ import annotations

import numpy as np

from harness.model.errors import InputError, Place
from harness.model.stimulus import NoiseKind, NoiseSpec, Waveform
from harness.sound import recordings
from harness.sound.stimuli import recording
from harness.sound.stimuli.level import amplify, rms_dbfs

MARGIN_S = 0.5
"""Noise begins this long before a stimulus and ends this long after it."""
LOWEST_HZ = 20.0
CROSSFADE_S = 0.05


def make(spec: NoiseSpec, samples: int, rate_hz: int, level_dbfs: float, seed: int) -> Waveform:
    """Noise of that length with that RMS level; the same seed gives the same noise. InputError as recordings.read."""
    match spec.kind:
        case NoiseKind.WHITE:
            noise = _coloured(samples, rate_hz, seed, slope=0.0)
        case NoiseKind.PINK:
            noise = _coloured(samples, rate_hz, seed, slope=-0.5)
        case NoiseKind.RECORDING:
            noise = _repeated(recording.at_rate(recordings.read(spec.path), rate_hz), samples)
    found = rms_dbfs(noise)
    if found is None:
        raise InputError(
            "the noise is silent where it is used", place=Place(spec.path or spec.kind), remedy="Use another recording"
        )
    return amplify(noise, level_dbfs - found)


def _coloured(samples: int, rate_hz: int, seed: int, slope: float) -> Waveform:
    """Gaussian noise from 20 Hz up whose amplitude falls with frequency ** slope."""
    white = np.random.Generator(np.random.PCG64(seed)).standard_normal(samples)
    spectrum = np.fft.rfft(white)
    hz = np.fft.rfftfreq(samples, 1 / rate_hz)
    spectrum[hz < LOWEST_HZ] = 0
    spectrum[hz >= LOWEST_HZ] *= hz[hz >= LOWEST_HZ] ** slope
    return Waveform((np.fft.irfft(spectrum, samples) / np.sqrt(samples)).astype(np.float32), rate_hz)


def _repeated(source: Waveform, samples: int) -> Waveform:
    """The recording from its start, joined to itself by 50 ms crossfades of equal power."""
    x = source.samples
    if len(x) >= samples:
        return Waveform(x[:samples], source.rate_hz)
    fade = min(round(CROSSFADE_S * source.rate_hz), len(x) // 2)
    step = len(x) - fade
    turn = np.linspace(0, np.pi / 2, fade, endpoint=False)
    once = x.astype(np.float64)
    once[:fade] *= np.sin(turn)
    once[step:] *= np.cos(turn)
    out = np.zeros(samples + len(x))
    for start in range(0, samples, step):
        out[start : start + len(x)] += once
    # The very beginning follows nothing, so it is not faded in.
    out[:fade] = x[:fade]
    return Waveform(out[:samples].astype(np.float32), source.rate_hz)
