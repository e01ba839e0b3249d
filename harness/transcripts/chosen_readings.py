"""The readings in which two texts are aligned: those of `networks.align_readings`, for many pairs of texts at once.

Every combination of readings is aligned as two texts without choices. For many pairs together, this is far quicker than
networks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product
from math import prod
from operator import getitem
from typing import NamedTuple

from harness.transcripts.alignment import Alignments
from harness.transcripts.alignment_tables import DELETION, INSERTION, SUBSTITUTION
from harness.transcripts.readings import Choice, Readings, options

MAX_COMBINATIONS = 64
MAX_COMBINED_WORDS = 10_000
"""For a pair with more combinations, or more words in all of them together, networks are quicker."""
PAIRS_PER_CHUNK = 1024
"""Number of pairs whose combinations are in memory together."""


class _Way(NamedTuple):
    """A way to read a text. numbers: for each piece of it, the number of its reading."""

    text: str
    pieces: Sequence[Choice]
    numbers: tuple[int, ...]

    def word_numbers(self) -> list[int]:
        """For each word, the number of its reading; before them 0, for the beginning."""
        return [0, *(number for piece, number in zip(self.pieces, self.numbers, strict=True) for _ in piece[number])]


def choose_readings(pairs: Sequence[tuple[Readings, Readings]]) -> Iterator[tuple[str, str] | None]:
    """Yields for each pair the words of both texts in the readings that make the alignment cheapest, with single spaces
    between.

    None for a pair that networks have to align. It has too many combinations, or a reading without words, which has a
    weight of its own.
    """
    for begin in range(0, len(pairs), PAIRS_PER_CHUNK):
        combinations = [_combinations(*pair) for pair in pairs[begin : begin + PAIRS_PER_CHUNK]]
        candidates = list(chain.from_iterable(combinations))
        alignments = Alignments([way.text for way, _ in candidates], [way.text for _, way in candidates])
        columns = alignments.columns
        gaps = DELETION * columns.deletions + INSERTION * columns.insertions
        costs: list[int] = (SUBSTITUTION * columns.substitutions + gaps).tolist()
        cheapest_rows: list[list[int]] = []
        end = 0
        for ways in combinations:
            start, end = end, end + len(ways)
            least = min(costs[start:end], default=0)
            cheapest_rows.append([row for row in range(start, end) if costs[row] == least])
        tied_rows = [row for rows in cheapest_rows if len(rows) > 1 for row in rows]
        orders = {
            row: _order(*candidates[row], path)
            for row, path in zip(tied_rows, alignments.paths(tied_rows), strict=True)
        }
        for rows in cheapest_rows:
            if not rows:
                yield None
                continue
            reference, hypothesis = candidates[rows[0] if len(rows) == 1 else min(rows, key=orders.__getitem__)]
            yield reference.text, hypothesis.text


def _combinations(reference: Readings, hypothesis: Readings) -> list[tuple[_Way, _Way]]:
    """All combinations of readings; none if networks have to align the texts."""
    pieces, others = tuple(map(options, reference)), tuple(map(options, hypothesis))
    count = prod(map(len, pieces + others))
    if count > MAX_COMBINATIONS or count * len(pieces + others) > MAX_COMBINED_WORDS:
        return []
    if () in chain.from_iterable(pieces + others):
        return []
    return list(product(_ways(pieces), _ways(others)))


def _ways(pieces: Sequence[Choice]) -> list[_Way]:
    return [
        _Way(" ".join(chain.from_iterable(map(getitem, pieces, numbers))), pieces, numbers)
        for numbers in product(*map(range, map(len, pieces)))
    ]


_RANKS = {"C": 0, "S": 0, "I": 1, "D": 2}


def _order(reference: _Way, hypothesis: _Way, path: str) -> list[tuple[int, int, int]]:
    """The sort key of combinations with the same cost, by which the way back through a network chooses.

    From the end, each step counts by its kind, then by the reading of the reference, then by that of the hypothesis.
    """
    numbers, others = reference.word_numbers(), hypothesis.word_numbers()
    i, j = len(numbers) - 1, len(others) - 1
    order = [(0, numbers[i], others[j])]
    for step in reversed(path):
        i -= step != "I"
        j -= step != "D"
        order.append((_RANKS[step], numbers[i], others[j]))
    return order
