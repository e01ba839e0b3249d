"""Where the speech of a waveform begins and ends, by its energy, and cutting it out."""

from __future__ import annotations

import numpy as np

from harness.model.stimulus import Samples, Waveform
from harness.sound.stimuli.level import active_speech_level

WINDOW_S = 0.005
BELOW_ACTIVE_DB = 35.0
"""Sound this far under the active speech level is no speech: below weak fricatives, above the noise of a voice."""
ABOVE_FLOOR_DB = 8.0
AT_LEAST_BELOW_DB = 20.0
GUARD_S = 0.02
GUARD_OF_RECORDING_S = 0.1
FADE_S = 0.005


def active_span(waveform: Waveform, *, recorded: bool = False) -> tuple[int, int] | None:
    """Samples [start, end) from the first to the last speech; None for silence.

    Speech is where the power over 5 ms is above 35 dB under the active level. A recording has a noise floor (its
    quietest twentieth): there the threshold is 8 dB above the floor when that is higher, at most 20 dB under the level.
    """
    level = active_speech_level(waveform)
    if level is None:
        return None
    power = _power(waveform)
    threshold_db = level.level_dbfs - BELOW_ACTIVE_DB
    if recorded:
        floor_db = 10 * float(np.log10(max(float(np.percentile(power, 5)), 1e-15)))
        threshold_db = min(max(threshold_db, floor_db + ABOVE_FLOOR_DB), level.level_dbfs - AT_LEAST_BELOW_DB)
    above = np.flatnonzero(power > 10 ** (threshold_db / 10))
    if not len(above):
        return None
    return int(above[0]), int(above[-1]) + 1


def cut_speech(
    waveform: Waveform, *, recorded: bool = False, ends_at: int | None = None, whole: bool = False
) -> tuple[Samples, int, int] | None:
    """The speech and what surrounds it, with 5 ms fades at the ends, and the span of the speech in it.

    Kept around the speech: up to 20 ms; up to 100 ms of a recording, whose weak sounds may lie under its noise.
    ends_at: the sample at which the speech is known to end, whatever its energy says. whole: nothing is cut or faded.
    """
    span = active_span(waveform, recorded=recorded)
    if span is None:
        return None
    if ends_at is not None:
        span = min(span[0], ends_at), min(ends_at, len(waveform.samples))
    if whole:
        return waveform.samples, *span
    guard = round((GUARD_OF_RECORDING_S if recorded else GUARD_S) * waveform.rate_hz)
    first, last = max(0, span[0] - guard), min(len(waveform.samples), span[1] + guard)
    cut = waveform.samples[first:last].copy()
    fade = min(round(FADE_S * waveform.rate_hz), len(cut) // 2)
    ramp = np.sin(np.linspace(0, np.pi / 2, fade, endpoint=False, dtype=np.float64)) ** 2
    cut[:fade] *= ramp.astype(np.float32)
    cut[len(cut) - fade :] *= ramp[::-1].astype(np.float32)
    return cut, span[0] - first, span[1] - first


def _power(waveform: Waveform) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Mean square over a window centred on each sample, shape (n,)."""
    half = max(1, round(WINDOW_S * waveform.rate_hz / 2))
    x = waveform.samples.astype(np.float64)
    total = np.concatenate(([0.0], np.cumsum(x * x)))
    at = np.arange(len(x))
    low, high = np.maximum(at - half, 0), np.minimum(at + half, len(x))
    return np.asarray(np.maximum(total[high] - total[low], 0.0) / (2 * half), dtype=np.float64)
