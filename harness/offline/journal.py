"""The journal of an evaluation: `<log>.jsonl` beside the log, append-only. --resume, merge and reports read it.

It has a header, one line per outcome in order of arrival, and marks. An acknowledged outcome is in the file, and at
most a second later on disk. A torn last line, left by a killed run, is skipped.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from harness.base.whole_file import sync_to_disk
from harness.model.errors import HarnessError, InputError, LogError, LogFull, Place
from harness.model.offline import FileOutcome
from harness.offline.journal_lines import (
    JournalHeader,
    JournalledOutcome,
    JournalMark,
    MarkLine,
    WorkerUse,
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
"""The low bits of a key hold the number of the file. The bits above them hold the index of its kind in KINDS."""
_MAX_LINE_BYTES, _MAX_HEADER_BYTES = 1 << 24, 1 << 28
"""In bytes. The header may be longer than other lines, since it has the talker of each file."""
_PIECE = 1 << 20


class JournalFile:
    """A journal on disk: its header, its marks, and where its outcomes are (20 bytes of memory each). InputError if
    there is none, or if a line other than the last is damaged.

    keys: the key of each outcome, ascending. offsets, lengths: where the line of each begins, and its length, in bytes.
    If a file has several outcomes, the first counts. torn: whether the last line is incomplete.
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
                first = lines.readline(_MAX_HEADER_BYTES)
                if not first.endswith(b"\n"):
                    raise ValueError("its first line is not a header")
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
            raise InputError(f"{path} is not an evaluation journal: {error}") from error
        self._untimed += unmarked
        unique, firsts = np.unique(np.asarray(keys, np.int64), return_index=True)
        self.keys = unique
        self.offsets, self.lengths = np.asarray(offsets, np.int64)[firsts], np.asarray(lengths, np.int32)[firsts]

    def _looked(self, line: bytes, number: int, checked: bool) -> tuple[int, int] | None:
        """Kind and number of the outcome in a line. None for a mark, which is added to `marks`. number: number of the
        line. checked: whether every line must have a CRC."""
        try:
            if not has_check(line) and checked:
                raise ValueError("its CRC is missing")
            place = place_of(line)
            if place is None:
                self.marks.append(mark_of(line))
        except ValueError as error:
            raise _damaged(self.path, number, error) from error
        return place

    @property
    def ending(self) -> JournalMark | None:
        """COMPLETE or PARTIAL; None if the run was killed."""
        last = self.marks[-1].mark if self.marks and not self.torn else None
        return last if last in (JournalMark.COMPLETE, JournalMark.PARTIAL) else None

    @property
    def complete(self) -> bool:
        return self.ending is JournalMark.COMPLETE and len(self) == self.header.planned

    @property
    def ended_s(self) -> float:
        return self.marks[-1].at_s if self.marks else self.header.started_s

    @property
    def duration_s(self) -> float:
        """The duration of all sittings together, in seconds. A sitting is one run of the program; a killed one counts
        until its last mark."""
        return sum(mark.duration_s for mark in self._lasts())

    @property
    def used(self) -> WorkerUse:
        """Resources that the workers of all sittings have used. A killed sitting does not report them."""
        return WorkerUse.of_all(mark.used for mark in self._lasts())

    def _lasts(self) -> Iterator[MarkLine]:
        """The last mark of each sitting."""
        for mark, after in zip(self.marks, [*self.marks[1:], None], strict=True):
            if after is None or after.mark is JournalMark.BEGUN:
                yield mark

    @property
    def untimed_s(self) -> float:
        """Seconds of audio that killed sittings played after their last marks. duration_s does not include the time
        for it."""
        with self.path.open("rb") as file:
            outcomes = [outcome_of(os.pread(file.fileno(), length, offset)).outcome for offset, length in self._untimed]
        return sum(outcome.seconds for outcome in outcomes if outcome.rejected is None)

    @property
    def lost_workers(self) -> tuple[str, ...]:
        return tuple(mark.why for mark in self.marks if mark.mark is JournalMark.LOST)

    def __len__(self) -> int:
        return len(self.keys)

    def outcomes(self) -> Iterator[JournalledOutcome]:
        """The outcomes in list order: -i or -c first, then --oov."""
        return ordered([self])


def _damaged(path: Path, line_number: int, error: ValueError) -> InputError:
    return InputError(
        f"a damaged line: {error}",
        place=Place(str(path), line_number),
        remedy="Delete the line, then continue with --resume: its file is played again",
    )


def key_of(kind_place: int, number: int) -> int:
    """A number that identifies a file among all lists. kind_place: index of the file's kind in KINDS."""
    return kind_place << _NUMBER_BITS | number


def ordered(journals: Sequence[JournalFile]) -> Iterator[JournalledOutcome]:
    """Outcomes of journals in list order, each file once (from the first journal that has it)."""
    keys = np.concatenate([journal.keys for journal in journals])
    place = np.concatenate([np.full(len(journal), index, np.int32) for index, journal in enumerate(journals)])
    offsets = np.concatenate([journal.offsets for journal in journals])
    lengths = np.concatenate([journal.lengths for journal in journals])
    order = np.argsort(keys, kind="stable") if len(journals) > 1 else None
    descriptors: list[int] = []
    try:
        descriptors = [os.open(journal.path, os.O_RDONLY | os.O_CLOEXEC) for journal in journals]
        before = -1
        for step in range(len(keys)):
            row = step if order is None else int(order[step])
            key = int(keys[row])
            if key == before:
                continue
            before = key
            line = os.pread(descriptors[place[row]], int(lengths[row]), int(offsets[row]))
            try:
                outcome = outcome_of(line)
            except ValueError as error:
                begins = int(offsets[row])
                with journals[place[row]].path.open("rb") as file:
                    number = 1 + sum(
                        file.read(min(_PIECE, begins - past)).count(b"\n") for past in range(0, begins, _PIECE)
                    )
                raise _damaged(journals[place[row]].path, number, error) from error
            yield outcome
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


SYNC_S = 1.0
"""Longest time between a line and the sync that makes it safe from a power cut."""
SO_FAR_S = 10.0
"""Interval of the marks in a sitting. The duration of a killed sitting is known up to its last mark."""


class Journal:
    """A journal that is being written. LogFull or LogError if a line cannot be written; existing lines stay whole.
    before: the content that it had when it was reopened; None for a new journal."""

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
        """A new journal. It replaces a file of that name. InputError if another run is writing it."""
        descriptor = _locked(path, os.O_CREAT)
        journal = cls._begun(path, descriptor, header_line(header), now_s)
        sync_to_disk(path.parent)
        return journal

    @classmethod
    def _begun(cls, path: Path, descriptor: int, header: bytes, now_s: Callable[[], float]) -> Self:
        try:
            if os.fstat(descriptor).st_size:  # a device has no size and cannot be truncated
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
        """Continues a journal of the same evaluation, without a torn last line. InputError, with the differences, if
        it belongs to another evaluation or another run is writing it."""
        descriptor = _locked(path)  # before reading, since another run could still add lines
        try:
            journal = JournalFile(path)
            differs = differences(journal.header, header)
            if differs:
                raise InputError(
                    f"{path} belongs to a different evaluation: {'; '.join(differs)}",
                    remedy="Give the same lists and options, or start again with --force instead of --resume",
                )
            os.ftruncate(descriptor, journal.whole_bytes)
            os.lseek(descriptor, 0, os.SEEK_END)
            return cls(path, descriptor, journal.whole_bytes, now_s, journal)
        except OSError as error:
            os.close(descriptor)
            raise InputError(f"the journal {path} cannot be written: {error.strerror}") from error
        except HarnessError:
            os.close(descriptor)
            raise

    def append(self, outcome: FileOutcome, name: str) -> None:
        """Appends an outcome. Once this returns, the outcome survives the end of the process. name: the name of the
        file in the list."""
        self.append_lines(outcome_line(outcome, name))

    def append_lines(self, lines: bytes) -> None:
        """Appends lines made by `outcome_line`, all or none."""
        self._write(lines)
        now_s = self._now_s()
        if now_s - self._told_s >= SO_FAR_S:
            self._mark(JournalMark.SO_FAR)
        elif now_s - self._synced_s >= SYNC_S:
            self.sync()

    def lost(self, why: str) -> None:
        self._mark(JournalMark.LOST, why)

    def sync(self) -> None:
        """Syncs all lines to disk."""
        if self._unsynced:
            try:
                os.fdatasync(self._descriptor)
            except OSError as error:
                raise _refused(self.path, error) from error
        self._synced_s = self._now_s()
        self._unsynced = False

    def tick(self) -> None:
        """To be called regularly, so that no line waits longer than SYNC_S for the disk."""
        if self._unsynced and self._now_s() - self._synced_s >= SYNC_S:
            self.sync()

    def end(self, *, partial: bool, used: WorkerUse = WorkerUse()) -> None:  # noqa: B008 – frozen
        """Ends a sitting normally: all files were played, or (partial) it was stopped. used: what its workers used."""
        self.close(JournalMark.PARTIAL if partial else JournalMark.COMPLETE, "stopped" if partial else "", used)

    def close(self, mark: JournalMark, why: str = "", used: WorkerUse = WorkerUse()) -> None:  # noqa: B008 – frozen
        """Ends this sitting with COMPLETE or PARTIAL."""
        if self._descriptor < 0:
            return
        try:
            self._mark(mark, why, used)
        finally:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def earlier_cache(self) -> str:
        """Folder with the stored scores of the run that is resumed; "" if it stored none, and for a new journal."""
        return "" if self.before is None else self.before.header.evaluation.cache

    def abandon(self) -> None:
        """Closes the file without a mark, as a killed run leaves it. May be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Marks the journal PARTIAL if the run ended early."""
        if self._descriptor < 0:
            return
        try:
            self.close(JournalMark.PARTIAL, str(error or ""))
        except LogError:
            if error is None:
                raise

    def _mark(self, mark: JournalMark, why: str = "", used: WorkerUse = WorkerUse()) -> None:  # noqa: B008 – frozen
        now_s = self._now_s()
        self._write(mark_line(MarkLine(mark, time.time(), round(now_s - self._began_s, 6), why, used)))
        self._told_s = now_s
        self.sync()

    def _write(self, lines: bytes) -> None:
        try:
            offset = 0
            while offset < len(lines):
                offset += os.write(self._descriptor, lines[offset:])
        except OSError as error:
            # Half a line would look like a torn one, and the next line would begin in its middle.
            try:
                os.ftruncate(self._descriptor, self._end)
                os.lseek(self._descriptor, self._end, os.SEEK_SET)
            except OSError as worse:
                raise _refused(self.path, worse) from error
            raise _refused(self.path, error) from error
        self._end += len(lines)
        self._unsynced = True


def _locked(path: Path, flags: int = 0) -> int:
    """Opens a journal for writing, and locks it. The kernel releases the lock when this process ends. InputError if
    another run has the lock. Returns the file descriptor."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o666)
    except OSError as error:
        raise InputError(
            f"the journal {path} cannot be written: {error.strerror}", remedy="Choose another log with -l"
        ) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise InputError(
            f"the journal {path} is being written by another run",
            remedy="Wait until it ends, or choose another log with -l",
        ) from error
    except OSError:
        pass  # some file servers have no locks; users must then not start two runs at once
    return descriptor


def _refused(path: Path, error: OSError) -> LogError:
    kind = LogFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else LogError
    return kind(
        f"the journal {path} cannot be written: {error.strerror}",
        remedy="Free some space, then continue with --resume; acknowledged results are safe",
    )
