"""What the trials of some voices say about other voices: an interval, one that holds at any time, and a sequential
test.

In the model, each voice has an error share of its own, drawn from a beta distribution with mean p. Trials of one voice
are then correlated by r, which is not known. Every likelihood is therefore a mean over r, with the density 2(1 − r):
any correlation is possible, and large ones are less likely. So a few voices that happen to be alike do not prove that
all voices are. Source of the beta-binomial likelihood: Williams, Biometrics 31 (1975).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.model.frozen import frozen
from harness.statistics.intervals import CONFIDENCE, Interval, Share
from harness.statistics.sequential import SequentialVerdict

if TYPE_CHECKING:
    from harness.model.scenario import SequentialTest

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Counts = tuple[tuple[int, int, int], ...]
"""(errors, trials, number of voices that have these), in ascending order."""

MIN_VOICES = 2
"""With fewer voices, nothing shows how much they differ."""
_CELLS, _FINE_CELLS = 64, 128
"""Numbers of cells of the grid of p: first over its whole range, then over the part where the likelihood is large."""
_NEGLIGIBLE = 25.0
"""Cells whose log likelihood is this much below the largest are left out."""

_ROOTS = (np.arange(16) + 0.5) / 16
_CORRELATIONS = _ROOTS**2
"""The grid of r. It is dense near 0, since many trials of a voice show small correlations."""
# The density 2(1 − r) times the steps of r, which grow with its root.
_LOG_WEIGHTS = np.log(_ROOTS * (1 - _CORRELATIONS) / (_ROOTS * (1 - _CORRELATIONS)).sum())
_SPREAD = (1 - _CORRELATIONS) / _CORRELATIONS
"""Sum of the two parameters of the beta distribution of voices, for each r."""


@frozen
class VoiceIntervals:
    """Intervals of the mean share over all voices like these.

    - interval: for one look.
    - any_time: valid for any number of looks together.
    """

    interval: Interval
    any_time: Interval


def over_voices(voices: Iterable[Share], confidence: float = CONFIDENCE) -> VoiceIntervals | None:
    """Intervals from the errors and trials of each voice; None with fewer than MIN_VOICES.

    interval: it is Clopper and Pearson's if each voice has one trial, and usually wider otherwise.
    any_time: as `sequential.share_sequence`, with the same prior on p.
    """
    return _intervals_of_counts(_counts((voice.count, voice.total) for voice in voices), confidence)


def over_clusters(errors: Iterable[int], totals: Iterable[int]) -> Interval | None:
    """The interval of `over_voices` from two columns, such as the errors and the files of each talker."""
    estimate = _intervals_of_counts(_counts(zip(errors, totals, strict=True)), CONFIDENCE)
    return None if estimate is None else estimate.interval


def voices_verdict(test: SequentialTest, voices: Iterable[Share]) -> SequentialVerdict:
    """The verdict of the test of a share over voices: the likelihood ratio of the two means, compared with 1/α and β.

    It stays open as long as there are too few voices to separate the two, however many trials they have. Source of the
    bounds: Ville's inequality, for voices whose correlations have the density above.
    """
    if not (0 < test.good < test.bad < 1 and test.alpha + test.beta < 1):
        raise ValueError(f"a sequential test needs 0 < good < bad < 1 and alpha + beta < 1, not {test}")
    counts = _counts((voice.count, voice.total) for voice in voices)
    if not counts:
        return SequentialVerdict.OPEN
    good_likelihood, bad_likelihood = (_log_likelihood(mean, counts) for mean in (test.good, test.bad))
    if bad_likelihood - good_likelihood <= math.log(test.beta):
        return SequentialVerdict.PASSED
    if bad_likelihood - good_likelihood >= -math.log(test.alpha):
        return SequentialVerdict.FAILED
    return SequentialVerdict.OPEN


def _counts(voices: Iterable[tuple[int, int]]) -> Counts:
    """The voices by their errors and trials, without those that have no trials."""
    voice_counts = Counter((int(errors), int(total)) for errors, total in voices if total)
    return tuple((errors, total, voices) for (errors, total), voices in sorted(voice_counts.items()))


def _intervals_of_counts(counts: Counts, confidence: float) -> VoiceIntervals | None:
    return None if sum(voice_count for *_, voice_count in counts) < MIN_VOICES else _over_voices(counts, confidence)


@lru_cache(maxsize=8192)
def _over_voices(counts: Counts, confidence: float) -> VoiceIntervals:
    errors, totals, voice_counts = np.array(counts).T
    share = float((errors * voice_counts).sum() / (totals * voice_counts).sum())
    # p = sin²(πu/2): Jeffreys' prior on p is uniform in u.
    edges = np.linspace(0.0, 1.0, _CELLS + 1)
    log_likelihoods = _log_likelihoods(_middles(edges), errors, totals, voice_counts)
    likely_cells = np.flatnonzero(log_likelihoods > log_likelihoods.max() - _NEGLIGIBLE)
    edges = np.linspace(edges[max(0, likely_cells[0] - 1)], edges[min(_CELLS, likely_cells[-1] + 2)], _FINE_CELLS + 1)
    middles = _middles(edges)
    logs = _log_likelihoods(middles, errors, totals, voice_counts)
    likelihoods, slope = np.exp(logs - logs.max()), np.tan(math.pi / 2 * middles)

    tail = (1 - confidence) / 2
    # The weights turn Jeffreys' prior into the priors that give Clopper and Pearson's ends: 1/p and 1/(1 − p).
    low = _quantile(edges, likelihoods / slope, tail) if errors.any() else 0.0
    high = _quantile(edges, likelihoods * slope, 1 - tail) if (errors < totals).any() else 1.0

    threshold = math.log((1 - confidence) * float(likelihoods.mean()) * float(edges[-1] - edges[0])) + float(logs.max())
    first, last = np.flatnonzero(logs >= threshold)[[0, -1]]
    from_u = np.interp(threshold, logs[first - 1 : first + 1], middles[first - 1 : first + 1]) if first else edges[0]
    last_two = slice(last + 1, last - 1 if last else None, -1)
    to_u = np.interp(threshold, logs[last_two], middles[last_two]) if last < len(logs) - 1 else edges[-1]
    any_time = _share_at(float(from_u)) if errors.any() else 0.0, _share_at(float(to_u))
    # If voices have different numbers of trials, the share of all trials may lie outside. The interval must contain it.
    interval = min(low, share), max(high, share)
    return VoiceIntervals(interval, (min(any_time[0], interval[0]), max(any_time[1], interval[1])))


def _middles(edges: Floats) -> Floats:
    """The middle of each cell."""
    return (edges[1:] + edges[:-1]) / 2


def _share_at(u: float) -> float:
    """The share p at a place u of the grid."""
    return math.sin(math.pi / 2 * u) ** 2


def _quantile(edges: Floats, weights: Floats, probability: float) -> float:
    """The share below which cells have this part of all weight."""
    below = np.concatenate(([0.0], np.cumsum(weights)))
    return _share_at(float(np.interp(probability * below[-1], below, edges)))


def _log_likelihoods(u: Floats, errors: Integers, totals: Integers, voice_counts: Integers) -> Floats:
    """The log likelihood of each p, as the mean over correlations."""
    means = np.sin(math.pi / 2 * u)[:, np.newaxis] ** 2
    logs = _log_rising_factorial(means * _SPREAD, errors, voice_counts) + _log_rising_factorial(
        (1 - means) * _SPREAD, totals - errors, voice_counts
    )
    logs -= _log_rising_factorial(_SPREAD, totals, voice_counts)
    return _log_mean(logs)


def _log_rising_factorial(shape: Floats, counts: Integers, voice_counts: Integers) -> Floats:
    """log Γ(shape + n) − log Γ(shape), added over all counts n."""
    from harness.statistics.special_functions import special  # here, since it loads slowly

    values, places = np.unique(counts, return_inverse=True)
    times = np.bincount(places, voice_counts)
    logs = -float(times.sum()) * special.gammaln(shape)
    for value, how_often in zip(values.tolist(), times.tolist(), strict=True):
        logs += how_often * special.gammaln(shape + value)
    return np.asarray(logs)


def _log_likelihood(mean: float, counts: Counts) -> float:
    """Log likelihood of all voices, as the mean over correlations."""
    logs = [voices * _log_likelihood_of_voice(mean, errors, total) for errors, total, voices in counts]
    return float(_log_mean(np.sum(logs, axis=0)))


@lru_cache(maxsize=65536)
def _log_likelihood_of_voice(mean: float, errors: int, total: int) -> Floats:
    """Log likelihood of one voice's trials, for each correlation."""
    unit = np.ones(1, np.int64)
    yes, no, trials = unit * errors, unit * (total - errors), unit * total
    return (
        _log_rising_factorial(mean * _SPREAD, yes, unit)
        + _log_rising_factorial((1 - mean) * _SPREAD, no, unit)
        - _log_rising_factorial(_SPREAD, trials, unit)
    )


def _log_mean(logs: Floats) -> Floats:
    """The logarithm of the mean likelihood over correlations (the last axis). logs: logarithms of likelihoods."""
    return np.asarray(np.logaddexp.reduce(logs + _LOG_WEIGHTS, axis=-1))
