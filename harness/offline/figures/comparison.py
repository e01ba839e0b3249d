"""Two evaluations against each other: on the files of both, and by their false accepts an hour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from harness.model.errors import InputError
from harness.offline.figures.compared_files import (
    AmbientFiles,
    Keys,
    Rows,
    SpokenFile,
    SpokenFiles,
    ToldLater,
    in_both,
    keys,
    others,
    renumbered,
)
from harness.statistics.clustered_shares import clustered_interval
from harness.statistics.comparison import Discordance, poisson_rates
from harness.statistics.exact import Interval, clopper_pearson, garwood
from harness.statistics.paired_difference import paired_difference
from harness.statistics.word_intervals import WerDifference, wer_difference

Errors = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluation as far as comparisons go. spoken, ambient: files that count, by their names in the list, both with
    the same clusters or none; ambient is None where files without a false accept are not known (a log alone). settings:
    what makes it unfair to compare, by name. notes: lines for people.
    """

    name: str
    spoken: SpokenFiles
    ambient: AmbientFiles | None
    false_accepts: int
    hours: float
    settings: Mapping[str, str]
    has_words: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Differing:
    """A file on which the two do not agree."""

    file: str
    first: SpokenFile
    second: SpokenFile


@dataclass(frozen=True, slots=True)
class OnSameFiles:
    """What the files of both came to. discordance: who was right. difference: of error shares, first less second, over
    files, or clusters of them; words: the same of word error rates. first, second: exact intervals of the error shares,
    clustered where clusters are asked for. What names files is read again whenever it is asked for."""

    discordance: Discordance
    only_first: Sequence[str]
    only_second: Sequence[str]
    differing: Sequence[Differing]
    first: Interval | None
    second: Interval | None
    difference: WerDifference | None
    words: WerDifference | None
    word_errors: tuple[int, int, int] = (0, 0, 0)
    other_references: int = 0
    clusters: int = 0

    @property
    def first_errors(self) -> int:
        return self.discordance.only_second + self.discordance.neither

    @property
    def second_errors(self) -> int:
        return self.discordance.only_first + self.discordance.neither


@dataclass(frozen=True, slots=True)
class FalseAccepts:
    """Two rates. p: exact and conditional, that they are the same; difference: per hour over the same files."""

    first: tuple[int, float]
    second: tuple[int, float]
    p: float | None
    difference: WerDifference | None = None
    same_audio: bool = False

    def interval(self, second: bool = False) -> Interval | None:
        return garwood(*(self.second if second else self.first))


@dataclass(frozen=True, slots=True)
class EvaluationComparison:
    """All that is to be said of two evaluations; warnings are lines for people."""

    first: str
    second: str
    same_files: OnSameFiles | None
    false_accepts: FalseAccepts | None
    warnings: tuple[str, ...] = field(default=())


def compare(first: Evaluated, second: Evaluated) -> EvaluationComparison:
    """Compares two evaluations; InputError when they have nothing in common."""
    spoken = keys(first.spoken), keys(second.spoken)
    ambient = None
    if first.ambient is not None and second.ambient is not None:
        ambient = keys(first.ambient), keys(second.ambient)
    same = _same_files(first, second, *spoken) if len(first.spoken) and len(second.spoken) else None
    rates = _false_accepts(first, second, ambient) if first.hours and second.hours else None
    if same is None and rates is None:
        raise InputError(
            f"{first.name} and {second.name} have no kind of file in common",
            remedy="Compare evaluations that both have in-vocabulary files, or out-of-vocabulary ones",
        )
    warnings = [*_named_twice(first, second, spoken, ambient), *_warnings(first, second, same, rates)]
    return EvaluationComparison(first.name, second.name, same, rates, tuple(warnings))


def _same_files(first: Evaluated, second: Evaluated, one: Keys, other: Keys) -> OnSameFiles:
    rows = in_both(one, other)
    right = np.stack([first.spoken.right[rows[0]], second.spoken.right[rows[1]]], axis=1)
    wrong = (~right).astype(np.int64)
    groups = first.spoken.clusters(rows[0])
    either = right[:, 0].astype(int) * 2 + right[:, 1]
    counts = np.bincount(either, minlength=4)
    discordance = Discordance(int(counts[3]), int(counts[2]), int(counts[1]), int(counts[0]))
    alike = first.spoken.words[rows[0]] == second.spoken.words[rows[1]]
    words, sums = None, (0, 0, 0)
    if first.has_words and second.has_words:
        columns = (
            first.spoken.errors[rows[0]][alike],
            second.spoken.errors[rows[1]][alike],
            first.spoken.words[rows[0]][alike],
        )
        words = wer_difference(*columns, None if groups is None else renumbered(groups[alike]))
        sums = int(columns[0].sum()), int(columns[1].sum()), int(columns[2].sum())
    return OnSameFiles(
        discordance,
        _only(first, others(one, rows[0])),
        _only(second, others(other, rows[1])),
        _differing(first, second, *(side[right[:, 0] != right[:, 1]] for side in rows)),
        _share_interval(wrong[:, 0], groups),
        _share_interval(wrong[:, 1], groups),
        _error_difference(discordance) if groups is None else _clustered_difference(wrong, groups),
        words,
        sums,
        len(alike) - int(alike.sum()),
        0 if groups is None else int(groups.max(initial=-1)) + 1,
    )


def _only(side: Evaluated, rows: Rows) -> Sequence[str]:
    return ToldLater(len(rows), lambda at: side.spoken.told(int(rows[at]))[0])


def _differing(first: Evaluated, second: Evaluated, left: Rows, right: Rows) -> Sequence[Differing]:
    def told(at: int) -> Differing:
        name, one = first.spoken.told(int(left[at]))
        return Differing(name, one, second.spoken.told(int(right[at]))[1])

    return ToldLater(len(left), told)


def _error_difference(right: Discordance) -> WerDifference | None:
    """Of shares of errors over independent files: Newcombe's interval, with McNemar's p."""
    found = paired_difference(Discordance(right.neither, right.only_second, right.only_first, right.both))
    return None if found is None else WerDifference(found.value, (found.low, found.high), right.p or 1.0, exact=True)


def _clustered_difference(wrong: Errors, groups: Rows) -> WerDifference | None:
    """The same over clusters. Shares differ by 1 at most, which the normal distribution does not know."""
    found = wer_difference(wrong[:, 0], wrong[:, 1], np.ones(len(wrong), np.int64), groups)
    if found is None:
        return None
    low, high = found.interval
    return replace(found, interval=(max(-1.0, low), min(1.0, high)))


def _share_interval(wrong: Errors, groups: Rows | None) -> Interval | None:
    if groups is None:
        return clopper_pearson(int(wrong.sum()), len(wrong))
    return clustered_interval(np.bincount(groups, wrong).tolist(), np.bincount(groups).tolist())


def _false_accepts(first: Evaluated, second: Evaluated, ambient: tuple[Keys, Keys] | None) -> FalseAccepts:
    counts = (first.false_accepts, first.hours), (second.false_accepts, second.hours)
    p = poisson_rates(*counts[0], *counts[1])
    if ambient is None or first.ambient is None or second.ambient is None:
        return FalseAccepts(*counts, p)
    rows = in_both(*ambient)
    if not len(rows[0]) == len(first.ambient) == len(second.ambient):
        return FalseAccepts(*counts, p)
    events = first.ambient.false_accepts[rows[0]], second.ambient.false_accepts[rows[1]]
    difference = None
    if np.any(events[0] != events[1]):  # without a difference there is nothing to say how much it varies
        difference = wer_difference(*events, first.ambient.hours[rows[0]], first.ambient.clusters(rows[0]))
    return FalseAccepts(*counts, p, difference, same_audio=True)


def _named_twice(
    first: Evaluated, second: Evaluated, spoken: tuple[Keys, Keys], ambient: tuple[Keys, Keys] | None
) -> Iterator[str]:
    for side, one in enumerate((first, second)):
        again = spoken[side].repeated + (ambient[side].repeated if ambient is not None else 0)
        if again:
            files = "1 file has" if again == 1 else f"{again:,} files have"
            yield f"{one.name}: {files} the name of another one: files of one name are paired in their order"


def _warnings(
    first: Evaluated, second: Evaluated, same: OnSameFiles | None, rates: FalseAccepts | None
) -> Sequence[str]:
    found = [f"{one.name}: {note}" for one in (first, second) for note in one.notes]
    for name in dict.fromkeys([*first.settings, *second.settings]):
        before, after = first.settings.get(name), second.settings.get(name)
        if before is None or after is None:
            known = first.name if before is not None else second.name
            found.append(f"{name} is told by {known} alone: nobody knows whether it was the same")
        elif before != after:
            found.append(f"{name} differs: {before} and {after}")
    if same is not None:
        if not same.discordance.total:
            found.append("no in-vocabulary file is in both: names must be the same in both lists")
        elif same.only_first or same.only_second:
            found.append(
                f"{len(same.only_first):,} in-vocabulary files are only in the first and {len(same.only_second):,} "
                "only in the second: the comparison is over those in both"
            )
        if same.other_references:
            found.append(
                f"{same.other_references:,} files have another number of reference words: they are left out of the WER"
            )
        if same.clusters == 1:
            found.append("all files are one cluster, which says nothing of how clusters differ")
    if rates is not None and not rates.same_audio and first.ambient is not None and second.ambient is not None:
        found.append("the out-of-vocabulary files differ: the rates are of different audio")
    return found
