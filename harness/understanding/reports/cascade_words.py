"""What a cascade says of an utterance, in words: frames, and what of them was lost or put in."""

from __future__ import annotations

from collections import Counter

from harness.model.understanding import Utterance, joined
from harness.understanding.arithmetic.frame import items
from harness.understanding.arithmetic.rule import Rule
from harness.understanding.scoring.cascade import CascadeUtterance

NOTHING_TOLD = "n/a"
NONE = "none"
NO_WORDS = "(nothing)"


def frame_in_words(utterance: Utterance, rule: Rule) -> str:
    """`book#greet; city: Nice, date: Monday`, as it stands there, from outside; concepts as they are compared."""
    intents = NOTHING_TOLD if utterance.intents is None else joined(utterance.intents) or NONE
    return f"{intents}; {_slots(utterance, rule)}"


def _slots(utterance: Utterance, rule: Rule) -> str:
    if utterance.tags is None and utterance.slots is not None:
        found = [(rule.concept(slot.concept), slot.value or "") for slot in utterance.slots]
    else:
        slots = items(utterance, rule)
        if slots is None:
            return "slots " + NOTHING_TOLD
        places = ((one.concept, one.place or (0, 0)) for one in slots)
        found = [(concept, " ".join(utterance.words[start:end])) for concept, (start, end) in places]
    return ", ".join(f"{concept}: {value}" if value else concept for concept, value in found) or "no slots"


def changes(one: CascadeUtterance, rule: Rule) -> str:
    """What the model found in the reference and not in the transcript (−), and the reverse (+)."""
    before, after = (_parts(side, rule) for side in (one.before.predicted, one.after.predicted))
    lost, put_in = before - after, after - before
    return " ".join([*(f"−{part}" for part in sorted(lost.elements())), *(f"+{p}" for p in sorted(put_in.elements()))])


def _parts(utterance: Utterance, rule: Rule) -> Counter[str]:
    return Counter([*(utterance.intents or ()), *(slot.concept for slot in items(utterance, rule) or ())])
