"""Frames that a device reported, compared with the expected ones: as a verdict, and part by part for users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

from harness.base.foreign import plain_text
from harness.model.frozen import frozen
from harness.model.observation import Intent
from harness.model.record import AttemptFinished, UnderstandingResult
from harness.model.scenario import RecognitionRule
from harness.model.trial import EvidenceSource, Trial
from harness.model.understanding import ExpectedFrame, Slot, frame_text, intent_set
from harness.transcripts.recognition import same_words, words_of


def understanding_result(
    expected: ExpectedFrame, events: Sequence[Intent], rule: RecognitionRule
) -> UnderstandingResult:
    """The frame that the events of one attempt report together, compared with the expected one.

    The result has the intents of all events, and their slots as combined by `merge_slots`. Intents are right if they
    equal the expected ones. The frame is right if the slots are right too, or ignored. Names are compared verbatim,
    values after the rule's normalisation.
    """
    if not events:
        return UnderstandingResult()
    intents = tuple(sorted({intent for event in events for intent in intent_set(event.name)}))
    slots = merge_slots(tuple(Slot(concept, value) for concept, value in event.slots) for event in events)
    right = intents == expected.intents
    slots_right = expected.slots is None or slots_match(expected.slots, slots, rule)
    return UnderstandingResult(intents, slots, right, right and slots_right, EvidenceSource.DEVICE)


def merge_slots(events: Iterable[Sequence[Slot]]) -> tuple[Slot, ...]:
    """The slots of several events together, in order. Each occurs as often as in the event that has it most often."""
    counts: Counter[Slot] = Counter()
    for slots in events:
        counts |= Counter(slots)
    return tuple(counts.elements())


def slots_match(expected: Sequence[Slot], slots: Sequence[Slot], rule: RecognitionRule) -> bool:
    """Whether the expected concepts were reported, as often and with equal values.

    An expected value of None matches any value.
    """
    return all(part.mark is PartMark.RIGHT for part in _slot_parts(expected, slots, rule))


def same_value(value: str, reported_value: str | None, rule: RecognitionRule) -> bool:
    """Whether a slot's value equals the reported one, in some reading of both under the rule."""
    if normalised(value, rule) == normalised(reported_value or "", rule):
        return True
    return bool(words_of(value, rule)) and same_words(value, reported_value or "", rule)


def normalised(value: str, rule: RecognitionRule) -> str:
    """A slot's value after the rule's normalisation, or unchanged if no words remain."""
    return " ".join(words_of(value, rule)) or value.strip()


def normalised_slots(slots: Sequence[Slot], rule: RecognitionRule, expected: Sequence[Slot] = ()) -> tuple[Slot, ...]:
    """The slots without places, and with normalised values, so that equal values are equal texts.

    One text may have several readings. So a value that is the `same_value` as that of an expected slot of its concept
    becomes the value of that slot.
    """
    with_values: list[Slot] = []
    for slot in slots:
        if slot.value is None:
            with_values.append(Slot(slot.concept))
            continue
        value = normalised(slot.value, rule)
        same_values = [
            normalised(other.value, rule)
            for other in expected
            if other.concept == slot.concept and other.value is not None and same_value(other.value, slot.value, rule)
        ]
        with_values.append(Slot(slot.concept, same_values[0] if same_values and value not in same_values else value))
    return tuple(with_values)


MAX_TEXT_CHARS = 120
"""Longest name or value on screen, in characters."""
MAX_FRAME_CHARS = 500


class PartMark(StrEnum):
    """How a reported part compares with the expected one. Its sign shows this without colour.

    ASIDE: a reported slot in a trial that ignores slots.
    """

    RIGHT = "right"
    OTHER_VALUE = "other value"
    MISSING = "missing"
    TOO_MANY = "too many"
    ASIDE = "not compared"

    @property
    def sign(self) -> str:
        return _SIGNS[self]


_SIGNS = {
    PartMark.RIGHT: "=",
    PartMark.OTHER_VALUE: "≠",
    PartMark.MISSING: "−",
    PartMark.TOO_MANY: "+",
    PartMark.ASIDE: "·",
}


@frozen
class FramePart:
    """One intent or one slot. Its texts are not escaped yet.

    - value: the reported value; that of a missing slot is the expected one.
    - wanted: the expected value, for OTHER_VALUE only.
    """

    mark: PartMark
    name: str
    is_slot: bool = False
    value: str | None = None
    wanted: str | None = None


def parts(expected: ExpectedFrame, frame: UnderstandingResult, rule: RecognitionRule) -> tuple[FramePart, ...]:
    """The parts of a frame, intents first, then slots. Expected parts keep their order, and unexpected ones follow.

    () if the device reported nothing. Values are compared after the scenario's normalisation. An expected slot without
    a value matches any value.
    """
    if frame.intents is None:
        return ()
    return (*_intent_parts(expected.intents, frame.intents), *_slot_parts(expected.slots, frame.slots or (), rule))


def parts_of(trial: Trial, row: AttemptFinished) -> tuple[FramePart, ...]:
    """The parts of an attempt's frame. () if its trial expects no frame, or none was reported."""
    if trial.expects is None or row.understood is None:
        return ()
    return parts(trial.expects, row.understood, trial.recognised)


def frame_line(intents: Sequence[str] | None, slots: Sequence[Slot] | None) -> str:
    """A frame on one line, escaped: `set_timer (duration: 10 minutes)`, or `nothing` without an intent."""
    return plain_text(frame_text(tuple(intents or ()), None if slots is None else tuple(slots)), MAX_FRAME_CHARS)


def parts_line(frame_parts: Sequence[FramePart]) -> str:
    """Parts on one line, escaped: `= set_timer, ≠ duration "15 minutes" (wanted "10 minutes")`."""
    return ", ".join(_part_text(part) for part in frame_parts)


def _part_text(part: FramePart) -> str:
    """A part with its sign, escaped."""
    name = _slot_text(part.name, part.value) if part.is_slot else plain_text(part.name, MAX_TEXT_CHARS)
    wanted = ""
    if part.mark is PartMark.OTHER_VALUE:
        wanted = f' (wanted "{plain_text(part.wanted or "", MAX_TEXT_CHARS)}")'
    return f"{part.mark.sign} {name}{wanted}"


def verdict_in_words(frame: UnderstandingResult) -> str:
    """Whether an attempt was understood, in a few words."""
    match frame.right, frame.intents_right:
        case True, _:
            return "understood"
        case False, True:
            return "intents right, slots not"
        case False, _:
            return "not understood"
        case _:
            return "what it understood is unknown"


def _slot_text(concept: str, value: str | None) -> str:
    name = plain_text(concept, MAX_TEXT_CHARS)
    return name if value is None else f'{name} "{plain_text(value, MAX_TEXT_CHARS)}"'


def _intent_parts(expected: Sequence[str], names: Sequence[str]) -> Iterator[FramePart]:
    for name in expected:
        yield FramePart(PartMark.RIGHT if name in names else PartMark.MISSING, name)
    for name in names:
        if name not in expected:
            yield FramePart(PartMark.TOO_MANY, name)


def _slot_parts(expected: Sequence[Slot] | None, slots: Sequence[Slot], rule: RecognitionRule) -> Iterator[FramePart]:
    """The parts for slots, the expected ones first. expected: None if the trial ignores slots."""
    if expected is None:
        for slot in slots:
            yield FramePart(PartMark.ASIDE, slot.concept, is_slot=True, value=slot.value)
        return
    unmatched = list(slots)
    # Slots with a value are matched first. Otherwise, one that matches any value could take a slot from them.
    matches: dict[int, Slot | None] = {}
    for index, slot in sorted(enumerate(expected), key=lambda numbered: numbered[1].value is None):
        matches[index] = _pop_match(unmatched, slot, lambda candidate, wanted: _matches(wanted, candidate, rule))
    for index, slot in enumerate(expected):
        match = matches[index]
        if match is not None:
            yield FramePart(PartMark.RIGHT, slot.concept, is_slot=True, value=match.value)
            continue
        other = _pop_match(unmatched, slot, lambda candidate, wanted: candidate.concept == wanted.concept)
        if other is not None:
            yield FramePart(PartMark.OTHER_VALUE, slot.concept, is_slot=True, value=other.value, wanted=slot.value)
        else:
            yield FramePart(PartMark.MISSING, slot.concept, is_slot=True, value=slot.value)
    for slot in unmatched:
        yield FramePart(PartMark.TOO_MANY, slot.concept, is_slot=True, value=slot.value)


def _pop_match(candidates: list[Slot], expected_slot: Slot, is_match: Callable[[Slot, Slot], bool]) -> Slot | None:
    """The first candidate that matches, removed from `candidates`; None if none does."""
    for index, slot in enumerate(candidates):
        if is_match(slot, expected_slot):
            return candidates.pop(index)
    return None


def _matches(expected_slot: Slot, slot: Slot, rule: RecognitionRule) -> bool:
    if expected_slot.concept != slot.concept:
        return False
    return expected_slot.value is None or same_value(expected_slot.value, slot.value, rule)
