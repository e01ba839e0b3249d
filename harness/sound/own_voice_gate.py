"""Holds the recording back while we play, until our own sound could be taken out of it. No I/O, no clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from harness.sound.own_sound import (
    EARLIEST_S,
    LATEST_S,
    LEAST_CORRELATION,
    Located,
    astray,
    echo,
    locate,
    quieter,
    unexplained,
    words,
)
from harness.sound.timeline import ANALYSIS_HZ, Mono

_FRAME = 160
_LEAD = int(0.05 * ANALYSIS_HZ)
_TAIL = int(0.25 * ANALYSIS_HZ)
_WATCHED = int(0.35 * ANALYSIS_HZ)
"""After its end a stimulus that was found is still taken out and looked for, one that was not is masked."""
_FADES = ANALYSIS_HZ // 20
_REST = ANALYSIS_HZ // 2
_APART = ANALYSIS_HZ // 500
_PIECE = 3 * ANALYSIS_HZ
_HISTORY = 5 * ANALYSIS_HZ
_SURE = 0.5
_SOON = int(0.08 * ANALYSIS_HZ)


@dataclass(frozen=True, slots=True)
class Heard:
    """The stimulus' first sample lies at `start` (fractional, 16 kHz) of the recording."""

    play_id: str
    start: float
    correlation: float


@dataclass(frozen=True, slots=True, eq=False)
class Passed:
    """Sound for the detector: samples (n,) at 16 kHz, and for each whether our own voice may be in it."""

    samples: Mono
    masks: npt.NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class _Stimulus:
    play_id: str
    samples: Mono
    expected: int
    located: Located | None = None
    failed: bool = False
    told: bool = False
    skipped: int = 0
    """Samples of its beginning that no recording holds."""
    done_until: int = field(default=0)

    @property
    def start(self) -> int:
        return round(self.located.start) if self.located else self.expected

    @property
    def end(self) -> int:
        return self.start + len(self.samples) + (_TAIL if self.failed else _WATCHED)


class OwnVoiceGate:
    """Sound goes straight through when nothing of ours is playing; else in pieces of up to 3 s, our stimulus removed.

    A stimulus that is not found (correlation under 0.3) or cannot be taken out is masked by time, until 0.25 s after
    its end. What is left of one that was found is searched for parts of it that lie astray, until 0.35 s after its end.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._held: Mono = np.zeros(0, np.float32)
        self._origin = 0
        self._passed = 0
        self._ours_until = 0
        self._stimuli: list[_Stimulus] = []
        self.heard: list[Heard] = []

    @property
    def _end(self) -> int:
        return self._origin + len(self._held)

    def expect(self, play_id: str, samples: Mono, start: int, *, told: bool = False) -> None:
        """A stimulus (16 kHz) whose first sample leaves at sample `start` of the recording, by the host clocks.

        Of one that began before the recording (start < 0: the stream was interrupted) only the rest is looked for.
        told: its place was told already.
        """
        skipped = 0 if start >= 0 else min(len(samples), -start - int(EARLIEST_S * ANALYSIS_HZ))
        stimulus = _Stimulus(play_id, samples, start, told=told, skipped=skipped)
        stimulus.failed = bool(skipped) and len(samples) - skipped < _REST
        stimulus.done_until = self._origin if skipped else start - _LEAD
        self._stimuli.append(stimulus)
        self._stimuli.sort(key=lambda stimulus: stimulus.expected)

    def feed(self, samples: Mono, floor_dbfs: float) -> list[Passed]:
        """Takes the next samples; gives what can be passed on now. New places of stimuli are added to `heard`."""
        self._held = np.concatenate((self._held, samples))
        passed: list[Passed] = []
        while self._stimuli:
            stimulus = self._stimuli[0]
            self._pass_plain(max(self._passed, min(self._end, stimulus.done_until)), passed)
            if self._passed < stimulus.done_until or not self._settle(stimulus):
                break
            until = min(stimulus.end, stimulus.done_until + _PIECE)
            if len(self._stimuli) > 1:
                # The next one follows closely: it takes over where it begins.
                until = min(until, max(self._stimuli[1].done_until, stimulus.done_until))
            if self._end < until:
                break
            self._follow(stimulus, until)
            self._pass_cleaned(stimulus, until, floor_dbfs, passed)
            stimulus.done_until = until
            if until >= stimulus.end or len(self._stimuli) > 1:
                self._ours_until = stimulus.start + len(stimulus.samples) + _FADES
                self._stimuli.pop(0)
        else:
            self._pass_plain(self._end, passed)
        spare = min(self._passed, self._end - _HISTORY) - self._origin
        if (spare > 0 and not self._stimuli) or spare > _HISTORY:
            keep_from = self._passed - _HISTORY if self._stimuli else self._origin + spare
            cut = max(0, min(keep_from, self._passed) - self._origin)
            self._held = self._held[cut:]
            self._origin += cut
        return passed

    def _pass_plain(self, until: int, passed: list[Passed]) -> None:
        if until > self._passed:
            samples = self._held[self._passed - self._origin : until - self._origin]
            passed.append(Passed(samples, np.zeros(len(samples), np.bool_)))
            self._passed = until

    def _settle(self, stimulus: _Stimulus) -> bool:
        """Looks for the stimulus once enough of it has passed; True when it was found or given up."""
        if stimulus.located or stimulus.failed:
            return True
        part = stimulus.samples[stimulus.skipped :][:_PIECE]
        expected = stimulus.expected + stimulus.skipped
        soonest = expected + len(part) + _SOON
        latest = expected + len(part) + int(LATEST_S * ANALYSIS_HZ)
        if self._end < soonest:
            return False
        is_last = self._end >= latest
        if not is_last and (self._end - soonest) % (_SOON // 2) >= _FRAME:
            return False
        first = max(expected + int(EARLIEST_S * ANALYSIS_HZ), self._origin)
        found = locate(self._held[first - self._origin : min(self._end, latest) - self._origin], part)
        least = LEAST_CORRELATION if is_last else _SURE
        if found and found.correlation >= least:
            start = found.start + first - stimulus.skipped
            stimulus.located = Located(start, found.correlation)
            if not stimulus.told:
                self.heard.append(Heard(stimulus.play_id, start, found.correlation))
            return True
        stimulus.failed = is_last
        return is_last

    def _follow(self, stimulus: _Stimulus, until: int) -> None:
        """Looks anew where a later piece lies: sound that was lost or repeated meanwhile has moved it."""
        first = stimulus.done_until - stimulus.start
        part = stimulus.samples[max(0, first) : until - stimulus.start - int(LATEST_S * ANALYSIS_HZ)]
        if stimulus.located is None or first < _LEAD or len(part) < _REST:
            return
        begin = max(stimulus.done_until + int(EARLIEST_S * ANALYSIS_HZ), self._origin)
        found = locate(self._held[begin - self._origin : until - self._origin], part)
        if found and found.correlation >= _SURE:
            start = found.start + begin - first
            if abs(start - stimulus.located.start) > _APART:
                stimulus.located = Located(start, found.correlation)

    def _pass_cleaned(self, stimulus: _Stimulus, until: int, floor_dbfs: float, passed: list[Passed]) -> None:
        """Takes the stimulus out of [done_until, until) and passes on what was not passed yet."""
        begin = max(stimulus.done_until, self._origin)
        recording = self._held[begin - self._origin : until - self._origin]
        count = len(recording)
        ours = np.zeros(count, np.float32)
        shift = begin - stimulus.start
        source = stimulus.samples[max(shift, 0) : shift + count] if shift + count > 0 else stimulus.samples[:0]
        into = max(-shift, 0)
        ours[into : into + len(source)] = source[: max(0, count - into)]
        masks = np.ones(count, np.bool_)
        cleaned = recording
        if stimulus.located:
            echo_ = echo(recording, ours)
            left = quieter(recording, recording - echo_)
            frames = unexplained(left, echo_, floor_dbfs)
            if frames is not None:
                cleaned = left
                if frames.any():
                    frames &= ~astray(left, frames, stimulus.samples, shift)
                    frames = words(frames)
                masks = np.repeat(~frames, _FRAME)
                masks = np.concatenate((masks, np.ones(count - len(masks), np.bool_)))
                # Before our sound arrived there is nothing of it to mask, but the last of the one before.
                masks[: max(0, stimulus.start - _FRAME - begin)] = False
                masks[: max(0, self._ours_until - begin)] |= begin < stimulus.start
            else:
                masks[max(0, stimulus.start + len(stimulus.samples) + _TAIL - begin) :] = False
        fresh = max(0, self._passed - begin)
        if fresh < count:
            passed.append(Passed(cleaned[fresh:], masks[fresh:]))
            self._passed = until
