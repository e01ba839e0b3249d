"""What a front-end shows of an annotator's sitting: frozen, made anew after every key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum

from harness.model.annotation import Intents, Slots
from harness.model.frozen import frozen
from harness.model.understanding import Slot, joined


class AnnotationPhase(StrEnum):
    """REVIEWING: proposals, by groups. LABELLING: one utterance by hand. FINISHED: nothing is left to do."""

    REVIEWING = "reviewing"
    LABELLING = "labelling"
    FINISHED = "finished"


def words_of(words: Sequence[str], slot: Slot) -> str:
    """The words that are marked."""
    return " ".join(words[slot.start : slot.end])


def slot_texts(words: Sequence[str], slots: Slots) -> tuple[str, ...]:
    """Slots as `city: lyon`."""
    return tuple(f"{slot.concept}: {words_of(words, slot)}" for slot in slots)


def labels_text(intents: Intents, slots: Sequence[str] = ()) -> str:
    """Labels, and slots as texts, in one line: `booking (city: lyon)`."""
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
    """Utterances that have the same proposal. number: of the group, from 1, of `groups`; left of total utterances."""

    intents: Intents
    number: int
    groups: int
    left: int
    total: int


@frozen
class PageLine:
    """An utterance on a page. number: from 1, what `strike_number` takes. text: with the slots that are proposed."""

    number: int
    utterance: str
    text: str
    struck: bool


@frozen
class AnnotationInput:
    """An annotator's labels for an adjudicator, without a name. slots: as texts."""

    intents: Intents
    comment: str = ""
    slots: tuple[str, ...] = ()


@frozen
class LabellingItem:
    """An utterance to label.

    - chosen: labels so far, in the order of the label set.
    - saved: they are on the disk.
    - proposal: None if there is none, or if the annotator may not see it yet.
    - struck: this annotator struck the proposal.
    - refusal: why `chosen` cannot be saved, "" if it can.
    - inputs: for adjudicators.
    - slots: marked so far.
    - proposed_slots: as texts, shown together with `proposal`.
    """

    utterance: str
    text: str
    chosen: Intents = ()
    saved: bool = False
    proposal: Intents | None = None
    struck: bool = False
    refusal: str = ""
    comment: str = ""
    inputs: tuple[AnnotationInput, ...] = ()
    words: tuple[str, ...] = ()
    slots: Slots = ()
    proposed_slots: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether the proposal that is shown is not what was chosen."""
        other_slots = bool(self.proposed_slots) and self.proposed_slots != slot_texts(self.words, self.slots)
        return self.proposal is not None and (set(self.proposal) != set(self.chosen) or other_slots)

    @property
    def shared(self) -> set[str]:
        """Labels and slots that all inputs have."""
        return (
            set.intersection(*({*annotation.intents, *annotation.slots} for annotation in self.inputs))
            if self.inputs
            else set()
        )

    @property
    def slot_at(self) -> dict[int, Slot]:
        """The slot that each marked word belongs to."""
        return {index: slot for slot in self.slots for index in range(slot.start or 0, slot.end or 0)}


@frozen
class AnnotationCount:
    """Counts of an annotator's utterances. `total`: the queue. `done`: with a choice by them. `left`: without.

    `to_review`: left, with a proposal to accept or strike. `to_label`: left, by hand, including `skipped`. `struck`:
    utterances whose proposal this annotator struck, labelled since or not.
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
    """group, page: when reviewing. item: when labelling.

    pace_s: median seconds for one utterance; left_s: what is left at that pace. said: what the last key did.
    estimate: how wrong a classifier would be about the rest, "" if that is not known.
    """

    phase: AnnotationPhase
    adjudicating: bool = False
    group: GroupView | None = None
    page: tuple[PageLine, ...] = ()
    item: LabellingItem | None = None
    count: AnnotationCount = field(default_factory=AnnotationCount)
    pace_s: float | None = None
    left_s: float | None = None
    said: str = ""
    can_undo: bool = False
    estimate: str = ""
