"""Journals as they are on the disk: what they are about, how they ended, and their outcomes in list order."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.model.errors import InputError, Place
from harness.model.offline import FileOutcome
from harness.offline.journal_header import JournalHeader
from harness.offline.journal_lines import (
    JournalledOutcome,
    Mark,
    MarkLine,
    has_check,
    header_of,
    mark_of,
    outcome_of,
    place_of,
)

_NUMBER_BITS = 40
_LONGEST_LINE = 1 << 24
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class _Index:
    """Where each outcome is: sorted by list and number, each once."""

    keys: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]


class JournalFile:
    """A journal as it is on the disk: its header, whether it was ended, and where its outcomes are (20 bytes each)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.marks: list[MarkLine] = []
        self.whole_bytes = 0
        self.torn = False
        self._untimed: list[tuple[int, int]] = []
        unmarked: list[tuple[int, int]] = []
        keys, offsets, lengths = array("q"), array("q"), array("i")
        try:
            with path.open("rb") as lines:
                first = lines.readline(_LONGEST_LINE)
                if not first.endswith(b"\n"):
                    raise ValueError("its first line is no header")
                checked = has_check(first)
                self.header: JournalHeader = header_of(first)
                self.whole_bytes = len(first)
                for number, line in enumerate(lines, 2):
                    if not line.endswith(b"\n"):
                        self.torn = True
                        break
                    place = self._looked(line, number, checked)
                    if place is not None:
                        keys.append(place[0] << _NUMBER_BITS | place[1])
                        offsets.append(self.whole_bytes)
                        lengths.append(len(line))
                        unmarked.append((self.whole_bytes, len(line)))
                    else:
                        if self.marks[-1].mark is Mark.BEGUN:
                            self._untimed += unmarked
                        unmarked.clear()
                    self.whole_bytes += len(line)
        except OSError as error:
            raise InputError(f"the journal {path} cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is no journal of an evaluation: {error}") from error
        self._untimed += unmarked
        self._index = _sorted(keys, offsets, lengths)

    def _looked(self, line: bytes, number: int, checked: bool) -> tuple[int, int] | None:
        """The place of an outcome, or None of a mark, which is kept. checked: every line has its CRC."""
        try:
            if not has_check(line) and checked:
                raise ValueError("it has lost its CRC")
            place = place_of(line)
            if place is None:
                self.marks.append(mark_of(line))
        except ValueError as error:
            raise _damaged(self.path, number, error) from error
        return place

    def number_of(self, offset: int) -> int:
        """Which line, counted from 1, begins so many bytes from the start."""
        with self.path.open("rb") as file:
            return 1 + sum(file.read(min(_PIECE, offset - at)).count(b"\n") for at in range(0, offset, _PIECE))

    @property
    def ending(self) -> Mark | None:
        """COMPLETE or PARTIAL; None when the run was cut off."""
        last = self.marks[-1].mark if self.marks and not self.torn else None
        return last if last in (Mark.COMPLETE, Mark.PARTIAL) else None

    @property
    def complete(self) -> bool:
        return self.ending is Mark.COMPLETE and len(self) == self.header.planned

    @property
    def ended_s(self) -> float:
        """Wall clock of the last mark."""
        return self.marks[-1].at_s if self.marks else self.header.started_s

    @property
    def duration_s(self) -> float:
        """Of all sittings together; one that was killed counts until its last mark."""
        total = 0.0
        for mark, after in zip(self.marks, [*self.marks[1:], None], strict=True):
            if after is None or after.mark is Mark.BEGUN:
                total += mark.duration_s
        return total

    @property
    def untimed_s(self) -> float:
        """Audio of outcomes after the last mark of a sitting that was killed, of which duration_s knows nothing."""
        with self.path.open("rb") as file:
            found = [outcome_of(os.pread(file.fileno(), length, offset)).outcome for offset, length in self._untimed]
        return sum(one.seconds for one in found if one.rejected is None)

    @property
    def lost_workers(self) -> tuple[str, ...]:
        """How workers were lost, in words."""
        return tuple(mark.why for mark in self.marks if mark.mark is Mark.LOST)

    def __len__(self) -> int:
        """How many files have an outcome."""
        return len(self._index.keys)

    def has(self, outcome_key: int) -> bool:
        """Whether the file of that key (`key_of`) has an outcome."""
        place = int(np.searchsorted(self._index.keys, outcome_key))
        return place < len(self._index.keys) and int(self._index.keys[place]) == outcome_key

    def outcomes(self) -> Iterator[JournalledOutcome]:
        """In list order: -i or -c first, then -o."""
        return ordered([self])

    @property
    def index(self) -> _Index:
        return self._index


def _damaged(path: Path, number: int, error: ValueError) -> InputError:
    return InputError(
        f"a damaged line: {error}",
        place=Place(str(path), number),
        remedy="Take it out, and go on with --resume: a file without its line is played again",
    )


def read_journal(path: Path) -> JournalFile:
    """InputError when there is none, or it is damaged otherwise than by a torn last line."""
    return JournalFile(path)


def key_of(kind_place: int, number: int) -> int:
    """A file's place among all lists, as one number; kind_place: its list's place in KINDS."""
    return kind_place << _NUMBER_BITS | number


def ordered(journals: Sequence[JournalFile]) -> Iterator[JournalledOutcome]:
    """Outcomes of journals in list order, each file once (the first journal's)."""
    indices = [journal.index for journal in journals]
    keys = np.concatenate([index.keys for index in indices])
    place = np.concatenate([np.full(len(index.keys), at, np.int32) for at, index in enumerate(indices)])
    offsets = np.concatenate([index.offsets for index in indices])
    lengths = np.concatenate([index.lengths for index in indices])
    order = np.argsort(keys, kind="stable") if len(journals) > 1 else None
    descriptors: list[int] = []
    try:
        descriptors = [os.open(journal.path, os.O_RDONLY | os.O_CLOEXEC) for journal in journals]
        before = -1
        for step in range(len(keys)):
            at = step if order is None else int(order[step])
            key = int(keys[at])
            if key == before:
                continue
            before = key
            line = os.pread(descriptors[place[at]], int(lengths[at]), int(offsets[at]))
            try:
                found = outcome_of(line)
            except ValueError as error:
                journal = journals[place[at]]
                raise _damaged(journal.path, journal.number_of(int(offsets[at])), error) from error
            yield found
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def ordered_outcomes(paths: Sequence[Path]) -> Iterator[FileOutcome]:
    """Outcomes of the journals in list order; memory: 24 bytes a file."""
    for one in ordered([read_journal(path) for path in paths]):
        yield one.outcome


def _sorted(keys: array[int], offsets: array[int], lengths: array[int]) -> _Index:
    all_keys = np.frombuffer(keys, np.int64) if keys else np.zeros(0, np.int64)
    unique, first = np.unique(all_keys, return_index=True)
    all_offsets = np.frombuffer(offsets, np.int64) if keys else np.zeros(0, np.int64)
    all_lengths = np.frombuffer(lengths, np.int32) if keys else np.zeros(0, np.int32)
    return _Index(unique, all_offsets[first], all_lengths[first])
