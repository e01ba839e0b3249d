"""Predicted frames paired with gold, counted in all and by groups, and metrics with intervals from the counts.

A metric over nothing is None.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple, TypeVar

from harness.model.understanding import Corpus, Utterance
from harness.statistics.intervals import CONFIDENCE, Share, wilson
from harness.understanding.counts import (
    FrameCounts,
    IntentCounts,
    Matched,
    Rule,
    SlotCounts,
    ValueRule,
    count_frame,
    pooled,
    total,
)


@dataclass(frozen=True, slots=True)
class ZeroDivision:
    """The value of 0/0, 0–1. precision: if nothing is predicted. recall: if gold has nothing. f1, accuracy: if both.

    F1 is 2 · right / (gold + predicted). A label of gold that is never predicted therefore has F1 0.
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
"""By name. zero: the default. seed: as in a table of the MEDIA paper. one: scikit-learn's zero_division=1."""


@dataclass(frozen=True, slots=True)
class Averages:
    """0–1; None over nothing."""

    precision: float | None = None
    recall: float | None = None
    f1: float | None = None


@dataclass(frozen=True, slots=True)
class IntentFigures:
    """accuracy: Godbole & Sarawagi's. exact: EMR. samples, macro, micro: averaged over utterances, labels, pooled.

    labels: of the macro averages, declared ones first. `declared`: whether labels were declared.
    `never_predicted`: labels without a prediction. `empty`: utterances without a predicted intent.
    `empty_rightly`: those of them without an intent in gold.
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

    frames: SFA, by places if every utterance has places (by_place), else by lists of concepts.
    `unplaced`: utterances whose slots have no places, or whose words differ. Slot F1 leaves them out.
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
    """valued: slots with their values; None without values. zero: the value of 0/0."""

    utterances: int
    intents: IntentFigures
    slots: SlotFigures
    valued: SlotFigures | None
    zero: ZeroDivision


def figures(counts: FrameCounts, zero: ZeroDivision = ZERO, labels: Sequence[str] | None = None) -> FrameFigures:
    """The metrics of some counts. labels: the declared ones, for macro averages; other labels that occur join them.

    Every sum is exact, so the order in which shards were added does not matter.
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
        _mean(overlaps, partial(_jaccard, zero=zero)),
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
    """Precision, recall and F1 of some counts. nothing: all are None without gold and predictions."""
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


def _jaccard(one: Matched, zero: ZeroDivision) -> Fraction:
    return _over(one.right, one.gold + one.predicted - one.right, zero.accuracy)


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
"""Numbers that are drawn at once."""


class Spans(NamedTuple):
    """The intervals of one kind of average."""

    precision: Interval | None
    recall: Interval | None
    f1: Interval | None


def accuracy_interval(overlaps: Mapping[Matched, int], zero: ZeroDivision) -> Interval | None:
    """The interval of intent accuracy. overlaps: as in `IntentCounts`."""
    return _interval_of_mean(overlaps, partial(_jaccard, zero=zero))


def samples_spans(overlaps: Mapping[Matched, int], zero: ZeroDivision) -> Spans:
    """The intervals of means over utterances. overlaps: as in `IntentCounts`."""
    return Spans(*(_interval_of_mean(overlaps, partial(of, zero=zero)) for of in (_precision, _recall, _f1)))


def _interval_of_mean(overlaps: Mapping[Matched, int], figure: Callable[[Matched], Fraction]) -> Interval | None:
    return ratio_interval(overlaps, lambda one: float(figure(one)), lambda _: 1.0)


def pooled_spans(counts: Mapping[Matched, int]) -> Spans:
    """The intervals of pooled metrics. counts: right, gold and predicted per utterance → utterances."""
    return Spans(
        ratio_interval(counts, lambda one: one.right, lambda one: one.predicted),
        ratio_interval(counts, lambda one: one.right, lambda one: one.gold),
        pooled_f1_interval(counts),
    )


def pooled_f1_interval(counts: Mapping[Matched, int]) -> Interval | None:
    """The interval of F1 only, as in `pooled_spans`."""
    return ratio_interval(counts, lambda one: 2 * one.right, lambda one: one.gold + one.predicted)


def cer_interval(edits: Mapping[Edits, int]) -> Interval | None:
    """The interval of the concept error rate, which may exceed 1."""
    return ratio_interval(edits, lambda one: one[0], lambda one: one[1], None)


def ratio_interval(
    counts: Mapping[Row, int], part: Callable[[Row], float], whole: Callable[[Row], float], most: float | None = 1.0
) -> Interval | None:
    """95 % percentile interval of Σ part / Σ whole over utterances drawn with replacement. None for fewer than two.

    counts: row → utterances. part, whole: what a row adds to numerator and denominator. Utterances with denominator 0
    do not count, nor do draws of them only. If the ratio is 0 or `most`, no draw differs. The interval is then
    Wilson's, with each utterance right or wrong as a whole. The same counts always give the same interval.
    Source: Efron & Tibshirani, An Introduction to the Bootstrap, 13.
    """
    import numpy as np  # imported here, so that --help does not load it

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


Groups = tuple[tuple[str, tuple[tuple[str, FrameCounts], ...]], ...]


@dataclass(frozen=True, slots=True)
class ScoredFrame:
    """A scored utterance. predicted: empty if there is no prediction with its id (missing)."""

    gold: Utterance
    predicted: Utterance
    missing: bool
    counts: FrameCounts

    @property
    def id(self) -> str:
        return self.gold.id


@dataclass(frozen=True, slots=True)
class FrameScoring:
    """gold, predicted: paths. frames: of the utterances that count, in the order of gold.

    groups: column → label → counts, with labels sorted.
    `missing`: ids of gold without a prediction, counted as empty predictions.
    `unknown`: ids of predictions without gold, which are not counted.
    `unannotated`: ids of gold without intents and slots, which are not counted.
    `intents_told`, `slots_told`: whether any prediction states them, even as none. If not, their metrics are n/a.
    `values_told`: whether both sides have values. If not, there are no metrics with values.
    """

    gold: str
    predicted: str
    rule: Rule
    frames: tuple[ScoredFrame, ...]
    totals: FrameCounts
    groups: Groups
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    unannotated: tuple[str, ...]
    intents_told: bool
    slots_told: bool
    values_told: bool


def score(gold: Corpus, predicted: Corpus, rule: Rule, by: Sequence[str] | None = None) -> FrameScoring:
    """Scores predictions, paired by id. by: columns of gold's groups. None is all of them."""
    said = {one.id: one for one in predicted.utterances}
    intents_told = any(one.intents is not None for one in predicted.utterances)
    slots_told = any(one.tags is not None or one.slots is not None for one in predicted.utterances)
    values_told = _gives_values(gold, rule) and (not said or _gives_values(predicted, rule))
    counted = rule if values_told else replace(rule, values=ValueRule.NONE)
    frames, missing, unannotated = [], [], []
    for one in gold.utterances:
        if not is_annotated(one):
            unannotated.append(one.id)
            continue
        heard = said.get(one.id)
        if heard is None:
            missing.append(one.id)
        frames.append(_scored(one, heard, counted, intents=intents_told or not said, slots=slots_told or not said))
    known = {one.id for one in gold.utterances}
    return FrameScoring(
        gold.path,
        predicted.path,
        rule,
        tuple(frames),
        total(frame.counts for frame in frames),
        _groups(frames, by),
        tuple(missing),
        tuple(one.id for one in predicted.utterances if one.id not in known),
        tuple(unannotated),
        intents_told,
        slots_told,
        values_told,
    )


def is_annotated(one: Utterance) -> bool:
    """Whether an utterance has annotated intents or slots."""
    return one.intents is not None or one.tags is not None or one.slots is not None


def _gives_values(corpus: Corpus, rule: Rule) -> bool:
    """Whether any slot has a value. Under `spoken`, the words of tags are values even without a slot."""
    if rule.values is ValueRule.NONE:
        return False
    if rule.spoken and any(one.tags is not None and one.slots is None for one in corpus.utterances):
        return True
    return any(slot.value is not None for one in corpus.utterances for slot in one.slots or ())


def _scored(gold: Utterance, predicted: Utterance | None, rule: Rule, *, intents: bool, slots: bool) -> ScoredFrame:
    of = gold
    if not intents:
        of = replace(of, intents=None)
    if not slots:
        of = replace(of, tags=None, slots=None)
    heard = predicted or Utterance(gold.id)
    return ScoredFrame(gold, heard, predicted is None, count_frame(of, heard, rule))


def _groups(frames: Sequence[ScoredFrame], by: Sequence[str] | None) -> Groups:
    columns = by if by is not None else dict.fromkeys(name for frame in frames for name, _ in frame.gold.groups)
    found = []
    for column in columns:
        labels: defaultdict[str, list[FrameCounts]] = defaultdict(list)
        for frame in frames:
            labels[dict(frame.gold.groups).get(column, "")].append(frame.counts)
        found.append((column, tuple((label, total(counts)) for label, counts in sorted(labels.items()))))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Samples:
    """Numbers of utterances by their counts of slots, from which bootstrap intervals are computed.

    chunks, concepts: right, gold and predicted per utterance → utterances. edits: concept errors and gold concepts per
    utterance → utterances. For intents, `IntentCounts.overlaps` has the same.
    """

    chunks: Mapping[Matched, int] = field(default_factory=dict)
    concepts: Mapping[Matched, int] = field(default_factory=dict)
    edits: Mapping[Edits, int] = field(default_factory=dict)

    def __add__(self, other: Samples) -> Samples:
        return Samples(
            dict(Counter(self.chunks) + Counter(other.chunks)),
            dict(Counter(self.concepts) + Counter(other.concepts)),
            dict(Counter(self.edits) + Counter(other.edits)),
        )


@dataclass(frozen=True, slots=True)
class DetailCounts:
    """Counts under one rule. groups: column → label → counts, columns and labels sorted."""

    rule: Rule
    totals: FrameCounts
    groups: Groups
    samples: Samples


@dataclass(frozen=True, slots=True)
class SystemCounts:
    """A system's scored predictions. gold, predicted: the files they were read from.

    details: under one rule, or under two that differ in detail.
    `other_words`: ids whose words differ between gold and prediction.
    Other fields are as in `FrameScoring`, with ids sorted.
    """

    gold: str
    predicted: str
    details: tuple[DetailCounts, ...]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    unannotated: tuple[str, ...]
    other_words: tuple[str, ...]
    intents_told: bool
    slots_told: bool

    @property
    def utterances(self) -> int:
        return self.details[0].totals.utterances


def counted(scorings: Sequence[FrameScoring]) -> SystemCounts:
    """The counts of one system under one rule or several. ValueError for scorings of different systems."""
    first = scorings[0]
    if any((one.gold, one.predicted) != (first.gold, first.predicted) for one in scorings):
        raise ValueError("scorings of different files")
    return SystemCounts(
        first.gold,
        first.predicted,
        tuple(_of_detail(one) for one in scorings),
        tuple(sorted(first.missing)),
        tuple(sorted(first.unknown)),
        tuple(sorted(first.unannotated)),
        tuple(sorted(frame.id for frame in first.frames if _other_words(frame))),
        first.intents_told,
        first.slots_told,
    )


def _of_detail(one: FrameScoring) -> DetailCounts:
    return DetailCounts(one.rule, one.totals, _sorted(one.groups), samples(frame.counts for frame in one.frames))


def samples(counts: Iterable[FrameCounts]) -> Samples:
    """The utterances with annotated slots, by their counts."""
    chunks: Counter[Matched] = Counter()
    concepts: Counter[Matched] = Counter()
    edits: Counter[Edits] = Counter()
    for one in counts:
        slots = one.slots
        if not slots.utterances:
            continue
        if slots.placed:
            chunks[pooled(slots.chunks.values())] += 1
        concepts[pooled(slots.concepts.values())] += 1
        edits[slots.edits.errors, slots.edits.words] += 1
    return Samples(dict(chunks), dict(concepts), dict(edits))


def added(parts: Sequence[SystemCounts]) -> SystemCounts:
    """The counts of a system from parts with different utterances. gold, predicted: those of the first part.

    A part without a column of groups counts there under an empty label. ValueError, with a message for users, if rules
    differ, or if only some parts predict intents or slots.
    """
    first = parts[0]
    for one in parts[1:]:
        if [detail.rule for detail in one.details] != [detail.rule for detail in first.details]:
            raise ValueError("it was scored under a different rule")
        for what, told, other in (
            ("intents", first.intents_told, one.intents_told),
            ("slots", first.slots_told, one.slots_told),
        ):
            if told != other:  # they would count in one part only, but everywhere in the whole
                raise ValueError(f"{what} are predicted in {'it' if other else 'the first'} and not in the other")
    return replace(
        first,
        details=tuple(_added([one.details[at] for one in parts]) for at in range(len(first.details))),
        missing=tuple(sorted(id_ for one in parts for id_ in one.missing)),
        unknown=tuple(sorted(id_ for one in parts for id_ in one.unknown)),
        unannotated=tuple(sorted(id_ for one in parts for id_ in one.unannotated)),
        other_words=tuple(sorted(id_ for one in parts for id_ in one.other_words)),
    )


def _added(parts: Sequence[DetailCounts]) -> DetailCounts:
    columns = sorted({column for one in parts for column, _ in one.groups})
    groups = []
    for column in columns:
        labels: dict[str, FrameCounts] = {}
        for one in parts:
            of = dict(one.groups).get(column)
            for label, counts in of if of is not None else (("", one.totals),):
                labels[label] = labels.get(label, FrameCounts()) + counts
        groups.append((column, tuple(sorted(labels.items()))))
    return DetailCounts(
        parts[0].rule,
        sum((one.totals for one in parts), FrameCounts()),
        tuple(groups),
        sum((one.samples for one in parts), Samples()),
    )


def _other_words(frame: ScoredFrame) -> bool:
    return bool(frame.gold.words and frame.predicted.words and frame.gold.words != frame.predicted.words)


def _sorted(groups: Groups) -> Groups:
    return tuple(sorted((column, tuple(sorted(labels))) for column, labels in groups))
