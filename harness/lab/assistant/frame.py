"""The intents and slots that the assistant understood, as it reports them, and its memory between queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from harness.lab.assistant.settings import FaultAction, FaultRule
from harness.model.bench import PlainValue
from harness.model.frozen import frozen
from harness.model.understanding import Slot, joined


@frozen
class ReportedFrame:
    """What the assistant understood of a query.

    - intents: sorted, without repetition; () if nothing was understood.
    - slots: in the order of the words.
    """

    intents: tuple[str, ...] = ()
    slots: tuple[Slot, ...] = ()

    def __add__(self, other: ReportedFrame) -> ReportedFrame:
        return ReportedFrame(tuple(sorted({*self.intents, *other.intents})), (*self.slots, *other.slots))

    def as_sent(self) -> dict[str, PlainValue]:
        """The fields of a report: intents joined with `#` ("" for none); slots as a list, which may repeat a name."""
        slots: list[PlainValue] = [{"name": slot.concept, "value": slot.value or ""} for slot in self.slots]
        return {"name": joined(self.intents), "slots": slots}


NOTHING = ReportedFrame()
"""The frame if words were recognised, but nothing was understood."""


def frame(intent: str, *slots: tuple[str, str]) -> ReportedFrame:
    """One intent with its slots: (concept, value)."""
    return ReportedFrame((intent,), tuple(Slot(concept, value) for concept, value in slots))


def misunderstood(right: ReportedFrame, slips: Sequence[FaultRule]) -> ReportedFrame:
    """The frame after faults of understanding, in their order. A fault without anything to change has no effect."""
    wrong = right
    for rule in slips:
        matches = [number for number, slot in enumerate(wrong.slots) if rule.slot in ("", slot.concept)]
        index = matches[0] if matches else None
        match rule.action:
            case FaultAction.OTHER_INTENT if wrong.intents:
                wrong = replace(wrong, intents=(rule.heard_as,))
            case FaultAction.LOSE_SLOT if index is not None:
                wrong = replace(wrong, slots=(*wrong.slots[:index], *wrong.slots[index + 1 :]))
            case FaultAction.WRONG_VALUE if index is not None:
                wrong_slot = replace(wrong.slots[index], value=rule.heard_as)
                wrong = replace(wrong, slots=(*wrong.slots[:index], wrong_slot, *wrong.slots[index + 1 :]))
            case _:
                pass
    return wrong


def wrong_reply(wrong: ReportedFrame) -> str:
    """The reply to a query that it misunderstood on purpose, and on which it does not act."""
    intents = [intent.replace("_", " ") for intent in wrong.intents]
    return f"Okay, {', '.join([*intents, *(slot.value or '' for slot in wrong.slots)])}."


T = TypeVar("T")


@frozen
class Moment:
    """A moment: monotonic seconds, and the local wall clock.

    called_s: when the user began to speak (the wake phrase, or the answer to a question), in monotonic seconds; None:
    at this moment.
    """

    now_s: float
    wall: datetime
    called_s: float | None = None

    @property
    def began_s(self) -> float:
        return self.now_s if self.called_s is None else self.called_s


@frozen
class SkillAnswer:
    """A skill's answer.

    - text: the words to say.
    - frame: the intents and slots that it understood.
    - subject: what a follow-up may refer to; None for nothing.
    - asks: whether the text is a question, so that the dialogue stays open.
    """

    text: str
    frame: ReportedFrame
    subject: object = None
    asks: bool = False


class Memory:
    """Remembers the last subject until some time after the answer about it, or until `forget`.

    memory_s: length of that time.
    """

    def __init__(self, memory_s: float) -> None:
        self._memory_s = memory_s
        self._duration_s = memory_s
        self._subject: object = None
        self._ends_s = float("-inf")

    def keep(self, subject: object, now_s: float, wait_s: float | None = None) -> None:
        """Remembers a subject for wait_s (None: the memory's duration)."""
        self._subject = subject
        self._duration_s = self._memory_s if wait_s is None else wait_s
        self._ends_s = now_s + self._duration_s

    def begin_query(self, moment: Moment) -> None:
        """Records that the user speaks: an expired subject is dropped, another one is kept while the user speaks."""
        if moment.began_s > self._ends_s:
            self.forget()
        else:
            self._ends_s = moment.now_s + self._duration_s

    def renew(self, now_s: float) -> None:
        """Restarts the time for a subject that has not expired."""
        self._ends_s = now_s + self._duration_s

    def forget(self) -> None:
        """Drops the subject."""
        self._subject = None

    def recall(self, kind: type[T], now_s: float) -> T | None:
        """The subject if it is of that kind and has not expired."""
        if now_s <= self._ends_s and isinstance(self._subject, kind):
            return self._subject
        return None
