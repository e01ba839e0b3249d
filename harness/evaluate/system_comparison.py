"""Two systems on the same references: their word error rates, and whether they differ by more than chance."""

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
Rows = NDArray[np.intp]
LEAST_SPEAKERS = 5
"""Fewer say next to nothing about further ones."""


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """first, second: titles. utterances: those that count for both; the counts are of them alone. first_missing,
    second_missing: how many of them that system has no hypothesis for, so that every word counts as deleted.

    difference: WER of the first less that of the second. interval: its 95 % interval, over what `unit_of` says of the
    first. p: two-sided, that such a difference comes by chance. None over no words or fewer than two utterances.
    """

    first: str
    second: str
    utterances: int
    first_counts: WordCounts
    second_counts: WordCounts
    first_missing: int
    second_missing: int
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
    return tuple(
        compare_on(first, second, *shared_rows(first, second), unit_of(first))
        for first, second in combinations(scorings, 2)
    )


def shared_rows(first: Scoring, second: Scoring) -> tuple[Rows, Rows]:
    """The rows of the utterances that count for both, in either; in the order of the first.

    A missing hypothesis counts as deletions here too: a system must not win by crashing on what is hard.
    """
    place = {id_: row for row, id_ in enumerate(second.ids)}
    rows = [row for row, id_ in enumerate(first.ids) if id_ in place]
    return np.array(rows, np.intp), np.array([place[first.ids[row]] for row in rows], np.intp)


def compare_on(
    first: Scoring, second: Scoring, one: Rows, other: Rows, unit: Unit = Unit.UTTERANCES
) -> SystemComparison:
    """The two on some utterances, whose rows in either are given; unit: what the interval speaks of."""
    from harness.metrics.word_intervals import wer_difference

    first_counts, second_counts = first.columns.of(one), second.columns.of(other)
    # Alternatives may give the two systems references of different lengths.
    words = (first_counts.words + second_counts.words) / 2
    by_speaker = first.groups[one] if unit is Unit.SPEAKERS else None
    found = wer_difference(first_counts.errors, second_counts.errors, words, by_speaker)
    difference, interval, p = (None, None, None) if found is None else (found.difference, found.interval, found.p)
    counts = first_counts.totals(), second_counts.totals()
    missing = _missing(first, one), _missing(second, other)
    return SystemComparison(first.title, second.title, len(one), *counts, *missing, difference, interval, p)


def unit_among(scoring: Scoring, rows: Rows) -> Unit:
    """As `unit_of`, of some utterances."""
    return Unit.SPEAKERS if len(np.unique(scoring.groups[rows])) >= LEAST_SPEAKERS else Unit.UTTERANCES


def _missing(scoring: Scoring, rows: Rows) -> int:
    return sum(map(scoring.is_missing, rows.tolist())) if scoring.missing else 0


def _clusters(scoring: Scoring) -> NDArray[np.intp] | None:
    return scoring.groups if unit_of(scoring) is Unit.SPEAKERS else None
