"""Is what a device says that it understood what was expected of it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.metrics.recognition import words_of
from harness.model.observation import Intent
from harness.model.scenario import Recognised
from harness.model.trial import EvidenceSource
from harness.model.understanding import Expected, Slot, intent_set
from harness.model.understood import Understood


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
    left = Counter(value_key(slot, rule) for slot in told)
    valued = Counter(value_key(slot, rule) for slot in expected if slot.value is not None)
    if valued - left:
        return False
    left -= valued
    any_value = Counter(slot.concept for slot in expected if slot.value is None)
    rest: Counter[str] = Counter()
    for (concept, _), count in left.items():
        rest[concept] += count
    return rest == any_value


def value_key(slot: Slot, rule: Recognised) -> tuple[str, str]:
    """Concept and value as they are compared."""
    return slot.concept, normalised(slot.value or "", rule)


def normalised(value: str, rule: Recognised) -> str:
    """A slot's value in the words that the rule makes of it; as it is where that leaves none."""
    return " ".join(words_of(value, rule)) or value.strip()
