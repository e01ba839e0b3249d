"""What the assistant understood of a query: its intents and slots, as it tells them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.lab.assistant.settings import Deed, FaultRule
from harness.model.bench import PlainValue
from harness.model.understanding import Slot, joined


@dataclass(frozen=True, slots=True)
class ToldFrame:
    """intents: sorted, each once; () is "nothing understood". slots: in the order of the words, without places."""

    intents: tuple[str, ...] = ()
    slots: tuple[Slot, ...] = ()

    def __add__(self, other: ToldFrame) -> ToldFrame:
        return ToldFrame(tuple(sorted({*self.intents, *other.intents})), (*self.slots, *other.slots))

    def told(self) -> dict[str, PlainValue]:
        """As it goes over a connection: intents joined with `#`, "" for none; slots as a list, one may come twice."""
        slots: list[PlainValue] = [{"name": slot.concept, "value": slot.value or ""} for slot in self.slots]
        return {"name": joined(self.intents), "slots": slots}


NOTHING = ToldFrame()
"""Words were heard, and nothing was understood by them."""


def frame(intent: str, *slots: tuple[str, str]) -> ToldFrame:
    """One intent with its slots: (concept, value)."""
    return ToldFrame((intent,), tuple(Slot(concept, value) for concept, value in slots))


def misunderstood(right: ToldFrame, slips: Sequence[FaultRule]) -> ToldFrame:
    """What becomes of a frame by faults of understanding, in their order; who finds nothing to spoil does nothing."""
    wrong = right
    for rule in slips:
        at = _slot(wrong, rule.slot)
        match rule.deed:
            case Deed.OTHER_INTENT if wrong.intents:
                wrong = replace(wrong, intents=(rule.heard_as,))
            case Deed.LOSE_SLOT if at is not None:
                wrong = replace(wrong, slots=(*wrong.slots[:at], *wrong.slots[at + 1 :]))
            case Deed.WRONG_VALUE if at is not None:
                spoilt = replace(wrong.slots[at], value=rule.heard_as)
                wrong = replace(wrong, slots=(*wrong.slots[:at], spoilt, *wrong.slots[at + 1 :]))
            case _:
                pass
    return wrong


def acted_out(wrong: ToldFrame) -> str:
    """What it says to something that it misunderstood on purpose, and therefore does not do."""
    wanted = [intent.replace("_", " ") for intent in wrong.intents]
    return f"Okay, {', '.join([*wanted, *(slot.value or '' for slot in wrong.slots)])}."


def _slot(found: ToldFrame, concept: str) -> int | None:
    """Where the first slot of that concept is; "" is any."""
    return next((n for n, slot in enumerate(found.slots) if concept in ("", slot.concept)), None)
