"""The journal of an evaluation: `<log>.jsonl` beside the log, append-only, which --resume, merge and reports read.

A header, a line an outcome in the order in which they came, marks. What was acknowledged is in the file; it is
brought to the disk at least every second and at the end. A torn last line, of a run that was killed, is passed over.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from harness.base.whole_file import sync_folder
from harness.model.errors import HarnessError, InputError, LogError, LogFull, Place
from harness.model.offline import FileOutcome
from harness.offline.journal_lines import (
    JournalHeader,
    JournalledOutcome,
    JournalMark,
    MarkLine,
    differences,
    has_check,
    header_line,
    header_of,
    mark_line,
    mark_of,
    outcome_line,
    outcome_of,
    place_of,
)

_NUMBER_BITS = 40
_LONGEST_LINE = 1 << 24
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class JournalIndex:
    """Where each outcome is: sorted by list and number, each once."""

    keys: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]


class JournalFile:
    """A journal as it is on the disk: its header, whether it was ended, and where its outcomes are (20 bytes each).

    InputError when there is none, or it is damaged otherwise than by a torn last line.
    """

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
                        if self.marks[-1].mark is JournalMark.BEGUN:
                            self._untimed += unmarked
                        unmarked.clear()
                    self.whole_bytes += len(line)
        except OSError as error:
            raise InputError(f"the journal {path} cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is no journal of an evaluation: {error}") from error
        self._untimed += unmarked
        self.index = _sorted(keys, offsets, lengths)

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

    @property
    def ending(self) -> JournalMark | None:
        """COMPLETE or PARTIAL; None when the run was cut off."""
        last = self.marks[-1].mark if self.marks and not self.torn else None
        return last if last in (JournalMark.COMPLETE, JournalMark.PARTIAL) else None

    @property
    def complete(self) -> bool:
        return self.ending is JournalMark.COMPLETE and len(self) == self.header.planned

    @property
    def ended_s(self) -> float:
        """Wall clock of the last mark."""
        return self.marks[-1].at_s if self.marks else self.header.started_s

    @property
    def duration_s(self) -> float:
        """Of all sittings together; one that was killed counts until its last mark."""
        total = 0.0
        for mark, after in zip(self.marks, [*self.marks[1:], None], strict=True):
            if after is None or after.mark is JournalMark.BEGUN:
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
        return tuple(mark.why for mark in self.marks if mark.mark is JournalMark.LOST)

    def __len__(self) -> int:
        """How many files have an outcome."""
        return len(self.index.keys)

    def outcomes(self) -> Iterator[JournalledOutcome]:
        """In list order: -i or -c first, then -o."""
        return ordered([self])


def _damaged(path: Path, number: int, error: ValueError) -> InputError:
    return InputError(
        f"a damaged line: {error}",
        place=Place(str(path), number),
        remedy="Take it out, and go on with --resume: a file without its line is played again",
    )


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
                begins = int(offsets[at])
                with journals[place[at]].path.open("rb") as file:
                    number = 1 + sum(
                        file.read(min(_PIECE, begins - past)).count(b"\n") for past in range(0, begins, _PIECE)
                    )
                raise _damaged(journals[place[at]].path, number, error) from error
            yield found
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _sorted(keys: array[int], offsets: array[int], lengths: array[int]) -> JournalIndex:
    all_keys = np.frombuffer(keys, np.int64) if keys else np.zeros(0, np.int64)
    unique, first = np.unique(all_keys, return_index=True)
    all_offsets = np.frombuffer(offsets, np.int64) if keys else np.zeros(0, np.int64)
    all_lengths = np.frombuffer(lengths, np.int32) if keys else np.zeros(0, np.int32)
    return JournalIndex(unique, all_offsets[first], all_lengths[first])


SYNC_S = 1.0
SO_FAR_S = 10.0


class Journal:
    """A journal that is being written. LogFull, or LogError, when the disk refuses: what was there stays whole.

    before: what was in it already when it was reopened.
    """

    def __init__(
        self, path: Path, descriptor: int, end: int, now_s: Callable[[], float], before: JournalFile | None = None
    ) -> None:
        self.path = path
        self.before = before
        self._descriptor = descriptor
        self._end = end
        self._now_s = now_s
        self._began_s = self._synced_s = self._told_s = now_s()
        self._unsynced = False
        self._mark(JournalMark.BEGUN)

    @classmethod
    def create(cls, path: Path, header: JournalHeader, now_s: Callable[[], float] = time.monotonic) -> Self:
        """A new journal; one of that name is replaced, unless another run writes it: InputError."""
        descriptor = _locked(path, os.O_CREAT)
        journal = cls._begun(path, descriptor, header_line(header), now_s)
        sync_folder(path.parent)
        return journal

    @classmethod
    def _begun(cls, path: Path, descriptor: int, header: bytes, now_s: Callable[[], float]) -> Self:
        try:
            if os.fstat(descriptor).st_size:  # a device has none, and cannot be cut
                os.ftruncate(descriptor, 0)
            rest = memoryview(header)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            return cls(path, descriptor, len(header), now_s)
        except OSError as error:
            os.close(descriptor)
            raise _refused(path, error) from error

    @classmethod
    def reopen(cls, path: Path, header: JournalHeader, now_s: Callable[[], float] = time.monotonic) -> Self:
        """Goes on with a journal of the same evaluation; a torn last line is cut off.

        InputError that says what differs when it is of another one, or that another run writes it.
        """
        descriptor = _locked(path)  # before it is read: another run's lines could still come
        try:
            found = JournalFile(path)
            differs = differences(found.header, header)
            if differs:
                raise InputError(
                    f"{path} is the journal of another evaluation: {'; '.join(differs)}",
                    remedy="Give the same lists and options as then, or --force in place of --resume to begin anew",
                )
            os.ftruncate(descriptor, found.whole_bytes)
            os.lseek(descriptor, 0, os.SEEK_END)
            return cls(path, descriptor, found.whole_bytes, now_s, found)
        except OSError as error:
            os.close(descriptor)
            raise InputError(f"the journal {path} cannot be written: {error.strerror}") from error
        except HarnessError:
            os.close(descriptor)
            raise

    def append(self, outcome: FileOutcome, listed: str) -> None:
        """When it returns, the outcome outlives this process."""
        self.append_lines(outcome_line(outcome, listed))

    def append_lines(self, lines: bytes) -> None:
        """Lines of outcomes, as `outcome_line` makes them, all of them or none."""
        self._write(lines)
        now_s = self._now_s()
        if now_s - self._told_s >= SO_FAR_S:
            self._mark(JournalMark.SO_FAR)
        elif now_s - self._synced_s >= SYNC_S:
            self.sync()

    def lost(self, why: str) -> None:
        """Notes that a worker was lost."""
        self._mark(JournalMark.LOST, why)

    def sync(self) -> None:
        """Brings what was written to the disk, where anything was."""
        if self._unsynced:
            try:
                os.fdatasync(self._descriptor)
            except OSError as error:
                raise _refused(self.path, error) from error
        self._synced_s = self._now_s()
        self._unsynced = False

    def tick(self) -> None:
        """To be called now and then while nothing comes, so that nothing waits longer than a second for the disk."""
        if self._unsynced and self._now_s() - self._synced_s >= SYNC_S:
            self.sync()

    def close(self, mark: JournalMark, why: str = "") -> None:
        """Ends this sitting: COMPLETE, or PARTIAL."""
        if self._descriptor < 0:
            return
        try:
            self._mark(mark, why)
        finally:
            os.close(self._descriptor)
            self._descriptor = -1

    def abandon(self) -> None:
        """Closes it without a mark, as a killed run leaves it; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Not closed with a mark before: the run ended early."""
        if self._descriptor < 0:
            return
        try:
            self.close(JournalMark.PARTIAL, str(error or ""))
        except LogError:
            if error is None:
                raise

    def _mark(self, mark: JournalMark, why: str = "") -> None:
        now_s = self._now_s()
        self._write(mark_line(MarkLine(mark, time.time(), round(now_s - self._began_s, 6), why)))
        self._told_s = now_s
        self.sync()

    def _write(self, lines: bytes) -> None:
        try:
            written = 0
            while written < len(lines):
                written += os.write(self._descriptor, lines[written:])
        except OSError as error:
            # Half a line would be taken for a torn one, and the next would begin in its middle.
            try:
                os.ftruncate(self._descriptor, self._end)
                os.lseek(self._descriptor, self._end, os.SEEK_SET)
            except OSError as worse:
                raise _refused(self.path, worse) from error
            raise _refused(self.path, error) from error
        self._end += len(lines)
        self._unsynced = True


def _locked(path: Path, flags: int = 0) -> int:
    """A descriptor to write with, whose lock the kernel gives back when this process ends, however it ends."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o666)
    except OSError as error:
        raise InputError(
            f"the journal {path} cannot be written: {error.strerror}", remedy="Choose another -l"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise InputError(
            f"the journal {path} is being written by another run", remedy="Wait for its end, or choose another -l"
        ) from error
    except OSError:
        pass  # some file servers have no locks: then two runs at once are for people to avoid
    return descriptor


def _refused(path: Path, error: OSError) -> LogError:
    kind = LogFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else LogError
    return kind(
        f"the journal {path} cannot be written: {error.strerror}",
        remedy="What was acknowledged is in it; make room, and go on with --resume",
    )
