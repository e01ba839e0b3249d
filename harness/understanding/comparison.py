"""Differences of two systems on the utterances that both predict, with intervals and p values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from harness.statistics.intervals import CONFIDENCE
from harness.statistics.significance import Discordance
from harness.understanding.counts import FrameCounts, IntentCounts, Matched, SlotCounts, pooled, total
from harness.understanding.figures import ZERO, Interval, ZeroDivision
from harness.understanding.scoring import FrameScoring

Numbers = NDArray[np.float64]
Ratio = tuple[float, float]
Pair = tuple[FrameCounts, ...]
_AT_ONCE = 4_000_000
"""Numbers that are drawn and held at once."""


class Metric(StrEnum):
    """Metrics that have an interval, by their names in tables and JSON."""

    ACCURACY = "intent_accuracy"
    EMR = "emr"
    SAMPLES_F1 = "intent_f1_samples"
    MACRO_F1 = "intent_f1_macro"
    MICRO_F1 = "intent_f1_micro"
    SLOT_F1 = "slot_f1"
    F1MH = "f1mh"
    CER = "cer"
    SFA = "sfa"
    VALUED_SLOT_F1 = "slot_f1_with_values"
    VALUED_F1MH = "f1mh_with_values"
    VALUED_CER = "cer_with_values"
    VALUED_SFA = "sfa_with_values"
    CONCEPT_F1 = "concept_f1"
    VALUED_CONCEPT_F1 = "concept_f1_with_values"
    SLU_F1 = "slu_f1"


SHARES = (Metric.EMR, Metric.SFA, Metric.VALUED_SFA)
"""Metrics for which each utterance is right or wrong."""
_SLOTS = (Metric.SLOT_F1, Metric.F1MH, Metric.CER, Metric.SFA)
_VALUED = (Metric.VALUED_SLOT_F1, Metric.VALUED_F1MH, Metric.VALUED_CER, Metric.VALUED_SFA)


@dataclass(frozen=True, slots=True)
class FigureBasis:
    """What the metrics of two systems share. labels: for macro averages. by_place, valued_by_place: for SFA."""

    labels: tuple[str, ...]
    by_place: bool
    valued_by_place: bool
    zero: ZeroDivision


def basis(systems: Sequence[Sequence[FrameCounts]], zero: ZeroDivision, labels: Sequence[str] | None) -> FigureBasis:
    """labels: the declared ones, to which those seen are added. SFA is by place if every system has all places."""
    sums = [total(one) for one in systems]
    seen = dict.fromkeys([*(labels or ()), *sorted(name for one in sums for name in one.intents.labels)])
    return FigureBasis(
        tuple(seen), all(_all_placed(one.slots) for one in sums), all(_all_placed(one.valued) for one in sums), zero
    )


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows of utterances whose counts are equal in every system. number: utterances per row.

    tops, bottoms: numerators and denominators, shape (systems, rows, ratios). of: the ratios of each metric.
    """

    number: NDArray[np.int64]
    tops: Numbers
    bottoms: Numbers
    of: dict[Metric, slice]
    zero: ZeroDivision

    @property
    def utterances(self) -> int:
        return int(self.number.sum())

    def found(self) -> dict[Metric, Numbers]:
        """The metrics of all utterances, shape (systems,). NaN over nothing."""
        weights = self.number.astype(np.float64)[None]
        return {figure: of[:, 0] for figure, of in self._figures([weights] * len(self.tops)).items()}

    def resampled(self, draws: int, seed: int) -> dict[Metric, Numbers]:
        """The metrics of samples with replacement, the same for every system. Shape (systems, draws)."""
        rng = np.random.default_rng(seed)
        shares = self.number / self.utterances

        def drawn(size: int) -> list[Numbers]:
            return [rng.multinomial(self.utterances, shares, size).astype(np.float64)] * len(self.tops)

        return self._drawn(draws, drawn)

    def swapped(self, draws: int, seed: int) -> dict[Metric, Numbers]:
        """The metrics of two systems whose frames are swapped at random within utterances. Shape (2, draws)."""
        rng = np.random.default_rng(seed)

        def drawn(size: int) -> list[Numbers]:
            kept = rng.binomial(self.number, 0.5, (size, len(self.number))).astype(np.float64)
            return [kept, self.number - kept]

        # Each row occurs twice: unchanged and swapped.
        tops, bottoms = (np.concatenate([side, side[::-1]], 1) for side in (self.tops, self.bottoms))
        both = Columns(np.tile(self.number, 2), tops, bottoms, self.of, self.zero)
        return both._drawn(draws, lambda size: [np.concatenate(drawn(size), 1)] * 2)

    def _drawn(self, draws: int, drawn: Callable[[int], list[Numbers]]) -> dict[Metric, Numbers]:
        at_once = max(1, _AT_ONCE // max(1, len(self.number)))
        sizes = [min(at_once, draws - begin) for begin in range(0, draws, at_once)]
        blocks = [self._figures(drawn(size)) for size in sizes]
        return {figure: np.concatenate([one[figure] for one in blocks], 1) for figure in self.of}

    def _figures(self, weights: list[Numbers]) -> dict[Metric, Numbers]:
        """weights: for each system, shape (samples, rows). Metrics of shape (systems, samples)."""
        tops = np.stack([weight @ top for weight, top in zip(weights, self.tops, strict=True)])
        bottoms = np.stack([weight @ bottom for weight, bottom in zip(weights, self.bottoms, strict=True)])
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.where(bottoms > 0, tops / bottoms, np.nan)
        macro = self.of[Metric.MACRO_F1]
        of_labels = ratios[..., macro]
        ratios[..., macro] = np.where(np.isnan(of_labels), self.zero.f1, of_labels)
        return {
            figure: ratios[..., of].mean(axis=-1) if of.stop > of.start else np.full(ratios.shape[:2], np.nan)
            for figure, of in self.of.items()
        }


def columns(systems: Sequence[Sequence[FrameCounts]], on: FigureBasis) -> Columns:
    """systems: the counts of each utterance, in the same order for each system."""
    number: Counter[tuple[object, ...]] = Counter()
    first: dict[tuple[object, ...], Pair] = {}
    for pair in zip(*systems, strict=True):
        key = tuple(part for one in pair for part in _key(one))
        number[key] += 1
        first.setdefault(key, pair)
    rows = [[dict(_ratios(one, on)) for one in pair] for pair in first.values()]
    of: dict[Metric, slice] = {}
    width = 0
    for figure in Metric:
        more = len(on.labels) if figure is Metric.MACRO_F1 else 1
        of[figure] = slice(width, width + more)
        width += more
    table = np.zeros((2, len(systems), len(rows), width))
    for row, pair_of in enumerate(rows):
        for system, ratios in enumerate(pair_of):
            for figure, found in ratios.items():
                table[:, system, row, of[figure]] = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return Columns(np.array(list(number.values()), dtype=np.int64), table[0], table[1], of, on.zero)


def _key(one: FrameCounts) -> Iterator[object]:
    yield tuple(one.intents.overlaps.items())
    yield tuple(one.intents.labels.items())
    for slots in (one.slots, one.valued):
        yield slots.placed
        yield tuple(slots.chunks.items())
        yield tuple(slots.concepts.items())
        yield tuple(slots.multisets.items())
        yield slots.edits
        yield slots.frames
        yield slots.frames_placed
    yield tuple(one.entities.items())


def _ratios(one: FrameCounts, on: FigureBasis) -> Iterator[tuple[Metric, list[Ratio]]]:
    yield from _intent_ratios(one.intents, on.zero)
    none = Matched()
    yield Metric.MACRO_F1, [_f1(one.intents.labels.get(name, none)) for name in on.labels]
    yield from zip(_SLOTS, _slot_ratios(one.slots, by_place=on.by_place), strict=True)
    yield from zip(_VALUED, _slot_ratios(one.valued, by_place=on.valued_by_place), strict=True)
    if not on.by_place:
        yield Metric.CONCEPT_F1, [_f1(pooled(one.slots.multisets))]
    yield Metric.VALUED_CONCEPT_F1, [_f1(pooled(one.valued.multisets))]
    whole = float(sum(of.whole() for of in one.entities))
    yield Metric.SLU_F1, [(2 * sum(of.paired for of in one.entities), whole)]


def _slot_ratios(slots: SlotCounts, *, by_place: bool) -> Iterator[list[Ratio]]:
    yield [_f1(pooled(slots.chunks.values()))]
    yield [_f1(pooled(slots.concepts.values()))]
    yield [(slots.edits.errors, slots.edits.words)]
    frames = slots.frames_placed if by_place else slots.frames
    yield [(frames.count, frames.total)]


def _intent_ratios(intents: IntentCounts, zero: ZeroDivision) -> Iterator[tuple[Metric, list[Ratio]]]:
    number = jaccard = f1 = exact = 0.0
    for one, n in intents.overlaps.items():
        either, both = one.gold + one.predicted - one.right, one.gold + one.predicted
        number += n
        jaccard += n * (one.right / either if either else zero.accuracy)
        f1 += n * (2 * one.right / both if both else zero.f1)
        exact += n * (one.right == either)
    yield Metric.ACCURACY, [(jaccard, number)]
    yield Metric.EMR, [(exact, number)]
    yield Metric.SAMPLES_F1, [(f1, number)]
    yield Metric.MICRO_F1, [_f1(pooled(intents.labels.values()))]


def _f1(one: Matched) -> Ratio:
    return 2 * one.right, one.gold + one.predicted


def _all_placed(slots: SlotCounts) -> bool:
    return 0 < slots.placed == slots.utterances


DRAWS = 1000
LEAST_UTTERANCES = 10
"""With fewer, there is no interval."""


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """A metric of the first system minus that of the second. p: two-sided probability of such a difference by chance.

    All are None over nothing. The interval is also None over few utterances, and if all samples are equal.
    """

    first: float | None
    second: float | None
    difference: float | None
    interval: Interval | None
    p: float | None


NO_DIFFERENCE = MetricDifference(None, None, None, None, None)


@dataclass(frozen=True, slots=True)
class FrameComparison:
    """first, second: paths of predictions. utterances: ids that both predict.

    only_first, only_second, neither: numbers of the other ids.
    """

    first: str
    second: str
    utterances: tuple[str, ...]
    only_first: int
    only_second: int
    neither: int
    differences: Mapping[Metric, MetricDifference]


def compare(
    first: FrameScoring,
    second: FrameScoring,
    zero: ZeroDivision = ZERO,
    labels: Sequence[str] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> FrameComparison:
    """Compares two systems scored against the same gold. ValueError if their rules differ."""
    if first.rule != second.rule:
        raise ValueError(f"frames were read by {first.rule} and by {second.rule}")
    theirs = {frame.id: frame for frame in second.frames}
    shared, only_first, only_second, neither = [], 0, 0, 0
    for frame in first.frames:
        other = theirs.get(frame.id)
        if other is None:
            continue
        if not frame.missing and not other.missing:
            shared.append((frame, other))
        only_first += not frame.missing and other.missing
        only_second += frame.missing and not other.missing
        neither += frame.missing and other.missing
    one, two = [frame.counts for frame, _ in shared], [other.counts for _, other in shared]
    return FrameComparison(
        first.predicted,
        second.predicted,
        tuple(frame.id for frame, _ in shared),
        only_first,
        only_second,
        neither,
        differences(one, two, zero, labels, draws=draws, seed=seed),
    )


def differences(
    first: Sequence[FrameCounts],
    second: Sequence[FrameCounts],
    zero: ZeroDivision = ZERO,
    labels: Sequence[str] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Mapping[Metric, MetricDifference]:
    """Differences by metric. first, second: counts of the same utterances, in the same order.

    EMR and SFA: Newcombe's interval of paired shares, McNemar's exact p.
    Other metrics: the middle 95 % of the difference over bootstrap samples, the same for both. Their p comes from
    swapping the two within utterances at random.
    Sources: Efron & Tibshirani, An Introduction to the Bootstrap, 13 (the interval); Noreen, Computer-Intensive Methods
    for Testing Hypotheses, 1989 (approximate randomisation).
    """
    if not first:
        return dict.fromkeys(Metric, NO_DIFFERENCE)
    made = columns([first, second], basis([first, second], zero, labels))
    found = made.found()
    drawn, swapped = made.resampled(draws, seed), made.swapped(draws, seed + 1)
    differing: dict[Metric, MetricDifference] = {}
    for figure in Metric:
        one, two = (None if np.isnan(value) else float(value) for value in found[figure])
        if one is None or two is None:
            differing[figure] = MetricDifference(one, two, None, None, None)
        elif figure in SHARES:
            differing[figure] = _of_shares(made, figure, one, two)
        else:
            apart = drawn[figure][0] - drawn[figure][1]
            by_chance = swapped[figure][0] - swapped[figure][1]
            far = np.count_nonzero(np.abs(by_chance) >= abs(one - two) - 1e-12)
            p = (1 + int(far)) / (1 + draws)
            differing[figure] = MetricDifference(
                one, two, one - two, _middle(apart) if len(first) >= LEAST_UTTERANCES else None, p
            )
    return differing


def _of_shares(made: Columns, figure: Metric, one: float, two: float) -> MetricDifference:
    at = made.of[figure].start
    # An utterance counts only if it counts for both systems.
    counted = (made.bottoms[0, :, at] > 0) & (made.bottoms[1, :, at] > 0)
    first, second = made.tops[0, :, at] > 0, made.tops[1, :, at] > 0

    def number(rows: NDArray[np.bool_]) -> int:
        return int(made.number[rows & counted].sum())

    counts = Discordance(
        both=number(first & second),
        only_first=number(first & ~second),
        only_second=number(~first & second),
        neither=number(~first & ~second),
    )
    apart = counts.apart
    if apart is None:
        return MetricDifference(one, two, None, None, None)
    return MetricDifference(one, two, apart.difference, apart.interval, apart.p)


def _middle(values: Numbers) -> Interval | None:
    """The middle 95 % of the samples, without those over nothing. None if all samples are equal."""
    held = values[~np.isnan(values)]
    if not held.size or held.min() == held.max():
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(held, [tail, 1 - tail])
    return float(low), float(high)
