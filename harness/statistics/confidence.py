"""How well confidences from 0 to 1 predict whether answers, such as recognised words, are correct.

NCE is the normalised cross entropy as NIST defines it. The best value is 1. A system has 0 if it is no better than one
that gives the same confidence, the share of correct answers, to all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.model.frozen import frozen
from harness.statistics.intervals import Share

BINS = 10
MAX_POINTS = 100
"""Most points of a DET curve."""
MIN_DISTANCE = 1e-7
"""Confidences nearer to 0 or 1 count as this near. Otherwise one wrong answer of confidence 1 would decide
everything."""


@frozen
class ConfidenceBin:
    """Answers whose confidence lies in [low, high); the last bin includes 1.

    - correct: share of them that is correct.
    - mean: mean of their confidences.
    """

    low: float
    high: float
    correct: Share
    mean: float


@frozen
class DetPoint:
    """The two errors if answers of at least this confidence are accepted.

    - missed: share of the correct answers that are rejected.
    - false: share of the wrong ones that are accepted. None over nothing.
    """

    threshold: float
    missed: float | None
    false: float | None


@frozen
class ConfidenceFigures:
    """How well confidences predict correct answers.

    - nce: None if all answers are correct, or none.
    - calibration_error: mean difference between the share of correct answers in a bin and its mean confidence.
    - equal_error: the error at the point of the DET curve where both errors are most nearly equal.
    - left_out: number of answers without a usable confidence.
    """

    correct: Share
    nce: float | None
    calibration_error: float
    equal_error: float | None
    left_out: int
    bins: tuple[ConfidenceBin, ...]
    det: tuple[DetPoint, ...]


def confidence_figures(values: Sequence[float], correct_flags: Sequence[bool], left_out: int) -> ConfidenceFigures:
    """All results.

    - values: a confidence from 0 to 1 for each answer, at least one.
    - correct_flags: whether each is correct.
    - left_out: number of answers without a usable confidence.
    """
    confidence, flags = np.array(values), np.array(correct_flags)
    det = _det_points(confidence, flags)
    equal_point = min(
        (point for point in det if point.missed is not None and point.false is not None),
        key=lambda point: abs((point.missed or 0.0) - (point.false or 0.0)),
        default=None,
    )
    bins = _bins(confidence, flags)
    deviations = [bucket.correct.total * abs((bucket.correct.value or 0.0) - bucket.mean) for bucket in bins]
    return ConfidenceFigures(
        correct=Share(int(flags.sum()), len(flags)),
        nce=_nce(confidence, flags),
        calibration_error=sum(deviations) / len(flags),
        equal_error=None if equal_point is None else ((equal_point.missed or 0.0) + (equal_point.false or 0.0)) / 2,
        left_out=left_out,
        bins=bins,
        det=det,
    )


DET_TICKS = (0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


def deviate(share: float) -> float:
    """The place of an error on an axis of a DET picture, from 0 (for 0.5 %) to 1 (for 99.5 %).

    Axes are normal deviates: Martin et al., The DET curve in assessment of detection task performance, 1997.
    """
    from statistics import NormalDist  # here, since only pages need it

    low, value = map(NormalDist().inv_cdf, (0.005, min(0.995, max(0.005, share))))
    return (value - low) / (-2 * low)  # the deviate of 99.5 % is -low


def _nce(confidence: NDArray[np.float64], correct_flags: NDArray[np.bool_]) -> float | None:
    count, correct = len(correct_flags), int(correct_flags.sum())
    if correct in (0, count):
        return None
    share = correct / count
    # The entropy of the share of correct answers, for all answers.
    max_entropy = -correct * np.log2(share) - (count - correct) * np.log2(1 - share)
    clipped = np.clip(confidence, MIN_DISTANCE, 1 - MIN_DISTANCE)
    return float((max_entropy + np.log2(np.where(correct_flags, clipped, 1 - clipped)).sum()) / max_entropy)


def _bins(confidence: NDArray[np.float64], correct_flags: NDArray[np.bool_]) -> tuple[ConfidenceBin, ...]:
    bin_numbers = np.minimum((confidence * BINS).astype(int), BINS - 1)
    bins = []
    for number in range(BINS):
        inside = bin_numbers == number
        if count := int(inside.sum()):
            share = Share(int(correct_flags[inside].sum()), count)
            bins.append(ConfidenceBin(number / BINS, (number + 1) / BINS, share, float(confidence[inside].mean())))
    return tuple(bins)


def _det_points(confidence: NDArray[np.float64], correct_flags: NDArray[np.bool_]) -> tuple[DetPoint, ...]:
    levels = np.unique(confidence)
    if len(levels) > MAX_POINTS:
        # Takes the nearest confidence, so that every threshold is one that occurs.
        levels = np.unique(np.quantile(confidence, np.linspace(0, 1, MAX_POINTS), method="nearest"))
    correct, wrong = np.sort(confidence[correct_flags]), np.sort(confidence[~correct_flags])
    points = []
    for level in levels.tolist():
        missed = float(np.searchsorted(correct, level)) / len(correct) if len(correct) else None
        false = float(len(wrong) - np.searchsorted(wrong, level)) / len(wrong) if len(wrong) else None
        points.append(DetPoint(level, missed, false))
    return tuple(points)
