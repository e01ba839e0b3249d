"""The utterances that a page shows, worst first: their words with slots, gold and predicted, marked by errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.base.foreign import plain_text
from harness.model.frozen import frozen
from harness.model.understanding import Utterance
from harness.understanding.counts import Rule, SlotItem, slot_items, valued_slot_items
from harness.understanding.scoring import FrameScoring, ScoredFrame

MAX_WORDS = 400
"""Most words of an utterance that are shown."""
MAX_WORDS_IN_ALL = 150_000
"""Most words on a page, so that a browser opens it quickly."""
MAX_NAME_CHARS = 80

RIGHT, MISSED, EXTRA, CONCEPT, BOUNDS, VALUE = "", "M", "X", "C", "B", "V"
"""The marks of slots: right, only in gold, only predicted, or with a wrong concept, place or value."""
SIGNS = {RIGHT: "", MISSED: "−", EXTRA: "+", CONCEPT: "≠", BOUNDS: "↔", VALUE: "≈"}


@frozen
class Piece:
    """The words of one slot, or a word outside of slots (concept ""). mark: the error of the slot, or RIGHT."""

    text: str
    concept: str = ""
    mark: str = RIGHT

    @property
    def sign(self) -> str:
        return SIGNS[self.mark]


@frozen
class FrameLine:
    """A line of an utterance: gold, or the prediction of a system.

    - intents: (name, mark).
    - annotated: whether it has slots, which may be none.
    - missing: whether there is no prediction.
    - left_out: number of words that are not shown.
    """

    label: str
    intents: tuple[tuple[str, str], ...]
    pieces: tuple[Piece, ...]
    annotated: bool
    missing: bool = False
    left_out: int = 0


@frozen
class ShownFrames:
    """An utterance to show.

    - place: its index in gold.
    - kinds: letters of the errors in any system: I for intents, N for no prediction, the marks of slots, 0 for no
      error.
    """

    place: int
    id: str
    kinds: str
    intents: tuple[str, ...]
    concepts: tuple[str, ...]
    groups: str
    lines: tuple[FrameLine, ...]


@frozen
class FrameSelection:
    """The utterances of a page, worst first.

    - total, with_errors: numbers of all utterances, and of those with an error.
    - shown_with_errors: number of shown utterances with an error.
    """

    utterances: tuple[ShownFrames, ...]
    total: int
    with_errors: int
    shown_with_errors: int

    @property
    def left_out(self) -> int:
        return self.total - len(self.utterances)


def selection(scorings: Sequence[FrameScoring], labels: Sequence[str], max_utterances: int) -> FrameSelection:
    """The utterances to show.

    - scorings: against the same gold, so that their frames have the same order.
    - labels: names of the systems.
    - max_utterances: largest number of utterances.
    """
    frames = list(zip(*(scoring.frames for scoring in scorings), strict=True))
    errors = [sum(map(_error_count, utterance_frames)) for utterance_frames in frames]
    order = sorted(range(len(frames)), key=lambda index: (-errors[index], index))
    shown: list[int] = []
    words = 0
    for index in order[:max_utterances]:
        words += (1 + len(scorings)) * (1 + min(MAX_WORDS, len(frames[index][0].gold.words)))
        if shown and words > MAX_WORDS_IN_ALL:
            break
        shown.append(index)
    rules = [scoring.rule for scoring in scorings]
    return FrameSelection(
        tuple(_shown_frames(index, frames[index], rules, labels) for index in shown),
        len(frames),
        sum(number > 0 for number in errors),
        sum(errors[index] > 0 for index in shown),
    )


def _error_count(frame: ScoredFrame) -> int:
    """Number of wrong intents, of predictions that lack where gold has no intent, and of slots only in gold or only
    predicted."""
    counts = frame.counts
    intents = sum(overlap.gold + overlap.predicted - 2 * overlap.right for overlap in counts.intents.labels.values())
    matched = counts.slots.chunks if counts.slots.placed else counts.slots.concepts
    slots = sum(overlap.gold + overlap.predicted - 2 * overlap.right for overlap in matched.values())
    values = counts.valued.edits.errors
    return intents + counts.intents.unpredicted + max(slots, counts.slots.edits.errors, values)


def _shown_frames(
    place: int, frames: Sequence[ScoredFrame], rules: Sequence[Rule], labels: Sequence[str]
) -> ShownFrames:
    gold = frames[0].gold
    kinds: set[str] = set()
    lines: list[FrameLine] = []
    gold_marks_by_system: list[list[str]] = []
    with_values = any(frame.counts.valued.utterances for frame in frames)
    gold_slots = _shown_slots(gold, rules[0], with_values=with_values)
    for frame, rule, label in zip(frames, rules, labels, strict=True):
        slots = _shown_slots(frame.predicted, rule, with_values=with_values)
        # If slots are not predicted or not annotated, they do not count as wrong.
        has_slots = frame.counts.slots.utterances > 0
        has_values = frame.counts.valued.utterances > 0
        gold_marks, marks = (
            _marks(gold_slots, slots, with_values=has_values)
            if has_slots
            else ([RIGHT] * len(gold_slots), [RIGHT] * len(slots))
        )
        gold_marks_by_system.append(gold_marks)
        kinds |= {mark for mark in (*gold_marks, *marks) if mark}
        has_intents = frame.counts.intents.utterances > 0
        if has_intents and set(gold.intents or ()) != set(frame.predicted.intents or ()):
            kinds.add("I")
        if frame.missing:
            kinds.add("N")
        lines.append(
            _line(
                label, frame.predicted, _marked_intents(gold, frame.predicted, has_intents), slots, marks, frame.missing
            )
        )
    # A slot of gold is marked if every system has it wrong.
    marks = [column[0] if all(column) else RIGHT for column in zip(*gold_marks_by_system, strict=True)]
    intents = tuple(plain_text(intent, MAX_NAME_CHARS) for intent in gold.intents or ())
    return ShownFrames(
        place=place,
        id=plain_text(gold.id, 200),
        kinds="".join(sorted(kinds)) or "0",
        intents=intents,
        concepts=tuple(dict.fromkeys(plain_text(slot.concept, MAX_NAME_CHARS) for slot in gold_slots)),
        groups=", ".join(f"{plain_text(name, 40)} {plain_text(label, 40)}" for name, label in gold.groups if label),
        lines=(_line("gold", gold, tuple((intent, RIGHT) for intent in intents), gold_slots, marks, False), *lines),
    )


def _shown_slots(utterance: Utterance, rule: Rule, *, with_values: bool) -> tuple[SlotItem, ...]:
    """The slots of an utterance, as its tags name them. with_values: whether to add the values of slots beside tags."""
    slots = slot_items(utterance, rule) or ()
    if not with_values or utterance.tags is None or utterance.slots is None:
        return slots
    values = {(slot.concept, slot.place): slot.value for slot in valued_slot_items(utterance, rule) or ()}
    return tuple(slot._replace(value=values.get((slot.concept, slot.place), slot.value)) for slot in slots)


def _marked_intents(gold: Utterance, predicted: Utterance, has_intents: bool) -> tuple[tuple[str, str], ...]:
    if not has_intents:
        return tuple((plain_text(intent, MAX_NAME_CHARS), RIGHT) for intent in predicted.intents or ())
    gold_intents, guesses = set(gold.intents or ()), set(predicted.intents or ())
    marks = [(intent, RIGHT if intent in gold_intents else EXTRA) for intent in sorted(guesses)]
    return tuple(
        (plain_text(intent, MAX_NAME_CHARS), mark)
        for intent, mark in (*marks, *((intent, MISSED) for intent in sorted(gold_intents - guesses)))
    )


def _marks(
    gold: Sequence[SlotItem], predicted: Sequence[SlotItem], *, with_values: bool
) -> tuple[list[str], list[str]]:
    """The mark of each slot of gold, and of each slot of a prediction. with_values: whether values are compared."""
    gold_marks, predicted_marks = [MISSED] * len(gold), [EXTRA] * len(predicted)
    placed = all(slot.place for slot in (*gold, *predicted))
    unmatched = list(range(len(predicted)))

    def match_slots(fits: Callable[[SlotItem, SlotItem], bool], mark: str) -> None:
        # Slots with a value come first, so that one that any value matches takes none from them.
        for index, slot in sorted(enumerate(gold), key=lambda numbered: numbered[1].value is None):
            if gold_marks[index] != MISSED:
                continue
            match = next((other for other in unmatched if fits(slot, predicted[other])), None)
            if match is not None:
                gold_marks[index] = predicted_marks[match] = mark
                unmatched.remove(match)

    def same_value(slot: SlotItem, other: SlotItem) -> bool:
        return not with_values or slot.value is None or slot.value == other.value

    if placed:
        match_slots(
            lambda slot, other: slot.concept == other.concept and slot.place == other.place and same_value(slot, other),
            RIGHT,
        )
        match_slots(lambda slot, other: slot.concept == other.concept and slot.place == other.place, VALUE)
        match_slots(lambda slot, other: slot.place == other.place, CONCEPT)
        match_slots(lambda slot, other: slot.concept == other.concept and _overlap(slot, other), BOUNDS)
    else:
        match_slots(lambda slot, other: slot.concept == other.concept and same_value(slot, other), RIGHT)
        match_slots(lambda slot, other: slot.concept == other.concept, VALUE)
    return gold_marks, predicted_marks


def _overlap(slot: SlotItem, other: SlotItem) -> bool:
    (start, end), (other_start, other_end) = slot.place or (0, 0), other.place or (0, 0)
    return start < other_end and other_start < end


def _line(
    label: str,
    utterance: Utterance,
    intents: tuple[tuple[str, str], ...],
    slots: Sequence[SlotItem],
    marks: Sequence[str],
    missing: bool,
) -> FrameLine:
    pieces = tuple(_pieces(utterance.words[:MAX_WORDS], slots, marks))
    annotated = utterance.tags is not None or utterance.slots is not None
    return FrameLine(
        plain_text(label, 40), intents, pieces, annotated, missing, max(0, len(utterance.words) - MAX_WORDS)
    )


def _pieces(words: Sequence[str], slots: Sequence[SlotItem], marks: Sequence[str]) -> Iterator[Piece]:
    """The words in order, with each slot as one piece.

    Slots without a place, slots that overlap others, and slots beyond the shown words come last.
    """
    position = 0
    unplaced = []
    placed = sorted((slot.place or (-1, -1), number) for number, slot in enumerate(slots))
    for (start, end), number in placed:
        slot = slots[number]
        if start < position or end > len(words):
            unplaced.append((slot, marks[number]))
            continue
        yield from (Piece(plain_text(word, MAX_NAME_CHARS)) for word in words[position:start])
        yield Piece(
            plain_text(" ".join(words[start:end]), 400), plain_text(slot.concept, MAX_NAME_CHARS), marks[number]
        )
        position = end
    yield from (Piece(plain_text(word, MAX_NAME_CHARS)) for word in words[position:])
    for slot, mark in unplaced:
        value = "" if slot.value is None else plain_text(slot.value, 200)
        yield Piece(value, plain_text(slot.concept, MAX_NAME_CHARS), mark)
