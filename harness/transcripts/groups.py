"""Word errors by group: voice, level, noise, position, or any two of them crossed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.base.text_table import sorted_labels
from harness.model.errors import InputError, nearest
from harness.model.frozen import frozen
from harness.model.transcript import ColumnGrouping, Groupings, WordCounts
from harness.statistics.intervals import Interval
from harness.statistics.significance import Discordance
from harness.statistics.word_intervals import MIN_QUERIES
from harness.transcripts.paired_tests import PairedTest, Rows, adjust_for_pairs, paired_tests
from harness.transcripts.scoring import Scoring

MIN_SPEAKERS = 5
"""With fewer speakers, the results say next to nothing about other speakers."""


@frozen
class SystemComparison:
    """Two systems on the utterances that count for both."""

    first: str
    second: str
    """Titles of the systems."""
    utterances: int
    first_counts: WordCounts
    second_counts: WordCounts
    first_missing: int
    second_missing: int
    """Number of utterances without a hypothesis of that system. All their words count as deleted."""
    difference: float | None
    """WER of the first minus that of the second."""
    interval: Interval | None
    """95 % interval of the difference, over the unit that `interval_unit` gives for the first."""
    p: float | None
    """Two-sided probability of such a difference by chance. None over no words or fewer than two utterances."""
    recognised: Discordance
    """Numbers of utterances that both, only one or neither recognised without an error."""
    tests: tuple[PairedTest, ...] = ()
    """Further tests, corrected for several systems; () within groups."""


class IntervalUnit(StrEnum):
    """The population that an interval is about: further utterances of the same speakers, further speakers, or further
    queries."""

    UTTERANCES = "utterances"
    SPEAKERS = "speakers"
    QUERIES = "queries"


def interval_unit(scoring: Scoring, rows: Rows | None = None) -> IntervalUnit:
    """The unit of intervals: speakers, if there are enough of them. rows: rows of the utterances; None for all.

    In an exported session, queries take the place of speakers, as in the session's own interval. A repeated query tends
    to be recognised in the same way again, whatever the voice.
    """
    if scoring.queries is not None:
        queries = len(np.unique(_codes_in_rows(scoring.queries, rows)))
        return IntervalUnit.QUERIES if queries >= MIN_QUERIES else IntervalUnit.UTTERANCES
    speakers = len(scoring.by_speaker) if rows is None else len(np.unique(scoring.groups[rows]))
    return IntervalUnit.SPEAKERS if speakers >= MIN_SPEAKERS else IntervalUnit.UTTERANCES


def interval_of(scoring: Scoring, rows: Rows | None = None) -> Interval | None:
    """95 % interval of the WER, over the unit that `interval_unit` gives; None over no words or fewer than two units.

    rows: as in `interval_unit`.
    """
    # Imported here, since that takes longer than scoring thousands of utterances.
    from harness.statistics.word_intervals import wer_interval

    columns = scoring.columns if rows is None else scoring.columns.at_rows(rows)
    (errors, words), clusters = _cluster(scoring, rows, interval_unit(scoring, rows), columns.errors, columns.words)
    return wer_interval(errors, words, clusters)


def compare(scorings: Sequence[Scoring]) -> tuple[SystemComparison, ...]:
    """Compares each two systems, in their order, with every test."""
    pairs = []
    for first, second in combinations(scorings, 2):
        first_rows, second_rows = shared_rows(first, second)
        unit = interval_unit(first)
        comparison = compare_on(first, second, first_rows, second_rows, unit)
        columns = _errors_and_words(first, second, first_rows, second_rows)
        first_errors, second_errors, words = _sum_by_cluster(*_cluster(first, first_rows, unit, *columns))
        by_unit = first_errors - second_errors, words, unit.value
        pairs.append(
            replace(
                comparison,
                tests=paired_tests(
                    first,
                    second,
                    first_rows=first_rows,
                    second_rows=second_rows,
                    by_unit=by_unit,
                    recognised=comparison.recognised,
                    p=comparison.p,
                ),
            )
        )
    tests = adjust_for_pairs([pair.tests for pair in pairs])
    return tuple(replace(pair, tests=pair_tests) for pair, pair_tests in zip(pairs, tests, strict=True))


def shared_rows(first: Scoring, second: Scoring) -> tuple[Rows, Rows]:
    """The utterances that count for both, as rows of the first and rows of the second, in the order of the first.

    A missing hypothesis counts as deletions here too: a system must not win by crashing on difficult utterances.
    """
    row_in_second = {id_: row for row, id_ in enumerate(second.ids)}
    rows = [row for row, id_ in enumerate(first.ids) if id_ in row_in_second]
    return np.array(rows, np.intp), np.array([row_in_second[first.ids[row]] for row in rows], np.intp)


def compare_on(
    first: Scoring, second: Scoring, first_rows: Rows, second_rows: Rows, unit: IntervalUnit = IntervalUnit.UTTERANCES
) -> SystemComparison:
    """Compares two systems on some utterances.

    - first_rows, second_rows: rows of these utterances in the first and in the second.
    - unit: the unit of the interval.
    """
    from harness.statistics.comparison import ComparedColumns, MeasureKind, difference_of  # here, as in `interval_of`

    (left, right, words), clusters = _cluster(
        first, first_rows, unit, *_errors_and_words(first, second, first_rows, second_rows)
    )
    sides = (ComparedColumns(errors, words, clusters) for errors in (left, right))
    estimate = difference_of(MeasureKind.WORDS, *sides, paired=True)
    return SystemComparison(
        first=first.title,
        second=second.title,
        utterances=len(first_rows),
        first_counts=first.columns.at_rows(first_rows).totals(),
        second_counts=second.columns.at_rows(second_rows).totals(),
        first_missing=_missing(first, first_rows),
        second_missing=_missing(second, second_rows),
        difference=estimate.difference if estimate else None,
        interval=estimate.interval if estimate else None,
        p=estimate.p if estimate else None,
        recognised=Discordance.of(first.columns.errors[first_rows] == 0, second.columns.errors[second_rows] == 0),
    )


def _errors_and_words(first: Scoring, second: Scoring, first_rows: Rows, second_rows: Rows) -> tuple[NDArray[Any], ...]:
    """The errors of the first and of the second in each utterance, and the reference words."""
    left, right = first.columns.at_rows(first_rows), second.columns.at_rows(second_rows)
    # Alternatives may give the two systems references of different lengths.
    return left.errors, right.errors, (left.words + right.words) / 2


def _missing(scoring: Scoring, rows: Rows) -> int:
    """Number of these utterances without a hypothesis."""
    return sum(map(scoring.is_missing, rows.tolist())) if scoring.missing else 0


def _codes_in_rows(codes: Rows, rows: Rows | None) -> Rows:
    """The codes of these utterances; of all if `rows` is None."""
    return codes if rows is None else codes[rows]


def _cluster(
    scoring: Scoring, rows: Rows | None, unit: IntervalUnit, *columns: NDArray[Any]
) -> tuple[tuple[NDArray[Any], ...], Rows | None]:
    """The columns, and the cluster of each of their rows (None without clusters). With queries as the unit, the rows of
    each query are summed, so that it counts as one. rows: the utterances of the columns; None for all."""
    if unit is IntervalUnit.SPEAKERS:
        return columns, _codes_in_rows(scoring.groups, rows)
    if unit is IntervalUnit.UTTERANCES or scoring.queries is None:
        return columns, None
    return tuple(_sum_by_cluster(columns, _codes_in_rows(scoring.queries, rows))), None


def _sum_by_cluster(columns: Sequence[NDArray[Any]], clusters: Rows | None) -> Sequence[NDArray[Any]]:
    """The sums of each column within each cluster; the columns unchanged without clusters."""
    if clusters is None:
        return columns
    _, cluster_indices = np.unique(clusters, return_inverse=True)
    return [np.bincount(cluster_indices, column) for column in columns]


QUERY = "query"
"""Name of the column with the query of each utterance, in the lists of exported sessions."""
MAX_LABELS = 1000
"""A column with more labels does not describe conditions but single utterances, like a file name."""


@frozen
class GroupWords:
    """The counts of some utterances. interval: 95 % interval of their WER, over `unit`; None over no words or fewer
    than two units."""

    counts: WordCounts
    interval: Interval | None
    unit: IntervalUnit


@frozen
class GroupPartition:
    """How a grouping splits the utterances of a scoring.

    - labels: sorted if there are at most MAX_LABELS; the label "" stands for none.
    - label_indices: for each utterance of the scoring, the index of its label in `labels`.
    """

    name: str
    labels: tuple[str, ...]
    label_indices: Rows


@frozen
class GroupedScoring:
    """A scoring by one grouping.

    - by: name of the grouping.
    - values: each label with its counts.
    """

    by: str
    values: tuple[tuple[str, GroupWords], ...]


@frozen
class CrossedScoring:
    """A scoring by two groupings at once.

    - by: their names.
    - rows, columns: the labels of the first and of the second.
    - cells: the counts of each pair of labels, row by row; None for a pair without an utterance.
    """

    by: tuple[str, str]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[GroupWords | None, ...], ...]
    row_sums: tuple[GroupWords, ...]
    column_sums: tuple[GroupWords, ...]
    total: GroupWords


@frozen
class GroupedComparison:
    """Two systems within each label of a grouping, on the utterances that count for both. by: name of the grouping."""

    by: str
    values: tuple[tuple[str, SystemComparison], ...]


@frozen
class GroupFigures:
    """All results of a scoring by groups.

    - left_out: groupings with more than MAX_LABELS labels, each with their number.
    - without_row: ids of the scoring that a list does not contain; they have the label "".
    - unmatched_ids: ids of a list that neither references nor hypotheses have.
    - partitions: the partition of every grouping that is not left out.
    """

    grouped: tuple[GroupedScoring, ...]
    crossed: tuple[CrossedScoring, ...]
    left_out: tuple[tuple[str, int], ...]
    without_row: tuple[str, ...]
    unmatched_ids: tuple[str, ...]
    partitions: tuple[GroupPartition, ...]


def group_figures(
    scoring: Scoring, sources: Sequence[Groupings], crosses: Sequence[tuple[str, str]] = ()
) -> GroupFigures:
    """A scoring by every grouping of some files. crosses: pairs of names of groupings to be crossed.

    Raises InputError for unknown names.
    """
    partitions: list[GroupPartition] = []
    without: dict[str, None] = {}
    unmatched_ids: dict[str, None] = {}
    for source in sources:
        rows, unknown_ids = _match_rows(source, scoring.ids)
        other_ids = {id_.lower() for id_ in (*scoring.without_hypothesis, *scoring.surplus)} if unknown_ids else set()
        without.update(dict.fromkeys(scoring.ids[row] for row in np.flatnonzero(rows < 0).tolist()))
        unmatched_ids.update(dict.fromkeys(id_ for id_ in unknown_ids if id_.lower() not in other_ids))
        partitions += [_partition(grouping, rows) for grouping in source.groupings]
    counted = {partition.name: partition for partition in partitions if len(partition.labels) <= MAX_LABELS}
    _check_crosses(crosses, {partition.name: len(partition.labels) for partition in partitions})
    return GroupFigures(
        grouped=tuple(score_by_group(scoring, partition) for partition in counted.values()),
        crossed=tuple(cross_groups(scoring, counted[first], counted[second]) for first, second in crosses),
        left_out=tuple(
            (partition.name, len(partition.labels)) for partition in partitions if partition.name not in counted
        ),
        without_row=tuple(without),
        unmatched_ids=tuple(unmatched_ids),
        partitions=tuple(counted.values()),
    )


def _check_crosses(crosses: Sequence[tuple[str, str]], label_counts: Mapping[str, int]) -> None:
    """Raises InputError for a grouping that does not exist, or has too many labels. label_counts: number of labels of
    each grouping."""
    for name in (name for cross in crosses for name in cross):
        if name not in label_counts:
            without_lists = "Add a list with such a column: --groups FILE.csv"
            remedy = nearest(name, list(label_counts)) if label_counts else without_lists
            raise InputError(f"--cross: there is no grouping {name!r}", remedy=remedy)
        if label_counts[name] > MAX_LABELS:
            raise InputError(
                f"--cross: {name!r} has {label_counts[name]:,} different labels, more than {MAX_LABELS:,}",
                remedy="Cross columns with fewer labels, such as conditions",
            )


def score_by_group(scoring: Scoring, partition: GroupPartition) -> GroupedScoring:
    """The counts of each label."""
    group_rows = _rows_by_code(partition.label_indices, len(partition.labels))
    groups = ((label, group_words(scoring, rows)) for label, rows in zip(partition.labels, group_rows, strict=True))
    return GroupedScoring(partition.name, tuple(groups))


def cross_groups(scoring: Scoring, first: GroupPartition, second: GroupPartition) -> CrossedScoring:
    """The counts of each pair of labels, of each label alone, and of all utterances."""
    across = len(second.labels)
    cell_rows = _rows_by_code(first.label_indices * across + second.label_indices, len(first.labels) * across)
    cells = [group_words(scoring, rows) if len(rows) else None for rows in cell_rows]
    return CrossedScoring(
        by=(first.name, second.name),
        rows=first.labels,
        columns=second.labels,
        # Without utterances there are no labels, and `range` must not get a step of 0.
        cells=tuple(tuple(cells[begin : begin + across]) for begin in range(0, len(cells), across or 1)),
        row_sums=tuple(words for _, words in score_by_group(scoring, first).values),
        column_sums=tuple(words for _, words in score_by_group(scoring, second).values),
        total=group_words(scoring, np.arange(len(scoring), dtype=np.intp)),
    )


def compare_by_group(first: Scoring, second: Scoring, partition: GroupPartition) -> GroupedComparison:
    """The paired difference within each label. partition: how the utterances of the first are split."""
    first_rows, second_rows = shared_rows(first, second)
    group_rows = _rows_by_code(partition.label_indices[first_rows], len(partition.labels))
    comparisons = (
        (label, compare_on(first, second, first_rows[rows], second_rows[rows], interval_unit(first, first_rows[rows])))
        for label, rows in zip(partition.labels, group_rows, strict=True)
    )
    return GroupedComparison(partition.name, tuple(comparisons))


def compare_by_groups(
    systems: Sequence[tuple[Scoring, GroupFigures | None]],
) -> tuple[tuple[GroupedComparison, ...], ...]:
    """Compares each two systems within each group, in the order of `compare`; () without groups."""
    return tuple(
        tuple(compare_by_group(first, second, partition) for partition in groups.partitions)
        for (first, groups), (second, _) in combinations(systems, 2)
        if groups is not None
    )


def group_words(scoring: Scoring, rows: Rows) -> GroupWords:
    """The counts of some utterances, with an interval over the unit that `interval_unit` gives for them."""
    return GroupWords(scoring.columns.at_rows(rows).totals(), interval_of(scoring, rows), interval_unit(scoring, rows))


def with_queries(scoring: Scoring, sources: Sequence[Groupings]) -> Scoring:
    """The scoring with the query of each utterance, if a file has a column `query`. An utterance without a value there
    counts as a query of its own."""
    for source in sources:
        for grouping in source.groupings:
            if grouping.name == QUERY:
                partition = _partition(grouping, _match_rows(source, scoring.ids)[0])
                has_none = np.array([not label for label in partition.labels], bool)[partition.label_indices]
                own_queries = len(partition.labels) + np.arange(len(scoring), dtype=np.intp)
                return replace(scoring, queries=np.where(has_none, own_queries, partition.label_indices))
    return scoring


def _rows_by_code(codes: Rows, total: int) -> list[Rows]:
    """For each code below `total`, the rows that have it, ascending."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.searchsorted(codes[order], np.arange(1, total))) if total else []


def _match_rows(groups: Groupings, ids: Sequence[str]) -> tuple[Rows, list[str]]:
    """For each id its row in the list (−1 for none), then the ids of the list that are left over. Ids are compared as
    written; those without a match are compared again without case."""
    if tuple(ids) == groups.ids:
        return np.arange(len(ids), dtype=np.intp), []
    free_rows = dict(zip(groups.ids, range(len(groups.ids)), strict=True))
    rows = [free_rows.pop(id_, -1) for id_ in ids]
    if free_rows and -1 in rows:
        spelt = {id_.lower(): id_ for id_ in free_rows}
        for index, id_ in enumerate(ids):
            if rows[index] < 0 and (spelling := spelt.pop(id_.lower(), None)) is not None:
                rows[index] = free_rows.pop(spelling)
    return np.array(rows, np.intp), list(free_rows)


def _partition(grouping: ColumnGrouping, rows: Rows) -> GroupPartition:
    """How a grouping splits utterances. rows: for each utterance its row in the list; −1 for none. Labels that no
    utterance has are left out."""
    names = {label: number for number, label in enumerate(dict.fromkeys(grouping.labels))}
    # Row −1 (no row in the list) picks the last element, which stands for no label.
    none_code = names.setdefault("", len(names))
    codes = np.array([*map(names.__getitem__, grouping.labels), none_code], np.intp)[rows]
    present = set(np.flatnonzero(np.bincount(codes, minlength=len(names))).tolist())
    present_labels = [label for label, code in names.items() if code in present]
    labels = sorted_labels(present_labels, grouping.order) if len(present_labels) <= MAX_LABELS else present_labels
    index_of_code = np.zeros(len(names), np.intp)
    for index, label in enumerate(labels):
        index_of_code[names[label]] = index
    return GroupPartition(grouping.name, tuple(labels), index_of_code[codes])
