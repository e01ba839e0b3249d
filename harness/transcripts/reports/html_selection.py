"""Which utterances of one or several scorings a page shows, worst first, without making the words of the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.transcripts.scoring import ScoredUtterance, Scoring

MOST_STEPS_IN_ALL = 150_000
"""Words that a page shows: about 15 MB, which a browser still opens at once."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An utterance with the systems that have it (by their place); place: in the order of the references, from 0."""

    place: int
    id: str
    systems: tuple[int, ...]
    utterances: tuple[ScoredUtterance, ...]


class Selection:
    """The utterances of all scorings, by id; the first scoring's order, then those that only later ones have."""

    def __init__(self, scorings: Sequence[Scoring], most: int, steps_each: int) -> None:
        self._scorings = scorings
        self.ids: Sequence[str] = list(dict.fromkeys(id_ for one in scorings for id_ in one.ids))
        self._rows = [self._rows_of(one) for one in scorings]
        errors, words, steps = self._sums(steps_each)
        rate = errors / np.maximum(words, 1)
        order = np.lexsort((np.arange(len(errors)), -rate, -errors))
        within = np.cumsum(steps[order]) <= MOST_STEPS_IN_ALL
        fit = max(1, int(within.sum()))
        self._order = order[: min(most, fit)]
        self.with_errors = int((errors > 0).sum())
        self.shown_with_errors = int((errors[self._order] > 0).sum())

    def __len__(self) -> int:
        return len(self._order)

    @property
    def left_out(self) -> int:
        return len(self.ids) - len(self._order)

    def utterances(self) -> Iterator[Shown]:
        """Most errors first (of all systems together), then the higher rate, then in order."""
        made = [
            one.some([row for row in rows[self._order].tolist() if row >= 0])
            for one, rows in zip(self._scorings, self._rows, strict=True)
        ]
        for place in self._order.tolist():
            systems = tuple(index for index, rows in enumerate(self._rows) if rows[place] >= 0)
            yield Shown(place, self.ids[place], systems, tuple(next(made[index]) for index in systems))

    def _rows_of(self, scoring: Scoring) -> NDArray[np.intp]:
        """The row of each id in a scoring, −1 where it has none."""
        if len(scoring) == len(self.ids) and list(scoring.ids) == self.ids:
            return np.arange(len(self.ids))
        row = {id_: index for index, id_ in enumerate(scoring.ids)}
        return np.fromiter((row.get(id_, -1) for id_ in self.ids), np.intp, len(self.ids))

    def _sums(self, steps_each: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Errors, words and words to be shown of each utterance, all systems together."""
        errors, words, steps = (np.zeros(len(self.ids), np.int64) for _ in range(3))
        for scoring, rows in zip(self._scorings, self._rows, strict=True):
            has = rows >= 0
            columns = scoring.columns
            errors[has] += columns.errors[rows[has]]
            words[has] += columns.words[rows[has]]
            steps[has] += np.minimum((columns.words + columns.insertions)[rows[has]], steps_each)
        return errors, words, steps
