"""Two systems on the utterances that both have: their word error rates, and whether they differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from harness.evaluate.scoring import Column, Scoring
from harness.model.transcript import WordCounts

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """first, second: titles. utterances: those that both have a hypothesis for; the counts are of them alone.

    difference: WER of the first less that of the second; None over no words, as are interval (95 %) and p (two-sided).
    """

    first: str
    second: str
    utterances: int
    first_counts: WordCounts
    second_counts: WordCounts
    difference: float | None
    interval: Interval | None
    p: float | None


def wer_interval(errors: Column, words: Column) -> Interval | None:
    return None


def paired_difference(
    errors: Column, words: Column, other_errors: Column, other_words: Column
) -> tuple[None, None, None]:
    return None, None, None


def interval_of(scoring: Scoring) -> Interval | None:
    """95 % interval of a scoring's WER; None over no words."""
    return wer_interval(scoring.columns.errors, scoring.columns.words)


def compare(scorings: Sequence[Scoring]) -> tuple[SystemComparison, ...]:
    """Each two of them, in their order."""
    return tuple(_compared(first, second) for first, second in combinations(scorings, 2))


def _compared(first: Scoring, second: Scoring) -> SystemComparison:
    place = {id_: row for row, id_ in enumerate(second.ids) if not second.is_missing(row)}
    rows = [row for row, id_ in enumerate(first.ids) if id_ in place and not first.is_missing(row)]
    one, other = np.array(rows, np.intp), np.array([place[first.ids[row]] for row in rows], np.intp)
    first_counts, second_counts = first.columns.of(one), second.columns.of(other)
    found = paired_difference(first_counts.errors, first_counts.words, second_counts.errors, second_counts.words)
    return SystemComparison(first.title, second.title, len(rows), first_counts.totals(), second_counts.totals(), *found)
