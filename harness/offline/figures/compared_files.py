"""The files of an evaluation as columns, so that a million of them can be compared: names are kept as digests."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import PurePath
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

from harness.model.errors import InputError

FOLDER = "folder"
_DIGEST_BYTES = 16
"""Two of a million names have the same by chance once in 10^26 comparisons."""
Rows = npt.NDArray[np.int64]
Digests = npt.NDArray[np.uint64]
"""Shape (n, 2)."""
T = TypeVar("T")


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


class ToldLater(Sequence[T]):
    """What is read only when it is asked for, since there may be a million of it."""

    def __init__(self, length: int, at: Callable[[int], T]) -> None:
        self._length, self._at = length, at

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self._at(one) for one in range(self._length)[index]]
        return self._at(range(self._length)[index])

    def __iter__(self) -> Iterator[T]:
        return map(self._at, range(self._length))


@dataclass(frozen=True, slots=True)
class Keys:
    """What tells the rows of files apart: a name, and the how manieth of that name it is, from 0.

    repeated: rows that are not the first of their name.
    """

    names: Digests
    nth: Rows
    repeated: int


def keys(files: SpokenFiles | AmbientFiles) -> Keys:
    """Of each row. Files of one name in two lists cannot be told apart otherwise than by their order."""
    names = files.names
    order, begins = _groups(names)
    nth = np.zeros(len(names), np.int64)
    nth[order] = np.arange(len(names)) - np.repeat(begins, np.diff(begins, append=len(names)))
    return Keys(names, nth, len(names) - len(begins))


def in_both(first: Keys, second: Keys) -> tuple[Rows, Rows]:
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


def others(of: Keys, rows: Rows) -> Rows:
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
