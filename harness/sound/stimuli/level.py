"""Active speech level (ITU-T P.56, method B), and setting it.

Levels are in dBFS relative to a full-scale square wave: a full-scale sine has −3.01 dBFS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.model.errors import InputError, VoiceError
from harness.model.stimulus import Waveform
from harness.sound.recordings import SILENCE_PEAK

# P.56, 8.1 and table 1: time constant of the envelope, hangover, margin between active level and threshold.
TIME_CONSTANT_S = 0.03
HANGOVER_S = 0.2
MARGIN_DB = 15.9
FULL_SCALE = 32767 / 32768
"""The largest sample that a 16-bit output can carry on both sides."""


@dataclass(frozen=True, slots=True)
class ActiveLevel:
    """RMS level over the time with speech, and that time's share of the whole (0 to 1)."""

    level_dbfs: float
    activity: float


def active_speech_level(waveform: Waveform) -> ActiveLevel | None:
    """Active speech level by ITU-T P.56, method B; None for silence.

    The thresholds hang on the peak of the envelope instead of on the bits of a converter, and the last one is found
    by bisection instead of interpolation, so a gain changes the level by exactly that gain.
    """
    x = waveform.samples.astype(np.float64)
    if not len(x) or float(np.abs(x).max()) <= SILENCE_PEAK:
        return None
    energy = float(np.dot(x, x))
    envelope = _envelope(x, waveform.rate_hz)
    hangover = round(HANGOVER_S * waveform.rate_hz)
    top_db = 20 * math.log10(float(envelope.max()))

    def level_and_count(threshold_db: float) -> tuple[float, int]:
        count = _active_samples(envelope, 10 ** (threshold_db / 20), hangover)
        return 10 * math.log10(energy / count), count

    # From below, in steps of 6 dB, to the first threshold that is less than the margin under its level.
    high_db = top_db - 90
    while high_db < top_db and level_and_count(high_db)[0] - high_db > MARGIN_DB:
        high_db = min(high_db + 6, top_db)
    low_db = high_db - 6
    while high_db - low_db > 0.005:
        middle_db = (low_db + high_db) / 2
        if level_and_count(middle_db)[0] - middle_db > MARGIN_DB:
            low_db = middle_db
        else:
            high_db = middle_db
    level_db, count = level_and_count(low_db)
    return ActiveLevel(level_db, count / len(x))


def rms_dbfs(waveform: Waveform) -> float | None:
    """RMS level of the whole, for noise; None for silence."""
    x = waveform.samples.astype(np.float64)
    if not len(x) or float(np.abs(x).max()) <= SILENCE_PEAK:
        return None
    return 10 * math.log10(float(np.dot(x, x)) / len(x))


def amplify(waveform: Waveform, gain_db: float) -> Waveform:
    """The waveform times the gain; nothing is limited."""
    return Waveform((waveform.samples * 10 ** (gain_db / 20)).astype(np.float32), waveform.rate_hz)


def at_level(waveform: Waveform, level_dbfs: float, what: str) -> Waveform:
    """The waveform with that active speech level; InputError for silence. The peak is not looked at."""
    found = active_speech_level(waveform)
    if found is None:
        raise InputError(f"{what} is silent, so it has no level to set", remedy="Give it a sound with speech in it")
    return amplify(waveform, level_dbfs - found.level_dbfs)


def at_level_unclipped(waveform: Waveform, level_dbfs: float) -> Waveform:
    """The waveform with that active speech level, or as near to it as its peak allows; silence as it is."""
    found = active_speech_level(waveform)
    if found is None:
        return waveform
    headroom_db = 20 * math.log10(FULL_SCALE / float(np.abs(waveform.samples).max()))
    return amplify(waveform, min(level_dbfs - found.level_dbfs, headroom_db))


def refuse_clipping(waveform: Waveform, level_dbfs: float, what: str) -> None:
    """InputError with the highest level possible when a sample lies beyond full scale."""
    peak = float(np.abs(waveform.samples).max(initial=0.0))
    if peak > FULL_SCALE:
        over_db = 20 * math.log10(peak / FULL_SCALE)
        highest = math.floor((level_dbfs - over_db) * 10) / 10
        raise InputError(
            f"{what} would clip at {level_dbfs:g} dBFS: its peak is {over_db:.1f} dB beyond full scale",
            remedy=f"Set level_dbfs to {highest:.1f} or lower, and make the rest up with the volume of the loudspeaker",
        )


def refuse_silence(waveform: Waveform, engine: str, text: str) -> Waveform:
    """The waveform; VoiceError when an engine gave nothing to hear for a text."""
    if active_speech_level(waveform) is None:
        shown = text if len(text) <= 60 else text[:60] + "…"
        raise VoiceError(
            f"{engine} gave only silence for {shown!r}", remedy="Give it words that it can pronounce, or another voice"
        )
    return waveform


def _envelope(x: npt.NDArray[np.float64], rate_hz: int) -> npt.NDArray[np.float64]:
    g = math.exp(-1 / (rate_hz * TIME_CONSTANT_S))
    from scipy.signal import lfilter  # here, since it takes long to import

    return np.asarray(lfilter([(1 - g) ** 2], [1, -2 * g, g * g], np.abs(x)), dtype=np.float64)


def _active_samples(envelope: npt.NDArray[np.float64], threshold: float, hangover: int) -> int:
    """How many samples lie at or above the threshold, or no more than the hangover after one that does."""
    above = np.flatnonzero(envelope >= threshold)
    if not len(above):
        return 1
    held = np.minimum(np.diff(above, append=len(envelope)), hangover)
    return int(held.sum())
