"""A threshold that is chosen for a declared target on one list, and what it comes to on another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from harness.model.choices import ChosenBy
from harness.model.offline import OperatingPoint
from harness.offline.figures.det import (
    TWV_BETA,
    Det,
    at_most_false_accepts,
    at_most_false_rejects,
    best_twv,
    least_cost,
    term_weighted_value,
)
from harness.offline.figures.sweep import Sweep
from harness.statistics.exact import Interval, clopper_pearson, garwood


class Aim(StrEnum):
    """What a point is chosen for."""

    FALSE_ACCEPTS = "false accepts an hour"
    FALSE_REJECTS = "false rejects"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class Target:
    """A declared target. value: the most false accepts an hour, or the largest share of false rejects (0–1).

    miss_cost, accept_cost, uses_per_hour: of a COST, which has no value and is chosen by estimate.
    """

    aim: Aim
    value: float = 0.0
    by: ChosenBy = ChosenBy.ESTIMATE
    miss_cost: float = 1.0
    accept_cost: float = 1.0
    uses_per_hour: float = 1.0


@dataclass(frozen=True, slots=True)
class PointFigures:
    """The counts at one threshold; point: the number of the operating point that has it."""

    threshold: float
    point: int | None
    misses: int
    files: int
    false_accepts: int
    hours: float

    @property
    def false_rejects(self) -> float | None:
        return self.misses / self.files if self.files else None

    @property
    def false_reject_interval(self) -> Interval | None:
        return clopper_pearson(self.misses, self.files)

    @property
    def per_hour(self) -> float | None:
        return self.false_accepts / self.hours if self.hours else None

    @property
    def per_hour_interval(self) -> Interval | None:
        return garwood(self.false_accepts, self.hours)

    def keeps(self, target: Target) -> bool | None:
        """Does it keep the target, by the target's own measure; None for a cost, or over nothing."""
        match target.aim:
            case Aim.FALSE_ACCEPTS:
                found, interval = self.per_hour, self.per_hour_interval
            case Aim.FALSE_REJECTS:
                found, interval = self.false_rejects, self.false_reject_interval
            case Aim.COST:
                return None
        if found is None or interval is None:
            return None
        return (found if target.by is ChosenBy.ESTIMATE else interval[1]) <= target.value


@dataclass(frozen=True, slots=True)
class ChosenPoint:
    """A point, as it looks on the list that it was chosen on, and on the one that it is reported on.

    reported is None where one list served for both: such figures flatter themselves.
    """

    target: Target
    chosen: PointFigures
    reported: PointFigures | None


@dataclass(frozen=True, slots=True)
class TermWeighted:
    """Term-weighted values. best_at: where the largest (MTWV) is; at_point: the operating point that was in force,
    whose value is the ATWV. None over nothing."""

    beta: float
    speech_s: float | None
    best: float | None
    best_at: PointFigures | None
    actual: float | None
    at_point: PointFigures


def chosen_index(det: Det, target: Target) -> int | None:
    """The row of the threshold that serves a target best; None where none keeps it."""
    match target.aim:
        case Aim.FALSE_ACCEPTS:
            return at_most_false_accepts(det, target.value, target.by)
        case Aim.FALSE_REJECTS:
            return at_most_false_rejects(det, target.value, target.by)
        case Aim.COST:
            return least_cost(det, target.miss_cost, target.accept_cost, target.uses_per_hour)


def choose(target: Target, on: Det, points: Sequence[OperatingPoint], report: Sweep | None) -> ChosenPoint | None:
    """Chooses on one list's curve, and counts the other list at that threshold; None where none keeps the target."""
    index = chosen_index(on, target)
    if index is None:
        return None
    chosen = figures(on, index, points)
    return ChosenPoint(target, chosen, figures_at(report, chosen.threshold) if report is not None else None)


def term_weighted(sweep: Sweep, det: Det, beta: float = TWV_BETA, speech_s: float | None = None) -> TermWeighted:
    """The largest value, and that at the threshold which the run had."""
    values = term_weighted_value(det, beta, speech_s)
    index = best_twv(values)
    at = figures_at(sweep, sweep.rule.threshold)
    own = int(np.flatnonzero(det.thresholds == np.float32(sweep.rule.threshold))[0])
    return TermWeighted(
        beta,
        speech_s,
        None if index is None else float(values[index]),
        None if index is None else figures(det, index, sweep.points),
        float(values[own]) if np.isfinite(values[own]) else None,
        at,
    )


def figures(det: Det, index: int, points: Sequence[OperatingPoint]) -> PointFigures:
    """The counts of a row."""
    threshold = det.thresholds[index]
    return PointFigures(
        float(threshold),
        point_of(threshold, points),
        int(det.misses[index]),
        det.files,
        int(det.false_accepts[index]),
        float(det.hours[index]),
    )


def figures_at(sweep: Sweep, threshold: float) -> PointFigures:
    """The counts of a list at any threshold."""
    return figures(sweep.at(np.array([threshold], np.float32)), 0, sweep.points)


def point_of(threshold: np.float32, points: Sequence[OperatingPoint]) -> int | None:
    """The operating point of that threshold."""
    return next((one.number for one in points if np.float32(one.threshold) == threshold), None)
