"""What is kept of a scoring when its utterances are let go of: counts that add up over shards, and ids without partner.

Figures and intervals of a report come from these alone, so that shards put together say what the whole would have said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.understanding.arithmetic.counts import FrameCounts, Matched, pooled
from harness.understanding.arithmetic.rule import Rule
from harness.understanding.arithmetic.sample_intervals import Edits
from harness.understanding.scoring.scoring import ScoredFrame, Scoring

Groups = tuple[tuple[str, tuple[tuple[str, "FrameCounts"], ...]], ...]


@dataclass(frozen=True, slots=True)
class Samples:
    """Utterances by what they count, from which intervals are made: utterances vary freely, words in them do not.

    chunks, concepts: right, gold and predicted ones of an utterance → utterances. edits: concept errors and gold
    concepts of an utterance → utterances. Of intents, `IntentCounts.overlaps` says the same.
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
    """A system's predictions, scored; gold, predicted: what they were read from.

    details: under one rule or two, which differ in their detail. missing, unknown, unannotated, intents_told,
    slots_told: as in `Scoring`, ids sorted. other_words: ids whose words are others in gold and in the prediction.
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


def counted(scorings: Sequence[Scoring]) -> SystemCounts:
    """The counts of one system, scored under one rule or several; ValueError for scorings of different systems."""
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


def _of_detail(one: Scoring) -> DetailCounts:
    return DetailCounts(one.rule, one.totals, _sorted(one.groups), samples(frame.counts for frame in one.frames))


def samples(counts: Iterable[FrameCounts]) -> Samples:
    """The utterances that are annotated in slots, by what they count."""
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
    """The counts of a system, of which each part has some utterances. gold, predicted: those of the first part.

    Parts that lack a column of groups count under no label there. ValueError, in words for people, for parts that
    cannot be added: scored under other rules, told of other things, or with an id twice.
    """
    first = parts[0]
    for one in parts[1:]:
        if [detail.rule for detail in one.details] != [detail.rule for detail in first.details]:
            raise ValueError("it was scored under another rule")
        for what, told, other in (
            ("intents", first.intents_told, one.intents_told),
            ("slots", first.slots_told, one.slots_told),
        ):
            if told != other:  # then they would count in one part only, and in all of the whole
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
