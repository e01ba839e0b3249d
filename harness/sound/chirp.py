"""A chirp, and where it lies in a recording, to a part of a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import signal

from harness.model.stimulus import Samples, Waveform

_FLOAT64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Found:
    """Where a known sound lies in a recording: `sample` may be fractional; correlation 0–1; gain as a factor."""

    sample: float
    correlation: float
    gain: float


def chirp(duration_s: float = 0.2, low_hz: float = 500.0, high_hz: float = 8000.0, rate_hz: int = 48000) -> Waveform:
    """A logarithmic sweep with 10 ms of raised-cosine fades, peak 0.5 (−9 dBFS)."""
    count = round(duration_s * rate_hz)
    times = np.arange(count) / rate_hz
    sweep = signal.chirp(times, low_hz, duration_s, high_hz, method="logarithmic", phi=-90)
    window = signal.windows.tukey(count, min(1.0, 0.02 / duration_s))
    return Waveform((0.5 * sweep * window).astype(np.float32), rate_hz)


def find(recording: Samples, known: Samples) -> Found:
    """The best match of `known` in `recording` by normalised correlation, refined by a parabola through the peak.

    ValueError when the recording is shorter than what is looked for.
    """
    if len(recording) < len(known):
        raise ValueError("the recording is shorter than the sound that is looked for")
    wanted = known.astype(np.float64)
    heard = recording.astype(np.float64)
    match: _FLOAT64 = signal.correlate(heard, wanted, mode="valid", method="fft")
    running = np.concatenate(([0.0], np.cumsum(heard**2)))
    energy = running[len(wanted) :] - running[: -len(wanted)]
    own = float(np.sum(wanted**2))
    # Silence correlates with nothing; the floor keeps rounding noise from looking like a match.
    score = match / np.sqrt(np.maximum(energy, 1e-9 * own) * own)
    peak = int(np.argmax(np.abs(score)))
    shift = 0.0
    if 0 < peak < len(match) - 1:
        left, middle, right = (abs(float(match[peak + step])) for step in (-1, 0, 1))
        bend = left - 2 * middle + right
        shift = 0.5 * (left - right) / bend if bend else 0.0
    return Found(peak + shift, abs(float(score[peak])), float(match[peak]) / own)
