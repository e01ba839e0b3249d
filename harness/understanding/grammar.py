"""A grammar of annotated utterances: sentences, their parts, and the values that slots take."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.model.errors import Place


@dataclass(frozen=True, slots=True)
class Text:
    """Words as they are said."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after another."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several, all as likely."""

    options: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Maybe:
    """A part that is said as often as not."""

    part: Part


@dataclass(frozen=True, slots=True)
class Phrase:
    """A named part that several sentences share."""

    name: str


@dataclass(frozen=True, slots=True)
class SlotPart:
    """A value of a list, said as a slot of this concept."""

    concept: str
    values: str


Part = Text | Sequence | Choice | Maybe | Phrase | SlotPart


class Spoken(StrEnum):
    """Numbers and what is made of them, in words; their values are digits.

    NUMBER: "twenty five" is 25. ORDINAL: "third" is 3. TIME: "half past seven" is 7:30, and with "pm" 19:30.
    """

    NUMBER = "number"
    ORDINAL = "ordinal"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Value:
    """Words of a value; value: its normalised form, or None: as it is said. weight: how often, beside the others."""

    words: tuple[str, ...]
    value: str | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Values:
    """A list of values. unseen: those that only the test split has, in this share of its slots of the list."""

    name: str
    values: tuple[Value, ...]
    unseen: tuple[Value, ...] = ()
    unseen_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Sentence:
    """A pattern. weight: how often, beside the intent's others. unseen: only the test split has it."""

    part: Part
    weight: float
    unseen: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Intent:
    """Sentences that mean the same. alone: it is never joined with another. weight: how often, beside the others.

    label: one intent or several, as in `Utterance.intents`.
    """

    label: tuple[str, ...]
    weight: float
    alone: bool
    sentences: tuple[Sentence, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Habits:
    """How people speak. Shares, 0–1: of utterances with two intents, hesitations, false starts, corrected values."""

    two_intents: float = 0.14
    connectives: tuple[tuple[str, ...], ...] = (("and",),)
    hesitant: float = 0.0
    hesitations: tuple[tuple[str, ...], ...] = ()
    false_starts: float = 0.0
    restarts: tuple[tuple[str, ...], ...] = ()
    corrected: float = 0.0
    corrections: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Grammar:
    """A domain. weight: how often, beside other grammars of the corpus."""

    name: str
    weight: float
    values: tuple[Values, ...]
    phrases: tuple[tuple[str, Part], ...]
    intents: tuple[Intent, ...]
    habits: Habits
    path: str
