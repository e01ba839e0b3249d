"""Many tables of word alignment filled at once, diagonal by diagonal, with the weights and ties of alignment.py.

Cell (i, j) of a table stands for the first i words of the reference and the first j words of the hypothesis. Cells of
one anti-diagonal (equal i + j) do not depend on each other, so numpy computes them for a whole group of pairs together.

Words are integers, in arrays of shape (longest, pairs): pair k has references[: reference_lengths[k], k], and the codes
below that are ignored. Every side of a pair has at least one word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.model.errors import InputError
from harness.model.frozen import frozen

SUBSTITUTION, DELETION, INSERTION = 4, 3, 3
"""sclite's weights; a correct word costs nothing."""

Codes = NDArray[Any]
Numbers = NDArray[np.int64]


def walk_back(rows: int, columns: int, step_at: Callable[[int, int], str]) -> str:
    """The path through a table, walked from its last cell (rows, columns) back to the first.

    step_at: returns the letter of the step into the cell (i, j). i, j: at least 1.
    """
    i, j = rows, columns
    steps: list[str] = []
    while i and j:
        step = step_at(i, j)
        steps.append(step)
        if step != "I":
            i -= 1
        if step != "D":
            j -= 1
    return "D" * i + "I" * j + "".join(reversed(steps))


@frozen
class PairGroup:
    """Pairs of texts of similar length. references, hypotheses: codes of their words, shape (longest, pairs), both of
    the same integer type. The lengths have the shape (pairs,)."""

    references: Codes
    hypotheses: Codes
    reference_lengths: Numbers
    hypothesis_lengths: Numbers

    def diagonals(self) -> Iterator[tuple[int, slice, slice, Codes, Codes]]:
        """Yields for each anti-diagonal d: d, the rows i of its cells (i, d − i), and the rows i − 1. Then the words of
        the references, and those of the hypotheses, that meet in these cells."""
        longest, other = len(self.references), len(self.hypotheses)
        backwards = np.ascontiguousarray(self.hypotheses[::-1])
        for d in range(2, int((self.reference_lengths + self.hypothesis_lengths).max()) + 1):
            first, last = max(1, d - other), min(longest, d - 1)
            hypothesis_words = backwards[other - d + first : other - d + last + 1]
            yield d, slice(first, last + 1), slice(first - 1, last), self.references[first - 1 : last], hypothesis_words


def substitutions_and_gaps(group: PairGroup) -> tuple[Numbers, Numbers]:
    """For the path of each pair, the number of substitutions, and that of deletions and insertions together.

    A cell is one integer. Its top bits are the cost. Below them are the rank of the last step by the tie rule, and the
    number of substitutions on the way. The least of three such integers is therefore the step that the tie rule takes,
    with its count, and no path need be kept.
    """
    longest = max(len(group.references), len(group.hypotheses))
    cell_type, bits = _cell_layout(longest)
    cost_shift = bits + 2  # the position of the cost's lowest bit
    substituted = cell_type((SUBSTITUTION << cost_shift) + 1)
    inserted = cell_type((INSERTION << cost_shift) + (1 << bits))
    deleted = cell_type((DELETION << cost_shift) + (2 << bits))
    no_step = cell_type(~(3 << bits) & np.iinfo(cell_type).max)
    rows, columns, pairs = len(group.references), len(group.hypotheses), len(group.reference_lengths)
    # Three diagonals: the one before the last, the last, and the one that is being filled.
    before, last, cells = (np.zeros((rows + 1, pairs), cell_type) for _ in range(3))
    last[0], last[1] = INSERTION << cost_shift, DELETION << cost_shift
    scratch = np.empty((rows, pairs), cell_type)
    final_cells = np.zeros(pairs, cell_type)
    ends = group.reference_lengths + group.hypothesis_lengths
    ending = np.argsort(ends, kind="stable")
    bounds = np.searchsorted(ends[ending], np.arange(int(ends.max()) + 2)).tolist()
    for d, current, above, words, hypothesis_words in group.diagonals():
        least, candidate = cells[current], scratch[: current.stop - current.start]
        np.multiply(words != hypothesis_words, substituted, out=least)
        least += before[above]
        np.add(last[current], inserted, out=candidate)
        np.minimum(least, candidate, out=least)
        np.add(last[above], deleted, out=candidate)
        np.minimum(least, candidate, out=least)
        least &= no_step
        if d <= columns:
            cells[0] = (INSERTION * d) << cost_shift
        if d <= rows:
            cells[d] = (DELETION * d) << cost_shift
        if bounds[d] < bounds[d + 1]:
            ended_pairs = ending[bounds[d] : bounds[d + 1]]
            final_cells[ended_pairs] = cells[group.reference_lengths[ended_pairs], ended_pairs]
        before, last, cells = last, cells, before
    substitutions = (final_cells & cell_type((1 << bits) - 1)).astype(np.int64)
    costs = (final_cells >> cell_type(cost_shift)).astype(np.int64)
    return substitutions, (costs - SUBSTITUTION * substitutions) // DELETION


def _cell_layout(longest: int) -> tuple[type[np.unsignedinteger[Any]], int]:
    """The smallest integer type that holds every cell, and the number of its bits for substitutions. The two bits above
    them hold the rank of the step."""
    for cell_type, bits in ((np.uint16, 6), (np.uint32, 14)):
        # No cell costs more than its longer side in substitutions, and a step into it INSERTION more.
        if SUBSTITUTION * longest + INSERTION < 1 << (np.iinfo(cell_type).bits - bits - 2) and longest < 1 << bits:
            return cell_type, bits
    return np.uint64, 29


def paths(group: PairGroup) -> list[str]:
    """The path of each pair. Two bits are kept for each cell.

    Instead of costs, cells hold the differences between neighbouring costs. These are −3 to 3, so a byte is enough for
    texts of any length. Source of the idea: Hyyrö, Explaining and Extending the Bit-parallel Approximate String
    Matching Algorithm.
    """
    rows, pairs = len(group.references), len(group.reference_lengths)
    # down: cost of a cell minus that of the cell above. along: minus that of the cell to the left. 3 is added to both.
    down, along = np.full((2, rows + 1, pairs), 6, np.int8)
    gaps, deletions = [], []
    for _, current, above, words, hypothesis_words in group.diagonals():
        unlike = np.multiply(words != hypothesis_words, np.int8(SUBSTITUTION), dtype=np.int8)
        inserted, deleted = down[current], along[above]
        least = np.minimum(inserted, deleted)
        gaps.append(np.packbits(least < unlike))
        deletions.append(np.packbits(deleted < inserted))
        np.minimum(least, unlike, out=least)
        least += 6  # the 3 in the neighbour, which is subtracted below, and the 3 that each difference gets
        onward = least - inserted
        np.subtract(least, deleted, out=inserted)
        along[current] = onward
    return _walk_back(group, gaps, deletions)


def _walk_back(group: PairGroup, gaps: list[NDArray[np.uint8]], deletions: list[NDArray[np.uint8]]) -> list[str]:
    """The paths, walked from the last cells back to the first, one step of all pairs at a time. gaps, deletions: the
    bits that `paths` has kept, by diagonal."""
    i, j = group.reference_lengths.copy(), group.hypothesis_lengths.copy()
    pair = np.arange(len(i))
    # Diagonals 0 and 1 consist of border cells only.
    offsets = 8 * np.cumsum([0, 0, 0, *map(len, gaps)])
    gap, deletion = np.concatenate(gaps), np.concatenate(deletions)
    width = len(group.hypotheses)
    pair_count = len(pair)
    letters: list[NDArray[np.uint8]] = []
    while True:
        d = i + j
        if not d.any():
            break
        inside = (i > 0) & (j > 0)
        cell = np.where(inside, offsets[d] + (i - np.maximum(1, d - width)) * pair_count + pair, 0)
        byte, bit = cell >> 3, (128 >> (cell & 7)).astype(np.uint8)
        diagonal = inside & ((gap[byte] & bit) == 0)
        down = ~diagonal & (j == 0) & (i > 0) | (inside & ~diagonal & ((deletion[byte] & bit) != 0))
        letter = np.where(down, _D, np.where(d > 0, _I, 0)).astype(np.uint8)
        crossing = np.flatnonzero(diagonal)
        reference_words = group.references[i[crossing] - 1, crossing]
        hypothesis_words = group.hypotheses[j[crossing] - 1, crossing]
        letter[crossing] = np.where(reference_words == hypothesis_words, _C, _S)
        letters.append(letter)
        i -= diagonal | down
        j -= diagonal | (~down & (d > 0))
    table = np.array(letters[::-1]).T
    steps = len(letters)
    text = table.tobytes().decode("ascii")
    padding = (table == 0).sum(axis=1).tolist()
    return [text[k * steps + padding[k] : (k + 1) * steps] for k in range(pair_count)]


_C, _S, _D, _I = b"CSDI"


Steps = NDArray[np.int8]

MAX_CELLS = 100_000_000_000
"""Most cells in the band of a table; filling them takes minutes. Enough for texts of 300,000 words that have nothing in
common, and for longer ones that are alike."""
MAX_BACKTRACE_BYTES = 1 << 27
"""Most bytes of backtraces that are kept at once."""
MAX_FEW_WORDS = 64
"""If the shorter side has at most this many words, the table is filled by rows, since it has far more diagonals."""
_FORBIDDEN = 7
"""The cost of a step from outside the band. It is higher than any other, so that the step is never taken."""


def path_of(reference: Codes, hypothesis: Codes) -> str:
    """The path of one pair of long texts. Words are integers, equal for equal words.

    Raises InputError if the band would have more than MAX_CELLS cells.
    """
    if not len(reference) or not len(hypothesis):
        return "D" * len(reference) + "I" * len(hypothesis)
    reference_part, hypothesis_part = _as_smallest_integers(reference, hypothesis)
    if min(len(reference_part), len(hypothesis_part)) <= MAX_FEW_WORDS:
        return _path_by_rows(reference_part, hypothesis_part)
    table = _Table(
        reference_part,
        hypothesis_part,
        _Band.of(len(reference_part), len(hypothesis_part), _margin(reference_part, hypothesis_part)),
    )
    table.fill()
    return table.path()


def _margin(reference: Codes, hypothesis: Codes) -> int:
    """Number of words by which the band is wider than the difference of the lengths.

    Raises InputError if the band would have too many cells.
    """
    from rapidfuzz.distance import Levenshtein  # here, since few texts are long

    shorter, longer = sorted((len(reference), len(hypothesis)))
    surplus, max_band = longer - shorter, MAX_CELLS // shorter
    most = longer if max_band >= longer else surplus + 3 * (max_band - surplus - 1) // 4
    errors = Levenshtein.distance(reference.tolist(), hypothesis.tolist(), score_cutoff=max(0, most))
    if errors > most:
        raise InputError(
            f"texts of {len(reference):,} and {len(hypothesis):,} words that differ this much are too long to align",
            remedy="Split the utterance into shorter ones",
        )
    # A path with the fewest errors has at least `surplus` gaps. The cheapest path therefore costs at most as much as
    # that many gaps, and substitutions for the other errors. A path that leaves this band has more gaps.
    return -(-SUBSTITUTION * (errors - surplus) // (2 * DELETION))


def _as_smallest_integers(reference: Codes, hypothesis: Codes) -> tuple[Codes, Codes]:
    """The same words as the smallest possible integers, which compare fastest."""
    distinct, numbers = np.unique(np.concatenate((reference, hypothesis)), return_inverse=True)
    numbers = numbers.astype(np.min_scalar_type(len(distinct)))
    return numbers[: len(reference)], numbers[len(reference) :]


def _path_by_rows(reference: Codes, hypothesis: Codes) -> str:
    """The path of a pair in which one side has few words. All cells of one of these words are computed together.

    These cells are a row of the table, or a column if the hypothesis is the shorter side (`swapped`).
    """
    swapped = len(reference) > len(hypothesis)
    short, long = (hypothesis, reference) if swapped else (reference, hypothesis)
    least = np.arange(len(long) + 1) * DELETION  # the cost of reaching each cell along the long side only
    before, backtraces = least, list[tuple[bytes, bytes]]()
    for word in short.tolist():
        across = before + DELETION
        diagonal = before[:-1] + SUBSTITUTION * (long != word)
        costs = across.copy()
        np.minimum(costs[1:], diagonal, out=costs[1:])
        before = np.minimum.accumulate(costs - least) + least
        along, across = before[:-1] + DELETION, across[1:]
        deleted, inserted = (along, across) if swapped else (across, along)
        gaps, deletions = np.minimum(along, across) < diagonal, deleted < inserted
        backtraces.append((np.packbits(gaps).tobytes(), np.packbits(deletions).tobytes()))

    def step_at(i: int, j: int) -> str:
        row, cell = (j - 1, i - 1) if swapped else (i - 1, j - 1)
        gap, deletion = backtraces[row]
        byte, bit = cell >> 3, 128 >> (cell & 7)
        if not gap[byte] & bit:
            return "C" if reference[i - 1] == hypothesis[j - 1] else "S"
        return "D" if deletion[byte] & bit else "I"

    return walk_back(len(reference), len(hypothesis), step_at)


@frozen
class _Band:
    """The cells (i, j) of a table for which i − j is from `low` to `high`. Only these need to be filled, since no path
    of least cost leaves them. rows, columns: numbers of words."""

    rows: int
    columns: int
    low: int
    high: int

    @classmethod
    def of(cls, rows: int, columns: int, margin: int) -> _Band:
        """The band for texts of these lengths. margin: from `_margin`."""
        longer = rows - columns
        return cls(rows, columns, max(min(0, longer) - margin, -columns), min(max(0, longer) + margin, rows))

    def rows_of(self, diagonal: int) -> tuple[int, int]:
        """The first and the last row of a diagonal i + j. If it has no cells, the first is greater than the last."""
        first = max(1, diagonal - self.columns, (diagonal + self.low + 1) // 2)
        return first, min(self.rows, diagonal - 1, (diagonal + self.high) // 2)


@frozen
class _Edge:
    """The differences of costs from which a diagonal is filled (see `paths`). first: the row at which `down` begins;
    `along` begins one row above."""

    first: int
    down: Steps
    along: Steps


@frozen
class _Backtraces:
    """What the way back needs of some consecutive diagonals; the first is number `begin`.

    - firsts: the row of the first cell of each.
    - gaps, deletions: bits for the cells of each (is the step a gap; is the gap a deletion).
    """

    begin: int
    firsts: list[int] = field(default_factory=list)
    gaps: list[bytes] = field(default_factory=list)
    deletions: list[bytes] = field(default_factory=list)


class _Table:
    """The table of one pair of long texts. Cells hold differences between neighbouring costs, as in `paths`.

    Only the backtraces of some diagonals fit into memory. So on the way down, a diagonal at regular distances is kept
    as an edge. On the way back, the diagonals after an edge are filled once more, and give their backtraces.
    """

    def __init__(self, reference: Codes, hypothesis: Codes, band: _Band) -> None:
        self._reference, self._hypothesis, self._band = reference, hypothesis, band
        self._backwards = np.ascontiguousarray(hypothesis[::-1])
        self._end = len(reference) + len(hypothesis) + 1
        self._widest = min(len(reference), len(hypothesis), (band.high - band.low) // 2 + 1)
        # At this distance, all kept edges and the backtraces between two of them need the least memory together.
        fits = self._end * self._widest // 4 <= MAX_BACKTRACE_BYTES
        self._edge_distance = self._end if fits else math.isqrt(8 * self._end)
        self._edges: list[_Edge] = []
        self._backtraces = _Backtraces(2)

    def fill(self) -> None:
        """Fills the band, and keeps what the way back needs."""
        nothing = np.empty(0, np.int8)
        edge = _Edge(1, nothing, nothing)
        for begin in range(2, self._end, self._edge_distance):
            self._edges.append(edge)
            self._backtraces, edge = self._fill(begin, edge)

    def _fill(self, begin: int, edge: _Edge) -> tuple[_Backtraces, _Edge]:
        """The backtraces of the diagonals from `begin` to the next kept edge, and that edge."""
        reference, backwards, band = self._reference, self._backwards, self._band
        columns, low, high = len(backwards), band.low, band.high
        # The differences to the cells above and to the left, as they are at the sides of the table.
        down, along, next_along = np.full((3, len(reference) + 1), 2 * DELETION, np.int8)
        down[edge.first : edge.first + len(edge.down)] = edge.down
        along[edge.first - 1 : edge.first - 1 + len(edge.along)] = edge.along
        unlike, wrong = np.empty(self._widest, np.bool_), np.empty(self._widest, np.bool_)
        cost, least = np.empty((2, self._widest), np.int8)
        backtraces = _Backtraces(begin)
        stop = min(begin + self._edge_distance, self._end)
        for diagonal in range(begin, stop):
            first, last = band.rows_of(diagonal)
            current, above, size = slice(first, last + 1), slice(first - 1, last), last + 1 - first
            if 2 * first - diagonal == low:
                along[first - 1] = _FORBIDDEN
            if 2 * last - diagonal == high:
                down[last] = _FORBIDDEN
            meeting = backwards[columns - diagonal + first : columns - diagonal + last + 1]
            inserted, deleted = down[current], along[above]
            different = np.not_equal(reference[above], meeting, out=unlike[:size])
            replaced = np.multiply(different.view(np.int8), np.int8(SUBSTITUTION), out=cost[:size])
            cells = np.minimum(inserted, deleted, out=least[:size])
            backtraces.firsts.append(first)
            backtraces.gaps.append(np.packbits(np.less(cells, replaced, out=wrong[:size])).tobytes())
            backtraces.deletions.append(np.packbits(np.less(deleted, inserted, out=wrong[:size])).tobytes())
            np.minimum(cells, replaced, out=cells)
            cells += 2 * DELETION
            np.subtract(cells, inserted, out=next_along[current])
            np.subtract(cells, deleted, out=inserted)
            along, next_along = next_along, along
        first, last = band.rows_of(stop)
        return backtraces, _Edge(first, down[first : last + 1].copy(), along[first - 1 : last].copy())

    def path(self) -> str:
        """The path: the way back from the last cell, in reverse."""
        i, j = len(self._reference), len(self._hypothesis)
        reference, hypothesis = self._reference.tolist(), self._hypothesis.tolist()
        letters: list[str] = []
        while i and j:
            number = (i + j - 2) // self._edge_distance
            if number < len(self._edges) - 1:
                self._backtraces, _ = self._fill(2 + number * self._edge_distance, self._edges[number])
            backtraces = self._backtraces
            while i and j and (index := i + j - backtraces.begin) >= 0:
                cell = i - backtraces.firsts[index]
                byte, bit = cell >> 3, 128 >> (cell & 7)
                if not backtraces.gaps[index][byte] & bit:
                    i -= 1
                    j -= 1
                    letters.append("C" if reference[i] == hypothesis[j] else "S")
                elif backtraces.deletions[index][byte] & bit:
                    i -= 1
                    letters.append("D")
                else:
                    j -= 1
                    letters.append("I")
        return "D" * i + "I" * j + "".join(reversed(letters))
