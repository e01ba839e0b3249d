"""The utterances of a scoring that only networks can align: with alternatives, fragments, or several readings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.model.choices import Marks
from harness.model.errors import InputError, Place
from harness.model.transcript import AlignedWord, Transcripts
from harness.transcripts import snor
from harness.transcripts.network import Network, align_networks, align_readings, chain, is_plain, parse
from harness.transcripts.readings import Readings, is_single
from harness.transcripts.wording import Wording, refuse

TextNetworks = Mapping[int, tuple[AlignedWord, ...]]
_FRAGMENT = re.compile(r"(?:^|\s)-\S|\S-(?:\s|$)")


def aligned_networks(
    references: Transcripts,
    hypotheses: Transcripts,
    shown: tuple[Sequence[str], Sequence[str]],
    wording: Wording,
    *,
    optional_words: bool,
    fragments: bool,
) -> TextNetworks:
    """By their row, the pairs that only networks can align, aligned; InputError with a place where one is not closed.

    shown: the normalised texts, which count where no marks are read.
    """
    read = wording.reads_marks
    of = _Side(references, shown[0], wording, read[0], Marks.NONE)
    said = _Side(hypotheses, shown[1], wording, read[1], Marks.REFERENCE)
    rows: set[int] = set()
    for side in (of, said):
        rows |= _rows(side.texts, lambda text: not is_plain(text)) if side.marked else set()
        rows |= _rows(side.texts, lambda text: _FRAGMENT.search(text) is not None) if fragments else set()
    same = _same_sound if wording.has_homophones else None
    found = _read_apart(of, said, rows) if wording.has_readings else {}
    problems: list[InputError] = []
    for row in sorted(rows):
        try:
            found[row] = align_networks(
                of.network(row), said.network(row), same, optional_words=optional_words, fragments=fragments
            )
        except InputError as error:
            problems.append(error)
    refuse(problems)
    return found


@dataclass(frozen=True, slots=True)
class _Side:
    """The texts of one file. marked: whether marks are read in them. unread: how none would be."""

    transcripts: Transcripts
    normalised: Sequence[str]
    wording: Wording
    marked: bool
    unread: Marks

    def readings(self, row: int) -> Readings:
        """Of a text in which no marks are read."""
        if self.wording.has_readings:
            return self.wording.readings(self.transcripts.texts[row])
        return tuple(self.normalised[row].split())

    @property
    def texts(self) -> Sequence[str]:
        return self.transcripts.texts if self.marked else self.normalised

    def network(self, row: int) -> Network:
        place, text = Place(self.transcripts.file, self.transcripts.lines[row]), self.transcripts.texts[row]
        if not self.marked:
            return chain(self.readings(row), place)
        try:
            return parse(text, self.wording.readings, place)
        except InputError as error:
            remedy = f"{error.remedy}; or read no marks here: --marks {self.unread.value}"
            raise InputError(error.what, place=error.place, remedy=remedy) from error


def _read_apart(of: _Side, said: _Side, marked: set[int]) -> dict[int, tuple[AlignedWord, ...]]:
    """By their row, pairs without marks of which the first readings differ, and others may not, aligned."""
    from harness.transcripts.spoken_words import comparable  # here, since its lists take a while to read

    found: dict[int, tuple[AlignedWord, ...]] = {}
    for row, (words, heard) in enumerate(zip(of.normalised, said.normalised, strict=True)):
        if words != heard and words and heard and row not in marked:
            pieces = comparable(of.readings(row), said.readings(row))
            if not all(map(is_single, pieces)):
                found[row] = align_readings(*pieces)
    return found


def _rows(texts: Sequence[str], found: Callable[[str], bool]) -> set[int]:
    """Rows that a mark is found in; all of them are looked at as one text first, since most files have none."""
    if not found("\n".join(texts)):
        return set()
    return {row for row, text in enumerate(texts) if found(text)}


def _same_sound(word: str, other: str) -> bool:
    return snor.homophone(word) == snor.homophone(other)
