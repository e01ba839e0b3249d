"""Where speech begins and ends. A detector decides; energy gives the times. No I/O, no clock.

    energy      . . # # # # . # # # # . . . . . .     #: above the floor by rise_db, and near enough to the peak
    stretch         └───────────────────────┘         ends after bridge_ms without #
    detector    . . . s s s . s s s . . . . . . .     enough s that are not tones make it speech
    reported        ↑ SpeechOnset     ↑ SpeechOffset

A stretch stays undecided for hold_ms, or until it ends. Then it is speech, a tone (ToneDetection) or nothing. Its
beginning is found by going back from the first s through the rise of the energy. So it is reported late, but exact.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.model.frozen import frozen
from harness.sound.frames import FRAME_S, SoundFrame, is_tonal


@frozen
class SpeechOnset:
    """Speech began at frame position `start` (fractional frames since reset); snr_db over the noise floor."""

    start: float
    level_dbfs: float
    snr_db: float


@frozen
class SpeechOffset:
    """Speech ended at frame position `end` (its first moment without speech)."""

    end: float
    snr_db: float


@frozen
class ToneDetection:
    """A short, tonal sound from `start` to `end`."""

    start: float
    end: float
    level_dbfs: float
    snr_db: float


EndpointEvent = SpeechOnset | SpeechOffset | ToneDetection
_MAX_RISE_FRAMES = 40
"""Speech begins at most this many frames of 10 ms before the detector's first speech frame."""
_MAX_STOP_FRAMES = 8
"""Longest gap within the rise of speech, such as that of a stop consonant."""
_MIN_LEADING_TONE_FRAMES = 5
"""Shortest tone before speech that is reported."""
_MAX_DECAY_FRAMES = 30
"""Speech ends at most this many frames after the detector's last speech frame."""


@frozen
class EndpointRules:
    """The rules for what counts as speech, in milliseconds and dB.

    - min_speech_ms: least length of the frames that the detector calls speech
    - bridge_ms: longest pause within one span
    - hold_ms: how long an onset is observed before it is reported
    - earcon_max_ms: longest tonal sound that is not speech
    - rise_db: least level above the noise floor
    - depth_db: frames that are quieter than the loudest one by more than this are not part of the speech
    """

    min_speech_ms: int = 60
    bridge_ms: int = 200
    hold_ms: int = 400
    earcon_max_ms: int = 800
    rise_db: float = 5.0
    depth_db: float = 32.0


def _frame_count(milliseconds: float) -> int:
    return max(1, round(milliseconds / 1000 / FRAME_S))


class Endpoints:
    """Takes frames in order and yields speech and tones, late by a known and bounded time. Positions are exact.

    Sound above the floor becomes speech when the detector accepts enough of its frames and it is not only tones.
    Its onset is the first frame of the rise of energy before the detector's first speech frame.
    """

    def __init__(self, rules: EndpointRules | None = None) -> None:
        self.rules = rules or EndpointRules()
        self._bridge_frames = _frame_count(self.rules.bridge_ms)
        self._hold_frames = _frame_count(self.rules.hold_ms)
        self._max_earcon_frames = _frame_count(self.rules.earcon_max_ms)
        self._min_speech_frames = _frame_count(self.rules.min_speech_ms)
        self.reset()

    def reset(self) -> None:
        """Drops the stretch, and speech that has not ended."""
        self._stretch: list[SoundFrame] = []
        self._open_onset: SpeechOnset | None = None
        self._peak_dbfs = -200.0
        self._last_loud_index = 0
        self._last_speech_index = 0

    @property
    def speaking(self) -> bool:
        """True between a SpeechOnset and its SpeechOffset."""
        return self._open_onset is not None

    def forget_from(self, frame: float) -> None:
        """Drops unreported sound from this frame on, since it was the harness's own stimulus."""
        if self._open_onset is None and self._stretch and self._stretch[-1].index >= frame:
            remaining = [sound_frame for sound_frame in self._stretch if sound_frame.index < frame]
            self.reset()
            if remaining and self._highest_level(remaining) > remaining[-1].floor_dbfs + self.rules.rise_db:
                self._stretch = remaining
                self._peak_dbfs = self._highest_level(remaining)
                self._last_loud_index = self._last_speech_index = remaining[-1].index

    def feed(self, frame: SoundFrame) -> Iterator[EndpointEvent]:
        """What this frame decides, usually nothing."""
        loud = self._is_loud(frame)
        if not self._stretch:
            if not loud:
                return
            self._peak_dbfs = -200.0
            self._last_speech_index = frame.index
        self._stretch.append(frame)
        if frame.speech:
            self._last_speech_index = frame.index
        if loud:
            self._last_loud_index = frame.index
            self._peak_dbfs = max(self._peak_dbfs, frame.level_dbfs)
        quiet = frame.index - self._last_loud_index >= self._bridge_frames
        # It may still be loud, but it is not speech any more.
        is_over = frame.index - self._last_speech_index >= 3 * self._bridge_frames
        if self._open_onset is None:
            yield from self._decide(frame, quiet, is_over)
        elif quiet or is_over:
            yield self._offset()
            self.reset()
        elif len(self._stretch) > 400:  # only its end is still needed, to find the end of the speech
            del self._stretch[:200]

    def _is_loud(self, frame: SoundFrame) -> bool:
        """Whether a frame is above the noise floor, and near enough to the peak of the stretch so far."""
        threshold_dbfs = frame.floor_dbfs + self.rules.rise_db
        if self._stretch:
            threshold_dbfs = max(threshold_dbfs, self._peak_dbfs - self.rules.depth_db)
        return not frame.masked and frame.level_dbfs > threshold_dbfs

    def _decide(self, frame: SoundFrame, quiet: bool, is_over: bool) -> Iterator[EndpointEvent]:
        """Decides whether the sound is speech, tones or nothing, as soon as that is certain."""
        length = frame.index - self._stretch[0].index + 1
        if not quiet and length < self._hold_frames:
            return
        # Of the stretch, only the loud runs count: those of tones, and all others.
        runs = self._loud_runs()
        tones = [run for run in runs if self._is_tonal_run(run)]
        voiced = [run for run in runs if run not in tones]
        first = self._first_speech_frame() if self._has_enough_speech(voiced) else None
        if voiced and first is not None and not self._is_tonal_only(tones, length, quiet):
            tones_before = [run for run in tones if run[-1].index < voiced[0][0].index]
            if tones_before and len(tones_before[0]) >= _MIN_LEADING_TONE_FRAMES:
                yield self._tone_detection(tones_before[0])
            voiced_from = voiced[0][0].index
            self._open_onset = self._onset(max(first, voiced_from), voiced_from if tones_before else None)
            yield self._open_onset
            if quiet:
                yield self._offset()
                self.reset()
        elif quiet:
            if tones and tones[-1][-1].index - tones[0][0].index < self._max_earcon_frames:
                yield self._tone_detection([sound_frame for run in tones for sound_frame in run])
            self.reset()
        elif tones and length > self._max_earcon_frames:  # too long for an earcon, so it counts as speech
            self._open_onset = self._onset(self._stretch[0].index, self._stretch[0].index)
            yield self._open_onset
        elif is_over and not tones and length > 3 * self._bridge_frames:
            # Noise may go on for long: only its last part can lead up to speech.
            del self._stretch[: -2 * self._bridge_frames]

    def _is_tonal_only(self, tones: list[list[SoundFrame]], length: int, quiet: bool) -> bool:
        """Whether almost all of the sound is tones, and the rest may be their decay."""
        tonal_frames = sum(map(len, tones))
        loud_frames = sum(map(len, self._loud_runs()))
        return tonal_frames > 0.8 * loud_frames and (quiet or length <= self._max_earcon_frames)

    def _loud_runs(self) -> list[list[SoundFrame]]:
        """Runs of loud frames, split at gaps of 40 ms or more."""
        threshold_dbfs = self._loud_threshold_dbfs()
        runs: list[list[SoundFrame]] = []
        for frame in self._stretch:
            if frame.masked or frame.level_dbfs <= threshold_dbfs:
                continue
            if runs and frame.index - runs[-1][-1].index <= 4:
                runs[-1].append(frame)
            else:
                runs.append([frame])
        return runs

    def _is_tonal_run(self, run: list[SoundFrame]) -> bool:
        # The first windows still contain silence, the last ones decay: both have a broader spectrum than the tone.
        inner = run[3:-1] if len(run) >= 8 else run[2:]
        return is_tonal([frame.filled for frame in inner])

    def _loud_threshold_dbfs(self) -> float:
        """The level above which frames of the stretch are loud, by its latest noise floor, in dBFS."""
        return max(self._stretch[-1].floor_dbfs + self.rules.rise_db, self._peak_dbfs - self.rules.depth_db)

    def _has_enough_speech(self, voiced: list[list[SoundFrame]]) -> bool:
        """Whether there is enough speech besides tones and own sound. The decay of a tone does not count."""
        return sum(frame.speech for run in voiced for frame in run) >= self._min_speech_frames

    def _first_speech_frame(self) -> int | None:
        """First frame of the detector's first dense run; None if there are too few speech frames."""
        speech = [frame.index for frame in self._stretch if frame.speech]
        for position, index in enumerate(speech):
            dense_frames = sum(other < index + 2 * self._min_speech_frames for other in speech[position:])
            if dense_frames >= self._min_speech_frames:
                return index
        return None

    def _onset(self, first: int, not_before: int | None) -> SpeechOnset:
        """Goes back from the detector's first speech frame through the rise of energy, over gaps.

        - first: index of that frame.
        - not_before: index of the first frame that may be part of it; None for no limit.
        """
        threshold_dbfs = self._loud_threshold_dbfs()
        start = first
        gap = 0
        for frame in reversed(self._stretch):
            if frame.index > first:
                continue
            if frame.index < first - _MAX_RISE_FRAMES:
                break
            if not_before is not None and frame.index < not_before:
                break
            if not frame.masked and frame.level_dbfs > threshold_dbfs:
                start, gap = frame.index, 0
            else:
                gap += 1
                if gap > _MAX_STOP_FRAMES:
                    break
        if start == first:
            # The detector was early: the sound begins where the energy rises.
            loud_indices = (
                frame.index for frame in self._stretch if frame.index >= first and frame.level_dbfs > threshold_dbfs
            )
            start = next(loud_indices, first)
        loud_levels = [
            frame.level_dbfs for frame in self._stretch if frame.index >= start and frame.level_dbfs > threshold_dbfs
        ]
        level = sum(loud_levels) / len(loud_levels) if loud_levels else self._peak_dbfs
        return SpeechOnset(float(start), level, self._snr_db())

    def _offset(self) -> SpeechOffset:
        """The end of the speech: its last loud frame that is not too long after the detector's last speech frame."""
        threshold_dbfs = self._loud_threshold_dbfs()
        last = self._last_loud_index
        latest = self._last_speech_index + _MAX_DECAY_FRAMES
        for frame in reversed(self._stretch):
            if not frame.masked and frame.level_dbfs > threshold_dbfs and frame.index <= latest:
                last = frame.index
                break
        return SpeechOffset(float(last + 1), self._snr_db())

    def _tone_detection(self, run: list[SoundFrame]) -> ToneDetection:
        level = sum(frame.level_dbfs for frame in run) / len(run)
        return ToneDetection(float(run[0].index), float(run[-1].index + 1), level, self._snr_db())

    def _snr_db(self) -> float:
        return self._peak_dbfs - self._stretch[-1].floor_dbfs if self._stretch else 0.0

    @staticmethod
    def _highest_level(frames: list[SoundFrame]) -> float:
        return max(frame.level_dbfs for frame in frames)
