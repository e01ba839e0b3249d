"""The files of lists, a million and more of them, in columns: each is made when it is asked for.

A name is kept once, as the bytes that its list has; of the folder that it was found in, and of its rejection, a byte.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from harness.model.offline import ListedFile, ListKind, RejectReason

_REASONS = (None, RejectReason.TWICE, RejectReason.BOTH)
_TWICE, _BOTH = 1, 2
KEY_BYTES = 16


class FileColumns:
    """The files of one kind, as they are read. bases: folders that relative names were found in, shared by all kinds.

    A base of 0 is none: the name is absolute, or an address.
    """

    def __init__(self, kind: ListKind, bases: list[bytes]) -> None:
        self.kind, self.bases = kind, bases
        self.names, self.keys, self.rejected = bytearray(), bytearray(), bytearray()
        self._ends, self._lines = array("Q"), array("Q")
        self._in_base = array("H")
        self._with_reference = kind is ListKind.REFERENCED

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: int, name: bytes, base: int, key: bytes) -> None:
        """Takes a file in. key: KEY_BYTES that are the same for the same file."""
        self._lines.append(line)
        self.keys += key
        self._append(name, base)

    def add_reference(self, name: bytes, base: int) -> None:
        """Takes the reference in of the file that was added last."""
        self._append(name, base)

    def sealed(self, rejected: bytes) -> None:
        """Nothing more comes; one byte of rejection a file, and the keys are let go of."""
        self.rejected = bytearray(rejected)
        self.keys = bytearray()

    def file(self, number: int) -> ListedFile:
        at = 2 * number if self._with_reference else number
        listed, path = self._name(at)
        return ListedFile(
            kind=self.kind,
            number=number,
            listed=listed.decode("utf-8", "surrogateescape"),
            path=os.fsdecode(path),
            line=self._lines[number],
            reference=os.fsdecode(self._name(at + 1)[1]) if self._with_reference else "",
            rejected=_REASONS[self.rejected[number]],
        )

    def _append(self, name: bytes, base: int) -> None:
        self.names += name
        self._ends.append(len(self.names))
        self._in_base.append(base)

    def _name(self, at: int) -> tuple[bytes, bytes]:
        name = bytes(self.names[self._ends[at - 1] if at else 0 : self._ends[at]])
        base = self._in_base[at]
        return name, os.path.join(self.bases[base], name) if base else name


class ListedFiles(Sequence[ListedFile]):
    """All files of an evaluation, in-vocabulary or referenced ones first, each kind in the order of its lists."""

    def __init__(self, columns: Sequence[FileColumns]) -> None:
        self._columns = tuple(columns)

    def __len__(self) -> int:
        return sum(len(columns) for columns in self._columns)

    @overload
    def __getitem__(self, at: int) -> ListedFile: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[ListedFile, ...]: ...
    def __getitem__(self, at: int | slice) -> ListedFile | tuple[ListedFile, ...]:
        if isinstance(at, slice):
            return tuple(self[number] for number in range(*at.indices(len(self))))
        number = at + len(self) if at < 0 else at
        if number >= 0:
            for columns in self._columns:
                if number < len(columns):
                    return columns.file(number)
                number -= len(columns)
        raise IndexError(f"no file {at} among {len(self)}")

    def __iter__(self) -> Iterator[ListedFile]:
        for columns in self._columns:
            for number in range(len(columns)):
                yield columns.file(number)


def seal(vocabulary: Sequence[FileColumns], oov: FileColumns) -> None:
    """Rejects what is listed twice (from the second on), and what is in the vocabulary's lists and out of it (all)."""
    parts = [*vocabulary, oov]
    lengths = [len(part) for part in parts]
    keys = np.frombuffer(b"".join(part.keys for part in parts), dtype=np.uint64).reshape(-1, 2)
    marks = _marks(keys, sum(lengths[:-1]))
    at = 0
    for part, length in zip(parts, lengths, strict=True):
        part.sealed(marks[at : at + length].tobytes())
        at += length


def _marks(keys: npt.NDArray[np.uint64], vocabulary: int) -> npt.NDArray[np.uint8]:
    """What becomes of each file; the first `vocabulary` are those of the vocabulary's lists."""
    marks = np.zeros(len(keys), np.uint8)
    if not len(keys):
        return marks
    order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: equal keys stay in the order of the lists
    again = np.append(False, (keys[order[1:]] == keys[order[:-1]]).all(axis=1))
    marks[order[again]] = _TWICE
    firsts = np.flatnonzero(~again)
    lasts = np.append(firsts[1:], len(order)) - 1
    in_both = (order[firsts] < vocabulary) & (order[lasts] >= vocabulary)
    marks[order[np.repeat(in_both, lasts - firsts + 1)]] = _BOTH
    return marks
