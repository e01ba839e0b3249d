"""Detection error tradeoff: false rejects against false accepts per hour by threshold, and points chosen on it.

Every result belongs to a threshold that was counted; nothing is interpolated. Source of the form: Martin et al., The
DET curve in assessment of detection task performance, Eurospeech (1997). Here the x axis shows false accepts per hour.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, gammaincinv

from harness.model.choices import TWV_BETA as TWV_BETA
from harness.model.choices import TargetBasis
from harness.statistics.intervals import CONFIDENCE

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Band = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Det:
    """Counts at thresholds, the strictest (highest) first; all arrays have shape (n,).

    misses: of `files` with the phrase. hours: in which false accepts were counted, which may depend on the threshold.

    targets: utterances within those hours, which are not chances for a false accept.

    repeats: how many times each recording counts, once per condition. Intervals count it once: what a recording does in
    its conditions goes together, and how much so is not known at each threshold. So they are never too narrow.
    """

    thresholds: npt.NDArray[np.float32]
    misses: Counts
    files: int
    false_accepts: Counts
    hours: Floats
    targets: int = 0
    repeats: int = 1

    def __post_init__(self) -> None:
        if np.any(np.diff(self.thresholds) >= 0):
            raise ValueError("thresholds go from the strictest to the most lenient, each once")
        if self.misses.min(initial=0) < 0 or self.misses.max(initial=0) > self.files:
            raise ValueError(f"misses must be 0 to {self.files}")
        if self.false_accepts.min(initial=0) < 0 or self.hours.min(initial=0) < 0:
            raise ValueError("negative counts")

    def __len__(self) -> int:
        return len(self.thresholds)

    @property
    def has_rejects(self) -> bool:
        """Whether there were files with the phrase. Without them there is no share of false rejects."""
        return self.files > 0

    @property
    def has_accepts(self) -> bool:
        return bool(len(self) and self.hours.min() > 0)

    def false_rejects(self) -> Floats:
        """Shares 0–1, nan without data."""
        if not self.files:
            return np.full(len(self), np.nan)
        shares: Floats = self.misses / self.files
        return shares

    def per_hour(self) -> Floats:
        """False accepts per hour, nan without data."""
        nothing = np.full(len(self), np.nan)
        rates: Floats = np.divide(self.false_accepts, self.hours, out=nothing, where=self.hours > 0)
        return rates

    def false_reject_band(self, confidence: float = CONFIDENCE) -> Band:
        """Exact intervals of the shares, as `clopper_pearson`; nan without data."""
        if not self.files:
            return np.full(len(self), np.nan), np.full(len(self), np.nan)
        counts, tail = self.misses / self.repeats, (1 - confidence) / 2
        rest = self.files / self.repeats - counts
        low = np.where(counts > 0, betaincinv(np.where(counts > 0, counts, 1), rest + 1, tail), 0.0)
        high = np.where(rest > 0, betaincinv(counts + 1, np.where(rest > 0, rest, 1), 1 - tail), 1.0)
        return low, high

    def per_hour_band(self, confidence: float = CONFIDENCE) -> Band:
        """Exact intervals of the rates, as `garwood`; nan without data."""
        counts, tail = self.false_accepts / self.repeats, (1 - confidence) / 2
        hours = np.where(self.hours > 0, self.hours / self.repeats, np.nan)
        low = np.where(counts > 0, gammaincinv(np.where(counts > 0, counts, 1), tail), 0.0) / hours
        return low, gammaincinv(counts + 1, 1 - tail) / hours


def so_far(values: Floats) -> Floats:
    """The maximum over all thresholds as strict or stricter. Choices use it, since counts mislead at low thresholds.
    Far below its working range a detector hardly ever falls silent, and its false accepts merge into one."""
    most: Floats = np.maximum.accumulate(values)
    return most


def at_most_false_accepts(det: Det, per_hour: float, basis: TargetBasis = TargetBasis.ESTIMATE) -> int | None:
    """Index of the fewest false rejects among thresholds that meet `per_hour`; among equals the strictest. None if
    none meets it, or without data."""
    rates = det.per_hour() if basis is TargetBasis.ESTIMATE else det.per_hour_band()[1]
    return _least_of(det, det.misses.astype(np.float64), so_far(rates) <= per_hour)


def at_most_false_rejects(det: Det, share: float, basis: TargetBasis = TargetBasis.ESTIMATE) -> int | None:
    """Index of the fewest false accepts per hour among thresholds that meet `share`; among equals the fewest false
    rejects."""
    shares = det.false_rejects() if basis is TargetBasis.ESTIMATE else det.false_reject_band()[1]
    is_met = shares <= share
    rates = so_far(det.per_hour())
    return _least_of(det, det.misses.astype(np.float64), is_met & (rates <= rates[is_met].min(initial=np.inf)))


def least_cost(det: Det, of_miss: float, of_false_accept: float, uses_per_hour: float) -> int | None:
    """Index of the least expected cost per hour: uses · FR · of_miss + FA/h · of_false_accept; among equals the
    strictest. Source: the detection cost function of Martin et al. (1997), with rates in place of trials."""
    costs = uses_per_hour * det.false_rejects() * of_miss + so_far(det.per_hour()) * of_false_accept
    return _least_of(det, costs, np.isfinite(costs))


def term_weighted_value(det: Det, beta: float = TWV_BETA, speech_s: float | None = None) -> Floats:
    """1 − (P(miss) + beta · P(false accept)) at each threshold, shape (n,). A perfect detector has 1, one that never
    fires 0; nan without data.

    P(false accept) is false accepts over speech_s less the utterances in it. Without speech_s, the time in which false
    accepts were counted replaces it. The MTWV is the maximum; the ATWV is the value at a threshold set beforehand. The
    detector is one term, whatever its phrases are. Source: NIST, OpenKWS13 Keyword Search Evaluation Plan, section on
    term-weighted value; Fiscus et al. (2007).
    """
    chances = (det.hours * 3600 if speech_s is None else np.full(len(det), float(speech_s))) - det.targets
    accepts = np.divide(so_far(det.false_accepts.astype(np.float64)), chances,
                        out=np.full(len(det), np.nan), where=chances > 0)  # fmt: skip
    values: Floats = 1 - (det.false_rejects() + beta * accepts)
    return values


def best_twv(values: Floats) -> int | None:
    """Index of the MTWV, among equals the strictest; None without data."""
    return _least(-values, np.isfinite(values))


def _least_of(det: Det, values: Floats, allowed: npt.NDArray[np.bool_]) -> int | None:
    """As `_least`; None unless there are files of both kinds."""
    return _least(values, allowed) if det.has_accepts and det.has_rejects else None


def _least(values: Floats, allowed: npt.NDArray[np.bool_]) -> int | None:
    if not allowed.any():
        return None
    return int(np.argmin(np.where(allowed, values, np.inf)))
