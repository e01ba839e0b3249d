"""Turns blocks of a recording into observations: own stimuli, speech, earcons. No I/O, no clock.

    48 kHz ─► Decimator, 16 kHz ─► OwnVoiceGate ─► ChimeFilter ─► Frames, 10 ms ─► Endpoints ─► observations

While a stimulus plays, the gate holds sound back, finds the stimulus (`locate`), and subtracts its echo. It masks what
may still be the harness's own sound, so that it does not count as speech of the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import soxr

from harness.base.ports import SpeechDetector
from harness.model.bench import EarconMeaning
from harness.model.frozen import frozen
from harness.model.observation import Earcon, Intent, Observation, SpeechEnded, SpeechStarted, StimulusHeard, Wake
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.sound.capture import Block
from harness.sound.earcons import EarconDetection, EarconFinder, LearnedEarcon
from harness.sound.endpoints import EndpointEvent, EndpointRules, Endpoints, SpeechOffset, SpeechOnset, ToneDetection
from harness.sound.filters import correlate
from harness.sound.frames import ANALYSIS_HZ, FRAME_SAMPLES, Decimator, Frames, Mono, Timeline
from harness.sound.level import rms_dbfs
from harness.sound.stream_clock import RATE_HZ

EARLIEST_S, LATEST_S = -0.1, 0.3
"""When a sound may arrive at the microphone, relative to the playback timestamp of its start, in seconds."""
MIN_CORRELATION = 0.3
PATH_S = 0.04  # Chosen: a longer path costs more, since `echo` solves a system of as many equations as it has samples.
_BEFORE_S = 0.004  # Of the path, before the direct sound.
_RIDGE = 1e-5  # Keeps the equations solvable at frequencies that the stimulus lacks.
_DECAY_DB = 1.2
"""How much a room's sound decays in 10 ms, if the reverberation time is half a second."""
_SPAN_SAMPLES = 3200  # 0.2 s.
_ASTRAY = int(0.35 * ANALYSIS_HZ)  # Sound that is displaced further comes after _WATCHED.
_RESEMBLANCE = 0.4
_WORD, _BRIDGE = 10, 6  # Frames.
_MIN_LEFT_DB, _MAX_LEFT_DB = -15.0, 0.0  # A residual below is always explained. Above, removal failed.
_OVER_LEFT_DB, _MAX_OVER_DB = 10.0, 14.0
_WELL_OUT_DB = -40.0


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
    running = np.concatenate(([0.0], np.cumsum(y * y)))
    around = running[len(x) :] - running[: -len(x)]
    if energy < 1e-9 or float(around.max()) < 1e-9:
        return None
    # Almost no sound was recorded: dividing by almost zero would look like a match.
    around = np.maximum(around, 1e-4 * float(around.max()))
    correlation = np.abs(correlate(y, x)) / np.sqrt(energy * around)
    peak = int(np.argmax(correlation))
    return StimulusLocation(top_of(correlation, peak), min(1.0, float(correlation[peak])))


def top_of(values: npt.NDArray[np.float64], peak: int) -> float:
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
    lead = int(_BEFORE_S * ANALYSIS_HZ)
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
    frames = samples[: len(samples) // FRAME_SAMPLES * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES)
    return np.asarray(10 * np.log10(np.maximum(np.mean(frames**2, axis=1), 1e-12)))


def find_unexplained(residual: Mono, echo_: npt.NDArray[np.float64], floor_dbfs: float) -> npt.NDArray[np.bool_] | None:
    """For each frame of 10 ms, whether the residual exceeds what a longer path or distortion would explain.

    None if the stimulus could not be removed, since the rest of it is not much weaker.
    """
    residual_db = _levels_db(residual.astype(np.float64))
    echo_db = _levels_db(echo_)
    for index in range(1, len(echo_db)):
        echo_db[index] = max(echo_db[index], echo_db[index - 1] - _DECAY_DB)
    telling = echo_db > floor_dbfs + 15
    if not telling.any():
        return np.asarray(residual_db > -200.0)
    # The lower half of the spread: a device that speaks at the same time is in the upper half only.
    # A residual below the noise only shows that the removal worked.
    ratio_db = np.where(residual_db > floor_dbfs + 6, residual_db - echo_db, _WELL_OUT_DB)
    low, middle = np.percentile(ratio_db[telling], (20, 50))
    spread_db = min(max(_OVER_LEFT_DB, 2.5 * float(middle - low)), _MAX_OVER_DB)
    left_db = max(float(middle) + spread_db, _MIN_LEFT_DB)
    if left_db > _MAX_LEFT_DB:
        return None
    return np.asarray(residual_db > echo_db + left_db)


def quieter(recording: Mono, residual: npt.NDArray[np.float64]) -> Mono:
    """The quieter of both, frame by frame: where removal adds sound (a gap, a stop), nothing is removed."""
    count = len(recording) // FRAME_SAMPLES * FRAME_SAMPLES
    better = np.ones(len(recording), np.bool_)
    better[:count] = np.repeat(_levels_db(residual) <= _levels_db(recording.astype(np.float64)), FRAME_SAMPLES)
    return np.where(better, residual, recording).astype(np.float32)


def displaced_own_sound(
    cleaned: Mono, telling: npt.NDArray[np.bool_], stimulus: Mono, shift: int
) -> npt.NDArray[np.bool_]:
    """For each frame of 10 ms, whether the residual is the harness's own sound, displaced by up to 0.35 s.

    Gaps or repetitions in a recording (on a busy computer) displace sound farther than the filter reaches. Each span of
    0.2 s with unexplained frames (`telling`) is compared with the stimulus around it. Sample 0 of `cleaned` is sample
    `shift` of the stimulus. If most match, all count as own sound: better to miss a word than to invent one.
    """
    frames = np.zeros(len(telling), np.bool_)
    around = np.pad(stimulus, (_ASTRAY, _ASTRAY + _SPAN_SAMPLES))
    step = _SPAN_SAMPLES // 2
    spans = own_spans = 0
    for first in range(0, max(1, len(cleaned) - step), step):
        begin = max(0, min(first, len(cleaned) - _SPAN_SAMPLES))
        window = slice(begin // FRAME_SAMPLES, (begin + _SPAN_SAMPLES) // FRAME_SAMPLES)
        if not telling[window].any():
            continue
        low = max(0, begin + shift)
        sought = around[low : max(0, begin + shift + 2 * _ASTRAY + _SPAN_SAMPLES)]
        match = locate(sought, cleaned[begin : begin + _SPAN_SAMPLES])
        spans += 1
        if match and match.correlation >= _RESEMBLANCE:
            own_spans += 1
            # Reverberation continues a little.
            frames[window.start : window.stop + _WORD] = True
    return frames | (2 * own_spans > spans)


def without_short_runs(telling: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """The unexplained frames without runs shorter than 0.1 s (over gaps of 60 ms), which are edges of gaps, not words.

    A run that reaches the end may continue, so it stays.
    """
    remaining = telling.copy()
    indices = np.flatnonzero(telling)
    for run in np.split(indices, np.flatnonzero(np.diff(indices) > _BRIDGE) + 1):
        if len(run) and run[-1] - run[0] < _WORD - 1 and run[-1] < len(telling) - _BRIDGE:
            remaining[run] = False
    return remaining


_LEAD = int(0.05 * ANALYSIS_HZ)
_TAIL = int(0.25 * ANALYSIS_HZ)
_WATCHED = int(0.35 * ANALYSIS_HZ)
"""For this long after its end, a stimulus is still removed if it was found, or masked if not."""
_FADES = ANALYSIS_HZ // 20  # 50 ms, for which the end of a stimulus may still sound when the next one begins.
_REST = ANALYSIS_HZ // 2  # A shorter piece of a stimulus is not searched for.
_APART = ANALYSIS_HZ // 500  # A smaller shift of a stimulus is not followed.
_PIECE = 3 * ANALYSIS_HZ  # Chosen: a longer piece is passed on later, a shorter one shows less of the path.
_HISTORY = 5 * ANALYSIS_HZ  # More than a piece and the search for it.
_SURE = 0.5  # This correlation ends the search before its time is over.
_SOON = int(0.08 * ANALYSIS_HZ)


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
    play_id: str
    samples: Mono
    expected: int
    located: StimulusLocation | None = None
    failed: bool = False
    reported: bool = False
    skipped: int = 0
    """Number of its first samples that the recording does not contain."""
    done_until: int = field(default=0)

    @property
    def start(self) -> int:
        return round(self.located.start) if self.located else self.expected

    @property
    def end(self) -> int:
        return self.start + len(self.samples) + (_TAIL if self.failed else _WATCHED)


class OwnVoiceGate:
    """Passes sound straight through, or in pieces of up to 3 s with the stimulus removed while one is playing.

    A stimulus that is not found (correlation under 0.3) or cannot be removed is masked by time, until 0.25 s after
    its end. The residual of one that was found is searched for displaced pieces, until 0.35 s after its end.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._samples: Mono = np.zeros(0, np.float32)
        self._origin = 0
        self._passed_to = 0
        self._ours_until = 0
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
        stimulus.failed = bool(skipped) and len(samples) - skipped < _REST
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
            end = min(stimulus.end, stimulus.done_until + _PIECE)
            if len(self._stimuli) > 1:
                # The next stimulus follows closely and takes over where it begins.
                end = min(end, max(self._stimuli[1].done_until, stimulus.done_until))
            if self._end < end:
                break
            self._follow(stimulus, end)
            self._pass_cleaned(stimulus, end, floor_dbfs, passed)
            stimulus.done_until = end
            if end >= stimulus.end or len(self._stimuli) > 1:
                self._ours_until = stimulus.start + len(stimulus.samples) + _FADES
                self._stimuli.pop(0)
        else:
            self._pass_plain(self._end, passed)
        spare = min(self._passed_to, self._end - _HISTORY) - self._origin
        if (spare > 0 and not self._stimuli) or spare > _HISTORY:
            keep_from = self._passed_to - _HISTORY if self._stimuli else self._origin + spare
            cut = max(0, min(keep_from, self._passed_to) - self._origin)
            self._samples = self._samples[cut:]
            self._origin += cut
        return passed

    def _pass_plain(self, end: int, passed: list[GatedSound]) -> None:
        if end > self._passed_to:
            samples = self._samples[self._passed_to - self._origin : end - self._origin]
            passed.append(GatedSound(samples, np.zeros(len(samples), np.bool_)))
            self._passed_to = end

    def _locate(self, stimulus: _Stimulus) -> bool:
        """Searches for the stimulus once enough of it has passed. Returns whether it was found or given up."""
        if stimulus.located or stimulus.failed:
            return True
        part = stimulus.samples[stimulus.skipped :][:_PIECE]
        expected = stimulus.expected + stimulus.skipped
        soonest = expected + len(part) + _SOON
        latest = expected + len(part) + int(LATEST_S * ANALYSIS_HZ)
        if self._end < soonest:
            return False
        is_last = self._end >= latest
        if not is_last and (self._end - soonest) % (_SOON // 2) >= FRAME_SAMPLES:  # a search is slow: one each 40 ms
            return False
        first = max(expected + int(EARLIEST_S * ANALYSIS_HZ), self._origin)
        match = locate(self._samples[first - self._origin : min(self._end, latest) - self._origin], part)
        threshold = MIN_CORRELATION if is_last else _SURE
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
        if stimulus.located is None or first < _LEAD or len(part) < _REST:
            return
        begin = max(stimulus.done_until + int(EARLIEST_S * ANALYSIS_HZ), self._origin)
        match = locate(self._samples[begin - self._origin : end - self._origin], part)
        if match and match.correlation >= _SURE:
            start = match.start + begin - first
            if abs(start - stimulus.located.start) > _APART:
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
            echo_ = echo(recording, own_sound)
            residual = quieter(recording, recording - echo_)
            frames = find_unexplained(residual, echo_, floor_dbfs)
            if frames is not None:
                cleaned = residual
                if frames.any():
                    frames &= ~displaced_own_sound(residual, frames, stimulus.samples, shift)
                    frames = without_short_runs(frames)
                masks = np.repeat(~frames, FRAME_SAMPLES)
                masks = np.concatenate((masks, np.ones(count - len(masks), np.bool_)))
                # Before the stimulus arrived, only the end of the previous one may need a mask.
                masks[: max(0, stimulus.start - FRAME_SAMPLES - begin)] = False
                masks[: max(0, self._ours_until - begin)] |= begin < stimulus.start
            else:
                masks[max(0, stimulus.start + len(stimulus.samples) + _TAIL - begin) :] = False
        fresh = max(0, self._passed_to - begin)
        if fresh < count:
            passed.append(GatedSound(cleaned[fresh:], masks[fresh:], cleaned is not recording))
            self._passed_to = end


_HEARD_ERROR_S = 0.0003
_WEAK_HEARD_ERROR_S = 0.001
_STRONG = 0.6
_LINGERS_S = 0.5

# 95 % of the errors of onsets and ends stay below these, by the SNR of the loudest frame, with straight lines in
# between (benchmarks/bench_endpoints.py).
_SNR_DB = (12.0, 20.0, 30.0, 45.0)
_ONSET_ERROR_S = (0.150, 0.130, 0.080, 0.030)
_END_ERROR_S = (0.300, 0.250, 0.120, 0.040)

_FAINTER_DB = 15.0
"""Where the stimulus was removed, a chime fainter than the learned one by more is an artefact (measured: 40 dB)."""
_BEFORE_CHIME = ANALYSIS_HZ // 8  # 125 ms: as far as the error of a chime's time reaches (`earcons._AROUND`).
_RINGS = int(0.15 * ANALYSIS_HZ)
"""How long a chime reverberates, in samples: it is masked for that long after its end."""


class ChimeFilter:
    """Finds the learned chimes in passed sound, and masks them there, so that none begins or ends a response.

    Sound is held until no chime can begin in it any more: about the length of the longest one.
    """

    def __init__(self, earcons: tuple[LearnedEarcon, ...]) -> None:
        self._finder = EarconFinder(earcons)
        self._new_chimes: list[EarconDetection] = []
        self.reset()

    def reset(self) -> None:
        self._finder.reset()
        self._samples: Mono = np.zeros(0, np.float32)
        self._masks: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._leftover: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._origin = 0

    def take(self) -> list[EarconDetection]:
        """The chimes found since the last call."""
        chimes, self._new_chimes = self._new_chimes, []
        return chimes

    def _is_real(self, chime: EarconDetection) -> bool:
        """Whether it is a chime, not remains of the harness's own stimulus, which may faintly resemble one."""
        span = self._leftover[max(0, round(chime.start) - self._origin) : round(chime.end) - self._origin]
        return not span.any() or chime.level_dbfs > rms_dbfs(chime.earcon.samples) - _FAINTER_DB

    def feed(self, passed: list[GatedSound]) -> list[GatedSound]:
        for piece in passed:
            self._samples = np.concatenate((self._samples, piece.samples))
            self._masks = np.concatenate((self._masks, piece.masks))
            self._leftover = np.concatenate((self._leftover, piece.masks & piece.removed))
            self._new_chimes += filter(self._is_real, self._finder.feed(piece.samples))
        for chime in self._new_chimes:
            first = round(chime.start - chime.error_s * ANALYSIS_HZ) - self._origin
            self._masks[max(0, first) : max(0, round(chime.end) + _RINGS - self._origin)] = True
        # A chime that is still to come may mask what lies before it by the error of its time.
        count = max(0, self._finder.settled - _BEFORE_CHIME - self._origin)
        free = GatedSound(self._samples[:count], self._masks[:count])
        self._samples, self._masks, self._leftover = self._samples[count:], self._masks[count:], self._leftover[count:]
        self._origin += len(free.samples)
        return [free] if count else []


@dataclass(slots=True, eq=False)
class _OwnPlay:
    """A stimulus at 16 kHz, by the host's clock. It continues while a recording is interrupted."""

    play_id: str
    samples: Mono
    starts_at_s: float
    heard: bool = False

    @property
    def over_s(self) -> float:
        return self.starts_at_s + len(self.samples) / ANALYSIS_HZ + _LINGERS_S


class Hearing:
    """Observations from the recording of a microphone, each with `source` and a time with its error.

    After a new epoch or a gap in the count of samples, everything starts afresh. Only a stimulus that may still be
    playing is kept.
    """

    def __init__(
        self,
        source: str,
        detector: SpeechDetector,
        *,
        rules: EndpointRules | None = None,
        earcons: tuple[LearnedEarcon, ...] = (),
    ) -> None:
        self._source = source
        self._decimator = Decimator(RATE_HZ)
        self._timeline = Timeline(RATE_HZ)
        self._frames = Frames(detector)
        self._endpoints = Endpoints(rules)
        self._gate = OwnVoiceGate()
        self._chimes = ChimeFilter(earcons) if earcons else None
        self._own_plays: list[_OwnPlay] = []
        self._epoch: int | None = None
        self._first_sample = 0
        self._next_sample = 0
        self._floor_dbfs: float | None = None

    @property
    def floor_dbfs(self) -> float | None:
        """The noise floor above 120 Hz; None before the first sound."""
        return self._floor_dbfs

    def own_sound(self, play_id: str, waveform: Waveform, starts_at_s: float) -> None:
        """Announces a stimulus that is played from `starts_at_s` on. Call this at most about 0.15 s late."""
        samples = soxr.resample(waveform.samples, waveform.rate_hz, ANALYSIS_HZ).astype(np.float32)
        own_play = _OwnPlay(play_id, samples, starts_at_s)
        self._own_plays = [play for play in self._own_plays if play.over_s > starts_at_s] + [own_play]
        if self._epoch is not None:
            start = self._expect(own_play)
            self._endpoints.forget_from(start / FRAME_SAMPLES - 5)

    def _expect(self, play: _OwnPlay) -> int:
        factor = self._decimator.factor
        start = round((self._timeline.sample(play.starts_at_s) - self._first_sample + self._decimator.delay) / factor)
        self._gate.expect(play.play_id, play.samples, start, reported=play.heard)
        return start

    def interrupted(self) -> tuple[Observation, ...]:
        """Ends the recording. Speech that has not ended ends with the last sample; sound that is held is dropped."""
        if self._epoch is None:
            return ()
        observations: tuple[Observation, ...] = ()
        if self._endpoints.speaking:
            observations = (SpeechEnded(self._source, self._timeline.at(self._next_sample)),)
        self._epoch = None
        self._floor_dbfs = None
        return observations

    def feed(self, block: Block) -> tuple[Observation, ...]:
        """The observations that this block allows."""
        observations: list[Observation] = []
        begins = block.epoch != self._epoch or block.first_sample != self._next_sample
        if begins:
            observations.extend(self.interrupted())
            self._begin(block)
        self._next_sample = block.first_sample + len(block.samples)
        self._timeline.add(block.first_sample, block.at_s, block.error_s)
        if begins:
            for own_play in self._own_plays:
                if own_play.over_s > block.at_s:
                    self._expect(own_play)
        samples = self._decimator.feed(block.samples)
        passed = self._gate.feed(samples, self._frames.floor.dbfs)
        observations.extend(map(self._observed_play, self._gate.heard))
        self._gate.heard.clear()
        if self._chimes is not None:
            passed = self._chimes.feed(passed)
            for chime in self._chimes.take():
                observations.extend(self._chime_observations(chime))
        for piece in passed:
            for frame in self._frames.feed(piece.samples, piece.masks):
                observations.extend(map(self._observe, self._endpoints.feed(frame)))
        self._floor_dbfs = self._frames.floor.dbfs
        return tuple(observations)

    def _begin(self, block: Block) -> None:
        self._epoch = block.epoch
        self._first_sample = block.first_sample
        self._timeline.clear()
        self._decimator.reset()
        self._frames.reset()
        self._endpoints.reset()
        self._gate.reset()
        if self._chimes is not None:
            self._chimes.reset()

    def _chime_observations(self, chime: EarconDetection) -> Iterator[Observation]:
        """The observations for a chime: the chime itself, and what it means as a report of its device."""
        earcon, score, level_dbfs = chime.earcon, chime.score, chime.level_dbfs
        start, end = self._stamp(chime.start, chime.error_s), self._stamp(chime.end, chime.error_s)
        yield Earcon(self._source, start, end, level_dbfs, earcon.source, meaning=earcon.meaning.value, score=score)
        match earcon.meaning:
            case EarconMeaning.WAKE:
                yield Wake(earcon.source, start, score=score)
            case EarconMeaning.ERROR:
                yield Intent(earcon.source, start, "")
            case EarconMeaning.DONE:
                pass  # Earcon says it; no state of the device follows from it.

    def _stamp(self, analysis_sample: float, error_s: float) -> Stamp:
        sample = self._first_sample + analysis_sample * self._decimator.factor - self._decimator.delay
        stamp = self._timeline.at(sample)
        return Stamp(stamp.at_s, stamp.error_s + error_s)

    def _observed_play(self, play: LocatedPlay) -> Observation:
        for own_play in self._own_plays:
            own_play.heard = own_play.heard or own_play.play_id == play.play_id
        error_s = _HEARD_ERROR_S if play.correlation >= _STRONG else _WEAK_HEARD_ERROR_S
        return StimulusHeard(self._source, self._stamp(play.start, error_s), play.play_id, play.correlation)

    def _observe(self, event: EndpointEvent) -> Observation:
        onset_s = float(np.interp(event.snr_db, _SNR_DB, _ONSET_ERROR_S))
        end_s = float(np.interp(event.snr_db, _SNR_DB, _END_ERROR_S))
        match event:
            case SpeechOnset(start, level_dbfs, _):
                return SpeechStarted(self._source, self._stamp(start * FRAME_SAMPLES, onset_s), level_dbfs)
            case SpeechOffset(end, _):
                return SpeechEnded(self._source, self._stamp(end * FRAME_SAMPLES, end_s))
            case ToneDetection(start, end, level_dbfs, _):
                return Earcon(
                    self._source,
                    self._stamp(start * FRAME_SAMPLES, onset_s),
                    self._stamp(end * FRAME_SAMPLES, end_s),
                    level_dbfs,
                )
