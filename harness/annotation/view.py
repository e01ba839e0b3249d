"""What a front-end shows of an annotator's sitting. These objects never change; each key makes new ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum

from harness.model.annotation import Intents, Slots
from harness.model.frozen import frozen
from harness.model.understanding import Slot, joined


class AnnotationPhase(StrEnum):
    """What an annotator does now.

    - REVIEWING: reviews proposals, by groups.
    - LABELLING: labels one utterance by hand.
    - FINISHED: nothing is left to do.
    """

    REVIEWING = "reviewing"
    LABELLING = "labelling"
    FINISHED = "finished"


def words_of(words: Sequence[str], slot: Slot) -> str:
    """The words of a slot, as one text. words: of the whole utterance."""
    return " ".join(words[slot.start : slot.end])


def slot_texts(words: Sequence[str], slots: Slots) -> tuple[str, ...]:
    """Slots as texts like `city: lyon`. words: of the whole utterance."""
    return tuple(f"{slot.concept}: {words_of(words, slot)}" for slot in slots)


def labels_text(intents: Intents, slots: Sequence[str] = ()) -> str:
    """Labels and slots in one line: `booking (city: lyon)`. slots: texts from `slot_texts`."""
    return (joined(intents) or "no label") + (f" ({', '.join(slots)})" if slots else "")


def marked_text(words: Sequence[str], slots: Slots) -> str:
    """The words with their slots: `a room in [lyon: city]`."""
    parts, position = [], 0
    for slot in slots:
        parts += [*words[position : slot.start], f"[{words_of(words, slot)}: {slot.concept}]"]
        position = slot.end or 0
    return " ".join([*parts, *words[position:]])


@frozen
class GroupView:
    """A group of utterances with the same proposal.

    - number: position of the group, from 1; 0 if it is no longer in the queue.
    - groups: number of all groups.
    - left: number of its utterances still to be reviewed.
    - total: number of all its utterances.
    """

    intents: Intents
    number: int
    groups: int
    left: int
    total: int


@frozen
class PageLine:
    """An utterance on a page.

    - number: its number on the page, from 1, for `strike_number`.
    - utterance: its id.
    - text: its text, with the proposed slots in brackets.
    - struck: whether the annotator has struck its proposal on the page.
    """

    number: int
    utterance: str
    text: str
    struck: bool


@frozen
class AnnotationInput:
    """What an adjudicator sees of one annotator's labels, without the name. slots: texts from `slot_texts`."""

    intents: Intents
    comment: str = ""
    slots: tuple[str, ...] = ()


@frozen
class LabellingItem:
    """An utterance to label."""

    utterance: str
    """Its id."""
    text: str
    chosen: Intents = ()
    """Labels so far, in the order of the label set."""
    saved: bool = False
    """Whether the labels, slots and comment so far are on the disk."""
    proposal: Intents | None = None
    """The proposed labels; None if there are none, or if the annotator may not see them yet."""
    struck: bool = False
    """Whether this annotator struck the proposal."""
    refusal: str = ""
    """Why `chosen` cannot be saved; "" if it can."""
    comment: str = ""
    inputs: tuple[AnnotationInput, ...] = ()
    """Labels of the annotators, for adjudicators only."""
    words: tuple[str, ...] = ()
    slots: Slots = ()
    """Slots marked so far."""
    proposed_slots: tuple[str, ...] = ()
    """Texts from `slot_texts`, shown together with `proposal`."""

    @property
    def differs(self) -> bool:
        """Whether a proposal is shown that differs from the choice, in labels or in slots."""
        other_slots = bool(self.proposed_slots) and self.proposed_slots != slot_texts(self.words, self.slots)
        return self.proposal is not None and (set(self.proposal) != set(self.chosen) or other_slots)

    @property
    def shared(self) -> set[str]:
        """Labels and texts of slots that all inputs have."""
        if not self.inputs:
            return set()
        return set.intersection(*({*annotation.intents, *annotation.slots} for annotation in self.inputs))

    @property
    def slot_at(self) -> dict[int, Slot]:
        """Maps the index of each marked word to its slot."""
        return {index: slot for slot in self.slots for index in range(slot.start or 0, slot.end or 0)}


@frozen
class AnnotationCount:
    """Numbers of utterances in an annotator's queue.

    - total: all.
    - done: those for which the annotator has chosen labels.
    - left: the others.
    - to_review: left, with a proposal to accept or strike.
    - to_label: left, to label by hand, including the skipped ones.
    - struck: those whose proposal the annotator struck, even if they were labelled later.
    - skipped: left, and skipped.
    """

    total: int = 0
    done: int = 0
    left: int = 0
    to_review: int = 0
    to_label: int = 0
    struck: int = 0
    skipped: int = 0


@frozen
class AnnotationView:
    """What a front-end shows."""

    phase: AnnotationPhase
    adjudicating: bool = False
    """Whether the annotator settles disagreements."""
    group: GroupView | None = None
    """The group under review; None when not reviewing."""
    page: tuple[PageLine, ...] = ()
    """The page under review; () when not reviewing."""
    item: LabellingItem | None = None
    """The utterance to label; None when not labelling."""
    count: AnnotationCount = field(default_factory=AnnotationCount)
    pace_s: float | None = None
    """Median time for one utterance, s; None without a time yet."""
    left_s: float | None = None
    """Time that the rest takes at that pace, s."""
    said: str = ""
    """What the last key did, or why it did nothing."""
    can_undo: bool = False
    estimate: str = ""
    """A text on the error that a classifier would make in the rest; "" if that is not known."""
