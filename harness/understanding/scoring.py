"""Predicted frames paired with gold, and their counts in total and by groups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeVar

from harness.base.garbage_collection import gc_paused
from harness.base.grouping import group_by
from harness.model.frozen import frozen
from harness.model.understanding import Corpus, Utterance
from harness.statistics.confidence import ConfidenceFigures, confidence_figures
from harness.understanding.counts import FrameCounts, MatchCounts, Rule, ValueRule, count_frame, pooled, total
from harness.understanding.figures import Edits

T = TypeVar("T")
Groups = tuple[tuple[str, tuple[tuple[str, FrameCounts], ...]], ...]
"""For each column, its labels, each with the counts of its utterances."""


@frozen
class ScoredFrame:
    """A scored utterance.

    - predicted: an empty frame if there is no prediction with its id.
    - missing: whether there is no prediction with its id.
    """

    gold: Utterance
    predicted: Utterance
    missing: bool
    counts: FrameCounts

    @property
    def id(self) -> str:
        return self.gold.id


@frozen
class FrameScoring:
    """The scored predictions of a system under one rule.

    - gold, predicted: paths of both.
    - frames: the utterances that count, in the order of gold.
    - groups: the counts by groups, with labels sorted.
    - missing: ids of gold without a prediction. They count as empty predictions that are never right.
    - unknown: ids of predictions without gold, which are not counted.
    - unannotated: ids of gold without intents and slots, which are not counted.
    - intents_given, slots_given: whether any prediction states them, even as none. If not, their metrics are n/a.
    - values_given: whether both sides have values. If not, there are no metrics with values.
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
    intents_given: bool
    slots_given: bool
    values_given: bool


_QUERY = "query"
"""The column of groups that names queries. Repetitions of a query are not independent."""


@gc_paused()
def score(
    gold: Corpus, predicted: Corpus, rule: Rule, by: Sequence[str] | None = None, *, missing_is_empty: bool = False
) -> FrameScoring:
    """Scores predictions, paired by id.

    - by: columns of gold's groups; None for all of them.
    - missing_is_empty: whether an utterance without a prediction has no intent, which can be right; else it is wrong.
    """
    predictions = {utterance.id: utterance for utterance in predicted.utterances}
    intents_given = any(utterance.intents is not None for utterance in predicted.utterances)
    slots_given = any(utterance.tags is not None or utterance.slots is not None for utterance in predicted.utterances)
    values_given = _has_values(gold, rule) and (not predictions or _has_values(predicted, rule))
    scored_rule = rule if values_given else replace(rule, values=ValueRule.NONE)
    has_queries = any(_QUERY in dict(utterance.groups) for utterance in gold.utterances)
    frames, missing, unannotated = [], [], []
    for utterance in gold.utterances:
        if not is_annotated(utterance):
            unannotated.append(utterance.id)
            continue
        prediction = predictions.get(utterance.id)
        if prediction is None:
            missing.append(utterance.id)
        frame = _score_frame(
            utterance,
            prediction,
            scored_rule,
            scores_intents=intents_given or not predictions,
            scores_slots=slots_given or not predictions,
            missing_is_empty=missing_is_empty,
        )
        if has_queries:
            query = dict(utterance.groups).get(_QUERY) or utterance.id  # without one, it is a query of its own
            frame = replace(frame, counts=replace(frame.counts, queries={query: frame.counts}))
        frames.append(frame)
    gold_ids = {utterance.id for utterance in gold.utterances}
    return FrameScoring(
        gold=gold.path,
        predicted=predicted.path,
        rule=rule,
        frames=tuple(frames),
        totals=total(frame.counts for frame in frames),
        groups=_groups(frames, by),
        missing=tuple(missing),
        unknown=tuple(utterance.id for utterance in predicted.utterances if utterance.id not in gold_ids),
        unannotated=tuple(unannotated),
        intents_given=intents_given,
        slots_given=slots_given,
        values_given=values_given,
    )


def intent_confidences(scoring: FrameScoring) -> ConfidenceFigures | None:
    """How reliable the scores of predicted intents are.

    The answers are utterances, which are right if their intents are exact. The confidence of an utterance is that of
    its least certain intent: the score of a predicted intent, and one minus the score of another. None if no prediction
    has scores.
    """
    confidences: list[float] = []
    correct_flags: list[bool] = []
    left_out = 0
    for frame in scoring.frames:
        intents, scores = frame.predicted.intents, dict(frame.predicted.scores)
        if frame.gold.intents is None:
            continue
        if not scores or intents is None or not scores.keys() >= set(intents):
            left_out += 1
        else:
            confidences.append(min(score if label in intents else 1 - score for label, score in scores.items()))
            correct_flags.append(intents == frame.gold.intents)
    return confidence_figures(confidences, correct_flags, left_out) if confidences else None


def is_annotated(utterance: Utterance) -> bool:
    """Whether an utterance has annotated intents or slots."""
    return utterance.intents is not None or utterance.tags is not None or utterance.slots is not None


def _has_values(corpus: Corpus, rule: Rule) -> bool:
    """Whether any slot has a value. With `spoken`, the words of tags are values, even if there is no slot."""
    if rule.values is ValueRule.NONE:
        return False
    if rule.spoken and any(utterance.tags is not None and utterance.slots is None for utterance in corpus.utterances):
        return True
    return any(slot.value is not None for utterance in corpus.utterances for slot in utterance.slots or ())


def _score_frame(
    gold: Utterance,
    predicted: Utterance | None,
    rule: Rule,
    *,
    scores_intents: bool,
    scores_slots: bool,
    missing_is_empty: bool,
) -> ScoredFrame:
    """Scores an utterance, or only its intents or its slots. missing_is_empty: as for `score`."""
    scored_gold = gold
    if not scores_intents:
        scored_gold = replace(scored_gold, intents=None)
    if not scores_slots:
        scored_gold = replace(scored_gold, tags=None, slots=None)
    prediction = predicted or Utterance(gold.id, intents=() if missing_is_empty else None)
    return ScoredFrame(gold, prediction, predicted is None, count_frame(scored_gold, prediction, rule))


def _groups(frames: Sequence[ScoredFrame], by: Sequence[str] | None) -> Groups:
    columns = group_by_column([(frame.gold, frame) for frame in frames], by)
    return tuple((column, _totals(labels)) for column, labels in columns.items())


def _totals(labels: Mapping[str, Sequence[ScoredFrame]]) -> tuple[tuple[str, FrameCounts], ...]:
    return tuple((label, total(frame.counts for frame in members)) for label, members in sorted(labels.items()))


def group_by_column(rows: Sequence[tuple[Utterance, T]], by: Sequence[str] | None) -> dict[str, dict[str, list[T]]]:
    """For each column, the rows of each label.

    - rows: an utterance of gold, which has the labels, and anything that belongs to it.
    - by: columns; None for all of gold's groups.
    """
    columns = by if by is not None else dict.fromkeys(name for gold, _ in rows for name, _ in gold.groups)
    return {column: group_by((dict(gold.groups).get(column, ""), row) for gold, row in rows) for column in columns}


@frozen
class Samples:
    """Numbers of utterances by their counts of slots, from which bootstrap intervals are computed.

    - chunks, concepts: number of utterances for each combination of right, gold and predicted slots or concepts.
    - edits: number of utterances for each combination of concept errors and gold concepts.

    For intents, `IntentCounts.overlaps` has the same.
    """

    chunks: Mapping[MatchCounts, int] = field(default_factory=dict)
    concepts: Mapping[MatchCounts, int] = field(default_factory=dict)
    edits: Mapping[Edits, int] = field(default_factory=dict)

    def __add__(self, other: Samples) -> Samples:
        return Samples(
            dict(Counter(self.chunks) + Counter(other.chunks)),
            dict(Counter(self.concepts) + Counter(other.concepts)),
            dict(Counter(self.edits) + Counter(other.edits)),
        )


@frozen
class DetailCounts:
    """Counts under one rule. groups: counts by groups, with columns and labels sorted."""

    rule: Rule
    totals: FrameCounts
    groups: Groups
    samples: Samples


@frozen
class SystemCounts:
    """A system's counts.

    - gold, predicted: the files from which they were read.
    - details: the counts under one rule, or under two that differ only in the detail of concepts.
    - other_words: ids of utterances whose words differ between gold and prediction.
    - surplus_blanks: ids with a slot value, compared verbatim, that has blanks around it or several in a row.

    Other fields are as in `FrameScoring`, with ids sorted.
    """

    gold: str
    predicted: str
    details: tuple[DetailCounts, ...]
    missing: tuple[str, ...]
    unknown: tuple[str, ...]
    unannotated: tuple[str, ...]
    other_words: tuple[str, ...]
    intents_given: bool
    slots_given: bool
    surplus_blanks: tuple[str, ...] = ()

    @property
    def utterances(self) -> int:
        return self.details[0].totals.utterances

    @property
    def values_given(self) -> bool | None:
        """As in `FrameScoring`; None if gold has no slots."""
        totals = self.details[0].totals
        return bool(totals.valued.utterances) if totals.slots.utterances else None


def count_system(scorings: Sequence[FrameScoring]) -> SystemCounts:
    """The counts of one system under one rule or several. Raises ValueError for scorings of different systems."""
    first = scorings[0]
    if any((scoring.gold, scoring.predicted) != (first.gold, first.predicted) for scoring in scorings):
        raise ValueError("scorings of different files")
    return SystemCounts(
        gold=first.gold,
        predicted=first.predicted,
        details=tuple(
            DetailCounts(
                scoring.rule,
                scoring.totals,
                _sorted_groups(scoring.groups),
                collect_samples(frame.counts for frame in scoring.frames),
            )
            for scoring in scorings
        ),
        missing=tuple(sorted(first.missing)),
        unknown=tuple(sorted(first.unknown)),
        unannotated=tuple(sorted(first.unannotated)),
        other_words=tuple(sorted(frame.id for frame in first.frames if _has_other_words(frame))),
        intents_given=first.intents_given,
        slots_given=first.slots_given,
        surplus_blanks=tuple(sorted(frame.id for frame in first.frames if _has_surplus_blanks(frame, first.rule))),
    )


def collect_samples(counts: Iterable[FrameCounts]) -> Samples:
    """The utterances with annotated slots, by their counts. counts: those of each utterance."""
    chunks: Counter[MatchCounts] = Counter()
    concepts: Counter[MatchCounts] = Counter()
    edits: Counter[Edits] = Counter()
    for frame in counts:
        slots = frame.slots
        if not slots.utterances:
            continue
        if slots.placed:
            chunks[pooled(slots.chunks.values())] += 1
        concepts[pooled(slots.concepts.values())] += 1
        edits[slots.edits.errors, slots.edits.words] += 1
    return Samples(dict(chunks), dict(concepts), dict(edits))


def add_system_counts(parts: Sequence[SystemCounts]) -> SystemCounts:
    """The counts of a system from parts with different utterances. Paths are those of the first part.

    A part without a column of groups counts there under an empty label. Raises ValueError, with a message for users, if
    rules differ, or if only some parts predict intents or slots, or compare values.
    """
    first = parts[0]
    for part in parts[1:]:
        if [detail.rule for detail in part.details] != [detail.rule for detail in first.details]:
            raise ValueError("this file was scored under a different rule")
        for claim, in_first, in_part in (
            ("intents are predicted", first.intents_given, part.intents_given),
            ("slots are predicted", first.slots_given, part.slots_given),
            ("slot values are compared (see --values)", first.values_given, part.values_given),
        ):
            # They would count in one part only, but everywhere in the whole.
            if in_first != in_part and None not in (in_first, in_part):
                true_in, false_in = ("this file", "the first file") if in_part else ("the first file", "this file")
                raise ValueError(f"{claim} in {true_in}, but not in {false_in}")
    return replace(
        first,
        details=tuple(_add_details([part.details[index] for part in parts]) for index in range(len(first.details))),
        missing=tuple(sorted(id_ for part in parts for id_ in part.missing)),
        unknown=tuple(sorted(id_ for part in parts for id_ in part.unknown)),
        unannotated=tuple(sorted(id_ for part in parts for id_ in part.unannotated)),
        other_words=tuple(sorted(id_ for part in parts for id_ in part.other_words)),
        surplus_blanks=tuple(sorted(id_ for part in parts for id_ in part.surplus_blanks)),
    )


def _add_details(parts: Sequence[DetailCounts]) -> DetailCounts:
    columns = sorted({column for part in parts for column, _ in part.groups})
    groups = []
    for column in columns:
        labels: dict[str, FrameCounts] = {}
        for part in parts:
            # Groups in files name no queries, so neither may the utterances of a part without the column.
            without_label = (("", replace(part.totals, queries={})),)
            for label, counts in dict(part.groups).get(column, without_label):
                labels[label] = labels.get(label, FrameCounts()) + counts
        groups.append((column, tuple(sorted(labels.items()))))
    return DetailCounts(
        parts[0].rule,
        sum((part.totals for part in parts), FrameCounts()),
        tuple(groups),
        sum((part.samples for part in parts), Samples()),
    )


def _has_other_words(frame: ScoredFrame) -> bool:
    return bool(frame.gold.words and frame.predicted.words and frame.gold.words != frame.predicted.words)


_SURPLUS_BLANKS = re.compile(r"^\s|\s$|\s\s")


def _has_surplus_blanks(frame: ScoredFrame, rule: Rule) -> bool:
    slots = (*(frame.gold.slots or ()), *(frame.predicted.slots or ()))
    return rule.values is ValueRule.VERBATIM and any(_SURPLUS_BLANKS.search(slot.value or "") for slot in slots)


def _sorted_groups(groups: Groups) -> Groups:
    return tuple(sorted((column, tuple(sorted(labels))) for column, labels in groups))
