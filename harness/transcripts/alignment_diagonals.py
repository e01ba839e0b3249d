"""Many tables of word alignment filled at once, diagonal by diagonal, with the weights and ties of alignment.py.

Cells of one anti-diagonal do not depend on each other, so numpy computes them for a whole group of pairs together.
Words are integers, in arrays of shape (longest, pairs): pair k has references[: reference_lengths[k], k], and what is
below counts for nothing. Every side of a pair has a word at least.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SUBSTITUTION, DELETION, INSERTION = 4, 3, 3
"""sclite's weights; a correct word costs nothing."""

Codes = NDArray[Any]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """Pairs of words of similar length. Codes: shape (longest, pairs), one integer type for both; lengths: (pairs,)."""

    references: Codes
    hypotheses: Codes
    reference_lengths: Numbers
    hypothesis_lengths: Numbers

    def diagonals(self) -> Iterator[tuple[int, slice, slice, Codes, Codes]]:
        """For the cells (i, d − i) of each anti-diagonal d: d, rows i, rows i − 1, and the words that meet there."""
        longest, other = len(self.references), len(self.hypotheses)
        backwards = np.ascontiguousarray(self.hypotheses[::-1])
        for d in range(2, int((self.reference_lengths + self.hypothesis_lengths).max()) + 1):
            first, last = max(1, d - other), min(longest, d - 1)
            said = backwards[other - d + first : other - d + last + 1]
            yield d, slice(first, last + 1), slice(first - 1, last), self.references[first - 1 : last], said


def substitutions_and_gaps(group: Group) -> tuple[Numbers, Numbers]:
    """Substitutions of each pair's path, and deletions and insertions together.

    A cell is one integer, from the top bit down: the cost, the step's place among equals, the substitutions on the
    way. The least of three such integers is the step that the tie rule takes, with its count; so no path is kept.
    """
    longest = max(len(group.references), len(group.hypotheses))
    kind, bits = _cell(longest)
    cost = bits + 2
    unlike = kind((SUBSTITUTION << cost) + 1)
    inserted = kind((INSERTION << cost) + (1 << bits))
    deleted = kind((DELETION << cost) + (2 << bits))
    no_step = kind(~(3 << bits) & np.iinfo(kind).max)
    rows, columns, pairs = len(group.references), len(group.hypotheses), len(group.reference_lengths)
    before, last, cells = (np.zeros((rows + 1, pairs), kind) for _ in range(3))
    last[0], last[1] = INSERTION << cost, DELETION << cost
    scratch = np.empty((rows, pairs), kind)
    found = np.zeros(pairs, kind)
    ends = group.reference_lengths + group.hypothesis_lengths
    ending = np.argsort(ends, kind="stable")
    bounds = np.searchsorted(ends[ending], np.arange(int(ends.max()) + 2)).tolist()
    for d, here, above, words, said in group.diagonals():
        now, other = cells[here], scratch[: here.stop - here.start]
        np.multiply(words != said, unlike, out=now)
        now += before[above]
        np.add(last[here], inserted, out=other)
        np.minimum(now, other, out=now)
        np.add(last[above], deleted, out=other)
        np.minimum(now, other, out=now)
        now &= no_step
        if d <= columns:
            cells[0] = (INSERTION * d) << cost
        if d <= rows:
            cells[d] = (DELETION * d) << cost
        if bounds[d] < bounds[d + 1]:
            done = ending[bounds[d] : bounds[d + 1]]
            found[done] = cells[group.reference_lengths[done], done]
        before, last, cells = last, cells, before
    substitutions = (found & kind((1 << bits) - 1)).astype(np.int64)
    costs = (found >> kind(cost)).astype(np.int64)
    return substitutions, (costs - SUBSTITUTION * substitutions) // DELETION


def _cell(longest: int) -> tuple[type[np.unsignedinteger[Any]], int]:
    """The smallest type that holds every cell, and its bits for substitutions; two more are the step's."""
    for kind, bits in ((np.uint16, 6), (np.uint32, 14)):
        # No cell costs more than its longer side in substitutions, and a step into it INSERTION more.
        if SUBSTITUTION * longest + INSERTION < 1 << (np.iinfo(kind).bits - bits - 2) and longest < 1 << bits:
            return kind, bits
    return np.uint64, 29


def paths(group: Group) -> list[str]:
    """Each pair's path, a letter of `Edit` for each step; two bits are kept for each cell.

    Cells hold how much dearer they are than their neighbours, which is at most 3 either way, so bytes do for any
    length. Source of the idea: Hyyrö, Explaining and Extending the Bit-parallel Approximate String Matching Algorithm.
    """
    rows, pairs = len(group.references), len(group.reference_lengths)
    # One column's cells over those above, and one row's over those to their left; 3 is added to both.
    down, along = np.full((2, rows + 1, pairs), 6, np.int8)
    gaps, deletions = [], []
    for _, here, above, words, said in group.diagonals():
        unlike = np.multiply(words != said, np.int8(SUBSTITUTION), dtype=np.int8)
        inserted, deleted = down[here], along[above]
        least = np.minimum(inserted, deleted)
        gaps.append(np.packbits(least < unlike))
        deletions.append(np.packbits(deleted < inserted))
        np.minimum(least, unlike, out=least)
        least += 6
        onward = least - inserted
        np.subtract(least, deleted, out=inserted)
        along[here] = onward
    return _walk_back(group, gaps, deletions)


def _walk_back(group: Group, gaps: list[NDArray[np.uint8]], deletions: list[NDArray[np.uint8]]) -> list[str]:
    """From the last cells to the first, all pairs a step at a time."""
    i, j = group.reference_lengths.copy(), group.hypothesis_lengths.copy()
    pair = np.arange(len(i))
    # Diagonals 0 and 1 are all border.
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
        at = np.where(inside, offsets[d] + (i - np.maximum(1, d - width)) * pair_count + pair, 0)
        byte, bit = at >> 3, (128 >> (at & 7)).astype(np.uint8)
        diagonal = inside & ((gap[byte] & bit) == 0)
        down = ~diagonal & (j == 0) & (i > 0) | (inside & ~diagonal & ((deletion[byte] & bit) != 0))
        letter = np.where(down, _D, np.where(d > 0, _I, 0)).astype(np.uint8)
        crossing = np.flatnonzero(diagonal)
        of, said = group.references[i[crossing] - 1, crossing], group.hypotheses[j[crossing] - 1, crossing]
        letter[crossing] = np.where(of == said, _C, _S)
        letters.append(letter)
        i -= diagonal | down
        j -= diagonal | (~down & (d > 0))
    table = np.array(letters[::-1]).T
    steps = len(letters)
    text = table.tobytes().decode("ascii")
    spare = (table == 0).sum(axis=1).tolist()
    return [text[k * steps + spare[k] : (k + 1) * steps] for k in range(pair_count)]


_C, _S, _D, _I = (ord(letter) for letter in "CSDI")
