"""Scores over time to spots: which scores above a threshold begin a spot of their own."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.model.offline import OfflineSpot, ScoreTrack, SpotRule


def crossings(scores: npt.NDArray[np.float32], threshold: float, refractory_steps: float) -> npt.NDArray[np.intp]:
    """Indices at which a spot begins: the score is above the threshold, and the last one above it was at least
    `refractory_steps` steps before. The first score above it always begins one: nothing starts armed.

    A detector that stays above its threshold has said one thing, once.
    """
    above = np.flatnonzero(scores > threshold)
    if not len(above):
        return above
    fresh = np.empty(len(above), dtype=bool)
    fresh[0] = True
    np.greater_equal(np.diff(above), max(refractory_steps, 1 + 1e-9), out=fresh[1:])
    return above[fresh]


def spots(track: ScoreTrack, rule: SpotRule) -> tuple[OfflineSpot, ...]:
    """The spots of a track. Each ends where its score was known and begins `spot_samples` before, or with the sound."""
    found = crossings(track.scores, rule.threshold, rule.refractory_samples / track.step)
    ends = track.first_end + found * track.step
    return tuple(
        OfflineSpot(track.phrase, max(0, int(end) - rule.spot_samples), int(end), float(track.scores[index]))
        for index, end in zip(found, ends, strict=True)
    )
