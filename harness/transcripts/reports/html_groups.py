"""Word errors by group on the page of scored transcripts: rows with their intervals on one scale, and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from harness.base.foreign import plain_text
from harness.transcripts.groups import (
    Crossed,
    Grouped,
    GroupedComparison,
    GroupFigures,
    GroupWords,
    Interval,
    Parting,
    SystemComparison,
    compared_by_group,
    sorted_labels,
)
from harness.transcripts.reports.groups import NO_LABEL
from harness.transcripts.scoring import Scoring

MOST_ROWS = 500
LONGEST_LABEL = 80
Whisker = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Cell:
    """A system's figures of a label. whisker: where WER and interval lie on the scale, per cent."""

    words: GroupWords
    interval: Interval | None
    whisker: Whisker | None


@dataclass(frozen=True, slots=True)
class Row:
    """A label with a cell for each system, None where it has no utterance of it, and each two systems compared."""

    label: str
    sentences: int
    words: int
    cells: tuple[Cell | None, ...]
    pairs: tuple[SystemComparison | None, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A grouping."""

    by: str
    rows: tuple[Row, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """Two groupings crossed for one system. rows: label, cells, and all of that label; the last row is of all."""

    by: tuple[str, str]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[GroupWords | None, ...]], ...]


def scale_of(found: Sequence[GroupFigures | None]) -> float:
    """The WER at the right end of all whiskers, so that they compare from table to table."""
    every = [words for one in found if one for by in one.grouped for _, words in by.values]
    return (
        max([max(words.counts.wer or 0.0, words.interval[1] if words.interval else 0.0) for words in every] or [0])
        or 1.0
    )


def tables(scorings: Sequence[Scoring], found: Sequence[GroupFigures | None], scale: float) -> list[Table]:
    """A table for each grouping of more than one label, the systems beside each other.

    scale: of the whiskers, see `scale_of`.
    """
    figures = [one for one in found if one is not None]
    if len(figures) < len(scorings):
        return []
    pairs = list(combinations(range(len(scorings)), 2))

    def compared(first: int, second: int, by: str) -> GroupedComparison:
        return compared_by_group(scorings[first], scorings[second], _named(figures[first].partings, by))

    names = [one.by for one in figures[0].grouped if all(one.by in {of.by for of in each.grouped} for each in figures)]
    return [
        _table(
            [next(one for one in each.grouped if one.by == by) for each in figures],
            [compared(*pair, by) for pair in pairs],
            scale,
        )
        for by in names
        if any(len(one.values) > 1 for each in figures for one in each.grouped if one.by == by)
    ]


def matrices(found: Sequence[GroupFigures | None]) -> list[list[Matrix]]:
    """Of each system those that were asked for."""
    return [[_matrix(one) for one in each.crossed] if each else [] for each in found]


def notes(found: Sequence[GroupFigures | None]) -> list[str]:
    """Sentences on groupings without a table, and on what belongs to no group."""
    out: list[str] = []
    for one in filter(None, found[:1]):
        alone = [(of.by, of.values[0][0]) for of in one.grouped if len(of.values) == 1]
        out += [f"{_shown(by)} is {_shown(label)} in every utterance." for by, label in alone]
        out += [f"{_shown(name)} has {labels:,} different labels, and no table." for name, labels in one.left_out]
        if one.without_row:
            out.append(f"The list has no row for {len(one.without_row):,} of the utterances, which are {NO_LABEL}.")
        if one.strangers:
            out.append(f"Rows of no utterance, which count nowhere: {len(one.strangers):,}.")
    return out


def _table(systems: Sequence[Grouped], pairs: Sequence[GroupedComparison], scale: float) -> Table:
    by_system = [dict(one.values) for one in systems]
    # The first system's order, which may be a declared one.
    first = [label for label, _ in systems[0].values]
    labels = sorted_labels(list({label for one in by_system for label in one}), [label for label in first if label])
    by_pair = [dict(one.values) for one in pairs]
    rows = []
    for label in labels[:MOST_ROWS]:
        of = [one.get(label) for one in by_system]
        some = next(words for words in of if words is not None)
        cells = tuple(None if words is None else Cell(words, words.interval, _whisker(words, scale)) for words in of)
        within = tuple(one.get(label) for one in by_pair)
        rows.append(Row(_shown(label), some.counts.sentences, some.counts.words, cells, within))
    return Table(_shown(systems[0].by), tuple(rows), len(labels) - len(rows))


def _matrix(one: Crossed) -> Matrix:
    rows = [
        (_shown(label), (*cells, total)) for label, cells, total in zip(one.rows, one.cells, one.row_sums, strict=True)
    ]
    columns = tuple(_shown(label) for label in one.columns)
    by = _shown(one.by[0]), _shown(one.by[1])
    return Matrix(by, (*columns, "all"), (*rows, ("all", (*one.column_sums, one.total))))


def _whisker(words: GroupWords, scale: float) -> Whisker | None:
    wer = words.counts.wer
    if wer is None:
        return None
    low, high = words.interval or (wer, wer)
    return 100 * low / scale, 100 * wer / scale, 100 * high / scale


def _named(partings: Sequence[Parting], name: str) -> Parting:
    return next(one for one in partings if one.name == name)


def _shown(label: str) -> str:
    return plain_text(label, LONGEST_LABEL) or NO_LABEL
