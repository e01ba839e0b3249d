"""Turns blocks of a recording into observations: own stimuli, speech, earcons. No I/O, no clock.

    48 kHz ─► Decimator, 16 kHz ─► OwnVoiceGate ─► ChimeFilter ─► Frames, 10 ms ─► Endpoints ─► observations

While a stimulus plays, the gate (own_sound.py) holds sound back, and removes or masks the stimulus. It would otherwise
count as speech of the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import soxr

from harness.base.ports import SpeechDetector
from harness.model.bench import EarconMeaning
from harness.model.observation import Earcon, Intent, Observation, SpeechEnded, SpeechStarted, StimulusHeard, Wake
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.sound.capture import Block
from harness.sound.earcons import EarconDetection, EarconFinder, LearnedEarcon
from harness.sound.endpoints import EndpointEvent, EndpointRules, Endpoints, SpeechOffset, SpeechOnset, ToneDetection
from harness.sound.frames import ANALYSIS_HZ, FRAME_SAMPLES, Decimator, Frames, Mono, Timeline
from harness.sound.level import rms_dbfs
from harness.sound.own_sound import GatedSound, LocatedPlay, OwnVoiceGate
from harness.sound.stream_clock import RATE_HZ

_HEARD_ERROR_S = 0.0003
_WEAK_HEARD_ERROR_S = 0.001
_STRONG_CORRELATION = 0.6
"""The start of a stimulus has the first error, in seconds, from this correlation on; below it, the second."""
_LINGERS_S = 0.5
"""How long a stimulus may be heard after its end, by the delay of the path and reverberation, in seconds."""
_FORGOTTEN_FRAMES = 5
"""When a stimulus is announced, sound that was heard from this many frames of 10 ms before it on is forgotten."""

# 95 % of the errors of onsets and ends stay below these, by the SNR of the loudest frame, with straight lines in
# between (benchmarks/bench_endpoints.py).
_SNR_DB = (12.0, 20.0, 30.0, 45.0)
_ONSET_ERROR_S = (0.150, 0.130, 0.080, 0.030)
_END_ERROR_S = (0.300, 0.250, 0.120, 0.040)

_FAINTER_DB = 15.0
"""Where the stimulus was removed, a chime fainter than the learned one by more is an artefact (measured: 40 dB)."""
_BEFORE_CHIME = ANALYSIS_HZ // 8  # 125 ms: as far as the error of a chime's time reaches (`earcons._AROUND_SAMPLES`).
_CHIME_TAIL = int(0.15 * ANALYSIS_HZ)
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

    def take_chimes(self) -> list[EarconDetection]:
        """Returns the chimes found since the last call."""
        chimes, self._new_chimes = self._new_chimes, []
        return chimes

    def _is_real(self, chime: EarconDetection) -> bool:
        """Whether it is a chime, not remains of the harness's own stimulus, which may faintly resemble one."""
        span = self._leftover[max(0, round(chime.start) - self._origin) : round(chime.end) - self._origin]
        return not span.any() or chime.level_dbfs > rms_dbfs(chime.earcon.samples) - _FAINTER_DB

    def feed(self, passed: list[GatedSound]) -> list[GatedSound]:
        """Takes the next sound. Returns the earlier sound in which all chimes are masked."""
        for piece in passed:
            self._samples = np.concatenate((self._samples, piece.samples))
            self._masks = np.concatenate((self._masks, piece.masks))
            self._leftover = np.concatenate((self._leftover, piece.masks & piece.removed))
            self._new_chimes += filter(self._is_real, self._finder.feed(piece.samples))
        for chime in self._new_chimes:
            first = round(chime.start - chime.error_s * ANALYSIS_HZ) - self._origin
            self._masks[max(0, first) : max(0, round(chime.end) + _CHIME_TAIL - self._origin)] = True
        # A chime that is still to come may mask what lies before it by the error of its time.
        count = max(0, self._finder.settled - _BEFORE_CHIME - self._origin)
        released = GatedSound(self._samples[:count], self._masks[:count])
        self._samples, self._masks, self._leftover = self._samples[count:], self._masks[count:], self._leftover[count:]
        self._origin += len(released.samples)
        return [released] if count else []


@dataclass(slots=True, eq=False)
class _OwnPlay:
    """A stimulus at 16 kHz, by the host's clock. It continues while a recording is interrupted."""

    play_id: str
    samples: Mono
    starts_at_s: float
    heard: bool = False

    @property
    def over_s(self) -> float:
        """Host time after which none of it sounds any more."""
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
            self._endpoints.forget_from(start / FRAME_SAMPLES - _FORGOTTEN_FRAMES)

    def _expect(self, play: _OwnPlay) -> int:
        """Announces a stimulus to the gate. Returns its first sample in the recording at 16 kHz, by the clocks."""
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
        is_new_stream = block.epoch != self._epoch or block.first_sample != self._next_sample
        if is_new_stream:
            observations.extend(self.interrupted())
            self._begin(block)
        self._next_sample = block.first_sample + len(block.samples)
        self._timeline.add(block.first_sample, block.at_s, block.error_s)
        if is_new_stream:
            for own_play in self._own_plays:
                if own_play.over_s > block.at_s:
                    self._expect(own_play)
        samples = self._decimator.feed(block.samples)
        passed = self._gate.feed(samples, self._frames.floor.dbfs)
        observations.extend(map(self._observed_play, self._gate.heard))
        self._gate.heard.clear()
        if self._chimes is not None:
            passed = self._chimes.feed(passed)
            for chime in self._chimes.take_chimes():
                observations.extend(self._chime_observations(chime))
        for piece in passed:
            for frame in self._frames.feed(piece.samples, piece.masks):
                observations.extend(map(self._observe, self._endpoints.feed(frame)))
        self._floor_dbfs = self._frames.floor.dbfs
        return tuple(observations)

    def _begin(self, block: Block) -> None:
        """Starts afresh with a block."""
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
                pass  # The Earcon is enough: no state of the device follows from it.

    def _stamp(self, analysis_sample: float, error_s: float) -> Stamp:
        sample = self._first_sample + analysis_sample * self._decimator.factor - self._decimator.delay
        stamp = self._timeline.at(sample)
        return Stamp(stamp.at_s, stamp.error_s + error_s)

    def _observed_play(self, play: LocatedPlay) -> Observation:
        """The observation of a stimulus. Notes that it was heard, so that it is not reported again in a new epoch."""
        for own_play in self._own_plays:
            own_play.heard = own_play.heard or own_play.play_id == play.play_id
        error_s = _HEARD_ERROR_S if play.correlation >= _STRONG_CORRELATION else _WEAK_HEARD_ERROR_S
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
