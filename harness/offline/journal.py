"""The journal of an evaluation: `<log>.jsonl` beside the log, append-only, which --resume, merge and reports read.

A header, a line an outcome in the order in which they came, marks. What was acknowledged is in the file; it is
brought to the disk at least every second and at the end. A torn last line, of a run that was killed, is passed over.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.model.errors import HarnessError, InputError, LogError, LogFull
from harness.model.offline import FileOutcome
from harness.offline.journal_file import JournalFile, read_journal
from harness.offline.journal_header import JournalHeader, differences
from harness.offline.journal_lines import Mark, MarkLine, header_line, mark_line, outcome_line

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
        self._mark(Mark.BEGUN)

    @classmethod
    def create(cls, path: Path, header: JournalHeader, now_s: Callable[[], float] = time.monotonic) -> Self:
        """A new journal; one of that name is replaced, unless another run writes it: InputError."""
        descriptor = _locked(path, os.O_CREAT)
        journal = cls._begun(path, descriptor, header_line(header), now_s)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
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
            found = read_journal(path)
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
            self._mark(Mark.SO_FAR)
        elif now_s - self._synced_s >= SYNC_S:
            self.sync()

    def lost(self, why: str) -> None:
        """Notes that a worker was lost."""
        self._mark(Mark.LOST, why)

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

    def close(self, mark: Mark, why: str = "") -> None:
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
            self.close(Mark.PARTIAL, str(error or ""))
        except LogError:
            if error is None:
                raise

    def _mark(self, mark: Mark, why: str = "") -> None:
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
