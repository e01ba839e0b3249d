"""Our own stimulus in a recording: where it lies, and what is left when it is taken out. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg, signal

from harness.sound.timeline import ANALYSIS_HZ, Mono

EARLIEST_S, LATEST_S = -0.1, 0.3
"""Where the sound may arrive, relative to when it was said to leave."""
LEAST_CORRELATION = 0.3
PATH_S = 0.04
_BEFORE_S = 0.004
_RIDGE = 1e-5
_FRAME = 160
_DECAY_DB = 1.2
"""Fall of a room's sound in 10 ms, at a reverberation time of half a second."""
_SPAN = 3200
_ASTRAY = int(0.35 * ANALYSIS_HZ)
_RESEMBLANCE = 0.4
_WORD, _BRIDGE = 10, 6
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


def unexplained(residual: Mono, echo_: npt.NDArray[np.float64], floor_dbfs: float) -> npt.NDArray[np.bool_] | None:
    """Per frame of 10 ms: is there more in the residual than a path that is longer than our filter, or bent, explains?

    None when taking out did not work: what is left of the stimulus is not well below it.
    """
    left = _levels_db(residual.astype(np.float64))
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


def quieter(recording: Mono, residual: npt.NDArray[np.float64]) -> Mono:
    """Frame by frame the quieter of both: where taking out adds sound (a gap, a stop), nothing is taken out."""
    count = len(recording) // _FRAME * _FRAME
    better = np.ones(len(recording), np.bool_)
    better[:count] = np.repeat(_levels_db(residual) <= _levels_db(recording.astype(np.float64)), _FRAME)
    return np.where(better, residual, recording).astype(np.float32)


def astray(cleaned: Mono, telling: npt.NDArray[np.bool_], stimulus: Mono, shift: int) -> npt.NDArray[np.bool_]:
    """Per frame of 10 ms: is what is left our own sound after all, but up to 0.35 s from its place?

    A recording with gaps or repeats (an overloaded computer) moves parts of our sound to where the filter does not
    reach. Spans of 0.2 s that hold telling frames are looked for in the stimulus around; sample 0 of `cleaned` is
    sample `shift` of the stimulus. When most of the spans are ours, then all is: better to miss a word of the device
    than to invent one.
    """
    frames = np.zeros(len(telling), np.bool_)
    around = np.pad(stimulus, (_ASTRAY, _ASTRAY + _SPAN))
    step = _SPAN // 2
    spans = ours = 0
    for first in range(0, max(1, len(cleaned) - step), step):
        begin = max(0, min(first, len(cleaned) - _SPAN))
        window = slice(begin // _FRAME, (begin + _SPAN) // _FRAME)
        if not telling[window].any():
            continue
        low = max(0, begin + shift)
        found = locate(around[low : max(0, begin + shift + 2 * _ASTRAY + _SPAN)], cleaned[begin : begin + _SPAN])
        spans += 1
        if found and found.correlation >= _RESEMBLANCE:
            ours += 1
            # What the room makes of it goes on a little.
            frames[window.start : window.stop + _WORD] = True
    return frames | (2 * ours > spans)


def words(telling: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Telling frames without what is shorter than 0.1 s (over gaps of 60 ms): edges of gaps, no word and no earcon.

    What reaches the end may go on and stays.
    """
    kept = telling.copy()
    found = np.flatnonzero(telling)
    for run in np.split(found, np.flatnonzero(np.diff(found) > _BRIDGE) + 1):
        if len(run) and run[-1] - run[0] < _WORD - 1 and run[-1] < len(telling) - _BRIDGE:
            kept[run] = False
    return kept
