"""The few utterances of a scoring whose texts carry alternatives, words that may be left out, or fragments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.evaluate.wording import Wording, refuse
from harness.metrics import snor
from harness.metrics.network import Network, align_networks, chain, is_plain, parse
from harness.model.choices import Marks
from harness.model.errors import InputError, Place
from harness.model.transcript import AlignedWord, Transcripts

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
    of = _Side(references, shown[0], wording if read[0] else None, Marks.NONE)
    said = _Side(hypotheses, shown[1], wording if read[1] else None, Marks.REFERENCE)
    rows: set[int] = set()
    for side in (of, said):
        rows |= _rows(side.texts, lambda text: not is_plain(text)) if side.wording else set()
        rows |= _rows(side.texts, lambda text: _FRAGMENT.search(text) is not None) if fragments else set()
    same = _same_sound if wording.has_homophones else None
    found: dict[int, tuple[AlignedWord, ...]] = {}
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
    """The texts of one file. wording: None where no marks are read in them. unread: how none would be."""

    transcripts: Transcripts
    normalised: Sequence[str]
    wording: Wording | None
    unread: Marks

    @property
    def texts(self) -> Sequence[str]:
        return self.transcripts.texts if self.wording else self.normalised

    def network(self, row: int) -> Network:
        place = Place(self.transcripts.file, self.transcripts.lines[row])
        if self.wording is None:
            return chain(self.normalised[row].split(), place)
        try:
            return parse(self.transcripts.texts[row], self.wording, place)
        except InputError as error:
            remedy = f"{error.remedy}; or read no marks here: --marks {self.unread.value}"
            raise InputError(error.what, place=error.place, remedy=remedy) from error


def _rows(texts: Sequence[str], found: Callable[[str], bool]) -> set[int]:
    """Rows that a mark is found in; all of them are looked at as one text first, since most files have none."""
    if not found("\n".join(texts)):
        return set()
    return {row for row, text in enumerate(texts) if found(text)}


def _same_sound(word: str, other: str) -> bool:
    return snor.homophone(word) == snor.homophone(other)
