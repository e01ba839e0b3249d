"""One utterance's frame against another, as counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from harness.model.transcript import WordCounts
from harness.model.understanding import Detail, Slot, Utterance
from harness.statistics.intervals import Share
from harness.transcripts.alignment import align, count
from harness.understanding.arithmetic.chunks import OUTSIDE, chunks
from harness.understanding.arithmetic.counts import FrameCounts, IntentCounts, Matched, SlotCounts
from harness.understanding.arithmetic.rule import Rule, Values

Bare = tuple[str, str | None]
"""Concept and value of a slot."""


class Item(NamedTuple):
    """A slot as it is compared. place: of its words, None where it has none."""

    concept: str
    value: str | None
    place: tuple[int, int] | None


def count_frame(gold: Utterance, predicted: Utterance, rule: Rule) -> FrameCounts:
    """The counts of one utterance; ValueError at a tag that is none.

    What gold is not annotated with is not counted. What the prediction does not have, intents or slots, is counted as
    predicted to be none.
    """
    said = predicted.intents or ()
    intents = IntentCounts() if gold.intents is None else count_intents(gold.intents, said)
    right = None if gold.intents is None else gold.intents == said
    of = items(gold, rule)
    if of is None:
        return FrameCounts(1, intents)
    # Most predictions are right: what is the same is read once.
    same = _same_slots(gold, predicted, rule)
    bare = _bare(of)
    placed = rule.places and _same_words(gold, predicted)
    slots = _count_slots(bare, bare if same else _bare(items(predicted, rule) or ()), placed=placed, right=right)
    valued = _NO_SLOTS
    of = valued_items(gold, rule)
    if of is not None:
        heard = of if same else valued_items(predicted, rule) or ()
        free = {one.concept for one in of if one.value is None}
        if free:
            of, heard = _without_values(of, free), _without_values(heard, free)
        valued = _count_slots(of, heard, placed=placed, right=right)
    return FrameCounts(1, intents, slots, valued)


def count_intents(gold: Sequence[str], predicted: Sequence[str]) -> IntentCounts:
    """Of one utterance; both are sets, each intent once."""
    return _count_intents(tuple(gold), tuple(predicted))


@lru_cache(maxsize=4096)
def _count_intents(gold: tuple[str, ...], predicted: tuple[str, ...]) -> IntentCounts:
    of, said = set(gold), set(predicted)
    both = of & said
    labels = {one: Matched(int(one in both), int(one in of), int(one in said)) for one in sorted(of | said)}
    confusions = {(gold[0], predicted[0]): 1} if len(gold) == len(predicted) == 1 else {}
    return IntentCounts({Matched(len(both), len(of), len(said)): 1}, labels, confusions)


def items(utterance: Utterance, rule: Rule) -> tuple[Item, ...] | None:
    """The slots of an utterance in their order, from its tags where it has some; None where it is not annotated."""
    if utterance.tags is None:
        return None if utterance.slots is None else _listed(utterance.slots, rule)
    # Specifiers go before chunks are told apart, as in a corpus that was written without them.
    tags = utterance.tags if rule.detail is Detail.FULL else [_relaxed(tag, rule) for tag in utterance.tags]
    found = chunks(tags, rule.chunking)
    if rule.spoken and utterance.words:
        words = utterance.words
        listed = [Item(of, rule.value(" ".join(words[start:end])), (start, end)) for of, start, end in found]
    else:
        listed = [Item(of, None, (start, end)) for of, start, end in found]
    return tuple(listed) if rule.ordered else _in_order(listed, rule)


def valued_items(utterance: Utterance, rule: Rule) -> tuple[Item, ...] | None:
    """The slots with their values, in their order; None where the utterance gives none, or the rule asks for none."""
    if rule.values is Values.NONE:
        return None
    if utterance.slots is not None:
        return _listed(utterance.slots, rule)
    return items(utterance, rule) if rule.spoken else None


def _listed(slots: Sequence[Slot], rule: Rule) -> tuple[Item, ...]:
    return _in_order(
        (
            Item(
                rule.concept(slot.concept),
                rule.value(slot.value),
                None if slot.start is None or slot.end is None else (slot.start, slot.end),
            )
            for slot in slots
        ),
        rule,
    )


def _bare(found: tuple[Item, ...]) -> tuple[Item, ...]:
    for _, value, _ in found:
        if value is not None:
            return tuple(one if one.value is None else Item(one.concept, None, one.place) for one in found)
    return found


def _without_values(found: Sequence[Item], concepts: Set[str]) -> tuple[Item, ...]:
    return tuple(one._replace(value=None) if one.concept in concepts else one for one in found)


def _relaxed(tag: str, rule: Rule) -> str:
    return tag if tag == OUTSIDE else tag[:2] + rule.concept(tag[2:])


def _in_order(found: Iterable[Item], rule: Rule) -> tuple[Item, ...]:
    listed_ = list(found)
    if not rule.ordered:
        listed_.sort(key=lambda one: (one.concept, one.value or ""))
    elif all(one.place for one in listed_):
        listed_.sort(key=lambda one: one.place or (0, 0))
    return tuple(listed_)


def _same_slots(gold: Utterance, predicted: Utterance, rule: Rule) -> bool:
    """Whether both say the same of slots, so that they read the same."""
    return (
        gold.tags == predicted.tags
        and gold.slots == predicted.slots
        and (not rule.spoken or gold.words == predicted.words)
    )


def _same_words(gold: Utterance, predicted: Utterance) -> bool:
    """Whether places in one are places in the other, as far as their words tell."""
    return not gold.words or not predicted.words or len(gold.words) == len(predicted.words)


def _count_slots(gold: Sequence[Item], predicted: Sequence[Item], *, placed: bool, right: bool | None) -> SlotCounts:
    """right: whether the intents are; None where they are not annotated."""
    of = tuple([(concept, value) for concept, value, _ in gold])
    placed = placed and _have_places(gold)
    if gold == predicted:
        return _all_right(of, placed, right)
    placed = placed and _have_places(predicted)
    said = tuple([(concept, value) for concept, value, _ in predicted])
    return SlotCounts(
        1,
        int(placed),
        _matched(gold, predicted) if placed else {},
        _matched(list(dict.fromkeys(of)), list(dict.fromkeys(said))),
        _edits(of, said),
        _one(right, of == said),
        _one(right, Counter(gold) == Counter(predicted)) if placed else _NONE,
    )


@lru_cache(maxsize=4096)
def _all_right(found: tuple[Bare, ...], placed: bool, right: bool | None) -> SlotCounts:
    """Of slots that are predicted as they are."""
    once = tuple(dict.fromkeys(found))
    concepts = _right(once)
    share = _one(right, True)
    return SlotCounts(
        1,
        int(placed),
        {} if not placed else concepts if len(once) == len(found) else _right(found),
        concepts,
        _all_correct(len(found)),
        share,
        share if placed else _NONE,
    )


def _right(found: Sequence[Bare]) -> dict[str, Matched]:
    numbers: dict[str, int] = {}
    for concept, _ in found:
        numbers[concept] = numbers.get(concept, 0) + 1
    return {concept: _so_often(numbers[concept]) for concept in sorted(numbers)}


@lru_cache(maxsize=256)
def _so_often(number: int) -> Matched:
    return Matched(number, number, number)


def _have_places(found: Sequence[Item]) -> bool:
    return None not in [place for _, _, place in found]


_NO_SLOTS = SlotCounts()
_NONE, _RIGHT, _WRONG = Share(), Share(1, 1), Share(0, 1)


def _one(intents: bool | None, slots: bool) -> Share:
    return _NONE if intents is None else _RIGHT if intents and slots else _WRONG


@lru_cache(maxsize=256)
def _all_correct(slots: int) -> WordCounts:
    return count("C" * slots)


@lru_cache(maxsize=4096)
def _edits(gold: tuple[Bare, ...], predicted: tuple[Bare, ...]) -> WordCounts:
    if gold == predicted:
        return _all_correct(len(gold))
    if not gold or not predicted:
        return count("D" * len(gold) + "I" * len(predicted))
    return count(align(*_words(gold, predicted)))


def _words(gold: Sequence[Bare], predicted: Sequence[Bare]) -> tuple[list[str], list[str]]:
    """A word for each slot; equal slots have equal words."""
    word = {one: str(at) for at, one in enumerate(dict.fromkeys([*gold, *predicted]))}
    return [word[one] for one in gold], [word[one] for one in predicted]


def _matched(gold: Sequence[Item] | Sequence[Bare], predicted: Sequence[Item] | Sequence[Bare]) -> dict[str, Matched]:
    """By concept, whatever the values are; what is there twice counts twice."""
    counts: dict[str, list[int]] = {}
    for one in gold:
        of = counts.get(one[0])
        if of is None:
            counts[one[0]] = [0, 1, 0]
        else:
            of[1] += 1
    left = list(gold)
    for one in predicted:
        of = counts.setdefault(one[0], [0, 0, 0])
        of[2] += 1
        if one in left:
            left.remove(one)
            of[0] += 1
    return {concept: Matched(*counts[concept]) for concept in sorted(counts)}
