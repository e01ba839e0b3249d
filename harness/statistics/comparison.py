"""Is B worse than A? One comparison of shares, word errors, rates per hour and durations, with its words."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import fmean

from harness.base.gathering import gathered
from harness.model import numbers
from harness.model.time import Measured
from harness.statistics.intervals import CONFIDENCE, Interval, Share, latency_figures
from harness.statistics.latency import paired_shift, unpaired_shift
from harness.statistics.significance import Difference
from harness.statistics.text import delays, share
from harness.statistics.word_intervals import (
    FEWEST_UNITS,
    LEAST_QUERIES,
    rates_apart,
    share_difference,
    shares_apart,
    wer_difference,
    wers_apart,
)

LEAST_PAIRED = 0.5
"""Share of the smaller side's units that must have a partner. With fewer, the two are compared unpaired."""
_SAME_HOURS = 0.01
_BY_CHANCE = 1 - CONFIDENCE
_ROUNDING = 1e-9
"""Of events per hour: equal rates over hours that were summed in another order are this much apart at most."""


class Counted(StrEnum):
    """What a measure counts. Differences are shares, errors per word, events per hour, or seconds."""

    SHARE = "share"
    WORDS = "words"
    RATE = "rate"
    TIME = "time"


class DifferenceVerdict(StrEnum):
    """In the order of reports, by the name in JSON.

    UNDECIDED: too little was measured, or only the correction for many tests hides a difference.
    """

    WORSE = "worse"
    BETTER = "better"
    UNDECIDED = "undecided"
    NOT_SHOWN = "no difference shown"

    @property
    def word(self) -> str:
        """For people."""
        return "not shown to differ" if self is DifferenceVerdict.NOT_SHOWN else self.value

    @property
    def differs(self) -> bool:
        return self in (DifferenceVerdict.WORSE, DifferenceVerdict.BETTER)


def verdict_of(
    difference: float | None, p: float | None, *, more_is_better: bool, corrected: float | None = None
) -> DifferenceVerdict:
    """Of the later system less the first. corrected: p for all tests (default: this is the only one)."""
    if difference is None or p is None:
        return DifferenceVerdict.UNDECIDED
    if difference and (p if corrected is None else corrected) < _BY_CHANCE:
        better = (difference > 0) == more_is_better
        return DifferenceVerdict.BETTER if better else DifferenceVerdict.WORSE
    return DifferenceVerdict.UNDECIDED if p < _BY_CHANCE else DifferenceVerdict.NOT_SHOWN


def difference_text(counted: Counted, difference: float | None, interval: Interval | None) -> str:
    """A difference with its 95 % interval: `+8.33 points (+2.10 to +14.60)`."""
    if difference is None or interval is None:
        return numbers.NOTHING
    write, unit = _WRITTEN[counted]
    low, high = (write(end) if math.isfinite(end) else numbers.TOO_FEW for end in interval)
    return f"{write(difference)} {unit} ({low} to {high})"


_WRITTEN: dict[Counted, tuple[Callable[[float], str], str]] = {
    Counted.SHARE: (numbers.points, "points"),
    Counted.WORDS: (numbers.points, "points"),
    Counted.RATE: (lambda value: numbers.signed(value if abs(value) > _ROUNDING else 0.0), "per hour"),
    Counted.TIME: (lambda value: numbers.signed(1000 * value), "ms"),
}


def sentence(first: str, second: str, apart: Difference, counted: Counted, *, more_is_better: bool) -> str:
    """`B is worse than A by 2.10 points (0.40 to 3.80), p = 0.012`. apart: the first less the second.

    Where no difference is shown: `B is not shown to differ from A: B less A +0.30 points (-0.40 to +1.00), p = 0.420`.
    """
    low, high = apart.interval
    value, ends = 0.0 - apart.difference, (0.0 - high, 0.0 - low)
    verdict = verdict_of(value, apart.p, more_is_better=more_is_better)
    if not verdict.differs:
        text = difference_text(counted, value, ends)
        return f"{second} is not shown to differ from {first}: {second} less {first} {text}, {numbers.p_is(apart.p)}"
    if value < 0:
        value, ends = apart.difference, apart.interval
    text = difference_text(counted, value, ends).replace("+", "")
    return f"{second} is {verdict.word} than {first} by {text}, {numbers.p_is(apart.p)}"


@dataclass(frozen=True, slots=True)
class ComparedUnit:
    """What a trial or session says of a measure: so many of so many, or a duration. place: what its partner has too."""

    place: tuple[object, ...]
    cluster: str
    labels: Mapping[str, str] = field(default_factory=dict)
    count: float = 0.0
    of: float = 0.0
    time: Measured | None = None


@dataclass(frozen=True, slots=True)
class UnitComparison:
    """first, second: what was compared of each, as text. difference: second less first. how: by which units."""

    first: str
    second: str
    difference: Difference | None
    how: str


def compared_units(counted: Counted, first: Sequence[ComparedUnit], second: Sequence[ComparedUnit]) -> UnitComparison:
    """Two sides, paired by place where enough units have a partner."""
    pairs = _pairs(first, second)
    if counted is Counted.WORDS:  # against another reference it is another question
        pairs = [(one, other) for one, other in pairs if one.of == other.of]
    paired = bool(pairs) and len(pairs) >= LEAST_PAIRED * min(len(first), len(second))
    if counted is Counted.RATE:  # without a difference its variance is unknown
        paired = len(first) == len(second) == len(pairs) >= FEWEST_UNITS
        paired &= all(math.isclose(one.of, other.of, rel_tol=_SAME_HOURS) for one, other in pairs)
        paired &= any(one.count != other.count for one, other in pairs)
    left = len(first) + len(second) - 2 * len(pairs) if paired else 0
    if paired:
        first, second = [one for one, _ in pairs], [other for _, other in pairs]
    clusters, units = (
        min(len({unit.cluster for unit in side}) for side in (first, second)),
        min(len(first), len(second)),
    )
    # As for a WER: few stimuli say too little of further ones, but their repetitions say something of them.
    single = clusters < LEAST_QUERIES or clusters == units
    number, what = (units, "trials") if single else (clusters, "clusters")
    how = f"{'paired' if paired else 'unpaired'}, {number} {what}"
    if counted is Counted.RATE and not paired:
        how = "Poisson, of all trials"
    apart: Difference | None = None
    if counted is Counted.RATE or number >= LEAST_QUERIES:
        names = [[str(at) if single else unit.cluster for at, unit in enumerate(side)] for side in (first, second)]
        later = _in_clusters(second, names[0 if paired else 1])
        apart = difference_of(counted, later, _in_clusters(first, names[0]), paired=paired)
    how += f", {left} without a partner" if left else ""
    return UnitComparison(units_text(counted, first), units_text(counted, second), apart, how)


def _in_clusters(units: Sequence[ComparedUnit], clusters: Sequence[str]) -> list[ComparedUnit]:
    return [replace(unit, cluster=cluster) for unit, cluster in zip(units, clusters, strict=True)]


def _pairs(first: Sequence[ComparedUnit], second: Sequence[ComparedUnit]) -> list[tuple[ComparedUnit, ComparedUnit]]:
    """Units of the same place, repetitions in their order."""
    waiting = gathered((one.place, one) for one in reversed(first))
    return [(waiting[other.place].pop(), other) for other in second if waiting.get(other.place)]


def difference_of(
    counted: Counted, one: Sequence[ComparedUnit], other: Sequence[ComparedUnit], *, paired: bool
) -> Difference | None:
    """One side less the other; None of too little. paired: units of the same row are partners, of one cluster."""
    counts, others = ([unit.count for unit in side] for side in (one, other))
    among, of = ([unit.of for unit in side] for side in (one, other))
    clusters, theirs = ([unit.cluster for unit in side] for side in (one, other))
    match counted:
        case Counted.SHARE if paired:
            return share_difference(counts, others, None if len(set(clusters)) == len(clusters) else clusters)
        case Counted.SHARE:
            return shares_apart(_by_cluster(one), _by_cluster(other))
        case Counted.WORDS | Counted.RATE if paired:
            return wer_difference(counts, others, of, clusters)
        case Counted.WORDS:
            return wers_apart((counts, among, clusters), (others, of, theirs))
        case Counted.RATE:
            return rates_apart(int(sum(counts)), sum(among), int(sum(others)), sum(of))
        case Counted.TIME:
            after, before = _means(one), _means(other)
            if not paired:
                return unpaired_shift(list(after.values()), list(before.values()))
            both = [(after[cluster], time) for cluster, time in before.items()]
            return paired_shift([Measured(a.value_s - b.value_s, a.error_s + b.error_s) for a, b in both])


def _by_cluster(units: Sequence[ComparedUnit]) -> list[Share]:
    sums: dict[str, Share] = defaultdict(Share)
    for unit in units:
        sums[unit.cluster] += Share(int(unit.count), int(unit.of))
    return list(sums.values())


def _means(units: Sequence[ComparedUnit]) -> dict[str, Measured]:
    """The mean duration of each cluster, with the mean of its errors."""
    times: dict[str, list[Measured]] = defaultdict(list)
    for unit in units:
        times[unit.cluster] += [unit.time] if unit.time is not None else []
    return {name: Measured(fmean(t.value_s for t in of), fmean(t.error_s for t in of)) for name, of in times.items()}


def units_text(counted: Counted, units: Sequence[ComparedUnit]) -> str:
    """What was measured on one side: `5 of 60 = 8.33 %`, `1 in 0.017 h = 60.0/h`."""
    count, among = sum(unit.count for unit in units), sum(unit.of for unit in units)
    value = count / among if among else None
    match counted:
        case Counted.SHARE:
            return share(Share(int(count), int(among)))
        case Counted.WORDS:
            return f"{int(count)} of {int(among)} words = {numbers.percent(value)}"
        case Counted.RATE:
            rate = numbers.NOTHING if value is None else f"{numbers.number(value)}/h"
            return f"{int(count)} in {numbers.exposure(among)} = {rate}"
        case Counted.TIME:
            return delays(latency_figures([unit.time for unit in units if unit.time is not None])).partition(", p95")[0]
