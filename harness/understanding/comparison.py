"""Differences of two systems on the utterances that both predict, with intervals and p values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import numpy as np

from harness.model.frozen import frozen
from harness.statistics.ratios import MetricDifference, RatioColumns
from harness.understanding.counts import FrameCounts, IntentCounts, MatchCounts, SlotCounts, pooled, total
from harness.understanding.figures import ZERO, ZeroDivision, all_placed
from harness.understanding.scoring import FrameScoring

Ratio = tuple[float, float]
CountsBySystem = tuple[FrameCounts, ...]
"""The counts of an utterance in each system."""


class Metric(StrEnum):
    """Metrics that have an interval. Values are their names in JSON."""

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

    @property
    def in_words(self) -> str:
        """The name in the table of results, such as `slot F1 with values`."""
        return " ".join(_ABBREVIATIONS.get(word, word) for word in self.value.split("_"))


_ABBREVIATIONS = {"emr": "EMR", "f1": "F1", "f1mh": "F1mh", "cer": "CER", "sfa": "SFA", "slu": "SLU"}

SHARES = (Metric.EMR, Metric.SFA, Metric.VALUED_SFA)
"""Metrics for which each utterance is right or wrong."""
_SLOTS = (Metric.SLOT_F1, Metric.F1MH, Metric.CER, Metric.SFA)
_VALUED = (Metric.VALUED_SLOT_F1, Metric.VALUED_F1MH, Metric.VALUED_CER, Metric.VALUED_SFA)


@frozen
class FigureBasis:
    """The choices that the metrics of two systems share.

    - labels: intents of the macro averages.
    - by_place, valued_by_place: whether SFA without and with values compares the places of slots.
    """

    labels: tuple[str, ...]
    by_place: bool
    valued_by_place: bool
    zero: ZeroDivision


def basis(systems: Sequence[Sequence[FrameCounts]], zero: ZeroDivision, labels: Sequence[str] | None) -> FigureBasis:
    """The common choices for some systems, given by the counts of each utterance.

    SFA is by place if every system has all places.
    labels: the declared intents, to which those that occur are added; None for none.
    """
    sums = [total(system) for system in systems]
    names = dict.fromkeys([*(labels or ()), *sorted(name for counts in sums for name in counts.intents.labels)])
    return FigureBasis(
        tuple(names),
        all(all_placed(counts.slots) for counts in sums),
        all(all_placed(counts.valued) for counts in sums),
        zero,
    )


def columns(systems: Sequence[Sequence[FrameCounts]], figure_basis: FigureBasis) -> RatioColumns[Metric]:
    """The terms of all metrics, by utterance. Utterances with the same counts share a row.

    systems: the counts of each utterance, in the same order for each system.
    """
    utterances_by_key: Counter[tuple[object, ...]] = Counter()
    examples: dict[tuple[object, ...], CountsBySystem] = {}
    for counts_by_system in zip(*systems, strict=True):
        key = tuple(value for counts in counts_by_system for value in _count_key(counts))
        utterances_by_key[key] += 1
        examples.setdefault(key, counts_by_system)
    rows = [
        [dict(_ratios(counts, figure_basis)) for counts in counts_by_system] for counts_by_system in examples.values()
    ]
    slices: dict[Metric, slice] = {}
    width = 0
    for metric in Metric:
        metric_width = len(figure_basis.labels) if metric is Metric.MACRO_F1 else 1
        slices[metric] = slice(width, width + metric_width)
        width += metric_width
    table = np.zeros((2, len(systems), len(rows), width))
    for row, system_ratios in enumerate(rows):
        for system, ratios_by_metric in enumerate(system_ratios):
            for metric, ratios in ratios_by_metric.items():
                table[:, system, row, slices[metric]] = np.array(ratios, dtype=np.float64).reshape(-1, 2).T
    numbers = np.array(list(utterances_by_key.values()), dtype=np.int64)
    return RatioColumns(numbers, table[0], table[1], slices, {Metric.MACRO_F1: figure_basis.zero.f1})


def _count_key(counts: FrameCounts) -> Iterator[object]:
    """All values of the counts of an utterance on which a metric depends."""
    yield tuple(counts.intents.judged_overlaps.items())
    yield tuple(counts.intents.labels.items())
    for slots in (counts.slots, counts.valued):
        yield slots.placed
        yield tuple(slots.chunks.items())
        yield tuple(slots.concepts.items())
        yield tuple(slots.multisets.items())
        yield slots.edits
        yield slots.frames
        yield slots.frames_placed
    yield tuple(counts.entities.items())


def _ratios(counts: FrameCounts, figure_basis: FigureBasis) -> Iterator[tuple[Metric, list[Ratio]]]:
    """The terms (numerator, denominator) of each metric for an utterance; several for a macro average."""
    yield from _intent_ratios(counts.intents, figure_basis.zero)
    nothing = MatchCounts()
    yield Metric.MACRO_F1, [_f1_terms(counts.intents.labels.get(name, nothing)) for name in figure_basis.labels]
    yield from zip(_SLOTS, _slot_ratios(counts.slots, by_place=figure_basis.by_place), strict=True)
    yield from zip(_VALUED, _slot_ratios(counts.valued, by_place=figure_basis.valued_by_place), strict=True)
    if not figure_basis.by_place:
        yield Metric.CONCEPT_F1, [_f1_terms(pooled(counts.slots.multisets))]
    yield Metric.VALUED_CONCEPT_F1, [_f1_terms(pooled(counts.valued.multisets))]
    denominator = float(sum(entities.denominator() for entities in counts.entities))
    yield Metric.SLU_F1, [(2 * sum(entities.paired for entities in counts.entities), denominator)]


def _slot_ratios(slots: SlotCounts, *, by_place: bool) -> Iterator[list[Ratio]]:
    yield [_f1_terms(pooled(slots.chunks.values()))]
    yield [_f1_terms(pooled(slots.concepts.values()))]
    yield [(slots.edits.errors, slots.edits.words)]
    frames = slots.frames_placed if by_place else slots.frames
    yield [(frames.count, frames.total)]


def _intent_ratios(intents: IntentCounts, zero: ZeroDivision) -> Iterator[tuple[Metric, list[Ratio]]]:
    utterances = jaccard = f1 = exact = 0.0
    for overlap, count in intents.judged_overlaps.items():
        union, size = overlap.gold + overlap.predicted - overlap.right, overlap.gold + overlap.predicted
        utterances += count
        jaccard += count * (overlap.right / union if union else zero.accuracy)
        f1 += count * (2 * overlap.right / size if size else zero.f1)
        if overlap.right == union:
            exact += count
    yield Metric.ACCURACY, [(jaccard, utterances)]
    yield Metric.EMR, [(exact, utterances)]
    yield Metric.SAMPLES_F1, [(f1, utterances)]
    yield Metric.MICRO_F1, [_f1_terms(pooled(intents.labels.values()))]


def _f1_terms(matched: MatchCounts) -> Ratio:
    return 2 * matched.right, matched.gold + matched.predicted


DRAWS = 1000
"""Number of resamples for intervals."""
NO_DIFFERENCE = MetricDifference(None, None, None, None, None)


@frozen
class FrameComparison:
    """The differences of two systems.

    - first, second: paths of their predictions.
    - utterances: ids that both predict.
    - only_first, only_second, neither: numbers of ids that only the first, only the second, or neither predicts.
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
    """Compares two systems scored against the same gold. Raises ValueError if their rules differ."""
    if first.rule != second.rule:
        raise ValueError(f"predictions were read under different rules: {first.rule} and {second.rule}")
    second_frames = {frame.id: frame for frame in second.frames}
    shared, only_first, only_second, neither = [], 0, 0, 0
    for frame in first.frames:
        other = second_frames.get(frame.id)
        if other is None:
            continue
        if frame.missing and other.missing:
            neither += 1
        elif other.missing:
            only_first += 1
        elif frame.missing:
            only_second += 1
        else:
            shared.append((frame, other))
    first_counts, second_counts = [frame.counts for frame, _ in shared], [other.counts for _, other in shared]
    return FrameComparison(
        first=first.predicted,
        second=second.predicted,
        utterances=tuple(frame.id for frame, _ in shared),
        only_first=only_first,
        only_second=only_second,
        neither=neither,
        differences=differences(first_counts, second_counts, zero, labels, draws=draws, seed=seed),
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
    """The differences by metric, the first minus the second.

    first, second: counts of the same utterances, in the same order.
    EMR and SFA are shares of utterances; the other metrics are ratios (see `RatioColumns.differences`).
    """
    if not first:
        return dict.fromkeys(Metric, NO_DIFFERENCE)
    table = columns([first, second], basis([first, second], zero, labels))
    return table.differences(SHARES, draws=draws, seed=seed)
