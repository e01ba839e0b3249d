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
from harness.offline.figures.counts import LogKey, OfflineCounts, TalkerOf, Tally, judged
from harness.offline.figures.phrase_matching import compared
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

    by: name of the column, or several joined by a comma. clustered_by: name of the column whose values are clusters;
    "" for none. labelled: whether labelled phrases of long recordings are counted. rejects_gap, accepts_gap: None if
    fewer than two groups have data.
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

    columns: the labels of each known column. by: names of the columns to group by. clustered_by: name of the column
    whose values are clusters; "" for each file by itself. conditions: number of conditions in which each file is
    played, one after the other; 0 for none. All plays of a file are one cluster.
    """
    tallies: defaultdict[tuple[str, str], Tally] = defaultdict(lambda: Tally(counting))
    clustered_by = "" if clustered_by in by else clustered_by  # a group that is one talker varies by its files
    clusters = bool(clustered_by)
    labelled = False
    for outcome in outcomes:
        value = partial(label_of, outcome.kind, outcome.number, columns)
        # All files of no known talker are one cluster.
        cluster = value(clustered_by) if clustered_by else f"{outcome.kind} {file_number(outcome.number, conditions)}"
        if outcome.kind is ListKind.LABELLED:
            labelled = True
            _add_labelled(
                tallies,
                outcome=outcome,
                counting=counting,
                columns=columns,
                by=by,
                clustered_by=clustered_by,
                conditions=conditions,
            )
        else:
            tallies[", ".join(value(name) or NO_LABEL for name in by), cluster].add(outcome)
    parts = group_by((label, tally.counts) for (label, _), tally in sorted(tallies.items()))
    rejects = {label: _rejects(part) for label, part in parts.items()}
    accepts = {label: sum(counts.false_accepts(counting) for counts in part) for label, part in parts.items()}
    hours = {label: sum(counts.exposure_hours(counting) for counts in part) for label, part in parts.items()}
    all_accepts, all_hours = sum(accepts.values()), sum(hours.values())
    share_differences: dict[str, Difference | None] = {}
    rate_differences: dict[str, Difference | None] = {}
    for label in parts:
        rest = [share for other in parts if other != label for share in rejects[other]]
        share_differences[label] = _share_difference(rejects[label], rest)
        group_rate = accepts[label], hours[label]
        rest_rate = all_accepts - accepts[label], max(0.0, all_hours - hours[label])
        has_rest = 0 < hours[label] < all_hours - 1e-9
        rate_differences[label] = _rate_difference(group_rate, rest_rate) if has_rest else None
    rejects_p, accepts_p = _corrected(share_differences), _corrected(rate_differences)
    groups = [
        FileGroup(
            label=label,
            rejects=sum(rejects[label], Share()),
            rejects_interval=ComparedColumns.of_shares(
                rejects[label], clustered=clusters or any(share.total > 1 for share in rejects[label])
            ).share_interval,
            rejects_p=rejects_p[label],
            clusters=len(rejects[label]) if clusters else 0,
            accepts=accepts[label],
            hours=hours[label],
            accepts_interval=garwood(accepts[label], hours[label]) if hours[label] else None,
            accepts_p=accepts_p[label],
        )
        for label in parts
    ]
    groups.sort(key=_badness)
    return FileBreakdown(
        ", ".join(by), clustered_by, labelled, tuple(groups), _rejects_gap(groups, rejects), _accepts_gap(groups)
    )


def label_of(
    kind: ListKind, number: int, columns: Mapping[str, Labels], name: str, label: LabelledPhrase | None = None
) -> str:
    """The value of a column for a file, or for a labelled phrase in it; "" if there is none."""
    if label is not None and (of_label := (dict(label.traits) | {PHRASE: label.phrase}).get(name)):
        return of_label
    of_kind = columns.get(name, {}).get(kind, ())
    return of_kind[number] if of_kind else ""


def talker_of(talkers: Talkers) -> TalkerOf | None:
    """A function that returns the talker of a phrase; None without a column of talkers."""
    if not talkers.column:
        return None
    columns = {talkers.column: talkers.labels()}
    return lambda kind, number, label: label_of(kind, number, columns, talkers.column, label)


def _add_labelled(
    tallies: defaultdict[tuple[str, str], Tally],
    outcome: FileOutcome,
    counting: CountingRules,
    columns: Mapping[str, Labels],
    by: Sequence[str],
    clustered_by: str,
    conditions: int,
) -> None:
    """Adds a long recording. Each labelled phrase counts in its own group; false accepts and hours count in the group
    of the recording.

    If results are grouped by phrase, a false accept counts in the group of the detected phrase. The hours then count
    in the group of every phrase, since the engine always listened for each.
    """
    verdict = judged(outcome, counting)
    if verdict.rejected is not None:
        return
    phrases = counting.phrases if PHRASE in by else ("",)
    value = partial(label_of, outcome.kind, outcome.number, columns)

    def of(label: LabelledPhrase | None, place: int, phrase: str) -> OfflineCounts:
        """The counts of the group and cluster of a label, or of the recording."""
        values = [phrase if name == PHRASE else value(name, label) for name in by]
        cluster = value(clustered_by, label) if clustered_by else None
        by_itself = f"{outcome.kind} {file_number(outcome.number, conditions)} {place}"
        return tallies[", ".join(part or NO_LABEL for part in values), by_itself if cluster is None else cluster].counts

    for phrase in phrases:
        of(None, -1, phrase).oov[outcome.rate_hz] += outcome.samples
    for fact in verdict.facts:
        if fact.key in (LogKey.INVTA, LogKey.INVFR) and fact.label is not None:
            of(fact.label, fact.place, compared(fact.label.phrase)).lines[fact.key] += 1
        elif fact.key is LogKey.OOVFA and fact.spot is not None:
            of(None, -1, compared(fact.spot.phrase)).lines[fact.key] += 1


def _badness(group: FileGroup) -> tuple[bool, float, float, str]:
    return not group.rejects.total, -(group.rejects.value or 0.0), -(group.accepts_per_hour or 0.0), group.label


def _rejects(clusters: Iterable[OfflineCounts]) -> list[Share]:
    """The share of false rejects in each cluster that has a phrase."""
    rejected = [(counts.rejects_and_substitutions, counts.true_accepts) for counts in clusters]
    return [Share(rejects, rejects + accepts) for rejects, accepts in rejected if rejects + accepts]


def _share_difference(first: Sequence[Share], second: Sequence[Share]) -> Difference | None:
    return difference_of(MeasureKind.SHARE, *map(ComparedColumns.of_shares, (first, second)), paired=False)


def _rate_difference(first: tuple[int, float], second: tuple[int, float]) -> Difference | None:
    sides = (ComparedColumns([accepts], [hours]) for accepts, hours in (first, second))
    return difference_of(MeasureKind.RATE, *sides, paired=False)


def _corrected(differences: Mapping[str, Difference | None]) -> dict[str, float | None]:
    return dict(
        zip(
            differences,
            holm([None if difference is None else difference.p for difference in differences.values()]),
            strict=True,
        )
    )


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
