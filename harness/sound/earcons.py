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
_SEARCH_STEP = ANALYSIS_HZ // 10
"""New sound is searched when this many samples have arrived."""
_AROUND_SAMPLES = ANALYSIS_HZ // 8
_MIN_ERROR_S = 0.002
_DROP_FACTOR, _MIN_DROP, _MAX_DROP = 2.5, 0.05, 0.5
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

    - source: id under which it is reported.
    - samples: its sound, (n,) at 16 kHz.
    - threshold: least score of a detection.
    """

    source: str
    meaning: EarconMeaning
    samples: Mono
    threshold: float = EARCON_THRESHOLD


@frozen
class EarconDetection:
    """An earcon in the sound, from sample `start` (may be fractional) to `end`.

    - score: 0–1.
    - error_s: bound on the error of its start.
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
        self.next_start = 0
        """The first start that was not searched yet."""
        self.min_energy = 0.0
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
        running_energy = np.concatenate(([0.0], np.cumsum(in_band**2)))
        energies = running_energy[self.length :] - running_energy[: -self.length]
        return np.asarray(
            correlation / np.sqrt(self._energy * np.maximum(energies, _MIN_POWER * self.length))
        ), energies


def band_taps(samples: Mono) -> _Values:
    """A linear-phase filter (513 taps) that passes the band of a sound."""
    size = 4096 if len(samples) <= 4096 else 1 << len(samples).bit_length()
    smoothing = np.hanning(15 * size // 4096)
    power = np.convolve(np.abs(np.fft.rfft(samples, size)) ** 2, smoothing / smoothing.sum(), "same")
    in_band = power >= power.max() * 10 ** (-_BAND_DB / 10)
    pass_band = np.convolve(in_band, np.ones(2 * int(_BAND_HZ * size / ANALYSIS_HZ) + 1), "same") > 0.5
    pass_band[: int(100 * size / ANALYSIS_HZ)] = False  # rumble is louder than anything there
    response = np.fft.fftshift(np.fft.irfft(pass_band.astype(np.float64)))
    middle = len(response) // 2
    return np.asarray(response[middle - _HALF_TAPS : middle + _HALF_TAPS + 1] * np.hanning(2 * _HALF_TAPS + 1))


def likeness(earcon: LearnedEarcon, other: LearnedEarcon) -> float:
    """The best score of `earcon` within `other`, 0–1."""
    matcher = _MatchedFilter(earcon)
    silence = np.zeros(matcher.length + _HALF_TAPS, np.float32)
    return float(matcher.scores(np.concatenate((silence, other.samples, silence)))[0].max())


class EarconFinder:
    """Finds earcons in samples, which it takes in order. It reports one at most its length and 0.15 s after its end.

    Of overlapping earcons, the one with the highest score counts.
    """

    def __init__(self, earcons: tuple[LearnedEarcon, ...]) -> None:
        self._filters = [_MatchedFilter(earcon) for earcon in earcons]
        self.reset()

    def reset(self) -> None:
        self._samples: Mono = np.zeros(
            _HALF_TAPS + _AROUND_SAMPLES, np.float32
        )  # an earcon may begin with the first sample
        self._origin = -len(self._samples)
        self._waiting = 0
        # Score, start and filter of the best match that is not reported yet.
        self._match: tuple[float, int, _MatchedFilter] | None = None
        self._last_end = 0
        for matcher in self._filters:
            matcher.next_start, matcher.min_energy = 0, 0.0

    @property
    def settled(self) -> int:
        """The sample before which no earcon begins that is not reported yet."""
        searched_to = min((matcher.next_start for matcher in self._filters), default=self._end)
        return searched_to if self._match is None else min(searched_to, self._match[1] - _AROUND_SAMPLES)

    @property
    def _end(self) -> int:
        return self._origin + len(self._samples)

    def feed(self, samples: Mono) -> list[EarconDetection]:
        """Takes the next samples. Returns the earcons that are certain now."""
        # In small pieces: of the sound that is searched at once, only the best match and what follows it are found.
        pieces = (samples[start : start + _SEARCH_STEP] for start in range(0, len(samples), _SEARCH_STEP))
        return [earcon for piece in pieces for earcon in self._feed_piece(piece)]

    def _feed_piece(self, samples: Mono) -> list[EarconDetection]:
        self._samples = np.concatenate((self._samples, samples))
        self._waiting += len(samples)
        if self._waiting < _SEARCH_STEP:
            return []
        self._waiting = 0
        earcons: list[EarconDetection] = []
        for matcher in self._filters:
            self._search(matcher)
        while self._match is not None:
            _, start, best = self._match
            if min(matcher.next_start for matcher in self._filters) <= start + best.length:
                break
            earcons.append(self._detection(best, start))
            self._last_end, self._match = start + best.length, None
            for matcher in self._filters:  # what was searched together with it, but lies after it
                matcher.min_energy = _ECHO_SHARE * float(self._scores(matcher, start, start + 1)[1][0])
                matcher.next_start = min(matcher.next_start, self._last_end)
                self._search(matcher)
        next_start = min(matcher.next_start for matcher in self._filters)
        needed_from = next_start if self._match is None else self._match[1]
        spare = needed_from - _AROUND_SAMPLES - _HALF_TAPS - self._origin
        if spare > ANALYSIS_HZ:  # not for less, since it copies all that is kept
            self._samples, self._origin = self._samples[spare:], self._origin + spare
        return earcons

    def _search(self, matcher: _MatchedFilter) -> None:
        """Searches all starts for which there is enough sound, and keeps a match that is the best so far."""
        end = self._end - matcher.length - _HALF_TAPS + 1
        if end <= matcher.next_start:
            return
        scores, energies = self._scores(matcher, matcher.next_start, end)
        if self._last_end:
            echoes = max(0, self._last_end + round(_ECHO_S * ANALYSIS_HZ) - matcher.next_start)
            scores[:echoes][energies[:echoes] < matcher.min_energy] = 0.0
        usable = scores[max(0, self._last_end - matcher.next_start) :]
        first = end - len(usable)
        if len(usable):
            offset = int(np.argmax(usable))
            start, score = first + offset, float(usable[offset])
            if score >= matcher.earcon.threshold and self._is_better(start, score):
                self._match = score, start, matcher
        matcher.next_start = end

    def _is_better(self, start: int, score: float) -> bool:
        """Whether a match replaces the best so far. One that begins after that has ended is another earcon."""
        if self._match is None:
            return True
        best_score, best_start, matcher = self._match
        return score > best_score and start < best_start + matcher.length

    def _scores(self, matcher: _MatchedFilter, first: int, end: int) -> tuple[_Values, _Values]:
        """Scores and energies of the starts from `first` to before `end`."""
        low = first - _HALF_TAPS - self._origin
        return matcher.scores(self._samples[low : end - 1 + matcher.length + _HALF_TAPS - self._origin])

    def _detection(self, matcher: _MatchedFilter, start: int) -> EarconDetection:
        """The detection of a match, with the error of its start and its level."""
        scores = self._scores(matcher, start - _AROUND_SAMPLES, start + _AROUND_SAMPLES + 1)[0]
        peak = float(scores[_AROUND_SAMPLES])
        drop = min(max(_DROP_FACTOR * (1 - peak), _MIN_DROP), _MAX_DROP)
        offsets = np.flatnonzero(scores >= (1 - drop) * peak) - _AROUND_SAMPLES
        sound = self._samples[start - self._origin : start - self._origin + matcher.length]
        level_dbfs = 10 * float(np.log10(max(float(np.mean(np.square(sound, dtype=np.float64))), 1e-12)))
        error_s = float(np.abs(offsets).max()) / ANALYSIS_HZ + _MIN_ERROR_S
        return EarconDetection(matcher.earcon, start, start + matcher.length, min(1.0, peak), error_s, level_dbfs)
