"""Our own stimulus in a recording: where it lies, and what is left when it is taken out. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg, signal

from harness.audio.timeline import ANALYSIS_HZ, Mono

EARLIEST_S, LATEST_S = -0.1, 0.3
"""Where the sound may arrive, relative to when it was said to leave."""
LEAST_CORRELATION = 0.3
PATH_S = 0.04
_BEFORE_S = 0.004
_RIDGE = 1e-5
_FRAME = 160
_DECAY_DB = 1.2
"""Fall of a room's sound in 10 ms, at a reverberation time of half a second."""
_LEAST_LEFT_DB, _MOST_LEFT_DB = -15.0, 0.0
_OVER_LEFT_DB, _MOST_OVER_DB = 10.0, 14.0
_WELL_OUT_DB = -40.0


@dataclass(frozen=True, slots=True)
class Located:
    """Sample 0 of the stimulus lies at `start` (fractional sample) of the recording; correlation 0–1."""

    start: float
    correlation: float


def locate(recording: Mono, stimulus: Mono) -> Located | None:
    """The place of best normalised cross-correlation; None when one of both is silent or too short.

    recording: 16 kHz, longer than the stimulus; every lag at which the stimulus lies wholly inside it is tried. Both
    are differentiated first, which makes the peak of speech narrow; a parabola through it gives fractions of a sample.
    """
    if len(recording) < len(stimulus) + 2 or len(stimulus) < ANALYSIS_HZ // 20:
        return None
    x = np.diff(stimulus.astype(np.float64), prepend=0.0)
    y = np.diff(recording.astype(np.float64), prepend=float(recording[0]))
    energy = float(np.dot(x, x))
    running = np.concatenate(([0.0], np.cumsum(y * y)))
    around = running[len(x) :] - running[: -len(x)]
    if energy < 1e-9 or float(around.max()) < 1e-9:
        return None
    # Where next to nothing was recorded, a division by next to nothing would be taken for a match.
    around = np.maximum(around, 1e-4 * float(around.max()))
    found = np.abs(signal.correlate(y, x, "valid", method="fft")) / np.sqrt(energy * around)
    peak = int(np.argmax(found))
    offset = 0.0
    if 0 < peak < len(found) - 1:
        left, middle, right = (float(value) for value in found[peak - 1 : peak + 2])
        bend = left - 2 * middle + right
        offset = 0.5 * (left - right) / bend if bend else 0.0
    return Located(peak + offset, min(1.0, float(found[peak])))


def echo(recording: Mono, stimulus: Mono) -> npt.NDArray[np.float64]:
    """What the stimulus sounds like in the recording: shape as the recording's.

    Both at 16 kHz and aligned to some milliseconds (the stimulus as over a path without delay). The path is
    a filter of 44 ms, from least squares (Wiener) over the whole.
    """
    before = int(_BEFORE_S * ANALYSIS_HZ)
    taps = before + int(PATH_S * ANALYSIS_HZ)
    y = recording.astype(np.float64)
    x = np.concatenate((stimulus[before:], np.zeros(before))).astype(np.float64)
    size = 1 << (len(y) + taps).bit_length()
    spectrum = np.fft.rfft(x, size)
    own = np.fft.irfft(np.abs(spectrum) ** 2, size)[:taps]
    cross = np.fft.irfft(np.conj(spectrum) * np.fft.rfft(y, size), size)[:taps]
    if own[0] <= 1e-12:
        return np.zeros(len(y))
    own[0] *= 1 + _RIDGE
    path = linalg.solve_toeplitz(own, cross)
    return np.asarray(np.fft.irfft(np.fft.rfft(path, size) * spectrum, size)[: len(y)])


def _levels_db(samples: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME)
    return np.asarray(10 * np.log10(np.maximum(np.mean(frames**2, axis=1), 1e-12)))


def unexplained(
    residual: npt.NDArray[np.float64], echo_: npt.NDArray[np.float64], floor_dbfs: float
) -> npt.NDArray[np.bool_] | None:
    """Per frame of 10 ms: is there more in the residual than a path that is longer than our filter, or bent, explains?

    None when taking out did not work: what is left of the stimulus is not well below it.
    """
    left = _levels_db(residual)
    ours = _levels_db(echo_)
    for index in range(1, len(ours)):
        ours[index] = max(ours[index], ours[index - 1] - _DECAY_DB)
    telling = ours > floor_dbfs + 15
    if not telling.any():
        return np.asarray(left > -200.0)
    # The lower half of the spread: a device that speaks meanwhile is in the upper half only.
    # What is no louder than the noise says only that it was taken out well.
    ratio_db = np.where(left > floor_dbfs + 6, left - ours, _WELL_OUT_DB)
    low, middle = np.percentile(ratio_db[telling], (20, 50))
    spread_db = min(max(_OVER_LEFT_DB, 2.5 * float(middle - low)), _MOST_OVER_DB)
    left_db = max(float(middle) + spread_db, _LEAST_LEFT_DB)
    if left_db > _MOST_LEFT_DB:
        return None
    return np.asarray(left > ours + left_db)
