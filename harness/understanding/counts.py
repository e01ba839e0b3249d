"""Frames counted against each other. Counts add up: those of shards, in any order, are the counts of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, TypeVar

from harness.model.transcript import WordCounts
from harness.model.understanding import Chunking, Detail, Slot, Utterance
from harness.statistics.intervals import Share
from harness.transcripts.readings import plain_texts

OUTSIDE = "O"


class TagChunk(NamedTuple):
    """A concept over words start to end, from 0, half open."""

    concept: str
    start: int
    end: int


def chunks(tags: Sequence[str], chunking: Chunking) -> tuple[TagChunk, ...]:
    """The chunks of one utterance's tags, in their order; ValueError at a tag that is not O, B-x or I-x.

    Under both readings a chunk goes on with I- of its own concept, and ends before anything else. They differ where
    an I- continues nothing: it begins a chunk for CONLLEVAL, and belongs to none for IOB2.
    Sources: conlleval.pl of the CoNLL-2000 task; Ramshaw & Marcus 1995 with B- on every first word.
    """
    loose = chunking is Chunking.CONLLEVAL
    found: list[TagChunk] = []
    concept, start = "", -1
    for at, tag in enumerate(tags):
        if tag == OUTSIDE:
            if start >= 0:
                found.append(TagChunk(concept, start, at))
                start = -1
            continue
        prefix, of = tag[:2], tag[2:]
        if prefix not in ("B-", "I-") or not of:
            raise ValueError(f"{tag!r} is no tag: O, B-concept or I-concept")
        if prefix == "I-" and start >= 0 and of == concept:
            continue
        if start >= 0:
            found.append(TagChunk(concept, start, at))
            start = -1
        if prefix == "B-" or loose:
            concept, start = of, at
    if start >= 0:
        found.append(TagChunk(concept, start, len(tags)))
    return tuple(found)


class ValueRule(StrEnum):
    """When two values are the same. NONE: values are not looked at. PLAIN: in lower case and without punctuation."""

    NONE = "none"
    VERBATIM = "verbatim"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Rule:
    """separator, attributes: how RELAX finds a specifier: the longest known attribute that the concept is, or begins
    with before a separator, stays; a concept of no known attribute loses what stands after its last separator.

    values: how they are compared, beside the figures without; a gold slot without value is right with any. spoken: the
    words of a slot are its value where an utterance has tags and lists no slots. ordered: False where
    slots have no order, as those of live devices: both sides are then ordered by concept and value. places: False
    where words of the two sides are not the same words, as in transcripts; slot F1 is then n/a.
    """

    chunking: Chunking = Chunking.CONLLEVAL
    detail: Detail = Detail.FULL
    separator: str = "-"
    attributes: tuple[str, ...] = ()
    values: ValueRule = ValueRule.VERBATIM
    spoken: bool = False
    ordered: bool = True
    places: bool = True

    def __post_init__(self) -> None:
        if not self.separator:
            raise ValueError("the separator of specifiers is empty")

    def concept(self, name: str) -> str:
        """A concept as it is compared."""
        if self.detail is Detail.FULL:
            return name
        known = [one for one in self.attributes if name == one or name.startswith(one + self.separator)]
        if known:
            return max(known, key=len)
        attribute, _, _ = name.rpartition(self.separator)
        return attribute or name

    def value(self, written: str | None) -> str | None:
        """A value as it is compared; None where none is given."""
        if written is None or self.values is not ValueRule.PLAIN:
            return written
        return plain_texts([written])[0]


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
        for key, number in one.items():
            found[key] = found.get(key, 0) + number
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


Bare = tuple[str, str | None]
"""Concept and value of a slot."""


class SlotItem(NamedTuple):
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


def items(utterance: Utterance, rule: Rule) -> tuple[SlotItem, ...] | None:
    """The slots of an utterance in their order, from its tags where it has some; None where it is not annotated."""
    if utterance.tags is None:
        return None if utterance.slots is None else _listed(utterance.slots, rule)
    # Specifiers go before chunks are told apart, as in a corpus that was written without them.
    tags = utterance.tags if rule.detail is Detail.FULL else [_relaxed(tag, rule) for tag in utterance.tags]
    found = chunks(tags, rule.chunking)
    if rule.spoken and utterance.words:
        words = utterance.words
        listed = [SlotItem(of, rule.value(" ".join(words[start:end])), (start, end)) for of, start, end in found]
    else:
        listed = [SlotItem(of, None, (start, end)) for of, start, end in found]
    return tuple(listed) if rule.ordered else _in_order(listed, rule)


def valued_items(utterance: Utterance, rule: Rule) -> tuple[SlotItem, ...] | None:
    """The slots with their values, in their order; None where the utterance gives none, or the rule asks for none."""
    if rule.values is ValueRule.NONE:
        return None
    if utterance.slots is not None:
        return _listed(utterance.slots, rule)
    return items(utterance, rule) if rule.spoken else None


def _listed(slots: Sequence[Slot], rule: Rule) -> tuple[SlotItem, ...]:
    return _in_order(
        (
            SlotItem(
                rule.concept(slot.concept),
                rule.value(slot.value),
                None if slot.start is None or slot.end is None else (slot.start, slot.end),
            )
            for slot in slots
        ),
        rule,
    )


def _bare(found: tuple[SlotItem, ...]) -> tuple[SlotItem, ...]:
    for _, value, _ in found:
        if value is not None:
            return tuple(one if one.value is None else SlotItem(one.concept, None, one.place) for one in found)
    return found


def _without_values(found: Sequence[SlotItem], concepts: Set[str]) -> tuple[SlotItem, ...]:
    return tuple(one._replace(value=None) if one.concept in concepts else one for one in found)


def _relaxed(tag: str, rule: Rule) -> str:
    return tag if tag == OUTSIDE else tag[:2] + rule.concept(tag[2:])


def _in_order(found: Iterable[SlotItem], rule: Rule) -> tuple[SlotItem, ...]:
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


def _count_slots(
    gold: Sequence[SlotItem], predicted: Sequence[SlotItem], *, placed: bool, right: bool | None
) -> SlotCounts:
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


def _have_places(found: Sequence[SlotItem]) -> bool:
    return None not in [place for _, _, place in found]


_NO_SLOTS = SlotCounts()
_NONE, _RIGHT, _WRONG = Share(), Share(1, 1), Share(0, 1)


def _one(intents: bool | None, slots: bool) -> Share:
    return _NONE if intents is None else _RIGHT if intents and slots else _WRONG


@lru_cache(maxsize=256)
def _all_correct(slots: int) -> WordCounts:
    from harness.transcripts.alignment import count  # here, since a verb's help needs no arrays

    return count("C" * slots)


@lru_cache(maxsize=4096)
def _edits(gold: tuple[Bare, ...], predicted: tuple[Bare, ...]) -> WordCounts:
    if gold == predicted:
        return _all_correct(len(gold))
    from harness.transcripts.alignment import align, count  # as above

    if not gold or not predicted:
        return count("D" * len(gold) + "I" * len(predicted))
    return count(align(*_words(gold, predicted)))


def _words(gold: Sequence[Bare], predicted: Sequence[Bare]) -> tuple[list[str], list[str]]:
    """A word for each slot; equal slots have equal words."""
    word = {one: str(at) for at, one in enumerate(dict.fromkeys([*gold, *predicted]))}
    return [word[one] for one in gold], [word[one] for one in predicted]


def _matched(
    gold: Sequence[SlotItem] | Sequence[Bare], predicted: Sequence[SlotItem] | Sequence[Bare]
) -> dict[str, Matched]:
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
