"""The counts of many utterances as columns, so that hundreds of thousands of them are cheap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.model.transcript import WordCounts

Column = NDArray[np.int64]
Groups = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
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

    def of(self, rows: Groups) -> WordColumns:
        """Those of some utterances."""
        return WordColumns(self.correct[rows], self.substitutions[rows], self.deletions[rows], self.insertions[rows])

    def totals(self) -> WordCounts:
        """All together."""
        return self.grouped(np.zeros(len(self.correct), np.intp), 1)[0]

    def grouped(self, groups: Groups, total: int) -> list[WordCounts]:
        """The sums of each of `total` groups; groups: the group of each utterance, from 0."""
        of = (self.correct, self.substitutions, self.deletions, self.insertions)
        sums = [np.bincount(groups, weights=column, minlength=total).astype(np.int64).tolist() for column in of]
        sentences = np.bincount(groups, minlength=total).tolist()
        wrong = np.bincount(groups[self.errors > 0], minlength=total).tolist()
        return [WordCounts(*row) for row in zip(*sums, sentences, wrong, strict=True)]
