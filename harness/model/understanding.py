"""What an utterance means: its intents and its slots, as annotated by people or as reported by a system.

Terms of the field (seed MEDIA): an *intent* is what the speaker wants, and an utterance has one or more. A *slot* is a
*concept* (attribute, or attribute and specifier) with a value, over words of the utterance. Intents and slots together
are the *semantic frame*.
"""

from __future__ import annotations

import math
from enum import StrEnum

from harness.model.errors import Place
from harness.model.frozen import frozen

JOINT = "#"
"""Joins the intents of one utterance in files; their order means nothing."""


class Chunking(StrEnum):
    """How BIO tags are read as chunks.

    CONLLEVAL: a chunk may also begin with I- (as the CoNLL-2000 script reads it). IOB2: a chunk begins only with B-,
    and an I- that continues no chunk is ignored.
    """

    CONLLEVAL = "conlleval"
    IOB2 = "iob2"


class Detail(StrEnum):
    """How concepts are compared. FULL: as written. RELAX: without their specifiers, which follow a separator."""

    FULL = "full"
    RELAX = "relax"


@frozen
class Slot:
    """A concept with its value.

    - value: as written, or normalised; None if none is given.
    - start, end: index of its first word, from 0, and of the word after its last. Both None if the words are not known.
    """

    concept: str
    value: str | None = None
    start: int | None = None
    end: int | None = None

    def __post_init__(self) -> None:
        if (self.start is None) != (self.end is None):
            raise ValueError(f"the slot {self.concept!r} needs both a start and an end")
        if self.start is not None and self.end is not None and not 0 <= self.start < self.end:
            raise ValueError(f"the slot {self.concept!r} has an invalid span: words {self.start} to {self.end}")


@frozen
class SoundCost:
    """Time that a system needed for the sound of an utterance.

    - cpu_s, elapsed_s: processor time and elapsed time.
    - sound_s: length of the sound.
    """

    cpu_s: float
    elapsed_s: float
    sound_s: float

    def __post_init__(self) -> None:
        if not (0 <= self.cpu_s < math.inf and 0 <= self.elapsed_s < math.inf and 0 < self.sound_s < math.inf):
            raise ValueError("the times of a cost must be finite and not negative, and its sound longer than 0 s")

    def __add__(self, other: SoundCost) -> SoundCost:
        return SoundCost(self.cpu_s + other.cpu_s, self.elapsed_s + other.elapsed_s, self.sound_s + other.sound_s)


@frozen
class Utterance:
    """One utterance with what it means.

    - words: () if no text is known.
    - intents: sorted, each once; () is "none", None is "not annotated".
    - tags: BIO tags, one for each word, as written. Those of a system may not be a well-formed sequence.
    - slots: given instead of tags, or beside them with values. If both are None, slots are not annotated.
    - groups: (column, label), by which tables group utterances (split, voice, …).
    - place: line of the file that it was read from; None if it was not read.
    - scores: (intent, probability) of a system's prediction.
    - cost: time that a system needed to predict this from sound; None if it did not.
    """

    id: str
    words: tuple[str, ...] = ()
    intents: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    slots: tuple[Slot, ...] | None = None
    groups: tuple[tuple[str, str], ...] = ()
    place: Place | None = None
    scores: tuple[tuple[str, float], ...] = ()
    cost: SoundCost | None = None

    def __post_init__(self) -> None:
        if self.intents is not None and list(self.intents) != sorted(set(self.intents)):
            raise ValueError(f"the intents of {self.id!r} are not sorted, or one occurs twice")
        if self.tags is not None and len(self.tags) != len(self.words):
            raise ValueError(f"{self.id!r} has {len(self.words)} words and {len(self.tags)} tags")

    @property
    def text(self) -> str:
        """Its words, with single spaces between."""
        return " ".join(self.words)


@frozen
class Corpus:
    """Utterances of one source, each id once. path: file or folder, as the user gave it."""

    path: str
    utterances: tuple[Utterance, ...]


@frozen
class ExpectedFrame:
    """What a device should understand of a trial's query.

    - intents: sorted, each once; () means that it should understand none.
    - slots: in the order of the scenario, without their words; None: slots are not checked.
    """

    intents: tuple[str, ...]
    slots: tuple[Slot, ...] | None = None


@frozen
class Prediction:
    """What an understander predicts from words.

    - tags: BIO tags, one for each word.
    - scores: (label, probability 0–1) of every label.
    """

    intents: tuple[str, ...]
    tags: tuple[str, ...]
    scores: tuple[tuple[str, float], ...] = ()


def intent_set(label: str) -> tuple[str, ...]:
    """The intents of a label such as `a#b`: sorted, each once; () if the label is empty or blank."""
    return tuple(sorted({part.strip() for part in label.split(JOINT)} - {""}))


def frame_text(intents: tuple[str, ...], slots: tuple[Slot, ...] | None = None) -> str:
    """A frame in one line, for people: `book_hotel#greet (city: Lyon, stars)`; "nothing" without an intent."""
    details = ", ".join(slot.concept if slot.value is None else f"{slot.concept}: {slot.value}" for slot in slots or ())
    return f"{joined(intents) or 'nothing'}{f' ({details})' if details else ''}"


def joined(intents: tuple[str, ...]) -> str:
    """Intents as files write them: `a#b`."""
    return JOINT.join(intents)
