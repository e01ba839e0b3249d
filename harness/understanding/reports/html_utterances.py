"""Utterances of scored systems for a page: gold above predictions, slots over their words, each with what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.base.foreign import plain_text
from harness.model.understanding import Utterance
from harness.understanding.arithmetic.frame import Item, items
from harness.understanding.arithmetic.rule import Rule
from harness.understanding.scoring.scoring import ScoredFrame, Scoring

MOST_WORDS = 400
MOST_IN_ALL = 150_000
"""Words of all utterances of a page together, which a browser still opens at once."""
LONGEST_NAME = 80

RIGHT, MISSED, EXTRA, CONCEPT, BOUNDS, VALUE = "", "M", "X", "C", "B", "V"
SIGNS = {RIGHT: "", MISSED: "−", EXTRA: "+", CONCEPT: "≠", BOUNDS: "↔", VALUE: "≈"}


@dataclass(frozen=True, slots=True)
class Piece:
    """Words that are one slot, or outside all. mark: what is wrong with the slot; RIGHT where nothing is."""

    text: str
    concept: str = ""
    mark: str = RIGHT

    @property
    def sign(self) -> str:
        return SIGNS[self.mark]


@dataclass(frozen=True, slots=True)
class Line:
    """Gold, or a system's prediction. intents: with their marks. left_out: words that are not shown."""

    label: str
    intents: tuple[tuple[str, str], ...]
    pieces: tuple[Piece, ...]
    annotated: bool
    missing: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class ShownUtterance:
    """kinds: letters of what is wrong in any system: I intents, N no prediction, marks of slots, 0 nothing."""

    place: int
    id: str
    kinds: str
    intents: tuple[str, ...]
    concepts: tuple[str, ...]
    groups: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """What a page shows, worst first."""

    utterances: tuple[ShownUtterance, ...]
    total: int
    with_errors: int
    shown_with_errors: int

    @property
    def left_out(self) -> int:
        return self.total - len(self.utterances)


def selection(scorings: Sequence[Scoring], labels: Sequence[str], most: int) -> Selection:
    """scorings: of systems against the same gold, so that their frames stand in the same order."""
    frames = list(zip(*(one.frames for one in scorings), strict=True))
    errors = [sum(map(_errors, of)) for of in frames]
    order = sorted(range(len(frames)), key=lambda at: (-errors[at], at))
    shown: list[int] = []
    words = 0
    for at in order[:most]:
        words += (1 + len(scorings)) * (1 + min(MOST_WORDS, len(frames[at][0].gold.words)))
        if shown and words > MOST_IN_ALL:
            break
        shown.append(at)
    rules = [one.rule for one in scorings]
    return Selection(
        tuple(_shown(at, frames[at], rules, labels) for at in shown),
        len(frames),
        sum(one > 0 for one in errors),
        sum(errors[at] > 0 for at in shown),
    )


def _errors(frame: ScoredFrame) -> int:
    """Wrong intents, and slots that gold or the prediction has alone."""
    counts = frame.counts
    intents = sum(one.gold + one.predicted - 2 * one.right for one in counts.intents.labels.values())
    matched = counts.slots.chunks if counts.slots.placed else counts.slots.concepts
    slots = sum(one.gold + one.predicted - 2 * one.right for one in matched.values())
    values = counts.valued.edits.errors
    return intents + max(slots, counts.slots.edits.errors, values)


def _shown(at: int, frames: Sequence[ScoredFrame], rules: Sequence[Rule], labels: Sequence[str]) -> ShownUtterance:
    gold = frames[0].gold
    kinds: set[str] = set()
    lines: list[Line] = []
    lost: list[list[str]] = []
    wanted = items(gold, rules[0]) or ()
    for frame, rule, label in zip(frames, rules, labels, strict=True):
        said = items(frame.predicted, rule) or ()
        # What nobody predicts, or nobody annotated, is not wrong.
        slotted = frame.counts.slots.utterances > 0
        of, marks = _marks(wanted, said) if slotted else ([RIGHT] * len(wanted), [RIGHT] * len(said))
        lost.append(of)
        kinds |= {mark for mark in (*of, *marks) if mark}
        counted = frame.counts.intents.utterances > 0
        if counted and set(gold.intents or ()) != set(frame.predicted.intents or ()):
            kinds.add("I")
        if frame.missing:
            kinds.add("N")
        lines.append(
            _line(label, frame.predicted, _intents(gold, frame.predicted, counted), said, marks, frame.missing)
        )
    # A slot of gold is lost when every system lost it.
    marks = [column[0] if all(column) else RIGHT for column in zip(*lost, strict=True)]
    mine = tuple((plain_text(one, LONGEST_NAME), RIGHT) for one in gold.intents or ())
    return ShownUtterance(
        at,
        plain_text(gold.id, 200),
        "".join(sorted(kinds)) or "0",
        tuple(plain_text(one, LONGEST_NAME) for one in gold.intents or ()),
        tuple(dict.fromkeys(plain_text(one.concept, LONGEST_NAME) for one in wanted)),
        ", ".join(f"{plain_text(name, 40)} {plain_text(label, 40)}" for name, label in gold.groups if label),
        (_line("gold", gold, mine, wanted, marks, False), *lines),
    )


def _intents(gold: Utterance, said: Utterance, counted: bool) -> tuple[tuple[str, str], ...]:
    if not counted:
        return tuple((plain_text(one, LONGEST_NAME), RIGHT) for one in said.intents or ())
    of, told = set(gold.intents or ()), set(said.intents or ())
    marks = [(one, RIGHT if one in of else EXTRA) for one in sorted(told)]
    return tuple(
        (plain_text(one, LONGEST_NAME), mark) for one, mark in (*marks, *((one, MISSED) for one in sorted(of - told)))
    )


def _marks(gold: Sequence[Item], said: Sequence[Item]) -> tuple[list[str], list[str]]:
    """What is wrong with each slot of gold and of a prediction."""
    of, told = [MISSED] * len(gold), [EXTRA] * len(said)
    placed = all(one.place for one in (*gold, *said))
    left = Counter(range(len(said)))

    def pair(fits: Callable[[Item, Item], bool], mark: str) -> None:
        for at, one in enumerate(gold):
            if of[at] != MISSED:
                continue
            found = next((other for other in left if fits(one, said[other])), None)
            if found is not None:
                of[at] = told[found] = mark
                del left[found]

    if placed:
        pair(lambda one, other: one.concept == other.concept and one.place == other.place and _same(one, other), RIGHT)
        pair(lambda one, other: one.concept == other.concept and one.place == other.place, VALUE)
        pair(lambda one, other: one.place == other.place, CONCEPT)
        pair(lambda one, other: one.concept == other.concept and _overlap(one, other), BOUNDS)
    else:
        pair(lambda one, other: one.concept == other.concept and _same(one, other), RIGHT)
        pair(lambda one, other: one.concept == other.concept, VALUE)
    return of, told


def _same(gold: Item, said: Item) -> bool:
    return gold.value is None or said.value is None or gold.value == said.value


def _overlap(one: Item, other: Item) -> bool:
    (start, end), (begin, stop) = one.place or (0, 0), other.place or (0, 0)
    return start < stop and begin < end


def _line(
    label: str,
    of: Utterance,
    intents: tuple[tuple[str, str], ...],
    slots: Sequence[Item],
    marks: Sequence[str],
    missing: bool,
) -> Line:
    pieces = tuple(_pieces(of.words[:MOST_WORDS], slots, marks))
    annotated = of.tags is not None or of.slots is not None
    return Line(plain_text(label, 40), intents, pieces, annotated, missing, max(0, len(of.words) - MOST_WORDS))


def _pieces(words: Sequence[str], slots: Sequence[Item], marks: Sequence[str]) -> Iterator[Piece]:
    """The words in their order, slots as one piece each; slots without place, or over another, stand behind."""
    at = 0
    behind = []
    placed = sorted((one.place or (-1, -1), number) for number, one in enumerate(slots))
    for (start, end), number in placed:
        one = slots[number]
        if start < at or end > len(words):
            behind.append((one, marks[number]))
            continue
        yield from (Piece(plain_text(word, LONGEST_NAME)) for word in words[at:start])
        yield Piece(plain_text(" ".join(words[start:end]), 400), plain_text(one.concept, LONGEST_NAME), marks[number])
        at = end
    yield from (Piece(plain_text(word, LONGEST_NAME)) for word in words[at:])
    for one, mark in behind:
        value = "" if one.value is None else plain_text(one.value, 200)
        yield Piece(value, plain_text(one.concept, LONGEST_NAME), mark)
