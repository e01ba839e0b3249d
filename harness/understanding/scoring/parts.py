"""What a device understood beside what was expected, part by part, for people to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.base.foreign import plain_text
from harness.model.record import AttemptFinished, Understood
from harness.model.scenario import Recognised
from harness.model.trial import Trial
from harness.model.understanding import Expected, Slot, frame_text
from harness.understanding.scoring.understood_counts import same_value

LONGEST = 120
"""Characters of a name or a value that are shown."""
LONGEST_FRAME = 500


class Mark(StrEnum):
    """How a part stands against what was expected; the sign says it without a colour.

    ASIDE: a slot of a device whose trial does not look at slots.
    """

    RIGHT = "right"
    OTHER_VALUE = "other value"
    MISSING = "missing"
    TOO_MANY = "too many"
    ASIDE = "not looked at"

    @property
    def sign(self) -> str:
        return _SIGNS[self]


_SIGNS = {Mark.RIGHT: "=", Mark.OTHER_VALUE: "≠", Mark.MISSING: "−", Mark.TOO_MANY: "+", Mark.ASIDE: "·"}


@dataclass(frozen=True, slots=True)
class Part:
    """One intent or one slot; its texts are foreign.

    slot: whether it is one. value: as the device told it, or as it was expected where it is missing. wanted: the value
    that was expected, of OTHER_VALUE.
    """

    mark: Mark
    name: str
    slot: bool = False
    value: str | None = None
    wanted: str | None = None


def parts(expected: Expected, told: Understood, rule: Recognised) -> tuple[Part, ...]:
    """Intents first, then slots; what was expected in its order, then what is too many.

    () where the device told nothing. Values are compared after the scenario's normalisation; an expected slot without
    a value is right with any.
    """
    if told.intents is None:
        return ()
    return (*_intents(expected.intents, told.intents), *_slots(expected.slots, told.slots or (), rule))


def parts_of(trial: Trial, row: AttemptFinished) -> tuple[Part, ...]:
    """Of an attempt; () where its trial expects nothing, or nothing was told."""
    if trial.expects is None or row.understood is None:
        return ()
    return parts(trial.expects, row.understood, trial.recognised)


def written(intents: Sequence[str] | None, slots: Sequence[Slot] | None) -> str:
    """A frame on one line, harmless: `set_timer (duration: 10 minutes)`; `nothing` without an intent."""
    return plain_text(frame_text(tuple(intents or ()), None if slots is None else tuple(slots)), LONGEST_FRAME)


def compared(found: Sequence[Part]) -> str:
    """Parts on one line, harmless: `= set_timer, ≠ duration "15 minutes" (wanted "10 minutes")`."""
    return ", ".join(compared_part(part) for part in found)


def compared_part(part: Part) -> str:
    """A part with its sign, harmless."""
    text = f"{part.mark.sign} {_named(part.name, part.value) if part.slot else plain_text(part.name, LONGEST)}"
    return f'{text} (wanted "{plain_text(part.wanted or "", LONGEST)}")' if part.mark is Mark.OTHER_VALUE else text


def verdict_in_words(told: Understood) -> str:
    """Whether an attempt was understood, in a few words."""
    match told.right, told.intents_right:
        case True, _:
            return "understood"
        case False, True:
            return "intents right, slots not"
        case False, _:
            return "not understood"
        case _:
            return "nothing says what it understood"


def _named(concept: str, value: str | None) -> str:
    name = plain_text(concept, LONGEST)
    return name if value is None else f'{name} "{plain_text(value, LONGEST)}"'


def _intents(wanted: Sequence[str], told: Sequence[str]) -> Iterator[Part]:
    for name in wanted:
        yield Part(Mark.RIGHT if name in told else Mark.MISSING, name)
    for name in told:
        if name not in wanted:
            yield Part(Mark.TOO_MANY, name)


def _slots(wanted: Sequence[Slot] | None, told: Sequence[Slot], rule: Recognised) -> Iterator[Part]:
    if wanted is None:
        for slot in told:
            yield Part(Mark.ASIDE, slot.concept, True, slot.value)
        return
    left = list(told)
    # Equal ones first, then those that any value does for: an item that is there stands for no other that is not.
    same: dict[int, Slot | None] = {}
    for number, slot in sorted(enumerate(wanted), key=lambda one: one[1].value is None):
        same[number] = _take(left, slot, lambda one, want: _same(want, one, rule))
    for number, slot in enumerate(wanted):
        found = same[number]
        if found is not None:
            yield Part(Mark.RIGHT, slot.concept, True, found.value)
        elif (other := _take(left, slot, lambda one, want: one.concept == want.concept)) is not None:
            yield Part(Mark.OTHER_VALUE, slot.concept, True, other.value, slot.value)
        else:
            yield Part(Mark.MISSING, slot.concept, True, slot.value)
    for slot in left:
        yield Part(Mark.TOO_MANY, slot.concept, True, slot.value)


def _take(left: list[Slot], want: Slot, fits: Callable[[Slot, Slot], bool]) -> Slot | None:
    """The first that fits, which is then no longer left."""
    for number, one in enumerate(left):
        if fits(one, want):
            return left.pop(number)
    return None


def _same(want: Slot, told: Slot, rule: Recognised) -> bool:
    if want.concept != told.concept:
        return False
    return want.value is None or same_value(want.value, told.value, rule)
