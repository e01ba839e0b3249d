"""Two evaluations against each other: on the files of both, and by their false accepts an hour."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from harness.metrics.clustered_shares import clustered_interval
from harness.metrics.comparison import Discordance, poisson_rates
from harness.metrics.exact import Interval, clopper_pearson, garwood
from harness.metrics.paired_difference import paired_difference
from harness.metrics.word_intervals import WerDifference, wer_difference
from harness.model.errors import InputError

FOLDER = "folder"
Errors = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SpokenFile:
    """An in-vocabulary file. right: a true accept, or no mismatch; errors, words: of a text; said: for people."""

    right: bool
    errors: int = 0
    words: int = 0
    said: str = ""


@dataclass(frozen=True, slots=True)
class AmbientFile:
    """An out-of-vocabulary file."""

    false_accepts: int
    hours: float


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An evaluation as far as comparisons go. spoken, ambient: files that count, by their names in the list;
    ambient is None where files without a false accept are not known (a log alone). settings: what makes it unfair to
    compare, by name. notes: lines for people.
    """

    name: str
    spoken: Mapping[str, SpokenFile]
    ambient: Mapping[str, AmbientFile] | None
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
    clustered where clusters are asked for."""

    discordance: Discordance
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    differing: tuple[Differing, ...]
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


class Clusters:
    """Which files belong together: those of a folder, or those in whose names a regular expression finds the same."""

    def __init__(self, by: str) -> None:
        self.by = by
        try:
            self._pattern = None if by == FOLDER else re.compile(by)
        except re.error as error:
            raise InputError(
                f"{by!r} is no regular expression: {error}", remedy="Or write: --cluster-by folder"
            ) from error

    def of(self, file: str) -> str:
        """A file's cluster; one that the expression does not find is one of its own."""
        if self._pattern is None:
            return str(PurePath(file).parent)
        found = self._pattern.search(file)
        if found is None:
            return f"\0{file}"
        return "\0".join(group or "" for group in found.groups()) if found.groups() else found[0]


def compare(first: Evaluated, second: Evaluated, clusters: Clusters | None = None) -> EvaluationComparison:
    """Compares two evaluations; InputError when they have nothing in common."""
    same = _same_files(first, second, clusters) if first.spoken and second.spoken else None
    rates = _false_accepts(first, second, clusters) if first.hours and second.hours else None
    if same is None and rates is None:
        raise InputError(
            f"{first.name} and {second.name} have no kind of file in common",
            remedy="Compare evaluations that both have in-vocabulary files, or out-of-vocabulary ones",
        )
    return EvaluationComparison(first.name, second.name, same, rates, tuple(_warnings(first, second, same, rates)))


def _same_files(first: Evaluated, second: Evaluated, clusters: Clusters | None) -> OnSameFiles:
    names = [name for name in first.spoken if name in second.spoken]
    pairs = [(first.spoken[name], second.spoken[name]) for name in names]
    right = np.array([(one.right, other.right) for one, other in pairs], bool).reshape(-1, 2)
    wrong = (~right).astype(np.int64)
    groups = None if clusters is None else [clusters.of(name) for name in names]
    either = right[:, 0].astype(int) * 2 + right[:, 1]
    counts = np.bincount(either, minlength=4)
    discordance = Discordance(int(counts[3]), int(counts[2]), int(counts[1]), int(counts[0]))
    texts = [(one, other) for one, other in pairs if one.words == other.words]
    words = errors = None
    if first.has_words and second.has_words:
        errors = np.array([(one.errors, other.errors, one.words) for one, other in texts], np.int64).reshape(-1, 3)
        alike = None if groups is None else [
            group for group, (one, other) in zip(groups, pairs, strict=True) if one.words == other.words
        ]  # fmt: skip
        words = wer_difference(errors[:, 0], errors[:, 1], errors[:, 2], alike)
    sums = (0, 0, 0) if errors is None else tuple(int(one) for one in errors.sum(axis=0))
    return OnSameFiles(
        discordance,
        tuple(name for name in first.spoken if name not in second.spoken),
        tuple(name for name in second.spoken if name not in first.spoken),
        tuple(
            Differing(name, *pair) for name, pair in zip(names, pairs, strict=True) if pair[0].right != pair[1].right
        ),
        _share_interval(wrong[:, 0], groups),
        _share_interval(wrong[:, 1], groups),
        _error_difference(discordance) if groups is None else _clustered_difference(wrong, groups),
        words,
        (sums[0], sums[1], sums[2]),
        len(pairs) - len(texts),
        0 if groups is None else len(set(groups)),
    )


def _error_difference(right: Discordance) -> WerDifference | None:
    """Of shares of errors over independent files: Newcombe's interval, with McNemar's p."""
    found = paired_difference(Discordance(right.neither, right.only_second, right.only_first, right.both))
    return None if found is None else WerDifference(found.value, (found.low, found.high), right.p or 1.0)


def _clustered_difference(wrong: Errors, groups: list[str]) -> WerDifference | None:
    """The same over clusters. Shares differ by 1 at most, which the normal distribution does not know."""
    found = wer_difference(wrong[:, 0], wrong[:, 1], np.ones(len(wrong), np.int64), groups)
    if found is None:
        return None
    low, high = found.interval
    return WerDifference(found.difference, (max(-1.0, low), min(1.0, high)), found.p)


def _share_interval(wrong: Errors, groups: list[str] | None) -> Interval | None:
    if groups is None:
        return clopper_pearson(int(wrong.sum()), len(wrong))
    held: dict[str, list[int]] = {}
    for group, one in zip(groups, wrong.tolist(), strict=True):
        counts = held.setdefault(group, [0, 0])
        counts[0] += one
        counts[1] += 1
    return clustered_interval([one for one, _ in held.values()], [of for _, of in held.values()])


def _false_accepts(first: Evaluated, second: Evaluated, clusters: Clusters | None) -> FalseAccepts:
    counts = (first.false_accepts, first.hours), (second.false_accepts, second.hours)
    p = poisson_rates(*counts[0], *counts[1])
    if first.ambient is None or second.ambient is None or first.ambient.keys() != second.ambient.keys():
        return FalseAccepts(*counts, p)
    names = [*first.ambient]
    events = [(first.ambient[name].false_accepts, second.ambient[name].false_accepts) for name in names]
    hours = [first.ambient[name].hours for name in names]
    table = np.array(events, np.int64).reshape(-1, 2)
    difference = None
    if np.any(table[:, 0] != table[:, 1]):  # without a difference there is nothing to say how much it varies
        groups = None if clusters is None else [clusters.of(name) for name in names]
        difference = wer_difference(table[:, 0], table[:, 1], np.array(hours), groups)
    return FalseAccepts(*counts, p, difference, same_audio=True)


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
