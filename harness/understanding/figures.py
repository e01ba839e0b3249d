"""Figures of intents and slots, from their counts, with intervals. A figure over nothing is None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import NamedTuple, TypeVar

from harness.statistics.intervals import CONFIDENCE, Share, wilson
from harness.understanding.counts import FrameCounts, IntentCounts, Matched, SlotCounts, pooled


@dataclass(frozen=True, slots=True)
class ZeroDivision:
    """precision: where nothing is predicted. recall: where nothing is gold. f1, accuracy: where neither is. 0–1 each.

    F1 is 2 · right / (gold + predicted), so that a label that is never predicted has 0, whatever its precision is.
    """

    name: str = "zero"
    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    accuracy: float = 0.0

    def __post_init__(self) -> None:
        for value in (self.precision, self.recall, self.f1, self.accuracy):
            if not 0 <= value <= 1:
                raise ValueError(f"0/0 cannot be {value}: it is between 0 and 1")


ZERO = ZeroDivision()
SEED = ZeroDivision("seed", precision=1.0)
ONE = ZeroDivision("one", 1.0, 1.0, 1.0, 1.0)
PRESETS = {one.name: one for one in (ZERO, SEED, ONE)}
"""By name. zero: the default. seed: as the table of the seed's triad reads. one: scikit-learn's zero_division=1."""


@dataclass(frozen=True, slots=True)
class Averages:
    """0–1; None over nothing."""

    precision: float | None = None
    recall: float | None = None
    f1: float | None = None


@dataclass(frozen=True, slots=True)
class IntentFigures:
    """accuracy: Godbole & Sarawagi's. exact: EMR. samples, macro, micro: averaged over utterances, labels, pooled.

    labels: those that macro is over, declared ones first; declared: whether they are all declared ones, or those seen.
    never_predicted: of these. empty: utterances with no predicted intent; empty_rightly: of them, those without any.
    """

    utterances: int
    accuracy: float | None
    exact: Share
    samples: Averages
    macro: Averages
    micro: Averages
    labels: tuple[tuple[str, Matched, Averages], ...]
    declared: bool
    never_predicted: tuple[str, ...]
    empty: int
    empty_rightly: int
    confusions: tuple[tuple[tuple[str, str], int], ...]


@dataclass(frozen=True, slots=True)
class SlotFigures:
    """micro: slot F1 over chunks in their places. concept_sets: F1mh. cer: concept errors per gold concept.

    frames: SFA, over places where every utterance has them (by_place), else over lists of concepts. unplaced:
    utterances whose slots have no places, or places in other words: they count in no slot F1.
    """

    utterances: int
    unplaced: int
    micro: Averages
    per_concept: tuple[tuple[str, Matched, Averages], ...]
    concept_sets: Averages
    per_concept_set: tuple[tuple[str, Matched, Averages], ...]
    cer: float | None
    frames: Share
    by_place: bool


@dataclass(frozen=True, slots=True)
class FrameFigures:
    """valued: of slots with their values; None where none were given. zero: what 0/0 was."""

    utterances: int
    intents: IntentFigures
    slots: SlotFigures
    valued: SlotFigures | None
    zero: ZeroDivision


def figures(counts: FrameCounts, zero: ZeroDivision = ZERO, labels: Sequence[str] | None = None) -> FrameFigures:
    """labels: all declared ones, which macro is then over; a label that is seen and not declared joins them.

    Every sum is exact, so that it does not depend on the order in which shards were added.
    """
    return FrameFigures(
        counts.utterances,
        intent_figures(counts.intents, zero, labels),
        slot_figures(counts.slots, zero),
        slot_figures(counts.valued, zero) if counts.valued.utterances else None,
        zero,
    )


def intent_figures(counts: IntentCounts, zero: ZeroDivision, labels: Sequence[str] | None) -> IntentFigures:
    names = [*dict.fromkeys(labels or ()), *sorted(set(counts.labels) - set(labels or ()))]
    by_label = tuple((name, one, averages(one, zero)) for name in names for one in [counts.labels.get(name, Matched())])
    overlaps = counts.overlaps
    return IntentFigures(
        counts.utterances,
        _mean(overlaps, lambda one: _over(one.right, one.gold + one.predicted - one.right, zero.accuracy)),
        counts.exact,
        _averaged(overlaps, zero),
        _averaged([one for _, one, _ in by_label], zero),
        averages(pooled(counts.labels.values()), zero, nothing=True),
        by_label,
        labels is not None,
        tuple(name for name, one, _ in by_label if not one.predicted),
        counts.empty,
        counts.empty_rightly,
        tuple(sorted(counts.confusions.items(), key=lambda item: (-item[1], item[0]))),
    )


def slot_figures(counts: SlotCounts, zero: ZeroDivision) -> SlotFigures:
    by_place = 0 < counts.placed == counts.utterances
    return SlotFigures(
        counts.utterances,
        counts.utterances - counts.placed,
        averages(pooled(counts.chunks.values()), zero, nothing=True),
        _by_concept(counts.chunks, zero),
        averages(pooled(counts.concepts.values()), zero, nothing=True),
        _by_concept(counts.concepts, zero),
        counts.edits.wer,
        counts.frames_placed if by_place else counts.frames,
        by_place,
    )


def averages(one: Matched, zero: ZeroDivision, *, nothing: bool = False) -> Averages:
    """Precision, recall and F1 of some counts. nothing: None for all of them over neither gold nor predicted."""
    if nothing and not one.gold and not one.predicted:
        return Averages()
    return Averages(*(float(figure(one, zero)) for figure in (_precision, _recall, _f1)))


def _by_concept(counts: Mapping[str, Matched], zero: ZeroDivision) -> tuple[tuple[str, Matched, Averages], ...]:
    return tuple((name, one, averages(one, zero)) for name, one in sorted(counts.items()))


def _averaged(counts: Mapping[Matched, int] | Iterable[Matched], zero: ZeroDivision) -> Averages:
    weighed = counts if isinstance(counts, Mapping) else Counter(counts)
    return Averages(*(_mean(weighed, partial(figure, zero=zero)) for figure in (_precision, _recall, _f1)))


def _mean(counts: Mapping[Matched, int], figure: Callable[[Matched], Fraction]) -> float | None:
    number = sum(counts.values())
    return float(sum((figure(one) * n for one, n in counts.items()), Fraction(0)) / number) if number else None


def _over(count: int, of: int, zero: float) -> Fraction:
    return Fraction(count, of) if of else Fraction(zero)


def _precision(one: Matched, zero: ZeroDivision) -> Fraction:
    return _over(one.right, one.predicted, zero.precision)


def _recall(one: Matched, zero: ZeroDivision) -> Fraction:
    return _over(one.right, one.gold, zero.recall)


def _f1(one: Matched, zero: ZeroDivision) -> Fraction:
    return _over(2 * one.right, one.gold + one.predicted, zero.f1)


Interval = tuple[float, float]
Edits = tuple[int, int]
"""Concept errors and gold concepts of an utterance."""
Row = TypeVar("Row", bound=tuple[int, ...])

DRAWS = 2000
_SEED = 20221
_AT_ONCE = 1 << 22
"""Numbers that are drawn together."""


class Spans(NamedTuple):
    """The intervals of one way of averaging."""

    precision: Interval | None
    recall: Interval | None
    f1: Interval | None


def accuracy_interval(overlaps: Mapping[Matched, int], zero: ZeroDivision) -> Interval | None:
    """Of intent accuracy. overlaps: as in `IntentCounts`."""

    def jaccard(one: Matched) -> float:
        either = one.gold + one.predicted - one.right
        return one.right / either if either else zero.accuracy

    return ratio_interval(overlaps, jaccard, lambda _: 1.0)


def samples_spans(overlaps: Mapping[Matched, int], zero: ZeroDivision) -> Spans:
    """Of means over utterances. overlaps: as in `IntentCounts`."""

    def share(part: float, whole: int, nothing: float) -> float:
        return part / whole if whole else nothing

    return Spans(
        ratio_interval(overlaps, lambda one: share(one.right, one.predicted, zero.precision), lambda _: 1.0),
        ratio_interval(overlaps, lambda one: share(one.right, one.gold, zero.recall), lambda _: 1.0),
        ratio_interval(overlaps, lambda one: share(2 * one.right, one.gold + one.predicted, zero.f1), lambda _: 1.0),
    )


def pooled_spans(counts: Mapping[Matched, int]) -> Spans:
    """Of what is pooled. counts: right, gold and predicted ones of an utterance → utterances."""
    return Spans(
        ratio_interval(counts, lambda one: one.right, lambda one: one.predicted),
        ratio_interval(counts, lambda one: one.right, lambda one: one.gold),
        pooled_f1_interval(counts),
    )


def pooled_f1_interval(counts: Mapping[Matched, int]) -> Interval | None:
    """Of F1 alone, as in `pooled_spans`."""
    return ratio_interval(counts, lambda one: 2 * one.right, lambda one: one.gold + one.predicted)


def cer_interval(edits: Mapping[Edits, int]) -> Interval | None:
    """Of the concept error rate, which may be above 1."""
    return ratio_interval(edits, lambda one: one[0], lambda one: one[1], None)


def ratio_interval(
    counts: Mapping[Row, int], part: Callable[[Row], float], whole: Callable[[Row], float], most: float | None = 1.0
) -> Interval | None:
    """95 % percentile interval of Σ part / Σ whole over utterances drawn with replacement; None of fewer than two.

    counts: row → utterances. part, whole: what a row adds above and below. Utterances with nothing below, and draws
    of them alone, do not count. Where the figure is 0, or the most it can be, nothing varies: utterances stand for
    what is counted, each right or wrong as a whole. Always the same for the same counts.
    Source: Efron & Tibshirani, An Introduction to the Bootstrap, 13.
    """
    import numpy as np  # here, since a verb's help needs none

    rows = sorted(counts)
    numbers = np.array([counts[row] for row in rows], np.int64)
    utterances = int(numbers.sum())
    above = np.array([part(row) for row in rows])
    below = np.array([whole(row) for row in rows])
    total = float(below @ numbers)
    heavy = int(numbers[below > 0].sum())
    if heavy < 2:
        return None
    value = float(above @ numbers) / total
    if value in (0.0, most):
        return wilson(heavy if value else 0, heavy)
    draw = np.random.default_rng(_SEED)
    found = []
    at_once = max(1, _AT_ONCE // len(rows))
    for begin in range(0, DRAWS, at_once):
        drawn = draw.multinomial(utterances, numbers / utterances, size=min(at_once, DRAWS - begin))
        sums = drawn @ below
        found.append((drawn @ above)[sums > 0] / sums[sums > 0])
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(np.concatenate(found), [tail, 100 - tail])
    return (float(low), float(high)) if low < high else None
