"""Figures of intents and slots, from their counts. A figure over nothing is None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from harness.statistics.intervals import Share
from harness.understanding.arithmetic.counts import FrameCounts, IntentCounts, Matched, SlotCounts, pooled
from harness.understanding.arithmetic.zero_division import ZERO, ZeroDivision


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
