"""The words of a hypothesis against those of a reference, aligned as NIST's sclite aligns them.

A path is a text with a letter of `Edit` for each step from the first words to the last: `CCSDI`. Weights: correct 0,
insertion 3, deletion 3, substitution 4. Ties: a substitution (or a match) is taken if it costs no more than both
others. A deletion is taken only if it is cheaper than an insertion.
Source: NIST SCTK 2.4.10, sclite.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import ne

import numpy as np
from numpy.typing import NDArray

from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.transcript import AlignedWord, Edit, WordCounts
from harness.transcripts.alignment_tables import (
    DELETION,
    INSERTION,
    SUBSTITUTION,
    PairGroup,
    path_of,
    paths,
    substitutions_and_gaps,
    walk_back,
)

_EDITS = {edit.value: edit for edit in Edit}
MIN_CELLS_BY_DIAGONALS = 60_000
"""A table with more cells than this is filled by diagonals, since that is then quicker."""


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> str:
    """The path between two texts.

    Raises InputError for texts of more words than can be aligned, see alignment_tables.py.
    """
    # A step onto equal words never costs more than another, so the words of a common end are all correct.
    pairs = zip(reversed(reference), reversed(hypothesis), strict=False)
    common_end = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    rows, columns = len(reference) - common_end, len(hypothesis) - common_end
    reference_part, hypothesis_part = reference[:rows], hypothesis[:columns]
    align_parts = _align_long if rows * columns >= MIN_CELLS_BY_DIAGONALS else _align_short
    return align_parts(reference_part, hypothesis_part) + "C" * common_end


def _align_short(reference: Sequence[str], hypothesis: Sequence[str]) -> str:
    """Fills the table of costs row by row, then walks back from its last cell."""
    rows = [[INSERTION * j for j in range(len(hypothesis) + 1)]]
    for word in reference:
        above = rows[-1]
        corner, left = above[0], above[0] + DELETION
        row = [left]
        for heard_word, up in zip(hypothesis, above[1:], strict=True):
            cost = corner if word == heard_word else corner + SUBSTITUTION
            if up + DELETION < cost:
                cost = up + DELETION
            if left + INSERTION < cost:
                cost = left + INSERTION
            row.append(cost)
            corner, left = up, cost
        rows.append(row)

    def step_at(i: int, j: int) -> str:
        equal = reference[i - 1] == hypothesis[j - 1]
        diagonal = rows[i - 1][j - 1] + (0 if equal else SUBSTITUTION)
        deleted, inserted = rows[i - 1][j] + DELETION, rows[i][j - 1] + INSERTION
        if diagonal <= deleted and diagonal <= inserted:
            return "C" if equal else "S"
        return "D" if deleted < inserted else "I"

    return walk_back(len(reference), len(hypothesis), step_at)


def _align_long(reference: Sequence[str], hypothesis: Sequence[str]) -> str:
    coded = code_words([reference, hypothesis])
    reference_codes, hypothesis_codes = (
        coded.codes[start:][:length] for start, length in zip(coded.starts, coded.lengths, strict=True)
    )
    return path_of(reference_codes, hypothesis_codes)


ANOTHER_WORD_S = 0.001
"""The extra cost of a pair of different words, in seconds."""
MAX_CELLS = 400_000_000
"""Most pairs of words that are aligned by time. The table takes a byte for each."""
WordTimes = Sequence[tuple[float, float]]
"""Begin and end of each word in seconds."""


def align_by_time(
    reference: Sequence[str],
    hypothesis: Sequence[str],
    reference_times: WordTimes,
    hypothesis_times: WordTimes,
    place: Place,
) -> str:
    """The path as sclite -T finds it: words are paired if their times are close, whatever the words are.

    The cost of a pair is the difference of the begins plus that of the ends (see ANOTHER_WORD_S). The cost of a word
    without a partner is its duration. Raises InputError for more than MAX_CELLS pairs of words.
    """
    if len(reference) * len(hypothesis) > MAX_CELLS:
        problem = f"{len(reference):,} by {len(hypothesis):,} words are too many to align by time"
        raise InputError(problem, place=place, remedy="Remove --by-time, or split the recording into shorter ones")
    heard_times = np.array(hypothesis_times, float).reshape(-1, 2)
    inserted = np.concatenate([[0.0], np.cumsum(heard_times[:, 1] - heard_times[:, 0])])
    heard_words = np.array(hypothesis, dtype=object)
    # row[j]: the least cost of the reference so far with the first j words heard. Insertions from i to j cost
    # inserted[j] - inserted[i], so that the least over all i is a running minimum.
    row, steps = inserted, []
    for word, (begin_s, end_s) in zip(reference, reference_times, strict=True):
        equal = heard_words == word
        pair_cost = row[:-1] + np.abs(heard_times - (begin_s, end_s)).sum(axis=1) + np.where(equal, 0, ANOTHER_WORD_S)
        deletion_cost = row + (end_s - begin_s)
        least_cost = np.concatenate([deletion_cost[:1], np.minimum(deletion_cost[1:], pair_cost)])
        row = np.minimum.accumulate(least_cost - inserted) + inserted
        insertion_cost = row[:-1] + np.diff(inserted)
        gap = np.where(deletion_cost[1:] < insertion_cost, b"D", b"I")
        is_pair = pair_cost <= np.minimum(deletion_cost[1:], insertion_cost)
        steps.append(np.where(is_pair, np.where(equal, b"C", b"S"), gap).tobytes())
    return walk_back(len(reference), len(hypothesis), lambda i, j: chr(steps[i - 1][j - 1]))


def count(path: str) -> WordCounts:
    """The counts of one utterance's path."""
    correct = path.count("C")
    return WordCounts(
        correct,
        path.count("S"),
        path.count("D"),
        path.count("I"),
        sentences=1,
        sentences_with_error=correct < len(path),
    )


def side_by_side(reference: Sequence[str], hypothesis: Sequence[str], path: str) -> tuple[AlignedWord, ...]:
    """The words along a path. Raises ValueError if the path does not fit these words."""
    reference_words, hypothesis_words = iter(reference), iter(hypothesis)
    steps = tuple(
        AlignedWord(
            _EDITS[step],
            "" if step == "I" else next(reference_words, ""),
            "" if step == "D" else next(hypothesis_words, ""),
        )
        for step in path
    )
    if next(reference_words, None) is not None or next(hypothesis_words, None) is not None:
        raise ValueError("the path is shorter than the words")
    return steps


Codes = NDArray[np.uint64]
Indices = NDArray[np.int64]

_MAX_SHORT_BYTES = 8
"""A word of at most this many bytes is coded by its own bytes. A longer word gets a number."""
_LOW_BYTES = np.array([(1 << 8 * size) - 1 for size in range(_MAX_SHORT_BYTES + 1)], np.uint64)
_LONG_MARK = np.uint64(0xFF << 56)
"""Marks a code as the number of a longer word. UTF-8 never contains this byte, so no short word looks like one."""


@frozen
class CodedWords:
    """The words of n texts as integers, one text after the other: text k has codes[starts[k] : starts[k] + lengths[k]].
    Equal words have equal codes."""

    codes: Codes
    starts: Indices
    lengths: Indices


def code_texts(texts: Sequence[str]) -> CodedWords:
    """Codes of texts with single spaces between words. "" has no words, and two spaces enclose an empty one."""
    joined = _join_lines(texts)
    if joined is None:
        return _number_words([text.split(" ") if text else [] for text in texts])
    starts, ends, last = _word_bounds(joined)
    sizes = ends - starts
    # Overlapping views of eight bytes from each position, so that most words compare as one integer.
    eight_bytes = np.ndarray((len(joined) - _MAX_SHORT_BYTES + 1,), "<u8", joined, 0, (1,))
    codes = eight_bytes[starts] & _LOW_BYTES[np.minimum(sizes, _MAX_SHORT_BYTES)]
    long = np.flatnonzero(sizes > _MAX_SHORT_BYTES)
    numbers: defaultdict[bytes, int] = defaultdict(itertools.count().__next__)
    words = (joined[start:end] for start, end in zip(starts[long].tolist(), ends[long].tolist(), strict=True))
    codes[long] = np.fromiter(map(numbers.__getitem__, words), np.uint64, len(long)) | _LONG_MARK
    firsts = np.concatenate(([0], last[:-1] + 1))
    return CodedWords(codes, firsts, _text_lengths(sizes, firsts, last))


def code_words(texts: Sequence[Sequence[str]]) -> CodedWords:
    """Codes of texts that are given as words."""
    coded = code_texts([" ".join(words) for words in texts])
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    # The numbers differ if a word contains a space, or if the only word of a text is empty.
    return coded if np.array_equal(coded.lengths, lengths) else _number_words(texts)


def count_words(texts: Sequence[str]) -> Indices:
    """Number of words in each text, as `code_texts` splits them."""
    joined = _join_lines(texts)
    if joined is None:
        return np.array([text.count(" ") + 1 if text else 0 for text in texts], np.int64)
    starts, ends, last = _word_bounds(joined)
    return _text_lengths(ends - starts, np.concatenate(([0], last[:-1] + 1)), last)


def _join_lines(texts: Sequence[str]) -> bytes | None:
    """The texts as UTF-8, one in each line, then _MAX_SHORT_BYTES NULs, so that eight bytes can be read from each
    position. None if a text contains a line break or a NUL, or if there are no texts."""
    joined = "\n".join(texts)
    if not texts or joined.count("\n") != len(texts) - 1 or "\0" in joined:
        return None
    return joined.encode("utf-8", "surrogatepass") + b"\n" + bytes(_MAX_SHORT_BYTES)


def _word_bounds(joined: bytes) -> tuple[Indices, Indices, Indices]:
    """The position of the first byte of each word, and that after its last. Then the indices of the words that are the
    last of their text."""
    characters = np.frombuffer(joined, np.uint8, len(joined) - _MAX_SHORT_BYTES)
    ends = np.flatnonzero((characters == ord(" ")) | (characters == ord("\n")))
    starts = np.concatenate(([0], ends[:-1] + 1))
    return starts, ends, np.flatnonzero(characters[ends] == ord("\n"))


def _text_lengths(sizes: Indices, firsts: Indices, last: Indices) -> Indices:
    """The number of words of each text. A single empty word is a text without words. firsts, last: the indices of the
    first and the last word of each text."""
    lengths: Indices = last - firsts + 1
    lengths[(lengths == 1) & (sizes[firsts] == 0)] = 0
    return lengths


def _number_words(texts: Iterable[Sequence[str]]) -> CodedWords:
    """Codes that number the words in the order of their first occurrence, whatever characters they contain."""
    numbers: defaultdict[str, int] = defaultdict(itertools.count().__next__)
    word_lists = list(texts)
    lengths = np.fromiter(map(len, word_lists), np.int64, len(word_lists))
    codes = np.fromiter(map(numbers.__getitem__, itertools.chain.from_iterable(word_lists)), np.uint64)
    return CodedWords(codes, np.cumsum(lengths) - lengths, lengths)


Column = NDArray[np.int64]
Groups = NDArray[np.intp]


@frozen
class WordColumns:
    """The counts of n utterances, each of shape (n,)."""

    correct: Column
    substitutions: Column
    deletions: Column
    insertions: Column

    @property
    def words(self) -> Column:
        """Words of the references."""
        return self.correct + self.substitutions + self.deletions

    @property
    def errors(self) -> Column:
        return self.substitutions + self.deletions + self.insertions

    def at_rows(self, rows: Groups) -> WordColumns:
        """The counts of some utterances."""
        return WordColumns(self.correct[rows], self.substitutions[rows], self.deletions[rows], self.insertions[rows])

    def totals(self) -> WordCounts:
        """The sum over all utterances."""
        return self.grouped(np.zeros(len(self.correct), np.intp), 1)[0]

    def grouped(self, groups: Groups, total: int) -> list[WordCounts]:
        """The sum of each group.

        - groups: for each utterance, the number of its group, from 0.
        - total: number of groups.
        """
        count_columns = (self.correct, self.substitutions, self.deletions, self.insertions)
        sums = [
            np.bincount(groups, weights=column, minlength=total).astype(np.int64).tolist() for column in count_columns
        ]
        sentences = np.bincount(groups, minlength=total).tolist()
        wrong = np.bincount(groups[self.errors > 0], minlength=total).tolist()
        return [WordCounts(*row) for row in zip(*sums, sentences, wrong, strict=True)]


CHUNK_CHARS = 1 << 22
"""Number of characters that are coded at once. It limits the memory that is needed beside the texts."""
MAX_DIAGONAL_CELLS = 1 << 15
"""Most cells in a diagonal, for all pairs of a group together. This many fit into a processor's inner caches."""
MAX_COMMON_ROUNDS = 1000
"""To find common ends, this many last words are compared for all pairs together. If all of them are equal in a pair,
its other words are compared for that pair alone."""
MIN_LONG_WORDS = 8192
"""If the longer side of a pair has more words than this, the pair is aligned alone, and its path is kept."""
PlaceOf = Callable[[int], Place]
"""Returns where a pair comes from (file and line), by its index."""


class Alignments:
    """Pairs of texts with single spaces between words ("" has no words), aligned as sclite aligns them.

    - columns: the counts of each pair, from the path that the tie rule picks, never from a distance alone. Paths are
      made on demand. Raises ValueError if one side has more texts. Raises InputError for a pair of more words than can
      be aligned, see alignment_tables.py.
    - place_of: returns the place of a pair for that error; None if places are not known.
    """

    def __init__(self, references: Sequence[str], hypotheses: Sequence[str], place_of: PlaceOf | None = None) -> None:
        if len(references) != len(hypotheses):
            raise ValueError(f"{len(references)} references for {len(hypotheses)} hypotheses")
        self._references, self._hypotheses = references, hypotheses
        self._long_paths: dict[int, str] = {}
        words, substitutions, deletions, insertions = np.zeros((4, len(references)), np.int64)
        differs = np.fromiter(map(ne, references, hypotheses), np.bool_, len(references))
        equal = np.flatnonzero(~differs)
        words[equal] = count_words([references[index] for index in equal.tolist()])
        for indices, coded in self._coded_chunks(np.flatnonzero(differs)):
            words[indices] = coded.reference_lengths + coded.cut
            # Right for pairs of which one side has no words; the others follow.
            gaps = coded.reference_lengths + coded.hypothesis_lengths
            substitution_counts = np.zeros_like(gaps)
            for group, members in coded.groups():
                substitution_counts[members], gaps[members] = substitutions_and_gaps(group)
            for member, reference, hypothesis in coded.long_pairs():
                row = int(indices[member])
                try:
                    path = path_of(reference, hypothesis)
                except InputError as error:
                    place = place_of(row) if place_of else None
                    raise InputError(error.what, place=place, remedy=error.remedy) from error
                substitution_counts[member], gaps[member] = path.count("S"), path.count("D") + path.count("I")
                self._long_paths[row] = path + "C" * int(coded.cut[member])
            # The reference is longer by the number of deletions minus the number of insertions.
            longer = coded.reference_lengths - coded.hypothesis_lengths
            substitutions[indices], deletions[indices] = substitution_counts, (gaps + longer) // 2
            insertions[indices] = (gaps - longer) // 2
        self.columns = WordColumns(words - substitutions - deletions, substitutions, deletions, insertions)

    def paths(self, rows: Sequence[int] | Indices) -> list[str]:
        """The paths of some pairs. Far quicker than one call for each."""
        indices = np.asarray(rows, np.int64)
        all_paths = ["C" * correct for correct in self.columns.correct[indices].tolist()]
        errors_left = self.columns.errors[indices]
        if self._long_paths:
            for position, row in enumerate(indices.tolist()):
                if row in self._long_paths:
                    all_paths[position], errors_left[position] = self._long_paths[row], 0
        remaining = np.flatnonzero(errors_left)
        for chunk, coded in self._coded_chunks(indices[remaining]):
            ends = coded.cut.tolist()
            positions = remaining[: len(chunk)].tolist()
            remaining = remaining[len(chunk) :]
            lengths = zip(coded.reference_lengths.tolist(), coded.hypothesis_lengths.tolist(), strict=True)
            # Right for pairs of which one side has no words; the others follow.
            for position, end, (reference_length, hypothesis_length) in zip(positions, ends, lengths, strict=True):
                all_paths[position] = "D" * reference_length + "I" * hypothesis_length + "C" * end
            for group, members in coded.groups():
                for member, path in zip(members.tolist(), paths(group), strict=True):
                    all_paths[positions[member]] = path + "C" * ends[member]
        return all_paths

    def _coded_chunks(self, indices: Indices) -> Iterator[tuple[Indices, _CodedPairs]]:
        """The pairs of `indices` in chunks, in their order: the indices of a chunk, and its coded pairs. A chunk has at
        least one pair, and at most CHUNK_CHARS characters if it has more."""
        index_list = indices.tolist()
        references = [self._references[index] for index in index_list]
        hypotheses = [self._hypotheses[index] for index in index_list]
        ends = np.cumsum(_char_counts(references) + _char_counts(hypotheses))
        begin = 0
        while begin < len(index_list):
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + CHUNK_CHARS, "right")))
            yield indices[begin:end], _CodedPairs.of(code_texts(references[begin:end] + hypotheses[begin:end]))
            begin = end


def _char_counts(texts: Sequence[str]) -> Indices:
    return np.fromiter(map(len, texts), np.int64, len(texts))


def _count_common_end(reference: Codes, hypothesis: Codes) -> int:
    """Number of last words that two texts of the same length have in common."""
    unlike = (reference != hypothesis)[::-1]
    return int(np.argmax(unlike)) if unlike.any() else len(unlike)


@frozen
class _CodedPairs:
    """Pairs of texts, coded, without their common ends. cut: for each pair, the number of words that were cut off.

    A common end does not change the path before it. Along it every word is correct, since a diagonal step onto equal
    words never costs more than another. A common beginning is kept, since the path through it may be different.
    """

    codes: Codes
    reference_starts: Indices
    reference_lengths: Indices
    hypothesis_starts: Indices
    hypothesis_lengths: Indices
    cut: Indices

    @classmethod
    def of(cls, coded: CodedWords) -> _CodedPairs:
        """Pairs of a reference and its hypothesis. coded: all references, then the hypotheses in the same order."""
        reference_starts, hypothesis_starts = coded.starts.reshape(2, -1)
        reference_lengths, hypothesis_lengths = coded.lengths.reshape(2, -1).copy()
        cut = np.zeros_like(reference_lengths)
        rows = np.flatnonzero((reference_lengths > 0) & (hypothesis_lengths > 0))
        for _ in range(MAX_COMMON_ROUNDS):
            if not len(rows):
                break
            last_words_agree = (
                coded.codes[reference_starts[rows] + reference_lengths[rows] - 1]
                == coded.codes[hypothesis_starts[rows] + hypothesis_lengths[rows] - 1]
            )
            rows = rows[last_words_agree]
            reference_lengths[rows] -= 1
            hypothesis_lengths[rows] -= 1
            cut[rows] += 1
            rows = rows[(reference_lengths[rows] > 0) & (hypothesis_lengths[rows] > 0)]
        # These pairs still agree after MAX_COMMON_ROUNDS words.
        for member in rows.tolist():
            reference_end = reference_starts[member] + reference_lengths[member]
            hypothesis_end = hypothesis_starts[member] + hypothesis_lengths[member]
            most = min(reference_lengths[member], hypothesis_lengths[member])
            common = _count_common_end(
                coded.codes[reference_end - most : reference_end], coded.codes[hypothesis_end - most : hypothesis_end]
            )
            reference_lengths[member] -= common
            hypothesis_lengths[member] -= common
            cut[member] += common
        return cls(coded.codes, reference_starts, reference_lengths, hypothesis_starts, hypothesis_lengths, cut)

    def groups(self) -> Iterator[tuple[PairGroup, Indices]]:
        """Groups of pairs of similar length, each with the indices of its pairs. Long pairs, and pairs in which a side
        has no words, are in no group."""
        longer, has_both = self._longer_sides()
        members = np.flatnonzero(has_both & (longer < MIN_LONG_WORDS))
        members = members[np.argsort(longer[members], kind="stable")]
        sizes = longer[members]
        begin = 0
        while begin < len(members):
            limit = int(sizes[begin]) * 5 // 4  # keeps the padding in a group's table small
            end = int(np.searchsorted(sizes, limit, "right"))
            end = min(end, begin + max(1, MAX_DIAGONAL_CELLS // limit))
            part = members[begin:end]
            reference_lengths, hypothesis_lengths = self.reference_lengths[part], self.hypothesis_lengths[part]
            yield (
                PairGroup(
                    self._padded_table(self.reference_starts[part], reference_lengths),
                    self._padded_table(self.hypothesis_starts[part], hypothesis_lengths),
                    reference_lengths,
                    hypothesis_lengths,
                ),
                part,
            )
            begin = end

    def long_pairs(self) -> Iterator[tuple[int, Codes, Codes]]:
        """For each long pair, its index, and the words of its reference and of its hypothesis."""
        longer, has_both = self._longer_sides()
        for member in np.flatnonzero(has_both & (longer >= MIN_LONG_WORDS)).tolist():
            reference_start, hypothesis_start = self.reference_starts[member], self.hypothesis_starts[member]
            reference_end = reference_start + self.reference_lengths[member]
            hypothesis_end = hypothesis_start + self.hypothesis_lengths[member]
            yield member, self.codes[reference_start:reference_end], self.codes[hypothesis_start:hypothesis_end]

    def _longer_sides(self) -> tuple[Indices, NDArray[np.bool_]]:
        """For each pair, the number of words on its longer side, and whether both sides have words."""
        reference_lengths, hypothesis_lengths = self.reference_lengths, self.hypothesis_lengths
        return np.maximum(reference_lengths, hypothesis_lengths), np.minimum(reference_lengths, hypothesis_lengths) > 0

    def _padded_table(self, starts: Indices, lengths: Indices) -> NDArray[np.uint64]:
        """The words of one side of all pairs, shape (longest, pairs). Below the end of a text are arbitrary codes."""
        indices = starts + np.arange(int(lengths.max()))[:, None]
        return self.codes.take(indices, mode="clip")
