"""Is what a device says that it understood what was expected of it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.model.observation import Intent
from harness.model.record import Understood
from harness.model.scenario import Recognised
from harness.model.trial import EvidenceSource
from harness.model.understanding import Expected, Slot, intent_set
from harness.transcripts.recognition import same_words, words_of


def understood(expected: Expected, told: Sequence[Intent], rule: Recognised) -> Understood:
    """What the events of one attempt say together, against what was expected.

    Intents are united. Slots are too: one that several events tell counts as often as the event that has it most often.
    The intents are right when they are all that were expected and no other; the frame, when the slots are too (where
    they are looked at). Names are compared as they are written, values after the rule's normalisation.
    """
    if not told:
        return Understood()
    intents = tuple(sorted({one for event in told for one in intent_set(event.name)}))
    slots = united(tuple(Slot(concept, value) for concept, value in event.slots) for event in told)
    right = intents == expected.intents
    slots_right = expected.slots is None or fits(expected.slots, slots, rule)
    return Understood(intents, slots, right, right and slots_right, EvidenceSource.DEVICE)


def united(events: Iterable[Sequence[Slot]]) -> tuple[Slot, ...]:
    """The slots of several events, each as often as the event has it that has it most often, in the order told."""
    found: Counter[Slot] = Counter()
    for slots in events:
        found |= Counter(slots)
    return tuple(found.elements())


def fits(expected: Sequence[Slot], told: Sequence[Slot], rule: Recognised) -> bool:
    """Whether the same concepts were told, as often, with values that are the same; a value of None is any."""
    left = list(told)
    for slot in expected:
        if slot.value is not None:
            fitting = (one for one in left if one.concept == slot.concept and same_value(slot.value, one.value, rule))
            if (found := next(fitting, None)) is None:
                return False
            left.remove(found)
    return Counter(one.concept for one in left) == Counter(slot.concept for slot in expected if slot.value is None)


def same_value(value: str, told: str | None, rule: Recognised) -> bool:
    """Whether a slot's value is what was told, in some reading of both under the rule."""
    if normalised(value, rule) == normalised(told or "", rule):
        return True
    return bool(words_of(value, rule)) and same_words(value, told or "", rule)


def normalised(value: str, rule: Recognised) -> str:
    """A slot's value in the words that the rule makes of it; as it is where that leaves none."""
    return " ".join(words_of(value, rule)) or value.strip()
