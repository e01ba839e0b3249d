"""Many hypotheses against their references at once, aligned as sclite aligns them (see alignment.py).

Counts come from the path that the tie rule picks, never from a distance alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import ne
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.model.errors import InputError, Place
from harness.model.transcript import WordCounts
from harness.transcripts.alignment import align
from harness.transcripts.alignment_diagonals import Group, paths, substitutions_and_gaps
from harness.transcripts.alignment_long import path_of
from harness.transcripts.word_codes import CodedWords, Codes, Places, code_texts, code_words, count_words

Text = TypeVar("Text", str, Sequence[str])
Counts = NDArray[np.int32]

CHUNK = 1 << 22
"""Letters, or words, that are coded at once: what bounds the memory beyond that of the texts."""
CELLS = 1 << 15
"""Of one diagonal, for all pairs of a group: so many stay in a processor's inner caches."""
COMMON = 1000
"""Words from the end on that are compared for all pairs together; of a pair that goes on alike, all others at once."""
LONG = 8192
"""Words of the longer side from which on a pair is aligned by itself, and its path is kept."""
PlaceOf = Callable[[int], Place]
"""Where a pair is from, by its index."""


class Alignments:
    """The counts of n aligned pairs as columns of shape (n,); their paths are made on demand."""

    def __init__(self, pairs: _Pairs[Any], place_of: PlaceOf | None = None) -> None:
        self._pairs = pairs
        self._long: dict[int, str] = {}
        words, substitutions, deletions, insertions = np.zeros((4, len(pairs.references)), np.int32)
        like, unlike = pairs.parted()
        words[like] = pairs.reading.count([pairs.references[index] for index in like.tolist()])
        for indices, coded in pairs.coded(unlike):
            words[indices] = coded.reference_lengths + coded.cut
            gaps = coded.reference_lengths + coded.hypothesis_lengths
            wrong = np.zeros_like(gaps)
            for group, members in coded.groups():
                wrong[members], gaps[members] = substitutions_and_gaps(group)
            for member, of, said in coded.long():
                row = int(indices[member])
                try:
                    path = path_of(of, said)
                except InputError as error:
                    raise InputError(
                        error.what, place=place_of(row) if place_of else None, remedy=error.remedy
                    ) from error
                wrong[member], gaps[member] = path.count("S"), path.count("D") + path.count("I")
                self._long[row] = path + "C" * int(coded.cut[member])
            # Deletions less insertions are what the reference is longer by.
            longer = coded.reference_lengths - coded.hypothesis_lengths
            substitutions[indices], deletions[indices] = wrong, (gaps + longer) // 2
            insertions[indices] = (gaps - longer) // 2
        self.substitutions: Counts = substitutions
        self.deletions: Counts = deletions
        self.insertions: Counts = insertions
        self.correct: Counts = words - substitutions - deletions

    def __len__(self) -> int:
        return len(self.correct)

    def path(self, index: int) -> str:
        """The path of one pair, a letter of `Edit` for each step; index counts from 0."""
        return self._long.get(index) or align(*self._pairs.words(index))

    def paths(self, indices: Sequence[int] | Places | None = None) -> list[str]:
        """The paths of many pairs, all when `indices` is None; far quicker than one by one."""
        wanted = np.arange(len(self)) if indices is None else np.asarray(indices, np.int64)
        found = ["C" * correct for correct in self.correct[wanted].tolist()]
        wrong = (self.substitutions + self.deletions + self.insertions)[wanted]
        if self._long:
            for place, row in enumerate(wanted.tolist()):
                if row in self._long:
                    found[place], wrong[place] = self._long[row], 0
        unlike = np.flatnonzero(wrong)
        for places, coded in self._pairs.coded(wanted[unlike]):
            ends = coded.cut.tolist()
            at = unlike[: len(places)].tolist()
            unlike = unlike[len(places) :]
            lengths = zip(coded.reference_lengths.tolist(), coded.hypothesis_lengths.tolist(), strict=True)
            for place, end, (of, said) in zip(at, ends, lengths, strict=True):
                found[place] = "D" * of + "I" * said + "C" * end
            for group, members in coded.groups():
                for member, path in zip(members.tolist(), paths(group), strict=True):
                    found[at[member]] = path + "C" * ends[member]
        return found

    def totals(self) -> WordCounts:
        """All pairs together, each a sentence."""
        wrong = (self.substitutions > 0) | (self.deletions > 0) | (self.insertions > 0)
        return WordCounts(
            correct=int(self.correct.sum()),
            substitutions=int(self.substitutions.sum()),
            deletions=int(self.deletions.sum()),
            insertions=int(self.insertions.sum()),
            sentences=len(self),
            sentences_with_error=int(wrong.sum()),
        )


def align_many(references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]) -> Alignments:
    """Aligns pairs of words, one for one; errors as in `align_texts`."""
    return Alignments(_Pairs(references, hypotheses, _Reading(code_words, _sizes, _itself)))


def align_texts(references: Sequence[str], hypotheses: Sequence[str], place_of: PlaceOf | None = None) -> Alignments:
    """Aligns pairs of texts whose words are parted by single spaces ("" has no words); the fastest way in.

    ValueError when one column is longer; InputError for a pair of more words than can be aligned, see
    alignment_long.py. place_of: where that pair is from.
    """
    return Alignments(_Pairs(references, hypotheses, _Reading(code_texts, count_words, _split)), place_of)


@dataclass(frozen=True, slots=True)
class _Reading(Generic[Text]):
    """How the words of texts are had: as integers, counted, and as they are."""

    code: Callable[[Sequence[Text]], CodedWords]
    count: Callable[[Sequence[Text]], Places]
    split: Callable[[Text], Sequence[str]]


def _split(text: str) -> list[str]:
    return text.split(" ") if text else []


def _itself(words: Sequence[str]) -> Sequence[str]:
    return words


def _sizes(texts: Sequence[Sequence[str]]) -> Places:
    return np.fromiter(map(len, texts), np.int64, len(texts))


@dataclass(frozen=True, slots=True)
class _Pairs(Generic[Text]):
    references: Sequence[Text]
    hypotheses: Sequence[Text]
    reading: _Reading[Text]

    def __post_init__(self) -> None:
        if len(self.references) != len(self.hypotheses):
            raise ValueError(f"{len(self.references)} references for {len(self.hypotheses)} hypotheses")

    def words(self, index: int) -> tuple[Sequence[str], Sequence[str]]:
        return self.reading.split(self.references[index]), self.reading.split(self.hypotheses[index])

    def parted(self) -> tuple[Places, Places]:
        """Where the texts are equal as they stand, and where they are not."""
        unlike = np.fromiter(map(ne, self.references, self.hypotheses), np.bool_, len(self.references))
        return np.flatnonzero(~unlike), np.flatnonzero(unlike)

    def coded(self, indices: Places) -> Iterator[tuple[Places, _CodedPairs]]:
        """The pairs of `indices` in their order, as many at a time as fit in a chunk, and at least one."""
        listed = indices.tolist()
        references: list[Text] = [self.references[index] for index in listed]
        hypotheses: list[Text] = [self.hypotheses[index] for index in listed]
        ends = np.cumsum(_sizes(references) + _sizes(hypotheses))
        begin = 0
        while begin < len(listed):
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + CHUNK, "right")))
            coded = self.reading.code(references[begin:end] + hypotheses[begin:end])
            yield indices[begin:end], _CodedPairs.of(coded)
            begin = end


def _common_end(of: Codes, said: Codes) -> int:
    """How many of the last words of two texts of one length are the same."""
    unlike = (of != said)[::-1]
    return int(np.argmax(unlike)) if unlike.any() else len(unlike)


@dataclass(frozen=True, slots=True)
class _CodedPairs:
    """Pairs of words without their common ends; cut: how many words those were.

    What follows a common end cannot change the path before it, and along it the path is all correct: a diagonal step
    onto equal words is never dearer than another. A common beginning stays: the path through it may hold anything.
    """

    codes: Codes
    reference_starts: Places
    reference_lengths: Places
    hypothesis_starts: Places
    hypothesis_lengths: Places
    cut: Places

    @classmethod
    def of(cls, coded: CodedWords) -> _CodedPairs:
        """The first half of the texts are references, the second their hypotheses."""
        of, said = coded.starts.reshape(2, -1)
        of_length, said_length = coded.lengths.reshape(2, -1).copy()
        cut = np.zeros_like(of_length)
        left = np.flatnonzero((of_length > 0) & (said_length > 0))
        for _ in range(COMMON):
            if not len(left):
                break
            ends = coded.codes[of[left] + of_length[left] - 1] == coded.codes[said[left] + said_length[left] - 1]
            left = left[ends]
            of_length[left] -= 1
            said_length[left] -= 1
            cut[left] += 1
            left = left[(of_length[left] > 0) & (said_length[left] > 0)]
        for member in left.tolist():
            ends = of[member] + of_length[member], said[member] + said_length[member]
            most = min(of_length[member], said_length[member])
            common = _common_end(coded.codes[ends[0] - most : ends[0]], coded.codes[ends[1] - most : ends[1]])
            of_length[member] -= common
            said_length[member] -= common
            cut[member] += common
        return cls(coded.codes, of, of_length, said, said_length, cut)

    def groups(self) -> Iterator[tuple[Group, Places]]:
        """Pairs of similar length together, with their places here; those with a side of no words, or long, in none."""
        longer, has_both = self._longer()
        members = np.flatnonzero(has_both & (longer < LONG))
        members = members[np.argsort(longer[members], kind="stable")]
        sizes = longer[members]
        begin = 0
        while begin < len(members):
            limit = int(sizes[begin]) * 5 // 4
            end = int(np.searchsorted(sizes, limit, "right"))
            end = min(end, begin + max(1, CELLS // limit))
            part = members[begin:end]
            of, said = self.reference_lengths[part], self.hypothesis_lengths[part]
            yield (
                Group(
                    self._table(self.reference_starts[part], of),
                    self._table(self.hypothesis_starts[part], said),
                    of,
                    said,
                ),
                part,
            )
            begin = end

    def long(self) -> Iterator[tuple[int, Codes, Codes]]:
        """The place and the words of each long pair."""
        longer, has_both = self._longer()
        for member in np.flatnonzero(has_both & (longer >= LONG)).tolist():
            of, said = self.reference_starts[member], self.hypothesis_starts[member]
            ends = of + self.reference_lengths[member], said + self.hypothesis_lengths[member]
            yield member, self.codes[of : ends[0]], self.codes[said : ends[1]]

    def _longer(self) -> tuple[Places, NDArray[np.bool_]]:
        """How long each pair's longer side is, and whether both have words."""
        of, said = self.reference_lengths, self.hypothesis_lengths
        return np.maximum(of, said), np.minimum(of, said) > 0

    def _table(self, starts: Places, lengths: Places) -> NDArray[np.uint64]:
        """Shape (longest, pairs); below a text's end stands whatever comes next."""
        places = starts + np.arange(int(lengths.max()))[:, None]
        return self.codes.take(places, mode="clip")
