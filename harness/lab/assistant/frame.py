"""What the assistant understood of a query, as it tells it, and what it keeps in mind between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

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


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Moment:
    """Now: monotonic seconds, and the local wall clock beside it.

    called_s: when the one who speaks began (the wake phrase, or the question back that is answered); None: now.
    """

    now_s: float
    wall: datetime
    called_s: float | None = None

    @property
    def began_s(self) -> float:
        return self.now_s if self.called_s is None else self.called_s


@dataclass(frozen=True, slots=True)
class SkillAnswer:
    """What a skill says, and what it understood before (`frame`).

    subject: what a follow-up may refer to. asks: a question back; the dialogue stays open.
    """

    text: str
    frame: ToldFrame
    subject: object = None
    asks: bool = False


class Memory:
    """The last subject, forgotten a while after the answer about it was given (or at once by `forget`)."""

    def __init__(self, memory_s: float) -> None:
        self._memory_s = memory_s
        self._wait_s = memory_s
        self._subject: object = None
        self._until_s = float("-inf")

    def keep(self, subject: object, now_s: float, wait_s: float | None = None) -> None:
        """Keeps it in mind for wait_s, else for as long as the memory reaches."""
        self._subject = subject
        self._wait_s = self._memory_s if wait_s is None else wait_s
        self._until_s = now_s + self._wait_s

    def attend(self, moment: Moment) -> None:
        """Somebody speaks: what was forgotten when they began is gone for good, the rest stays meanwhile."""
        if moment.began_s > self._until_s:
            self.forget()
        else:
            self._until_s = moment.now_s + self._wait_s

    def renew(self, now_s: float) -> None:
        """Counts from now what has not been forgotten before."""
        self._until_s = now_s + self._wait_s

    def forget(self) -> None:
        self._subject = None

    def recall(self, kind: type[T], now_s: float) -> T | None:
        """The subject when it is of that kind and not forgotten yet."""
        if now_s <= self._until_s and isinstance(self._subject, kind):
            return self._subject
        return None
