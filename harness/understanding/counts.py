"""Counts of predicted frames against gold. The counts of shards, added in any order, equal those of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, TypeVar

from harness.base.grouping import group_by
from harness.model.frozen import frozen
from harness.model.transcript import WordCounts
from harness.model.understanding import Chunking, Detail, Slot, Utterance
from harness.statistics.intervals import Share
from harness.transcripts.readings import plain_texts
from harness.understanding.entities import Entity, EntityCounts, count_entities
from harness.understanding.tag_chunks import OUTSIDE, chunks


class ValueRule(StrEnum):
    """How values are compared: not at all (NONE), as written, or in lower case without punctuation (PLAIN)."""

    NONE = "none"
    VERBATIM = "verbatim"
    PLAIN = "plain"


@frozen
class Rule:
    """How frames are compared.

    - chunking: how tags become slots. detail: with RELAX, the specifiers of concepts are dropped.
    - separator, attributes: of a concept that is an attribute, or begins with one and a separator, RELAX keeps the
      longest such attribute. Any other concept loses the part after its last separator.
    - values: how values are compared, for the metrics with values. A gold slot without a value matches any value.
    - spoken: whether the words of a slot are its value, if an utterance has tags and lists no slots.
    - ordered: False if slots have no order, as those of live devices. Both sides are then sorted by concept and value.
    - places: False if the words of the two sides differ, as in transcripts. Slot F1 is then n/a.
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
            raise ValueError("the specifier separator is empty")

    def concept(self, name: str) -> str:
        """The form of a concept in which it is compared."""
        if self.detail is Detail.FULL:
            return name
        prefixes = [prefix for prefix in self.attributes if name == prefix or name.startswith(prefix + self.separator)]
        if prefixes:
            return max(prefixes, key=len)
        attribute, _, _ = name.rpartition(self.separator)
        return attribute or name

    def value(self, text: str | None) -> str | None:
        """The form of a value in which it is compared; None if there is none."""
        if text is None or self.values is not ValueRule.PLAIN:
            return text
        return plain_texts([text])[0]


Key = TypeVar("Key")


class MatchCounts(NamedTuple):
    """Numbers of intents or slots. gold: all in gold. predicted: all predicted ones. right: those in both."""

    right: int = 0
    gold: int = 0
    predicted: int = 0


def pooled(counts: Iterable[MatchCounts]) -> MatchCounts:
    """The sum of all counts."""
    right = gold = predicted = 0
    for matched in counts:
        right += matched.right
        gold += matched.gold
        predicted += matched.predicted
    return MatchCounts(right, gold, predicted)


@frozen
class IntentCounts:
    """Counts of utterances annotated with intents (which may be none).

    - overlaps: number of utterances for each combination of right, gold and predicted intents. All averages over
      samples come from it.
    - labels: counts of each intent.
    - confusions: utterances by (gold, predicted), if each side has one.
    - unpredicted: number of utterances with no intent in gold and no prediction. They are never right, although
      `overlaps` counts them as empty on both sides.
    """

    overlaps: Mapping[MatchCounts, int] = field(default_factory=dict)
    labels: Mapping[str, MatchCounts] = field(default_factory=dict)
    confusions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    unpredicted: int = 0

    @property
    def utterances(self) -> int:
        return sum(self.overlaps.values())

    @property
    def judged_overlaps(self) -> Mapping[MatchCounts, int]:
        """As `overlaps`, for means over utterances: each of `unpredicted` misses an intent of gold."""
        if not self.unpredicted:
            return self.overlaps
        counts = Counter(self.overlaps)
        counts[MatchCounts(0, 1, 0)] += self.unpredicted
        counts[MatchCounts()] -= self.unpredicted
        return +counts  # without counts of 0

    @property
    def exact(self) -> Share:
        """Share of utterances whose whole set of intents is right."""
        overlaps = self.judged_overlaps
        right = sum(n for overlap, n in overlaps.items() if overlap.right == overlap.gold == overlap.predicted)
        return Share(right, self.utterances)

    @property
    def empty(self) -> int:
        """Number of utterances for which no intent was predicted, also without a prediction."""
        return sum(n for overlap, n in self.overlaps.items() if not overlap.predicted)

    @property
    def empty_rightly(self) -> int:
        """Number of those with a prediction that have no intent in gold either."""
        return self.overlaps.get(MatchCounts(), 0) - self.unpredicted

    @property
    def parts(self) -> tuple[Mapping[MatchCounts, int], Mapping[MatchCounts, int]] | None:
        """As `overlaps`, of the scenarios and of the actions of intents such as alarm_set.

        None if an utterance has several intents, or none in gold. Also None unless all intents of gold have this form,
        with several scenarios, of which at least one has several actions.
        """
        names = [_scenario_and_action(name) for name, matched in self.labels.items() if matched.gold]
        is_single = all(overlap.gold == 1 and overlap.predicted <= 1 for overlap in self.overlaps)
        if not is_single or not all(scenario and action for scenario, action in names):
            return None
        if not 1 < len({scenario for scenario, _ in names}) < len(names):
            return None
        return self.part_counts(0), self.part_counts(1)

    def part_counts(self, index: int) -> Mapping[MatchCounts, int]:
        """As `overlaps`, of the scenarios (index 0) or the actions (index 1) of single intents."""
        counts = Counter({MatchCounts(0, 1, 0): self.empty})
        for (gold, prediction), n in self.confusions.items():
            is_right = _scenario_and_action(gold)[index] == _scenario_and_action(prediction)[index]
            counts[MatchCounts(int(is_right), 1, 1)] += n
        return counts


def _scenario_and_action(intent: str) -> tuple[str, str]:
    """The parts of an intent such as alarm_set; without an underscore, the action is ""."""
    scenario, _, action = intent.partition("_")
    return scenario, action


@frozen
class SlotCounts:
    """Counts of utterances annotated with slots (which may be none).

    - placed: number of utterances with places of slots on both sides.
    - chunks: for each concept, the counts of slots, right in concept and place, over the placed utterances.
    - concepts: for each concept, its counts, at most once per utterance (F1mh).
    - multisets: as `overlaps`, of concepts, each as often as it occurs.
    - edits: errors of the aligned lists of concepts. An utterance counts as a sentence, a concept as a word.
    - frames: share of utterances with all intents and the list of concepts right, of those with annotated intents.
    - frames_placed: the same over the placed utterances, with all slots in their places.
    """

    utterances: int = 0
    placed: int = 0
    chunks: Mapping[str, MatchCounts] = field(default_factory=dict)
    concepts: Mapping[str, MatchCounts] = field(default_factory=dict)
    multisets: Mapping[MatchCounts, int] = field(default_factory=dict)
    edits: WordCounts = field(default_factory=WordCounts)
    frames: Share = field(default_factory=Share)
    frames_placed: Share = field(default_factory=Share)


@frozen
class FrameCounts:
    """Counts of utterances.

    - valued: counts of slots compared with their values, if both sides have values.
    - entities: number of utterances for each combination of counts for SLU-F1, over the same utterances as `valued`.
    - frames_tagged: share of utterances with all intents and all tags right, of those with tags and annotated intents.
    - queries: the counts of each query, if queries are named. An utterance may be a repetition of a query.
    """

    utterances: int = 0
    intents: IntentCounts = field(default_factory=IntentCounts)
    slots: SlotCounts = field(default_factory=SlotCounts)
    valued: SlotCounts = field(default_factory=SlotCounts)
    entities: Mapping[EntityCounts, int] = field(default_factory=dict)
    frames_tagged: Share = field(default_factory=Share)
    queries: Mapping[str, FrameCounts] = field(default_factory=dict)

    @property
    def clusters(self) -> tuple[FrameCounts, ...]:
        """The counts of each query, if these are the units of intervals: there are enough of them, and a query has
        several utterances. Else ()."""
        if not self.queries:
            return ()
        from harness.statistics.word_intervals import MIN_QUERIES  # imported here, since it loads numpy

        clusters = tuple(counts for _, counts in sorted(self.queries.items()))
        named = sum(counts.utterances for counts in clusters)
        return clusters if MIN_QUERIES <= len(clusters) < named == self.utterances else ()

    def __add__(self, other: FrameCounts) -> FrameCounts:
        return total([self, other])


def total(counts: Iterable[FrameCounts]) -> FrameCounts:
    """The sum of many. Much faster than repeated addition."""
    frames = list(counts)
    by_query = group_by(query for frame in frames for query in frame.queries.items())
    return FrameCounts(
        sum(frame.utterances for frame in frames),
        total_intents([frame.intents for frame in frames]),
        _total_slots([frame.slots for frame in frames]),
        _total_slots([frame.valued for frame in frames]),
        _sum_counts(frame.entities for frame in frames),
        _sum_shares([frame.frames_tagged for frame in frames]),
        {name: total(members) for name, members in by_query.items()},
    )


def total_intents(counts: Sequence[IntentCounts]) -> IntentCounts:
    """The sum of many, as `total`."""
    return IntentCounts(
        _sum_counts(intents.overlaps for intents in counts),
        _sum_matched(intents.labels for intents in counts),
        _sum_counts(intents.confusions for intents in counts),
        sum(intents.unpredicted for intents in counts),
    )


def _total_slots(counts: Sequence[SlotCounts]) -> SlotCounts:
    counts = [slots for slots in counts if slots.utterances]
    return SlotCounts(
        utterances=sum(slots.utterances for slots in counts),
        placed=sum(slots.placed for slots in counts),
        chunks=_sum_matched(slots.chunks for slots in counts),
        concepts=_sum_matched(slots.concepts for slots in counts),
        multisets=_sum_counts(slots.multisets for slots in counts),
        edits=WordCounts.total(slots.edits for slots in counts),
        frames=_sum_shares([slots.frames for slots in counts]),
        frames_placed=_sum_shares([slots.frames_placed for slots in counts]),
    )


def _sum_shares(shares: Sequence[Share]) -> Share:
    return Share(sum([share.count for share in shares]), sum([share.total for share in shares]))


def _sum_counts(counts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    totals: dict[Key, int] = {}
    for mapping in counts:
        for key, number in mapping.items():
            totals[key] = totals.get(key, 0) + number
    return totals


def _sum_matched(counts: Iterable[Mapping[str, MatchCounts]]) -> dict[str, MatchCounts]:
    totals: dict[str, list[int]] = {}
    for mapping in counts:
        for key, (right, gold, predicted) in mapping.items():
            sums = totals.get(key)
            if sums is None:
                totals[key] = [right, gold, predicted]
            else:
                sums[0] += right
                sums[1] += gold
                sums[2] += predicted
    return {key: MatchCounts(*sums) for key, sums in totals.items()}


ConceptValue = tuple[str, str | None]


class SlotItem(NamedTuple):
    """A slot in the form in which it is compared. place: start and end of its words; None if unknown."""

    concept: str
    value: str | None
    place: tuple[int, int] | None


def count_frame(gold: Utterance, predicted: Utterance, rule: Rule) -> FrameCounts:
    """The counts of one utterance. ValueError for an invalid tag.

    Intents or slots that gold is not annotated with are not counted. If the prediction lacks them, it counts as empty,
    but not as right where gold has no intent.
    """
    intents = IntentCounts() if gold.intents is None else count_intents(gold.intents, predicted.intents)
    intents_right = None if gold.intents is None else gold.intents == predicted.intents
    gold_slots = slot_items(gold, rule)
    if gold_slots is None:
        return FrameCounts(1, intents)
    # Most predictions are right, so equal slots are processed only once.
    slots_equal = _have_same_slots(gold, predicted, rule)
    bare_gold = _without_values(gold_slots)
    bare_predicted = bare_gold if slots_equal else _without_values(slot_items(predicted, rule) or ())
    places_compared = rule.places and _have_corresponding_places(gold, predicted)
    slots = _count_slots(bare_gold, bare_predicted, places_compared=places_compared, intents_right=intents_right)
    valued, entities = _NO_SLOTS, _NO_ENTITIES
    gold_slots = valued_slot_items(gold, rule)
    if gold_slots is not None:
        predicted_slots = gold_slots if slots_equal else valued_slot_items(predicted, rule) or ()
        if any(slot.value is None for slot in gold_slots):
            predicted_slots = _in_order(
                _without_free_values(gold_slots, predicted_slots, places_compared=places_compared), rule
            )
        valued = _count_slots(gold_slots, predicted_slots, places_compared=places_compared, intents_right=intents_right)
        gold_entities = _entities(gold_slots)
        predicted_entities = gold_entities if predicted_slots is gold_slots else _entities(predicted_slots)
        entities = {count_entities(gold_entities, predicted_entities): 1}
    return FrameCounts(1, intents, slots, valued, entities, _tagged_share(gold, predicted, rule, intents_right))


def _tagged_share(gold: Utterance, predicted: Utterance, rule: Rule, intents_right: bool | None) -> Share:
    """Whether intents and tags of an utterance are right, as a share of 1; of 0 if a side has slots without tags."""
    gold_tags, predicted_tags = gold.tags, predicted.tags
    if intents_right is None or gold_tags is None or not rule.places:
        return _NO_SHARE
    if predicted_tags is None and predicted.slots is not None:
        return _NO_SHARE
    if predicted_tags is None:
        predicted_tags = (OUTSIDE,) * len(gold_tags)
    tags_right = gold_tags == predicted_tags
    if intents_right and not tags_right:
        tags_right = [_relaxed_tag(tag, rule) for tag in gold_tags] == [
            _relaxed_tag(tag, rule) for tag in predicted_tags
        ]
    return _frame_share(intents_right, slots_right=tags_right)


@lru_cache(maxsize=4096)
def count_intents(gold: tuple[str, ...], prediction: tuple[str, ...] | None) -> IntentCounts:
    """The counts of one utterance. gold, prediction: its intents, each once; None if there is no prediction."""
    predicted = prediction or ()
    gold_set, predicted_set = set(gold), set(predicted)
    shared = gold_set & predicted_set
    labels = {
        name: MatchCounts(int(name in shared), int(name in gold_set), int(name in predicted_set))
        for name in sorted(gold_set | predicted_set)
    }
    confusions = {(gold[0], predicted[0]): 1} if len(gold) == len(predicted) == 1 else {}
    overlaps = {MatchCounts(len(shared), len(gold_set), len(predicted_set)): 1}
    return IntentCounts(overlaps, labels, confusions, int(prediction is None and not gold))


def slot_items(utterance: Utterance, rule: Rule) -> tuple[SlotItem, ...] | None:
    """The slots of an utterance in order, from its tags if it has some. None if it is not annotated."""
    if utterance.tags is None:
        return None if utterance.slots is None else _items_of_slots(utterance.slots, rule)
    # Specifiers are dropped before chunks are formed, as in a corpus that was written without them.
    tags = utterance.tags if rule.detail is Detail.FULL else [_relaxed_tag(tag, rule) for tag in utterance.tags]
    tag_chunks = chunks(tags, rule.chunking)
    if rule.spoken and utterance.words:
        words = utterance.words
        tagged_slots = [
            SlotItem(concept, rule.value(" ".join(words[start:end])), (start, end))
            for concept, start, end in tag_chunks
        ]
    else:
        tagged_slots = [SlotItem(concept, None, (start, end)) for concept, start, end in tag_chunks]
    return tuple(tagged_slots) if rule.ordered else _in_order(tagged_slots, rule)


def valued_slot_items(utterance: Utterance, rule: Rule) -> tuple[SlotItem, ...] | None:
    """The slots with their values, in order. None if the utterance has no values, or the rule ignores them."""
    if rule.values is ValueRule.NONE:
        return None
    if utterance.slots is not None:
        return _items_of_slots(utterance.slots, rule)
    return slot_items(utterance, rule) if rule.spoken else None


def _items_of_slots(slots: Sequence[Slot], rule: Rule) -> tuple[SlotItem, ...]:
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


def _without_values(slots: tuple[SlotItem, ...]) -> tuple[SlotItem, ...]:
    for _, value, _ in slots:
        if value is not None:
            return tuple(slot if slot.value is None else SlotItem(slot.concept, None, slot.place) for slot in slots)
    return slots


def _without_free_values(
    gold: Sequence[SlotItem], predicted: Sequence[SlotItem], *, places_compared: bool
) -> tuple[SlotItem, ...]:
    """The predicted slots, some of them without values: any value matches a gold slot without one.

    For each such slot of gold, one predicted slot loses its value. It is the one in its place, or else the nearest in
    the lists that no gold slot with a value equals.
    """
    slots = list(predicted)
    unmatched: Counter[ConceptValue] = Counter((slot.concept, slot.value) for slot in gold if slot.value is not None)
    unequal = []
    for index, slot in enumerate(slots):
        unmatched[slot.concept, slot.value] -= 1
        if unmatched[slot.concept, slot.value] < 0:
            unequal.append(index)
    for position, free_slot in enumerate(gold):
        if free_slot.value is not None:
            continue
        indices = []
        if places_compared and free_slot.place is not None:
            place_and_concept = free_slot.place, free_slot.concept
            indices = [index for index, slot in enumerate(slots) if (slot.place, slot.concept) == place_and_concept]
        indices = indices or [index for index in unequal if slots[index].concept == free_slot.concept]
        if indices:
            chosen = min(indices, key=lambda index: (slots[index].value is not None, abs(index - position)))
            slots[chosen] = slots[chosen]._replace(value=None)
            unequal = [index for index in unequal if index != chosen]
    return tuple(slots)


def _entities(slots: Sequence[SlotItem]) -> tuple[Entity, ...]:
    return tuple([(concept, value) for concept, value, _ in slots if value is not None])


def _relaxed_tag(tag: str, rule: Rule) -> str:
    return tag if tag == OUTSIDE else tag[:2] + rule.concept(tag[2:])


def _in_order(slots: Iterable[SlotItem], rule: Rule) -> tuple[SlotItem, ...]:
    ordered = list(slots)
    if not rule.ordered:
        ordered.sort(key=lambda slot: (slot.concept, slot.value or ""))
    elif all(slot.place for slot in ordered):
        ordered.sort(key=lambda slot: slot.place or (0, 0))
    return tuple(ordered)


def _have_same_slots(gold: Utterance, predicted: Utterance, rule: Rule) -> bool:
    """Whether both have the same tags or slots, so that they need to be processed only once."""
    return (
        gold.tags == predicted.tags
        and gold.slots == predicted.slots
        and (not rule.spoken or gold.words == predicted.words)
    )


def _have_corresponding_places(gold: Utterance, predicted: Utterance) -> bool:
    """Whether places of words have the same meaning in both, judged by the number of words."""
    return not gold.words or not predicted.words or len(gold.words) == len(predicted.words)


def _count_slots(
    gold: Sequence[SlotItem], predicted: Sequence[SlotItem], *, places_compared: bool, intents_right: bool | None
) -> SlotCounts:
    """The counts of one utterance's slots.

    - places_compared: whether places of words can be compared.
    - intents_right: None if the intents are not annotated.
    """
    gold_slots = tuple([(concept, value) for concept, value, _ in gold])
    placed = places_compared and _have_places(gold)
    if gold == predicted:
        return _all_right(gold_slots, placed, intents_right)
    placed = placed and _have_places(predicted)
    predicted_slots = tuple([(concept, value) for concept, value, _ in predicted])
    frames_placed = _NO_SHARE
    if placed:
        frames_placed = _frame_share(intents_right, slots_right=Counter(gold) == Counter(predicted))
    return SlotCounts(
        utterances=1,
        placed=int(placed),
        chunks=_match_counts(gold, predicted) if placed else {},
        concepts=_match_counts(list(dict.fromkeys(gold_slots)), list(dict.fromkeys(predicted_slots))),
        multisets={MatchCounts(_common_count(gold_slots, predicted_slots), len(gold_slots), len(predicted_slots)): 1},
        edits=_edits(gold_slots, predicted_slots),
        frames=_frame_share(intents_right, slots_right=gold_slots == predicted_slots),
        frames_placed=frames_placed,
    )


@lru_cache(maxsize=4096)
def _all_right(slots: tuple[ConceptValue, ...], placed: bool, intents_right: bool | None) -> SlotCounts:
    """The counts of slots that are all predicted correctly."""
    distinct = tuple(dict.fromkeys(slots))
    concepts = _all_matched_by_concept(distinct)
    chunk_counts = {}
    if placed:
        chunk_counts = concepts if len(distinct) == len(slots) else _all_matched_by_concept(slots)
    share = _frame_share(intents_right, slots_right=True)
    return SlotCounts(
        utterances=1,
        placed=int(placed),
        chunks=chunk_counts,
        concepts=concepts,
        multisets={_all_matched(len(slots)): 1},
        edits=_all_correct(len(slots)),
        frames=share,
        frames_placed=share if placed else _NO_SHARE,
    )


def _all_matched_by_concept(slots: Sequence[ConceptValue]) -> dict[str, MatchCounts]:
    numbers = Counter(concept for concept, _ in slots)
    return {concept: _all_matched(numbers[concept]) for concept in sorted(numbers)}


@lru_cache(maxsize=256)
def _all_matched(number: int) -> MatchCounts:
    return MatchCounts(number, number, number)


def _have_places(slots: Sequence[SlotItem]) -> bool:
    return None not in [place for _, _, place in slots]


_NO_SLOTS = SlotCounts()
_NO_ENTITIES: Mapping[EntityCounts, int] = {}
_NO_SHARE, _RIGHT, _WRONG = Share(), Share(1, 1), Share(0, 1)


def _frame_share(intents_right: bool | None, *, slots_right: bool) -> Share:
    if intents_right is None:
        return _NO_SHARE
    return _RIGHT if intents_right and slots_right else _WRONG


@lru_cache(maxsize=256)
def _all_correct(slots: int) -> WordCounts:
    from harness.transcripts.alignment import count  # imported here, so that --help does not load numpy

    return count("C" * slots)


@lru_cache(maxsize=4096)
def _edits(gold: tuple[ConceptValue, ...], predicted: tuple[ConceptValue, ...]) -> WordCounts:
    if gold == predicted:
        return _all_correct(len(gold))
    from harness.transcripts.alignment import align, count  # as above

    if not gold or not predicted:
        return count("D" * len(gold) + "I" * len(predicted))
    return count(align(*_as_words(gold, predicted)))


def _common_count(gold: Sequence[ConceptValue], predicted: Sequence[ConceptValue]) -> int:
    unmatched = list(gold)
    for slot in predicted:
        if slot in unmatched:
            unmatched.remove(slot)
    return len(gold) - len(unmatched)


def _as_words(gold: Sequence[ConceptValue], predicted: Sequence[ConceptValue]) -> tuple[list[str], list[str]]:
    """The slots of both sides as words, so that they can be aligned. Equal slots become equal words."""
    word = {slot: str(index) for index, slot in enumerate(dict.fromkeys([*gold, *predicted]))}
    return [word[slot] for slot in gold], [word[slot] for slot in predicted]


def _match_counts(
    gold: Sequence[SlotItem] | Sequence[ConceptValue], predicted: Sequence[SlotItem] | Sequence[ConceptValue]
) -> dict[str, MatchCounts]:
    """Counts by concept. A slot that occurs twice counts twice."""
    counts: dict[str, list[int]] = {}
    for slot in gold:
        counts.setdefault(slot[0], [0, 0, 0])[1] += 1
    unmatched = list(gold)
    for slot in predicted:
        concept_counts = counts.setdefault(slot[0], [0, 0, 0])
        concept_counts[2] += 1
        if slot in unmatched:
            unmatched.remove(slot)
            concept_counts[0] += 1
    return {concept: MatchCounts(*counts[concept]) for concept in sorted(counts)}
