"""One utterance as columns of a page: hypotheses under their reference, word by word, errors marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from harness.base.foreign import plain_text
from harness.model.transcript import AlignedWord, Edit
from harness.transcripts.scoring import ScoredUtterance

MOST_STEPS = 1000
"""Words of an utterance that are shown; a line of a megabyte is not."""
LONGEST_WORD = 80
_Split = tuple[list[list[AlignedWord]], list[AlignedWord]]


@dataclass(frozen=True, slots=True)
class Cell:
    """A hypothesis at one column. edit: None where only another hypothesis has a word."""

    edit: Edit | None = None
    text: str = ""
    same: bool = True
    """For a correct one: it is written as the reference is."""


@dataclass(frozen=True, slots=True)
class Column:
    """A word of the reference ("" where words were put in) over a cell for each hypothesis."""

    reference: str
    cells: tuple[Cell, ...]

    @property
    def is_lost(self) -> bool:
        """No hypothesis has the word of the reference."""
        return all(cell.edit in (Edit.SUBSTITUTION, Edit.DELETION) for cell in self.cells)

    @property
    def is_deleted(self) -> bool:
        """No hypothesis has any word there."""
        return all(cell.edit is Edit.DELETION for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Block:
    """Columns to be drawn; left_out: how many more there are."""

    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    left_out: int


def blocks(utterances: Sequence[ScoredUtterance], labels: Sequence[str]) -> list[Block]:
    """One block when all have the same reference, else one for each."""
    if len({_reference(one.words) for one in utterances}) == 1:
        return [_block(utterances, labels)]
    return [_block((one,), (label,)) for label, one in zip(labels, utterances, strict=True)]


def _block(utterances: Sequence[ScoredUtterance], labels: Sequence[str]) -> Block:
    reference = _reference(utterances[0].words)
    split = [_at_reference(one.words) for one in utterances]
    gaps = [max(len(inserted[at]) for inserted, _ in split) for at in range(len(reference) + 1)]
    names = tuple(plain_text(label, 40) for label in labels)
    total = len(reference) + sum(gaps)
    return Block(names, tuple(islice(_columns(reference, gaps, split), MOST_STEPS)), max(0, total - MOST_STEPS))


def _columns(reference: Sequence[str], gaps: Sequence[int], split: Sequence[_Split]) -> Iterator[Column]:
    for at, gap in enumerate(gaps):
        for place in range(gap):
            put_in = (inserted[at] for inserted, _ in split)
            yield Column("", tuple(_cell(words[place]) if place < len(words) else Cell() for words in put_in))
        if at < len(reference):
            yield Column(_shown(reference[at]), tuple(_cell(steps[at]) for _, steps in split))


def _reference(words: Sequence[AlignedWord]) -> tuple[str, ...]:
    return tuple(word.reference for word in words if word.edit is not Edit.INSERTION)


def _at_reference(words: Sequence[AlignedWord]) -> _Split:
    """Insertions before each word of the reference and after the last; the other steps."""
    inserted: list[list[AlignedWord]] = [[]]
    steps: list[AlignedWord] = []
    for word in words:
        if word.edit is Edit.INSERTION:
            inserted[-1].append(word)
        else:
            steps.append(word)
            inserted.append([])
    return inserted, steps


def _cell(word: AlignedWord) -> Cell:
    return Cell(word.edit, _shown(word.hypothesis), word.reference == word.hypothesis)


def _shown(word: str) -> str:
    return plain_text(word, LONGEST_WORD)
