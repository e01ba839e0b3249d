"""One utterance's frame against another, as counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.metrics.alignment import align, count
from harness.metrics.intervals import Share
from harness.metrics.understanding.chunks import OUTSIDE, chunks
from harness.metrics.understanding.counts import FrameCounts, IntentCounts, Matched, SlotCounts
from harness.metrics.understanding.rule import Rule, Values
from harness.model.understanding import Utterance


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
    heard = items(predicted, rule) or ()
    placed = rule.places and _same_words(gold, predicted)
    slots = _count_slots(of, heard, placed=placed, right=right, valued=False)
    valued = SlotCounts()
    if rule.values is not Values.NONE and gold.slots is not None:
        of, heard = listed(gold, rule), listed(predicted, rule)
        if _all_valued(of) and _all_valued(heard) and (of or heard):
            valued = _count_slots(of, heard, placed=placed, right=right, valued=True)
    return FrameCounts(1, intents, slots, valued)


def count_intents(gold: Sequence[str], predicted: Sequence[str]) -> IntentCounts:
    """Of one utterance; both are sets, each intent once."""
    of, said = set(gold), set(predicted)
    both = of & said
    labels = {one: Matched(int(one in both), int(one in of), int(one in said)) for one in sorted(of | said)}
    confusions = {(gold[0], predicted[0]): 1} if len(gold) == len(predicted) == 1 else {}
    return IntentCounts({Matched(len(both), len(of), len(said)): 1}, labels, confusions)


def items(utterance: Utterance, rule: Rule) -> tuple[Item, ...] | None:
    """The slots of an utterance in their order, from its tags where it has some; None where it is not annotated."""
    if utterance.tags is not None:
        found = (
            Item(rule.concept(one.concept), None, (one.start, one.end)) for one in chunks(utterance.tags, rule.chunking)
        )
        return _in_order(found, rule)
    return None if utterance.slots is None else listed(utterance, rule)


def listed(utterance: Utterance, rule: Rule) -> tuple[Item, ...]:
    """The slots that an utterance lists, with their values, in their order."""
    found = (
        Item(
            rule.concept(slot.concept),
            rule.value(slot.value),
            None if slot.start is None or slot.end is None else (slot.start, slot.end),
        )
        for slot in utterance.slots or ()
    )
    return _in_order(found, rule)


def _relaxed(tag: str, rule: Rule) -> str:
    return tag if tag == OUTSIDE else tag[:2] + rule.concept(tag[2:])


def _in_order(found: Iterable[Item], rule: Rule) -> tuple[Item, ...]:
    listed_ = list(found)
    if not rule.ordered:
        listed_.sort(key=lambda one: (one.concept, one.value or ""))
    elif all(one.place for one in listed_):
        listed_.sort(key=lambda one: one.place or (0, 0))
    return tuple(listed_)


def _same_words(gold: Utterance, predicted: Utterance) -> bool:
    """Whether places in one are places in the other, as far as their words tell."""
    return not gold.words or not predicted.words or len(gold.words) == len(predicted.words)


def _all_valued(found: Sequence[Item]) -> bool:
    return all(one.value is not None for one in found)


def _count_slots(
    gold: Sequence[Item], predicted: Sequence[Item], *, placed: bool, right: bool | None, valued: bool
) -> SlotCounts:
    placed = placed and all(one.place for one in gold) and all(one.place for one in predicted)
    of = [Item(one.concept, one.value if valued else None, None) for one in gold]
    said = [Item(one.concept, one.value if valued else None, None) for one in predicted]
    where: dict[str, Matched] = {}
    frames_placed = Share()
    if placed:
        in_place = Counter(one._replace(place=slot.place) for one, slot in zip(of, gold, strict=True))
        said_there = Counter(one._replace(place=slot.place) for one, slot in zip(said, predicted, strict=True))
        where = _matched(in_place, said_there)
        if right is not None:
            frames_placed = Share(int(right and in_place == said_there), 1)
    return SlotCounts(
        1,
        int(placed),
        where,
        _matched(Counter(set(of)), Counter(set(said))),
        count("C" * len(of) if of == said else align(*_words(of, said))),
        Share() if right is None else Share(int(right and of == said), 1),
        frames_placed,
    )


def _words(gold: Sequence[Item], predicted: Sequence[Item]) -> tuple[list[str], list[str]]:
    """A word for each slot; equal slots have equal words."""
    word = {one: str(at) for at, one in enumerate(dict.fromkeys([*gold, *predicted]))}
    return [word[one] for one in gold], [word[one] for one in predicted]


def _matched(gold: Counter[Item], predicted: Counter[Item]) -> dict[str, Matched]:
    """By concept, whatever the values are."""
    counts: dict[str, Matched] = {}
    for one in gold.keys() | predicted.keys():
        there, said = gold[one], predicted[one]
        counts[one.concept] = counts.get(one.concept, Matched()).plus(Matched(min(there, said), there, said))
    return dict(sorted(counts.items()))
