"""Two evaluations against each other: on the files of both, and by their false accepts an hour."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from harness.base.told_later import ToldLater
from harness.model.errors import InputError
from harness.statistics.intervals import Interval, clopper_pearson, clustered_interval, garwood
from harness.statistics.significance import Discordance, paired_difference, poisson_rates
from harness.statistics.word_intervals import WerDifference, wer_difference

FOLDER = "folder"
_DIGEST_BYTES = 16
"""Two of a million names have the same by chance once in 10^26 comparisons."""
Rows = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]
"""Shape (n, 2)."""


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


Tells = Callable[[int], tuple[str, SpokenFile]]
"""A file's name and what came of it, by the place that was given with it."""


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


class _NamedFiles:
    """Rows, one a file: which it is, and which cluster it belongs to. `end` the adding before asking."""

    def __init__(self, clusters: Clusters | None) -> None:
        self._by = clusters
        self._names = array("Q")
        self._clusters = array("Q")

    def __len__(self) -> int:
        return len(self._names) // 2

    def _add(self, name: str) -> None:
        self._names.frombytes(_digest(name))
        if self._by is not None:
            self._clusters.frombytes(_digest(self._by.of(name)))

    @property
    def names(self) -> Digests:
        """One a row."""
        return _pairs(self._names)

    def clusters(self, rows: Rows) -> Rows | None:
        """Numbers of the clusters of some rows, from 0 in the order in which they occur; None without clusters."""
        return None if self._by is None else _numbers(_pairs(self._clusters)[rows])


class SpokenFiles(_NamedFiles):
    """In-vocabulary files: 33 bytes each, 49 with clusters. tells: reads one again, for the few that differ."""

    def __init__(self, tells: Tells, clusters: Clusters | None = None) -> None:
        super().__init__(clusters)
        self._tells = tells
        self._places = array("q")
        self._right = bytearray()
        self._errors, self._words = array("I"), array("I")

    def add(self, name: str, file: SpokenFile, place: int) -> None:
        """A file, and where `tells` finds it again."""
        self._add(name)
        self._places.append(place)
        self._right.append(file.right)
        self._errors.append(file.errors)
        self._words.append(file.words)

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        return np.frombuffer(self._right, np.bool_)

    @property
    def errors(self) -> npt.NDArray[np.uint32]:
        return np.frombuffer(self._errors, np.uint32)

    @property
    def words(self) -> npt.NDArray[np.uint32]:
        return np.frombuffer(self._words, np.uint32)

    def told(self, row: int) -> tuple[str, SpokenFile]:
        """Name and outcome of a row; InputError when what was read is no longer there."""
        name, file = self._tells(self._places[row])
        if _digest(name) != self._names[2 * row : 2 * row + 2].tobytes():
            raise InputError(
                f"what stood where {name} stands now was another file: it has changed while it was compared",
                remedy="Compare again when the evaluation has ended",
            )
        return name, file


class AmbientFiles(_NamedFiles):
    """Out-of-vocabulary files: 28 bytes each, 44 with clusters."""

    def __init__(self, clusters: Clusters | None = None) -> None:
        super().__init__(clusters)
        self._false_accepts, self._hours = array("I"), array("d")

    def add(self, name: str, file: AmbientFile) -> None:
        self._add(name)
        self._false_accepts.append(file.false_accepts)
        self._hours.append(file.hours)

    @property
    def false_accepts(self) -> npt.NDArray[np.uint32]:
        return np.frombuffer(self._false_accepts, np.uint32)

    @property
    def hours(self) -> npt.NDArray[np.float64]:
        return np.frombuffer(self._hours, np.float64)


@dataclass(frozen=True, slots=True)
class FileKeys:
    """What tells the rows of files apart: a name, and the how manieth of that name it is, from 0.

    repeated: rows that are not the first of their name.
    """

    names: Digests
    nth: Rows
    repeated: int


def keys(files: SpokenFiles | AmbientFiles) -> FileKeys:
    """Of each row. Files of one name in two lists cannot be told apart otherwise than by their order."""
    names = files.names
    order, begins = _groups(names)
    nth = np.zeros(len(names), np.int64)
    nth[order] = np.arange(len(names)) - np.repeat(begins, np.diff(begins, append=len(names)))
    return FileKeys(names, nth, len(names) - len(begins))


def in_both(first: FileKeys, second: FileKeys) -> tuple[Rows, Rows]:
    """Rows in both of what both have, in the order of the first."""
    if np.array_equal(first.names, second.names):
        every = np.arange(len(first.names), dtype=np.int64)
        return every, every
    names = np.concatenate([first.names, second.names])
    nth = np.concatenate([first.nth, second.nth])
    order = np.lexsort((nth, names[:, 1], names[:, 0]))
    names, nth = names[order], nth[order]
    twice = np.flatnonzero(np.all(names[1:] == names[:-1], axis=1) & (nth[1:] == nth[:-1]))
    # The order keeps the first's before the second's where they are equal.
    one, other = order[twice], order[twice + 1] - len(first.names)
    by = np.argsort(one)
    return one[by], other[by]


def others(of: FileKeys, rows: Rows) -> Rows:
    """The other rows."""
    left = np.ones(len(of.names), np.bool_)
    left[rows] = False
    return np.flatnonzero(left)


def renumbered(numbers: Rows) -> Rows:
    """The same groups numbered from 0 in the order in which they occur: sums over them come in that order, too."""
    _, begins, which = np.unique(numbers, return_index=True, return_inverse=True)
    return _by_occurrence(begins)[which]


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def _pairs(digests: array[int]) -> Digests:
    return np.frombuffer(digests, np.uint64).reshape(-1, 2)


def _groups(digests: Digests) -> tuple[Rows, Rows]:
    """An order that brings equal ones together, each group in the order of its rows; and where groups begin in it."""
    order = np.lexsort((digests[:, 1], digests[:, 0]))
    found = digests[order]
    begins = np.flatnonzero(np.any(found[1:] != found[:-1], axis=1)) + 1
    return order, np.concatenate([np.zeros(min(1, len(found)), np.int64), begins])


def _numbers(digests: Digests) -> Rows:
    order, begins = _groups(digests)
    which = np.zeros(len(digests), np.int64)
    which[begins[1:]] = 1
    numbers = np.empty(len(digests), np.int64)
    numbers[order] = _by_occurrence(order[begins])[np.cumsum(which)]
    return numbers


def _by_occurrence(first_rows: Rows) -> Rows:
    """The rank of each group by the row in which it first occurs."""
    ranks = np.empty(len(first_rows), np.int64)
    ranks[np.argsort(first_rows)] = np.arange(len(first_rows))
    return ranks


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
class DifferingFile:
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
    differing: Sequence[DifferingFile]
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


def _same_files(first: Evaluated, second: Evaluated, one: FileKeys, other: FileKeys) -> OnSameFiles:
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


def _differing(first: Evaluated, second: Evaluated, left: Rows, right: Rows) -> Sequence[DifferingFile]:
    def told(at: int) -> DifferingFile:
        name, one = first.spoken.told(int(left[at]))
        return DifferingFile(name, one, second.spoken.told(int(right[at]))[1])

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


def _false_accepts(first: Evaluated, second: Evaluated, ambient: tuple[FileKeys, FileKeys] | None) -> FalseAccepts:
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
    first: Evaluated, second: Evaluated, spoken: tuple[FileKeys, FileKeys], ambient: tuple[FileKeys, FileKeys] | None
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
