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

from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.understanding import Corpus, Slot, Utterance, joined


@frozen
class SaidText:
    """Fixed words."""

    words: tuple[str, ...]


@frozen
class InTurn:
    """A sequence of parts."""

    parts: tuple[Part, ...]


@frozen
class OneOf:
    """One of several alternatives, all equally likely."""

    options: tuple[Part, ...]


@frozen
class Maybe:
    """An optional part, said half of the time."""

    part: Part


@frozen
class PhraseUse:
    """A named part that several sentences share."""

    name: str


@frozen
class SlotPart:
    """A slot of this concept, with a value of a list."""

    concept: str
    values: str


Part = SaidText | InTurn | OneOf | Maybe | PhraseUse | SlotPart


class SpokenKind(StrEnum):
    """Kinds of numbers that are spoken as words. Their values are digits.

    NUMBER: "twenty five" is 25. ORDINAL: "third" is 3. TIME: "half past seven" is 7:30, and with "pm" 19:30.
    """

    NUMBER = "number"
    ORDINAL = "ordinal"
    TIME = "time"


@frozen
class Value:
    """Words of a value. value: its normalised form; None is the words. weight: relative frequency in its list."""

    words: tuple[str, ...]
    value: str | None = None
    weight: float = 1.0


@frozen
class ValueList:
    """A list of values. unseen: values of the test split only, in `unseen_share` of its slots."""

    name: str
    values: tuple[Value, ...]
    unseen: tuple[Value, ...] = ()
    unseen_share: float = 0.0


@frozen
class Sentence:
    """A pattern. weight: relative frequency in its intent. unseen: it occurs only in the test split."""

    part: Part
    weight: float
    unseen: bool
    place: Place


@frozen
class GrammarIntent:
    """Sentences that mean the same. label: one intent or several, as in `Utterance.intents`.

    alone: it is never joined with another. weight: relative frequency in its grammar.
    """

    label: tuple[str, ...]
    weight: float
    alone: bool
    sentences: tuple[Sentence, ...]
    place: Place


@frozen
class Habits:
    """How people speak. Shares of utterances with two intents, hesitations, false starts or corrected values: 0–1."""

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
    """A domain. weight: relative frequency in the corpus."""

    name: str
    weight: float
    values: tuple[ValueList, ...]
    phrases: tuple[tuple[str, Part], ...]
    intents: tuple[GrammarIntent, ...]
    habits: Habits
    path: str


SPLIT, DOMAIN = "split", "domain"
TEST = "test"
TRIES_OF_ONE = 30
MOST_IN_VAIN = 400
"""Most draws without a new sentence per split, in addition to a fifth of its size."""
LONGEST_FALSE_START = 3
T = TypeVar("T")


@frozen
class _Run:
    """Words of one slot or of none. list_: the slot's list of values."""

    words: tuple[str, ...]
    concept: str = ""
    value: str = ""
    list_: str = ""


def generate(grammars: Sequence[Grammar], seed: int, sizes: Mapping[str, int]) -> Corpus:
    """A corpus with intents, tags, slots with values, and the groups `split` and `domain`. Ids are `split/number`.

    sizes: split → number of utterances, in the order of generation. Unseen values and patterns occur in `test` only.
    No sentence occurs twice in any split. InputError if the grammars cannot give enough different sentences.
    """
    sources = [_Source(one) for one in grammars]
    found: list[Utterance] = []
    known: set[tuple[str, ...]] = set()
    for split, size in sizes.items():
        if size:
            found += _split(sources, Random(f"{seed}/{split}"), split, size, known)
    return Corpus(" ".join(one.path for one in grammars), tuple(found))


def fingerprint(corpus: Corpus) -> str:
    """sha256 over ids, words, intents and tags."""
    digest = hashlib.sha256()
    for one in corpus.utterances:
        row = (one.id, one.text, joined(one.intents or ()), " ".join(one.tags or ()))
        digest.update(("\t".join(row) + "\n").encode())
    return digest.hexdigest()


def _split(
    sources: Sequence[_Source], random: Random, split: str, size: int, known: set[tuple[str, ...]]
) -> list[Utterance]:
    found: list[Utterance] = []
    weights = tuple(accumulate(source.grammar.weight for source in sources))
    in_vain = 0
    while len(found) < size:
        source = _weighted(random, sources, weights)
        drawn = source.utterance(random, unseen=split == TEST, is_new=lambda words: words not in known)
        if drawn is None:
            in_vain += 1
            if in_vain > MOST_IN_VAIN + size // 5:
                what = f"the grammars give only about {len(known):,} different sentences"
                raise InputError(what, place=Place(" ".join(source.grammar.path for source in sources)),
                                 remedy="Add patterns or values, or generate fewer utterances")  # fmt: skip
            continue
        groups = ((SPLIT, split), (DOMAIN, source.grammar.name))
        found.append(_annotated(*drawn, f"{split}/{len(found) + 1}", groups))
        known.add(found[-1].words)
    return found


def _annotated(
    intents: tuple[str, ...], said: Sequence[_Run], id_: str, groups: tuple[tuple[str, str], ...]
) -> Utterance:
    words: list[str] = []
    tags: list[str] = []
    slots: list[Slot] = []
    for one in said:
        start = len(words)
        words += one.words
        if one.concept:
            tags += [f"B-{one.concept}", *[f"I-{one.concept}"] * (len(one.words) - 1)]
            slots.append(Slot(one.concept, one.value, start, len(words)))
        else:
            tags += ["O"] * len(one.words)
    return Utterance(id_, tuple(words), intents, tuple(tags), tuple(slots), groups)


class _Source:
    """Draws utterances of one grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self._phrases = dict(grammar.phrases)
        self._values = {one.name: one for one in grammar.values}
        self._intents = tuple(accumulate(one.weight for one in grammar.intents))
        self._joinable = [one for one in grammar.intents if not one.alone]
        self._joinable_weights = tuple(accumulate(one.weight for one in self._joinable))
        self._value_weights: dict[tuple[str, bool], tuple[float, ...]] = {}

    def utterance(
        self, random: Random, *, unseen: bool, is_new: Callable[[tuple[str, ...]], bool]
    ) -> tuple[tuple[str, ...], tuple[_Run, ...]] | None:
        """Intents drawn at random, and a new utterance of them. None if TRIES_OF_ONE tries gave none."""
        habits = self.grammar.habits
        two = len(self._joinable) > 1 and random.random() < habits.two_intents
        first = (
            _weighted(random, self._joinable, self._joinable_weights)
            if two
            else _weighted(random, self.grammar.intents, self._intents)
        )
        second = self._other(random, first) if two else None
        for _ in range(TRIES_OF_ONE):
            said = self._sentence(random, first, unseen)
            if second is not None:
                said += (_Run(_any(random, habits.connectives)), *self._sentence(random, second, unseen))
            said = self._as_people_speak(random, said, unseen)
            if is_new(tuple(word for one in said for word in one.words)):
                intents = {*first.label, *(second.label if second else ())}
                return tuple(sorted(intents)), said
        return None

    def _other(self, random: Random, first: GrammarIntent) -> GrammarIntent | None:
        """Another intent that can be joined with it."""
        for _ in range(TRIES_OF_ONE):
            second = _weighted(random, self._joinable, self._joinable_weights)
            if not set(second.label) & set(first.label):
                return second
        return None

    def _sentence(self, random: Random, intent: GrammarIntent, unseen: bool) -> tuple[_Run, ...]:
        sentences: list[Sentence] = [one for one in intent.sentences if unseen or not one.unseen]
        chosen = _weighted(random, sentences, tuple(accumulate(one.weight for one in sentences)))
        return tuple(self._said(random, chosen.part, unseen))

    def _said(self, random: Random, part: Part, unseen: bool) -> list[_Run]:
        match part:
            case SaidText(words):
                return [_Run(words)]
            case InTurn(inner):
                return [said for one in inner for said in self._said(random, one, unseen)]
            case OneOf(options):
                return self._said(random, _any(random, options), unseen)
            case Maybe(inner_part):
                return self._said(random, inner_part, unseen) if random.random() < 0.5 else []
            case PhraseUse(name):
                return self._said(random, self._phrases[name], unseen)
            case SlotPart(concept, values):
                return [self._slot(random, concept, values, unseen)]

    def _slot(self, random: Random, concept: str, name: str, unseen: bool) -> _Run:
        listed = self._values[name]
        new = unseen and listed.unseen_share > 0 and random.random() < listed.unseen_share
        values: tuple[Value, ...] = listed.unseen if new else listed.values
        key = (name, new)
        if key not in self._value_weights:
            self._value_weights[key] = tuple(accumulate(one.weight for one in values))
        value = _weighted(random, values, self._value_weights[key])
        return _Run(value.words, concept, value.value if value.value is not None else " ".join(value.words), name)

    def _as_people_speak(self, random: Random, said: tuple[_Run, ...], unseen: bool) -> tuple[_Run, ...]:
        habits = self.grammar.habits
        if random.random() < habits.corrected:
            said = self._corrected(random, said, unseen)
        if random.random() < habits.false_starts:
            said = _false_start(random, said, habits.restarts)
        if habits.hesitations and random.random() < habits.hesitant:
            said = _hesitant(random, said, habits.hesitations)
        return said

    def _corrected(self, random: Random, said: tuple[_Run, ...], unseen: bool) -> tuple[_Run, ...]:
        """With a wrong value before a slot, which the speaker corrects. The wrong value is not a slot."""
        slots = [at for at, one in enumerate(said) if one.concept]
        if not slots:
            return said
        at = _any(random, slots)
        wrong = self._slot(random, said[at].concept, said[at].list_, unseen)
        if wrong.words == said[at].words:
            return said
        back = (_Run(wrong.words), _Run(_any(random, self.grammar.habits.corrections)))
        return (*said[:at], *back, *said[at:])


def _false_start(random: Random, said: tuple[_Run, ...], restarts: Sequence[tuple[str, ...]]) -> tuple[_Run, ...]:
    """With its first words said twice. The first time, they are not slots."""
    words = [word for one in said for word in one.words]
    if len(words) < 2:
        return said
    begun = words[: 1 + _below(random, min(LONGEST_FALSE_START, len(words) - 1))]
    between = _any(random, restarts) if random.random() < 0.5 else ()
    return (_Run((*begun, *between)), *said)


def _hesitant(random: Random, said: tuple[_Run, ...], hesitations: Sequence[tuple[str, ...]]) -> tuple[_Run, ...]:
    """With a hesitation before one of its words, but not within a slot."""
    places = [(at, word) for at, one in enumerate(said) for word in range(1 if one.concept else len(one.words))]
    if not places:
        return said
    at, word = _any(random, places)
    uh = _Run(_any(random, hesitations))
    one = said[at]
    split = (uh, one) if word == 0 else (_Run(one.words[:word]), uh, _Run(one.words[word:]))
    return (*said[:at], *split, *said[at + 1 :])


def _below(random: Random, number: int) -> int:
    """0 to number - 1."""
    return int(random.random() * number)


def _any(random: Random, items: Sequence[T]) -> T:
    return items[_below(random, len(items))]


def _weighted(random: Random, items: Sequence[T], sums: Sequence[float]) -> T:
    """One of the items. sums: cumulative weights."""
    return items[min(bisect_right(sums, random.random() * sums[-1]), len(sums) - 1)]
