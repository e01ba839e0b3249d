"""The readings in which two texts are aligned: those of `networks.align_readings`, for many pairs of texts at once.

Every combination of readings is aligned as two texts without choices. For many pairs together, this is far quicker than
networks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product
from math import prod
from typing import NamedTuple

from harness.transcripts.alignment import Alignments
from harness.transcripts.alignment_tables import DELETION, INSERTION, SUBSTITUTION
from harness.transcripts.readings import Readings

MAX_COMBINATIONS = 64
MAX_COMBINED_WORDS = 10_000
"""For a pair with more combinations, or more words in all of them together, networks are quicker."""
PAIRS_PER_CHUNK = 1024
"""Number of pairs whose combinations are in memory together."""


class _Way(NamedTuple):
    """A way to read a text. numbers: for each piece of it, the number of its reading."""

    text: str
    pieces: Readings
    numbers: tuple[int, ...]

    def reading_numbers(self) -> list[int]:
        """For each word, the number of its reading; before them 0, for the beginning."""
        reading_numbers = [0]
        for piece, number in zip(self.pieces, self.numbers, strict=True):
            reading_numbers += [number] if isinstance(piece, str) else [number] * len(piece[number])
        return reading_numbers


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
    choices = [piece for piece in reference + hypothesis if not isinstance(piece, str)]
    count = prod(map(len, choices))
    if count > MAX_COMBINATIONS or count * len(reference + hypothesis) > MAX_COMBINED_WORDS:
        return []
    if () in chain.from_iterable(choices):
        return []
    return list(product(_ways(reference), _ways(hypothesis)))


def _ways(pieces: Readings) -> list[_Way]:
    texts = [(piece,) if isinstance(piece, str) else tuple(map(" ".join, piece)) for piece in pieces]
    all_numbers = product(*map(range, map(len, texts)))
    return [
        _Way(" ".join(chosen_texts), pieces, numbers)
        for chosen_texts, numbers in zip(product(*texts), all_numbers, strict=True)
    ]


_RANKS = {"C": 0, "S": 0, "I": 1, "D": 2}


def _order(reference: _Way, hypothesis: _Way, path: str) -> list[tuple[int, int, int]]:
    """The sort key of combinations with the same cost, by which the way back through a network chooses.

    From the end, each step counts by its kind, then by the reading of the reference, then by that of the hypothesis.
    """
    numbers, others = reference.reading_numbers(), hypothesis.reading_numbers()
    i, j = len(numbers) - 1, len(others) - 1
    order = [(0, numbers[i], others[j])]
    for step in reversed(path):
        if step != "I":
            i -= 1
        if step != "D":
            j -= 1
        order.append((_RANKS[step], numbers[i], others[j]))
    return order
