"""Detection error tradeoff: false rejects against false accepts per hour by threshold, and points chosen on it.

Every result belongs to a threshold that was counted; nothing is interpolated. Source of the form: Martin et al., The
DET curve in assessment of detection task performance, Eurospeech (1997). Here the x axis shows false accepts per hour.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.model.choices import TWV_BETA as TWV_BETA
from harness.model.choices import TargetBasis
from harness.statistics.intervals import TAIL
from harness.statistics.special_functions import special

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Band = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Det:
    """Counts at thresholds, the strictest (highest) first; all arrays have shape (n,).

    - misses: number of missed phrases out of `files`.
    - files: number of files or labelled phrases that should be detected.
    - hours: hours in which false accepts were counted. They may depend on the threshold.
    - targets: number of utterances of the phrase within those hours. They are not chances for a false accept.
    - repeats: how many times each recording counts, once per condition. Intervals count it once: its results in
      different conditions depend on each other, to an unknown degree. Intervals are so never too narrow.
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
            raise ValueError("thresholds must go from the strictest to the most lenient, each once")
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
        """Whether false accepts were counted at every threshold. Without hours there is no rate."""
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

    def false_reject_band(self) -> Band:
        """Lower and upper ends of the exact intervals of the shares, as from `clopper_pearson`; nan without data."""
        if not self.files:
            return np.full(len(self), np.nan), np.full(len(self), np.nan)
        counts = self.misses / self.repeats
        hits = self.files / self.repeats - counts
        low = np.where(counts > 0, special.betaincinv(np.where(counts > 0, counts, 1), hits + 1, TAIL), 0.0)
        high = np.where(hits > 0, special.betaincinv(counts + 1, np.where(hits > 0, hits, 1), 1 - TAIL), 1.0)
        return low, high

    def per_hour_band(self) -> Band:
        """Lower and upper ends of the exact intervals of the rates, as from `garwood`; nan without data."""
        counts = self.false_accepts / self.repeats
        hours = np.where(self.hours > 0, self.hours / self.repeats, np.nan)
        low = np.where(counts > 0, special.gammaincinv(np.where(counts > 0, counts, 1), TAIL), 0.0) / hours
        return low, special.gammaincinv(counts + 1, 1 - TAIL) / hours


def running_maximum(values: Floats) -> Floats:
    """The maximum over all thresholds that are as strict or stricter. Points are chosen by it, since counts mislead at
    low thresholds. A detector there fires nearly all the time, and its false accepts merge into one."""
    maximum: Floats = np.maximum.accumulate(values)
    return maximum


def at_most_false_accepts(det: Det, per_hour: float, basis: TargetBasis = TargetBasis.ESTIMATE) -> int | None:
    """Index of the threshold with the fewest false rejects, among those with at most `per_hour` false accepts per hour;
    of equal ones, the strictest. basis: whether the estimate or the upper end of its interval must keep the limit. None
    if no threshold does, or without data."""
    rates = det.per_hour() if basis is TargetBasis.ESTIMATE else det.per_hour_band()[1]
    return _least_if_complete(det, det.misses.astype(np.float64), running_maximum(rates) <= per_hour)


def at_most_false_rejects(det: Det, share: float, basis: TargetBasis = TargetBasis.ESTIMATE) -> int | None:
    """Index of the threshold with the fewest false accepts per hour, among those with at most this share of false
    rejects. Of equal ones, it is the one with the fewest false rejects. basis and None: as in
    `at_most_false_accepts`."""
    shares = det.false_rejects() if basis is TargetBasis.ESTIMATE else det.false_reject_band()[1]
    is_met = shares <= share
    rates = running_maximum(det.per_hour())
    return _least_if_complete(det, det.misses.astype(np.float64), is_met & (rates <= rates[is_met].min(initial=np.inf)))


def least_cost(det: Det, miss_cost: float, accept_cost: float, uses_per_hour: float) -> int | None:
    """Index of the threshold with the least expected cost per hour: uses · FR · miss_cost + FA/h · accept_cost; of
    equal ones, the strictest. Source: the detection cost function of Martin et al. (1997), with rates in place of
    trials."""
    costs = uses_per_hour * det.false_rejects() * miss_cost + running_maximum(det.per_hour()) * accept_cost
    return _least_if_complete(det, costs, np.isfinite(costs))


def term_weighted_value(det: Det, beta: float = TWV_BETA, speech_s: float | None = None) -> Floats:
    """1 − (P(miss) + beta · P(false accept)) at each threshold, shape (n,). A perfect detector has 1, one that never
    fires 0; nan without data.

    P(false accept) is the number of false accepts over the number of chances: one per second of speech, less the
    utterances of the phrase. speech_s: seconds of speech; None takes the time in which false accepts were counted. The
    MTWV is the maximum; the ATWV is the value at a threshold set beforehand. All phrases of a detector are one term.
    Source: NIST, OpenKWS13 Keyword Search Evaluation Plan, section on term-weighted value; Fiscus et al. (2007).
    """
    exposure_s = det.hours * 3600 if speech_s is None else np.full(len(det), float(speech_s))
    chances = exposure_s - det.targets
    accepts = np.divide(running_maximum(det.false_accepts.astype(np.float64)), chances,
                        out=np.full(len(det), np.nan), where=chances > 0)  # fmt: skip
    values: Floats = 1 - (det.false_rejects() + beta * accepts)
    return values


def best_twv(values: Floats) -> int | None:
    """Index of the threshold with the MTWV; of equal ones, the strictest. None without data."""
    return _least(-values, np.isfinite(values))


def _least_if_complete(det: Det, values: Floats, allowed: npt.NDArray[np.bool_]) -> int | None:
    """Index of the least allowed value. None unless there are files with the phrase and hours without it."""
    return _least(values, allowed) if det.has_accepts and det.has_rejects else None


def _least(values: Floats, allowed: npt.NDArray[np.bool_]) -> int | None:
    """Index of the least allowed value; of equal ones, the first. None if none is allowed."""
    if not allowed.any():
        return None
    return int(np.argmin(np.where(allowed, values, np.inf)))
