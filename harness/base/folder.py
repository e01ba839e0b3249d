"""A session's folder: what lies where, and how a file gets there whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.base.whole_file import unfinished
from harness.model.errors import LogError, LogFull

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
MORE_ROOM = "Make room on that disk"
MAKE_ROOM = f"{MORE_ROOM}; what was acknowledged is safe"


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """Names of the files in one session's folder; creates nothing."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "log.sqlite"

    @property
    def lock(self) -> Path:
        return self.path / "writer.lock"

    @property
    def clips(self) -> Path:
        return self.path / "clips"

    @property
    def judgments(self) -> Path:
        """What raters said of its responses; not there before one has."""
        return self.path / "judgments.sqlite"

    @property
    def inputs(self) -> Path:
        """Copies of the scenario, the bench and the device profiles, for people."""
        return self.path / "inputs"

    @property
    def resolved(self) -> Path:
        """Scenario and bench as they were read, for the engine."""
        return self.path / "resolved.json"

    @property
    def summary(self) -> Path:
        """Versions, hashes and seeds."""
        return self.path / "session.json"

    @property
    def engine(self) -> Path:
        """Which process runs the session, and its socket; gone when none does."""
        return self.path / "engine.json"

    @property
    def engine_output(self) -> Path:
        return self.path / "engine.log"

    def demand(self) -> SessionFolder:
        """Itself; LogError when there is no session log here."""
        if not self.database.is_file():
            raise LogError(
                f"{self.path} is no session folder: it holds no {self.database.name}",
                remedy="Name the folder that `harness run` printed, e.g. sessions/2026-01-31-kitchen",
            )
        return self


def sync_folder(folder: Path) -> None:
    """Puts names of a folder on the disk; OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(target: Path, content: bytes) -> None:
    """Writes a file so that after a power cut it is there whole, or not at all; LogFull, LogError.

    What is no ordinary file, such as /dev/stdout or a named pipe, is written as it is. A link stays, and what it means
    is written.
    """
    with disk_errors(f"{target} cannot be written", MORE_ROOM):
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        target = Path(os.path.realpath(target))
        with unfinished(target) as part:
            with part.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            part.rename(target)
        sync_folder(target.parent)


@contextmanager
def disk_errors(what: str, remedy: str = MAKE_ROOM) -> Iterator[None]:
    """Turns OSError into LogFull or LogError. remedy: of a disk that is full."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise LogFull(f"{what}: {error.strerror}", remedy=remedy) from error
        raise LogError(f"{what}: {error.strerror or error}", remedy="Check the folder and its permissions") from error
