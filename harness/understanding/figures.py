"""Metrics with intervals, from counts. A metric over nothing is None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TypeVar

from harness.model.frozen import frozen
from harness.statistics.intervals import CONFIDENCE, Interval, Share, wilson
from harness.understanding.counts import FrameCounts, IntentCounts, MatchCounts, SlotCounts, pooled
from harness.understanding.entities import EntityCounts


@frozen
class ZeroDivision:
    """The values that stand for 0/0, from 0 to 1.

    - precision: if nothing is predicted.
    - recall: if gold has nothing.
    - f1, accuracy: if both. F1 is 2 · right / (gold + predicted), so a label of gold that is never predicted has F1 0.
    """

    name: str = "zero"
    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    accuracy: float = 0.0

    def __post_init__(self) -> None:
        for value in (self.precision, self.recall, self.f1, self.accuracy):
            if not 0 <= value <= 1:
                raise ValueError(f"the value of 0/0 must be from 0 to 1, not {value}")


ZERO = ZeroDivision()
SEED = ZeroDivision("seed", precision=1.0)
ONE = ZeroDivision("one", 1.0, 1.0, 1.0, 1.0)
PRESETS = {preset.name: preset for preset in (ZERO, SEED, ONE)}
"""Presets by name: the default (zero), as in a table of the MEDIA paper (seed), as scikit-learn's zero_division=1."""


@frozen
class Averages:
    """Precision, recall and F1, 0–1; None over nothing."""

    precision: float | None = None
    recall: float | None = None
    f1: float | None = None


@frozen
class IntentFigures:
    """Metrics of intents."""

    utterances: int
    """Number of utterances with annotated intents."""
    accuracy: float | None
    """Godbole & Sarawagi's accuracy."""
    exact: Share
    """The exact match ratio (EMR)."""
    exact_interval: Interval | None
    """Its interval."""
    samples: Averages
    """Averages over utterances."""
    macro: Averages
    """Averages over labels."""
    weighted: Averages
    """Averages over labels, each weighted by its frequency in gold."""
    micro: Averages
    """From the sums over all labels."""
    labels: tuple[tuple[str, MatchCounts, Averages], ...]
    """The labels of the macro averages, declared ones first, each with its counts and averages."""
    declared: bool
    never_predicted: tuple[str, ...]
    empty: int
    """Number of utterances without a predicted intent."""
    empty_rightly: int
    """Number of utterances that have a prediction, and an intent neither in it nor in gold."""
    confusions: tuple[tuple[tuple[str, str], int], ...]
    """((gold, predicted), number of utterances), of those with one intent on each side; the most frequent first."""


@frozen
class SlotFigures:
    """Metrics of slots.

    - utterances: number of utterances with annotated slots.
    - unplaced: number of these whose slots have no places, or whose words differ. Slot F1 leaves them out.
    - micro: slot F1 over slots in their places.
    - weighted: the same over concepts, each weighted by its frequency in gold.
    - per_concept: the same for each concept.
    - concept_sets: F1mh.
    - per_concept_set: the same for each concept.
    - cer: concept errors per gold concept.
    - frames, frames_interval: SFA, and its interval.
    - by_place: whether SFA compares places, since every utterance has them; else it compares lists of concepts.
    """

    utterances: int
    unplaced: int
    micro: Averages
    weighted: Averages
    per_concept: tuple[tuple[str, MatchCounts, Averages], ...]
    concept_sets: Averages
    per_concept_set: tuple[tuple[str, MatchCounts, Averages], ...]
    cer: float | None
    frames: Share
    frames_interval: Interval | None
    by_place: bool


@frozen
class FrameFigures:
    """The metrics of intents and slots. valued: metrics of slots compared with their values; None without values."""

    utterances: int
    intents: IntentFigures
    slots: SlotFigures
    valued: SlotFigures | None


def frame_figures(
    counts: FrameCounts,
    zero: ZeroDivision = ZERO,
    labels: Sequence[str] | None = None,
    whole: FrameCounts | None = None,
) -> FrameFigures:
    """The metrics of some counts. Every sum is exact, so the order in which shards were added does not matter.

    - labels: the declared intents, for macro averages, to which those that occur are added.
    - whole: if these are the counts of a group, those of all utterances, which decide whether SFA compares places.
    """
    clusters, whole = counts.clusters, whole or counts
    valued_clusters = [cluster.valued for cluster in clusters]
    valued = slot_figures(counts.valued, zero, valued_clusters, by_place=all_placed(whole.valued))
    return FrameFigures(
        counts.utterances,
        intent_figures(counts.intents, zero, labels, [cluster.intents for cluster in clusters]),
        slot_figures(counts.slots, zero, [cluster.slots for cluster in clusters], by_place=all_placed(whole.slots)),
        valued if counts.valued.utterances else None,
    )


def intent_figures(
    counts: IntentCounts, zero: ZeroDivision, labels: Sequence[str] | None, clusters: Sequence[IntentCounts] = ()
) -> IntentFigures:
    """The metrics of intents.

    - labels: as for `frame_figures`.
    - clusters: as for `ratio_interval`.
    """
    names = [*dict.fromkeys(labels or ()), *sorted(set(counts.labels) - set(labels or ()))]
    matches = [counts.labels.get(name, MatchCounts()) for name in names]
    by_label = tuple((name, matched, averages(matched, zero)) for name, matched in zip(names, matches, strict=True))
    overlaps = counts.judged_overlaps
    return IntentFigures(
        utterances=counts.utterances,
        accuracy=_mean(overlaps, partial(_jaccard, zero=zero)),
        exact=counts.exact,
        exact_interval=share_interval(counts.exact, [cluster.exact for cluster in clusters]),
        samples=_mean_averages(overlaps, zero),
        macro=_mean_averages(matches, zero),
        weighted=_weighted_averages(matches, zero),
        micro=averages(pooled(counts.labels.values()), zero, none_if_empty=True),
        labels=by_label,
        declared=labels is not None,
        never_predicted=tuple(name for name, matched, _ in by_label if not matched.predicted),
        empty=counts.empty,
        empty_rightly=counts.empty_rightly,
        confusions=tuple(sorted(counts.confusions.items(), key=lambda item: (-item[1], item[0]))),
    )


def scope_figures(counts: IntentCounts, label: str) -> tuple[Share, Share, Share]:
    """How well a system recognises utterances that are out of scope.

    An utterance is out of scope if `label` is its only intent; for the label "", if it has no intent. The first share
    is that of such utterances that the system recognises. The second is that of all others that it wrongly calls out of
    scope, the third the EMR of these others.
    """
    if label:
        label_counts = counts.labels.get(label, MatchCounts())
        outside, hits, claims = label_counts.gold, label_counts.right, label_counts.predicted
        exact_outside = counts.confusions.get((label, label), 0)
    else:
        outside = sum(n for overlap, n in counts.overlaps.items() if not overlap.gold)
        hits = exact_outside = counts.empty_rightly
        claims = counts.empty - counts.unpredicted
    inside = counts.utterances - outside
    return Share(hits, outside), Share(claims - hits, inside), Share(counts.exact.count - exact_outside, inside)


def all_placed(slots: SlotCounts) -> bool:
    """Whether every utterance has places of its slots, so that SFA compares them."""
    return 0 < slots.placed == slots.utterances


def slot_figures(
    counts: SlotCounts, zero: ZeroDivision, clusters: Sequence[SlotCounts], *, by_place: bool
) -> SlotFigures:
    """The metrics of slots.

    - clusters: as for `ratio_interval`.
    - by_place: whether SFA compares places.
    """
    frames, *cluster_frames = (slots.frames_placed if by_place else slots.frames for slots in (counts, *clusters))
    return SlotFigures(
        utterances=counts.utterances,
        unplaced=counts.utterances - counts.placed,
        micro=averages(pooled(counts.chunks.values()), zero, none_if_empty=True),
        weighted=_weighted_averages(counts.chunks.values(), zero),
        per_concept=_by_concept(counts.chunks, zero),
        concept_sets=averages(pooled(counts.concepts.values()), zero, none_if_empty=True),
        per_concept_set=_by_concept(counts.concepts, zero),
        cer=counts.edits.wer,
        frames=frames,
        frames_interval=share_interval(frames, cluster_frames),
        by_place=by_place,
    )


def averages(matched: MatchCounts, zero: ZeroDivision, *, none_if_empty: bool = False) -> Averages:
    """Precision, recall and F1 of some counts.

    none_if_empty: whether all are None if there are neither gold nor predictions; else the values for 0/0.
    """
    if none_if_empty and not matched.gold and not matched.predicted:
        return Averages()
    return Averages(*(float(figure(matched, zero)) for figure in (_precision, _recall, _f1)))


def _by_concept(counts: Mapping[str, MatchCounts], zero: ZeroDivision) -> tuple[tuple[str, MatchCounts, Averages], ...]:
    return tuple((name, matched, averages(matched, zero)) for name, matched in sorted(counts.items()))


def _mean_averages(counts: Mapping[MatchCounts, int] | Iterable[MatchCounts], zero: ZeroDivision) -> Averages:
    weights = counts if isinstance(counts, Mapping) else Counter(counts)
    return Averages(*(_mean(weights, partial(figure, zero=zero)) for figure in (_precision, _recall, _f1)))


def _weighted_averages(counts: Iterable[MatchCounts], zero: ZeroDivision) -> Averages:
    """Averages over labels, each weighted by its frequency in gold."""
    by_gold: Counter[MatchCounts] = Counter()
    for matched in counts:
        by_gold[matched] += matched.gold
    return _mean_averages(+by_gold, zero)


def _mean(counts: Mapping[MatchCounts, int], figure: Callable[[MatchCounts], Fraction]) -> float | None:
    """The exact mean of a metric, rounded once; None over nothing. counts: how often each `MatchCounts` occurs."""
    number = sum(counts.values())
    if not number:
        return None
    return float(sum((figure(matched) * n for matched, n in counts.items()), Fraction(0)) / number)


def _ratio(count: int, total: int, zero: float) -> Fraction:
    return Fraction(count, total) if total else Fraction(zero)


def _jaccard(matched: MatchCounts, zero: ZeroDivision) -> Fraction:
    return _ratio(matched.right, matched.gold + matched.predicted - matched.right, zero.accuracy)


def _precision(matched: MatchCounts, zero: ZeroDivision) -> Fraction:
    return _ratio(matched.right, matched.predicted, zero.precision)


def _recall(matched: MatchCounts, zero: ZeroDivision) -> Fraction:
    return _ratio(matched.right, matched.gold, zero.recall)


def _f1(matched: MatchCounts, zero: ZeroDivision) -> Fraction:
    return _ratio(2 * matched.right, matched.gold + matched.predicted, zero.f1)


Edits = tuple[int, int]
"""Numbers of concept errors and of gold concepts in an utterance."""
Row = TypeVar("Row", bound=tuple[int, ...])
Clusters = Sequence[Mapping[Row, int]]
"""The counts of each cluster: number of utterances for each row."""

DRAWS = 2000
_SEED = 20221  # Any fixed one: the same counts give the same interval, also of merged shards.
_MAX_BATCH_VALUES = 1 << 22
"""Most values that are drawn at once."""


AverageIntervals = tuple[Interval | None, Interval | None, Interval | None]
"""The intervals of precision, recall and F1."""


# `clusters` of these functions: as for `ratio_interval`.


def accuracy_interval(
    overlaps: Mapping[MatchCounts, int], zero: ZeroDivision, clusters: Clusters[MatchCounts] = ()
) -> Interval | None:
    """The interval of intent accuracy. overlaps: `IntentCounts.judged_overlaps`."""
    return _interval_of_mean(overlaps, partial(_jaccard, zero=zero), clusters)


def samples_intervals(
    overlaps: Mapping[MatchCounts, int], zero: ZeroDivision, clusters: Clusters[MatchCounts] = ()
) -> AverageIntervals:
    """The intervals of the averages over utterances. overlaps: `IntentCounts.judged_overlaps`."""
    precision, recall, f1 = (
        _interval_of_mean(overlaps, partial(score, zero=zero), clusters) for score in (_precision, _recall, _f1)
    )
    return precision, recall, f1


def _interval_of_mean(
    overlaps: Mapping[MatchCounts, int], figure: Callable[[MatchCounts], Fraction], clusters: Clusters[MatchCounts]
) -> Interval | None:
    return ratio_interval(overlaps, lambda overlap: float(figure(overlap)), lambda _: 1.0, clusters=clusters)


def pooled_intervals(counts: Mapping[MatchCounts, int], clusters: Clusters[MatchCounts] = ()) -> AverageIntervals:
    """The intervals of pooled metrics. counts: number of utterances for each combination of right, gold and
    predicted."""
    return (
        ratio_interval(counts, lambda matched: matched.right, lambda matched: matched.predicted, clusters=clusters),
        ratio_interval(counts, lambda matched: matched.right, lambda matched: matched.gold, clusters=clusters),
        pooled_f1_interval(counts, clusters),
    )


def pooled_f1_interval(counts: Mapping[MatchCounts, int], clusters: Clusters[MatchCounts] = ()) -> Interval | None:
    """The interval of F1 only, as in `pooled_intervals`."""
    return ratio_interval(
        counts, lambda matched: matched.right, lambda matched: (matched.gold + matched.predicted) / 2, clusters=clusters
    )


def cer_interval(edits: Mapping[Edits, int], clusters: Clusters[Edits] = ()) -> Interval | None:
    """The interval of the concept error rate, which may exceed 1. edits: number of utterances for each combination."""
    return ratio_interval(edits, lambda row: row[0], lambda row: row[1], None, clusters)


def share_interval(share: Share, clusters: Sequence[Share]) -> Interval | None:
    """The interval of a share of utterances: over clusters, or else Wilson's."""
    if not clusters:
        return share.interval
    return _interval_over_clusters([(cluster.count, cluster.total) for cluster in clusters])


F1WithInterval = tuple[float | None, Interval | None]
"""F1 and its interval. None over nothing."""


def concept_f1(counts: Mapping[MatchCounts, int], clusters: Clusters[MatchCounts] = ()) -> F1WithInterval:
    """F1 of concepts without places, each counted as often as it occurs. counts: `SlotCounts.multisets`."""
    sums = sum_columns(counts)
    size = sums.gold + sums.predicted
    if not size:
        return None, None
    return 2 * sums.right / size, pooled_f1_interval(counts, clusters)


def sum_columns(counts: Mapping[Row, int]) -> MatchCounts:
    """The sums of right, gold and predicted over all utterances.

    counts: number of utterances for each row. Rows begin with these three counts.
    """
    return MatchCounts(*(sum(row[column] * n for row, n in counts.items()) for column in range(3)))


def slu_f1s(
    counts: Mapping[EntityCounts, int], clusters: Clusters[EntityCounts] = ()
) -> tuple[F1WithInterval, F1WithInterval, F1WithInterval]:
    """SLURP's SLU-F1, and F1 by the distance of words and of characters. counts: `FrameCounts.entities`.

    A pair is one true positive, and its distance is added to false positives and to false negatives. SLU-F1 adds the
    counts of both distances. Source: Bastianelli et al. 2020.
    """
    return (
        _distance_f1(counts, clusters, 1, 1),
        _distance_f1(counts, clusters, 2, 0),
        _distance_f1(counts, clusters, 0, 2),
    )


def _distance_f1(
    counts: Mapping[EntityCounts, int], clusters: Clusters[EntityCounts], words: int, characters: int
) -> F1WithInterval:
    denominator = sum((entities.denominator(words, characters) * n for entities, n in counts.items()), Fraction(0))
    if not denominator:
        return None, None
    value = float(sum(2 * entities.paired * n for entities, n in counts.items()) / denominator)
    interval = ratio_interval(
        counts,
        lambda entities: entities.paired,
        lambda entities: float(entities.denominator(words, characters)) / 2,
        clusters=clusters,
    )
    return value, interval


def ratio_interval(
    counts: Mapping[Row, int],
    numerator: Callable[[Row], float],
    denominator: Callable[[Row], float],
    max_ratio: float | None = 1.0,
    clusters: Clusters[Row] = (),
) -> Interval | None:
    """95 % percentile interval of Σ numerator / Σ denominator over utterances drawn with replacement.

    - counts: number of utterances for each row.
    - numerator, denominator: return the terms of a row.
    - max_ratio: the largest possible ratio; None if there is none.
    - clusters: the counts of each query, if its repetitions are not independent. The interval is then over queries.

    None for fewer than two utterances. Utterances with denominator 0 do not count, nor do draws that have only such. If
    the ratio is 0 or max_ratio, all draws are equal. The interval is then Wilson's, with each utterance right or wrong
    as a whole. The same counts always give the same interval.
    Source: Efron & Tibshirani, An Introduction to the Bootstrap, 13.
    """
    import numpy as np  # imported here, so that --help does not load it

    if clusters:
        sums = [
            [sum(term(row) * number for row, number in cluster.items()) for term in (numerator, denominator)]
            for cluster in clusters
        ]
        return _interval_over_clusters([(top, bottom) for top, bottom in sums], bounded=max_ratio is not None)
    rows = sorted(counts)
    numbers = np.array([counts[row] for row in rows], np.int64)
    utterances = int(numbers.sum())
    numerators = np.array([numerator(row) for row in rows])
    denominators = np.array([denominator(row) for row in rows])
    total = float(denominators @ numbers)
    counted_utterances = int(numbers[denominators > 0].sum())
    if counted_utterances < 2:
        return None
    value = float(numerators @ numbers) / total
    if value in (0.0, max_ratio):
        return wilson(counted_utterances if value else 0, counted_utterances)
    random = np.random.default_rng(_SEED)
    ratios = []
    batch_size = max(1, _MAX_BATCH_VALUES // len(rows))
    for begin in range(0, DRAWS, batch_size):
        samples = random.multinomial(utterances, numbers / utterances, size=min(batch_size, DRAWS - begin))
        sums = samples @ denominators
        ratios.append((samples @ numerators)[sums > 0] / sums[sums > 0])
    tail = 50 * (1 - CONFIDENCE)  # per cent, on each side
    low, high = np.percentile(np.concatenate(ratios), [tail, 100 - tail])
    return (float(low), float(high)) if low < high else None


def _interval_over_clusters(sums: Sequence[tuple[float, float]], *, bounded: bool = True) -> Interval | None:
    """The interval of a ratio over clusters, by the rule for word error rates (`wer_interval`).

    - sums: numerator and denominator of each cluster.
    - bounded: whether the ratio is at most 1.
    """
    from harness.statistics.word_intervals import wer_interval  # here, since few corpora have clusters

    counted_sums = [(top, bottom) for top, bottom in sums if top or bottom]
    tops, bottoms = [top for top, _ in counted_sums], [bottom for _, bottom in counted_sums]
    # That rule is for rare errors, and allows rates above 1. So a common outcome is the complement of a rare one.
    if not bounded or sum(tops) <= sum(bottoms) / 2:
        return wer_interval(tops, bottoms)
    ends = wer_interval([bottom - top for top, bottom in counted_sums], bottoms)
    return None if ends is None else (1 - ends[1], 1 - ends[0])
