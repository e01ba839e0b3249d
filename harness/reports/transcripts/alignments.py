"""Reference and hypothesis word below word, with a letter below each that is wrong (as the pra report of sclite)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.evaluate.scoring import ScoredUtterance
from harness.model.transcript import AlignedWord, Edit
from harness.reports.transcripts.cells import padded, shown, width_of

REFERENCE, HYPOTHESIS, MARKS = "REF:  ", "HYP:  ", "Eval: "
EMPTY = "*"
_COLOURS = {Edit.SUBSTITUTION: "31", Edit.DELETION: "33", Edit.INSERTION: "34"}
"""Red, yellow, blue; the letter below says the same without them."""


def lines(utterance: ScoredUtterance, width: int, *, colour: bool) -> Iterator[str]:
    """A heading, then rows of three lines, none wider than `width` columns (20 and more)."""
    yield from _heading(utterance, width)
    room = max(8, width - len(REFERENCE))
    row: list[AlignedWord] = []
    taken = 0
    for word in utterance.words:
        needed = _width(word, room)
        if row and taken + 1 + needed > room:
            yield from _row(row, room, colour)
            row, taken = [], 0
        taken += needed + (1 if row else 0)
        row.append(word)
    yield from _row(row, room, colour)


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


def _row(words: Sequence[AlignedWord], room: int, colour: bool) -> Iterator[str]:
    references, hypotheses, marks = [], [], []
    for word in words:
        width = _width(word, room)
        blank = EMPTY * width if word.edit is not Edit.CORRECT else ""
        references.append(_cell(word.reference, blank, width, word.edit, colour))
        hypotheses.append(_cell(word.hypothesis, blank, width, word.edit, colour))
        marks.append(_cell("" if word.edit is Edit.CORRECT else word.edit.value, "", width, word.edit, colour))
    yield _line(REFERENCE, references)
    yield _line(HYPOTHESIS, hypotheses)
    if any(word.edit is not Edit.CORRECT for word in words):
        yield _line(MARKS, marks)


def _line(head: str, cells: Sequence[str]) -> str:
    return (head + " ".join(cells)).rstrip()


def _width(word: AlignedWord, room: int) -> int:
    return max(1, width_of(shown(word.reference, room)), width_of(shown(word.hypothesis, room)))


def _cell(text: str, blank: str, width: int, edit: Edit, colour: bool) -> str:
    cell = shown(text, width) if text else blank
    code = _COLOURS.get(edit)
    if colour and code and cell:
        return f"\x1b[{code}m{cell}\x1b[0m{' ' * (width - width_of(cell))}"
    return padded(cell, width)
