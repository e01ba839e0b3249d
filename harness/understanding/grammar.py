"""Grammars of annotated utterances, and corpora generated from grammars and a seed, the same on every machine.

Generation uses only `random.Random.random`, whose numbers Python promises to keep. Each split has its own generator.
No sentence occurs twice in any split.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate
from random import Random
from typing import TypeVar

from harness.model.choices import SPLIT
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.understanding import Corpus, Slot, Utterance, joined


@frozen
class TextPart:
    """Words that are always said."""

    words: tuple[str, ...]


@frozen
class SequencePart:
    """Parts that are said one after the other."""

    parts: tuple[Part, ...]


@frozen
class AlternativePart:
    """One of several alternatives, all equally likely."""

    options: tuple[Part, ...]


@frozen
class OptionalPart:
    """An optional part, said half of the time."""

    part: Part


@frozen
class PhrasePart:
    """A named part that several sentences share."""

    name: str


@frozen
class SlotPart:
    """A slot of this concept, with a value from a list. values: name of the list."""

    concept: str
    values: str


Part = TextPart | SequencePart | AlternativePart | OptionalPart | PhrasePart | SlotPart


class SpokenKind(StrEnum):
    """Kinds of numbers that are spoken as words. Their values are digits.

    - NUMBER: "twenty five" is 25.
    - ORDINAL: "third" is 3.
    - TIME: "half past seven" is 7:30, and with "pm" 19:30.
    """

    NUMBER = "number"
    ORDINAL = "ordinal"
    TIME = "time"


@frozen
class Value:
    """A value of a slot.

    - words: its words.
    - value: its normalised form; None if that is the words.
    - weight: relative frequency in its list.
    """

    words: tuple[str, ...]
    value: str | None = None
    weight: float = 1.0


@frozen
class ValueList:
    """A list of values.

    - unseen: values that occur only in the test split.
    - unseen_share: share of the list's slots there that have such a value.
    """

    name: str
    values: tuple[Value, ...]
    unseen: tuple[Value, ...] = ()
    unseen_share: float = 0.0


@frozen
class Sentence:
    """A pattern.

    - weight: relative frequency in its intent.
    - unseen: whether it occurs only in the test split.
    """

    part: Part
    weight: float
    unseen: bool
    place: Place


@frozen
class GrammarIntent:
    """Sentences that mean the same.

    - label: one or several intents, as in `Utterance.intents`.
    - weight: relative frequency in its grammar.
    - alone: whether it is never joined with another one.
    """

    label: tuple[str, ...]
    weight: float
    alone: bool
    sentences: tuple[Sentence, ...]
    place: Place


@frozen
class Habits:
    """How people speak. Shares are of utterances, 0–1; after each share, the words that go with it.

    - two_intents: share with two intents, which one of `connectives` joins.
    - hesitant: share with one of `hesitations`.
    - false_starts: share whose beginning is said twice, with or without one of `restarts` between.
    - corrected: share with a corrected value, after one of `corrections`.
    """

    two_intents: float = 0.14
    connectives: tuple[tuple[str, ...], ...] = (("and",),)
    hesitant: float = 0.0
    hesitations: tuple[tuple[str, ...], ...] = ()
    false_starts: float = 0.0
    restarts: tuple[tuple[str, ...], ...] = ()
    corrected: float = 0.0
    corrections: tuple[tuple[str, ...], ...] = ()


@frozen
class Grammar:
    """A domain.

    - weight: relative frequency in the corpus.
    - phrases: parts by name, for PhrasePart.
    - path: file of the grammar, for errors.
    """

    name: str
    weight: float
    values: tuple[ValueList, ...]
    phrases: tuple[tuple[str, Part], ...]
    intents: tuple[GrammarIntent, ...]
    habits: Habits
    path: str


DOMAIN = "domain"
TEST = "test"
MAX_TRIES = 30
"""Number of tries to draw a new sentence for the same intents, and to draw a second intent."""
MAX_VAIN_DRAWS = 400
"""Most draws without a new sentence in a split, in addition to a fifth of its size."""
MAX_FALSE_START_WORDS = 3
"""Number of words at the beginning of an utterance that are said twice."""
T = TypeVar("T")


@frozen
class _Words:
    """Words of one slot, or words outside of slots (concept ""). value_list: name of the slot's list of values."""

    words: tuple[str, ...]
    concept: str = ""
    value: str = ""
    value_list: str = ""


def generate(grammars: Sequence[Grammar], seed: int, sizes: Mapping[str, int]) -> Corpus:
    """A corpus with intents, tags, slots with values, and the groups `split` and `domain`. Ids are `split/number`.

    sizes: number of utterances of each split, in the order of generation.

    Unseen values and patterns occur only in `test`. No sentence occurs twice in any split. Raises InputError if the
    grammars cannot give enough different sentences.
    """
    sources = [_Source(grammar) for grammar in grammars]
    utterances: list[Utterance] = []
    sentences: set[tuple[str, ...]] = set()
    for split, size in sizes.items():
        if size:
            utterances += _generate_split(sources, Random(f"{seed}/{split}"), split, size, sentences)
    return Corpus(" ".join(grammar.path for grammar in grammars), tuple(utterances))


def fingerprint(corpus: Corpus) -> str:
    """sha256 over the ids, words, intents and tags of a corpus."""
    digest = hashlib.sha256()
    for utterance in corpus.utterances:
        row = (utterance.id, utterance.text, joined(utterance.intents or ()), " ".join(utterance.tags or ()))
        digest.update(("\t".join(row) + "\n").encode())
    return digest.hexdigest()


def _generate_split(
    sources: Sequence[_Source], random: Random, split: str, size: int, sentences: set[tuple[str, ...]]
) -> list[Utterance]:
    """The utterances of a split. Adds their words to `sentences`, the words of all splits so far."""
    utterances: list[Utterance] = []
    weights = tuple(accumulate(source.grammar.weight for source in sources))
    vain_draws = 0
    while len(utterances) < size:
        source = _choose_weighted(random, sources, weights)
        drawn = source.draw_utterance(
            random, unseen=split == TEST, is_new=lambda words: bool(words) and words not in sentences
        )
        if drawn is None:
            vain_draws += 1
            if vain_draws > MAX_VAIN_DRAWS + size // 5:
                problem = f"the grammars yield only about {len(sentences):,} different sentences"
                raise InputError(problem, place=Place(" ".join(source.grammar.path for source in sources)),
                                 remedy="Add patterns or values, or generate fewer utterances")  # fmt: skip
            continue
        groups = ((SPLIT, split), (DOMAIN, source.grammar.name))
        utterances.append(_build_utterance(*drawn, f"{split}/{len(utterances) + 1}", groups))
        sentences.add(utterances[-1].words)
    return utterances


def _build_utterance(
    intents: tuple[str, ...], runs: Sequence[_Words], id_: str, groups: tuple[tuple[str, str], ...]
) -> Utterance:
    """The utterance of some runs of words, with a tag for each word and a slot for each run of a concept."""
    words: list[str] = []
    tags: list[str] = []
    slots: list[Slot] = []
    for run in runs:
        start = len(words)
        words += run.words
        if run.concept:
            tags += [f"B-{run.concept}", *[f"I-{run.concept}"] * (len(run.words) - 1)]
            slots.append(Slot(run.concept, run.value, start, len(words)))
        else:
            tags += ["O"] * len(run.words)
    return Utterance(id_, tuple(words), intents, tuple(tags), tuple(slots), groups)


class _Source:
    """Draws utterances of one grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._phrases = dict(grammar.phrases)
        self._values = {value_list.name: value_list for value_list in grammar.values}
        self._intent_weights = tuple(accumulate(intent.weight for intent in grammar.intents))
        self._joinable = [intent for intent in grammar.intents if not intent.alone]
        self._joinable_weights = tuple(accumulate(intent.weight for intent in self._joinable))
        self._value_weights: dict[tuple[str, bool], tuple[float, ...]] = {}

    def draw_utterance(
        self, random: Random, *, unseen: bool, is_new: Callable[[tuple[str, ...]], bool]
    ) -> tuple[tuple[str, ...], tuple[_Words, ...]] | None:
        """Draws intents, and an utterance with them that is new. None if none of MAX_TRIES tries gave a new one.

        is_new: whether words have not occurred yet.
        """
        habits = self.grammar.habits
        second: GrammarIntent | None = None
        if len(self._joinable) > 1 and random.random() < habits.two_intents:
            first = _choose_weighted(random, self._joinable, self._joinable_weights)
            second = self._second_intent(random, first)
        else:
            first = _choose_weighted(random, self.grammar.intents, self._intent_weights)
        for _ in range(MAX_TRIES):
            runs = self._sentence(random, first, unseen)
            if second is not None:
                runs += (_Words(_choose(random, habits.connectives)), *self._sentence(random, second, unseen))
            runs = self._with_habits(random, runs, unseen)
            if is_new(tuple(word for run in runs for word in run.words)):
                intents = first.label if second is None else (*first.label, *second.label)
                return tuple(sorted(set(intents))), runs
        return None

    def _second_intent(self, random: Random, first: GrammarIntent) -> GrammarIntent | None:
        """Another intent that can be joined with the first; None if there is none."""
        for _ in range(MAX_TRIES):
            second = _choose_weighted(random, self._joinable, self._joinable_weights)
            if not set(second.label) & set(first.label):
                return second
        return None

    def _sentence(self, random: Random, intent: GrammarIntent, unseen: bool) -> tuple[_Words, ...]:
        sentences: list[Sentence] = [sentence for sentence in intent.sentences if unseen or not sentence.unseen]
        chosen = _choose_weighted(random, sentences, tuple(accumulate(sentence.weight for sentence in sentences)))
        return tuple(self._runs(random, chosen.part, unseen))

    def _runs(self, random: Random, part: Part, unseen: bool) -> list[_Words]:
        match part:
            case TextPart(words):
                return [_Words(words)]
            case SequencePart(inner):
                return [run for subpart in inner for run in self._runs(random, subpart, unseen)]
            case AlternativePart(options):
                return self._runs(random, _choose(random, options), unseen)
            case OptionalPart(inner_part):
                return self._runs(random, inner_part, unseen) if random.random() < 0.5 else []
            case PhrasePart(name):
                return self._runs(random, self._phrases[name], unseen)
            case SlotPart(concept, values):
                return [self._slot(random, concept, values, unseen)]

    def _slot(self, random: Random, concept: str, name: str, unseen: bool) -> _Words:
        value_list = self._values[name]
        uses_unseen = unseen and value_list.unseen_share > 0 and random.random() < value_list.unseen_share
        values: tuple[Value, ...] = value_list.unseen if uses_unseen else value_list.values
        key = (name, uses_unseen)
        if key not in self._value_weights:
            self._value_weights[key] = tuple(accumulate(value.weight for value in values))
        value = _choose_weighted(random, values, self._value_weights[key])
        return _Words(value.words, concept, value.value if value.value is not None else " ".join(value.words), name)

    def _with_habits(self, random: Random, runs: tuple[_Words, ...], unseen: bool) -> tuple[_Words, ...]:
        """The utterance as people speak: some with a correction, a false start or a hesitation, in this order."""
        habits = self.grammar.habits
        if random.random() < habits.corrected:
            runs = self._with_correction(random, runs, unseen)
        if random.random() < habits.false_starts:
            runs = _with_false_start(random, runs, habits.restarts)
        if habits.hesitations and random.random() < habits.hesitant:
            runs = _with_hesitation(random, runs, habits.hesitations)
        return runs

    def _with_correction(self, random: Random, runs: tuple[_Words, ...], unseen: bool) -> tuple[_Words, ...]:
        """The utterance with a wrong value before a slot, which the speaker corrects. The wrong value is not a slot."""
        slots = [index for index, run in enumerate(runs) if run.concept]
        if not slots:
            return runs
        index = _choose(random, slots)
        wrong_slot = self._slot(random, runs[index].concept, runs[index].value_list, unseen)
        if wrong_slot.words == runs[index].words:
            return runs
        correction = (_Words(wrong_slot.words), _Words(_choose(random, self.grammar.habits.corrections)))
        return (*runs[:index], *correction, *runs[index:])


def _with_false_start(
    random: Random, runs: tuple[_Words, ...], restarts: Sequence[tuple[str, ...]]
) -> tuple[_Words, ...]:
    """The utterance with its first words said twice. The first time, they are not slots."""
    words = [word for run in runs for word in run.words]
    if len(words) < 2:
        return runs
    start = words[: 1 + _draw_below(random, min(MAX_FALSE_START_WORDS, len(words) - 1))]
    between = _choose(random, restarts) if random.random() < 0.5 else ()
    return (_Words((*start, *between)), *runs)


def _with_hesitation(
    random: Random, runs: tuple[_Words, ...], hesitations: Sequence[tuple[str, ...]]
) -> tuple[_Words, ...]:
    """The utterance with a hesitation before one of its words, but not within a slot."""
    places = [(index, word) for index, run in enumerate(runs) for word in range(1 if run.concept else len(run.words))]
    if not places:
        return runs
    index, word = _choose(random, places)
    hesitation = _Words(_choose(random, hesitations))
    run = runs[index]
    split = (hesitation, run) if word == 0 else (_Words(run.words[:word]), hesitation, _Words(run.words[word:]))
    return (*runs[:index], *split, *runs[index + 1 :])


def _draw_below(random: Random, number: int) -> int:
    """A random number from 0 to number − 1."""
    return int(random.random() * number)


def _choose(random: Random, items: Sequence[T]) -> T:
    return items[_draw_below(random, len(items))]


def _choose_weighted(random: Random, items: Sequence[T], sums: Sequence[float]) -> T:
    """One of the items, drawn by weight. sums: cumulative weights of the items."""
    return items[min(bisect_right(sums, random.random() * sums[-1]), len(sums) - 1)]
