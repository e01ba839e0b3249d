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
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    identity_of,
    mark_line,
    mark_of,
    outcome_line,
    outcome_of,
)

_NUMBER_BITS = 40
"""The low bits of a key hold the number of the file. The bits above them hold the index of its kind in KINDS."""
_MAX_LINE_BYTES, _MAX_HEADER_BYTES = 1 << 24, 1 << 28
"""In bytes. The header may be longer than other lines, since it has the talker of each file."""
_PIECE = 1 << 20
"""Bytes that are read at once to count lines."""


class JournalFile:
    """A journal on disk: its header, its marks, and where its outcomes are (20 bytes of memory each).

    Raises InputError if there is none, or if a line other than the last is damaged.

    - keys: the key of each outcome, ascending; see `key_of`.
    - offsets, lengths: where the line of each begins, and its length, in bytes. If a file has several outcomes, the
      first counts.
    - whole_bytes: length of the file without a torn last line.
    - torn: whether the last line is incomplete.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.marks: list[MarkLine] = []
        self.whole_bytes = 0
        self.torn = False
        self._untimed: list[tuple[int, int]] = []  # (offset, length) of the outcomes for `untimed_s`
        try:
            with path.open("rb") as lines:
                first = lines.readline(_MAX_HEADER_BYTES)
                if not first.endswith(b"\n"):
                    raise ValueError("its first line is not a header")
                self.header: JournalHeader = header_of(first)
                self.whole_bytes = len(first)
                keys, offsets, lengths = self._read_lines(lines, has_checks=has_check(first))
        except OSError as error:
            raise InputError(f"the journal {path} cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is not an evaluation journal: {error}") from error
        self.keys, firsts = np.unique(np.asarray(keys, np.int64), return_index=True)
        self.offsets, self.lengths = np.asarray(offsets, np.int64)[firsts], np.asarray(lengths, np.int32)[firsts]

    def _read_lines(self, lines: Iterable[bytes], *, has_checks: bool) -> tuple[array[int], array[int], array[int]]:
        """Reads the lines after the header: sets `marks`, `torn`, `whole_bytes` and `_untimed`. Returns the keys,
        offsets and lengths of the outcomes, in order of arrival. has_checks: whether every line must have a CRC."""
        keys, offsets, lengths = array("q"), array("q"), array("i")
        since_mark: list[tuple[int, int]] = []
        for line_number, line in enumerate(lines, 2):
            if not line.endswith(b"\n"):
                self.torn = True
                break
            identity = self._identity_or_mark(line, line_number, has_checks)
            if identity is not None:
                kind_index, file_number = identity
                keys.append(kind_index << _NUMBER_BITS | file_number)  # inline, since this runs for a million lines
                offsets.append(self.whole_bytes)
                lengths.append(len(line))
                since_mark.append((self.whole_bytes, len(line)))
            else:
                # A new sitting begins where the previous one was killed.
                if self.marks[-1].mark is JournalMark.BEGUN:
                    self._untimed += since_mark
                since_mark.clear()
            self.whole_bytes += len(line)
        self._untimed += since_mark
        return keys, offsets, lengths

    def _identity_or_mark(self, line: bytes, line_number: int, has_checks: bool) -> tuple[int, int] | None:
        """Kind and number of the file of the outcome in a line. None for a mark, which is added to `marks`."""
        try:
            if not has_check(line) and has_checks:
                raise ValueError("its CRC is missing")
            identity = identity_of(line)
            if identity is None:
                self.marks.append(mark_of(line))
        except ValueError as error:
            raise _damaged(self.path, line_number, error) from error
        return identity

    @property
    def ending(self) -> JournalMark | None:
        """COMPLETE or PARTIAL; None if the run was killed."""
        last = self.marks[-1].mark if self.marks and not self.torn else None
        return last if last in (JournalMark.COMPLETE, JournalMark.PARTIAL) else None

    @property
    def complete(self) -> bool:
        """Whether the last sitting ended normally, and every file has an outcome."""
        return self.ending is JournalMark.COMPLETE and len(self) == self.header.planned

    @property
    def ended_s(self) -> float:
        """Unix time of the last mark, in seconds."""
        return self.marks[-1].at_s if self.marks else self.header.started_s

    @property
    def duration_s(self) -> float:
        """The duration of all sittings together, in seconds. A sitting is one run of the program; a killed one counts
        until its last mark."""
        return sum(mark.duration_s for mark in self._last_marks())

    @property
    def used(self) -> WorkerUse:
        """Resources that the workers of all sittings have used. A killed sitting does not report them."""
        return WorkerUse.of_all(mark.used for mark in self._last_marks())

    def _last_marks(self) -> Iterator[MarkLine]:
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
        """For each worker that was lost, how it ended."""
        return tuple(mark.why for mark in self.marks if mark.mark is JournalMark.LOST)

    def __len__(self) -> int:
        return len(self.keys)

    def outcomes(self) -> Iterator[JournalledOutcome]:
        """The outcomes in list order: -i or -c first, then --oov."""
        return outcomes_in_order([self])


def _damaged(path: Path, line_number: int, error: ValueError) -> InputError:
    return InputError(
        f"a damaged line: {error}",
        place=Place(str(path), line_number),
        remedy="Delete the line, then continue with --resume: its file is played again",
    )


def key_of(kind_index: int, number: int) -> int:
    """A number that identifies a file among all lists. kind_index: index of the file's kind in KINDS."""
    return kind_index << _NUMBER_BITS | number


def outcomes_in_order(journals: Sequence[JournalFile]) -> Iterator[JournalledOutcome]:
    """Outcomes of journals in list order, each file once (from the first journal that has it)."""
    keys = np.concatenate([journal.keys for journal in journals])
    sources = np.concatenate([np.full(len(journal), index, np.int32) for index, journal in enumerate(journals)])
    offsets = np.concatenate([journal.offsets for journal in journals])
    lengths = np.concatenate([journal.lengths for journal in journals])
    order = np.argsort(keys, kind="stable") if len(journals) > 1 else None
    descriptors: list[int] = []
    try:
        descriptors = [os.open(journal.path, os.O_RDONLY | os.O_CLOEXEC) for journal in journals]
        previous_key = -1
        for rank in range(len(keys)):
            index = rank if order is None else int(order[rank])
            key = int(keys[index])
            if key == previous_key:
                continue
            previous_key = key
            offset = int(offsets[index])
            line = os.pread(descriptors[sources[index]], int(lengths[index]), offset)
            try:
                outcome = outcome_of(line)
            except ValueError as error:
                path = journals[sources[index]].path
                raise _damaged(path, _line_number(path, offset), error) from error
            yield outcome
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _line_number(path: Path, offset: int) -> int:
    """Number of the line that begins at a byte of a file."""
    with path.open("rb") as file:
        lines_before = sum(file.read(min(_PIECE, offset - past)).count(b"\n") for past in range(0, offset, _PIECE))
    return lines_before + 1


SYNC_S = 1.0
"""Longest time between a line and the sync that makes it safe from a power cut."""
MARK_INTERVAL_S = 10.0
"""Interval of the marks in a sitting. The duration of a killed sitting is known up to its last mark."""


class Journal:
    """A journal that is being written.

    Raises LogFull or LogError if a line cannot be written; existing lines stay whole.

    - earlier: the content that it had when it was reopened; None for a new journal.
    - descriptor: the locked file.
    - end: its length.
    """

    def __init__(
        self, path: Path, descriptor: int, end: int, now_s: Callable[[], float], earlier: JournalFile | None = None
    ) -> None:
        self.path = path
        self.earlier = earlier
        self._descriptor = descriptor
        self._end = end
        self._now_s = now_s
        self._began_s = self._synced_s = self._marked_s = now_s()
        self._unsynced = False
        self._mark(JournalMark.BEGUN)

    @classmethod
    def create(cls, path: Path, header: JournalHeader, now_s: Callable[[], float] = time.monotonic) -> Self:
        """A new journal. It replaces a file of that name. Raises InputError if another run is writing it."""
        descriptor = _open_locked(path, os.O_CREAT)
        journal = cls._begin(path, descriptor, header_line(header), now_s)
        sync_to_disk(path.parent)
        return journal

    @classmethod
    def _begin(cls, path: Path, descriptor: int, header: bytes, now_s: Callable[[], float]) -> Self:
        """Empties the file and writes the header. Closes the descriptor if that fails."""
        try:
            if os.fstat(descriptor).st_size:  # a device has no size and cannot be truncated
                os.ftruncate(descriptor, 0)
            unwritten = memoryview(header)
            while unwritten:
                unwritten = unwritten[os.write(descriptor, unwritten) :]
            return cls(path, descriptor, len(header), now_s)
        except OSError as error:
            os.close(descriptor)
            raise _write_error(path, error) from error

    @classmethod
    def reopen(cls, path: Path, header: JournalHeader, now_s: Callable[[], float] = time.monotonic) -> Self:
        """Continues a journal of the same evaluation, without a torn last line.

        Raises InputError, with the differences, if it belongs to another evaluation or another run is writing it.
        """
        descriptor = _open_locked(path)  # before reading, since another run could still add lines
        try:
            journal = JournalFile(path)
            differs = differences(journal.header, header)
            if differs:
                raise InputError(
                    f"{path} belongs to a different evaluation: {'; '.join(differs)}",
                    remedy="Use the same lists and options, or start again with --force instead of --resume",
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
        if now_s - self._marked_s >= MARK_INTERVAL_S:
            self._mark(JournalMark.SO_FAR)
        elif now_s - self._synced_s >= SYNC_S:
            self.sync()

    def note_lost_worker(self, why: str) -> None:
        """Marks that a worker was lost. why: how it ended."""
        self._mark(JournalMark.LOST, why)

    def sync(self) -> None:
        """Syncs all lines to disk."""
        if self._unsynced:
            try:
                os.fdatasync(self._descriptor)
            except OSError as error:
                raise _write_error(self.path, error) from error
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
        """Ends this sitting with COMPLETE or PARTIAL. Does nothing if it has ended already."""
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
        return "" if self.earlier is None else self.earlier.header.evaluation.cache

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
        self._marked_s = now_s
        self.sync()

    def _write(self, lines: bytes) -> None:
        """Writes lines at the end of the file. If that fails, cuts off what was written of them, and raises LogFull or
        LogError."""
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
                raise _write_error(self.path, worse) from error
            raise _write_error(self.path, error) from error
        self._end += len(lines)
        self._unsynced = True


def _open_locked(path: Path, flags: int = 0) -> int:
    """Opens a journal for writing, and locks it. The kernel releases the lock when this process ends.

    Raises InputError if another run has the lock. Returns the file descriptor.
    """
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


def _write_error(path: Path, error: OSError) -> LogError:
    kind = LogFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else LogError
    return kind(
        f"the journal {path} cannot be written: {error.strerror}",
        remedy="Free some space, then continue with --resume; acknowledged results are safe",
    )
