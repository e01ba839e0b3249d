"""Reference and hypothesis word below word, with a letter below each that is wrong (as the pra report of sclite)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.base.cells import padded, shown, width_of
from harness.model.transcript import AlignedWord, Edit
from harness.transcripts.scoring import ScoredUtterance

REFERENCE, HYPOTHESIS, MARKS = "REF:  ", "HYP:  ", "Eval: "
EMPTY = "*"
_COLOURS = {Edit.SUBSTITUTION: "31", Edit.DELETION: "33", Edit.INSERTION: "34"}
"""Red, yellow, blue; the letter below says the same without them."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A word of either side, made harmless, and the columns that the two need."""

    edit: Edit
    reference: str
    hypothesis: str
    width: int


def lines(utterance: ScoredUtterance, width: int, *, colour: bool) -> Iterator[str]:
    """A heading, then rows of three lines, none wider than `width` columns (20 and more)."""
    yield from _heading(utterance, width)
    room = max(8, width - len(REFERENCE))
    row: list[_Step] = []
    left = room
    for word in utterance.words:
        step = _step(word, room)
        if row and step.width > left:
            yield from _row(row, colour)
            row, left = [], room
        row.append(step)
        left -= step.width + 1
    yield from _row(row, colour)


def _step(word: AlignedWord, room: int) -> _Step:
    of, said = shown(word.reference, room), shown(word.hypothesis, room)
    return _Step(word.edit, of, said, max(1, width_of(of), width_of(said)))


def _heading(utterance: ScoredUtterance, width: int) -> Iterator[str]:
    counts = utterance.counts
    named = f"id: {shown(utterance.id, max(8, width - 4))}"
    speaker = f"speaker: {shown(utterance.speaker, max(8, width - 9))}" if utterance.speaker else ""
    figures = f"C {counts.correct}  S {counts.substitutions}  D {counts.deletions}  I {counts.insertions}"
    if utterance.missing:
        figures += "  (no hypothesis)"
    line = ""
    for part in filter(None, (named, speaker, figures)):
        if line and width_of(line) + 3 + width_of(part) > width:
            yield line
            line = part
        else:
            line = f"{line}   {part}" if line else part
    yield line


def _row(steps: Sequence[_Step], colour: bool) -> Iterator[str]:
    references, hypotheses, marks = [], [], []
    for step in steps:
        if step.edit is Edit.CORRECT:
            references.append(padded(step.reference, step.width))
            hypotheses.append(padded(step.hypothesis, step.width))
            marks.append(" " * step.width)
        else:
            paint = _COLOURS[step.edit] if colour else ""
            references.append(_wrong(step.reference or EMPTY * step.width, step.width, paint))
            hypotheses.append(_wrong(step.hypothesis or EMPTY * step.width, step.width, paint))
            marks.append(_wrong(step.edit.value, step.width, paint))
    yield _line(REFERENCE, references)
    yield _line(HYPOTHESIS, hypotheses)
    if any(step.edit is not Edit.CORRECT for step in steps):
        yield _line(MARKS, marks)


def _line(head: str, cells: Sequence[str]) -> str:
    return (head + " ".join(cells)).rstrip()


def _wrong(text: str, width: int, paint: str) -> str:
    if not paint:
        return padded(text, width)
    return f"\x1b[{paint}m{text}\x1b[0m{' ' * (width - width_of(text))}"
