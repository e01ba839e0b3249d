"""BIO tags made of slots that have places, and slots made of tags."""

from __future__ import annotations

from harness.model.errors import InputError
from harness.model.understanding import Chunking, Slot, Utterance
from harness.understanding.arithmetic.chunks import OUTSIDE, chunks


def tags_of(one: Utterance) -> tuple[str, ...] | None:
    """An utterance's tags, or those that its slots with places make; None where it is not annotated in slots.

    InputError for slots that overlap or have no place, which BIO cannot say.
    """
    if one.tags is not None or one.slots is None:
        return one.tags
    tags = [OUTSIDE] * len(one.words)
    for slot in one.slots:
        start, end = slot.start, slot.end
        shared = start is None or end is None or end > len(tags) or any(tag != OUTSIDE for tag in tags[start:end])
        if start is None or end is None or shared or len(slot.concept.split()) != 1:
            what = f"the slot {slot.concept!r} of {one.id!r} has no place, a blank, or shares a word with another"
            raise InputError(what, place=one.place, remedy="Write JSONL, which can say this")
        tags[start:end] = [f"B-{slot.concept}", *[f"I-{slot.concept}"] * (end - start - 1)]
    return tuple(tags)


def slots_of(one: Utterance) -> tuple[Slot, ...]:
    """Slots that an utterance's tags make (conlleval), with their words as values; () without tags."""
    found = chunks(one.tags or (), Chunking.CONLLEVAL)
    return tuple(Slot(it.concept, " ".join(one.words[it.start : it.end]), it.start, it.end) for it in found)
