"""Two systems on the same references: their word error rates, and whether they differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.model.transcript import WordCounts
from harness.transcripts.scoring import Scoring
from harness.transcripts.words_heard import LEAST_QUERIES

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
    """What an interval speaks of: further utterances of the same speakers, further speakers, or further queries."""

    UTTERANCES = "utterances"
    SPEAKERS = "speakers"
    QUERIES = "queries"


def unit_of(scoring: Scoring, rows: Rows | None = None) -> Unit:
    """Of all utterances, or of some: speakers where there are enough of them to tell how much they differ.

    Where queries are known (an exported session), these in their place: one that is said again tends to be heard the
    same again, whoever says it, and so the interval is that of the session.
    """
    if scoring.queries is not None:
        return Unit.QUERIES if len(np.unique(_among(scoring.queries, rows))) >= LEAST_QUERIES else Unit.UTTERANCES
    speakers = len(scoring.by_speaker) if rows is None else len(np.unique(scoring.groups[rows]))
    return Unit.SPEAKERS if speakers >= LEAST_SPEAKERS else Unit.UTTERANCES


def interval_of(scoring: Scoring) -> Interval | None:
    """95 % interval of a scoring's WER, over what `unit_of` says; None over no words or one utterance."""
    return interval_on(scoring, None)


def interval_on(scoring: Scoring, rows: Rows | None) -> Interval | None:
    """The same of some utterances."""
    # Here, since it takes longer to import than thousands of utterances take to score.
    from harness.statistics.word_intervals import wer_interval

    columns = scoring.columns if rows is None else scoring.columns.of(rows)
    (errors, words), clusters = _clustered(scoring, rows, unit_of(scoring, rows), columns.errors, columns.words)
    return wer_interval(errors, words, clusters)


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
    from harness.statistics.word_intervals import wer_difference

    first_counts, second_counts = first.columns.of(one), second.columns.of(other)
    # Alternatives may give the two systems references of different lengths.
    words = (first_counts.words + second_counts.words) / 2
    columns = first_counts.errors, second_counts.errors, words
    (left, right, of), clusters = _clustered(first, one, unit, *columns)
    found = wer_difference(left, right, of, clusters)
    difference, interval, p = (None, None, None) if found is None else (found.difference, found.interval, found.p)
    counts = first_counts.totals(), second_counts.totals()
    missing = _missing(first, one), _missing(second, other)
    return SystemComparison(first.title, second.title, len(one), *counts, *missing, difference, interval, p)


def _missing(scoring: Scoring, rows: Rows) -> int:
    return sum(map(scoring.is_missing, rows.tolist())) if scoring.missing else 0


def _among(codes: Rows, rows: Rows | None) -> Rows:
    return codes if rows is None else codes[rows]


def _clustered(
    scoring: Scoring, rows: Rows | None, unit: Unit, *columns: NDArray[Any]
) -> tuple[tuple[NDArray[Any], ...], Rows | None]:
    """Columns of some utterances, and the cluster of each; those of a query are summed, so that it counts as one."""
    if unit is Unit.SPEAKERS:
        return columns, _among(scoring.groups, rows)
    if unit is Unit.UTTERANCES or scoring.queries is None:
        return columns, None
    _, query = np.unique(_among(scoring.queries, rows), return_inverse=True)
    return tuple(np.bincount(query, column) for column in columns), None
