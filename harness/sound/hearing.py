"""Blocks of a recording in, observations out: our own stimulus, speech, earcons. No I/O, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import soxr

from harness.base.ports import SpeechDetector
from harness.model.observation import Earcon, Observation, SpeechEnded, SpeechStarted, StimulusHeard
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.sound.endpoints import Began, EndpointRules, Endpoints, Finished, Found, Tone
from harness.sound.frames import FRAME_SAMPLES, Frames
from harness.sound.own_voice_gate import Heard, OwnVoiceGate
from harness.sound.timeline import ANALYSIS_HZ, Decimator, Mono, Timeline

_HEARD_ERROR_S = 0.0003
_WEAK_HEARD_ERROR_S = 0.001
_STRONG = 0.6
_LINGERS_S = 0.5

# Error that 95 of 100 onsets and ends stay below, by the signal-to-noise ratio of the loudest frame
# (benchmarks/bench_endpoints.py); straight lines in between.
_SNR_DB = (12.0, 20.0, 30.0, 45.0)
_ONSET_ERROR_S = (0.150, 0.130, 0.080, 0.030)
_END_ERROR_S = (0.300, 0.250, 0.120, 0.040)


class HeardBlock(Protocol):
    """A block of a recording, as `Capture` gives it: its first sample was at at_s ± error_s on the host clock."""

    @property
    def first_sample(self) -> int: ...
    @property
    def at_s(self) -> float: ...
    @property
    def error_s(self) -> float: ...
    @property
    def samples(self) -> Mono: ...
    @property
    def epoch(self) -> int: ...


@dataclass(slots=True, eq=False)
class _Own:
    """A stimulus of ours at 16 kHz, by the host clock: it plays on while a recording is interrupted."""

    play_id: str
    samples: Mono
    starts_at_s: float
    heard: bool = False

    @property
    def over_s(self) -> float:
        return self.starts_at_s + len(self.samples) / ANALYSIS_HZ + _LINGERS_S


class Hearing:
    """What a microphone makes of its recording; every observation carries `source` and a time with its error.

    A new epoch, or a gap in the count of samples, begins anew: nothing of before is used for what comes after, but
    that a stimulus of ours may still be playing.
    """

    def __init__(
        self, source: str, detector: SpeechDetector, *, rules: EndpointRules | None = None, rate_hz: int = 48000
    ) -> None:
        self._source = source
        self._decimator = Decimator(rate_hz)
        self._timeline = Timeline(rate_hz)
        self._frames = Frames(detector)
        self._endpoints = Endpoints(rules)
        self._gate = OwnVoiceGate()
        self._own: list[_Own] = []
        self._epoch: int | None = None
        self._first = 0
        self._next = 0
        self._floor_dbfs: float | None = None

    @property
    def floor_dbfs(self) -> float | None:
        """The noise floor above 120 Hz; None before the first sound."""
        return self._floor_dbfs

    def own_sound(self, play_id: str, waveform: Waveform, starts_at_s: float) -> None:
        """A stimulus of ours leaves at `starts_at_s`; may be told some 0.15 s late."""
        samples = soxr.resample(waveform.samples, waveform.rate_hz, ANALYSIS_HZ).astype(np.float32)
        own = _Own(play_id, samples, starts_at_s)
        self._own = [one for one in self._own if one.over_s > starts_at_s] + [own]
        if self._epoch is not None:
            start = self._expect(own)
            self._endpoints.forget_from(start / FRAME_SAMPLES - 5)

    def _expect(self, own: _Own) -> int:
        factor = self._decimator.factor
        start = round((self._timeline.sample(own.starts_at_s) - self._first + self._decimator.delay) / factor)
        self._gate.expect(own.play_id, own.samples, start, told=own.heard)
        return start

    def interrupted(self) -> tuple[Observation, ...]:
        """The recording stops here. Speech that was going on ends with the last sample; what was held is dropped."""
        if self._epoch is None:
            return ()
        ended: tuple[Observation, ...] = ()
        if self._endpoints.speaking:
            ended = (SpeechEnded(self._source, self._timeline.at(self._next)),)
        self._epoch = None
        self._floor_dbfs = None
        return ended

    def feed(self, block: HeardBlock) -> tuple[Observation, ...]:
        """What this block lets us tell."""
        seen: list[Observation] = []
        begins = block.epoch != self._epoch or block.first_sample != self._next
        if begins:
            seen.extend(self.interrupted())
            self._begin(block)
        self._next = block.first_sample + len(block.samples)
        self._timeline.add(block.first_sample, block.at_s, block.error_s)
        if begins:
            for own in self._own:
                if own.over_s > block.at_s:
                    self._expect(own)
        samples = self._decimator.feed(block.samples)
        passed = self._gate.feed(samples, self._frames.floor.dbfs)
        seen.extend(map(self._told, self._gate.heard))
        self._gate.heard.clear()
        for piece in passed:
            for frame in self._frames.feed(piece.samples, piece.masks):
                seen.extend(map(self._observed, self._endpoints.feed(frame)))
        self._floor_dbfs = self._frames.floor.dbfs
        return tuple(seen)

    def _begin(self, block: HeardBlock) -> None:
        self._epoch = block.epoch
        self._first = block.first_sample
        self._timeline.clear()
        self._decimator.reset()
        self._frames.reset()
        self._endpoints.reset()
        self._gate.reset()

    def _stamp(self, analysis_sample: float, error_s: float) -> Stamp:
        sample = self._first + analysis_sample * self._decimator.factor - self._decimator.delay
        at = self._timeline.at(sample)
        return Stamp(at.at_s, at.error_s + error_s)

    def _told(self, heard: Heard) -> Observation:
        for own in self._own:
            own.heard = own.heard or own.play_id == heard.play_id
        error_s = _HEARD_ERROR_S if heard.correlation >= _STRONG else _WEAK_HEARD_ERROR_S
        return StimulusHeard(self._source, self._stamp(heard.start, error_s), heard.play_id, heard.correlation)

    def _observed(self, found: Found) -> Observation:
        onset_s = float(np.interp(found.snr_db, _SNR_DB, _ONSET_ERROR_S))
        end_s = float(np.interp(found.snr_db, _SNR_DB, _END_ERROR_S))
        match found:
            case Began(start, level_dbfs, _):
                return SpeechStarted(self._source, self._stamp(start * FRAME_SAMPLES, onset_s), level_dbfs)
            case Finished(end, _):
                return SpeechEnded(self._source, self._stamp(end * FRAME_SAMPLES, end_s))
            case Tone(start, end, level_dbfs, _):
                return Earcon(
                    self._source,
                    self._stamp(start * FRAME_SAMPLES, onset_s),
                    self._stamp(end * FRAME_SAMPLES, end_s),
                    level_dbfs,
                )
