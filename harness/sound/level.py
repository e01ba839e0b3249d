"""Levels of sound: RMS, and active speech level (ITU-T P.56, method B); setting them.

Levels are in dBFS relative to a full-scale square wave: a full-scale sine has −3.01 dBFS.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.model.numbers import exact, fixed
from harness.model.stimulus import Samples, Waveform

FLOOR_DBFS = -120.0
"""The level that stands for digital silence."""
SILENCE_PEAK = 1e-5
"""A waveform that never exceeds this (−100 dBFS) is silent: below the last bit of 16-bit sound."""
# P.56, 8.1 and table 1: time constant of the envelope, hangover, margin between active level and threshold.
TIME_CONSTANT_S = 0.03
HANGOVER_S = 0.2
MARGIN_DB = 15.9
FULL_SCALE = 32767 / 32768
"""The largest sample that a 16-bit output can carry on both sides."""


@frozen
class ActiveLevel:
    """RMS level over the time with speech. activity: that time as a share of the whole (0 to 1)."""

    level_dbfs: float
    activity: float


def is_silent(samples: Samples) -> bool:
    """Whether no sample exceeds SILENCE_PEAK. samples: shape (n,)."""
    return float(np.abs(samples).max(initial=0.0)) <= SILENCE_PEAK


def active_speech_level(waveform: Waveform) -> ActiveLevel | None:
    """Active speech level by ITU-T P.56, method B; None for silence.

    The thresholds are relative to the peak of the envelope instead of a converter's bits. The last threshold is found
    by bisection instead of interpolation. A gain therefore changes the level by exactly that gain.
    """
    if is_silent(waveform.samples):
        return None
    x = waveform.samples.astype(np.float64)
    energy = float(np.dot(x, x))
    envelope = _envelope(x, waveform.rate_hz)
    hangover = round(HANGOVER_S * waveform.rate_hz)
    top_db = 20 * math.log10(float(envelope.max()))

    def level_and_count(threshold_db: float) -> tuple[float, int]:
        count = _active_samples(envelope, 10 ** (threshold_db / 20), hangover)
        return 10 * math.log10(energy / count), count

    # Upwards in steps of 6 dB, to the first threshold that is less than the margin below its level.
    high_db = top_db - 90  # Below any threshold that 16-bit sound can need.
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


def rms_dbfs(samples: Samples) -> float:
    """RMS level relative to a full-scale square wave (a full-scale sine: −3.01 dBFS); at least −120."""
    if not len(samples):
        return FLOOR_DBFS
    mean = float(np.mean(np.square(samples, dtype=np.float64)))
    return max(FLOOR_DBFS, 10 * math.log10(mean)) if mean > 0 else FLOOR_DBFS


def power_spectrum(samples: Samples, rate_hz: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Frequencies in Hz, and the mean square of a sound at each of them. samples: shape (n,), n > 0."""
    power = np.square(np.abs(np.fft.rfft(samples.astype(np.float64)))) / len(samples) ** 2 * 2
    return np.asarray(np.fft.rfftfreq(len(samples), 1 / rate_hz), np.float64), power


_POLES_HZ = (20.598997, 107.65265, 737.86223, 12194.217)
"""The frequencies f1 to f4 of A-weighting, IEC 61672-1, annex E."""


def a_weight_db(hertz: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A-weighting at those frequencies, dB; 0 at 1 kHz. Source: IEC 61672-1, annex E."""
    f1, f2, f3, f4 = (pole**2 for pole in _POLES_HZ)

    def response(squared: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        denominator = (squared + f1) * np.sqrt((squared + f2) * (squared + f3)) * (squared + f4)
        return np.asarray(f4 * squared**2 / denominator)

    squared = np.maximum(hertz**2, 1e-6)
    return np.asarray(20 * np.log10(response(squared) / response(np.array(1e6))))


def a_weighting_of(waveform: Waveform) -> float:
    """A-weighted level of a sound minus its unweighted level, dB; 0 for silence."""
    power = np.abs(np.fft.rfft(waveform.samples.astype(np.float64))) ** 2
    if not power.any():
        return 0.0
    hertz = np.asarray(np.fft.rfftfreq(len(waveform.samples), 1 / waveform.rate_hz), np.float64)
    weights = 10 ** (a_weight_db(hertz) / 10)
    return 10 * math.log10(float(np.sum(power * weights)) / float(np.sum(power)))


def amplify(waveform: Waveform, gain_db: float) -> Waveform:
    """The waveform times the gain, without limiting."""
    return Waveform((waveform.samples * 10 ** (gain_db / 20)).astype(np.float32), waveform.rate_hz)


def at_level(waveform: Waveform, level_dbfs: float, name: str) -> Waveform:
    """The waveform at that active speech level. Raises InputError for silence. It may clip: see `refuse_clipping`."""
    active = active_speech_level(waveform)
    if active is None:
        raise InputError(f"{name} is silent, so its level cannot be set", remedy="Use a sound that contains speech")
    return amplify(waveform, level_dbfs - active.level_dbfs)


def at_level_unclipped(waveform: Waveform, level_dbfs: float) -> Waveform:
    """The waveform at that active speech level, or as close as its peak allows; silence stays as it is."""
    active = active_speech_level(waveform)
    if active is None:
        return waveform
    headroom_db = 20 * math.log10(FULL_SCALE / float(np.abs(waveform.samples).max()))
    return amplify(waveform, min(level_dbfs - active.level_dbfs, headroom_db))


def refuse_clipping(waveform: Waveform, level_dbfs: float, name: str, *, as_recorded: bool = False) -> None:
    """Raises InputError with the highest possible level if a sample exceeds full scale.

    as_recorded: the level is that of a recording, which the user did not set.
    """
    peak = float(np.abs(waveform.samples).max(initial=0.0))
    if peak > FULL_SCALE:
        over_db = 20 * math.log10(peak / FULL_SCALE)
        # Rounded down to 0.1 dB, so that the printed level does not clip.
        highest_dbfs = math.floor((level_dbfs - over_db) * 10) / 10
        replaced_key = " in place of `level`" if as_recorded else ""
        raise InputError(
            f"{name} would clip at {exact(level_dbfs)} dBFS: its peak would be {fixed(over_db, 1)} dB above full scale",
            remedy=f"Set level_dbfs to {fixed(highest_dbfs, 1)} or lower{replaced_key}, "
            "and turn up the loudspeaker instead",
        )


_FRAME_S = 0.02
_MIN_RANGE_DB = 10.0
"""Least difference between quiet and loud frames; if it is smaller, noise hides where speech ends."""
_BELOW_LOUD_DB, _ABOVE_QUIET_DB = 30.0, 6.0


def quiet_end_s(samples: npt.NDArray[np.int16], rate_hz: int) -> float | None:
    """How long a sound is quiet at its end, s, in steps of 20 ms. None if its loud and quiet parts differ too little.

    The last loud frame is at most 30 dB below the loudest ones (95th percentile) and at least 6 dB above the quietest
    (10th). Where these are less than 12 dB apart, it lies above their middle.
    """
    length = round(_FRAME_S * rate_hz)
    frames = samples[len(samples) % length :].astype(np.float32).reshape(-1, length)
    if not len(frames):
        return None
    levels_db = 10 * np.log10(np.einsum("ij,ij->i", frames, frames) / length + 1)
    quiet_db, loud_db = np.percentile(levels_db, (10, 95))
    if loud_db - quiet_db < _MIN_RANGE_DB:
        return None
    threshold_db = max(loud_db - _BELOW_LOUD_DB, min(quiet_db + _ABOVE_QUIET_DB, (quiet_db + loud_db) / 2))
    last = int(np.flatnonzero(levels_db > threshold_db)[-1])
    return (len(levels_db) - 1 - last) * length / rate_hz


def _envelope(x: npt.NDArray[np.float64], rate_hz: int) -> npt.NDArray[np.float64]:
    """|x|, smoothed twice over the time constant."""
    time_constant = rate_hz * TIME_CONSTANT_S
    return _smooth(_smooth(np.abs(x), time_constant), time_constant)


def _smooth(x: npt.NDArray[np.float64], time_constant: float) -> npt.NDArray[np.float64]:
    """y[n] = g·y[n−1] + (1 − g)·x[n] with g = exp(−1/time_constant), in samples. x: not negative.

    Within a block, y[n] / gⁿ is 1 − g times the running sum of x[n] / gⁿ. So no loop over samples is needed.
    scipy.signal has this filter, but importing it takes longer than all levels of a run.
    """
    block = round(8 * time_constant)  # x / gⁿ grows to e⁸ times x at most: no digits are lost
    decay = np.exp(-np.arange(1, block + 1) / time_constant)  # gⁿ
    rows = np.zeros((math.ceil(len(x) / block), block))  # a row for each block; zeros fill the last one
    rows.flat[: len(x)] = x
    rows /= decay
    np.cumsum(rows, axis=1, out=rows)
    rows *= decay * -np.expm1(-1 / time_constant)  # 1 − g
    # The last value of a block decays through the next one.
    previous = 0.0
    for row in rows:
        row += previous * decay
        previous = row[-1]
    return rows.ravel()[: len(x)]


def _active_samples(envelope: npt.NDArray[np.float64], threshold: float, hangover: int) -> int:
    """Number of samples at or above the threshold, or at most `hangover` samples after such a sample."""
    edges = np.flatnonzero(np.diff(envelope >= threshold, prepend=False, append=False))
    if not len(edges):
        return 1  # the level divides by it
    starts, ends = edges[::2], edges[1::2]
    pauses = np.append(starts[1:], len(envelope)) - ends
    # The hangover counts from the last active sample, which `ends - starts` has counted already.
    return int(np.sum(ends - starts) + np.sum(np.minimum(pauses, hangover - 1)))
