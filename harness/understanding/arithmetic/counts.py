"""Counts of intents and slots. They add up: counts of shards, added in any order, are the counts of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from harness.model.transcript import WordCounts
from harness.statistics.intervals import Share

Key = TypeVar("Key")


class Matched(NamedTuple):
    """right: both gold and predicted. gold, predicted: all there are of either."""

    right: int = 0
    gold: int = 0
    predicted: int = 0

    def plus(self, other: Matched) -> Matched:
        return Matched(self.right + other.right, self.gold + other.gold, self.predicted + other.predicted)


def pooled(counts: Iterable[Matched]) -> Matched:
    """The sum of all."""
    right = gold = predicted = 0
    for one in counts:
        right += one.right
        gold += one.gold
        predicted += one.predicted
    return Matched(right, gold, predicted)


@dataclass(frozen=True, slots=True)
class IntentCounts:
    """Of utterances annotated with intents (which may be none).

    overlaps: how many intents of an utterance are right, gold and predicted → utterances, from which come all figures
    averaged over samples. labels: of each intent seen. confusions: (gold, predicted) → utterances, of those with one
    intent on either side.
    """

    overlaps: Mapping[Matched, int] = field(default_factory=dict)
    labels: Mapping[str, Matched] = field(default_factory=dict)
    confusions: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def utterances(self) -> int:
        return sum(self.overlaps.values())

    @property
    def exact(self) -> Share:
        """Utterances whose whole set is right."""
        right = sum(n for one, n in self.overlaps.items() if one.right == one.gold == one.predicted)
        return Share(right, self.utterances)

    @property
    def empty(self) -> int:
        """Utterances for which no intent was predicted."""
        return sum(n for one, n in self.overlaps.items() if not one.predicted)

    @property
    def empty_rightly(self) -> int:
        """Of those, the ones that have none."""
        return sum(n for one, n in self.overlaps.items() if not one.predicted and not one.gold)

    def __add__(self, other: IntentCounts) -> IntentCounts:
        return _total_intents([self, other])


@dataclass(frozen=True, slots=True)
class SlotCounts:
    """Of utterances annotated with slots (which may be none).

    placed: utterances where both sides say where their slots stand; chunks are of those alone: concept → right in
    concept and place. concepts: each concept counts once an utterance (F1mh). edits: of the lists of concepts, an
    utterance being a sentence and a concept a word. frames: utterances annotated with intents too, and those of them
    with all intents right and the same list of concepts; frames_placed: the same over the placed ones, with all slots
    in their places.
    """

    utterances: int = 0
    placed: int = 0
    chunks: Mapping[str, Matched] = field(default_factory=dict)
    concepts: Mapping[str, Matched] = field(default_factory=dict)
    edits: WordCounts = field(default_factory=WordCounts)
    frames: Share = field(default_factory=Share)
    frames_placed: Share = field(default_factory=Share)

    def __add__(self, other: SlotCounts) -> SlotCounts:
        return _total_slots([self, other])


@dataclass(frozen=True, slots=True)
class FrameCounts:
    """Of some utterances; `FrameCounts()` is of none. valued: slots counted with their values, where both give them."""

    utterances: int = 0
    intents: IntentCounts = field(default_factory=IntentCounts)
    slots: SlotCounts = field(default_factory=SlotCounts)
    valued: SlotCounts = field(default_factory=SlotCounts)

    def __add__(self, other: FrameCounts) -> FrameCounts:
        return total([self, other])


def total(counts: Iterable[FrameCounts]) -> FrameCounts:
    """The sum of many, which is far quicker than to add one to another."""
    found = list(counts)
    return FrameCounts(
        sum(one.utterances for one in found),
        _total_intents([one.intents for one in found]),
        _total_slots([one.slots for one in found]),
        _total_slots([one.valued for one in found]),
    )


def _total_intents(counts: Sequence[IntentCounts]) -> IntentCounts:
    return IntentCounts(
        _sum_counts(one.overlaps for one in counts),
        _sum_matched(one.labels for one in counts),
        _sum_counts(one.confusions for one in counts),
    )


def _total_slots(counts: Sequence[SlotCounts]) -> SlotCounts:
    counts = [one for one in counts if one.utterances]
    return SlotCounts(
        sum(one.utterances for one in counts),
        sum(one.placed for one in counts),
        _sum_matched(one.chunks for one in counts),
        _sum_matched(one.concepts for one in counts),
        _sum_edits([one.edits for one in counts]),
        _sum_shares([one.frames for one in counts]),
        _sum_shares([one.frames_placed for one in counts]),
    )


def _sum_counts(counts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for one in counts:
        for key, count in one.items():
            found[key] = found.get(key, 0) + count
    return found


def _sum_matched(counts: Iterable[Mapping[str, Matched]]) -> dict[str, Matched]:
    found: dict[str, list[int]] = {}
    for one in counts:
        for key, (right, gold, predicted) in one.items():
            held = found.get(key)
            if held is None:
                found[key] = [right, gold, predicted]
            else:
                held[0] += right
                held[1] += gold
                held[2] += predicted
    return {key: Matched(*held) for key, held in found.items()}


def _sum_edits(counts: Sequence[WordCounts]) -> WordCounts:
    return WordCounts(
        sum(one.correct for one in counts),
        sum(one.substitutions for one in counts),
        sum(one.deletions for one in counts),
        sum(one.insertions for one in counts),
        sum(one.sentences for one in counts),
        sum(one.sentences_with_error for one in counts),
    )


def _sum_shares(counts: Sequence[Share]) -> Share:
    return Share(sum(one.count for one in counts), sum(one.total for one in counts))
