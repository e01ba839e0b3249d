"""Finds learned earcons (a device's chimes) in a recording by matched filters. No I/O, no clock.

Normalised correlation (Turin, "An introduction to matched filters", 1960) of analytic signals, within the band of each
earcon. The level, and noise, speech or music in other bands, do not change the score. Samples are at 16 kHz.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.model.bench import EARCON_THRESHOLD, EarconMeaning
from harness.model.frozen import frozen
from harness.sound.filters import analytic, convolve, correlate
from harness.sound.frames import ANALYSIS_HZ, Mono

MIN_CHIME_S, MAX_CHIME_S = 0.06, 2.0
_HALF_TAPS = 256
_BAND_DB, _BAND_HZ = 20.0, 400.0
"""The band of an earcon: its frequencies within 20 dB of the strongest, and 400 Hz around them."""
_HOP = ANALYSIS_HZ // 10
"""New sound is searched when this many samples have arrived."""
_AROUND = ANALYSIS_HZ // 8
_MIN_ERROR_S = 0.002
_DROP, _MIN_DROP, _MAX_DROP = 2.5, 0.05, 0.5
"""The error of a time extends to the farthest start within 125 ms whose score is nearly the best.

It may be lower by a share of _DROP · (1 − best score), between _MIN_DROP and _MAX_DROP. Noise or reverberation may
lower the score of the true start.
"""
_ECHO_S = 1.0
_ECHO_SHARE = 0.5
"""A detection within _ECHO_S of the last one is its reverberation if it has less than this share of its energy."""
_MIN_POWER = 1e-9
"""Mean square of the band (−90 dBFS) below which no chime is searched for."""

_Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LearnedEarcon:
    """A learned chime of a device.

    source: id under which it is reported. samples: its sound, (n,) at 16 kHz. threshold: least score of a detection.
    """

    source: str
    meaning: EarconMeaning
    samples: Mono
    threshold: float = EARCON_THRESHOLD


@frozen
class EarconDetection:
    """An earcon in the sound, from sample `start` (may be fractional) to `end`. score: 0–1.

    error_s: bound on the error of its start.
    """

    earcon: LearnedEarcon
    start: float
    end: float
    score: float
    error_s: float
    level_dbfs: float


class _MatchedFilter:
    """The matched filter of one earcon."""

    def __init__(self, earcon: LearnedEarcon) -> None:
        self.earcon = earcon
        self.length = len(earcon.samples)
        self.next = 0
        """The first start that was not searched yet."""
        self.least = 0.0
        """Least energy of a detection that is not reverberation of the last one."""
        self._taps = band_taps(earcon.samples)
        # The ends of the filtered earcon belong to it only as far as the earcon itself reaches.
        padded = np.pad(earcon.samples.astype(np.float64), _HALF_TAPS)
        self._template = analytic(self._filter(padded))
        self._energy = float(np.sum(np.abs(self._template) ** 2)) / 2  # an analytic signal has twice the energy

    def _filter(self, samples: _Values) -> _Values:
        return convolve(samples, self._taps)

    def scores(self, samples: Mono) -> tuple[_Values, _Values]:
        """Score of each start from sample _HALF_TAPS on, and the energy in the band from there.

        samples: must have _HALF_TAPS more samples than needed at both ends.
        """
        in_band = self._filter(samples.astype(np.float64))
        correlation = np.abs(correlate(in_band, self._template))
        running = np.concatenate(([0.0], np.cumsum(in_band**2)))
        around = running[self.length :] - running[: -self.length]
        return np.asarray(correlation / np.sqrt(self._energy * np.maximum(around, _MIN_POWER * self.length))), around


def band_taps(samples: Mono) -> _Values:
    """A linear-phase filter (513 taps) that passes the band of a sound."""
    size = 4096 if len(samples) <= 4096 else 1 << len(samples).bit_length()
    smooth = np.hanning(15 * size // 4096)
    power = np.convolve(np.abs(np.fft.rfft(samples, size)) ** 2, smooth / smooth.sum(), "same")
    passed = power >= power.max() * 10 ** (-_BAND_DB / 10)
    wide = np.convolve(passed, np.ones(2 * int(_BAND_HZ * size / ANALYSIS_HZ) + 1), "same") > 0.5
    wide[: int(100 * size / ANALYSIS_HZ)] = False  # rumble is louder than anything there
    response = np.fft.fftshift(np.fft.irfft(wide.astype(np.float64)))
    middle = len(response) // 2
    return np.asarray(response[middle - _HALF_TAPS : middle + _HALF_TAPS + 1] * np.hanning(2 * _HALF_TAPS + 1))


def likeness(earcon: LearnedEarcon, other: LearnedEarcon) -> float:
    """The best score of `earcon` within `other`, 0–1."""
    matcher = _MatchedFilter(earcon)
    room = np.zeros(matcher.length + _HALF_TAPS, np.float32)
    return float(matcher.scores(np.concatenate((room, other.samples, room)))[0].max())


class EarconFinder:
    """Finds earcons in samples, which it takes in order. It reports one at most its length and 0.15 s after its end.

    Of overlapping earcons, the one with the highest score counts.
    """

    def __init__(self, earcons: tuple[LearnedEarcon, ...]) -> None:
        self._filters = [_MatchedFilter(earcon) for earcon in earcons]
        self.reset()

    def reset(self) -> None:
        self._samples: Mono = np.zeros(_HALF_TAPS + _AROUND, np.float32)  # an earcon may begin with the first sample
        self._origin = -len(self._samples)
        self._waiting = 0
        self._match: tuple[float, int, _MatchedFilter] | None = None
        self._last_end = 0
        for matcher in self._filters:
            matcher.next, matcher.least = 0, 0.0

    @property
    def settled(self) -> int:
        """The sample before which no earcon begins that is not reported yet."""
        judged = min((matcher.next for matcher in self._filters), default=self._end)
        return judged if self._match is None else min(judged, self._match[1] - _AROUND)

    @property
    def _end(self) -> int:
        return self._origin + len(self._samples)

    def feed(self, samples: Mono) -> list[EarconDetection]:
        # Of what is judged at once, only the best and what follows it count.
        pieces = (samples[start : start + _HOP] for start in range(0, len(samples), _HOP))
        return [earcon for piece in pieces for earcon in self._feed_piece(piece)]

    def _feed_piece(self, samples: Mono) -> list[EarconDetection]:
        self._samples = np.concatenate((self._samples, samples))
        self._waiting += len(samples)
        if self._waiting < _HOP:
            return []
        self._waiting = 0
        earcons: list[EarconDetection] = []
        for matcher in self._filters:
            self._judge(matcher)
        while self._match is not None:
            _, start, best = self._match
            if min(matcher.next for matcher in self._filters) <= start + best.length:
                break
            earcons.append(self._detection(best, start))
            self._last_end, self._match = start + best.length, None
            for matcher in self._filters:  # what was judged together with it, but lies after it
                matcher.least = _ECHO_SHARE * float(self._scores(matcher, start, start + 1)[1][0])
                matcher.next = min(matcher.next, self._last_end)
                self._judge(matcher)
        needed_from = min(matcher.next for matcher in self._filters) if self._match is None else self._match[1]
        spare = needed_from - _AROUND - _HALF_TAPS - self._origin
        if spare > ANALYSIS_HZ:  # not for less, since it copies all that is kept
            self._samples, self._origin = self._samples[spare:], self._origin + spare
        return earcons

    def _judge(self, matcher: _MatchedFilter) -> None:
        """Searches all starts for which there is enough sound."""
        end = self._end - matcher.length - _HALF_TAPS + 1
        if end <= matcher.next:
            return
        scores, energies = self._scores(matcher, matcher.next, end)
        if self._last_end:
            echoes = max(0, self._last_end + round(_ECHO_S * ANALYSIS_HZ) - matcher.next)
            scores[:echoes][energies[:echoes] < matcher.least] = 0.0
        usable = scores[max(0, self._last_end - matcher.next) :]
        first = end - len(usable)
        if len(usable):
            offset = int(np.argmax(usable))
            start, score = first + offset, float(usable[offset])
            # What begins after the best so far has ended is another earcon.
            if score >= matcher.earcon.threshold and self._is_better(start, score):
                self._match = score, start, matcher
        matcher.next = end

    def _is_better(self, start: int, score: float) -> bool:
        if self._match is None:
            return True
        best, begins, matcher = self._match
        return score > best and start < begins + matcher.length

    def _scores(self, matcher: _MatchedFilter, first: int, end: int) -> tuple[_Values, _Values]:
        low = first - _HALF_TAPS - self._origin
        return matcher.scores(self._samples[low : end - 1 + matcher.length + _HALF_TAPS - self._origin])

    def _detection(self, matcher: _MatchedFilter, start: int) -> EarconDetection:
        scores = self._scores(matcher, start - _AROUND, start + _AROUND + 1)[0]
        peak = float(scores[_AROUND])
        drop = min(max(_DROP * (1 - peak), _MIN_DROP), _MAX_DROP)
        offsets = np.flatnonzero(scores >= (1 - drop) * peak) - _AROUND
        sound = self._samples[start - self._origin : start - self._origin + matcher.length]
        level_dbfs = 10 * float(np.log10(max(float(np.mean(np.square(sound, dtype=np.float64))), 1e-12)))
        error_s = float(np.abs(offsets).max()) / ANALYSIS_HZ + _MIN_ERROR_S
        return EarconDetection(matcher.earcon, start, start + matcher.length, min(1.0, peak), error_s, level_dbfs)
