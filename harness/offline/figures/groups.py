"""Results by groups of recordings: false rejects and false accepts of each group, and the gaps between groups."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from harness.base.grouping import group_by
from harness.base.table import NO_LABEL
from harness.model.frozen import frozen
from harness.model.offline import PHRASE, CountingRules, FileOutcome, LabelledPhrase, ListKind, file_number
from harness.offline.figures.counts import LogKey, OfflineCounts, TalkerOf, Tally, judge_file
from harness.offline.figures.phrase_matching import comparable_phrase
from harness.offline.journal_lines import Talkers
from harness.statistics.comparison import ComparedColumns, MeasureKind, difference_of
from harness.statistics.intervals import Interval, Share, garwood
from harness.statistics.significance import Difference, holm

Labels = Mapping[ListKind, Sequence[str]]
"""The label of each file, by its kind and number."""


@frozen
class FileGroup:
    """One group. label: the value of the column, or several joined by a comma.

    - rejects: false rejects out of the phrases.
    - clusters: number of clusters (talkers, for example) from which the phrases come; 0 if none are used.
    - accepts, hours: number of false accepts, and the hours in which they were counted.
    - rejects_p, accepts_p: p-values of the difference from all other groups together, corrected for the number of
      groups (Holm). None if there is nothing to compare with.
    """

    label: str
    rejects: Share
    rejects_interval: Interval | None
    rejects_p: float | None
    clusters: int
    accepts: int
    hours: float
    accepts_interval: Interval | None
    accepts_p: float | None

    @property
    def accepts_per_hour(self) -> float | None:
        return self.accepts / self.hours if self.hours else None


@frozen
class GroupGap:
    """The worst group, the best one, and the difference. Its p is corrected for the number of pairs (Bonferroni)."""

    worst: str
    best: str
    difference: Difference


@frozen
class FileBreakdown:
    """The groups of a column, worst first: by false rejects, then by false accepts per hour.

    - by: name of the column, or several joined by a comma.
    - clustered_by: name of the column whose values are clusters; "" for none.
    - labelled: whether labelled phrases of long recordings are counted.
    - rejects_gap, accepts_gap: None if fewer than two groups have data.
    """

    by: str
    clustered_by: str
    labelled: bool
    groups: tuple[FileGroup, ...]
    rejects_gap: GroupGap | None
    accepts_gap: GroupGap | None


def breakdown(
    outcomes: Iterable[FileOutcome],
    counting: CountingRules,
    columns: Mapping[str, Labels],
    by: Sequence[str],
    clustered_by: str,
    conditions: int = 0,
) -> FileBreakdown:
    """The groups of a column, or of several crossed.

    - columns: the labels of each known column.
    - by: names of the columns to group by.
    - clustered_by: name of the column whose values are clusters; "" for each file by itself.
    - conditions: number of conditions in which each file is played, one after the other; 0 for none. All plays of a
      file are one cluster.
    """
    if clustered_by in by:  # a group that is one talker varies by its files
        clustered_by = ""
    tallies = _GroupTallies(counting, columns, by, clustered_by, conditions)
    for outcome in outcomes:
        tallies.add(outcome)
    counts_by_group = tallies.counts_by_group()
    rejects = {label: _reject_shares(counts) for label, counts in counts_by_group.items()}
    rates = {label: _accept_rate(counts, counting) for label, counts in counts_by_group.items()}
    rejects_p = _holm_corrected(_share_differences(rejects))
    accepts_p = _holm_corrected(_rate_differences(rates))
    groups = []
    for label, shares in rejects.items():
        accepts, hours = rates[label]
        has_clusters = bool(clustered_by) or any(share.total > 1 for share in shares)
        groups.append(
            FileGroup(
                label=label,
                rejects=sum(shares, Share()),
                rejects_interval=ComparedColumns.of_shares(shares, clustered=has_clusters).share_interval,
                rejects_p=rejects_p[label],
                clusters=len(shares) if clustered_by else 0,
                accepts=accepts,
                hours=hours,
                accepts_interval=garwood(accepts, hours) if hours else None,
                accepts_p=accepts_p[label],
            )
        )
    groups.sort(key=_worst_first)
    return FileBreakdown(
        by=", ".join(by),
        clustered_by=clustered_by,
        labelled=tallies.labelled,
        groups=tuple(groups),
        rejects_gap=_rejects_gap(groups, rejects),
        accepts_gap=_accepts_gap(groups),
    )


def label_of(
    kind: ListKind, number: int, columns: Mapping[str, Labels], name: str, label: LabelledPhrase | None = None
) -> str:
    """The value of a column for a file, or for a labelled phrase in it; "" if there is none."""
    if label is not None:
        label_value = label.phrase if name == PHRASE else dict(label.traits).get(name)
        if label_value:
            return label_value
    file_values = columns.get(name, {}).get(kind, ())
    return file_values[number] if file_values else ""


def talker_of(talkers: Talkers) -> TalkerOf | None:
    """A function that returns the talker of a phrase; None without a column of talkers."""
    if not talkers.column:
        return None
    columns = {talkers.column: talkers.labels()}
    return lambda kind, number, label: label_of(kind, number, columns, talkers.column, label)


class _GroupTallies:
    """Counts of each group, apart for each cluster in it. Arguments as of `breakdown`.

    labelled: whether a file was a long recording with labels.
    """

    def __init__(
        self,
        counting: CountingRules,
        columns: Mapping[str, Labels],
        by: Sequence[str],
        clustered_by: str,
        conditions: int,
    ) -> None:
        self._counting, self._columns, self._by = counting, columns, by
        self._clustered_by, self._conditions = clustered_by, conditions
        self._tallies: defaultdict[tuple[str, str], Tally] = defaultdict(lambda: Tally(counting))
        self.labelled = False

    def add(self, outcome: FileOutcome) -> None:
        if outcome.kind is ListKind.LABELLED:
            self.labelled = True
            self._add_labelled(outcome)
            return
        self._tally_of(outcome).add(outcome)

    def counts_by_group(self) -> dict[str, list[OfflineCounts]]:
        """The counts of each cluster, by the label of its group. Groups and clusters are in alphabetical order."""
        return group_by((label, tally.counts) for (label, _), tally in sorted(self._tallies.items()))

    def _add_labelled(self, outcome: FileOutcome) -> None:
        """Adds a long recording. Each labelled phrase counts in its own group; false accepts and hours count in the
        group of the recording.

        If results are grouped by phrase, a false accept counts in the group of the detected phrase. The hours then
        count in the group of every phrase, since the engine always listened for each.
        """
        verdict = judge_file(outcome, self._counting)
        if verdict.rejected is not None:
            return
        phrases = self._counting.phrases if PHRASE in self._by else ("",)
        for phrase in phrases:
            self._tally_of(outcome, phrase=phrase).counts.oov_samples[outcome.rate_hz] += outcome.samples
        for fact in verdict.facts:
            if fact.key in (LogKey.INVTA, LogKey.INVFR) and fact.label is not None:
                phrase = comparable_phrase(fact.label.phrase)
                self._tally_of(outcome, fact.label, fact.label_index, phrase).counts.lines[fact.key] += 1
            elif fact.key is LogKey.OOVFA and fact.spot is not None:
                phrase = comparable_phrase(fact.spot.phrase)
                self._tally_of(outcome, phrase=phrase).counts.lines[fact.key] += 1

    def _tally_of(
        self,
        outcome: FileOutcome,
        label: LabelledPhrase | None = None,
        label_index: int = -1,
        phrase: str | None = None,
    ) -> Tally:
        """The tally of the group and cluster of a file, or of a label in it. phrase: the one that counts as its value
        of the column of phrases; None for the value in that column."""
        column_value = partial(label_of, outcome.kind, outcome.number, self._columns)
        values = [phrase if name == PHRASE and phrase is not None else column_value(name, label) for name in self._by]
        if self._clustered_by:
            cluster = column_value(self._clustered_by, label)  # all files of no known talker are one cluster
        else:
            cluster = f"{outcome.kind} {file_number(outcome.number, self._conditions)} {label_index}"
        return self._tallies[", ".join(text or NO_LABEL for text in values), cluster]


def _share_differences(rejects: Mapping[str, Sequence[Share]]) -> dict[str, Difference | None]:
    """The share of false rejects of each group, against all other groups together."""
    differences = {}
    for label, shares in rejects.items():
        other_shares = [share for other, group in rejects.items() if other != label for share in group]
        differences[label] = _share_difference(shares, other_shares)
    return differences


def _rate_differences(rates: Mapping[str, tuple[int, float]]) -> dict[str, Difference | None]:
    """The rate of false accepts of each group, against all other groups together. rates: (false accepts, hours)."""
    all_accepts = sum(accepts for accepts, _ in rates.values())
    all_hours = sum(hours for _, hours in rates.values())
    differences: dict[str, Difference | None] = {}
    for label, (accepts, hours) in rates.items():
        others = all_accepts - accepts, max(0.0, all_hours - hours)
        has_others = 0 < hours < all_hours - 1e-9  # sums of the same hours may differ by a rounding error
        differences[label] = _rate_difference((accepts, hours), others) if has_others else None
    return differences


def _worst_first(group: FileGroup) -> tuple[bool, float, float, str]:
    """Key by which groups are sorted. Groups without phrases come last."""
    return not group.rejects.total, -(group.rejects.value or 0.0), -(group.accepts_per_hour or 0.0), group.label


def _reject_shares(clusters: Iterable[OfflineCounts]) -> list[Share]:
    """The share of false rejects in each cluster that has a phrase."""
    rejected = [(counts.rejects_and_substitutions, counts.true_accepts) for counts in clusters]
    return [Share(rejects, rejects + accepts) for rejects, accepts in rejected if rejects + accepts]


def _accept_rate(clusters: Iterable[OfflineCounts], counting: CountingRules) -> tuple[int, float]:
    """The false accepts of some clusters, and the hours in which they were counted."""
    counted = [(counts.false_accepts(counting), counts.exposure_hours(counting)) for counts in clusters]
    return sum(accepts for accepts, _ in counted), sum(hours for _, hours in counted)


def _share_difference(first: Sequence[Share], second: Sequence[Share]) -> Difference | None:
    first_columns, second_columns = ComparedColumns.of_shares(first), ComparedColumns.of_shares(second)
    return difference_of(MeasureKind.SHARE, first_columns, second_columns, paired=False)


def _rate_difference(first: tuple[int, float], second: tuple[int, float]) -> Difference | None:
    first_columns, second_columns = (ComparedColumns([accepts], [hours]) for accepts, hours in (first, second))
    return difference_of(MeasureKind.RATE, first_columns, second_columns, paired=False)


def _holm_corrected(differences: Mapping[str, Difference | None]) -> dict[str, float | None]:
    """The p-value of each difference, corrected for their number (Holm)."""
    p_values = [None if difference is None else difference.p for difference in differences.values()]
    return dict(zip(differences, holm(p_values), strict=True))


def _rejects_gap(groups: Sequence[FileGroup], rejects: Mapping[str, Sequence[Share]]) -> GroupGap | None:
    rated = [group for group in groups if group.rejects.value is not None]
    if len(rated) < 2:
        return None
    worst, best = rated[0].label, rated[-1].label
    return _gap(worst, best, _share_difference(rejects[worst], rejects[best]), len(rated))


def _accepts_gap(groups: Sequence[FileGroup]) -> GroupGap | None:
    rated = sorted(
        (group for group in groups if group.hours), key=lambda group: (group.accepts_per_hour or 0.0, group.label)
    )
    if len(rated) < 2:
        return None
    best, worst = rated[0], rated[-1]
    difference = _rate_difference((worst.accepts, worst.hours), (best.accepts, best.hours))
    return _gap(worst.label, best.label, difference, len(rated))


def _gap(worst: str, best: str, difference: Difference | None, groups: int) -> GroupGap | None:
    if difference is None:
        return None
    return GroupGap(worst, best, replace(difference, p=min(1.0, difference.p * math.comb(groups, 2))))
