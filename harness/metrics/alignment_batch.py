"""Many hypotheses against their references at once, aligned as sclite aligns them (see alignment.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.metrics.alignment import align
from harness.model.transcript import WordCounts

Counts = NDArray[np.int32]


class Alignments:
    """The counts of n aligned pairs as columns of shape (n,); their paths are made on demand."""

    def __init__(self, references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]) -> None:
        if len(references) != len(hypotheses):
            raise ValueError(f"{len(references)} references for {len(hypotheses)} hypotheses")
        self._references, self._hypotheses = references, hypotheses
        paths = [align(of, said) for of, said in zip(references, hypotheses, strict=True)]
        self.correct: Counts = np.array([path.count("C") for path in paths], np.int32)
        self.substitutions: Counts = np.array([path.count("S") for path in paths], np.int32)
        self.deletions: Counts = np.array([path.count("D") for path in paths], np.int32)
        self.insertions: Counts = np.array([path.count("I") for path in paths], np.int32)

    def __len__(self) -> int:
        return len(self.correct)

    def path(self, index: int) -> str:
        """The path of one pair, a letter of `Edit` for each step."""
        return align(self._references[index], self._hypotheses[index])

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
    """Aligns pairs of words, one for one; ValueError when one column is longer."""
    return Alignments(references, hypotheses)


def align_texts(references: Sequence[str], hypotheses: Sequence[str]) -> Alignments:
    """Aligns pairs of texts whose words are parted by single spaces ("" has no words); the fastest way in."""
    return align_many([_words(text) for text in references], [_words(text) for text in hypotheses])


def _words(text: str) -> list[str]:
    return text.split(" ") if text else []
