"""Compares two evaluations: on the files of both, and by false accepts per hour."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from harness.base.lazy_sequence import LazySequence
from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.offline.file_sources import FOLDER
from harness.statistics.comparison import ComparedColumns, MeasureKind, difference_of
from harness.statistics.intervals import Interval, garwood
from harness.statistics.significance import Difference, Discordance

_DIGEST_BYTES = 16
"""With 16 bytes, two of a million names collide once in 10^26 comparisons."""
Rows = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]
"""Hashes of n names, shape (n, 2): each has 16 bytes, as two integers."""


@frozen
class SpokenFile:
    """The outcome of an in-vocabulary file.

    - right: whether it was a true accept; with a text, whether the transcript has no mismatch.
    - errors, words: number of word errors, and of words in the reference; both are 0 without a text.
    - said: what the engine reported, for people.
    """

    right: bool
    errors: int = 0
    words: int = 0
    said: str = ""


FileLookup = Callable[[int], tuple[str, SpokenFile]]
"""Reads a file's name and outcome again, from the place that was stored with its row."""


class Clusters:
    """Assigns files to clusters: by folder, or by the part of the name that a regular expression matches. by: FOLDER,
    or the expression."""

    def __init__(self, by: str) -> None:
        self.by = by
        try:
            self._pattern = None if by == FOLDER else re.compile(by)
        except re.error as error:
            raise InputError(
                f"{by!r} is not a regular expression: {error}", remedy="Correct it, or use --cluster-by folder"
            ) from error

    def cluster_of(self, file: str) -> str:
        """A file's cluster. A file that the expression does not match is its own cluster."""
        if self._pattern is None:
            return str(PurePath(file).parent)
        match = self._pattern.search(file)
        if match is None:
            return f"\0{file}"
        return "\0".join(group or "" for group in match.groups()) if match.groups() else match[0]


class _NamedFiles:
    """A table with one row per file: the hash of its name, and the hash of its cluster if there are clusters."""

    def __init__(self, clusters: Clusters | None) -> None:
        self._cluster_rule = clusters
        self._names = array("Q")
        self._clusters = array("Q")

    def __len__(self) -> int:
        return len(self._names) // 2

    def _add(self, name: str, cluster: str | None) -> None:
        self._names.frombytes(_digest(name))
        if self._cluster_rule is not None:
            cluster = self._cluster_rule.cluster_of(name)
        if cluster is not None:
            self._clusters.frombytes(_digest(cluster))

    @property
    def names(self) -> Digests:
        return _as_pairs(self._names)

    def clusters(self, rows: Rows) -> Rows | None:
        """The cluster of each of some rows, as a number; None without clusters. Clusters are numbered from 0 in order
        of first occurrence."""
        if not self._clusters:
            return None
        return _group_numbers(_as_pairs(self._clusters)[rows])


class SpokenFiles(_NamedFiles):
    """In-vocabulary files: 33 bytes each, 49 with clusters. Columns right, errors, words: as in SpokenFile.

    lookup: reads a file's outcome again; only needed for the few files that differ.
    """

    def __init__(self, lookup: FileLookup, clusters: Clusters | None = None) -> None:
        super().__init__(clusters)
        self._lookup = lookup
        self._places = array("q")
        self.right = bytearray()
        self.errors, self.words = array("I"), array("I")

    def add(self, name: str, file: SpokenFile, place: int, cluster: str | None = None) -> None:
        """Adds a file, with the place where `lookup` finds it again. cluster: as in `AmbientFiles.add`."""
        self._add(name, cluster)
        self._places.append(place)
        self.right.append(file.right)
        self.errors.append(file.errors)
        self.words.append(file.words)

    def outcome_of(self, row: int) -> tuple[str, SpokenFile]:
        """Name and outcome of a row. Raises InputError if the file has changed."""
        name, file = self._lookup(self._places[row])
        if _digest(name) != self._names[2 * row : 2 * row + 2].tobytes():
            raise InputError(
                f"the evaluation changed while it was being compared: {name} has replaced another file",
                remedy="Compare again when the evaluation has ended",
            )
        return name, file


class AmbientFiles(_NamedFiles):
    """Files that the rate of false accepts includes: 28 bytes each, 44 with clusters. Columns false_accepts, hours:
    numbers of false accepts, and the hours in which they were counted."""

    def __init__(self, clusters: Clusters | None = None) -> None:
        super().__init__(clusters)
        self.false_accepts, self.hours = array("I"), array("d")

    def add(self, name: str, false_accepts: int, hours: float, cluster: str | None = None) -> None:
        """Adds a file. cluster: name of its cluster, unless a rule assigns one; None for none, in every file."""
        self._add(name, cluster)
        self.false_accepts.append(false_accepts)
        self.hours.append(hours)


@frozen
class FileKeys:
    """The keys by which rows of two evaluations are matched: name and occurrence.

    - nth: 0 for the first row of a name, 1 for the second, and so on.
    - repeated: number of rows with nth > 0.
    """

    names: Digests
    nth: Rows
    repeated: int


def file_keys_of(files: SpokenFiles | AmbientFiles) -> FileKeys:
    """The key of each row. If two lists contain the same name, only the order of the rows distinguishes them."""
    names = files.names
    order, begins = _group_rows(names)
    nth = np.zeros(len(names), np.int64)
    nth[order] = np.arange(len(names)) - np.repeat(begins, np.diff(begins, append=len(names)))
    return FileKeys(names, nth, len(names) - len(begins))


def shared_rows(first: FileKeys, second: FileKeys) -> tuple[Rows, Rows]:
    """Rows of the files that both have: in the first and in the second, both in the order of the first."""
    if np.array_equal(first.names, second.names):
        all_rows = np.arange(len(first.names), dtype=np.int64)
        return all_rows, all_rows
    names = np.concatenate([first.names, second.names])
    nth = np.concatenate([first.nth, second.nth])
    order = np.lexsort((nth, names[:, 1], names[:, 0]))
    names, nth = names[order], nth[order]
    equal_neighbours = np.flatnonzero(np.all(names[1:] == names[:-1], axis=1) & (nth[1:] == nth[:-1]))
    # Among equal keys the first's row comes first.
    first_rows = order[equal_neighbours]
    second_rows = order[equal_neighbours + 1] - len(first.names)
    order_of_first = np.argsort(first_rows)
    return first_rows[order_of_first], second_rows[order_of_first]


def remaining_rows(file_keys: FileKeys, rows: Rows) -> Rows:
    """All rows but those given, in order."""
    is_other = np.ones(len(file_keys.names), np.bool_)
    is_other[rows] = False
    return np.flatnonzero(is_other)


def renumber_groups(numbers: Rows) -> Rows:
    """The same groups with other numbers: from 0 in order of first occurrence, so that sums over them keep that
    order."""
    _, begins, group_of = np.unique(numbers, return_index=True, return_inverse=True)
    return _by_occurrence(begins)[group_of]


def _digest(text: str) -> bytes:
    """The hash of a name, _DIGEST_BYTES bytes."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


def _as_pairs(digests: array[int]) -> Digests:
    return np.frombuffer(digests, np.uint64).reshape(-1, 2)


def _group_rows(digests: Digests) -> tuple[Rows, Rows]:
    """An order of rows that puts equal ones side by side, each group in row order; and where each group begins."""
    order = np.lexsort((digests[:, 1], digests[:, 0]))
    sorted_digests = digests[order]
    begins = np.flatnonzero(np.any(sorted_digests[1:] != sorted_digests[:-1], axis=1)) + 1
    return order, np.concatenate([np.zeros(min(1, len(sorted_digests)), np.int64), begins])


def _group_numbers(digests: Digests) -> Rows:
    """For each row, the number of its group of equal rows, from 0 in order of first occurrence."""
    order, begins = _group_rows(digests)
    begins_group = np.zeros(len(digests), np.int64)
    begins_group[begins[1:]] = 1
    numbers = np.empty(len(digests), np.int64)
    numbers[order] = _by_occurrence(order[begins])[np.cumsum(begins_group)]
    return numbers


def _by_occurrence(first_rows: Rows) -> Rows:
    """The rank of each group, from 0, by the row in which it first occurs."""
    ranks = np.empty(len(first_rows), np.int64)
    ranks[np.argsort(first_rows)] = np.arange(len(first_rows))
    return ranks


@frozen
class ComparedEvaluation:
    """An evaluation as comparisons need it.

    - spoken: the files in vocabulary that count. ambient: the files in which false accepts are counted, with -u also
      those in vocabulary. Either both have clusters or neither has. Without a journal, ambient is None: a log alone
      does not name files without a false accept.
    - hours: hours of sound in which false accepts were counted.
    - settings: values by name, of settings that make a comparison unfair if they differ.
    - has_words: whether there are word errors.
    - notes: lines for people.
    """

    name: str
    spoken: SpokenFiles
    ambient: AmbientFiles | None
    false_accepts: int
    hours: float
    settings: Mapping[str, str]
    has_words: bool = False
    notes: tuple[str, ...] = ()


@frozen
class SharedFilesResult:
    """Results on the files that both evaluations have."""

    discordance: Discordance
    """Number of files that both, only one or neither got right."""
    only_first: Sequence[str]
    """Names of files that only the first evaluation has. They are read from disk on access."""
    only_second: Sequence[str]
    """The same for the second."""
    differing: Sequence[tuple[str, SpokenFile, SpokenFile]]
    """Files that only one got right: the name, and the outcome in each. They are read from disk on access."""
    first_interval: Interval | None
    """Interval of the share of wrong files in the first; exact, or over clusters with `--cluster-by`."""
    second_interval: Interval | None
    """The same for the second."""
    difference: Difference | None
    """The share of wrong files in the first minus that in the second."""
    words: Difference | None
    """The difference of the word error rates, on files with the same number of reference words; None without words."""
    word_errors: tuple[int, int, int] = (0, 0, 0)
    """On those files, the word errors of the first, those of the second, and the words of the references."""
    differing_references: int = 0
    """Number of files whose references have different numbers of words."""
    clusters: int = 0

    @property
    def first_errors(self) -> int:
        """Number of files that the first got wrong."""
        return self.discordance.only_second + self.discordance.neither

    @property
    def second_errors(self) -> int:
        """Number of files that the second got wrong."""
        return self.discordance.only_first + self.discordance.neither


@frozen
class FalseAccepts:
    """False accepts per hour of two evaluations.

    - first, second: number of false accepts, and hours.
    - poisson_difference: the first rate minus the second, taking events as independent.
    - difference: the same over files that both have. None unless both have the same files, and some of their counts
      differ.
    - same_audio: whether both have the same files.
    """

    first: tuple[int, float]
    second: tuple[int, float]
    poisson_difference: Difference | None
    difference: Difference | None = None
    same_audio: bool = False

    @property
    def first_interval(self) -> Interval | None:
        """95 % interval of the rate of the first (Garwood)."""
        count, hours = self.first
        return garwood(count, hours)

    @property
    def second_interval(self) -> Interval | None:
        count, hours = self.second
        return garwood(count, hours)


@frozen
class EvaluationComparison:
    """All results of a comparison.

    repeated_names: for each evaluation, the number of rows whose name an earlier row has.
    """

    first: ComparedEvaluation
    second: ComparedEvaluation
    same_files: SharedFilesResult | None
    false_accepts: FalseAccepts | None
    repeated_names: tuple[int, int] = (0, 0)


def compare(first: ComparedEvaluation, second: ComparedEvaluation) -> EvaluationComparison:
    """Compares two evaluations. Raises InputError if they have nothing in common."""
    spoken = file_keys_of(first.spoken), file_keys_of(second.spoken)
    repeated_names = spoken[0].repeated, spoken[1].repeated
    ambient = None
    if first.ambient is not None and second.ambient is not None:
        ambient = file_keys_of(first.ambient), file_keys_of(second.ambient)
        repeated_names = repeated_names[0] + ambient[0].repeated, repeated_names[1] + ambient[1].repeated
    shared = rates = None
    if len(first.spoken) and len(second.spoken):
        shared = _compare_shared_files(first, second, *spoken)
    if first.hours and second.hours:
        rates = _compare_false_accepts(first, second, ambient)
    if shared is None and rates is None:
        raise InputError(
            f"{first.name} and {second.name} have no kind of file in common",
            remedy="Compare two evaluations with in-vocabulary files, or two with out-of-vocabulary files",
        )
    return EvaluationComparison(first, second, shared, rates, repeated_names)


def _compare_shared_files(
    first: ComparedEvaluation, second: ComparedEvaluation, first_keys: FileKeys, second_keys: FileKeys
) -> SharedFilesResult:
    """Compares the outcomes of the in-vocabulary files that both evaluations have."""
    first_rows, second_rows = shared_rows(first_keys, second_keys)
    first_right = np.frombuffer(first.spoken.right, np.bool_)[first_rows]
    second_right = np.frombuffer(second.spoken.right, np.bool_)[second_rows]
    differs = first_right != second_right
    groups = first.spoken.clusters(first_rows)
    first_wrong = ComparedColumns((~first_right).astype(np.int64), clusters=groups)
    second_wrong = ComparedColumns((~second_right).astype(np.int64), clusters=groups)
    first_words = np.asarray(first.spoken.words, np.uint32)[first_rows]
    second_words = np.asarray(second.spoken.words, np.uint32)[second_rows]
    same_references = first_words == second_words
    words, word_errors = None, (0, 0, 0)
    if first.has_words and second.has_words:
        first_errors = np.asarray(first.spoken.errors, np.uint32)[first_rows][same_references]
        second_errors = np.asarray(second.spoken.errors, np.uint32)[second_rows][same_references]
        reference_words = first_words[same_references]
        clusters = None if groups is None else renumber_groups(groups[same_references])
        words = difference_of(
            MeasureKind.WORDS,
            ComparedColumns(first_errors, reference_words, clusters),
            ComparedColumns(second_errors, reference_words, clusters),
            paired=True,
        )
        word_errors = int(first_errors.sum()), int(second_errors.sum()), int(reference_words.sum())
    return SharedFilesResult(
        discordance=Discordance.of(first_right, second_right),
        only_first=_names_of_rows(first, remaining_rows(first_keys, first_rows)),
        only_second=_names_of_rows(second, remaining_rows(second_keys, second_rows)),
        differing=_differing_files(first, second, first_rows[differs], second_rows[differs]),
        first_interval=first_wrong.share_interval,
        second_interval=second_wrong.share_interval,
        difference=difference_of(MeasureKind.SHARE, first_wrong, second_wrong, paired=True),
        words=words,
        word_errors=word_errors,
        differing_references=len(same_references) - int(same_references.sum()),
        clusters=0 if groups is None else int(groups.max(initial=-1)) + 1,
    )


def _names_of_rows(side: ComparedEvaluation, rows: Rows) -> Sequence[str]:
    """The names of in-vocabulary files, each read from disk on access."""
    return LazySequence(len(rows), lambda index: side.spoken.outcome_of(int(rows[index]))[0])


def _differing_files(
    first: ComparedEvaluation, second: ComparedEvaluation, first_rows: Rows, second_rows: Rows
) -> Sequence[tuple[str, SpokenFile, SpokenFile]]:
    def differing_file(index: int) -> tuple[str, SpokenFile, SpokenFile]:
        name, first_file = first.spoken.outcome_of(int(first_rows[index]))
        _, second_file = second.spoken.outcome_of(int(second_rows[index]))
        return name, first_file, second_file

    return LazySequence(len(first_rows), differing_file)


def _compare_false_accepts(
    first: ComparedEvaluation, second: ComparedEvaluation, ambient: tuple[FileKeys, FileKeys] | None
) -> FalseAccepts:
    """The rates of both, and if both have the same files, the difference over these. ambient: the keys of both, if both
    have a journal."""
    rates = FalseAccepts(
        first=(first.false_accepts, first.hours),
        second=(second.false_accepts, second.hours),
        poisson_difference=difference_of(
            MeasureKind.RATE,
            ComparedColumns([first.false_accepts], [first.hours]),
            ComparedColumns([second.false_accepts], [second.hours]),
            paired=False,
        ),
    )
    if ambient is None or first.ambient is None or second.ambient is None:
        return rates
    first_rows, second_rows = shared_rows(*ambient)
    if not len(first_rows) == len(first.ambient) == len(second.ambient):
        return rates
    first_accepts = np.asarray(first.ambient.false_accepts, np.uint32)[first_rows]
    second_accepts = np.asarray(second.ambient.false_accepts, np.uint32)[second_rows]
    difference = None
    if np.any(first_accepts != second_accepts):  # without a difference its variance is unknown
        # With -u, a true accept shortens the exposure, so that the hours of the two differ a little.
        hours = (np.asarray(first.ambient.hours)[first_rows] + np.asarray(second.ambient.hours)[second_rows]) / 2
        clusters = first.ambient.clusters(first_rows)
        difference = difference_of(
            MeasureKind.RATE,
            ComparedColumns(first_accepts, hours, clusters),
            ComparedColumns(second_accepts, hours, clusters),
            paired=True,
        )
    return replace(rates, difference=difference, same_audio=True)
