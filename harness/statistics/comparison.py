"""Is B worse than A? One comparison of shares, word errors, rates per hour and durations, with its words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import fmean
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from harness.base.grouping import group_by
from harness.model import numbers
from harness.model.frozen import frozen
from harness.model.time import MeasuredDuration
from harness.statistics.intervals import CONFIDENCE, Interval, Share, clopper_pearson, latency_figures
from harness.statistics.latency import paired_shift, unpaired_shift
from harness.statistics.significance import Difference
from harness.statistics.text import delays, share
from harness.statistics.voices import over_clusters
from harness.statistics.word_intervals import (
    MIN_QUERIES,
    MIN_UNITS,
    Clusters,
    cluster_sums,
    share_difference,
    unpaired_rate_difference,
    unpaired_share_difference,
    unpaired_wer_difference,
    wer_difference,
)

MIN_PAIRED_SHARE = 0.5
"""At least this share of the smaller side's units must have a partner. Otherwise the two are compared unpaired."""
_SAME_HOURS = 0.01
"""The exposures of partners may differ by this share."""
_BY_CHANCE = 1 - CONFIDENCE


class MeasureKind(StrEnum):
    """What a measure counts. Differences are shares, errors per word, events per hour, or seconds."""

    SHARE = "share"
    WORDS = "words"
    RATE = "rate"
    TIME = "time"


class DifferenceVerdict(StrEnum):
    """The verdict on a difference, in the order of reports. Values are the names in JSON.

    UNDECIDED: too little was measured, or the difference is significant only without the correction for many tests.
    """

    WORSE = "worse"
    BETTER = "better"
    UNDECIDED = "undecided"
    NOT_SHOWN = "no difference shown"

    @property
    def word(self) -> str:
        """The verdict in words for people."""
        return "not shown to differ" if self is DifferenceVerdict.NOT_SHOWN else self.value

    @property
    def differs(self) -> bool:
        """Whether a difference is shown."""
        return self in (DifferenceVerdict.WORSE, DifferenceVerdict.BETTER)


def verdict_of(
    difference: float | None, p: float | None, *, more_is_better: bool, corrected: float | None = None
) -> DifferenceVerdict:
    """The verdict on a difference, the later system minus the first. corrected: p, corrected for all tests; None if
    this is the only one."""
    if difference is None or p is None:
        return DifferenceVerdict.UNDECIDED
    if difference and (p if corrected is None else corrected) < _BY_CHANCE:
        better = (difference > 0) == more_is_better
        return DifferenceVerdict.BETTER if better else DifferenceVerdict.WORSE
    return DifferenceVerdict.UNDECIDED if p < _BY_CHANCE else DifferenceVerdict.NOT_SHOWN


def difference_text(kind: MeasureKind, difference: float | None, interval: Interval | None) -> str:
    """A difference with its 95 % interval: `+8.33 points (+2.10 to +14.60)`."""
    if difference is None or interval is None:
        return numbers.NOTHING
    format_value, unit = _WRITTEN[kind]
    if kind is MeasureKind.TIME and abs(difference) >= 0.9995:  # would be written as 1000 ms
        format_value, unit = numbers.signed, "s"
    low, high = (format_value(bound) if math.isfinite(bound) else numbers.TOO_FEW for bound in interval)
    return f"{format_value(difference)} {unit} ({low} to {high})"


_WRITTEN: dict[MeasureKind, tuple[Callable[[float], str], str]] = {
    MeasureKind.SHARE: (numbers.points, "points"),
    MeasureKind.WORDS: (numbers.points, "points"),
    # Rates that are equal may differ in the last digits if their hours were summed in another order.
    MeasureKind.RATE: (lambda value: numbers.signed(round(value, 9)), "per hour"),
    MeasureKind.TIME: (numbers.signed_ms, "ms"),
}


class DifferenceEstimate(Protocol):
    """The first value minus the second, with its 95 % interval and two-sided p; each is None if too little was
    measured."""

    @property
    def difference(self) -> float | None: ...

    @property
    def interval(self) -> Interval | None: ...

    @property
    def p(self) -> float | None: ...


NOT_CORRECTED = "p-values are not corrected for the number of pairs"
"""The note for reports that compare several pairs, each by itself."""


def sentence(
    first: str, second: str, estimate: DifferenceEstimate | None, kind: MeasureKind, *, more_is_better: bool | None
) -> str:
    """`B is worse than A by 2.10 points (0.40 to 3.80), p = 0.012`.

    Without a shown difference: `B is not shown to differ from A: B minus A +0.30 points (-0.40 to +1.00), p = 0.420`.
    more_is_better: None if neither is better: `B is higher than A by …`.
    """
    if estimate is None or estimate.difference is None or estimate.interval is None:
        return f"{second} minus {first} {numbers.NOTHING}"
    low, high = estimate.interval
    value, ends = 0.0 - estimate.difference, (0.0 - high, 0.0 - low)
    verdict = verdict_of(value, estimate.p, more_is_better=more_is_better is not False)
    if not verdict.differs:
        text = difference_text(kind, value, ends)
        return (
            f"{second} is not shown to differ from {first}: {second} minus {first} {text}, {numbers.p_is(estimate.p)}"
        )
    word = verdict.word
    if more_is_better is None:
        word = "higher" if value > 0 else "lower"
    if value < 0:
        value, ends = estimate.difference, estimate.interval
    text = difference_text(kind, value, ends).replace("+", "")
    return f"{second} is {word} than {first} by {text}, {numbers.p_is(estimate.p)}"


@frozen
class ComparedUnit:
    """The value of a measure in one trial or session: a count out of a total, or a duration.

    - place: identifies the partner on the other side, which has an equal place.
    - cluster: name of the units that vary together.
    - total: what the count is out of; hours for a rate.
    """

    place: tuple[object, ...]
    cluster: str
    labels: Mapping[str, str] = field(default_factory=dict)
    count: float = 0.0
    total: float = 0.0
    time: MeasuredDuration | None = None


@frozen
class UnitComparison:
    """Two sides compared.

    - first, second: the values of each side as text.
    - difference: second minus first; None if too little was measured.
    - how: the method and the number of units, in words.
    """

    first: str
    second: str
    difference: Difference | None
    how: str


def compare_units(kind: MeasureKind, first: Sequence[ComparedUnit], second: Sequence[ComparedUnit]) -> UnitComparison:
    """Compares two sides, paired by place if enough units have a partner.

    With enough clusters, whole clusters are the units of the test, else single trials.
    """
    pairs = _pairs(first, second)
    if kind is MeasureKind.WORDS:  # with another number of reference words, the reference was another one
        pairs = [(unit, other) for unit, other in pairs if unit.total == other.total]
    paired = bool(pairs) and len(pairs) >= MIN_PAIRED_SHARE * min(len(first), len(second))
    if kind is MeasureKind.RATE:
        paired = (
            len(first) == len(second) == len(pairs) >= MIN_UNITS
            and all(math.isclose(unit.total, other.total, rel_tol=_SAME_HOURS) for unit, other in pairs)
            and any(unit.count != other.count for unit, other in pairs)  # else the variance of differences is unknown
        )
    unpaired_count = len(first) + len(second) - 2 * len(pairs) if paired else 0
    if paired:
        first, second = [unit for unit, _ in pairs], [other for _, other in pairs]
    clusters = min(len({unit.cluster for unit in side}) for side in (first, second))
    units = min(len(first), len(second))
    # As for a WER: a few stimuli say too little about other stimuli. Then trials are the units, which say something
    # about repetitions of these stimuli.
    single = clusters < MIN_QUERIES or clusters == units
    number = units if single else clusters
    sample = numbers.counted(number, "trial" if single else "cluster")
    method = "no trials to compare"
    if number:
        method = f"{'paired' if paired else 'unpaired'}, {sample}"
    if kind is MeasureKind.RATE and not paired:
        method = "Poisson, of all trials"
    estimate: Difference | None = None
    if kind is MeasureKind.RATE or number >= MIN_QUERIES:
        sides = [_columns(side, clustered=not single) for side in (second, first)]
        if paired:  # partners belong to the same cluster, even if the two sides name it differently
            sides[0] = replace(sides[0], clusters=sides[1].clusters)
        estimate = difference_of(kind, *sides, paired=paired)
    method += f", {unpaired_count} without a partner" if unpaired_count else ""
    return UnitComparison(units_text(kind, first), units_text(kind, second), estimate, method)


def _columns(units: Sequence[ComparedUnit], *, clustered: bool) -> ComparedColumns:
    """One side of the comparison. clustered: whether units of a cluster vary together."""
    clusters = [unit.cluster for unit in units]
    several_in_one = len(set(clusters)) < len(clusters)
    times = [unit.time for unit in units if unit.time is not None]
    counts, totals = [unit.count for unit in units], [unit.total for unit in units]
    return ComparedColumns(counts, totals, clusters if clustered and several_in_one else None, times)


def _pairs(first: Sequence[ComparedUnit], second: Sequence[ComparedUnit]) -> list[tuple[ComparedUnit, ComparedUnit]]:
    """Pairs of units with the same place; if a place occurs several times, in order of occurrence."""
    waiting = group_by((unit.place, unit) for unit in reversed(first))
    return [(waiting[other.place].pop(), other) for other in second if waiting.get(other.place)]


@dataclass(frozen=True, slots=True, eq=False)
class ComparedColumns:
    """One side of a comparison, with an entry for each unit.

    - counts, totals: numerators and denominators (`totals` defaults to 1 for each unit).
    - times: durations, only for MeasureKind.TIME.
    - clusters: the cluster of each unit; units of a cluster vary together. None if units are independent.
    """

    counts: ArrayLike = ()
    totals: ArrayLike = ()
    clusters: Clusters | None = None
    times: Sequence[MeasuredDuration] = ()

    @classmethod
    def of_shares(cls, shares: Sequence[Share], *, clustered: bool = False) -> ComparedColumns:
        """The columns for shares, one per group of trials. clustered: whether the trials of a group vary together."""
        clusters = np.arange(len(shares)) if clustered else None
        return cls(
            [group_share.count for group_share in shares], [group_share.total for group_share in shares], clusters
        )

    @property
    def shares(self) -> list[Share]:
        """The share of each cluster."""
        return [Share(int(count), int(total)) for count, total in zip(*self._by_cluster(), strict=True)]

    @property
    def share_interval(self) -> Interval | None:
        """95 % interval of the share, exact or over clusters; None without trials, or with one cluster."""
        counts, totals = self._by_cluster()
        return clopper_pearson(sum(counts), sum(totals)) if self.clusters is None else over_clusters(counts, totals)

    def _by_cluster(self) -> tuple[list[int], list[int]]:
        counts = np.asarray(self.counts)
        totals = np.asarray(self.totals) if np.size(self.totals) else np.ones(len(counts), np.int64)
        if self.clusters is not None:
            counts, totals = cluster_sums(counts, totals, self.clusters)
        return counts.tolist(), totals.tolist()

    @property
    def means(self) -> list[MeasuredDuration]:
        """The mean duration of each cluster, with the mean of its errors."""
        names = range(len(self.times)) if self.clusters is None else self.clusters
        clusters = group_by(zip(names, self.times, strict=True)).values()
        return [
            MeasuredDuration(
                fmean(duration.value_s for duration in durations), fmean(duration.error_s for duration in durations)
            )
            for durations in clusters
        ]


def difference_of(
    kind: MeasureKind, first: ComparedColumns, second: ComparedColumns, *, paired: bool
) -> Difference | None:
    """The first side minus the second; None if too little was measured. paired: whether rows with the same number are
    partners; the clusters are then those of the first.

    Shares: McNemar's exact test with Newcombe's interval, or by clusters; without partners Fisher's exact test. Words
    and rates with partners: the variance of clusters, or exact tests if few units differ. Words without partners:
    Welch's test. Rates without partners: the exact test of two Poisson rates. Durations: the sign test with partners,
    a rank test without.
    """
    match kind:
        case MeasureKind.SHARE if paired:
            return share_difference(first.counts, second.counts, first.clusters)
        case MeasureKind.SHARE:
            return unpaired_share_difference(first.shares, second.shares)
        case MeasureKind.WORDS | MeasureKind.RATE if paired:
            return wer_difference(first.counts, second.counts, first.totals, first.clusters)
        case MeasureKind.WORDS:
            return unpaired_wer_difference(
                (first.counts, first.totals, first.clusters), (second.counts, second.totals, second.clusters)
            )
        case MeasureKind.RATE:
            events, second_events = (int(np.sum(side.counts)) for side in (first, second))
            hours, second_hours = (sum(np.asarray(side.totals).tolist()) for side in (first, second))
            return unpaired_rate_difference(events, hours, second_events, second_hours)
        case MeasureKind.TIME if paired:
            shifts = [
                MeasuredDuration(mean.value_s - other.value_s, mean.error_s + other.error_s)
                for mean, other in zip(first.means, second.means, strict=True)
            ]
            return paired_shift(shifts)
        case MeasureKind.TIME:
            return unpaired_shift(first.means, second.means)


def units_text(kind: MeasureKind, units: Sequence[ComparedUnit]) -> str:
    """The values of one side as text: `5 of 60 = 8.33 %`, `1 in 0.017 h = 60.0/h`."""
    count, total = sum(unit.count for unit in units), sum(unit.total for unit in units)
    value = count / total if total else None
    match kind:
        case MeasureKind.SHARE:
            return share(Share(int(count), int(total)))
        case MeasureKind.WORDS:
            return f"{int(count)} of {numbers.counted(int(total), 'word')} = {numbers.percent(value)}"
        case MeasureKind.RATE:
            rate = numbers.NOTHING if value is None else f"{numbers.number(value)}/h"
            return f"{int(count)} in {numbers.exposure(total)} = {rate}"
        case MeasureKind.TIME:
            return delays(latency_figures([unit.time for unit in units if unit.time is not None])).partition(", p95")[0]
