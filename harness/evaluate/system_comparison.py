"""Two systems on the utterances that both have: their word error rates, and whether they differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from harness.evaluate.scoring import Scoring
from harness.model.transcript import WordCounts

Interval = tuple[float, float]
LEAST_SPEAKERS = 5
"""Fewer say next to nothing about further ones."""


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """first, second: titles. utterances: those that both have a hypothesis for; the counts are of them alone.

    difference: WER of the first less that of the second. interval: its 95 % interval, over what `unit_of` says of the
    first. p: two-sided, that such a difference comes by chance. None over no words or fewer than two utterances.
    """

    first: str
    second: str
    utterances: int
    first_counts: WordCounts
    second_counts: WordCounts
    difference: float | None
    interval: Interval | None
    p: float | None


class Unit(StrEnum):
    """What an interval speaks of: further utterances of the same speakers, or further speakers."""

    UTTERANCES = "utterances"
    SPEAKERS = "speakers"


def unit_of(scoring: Scoring) -> Unit:
    """Speakers where there are enough of them to tell how much they differ."""
    return Unit.SPEAKERS if len(scoring.by_speaker) >= LEAST_SPEAKERS else Unit.UTTERANCES


def interval_of(scoring: Scoring) -> Interval | None:
    """95 % interval of a scoring's WER, over what `unit_of` says; None over no words or one utterance."""
    # Here, since it takes longer to import than thousands of utterances take to score.
    from harness.metrics.word_intervals import wer_interval

    columns = scoring.columns
    return wer_interval(columns.errors, columns.words, _clusters(scoring))


def compare(scorings: Sequence[Scoring]) -> tuple[SystemComparison, ...]:
    """Each two of them, in their order."""
    return tuple(_compared(first, second) for first, second in combinations(scorings, 2))


def _compared(first: Scoring, second: Scoring) -> SystemComparison:
    from harness.metrics.word_intervals import wer_difference

    place = {id_: row for row, id_ in enumerate(second.ids) if not second.is_missing(row)}
    rows = [row for row, id_ in enumerate(first.ids) if id_ in place and not first.is_missing(row)]
    one, other = np.array(rows, np.intp), np.array([place[first.ids[row]] for row in rows], np.intp)
    first_counts, second_counts = first.columns.of(one), second.columns.of(other)
    # Alternatives may give the two systems references of different lengths.
    words = (first_counts.words + second_counts.words) / 2
    by_speaker = _clusters(first)
    found = wer_difference(
        first_counts.errors, second_counts.errors, words, None if by_speaker is None else by_speaker[one]
    )
    difference, interval, p = (None, None, None) if found is None else (found.difference, found.interval, found.p)
    counts = first_counts.totals(), second_counts.totals()
    return SystemComparison(first.title, second.title, len(rows), *counts, difference, interval, p)


def _clusters(scoring: Scoring) -> NDArray[np.intp] | None:
    return scoring.groups if unit_of(scoring) is Unit.SPEAKERS else None
