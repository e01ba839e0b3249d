"""Finds the harness's own stimuli in a recording, and removes or masks them there. No I/O, no clock.

`OwnVoiceGate` holds sound back while a stimulus plays, finds the stimulus (`locate`), and subtracts its echo (`echo`).
What may still be own sound (`find_unexplained`, `displaced_own_sound`) is masked. Samples are at 16 kHz.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.model.frozen import frozen
from harness.sound.filters import correlate
from harness.sound.frames import ANALYSIS_HZ, FRAME_SAMPLES, Mono

EARLIEST_S, LATEST_S = -0.1, 0.3
"""When a sound may arrive at the microphone, relative to the playback timestamp of its start, in seconds."""
MIN_CORRELATION = 0.3
PATH_S = 0.04  # Chosen: a longer path costs more, since `echo` solves a system of as many equations as it has samples.
_PATH_LEAD_S = 0.004  # Of the path, before the direct sound.
_RIDGE = 1e-5  # Keeps the equations solvable at frequencies that the stimulus lacks.
_DECAY_DB = 1.2
"""How much a room's sound decays in 10 ms, if the reverberation time is half a second."""
_SPAN_SAMPLES = 3200  # 0.2 s.
_MAX_DISPLACEMENT = int(0.35 * ANALYSIS_HZ)  # Sound that is displaced further comes after _WATCHED_SAMPLES.
_MIN_RESEMBLANCE = 0.4  # Least correlation of displaced sound.
_MIN_WORD_FRAMES, _MAX_GAP_FRAMES = 10, 6
_MIN_RESIDUAL_DB, _MAX_RESIDUAL_DB = -15.0, 0.0  # A residual below is always explained. Above, removal failed.
_MIN_SPREAD_DB, _MAX_SPREAD_DB = 10.0, 14.0  # Allowed above the median of the residuals.
_REMOVED_DB = -40.0  # Stands for a residual that is below the noise.


@frozen
class StimulusLocation:
    """The stimulus begins at sample `start` (may be fractional) of the recording. correlation: 0–1."""

    start: float
    correlation: float


def locate(recording: Mono, stimulus: Mono) -> StimulusLocation | None:
    """The position with the highest normalised cross-correlation; None if either sound is silent or too short.

    recording: 16 kHz, longer than the stimulus. Every lag that keeps the whole stimulus inside it is tried. Both are
    differentiated first, which makes the peak of speech narrow. A parabola through it gives fractions of a sample.
    """
    if len(recording) < len(stimulus) + 2 or len(stimulus) < ANALYSIS_HZ // 20:
        return None
    x = np.diff(stimulus.astype(np.float64), prepend=0.0)
    y = np.diff(recording.astype(np.float64), prepend=float(recording[0]))
    energy = float(np.dot(x, x))
    running_energy = np.concatenate(([0.0], np.cumsum(y * y)))
    energies = running_energy[len(x) :] - running_energy[: -len(x)]  # of the recording at each lag
    if energy < 1e-9 or float(energies.max()) < 1e-9:
        return None
    # Where almost no sound was recorded, dividing by almost zero would look like a match.
    energies = np.maximum(energies, 1e-4 * float(energies.max()))
    correlation = np.abs(correlate(y, x)) / np.sqrt(energy * energies)
    peak = int(np.argmax(correlation))
    return StimulusLocation(parabola_top(correlation, peak), min(1.0, float(correlation[peak])))


def parabola_top(values: npt.NDArray[np.float64], peak: int) -> float:
    """Position of the maximum of a parabola through a peak and its neighbours."""
    if not 0 < peak < len(values) - 1:
        return float(peak)
    left, middle, right = (float(value) for value in values[peak - 1 : peak + 2])
    bend = left - 2 * middle + right
    return peak + (0.5 * (left - right) / bend if bend else 0.0)


def echo(recording: Mono, stimulus: Mono) -> npt.NDArray[np.float64]:
    """The stimulus as it sounds in the recording, in the recording's shape.

    Both at 16 kHz, aligned to some milliseconds (as over a path without delay). The path is a least-squares (Wiener)
    filter of 44 ms over the whole recording.
    """
    lead = int(_PATH_LEAD_S * ANALYSIS_HZ)
    taps = lead + int(PATH_S * ANALYSIS_HZ)
    y = recording.astype(np.float64)
    x = np.concatenate((stimulus[lead:], np.zeros(lead))).astype(np.float64)
    size = 1 << (len(y) + taps).bit_length()
    spectrum = np.fft.rfft(x, size)
    autocorrelation = np.fft.irfft(np.abs(spectrum) ** 2, size)[:taps]
    cross = np.fft.irfft(np.conj(spectrum) * np.fft.rfft(y, size), size)[:taps]
    if autocorrelation[0] <= 1e-12:
        return np.zeros(len(y))
    autocorrelation[0] *= 1 + _RIDGE
    lags = np.abs(np.subtract.outer(np.arange(taps), np.arange(taps)))
    path = np.linalg.solve(autocorrelation[lags], cross)
    return np.asarray(np.fft.irfft(np.fft.rfft(path, size) * spectrum, size)[: len(y)])


def _levels_db(samples: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """RMS level of each whole frame of 10 ms; −120 dB at least."""
    frames = samples[: len(samples) // FRAME_SAMPLES * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES)
    return np.asarray(10 * np.log10(np.maximum(np.mean(frames**2, axis=1), 1e-12)))


def find_unexplained(
    residual: Mono, own_echo: npt.NDArray[np.float64], floor_dbfs: float
) -> npt.NDArray[np.bool_] | None:
    """For each frame of 10 ms, whether the residual exceeds what a longer path or distortion would explain.

    None if the stimulus could not be removed, since the rest of it is not much weaker.
    """
    residual_db = _levels_db(residual.astype(np.float64))
    echo_db = _levels_db(own_echo)
    for index in range(1, len(echo_db)):
        echo_db[index] = max(echo_db[index], echo_db[index - 1] - _DECAY_DB)
    echo_is_loud = echo_db > floor_dbfs + 15
    if not echo_is_loud.any():
        return np.asarray(residual_db > -200.0)
    # The lower half of the spread: a device that speaks at the same time is in the upper half only.
    # A residual below the noise only shows that the removal worked.
    ratio_db = np.where(residual_db > floor_dbfs + 6, residual_db - echo_db, _REMOVED_DB)
    low, middle = np.percentile(ratio_db[echo_is_loud], (20, 50))
    spread_db = min(max(_MIN_SPREAD_DB, 2.5 * float(middle - low)), _MAX_SPREAD_DB)
    limit_db = max(float(middle) + spread_db, _MIN_RESIDUAL_DB)
    if limit_db > _MAX_RESIDUAL_DB:
        return None
    return np.asarray(residual_db > echo_db + limit_db)


def choose_quieter(recording: Mono, residual: npt.NDArray[np.float64]) -> Mono:
    """The quieter of both, frame by frame: where removal adds sound (a gap, a stop), nothing is removed."""
    count = len(recording) // FRAME_SAMPLES * FRAME_SAMPLES
    is_quieter = np.ones(len(recording), np.bool_)  # the residual, at each sample
    is_quieter[:count] = np.repeat(_levels_db(residual) <= _levels_db(recording.astype(np.float64)), FRAME_SAMPLES)
    return np.where(is_quieter, residual, recording).astype(np.float32)


def displaced_own_sound(
    cleaned: Mono, unexplained: npt.NDArray[np.bool_], stimulus: Mono, shift: int
) -> npt.NDArray[np.bool_]:
    """For each frame of 10 ms, whether the residual is the harness's own sound, displaced by up to 0.35 s.

    Gaps or repetitions in a recording (on a busy computer) displace sound farther than the filter reaches. Each span of
    0.2 s with unexplained frames is compared with the stimulus around it. Sample 0 of `cleaned` is sample `shift` of
    the stimulus. If most match, all count as own sound: better to miss a word than to invent one.
    """
    is_own = np.zeros(len(unexplained), np.bool_)
    padded_stimulus = np.pad(stimulus, (_MAX_DISPLACEMENT, _MAX_DISPLACEMENT + _SPAN_SAMPLES))
    step = _SPAN_SAMPLES // 2
    spans = own_spans = 0
    for first in range(0, max(1, len(cleaned) - step), step):
        begin = max(0, min(first, len(cleaned) - _SPAN_SAMPLES))
        window = slice(begin // FRAME_SAMPLES, (begin + _SPAN_SAMPLES) // FRAME_SAMPLES)
        if not unexplained[window].any():
            continue
        low = max(0, begin + shift)
        nearby = padded_stimulus[low : max(0, begin + shift + 2 * _MAX_DISPLACEMENT + _SPAN_SAMPLES)]
        match = locate(nearby, cleaned[begin : begin + _SPAN_SAMPLES])
        spans += 1
        if match and match.correlation >= _MIN_RESEMBLANCE:
            own_spans += 1
            # Reverberation continues a little.
            is_own[window.start : window.stop + _MIN_WORD_FRAMES] = True
    if 2 * own_spans > spans:
        is_own[:] = True
    return is_own


def without_short_runs(unexplained: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The unexplained frames without runs shorter than 0.1 s (over gaps of 60 ms), which are edges of gaps, not words.

    A run that reaches the end may continue, so it stays.
    """
    remaining = unexplained.copy()
    indices = np.flatnonzero(unexplained)
    for run in np.split(indices, np.flatnonzero(np.diff(indices) > _MAX_GAP_FRAMES) + 1):
        if len(run) and run[-1] - run[0] < _MIN_WORD_FRAMES - 1 and run[-1] < len(unexplained) - _MAX_GAP_FRAMES:
            remaining[run] = False
    return remaining


_LEAD = int(0.05 * ANALYSIS_HZ)
_TAIL, _WATCHED_SAMPLES = int(0.25 * ANALYSIS_HZ), int(0.35 * ANALYSIS_HZ)
"""For this long after its end, a stimulus is still masked if it was not found, and removed if it was."""
_END_SAMPLES = ANALYSIS_HZ // 20  # 50 ms, for which the end of a stimulus may still sound when the next one begins.
_MIN_PIECE = ANALYSIS_HZ // 2  # A shorter piece of a stimulus is not searched for.
_MIN_SHIFT = ANALYSIS_HZ // 500  # A smaller shift of a stimulus is not followed.
_MAX_PIECE = 3 * ANALYSIS_HZ  # Chosen: a longer piece is passed on later, a shorter one shows less of the path.
_HISTORY = 5 * ANALYSIS_HZ  # More than a piece and the search for it.
_SURE_CORRELATION = 0.5  # This correlation ends the search before its time is over.
_SEARCH_DELAY = int(0.08 * ANALYSIS_HZ)


@frozen
class LocatedPlay:
    """The first sample of a stimulus is sample `start` (may be fractional, at 16 kHz) of the recording."""

    play_id: str
    start: float
    correlation: float


@dataclass(frozen=True, slots=True, eq=False)
class GatedSound:
    """Sound for the detector: samples (n,) at 16 kHz, and whether each may contain the harness's own stimulus.

    removed: whether the stimulus was removed, so that masked samples contain only remains of it.
    """

    samples: Mono
    masks: npt.NDArray[np.bool_]
    removed: bool = False


@dataclass(slots=True, eq=False)
class _Stimulus:
    """A stimulus that plays or will play.

    - expected: its first sample by the clocks.
    - located: where it was found; None if it was not, or not yet.
    - failed: whether the search for it was given up.
    - reported: whether its position was already reported.
    - done_until: the sample of the recording up to which it was removed.
    """

    play_id: str
    samples: Mono
    expected: int
    located: StimulusLocation | None = None
    failed: bool = False
    reported: bool = False
    skipped: int = 0
    """Number of its first samples that the recording does not contain."""
    done_until: int = 0

    @property
    def start(self) -> int:
        return round(self.located.start) if self.located else self.expected

    @property
    def end(self) -> int:
        return self.start + len(self.samples) + (_TAIL if self.failed else _WATCHED_SAMPLES)


class OwnVoiceGate:
    """Passes sound straight through, or in pieces of up to 3 s with the stimulus removed while one is playing.

    A stimulus that is not found (correlation under 0.3) or cannot be removed is masked by time, until 0.25 s after
    its end. The residual of one that was found is searched for displaced pieces, until 0.35 s after its end.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._samples: Mono = np.zeros(0, np.float32)
        self._origin = 0  # of `_samples`, in the recording
        self._passed_to = 0
        self._own_until = 0  # the end of the previous stimulus
        self._stimuli: list[_Stimulus] = []
        self.heard: list[LocatedPlay] = []

    @property
    def _end(self) -> int:
        return self._origin + len(self._samples)

    def expect(self, play_id: str, samples: Mono, start: int, *, reported: bool = False) -> None:
        """Announces a stimulus (16 kHz) whose first sample is played at sample `start` of the recording, by the clocks.

        If it began before the recording (start < 0: the stream was interrupted), only the rest is searched for.
        reported: whether its position was already reported.
        """
        skipped = 0 if start >= 0 else min(len(samples), -start - int(EARLIEST_S * ANALYSIS_HZ))
        stimulus = _Stimulus(play_id, samples, start, reported=reported, skipped=skipped)
        stimulus.failed = bool(skipped) and len(samples) - skipped < _MIN_PIECE
        stimulus.done_until = self._origin if skipped else start - _LEAD
        self._stimuli.append(stimulus)
        self._stimuli.sort(key=lambda stimulus: stimulus.expected)

    def feed(self, samples: Mono, floor_dbfs: float) -> list[GatedSound]:
        """Takes the next samples. Returns sound that can be passed on now. Adds stimuli that it finds to `heard`."""
        self._samples = np.concatenate((self._samples, samples))
        passed: list[GatedSound] = []
        while self._stimuli:
            stimulus = self._stimuli[0]
            self._pass_plain(max(self._passed_to, min(self._end, stimulus.done_until)), passed)
            if self._passed_to < stimulus.done_until or not self._locate(stimulus):
                break
            end = min(stimulus.end, stimulus.done_until + _MAX_PIECE)
            if len(self._stimuli) > 1:
                # The next stimulus follows closely and takes over where it begins.
                end = min(end, max(self._stimuli[1].done_until, stimulus.done_until))
            if self._end < end:
                break
            self._follow(stimulus, end)
            self._pass_cleaned(stimulus, end, floor_dbfs, passed)
            stimulus.done_until = end
            if end >= stimulus.end or len(self._stimuli) > 1:
                self._own_until = stimulus.start + len(stimulus.samples) + _END_SAMPLES
                self._stimuli.pop(0)
        else:
            self._pass_plain(self._end, passed)
        self._drop_history()
        return passed

    def _drop_history(self) -> None:
        """Drops passed samples that no search needs any more."""
        spare = min(self._passed_to, self._end - _HISTORY) - self._origin
        if (spare > 0 and not self._stimuli) or spare > _HISTORY:
            keep_from = self._passed_to - _HISTORY if self._stimuli else self._origin + spare
            dropped = max(0, min(keep_from, self._passed_to) - self._origin)
            self._samples = self._samples[dropped:]
            self._origin += dropped

    def _pass_plain(self, end: int, passed: list[GatedSound]) -> None:
        if end > self._passed_to:
            samples = self._samples[self._passed_to - self._origin : end - self._origin]
            passed.append(GatedSound(samples, np.zeros(len(samples), np.bool_)))
            self._passed_to = end

    def _locate(self, stimulus: _Stimulus) -> bool:
        """Searches for the stimulus once enough of it has passed. Returns whether it was found or given up."""
        if stimulus.located or stimulus.failed:
            return True
        part = stimulus.samples[stimulus.skipped :][:_MAX_PIECE]
        expected = stimulus.expected + stimulus.skipped
        soonest = expected + len(part) + _SEARCH_DELAY
        latest = expected + len(part) + int(LATEST_S * ANALYSIS_HZ)
        if self._end < soonest:
            return False
        is_last = self._end >= latest
        # A search is slow, so there is only one every 40 ms.
        is_due = (self._end - soonest) % (_SEARCH_DELAY // 2) < FRAME_SAMPLES
        if not (is_due or is_last):
            return False
        first = max(expected + int(EARLIEST_S * ANALYSIS_HZ), self._origin)
        match = locate(self._samples[first - self._origin : min(self._end, latest) - self._origin], part)
        threshold = MIN_CORRELATION if is_last else _SURE_CORRELATION
        if match and match.correlation >= threshold:
            start = match.start + first - stimulus.skipped
            stimulus.located = StimulusLocation(start, match.correlation)
            if not stimulus.reported:
                self.heard.append(LocatedPlay(stimulus.play_id, start, match.correlation))
            return True
        stimulus.failed = is_last
        return is_last

    def _follow(self, stimulus: _Stimulus, end: int) -> None:
        """Searches again for a later piece: lost or repeated sound has displaced it."""
        first = stimulus.done_until - stimulus.start
        part = stimulus.samples[max(0, first) : end - stimulus.start - int(LATEST_S * ANALYSIS_HZ)]
        if stimulus.located is None or first < _LEAD or len(part) < _MIN_PIECE:
            return
        begin = max(stimulus.done_until + int(EARLIEST_S * ANALYSIS_HZ), self._origin)
        match = locate(self._samples[begin - self._origin : end - self._origin], part)
        if match and match.correlation >= _SURE_CORRELATION:
            start = match.start + begin - first
            if abs(start - stimulus.located.start) > _MIN_SHIFT:
                stimulus.located = StimulusLocation(start, match.correlation)

    def _pass_cleaned(self, stimulus: _Stimulus, end: int, floor_dbfs: float, passed: list[GatedSound]) -> None:
        """Removes the stimulus from [done_until, end), and passes on what was not passed yet."""
        begin = max(stimulus.done_until, self._origin)
        recording = self._samples[begin - self._origin : end - self._origin]
        count = len(recording)
        own_sound = np.zeros(count, np.float32)
        shift = begin - stimulus.start
        source = stimulus.samples[max(shift, 0) : shift + count] if shift + count > 0 else stimulus.samples[:0]
        offset = max(-shift, 0)
        own_sound[offset : offset + len(source)] = source[: max(0, count - offset)]
        masks = np.ones(count, np.bool_)
        cleaned = recording
        if stimulus.located:
            own_echo = echo(recording, own_sound)
            residual = choose_quieter(recording, recording - own_echo)
            unexplained = find_unexplained(residual, own_echo, floor_dbfs)
            if unexplained is not None:
                cleaned = residual
                if unexplained.any():
                    unexplained &= ~displaced_own_sound(residual, unexplained, stimulus.samples, shift)
                    unexplained = without_short_runs(unexplained)
                masks = np.repeat(~unexplained, FRAME_SAMPLES)
                masks = np.concatenate((masks, np.ones(count - len(masks), np.bool_)))
                # Before the stimulus arrived, only the end of the previous one may need a mask.
                masks[: max(0, stimulus.start - FRAME_SAMPLES - begin)] = False
                if begin < stimulus.start:
                    masks[: max(0, self._own_until - begin)] = True
            else:
                masks[max(0, stimulus.start + len(stimulus.samples) + _TAIL - begin) :] = False
        first = max(0, self._passed_to - begin)
        if first < count:
            passed.append(GatedSound(cleaned[first:], masks[first:], removed=cleaned is not recording))
            self._passed_to = end
