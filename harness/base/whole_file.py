"""Atomic files and folders: complete or absent, even if the program is killed while it writes.

They are written under a temporary name in the same folder, synced to disk and renamed, which also survives a power cut.
Special files such as /dev/stdout or a named pipe are written directly. A symbolic link is kept, and its target written.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from harness.model.errors import InputError, LogError, LogFull, Place

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
FREE_SPACE = "Free space on that disk"
FREE_SPACE_LOG_IS_SAFE = f"{FREE_SPACE}; acknowledged data is safe"


@contextmanager
def disk_errors(problem: str, remedy: str = FREE_SPACE_LOG_IS_SAFE) -> Iterator[None]:
    """Turns OSError into LogFull or LogError.

    - problem: text of the error.
    - remedy: what to do about a full disk.
    """
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise LogFull(f"{problem}: {error.strerror}", remedy=remedy) from error
        raise LogError(
            f"{problem}: {error.strerror or error}", remedy="Check the folder and its permissions"
        ) from error


def demand_folder(target: Path) -> None:
    """Raises InputError if the folder in which to write a file or folder does not exist."""
    if not os.path.isdir(target.parent):
        problem = f"the folder {target.parent} does not exist"
        remedy = f"Create it: mkdir -p {shlex.quote(str(target.parent))}"
        raise InputError(problem, place=Place(str(target)), remedy=remedy)


def temporary_path_for(target: Path) -> Path:
    """A unique temporary path in the folder of the target, even across machines."""
    return target.with_name(f"{_temporary_prefix(target)}{os.urandom(8).hex()}.part")


def _temporary_prefix(target: Path) -> str:
    """The beginning of the names of temporary files for a target."""
    # Most file systems limit a name to 255 bytes, and a character may take four.
    return f".{os.fsencode(target.name)[:60].decode(errors='ignore')}."


def temporary_paths_of(target: Path) -> list[Path]:
    """Existing temporary paths of the target: a process writes them, or was killed while it did. Raises OSError."""
    prefix = _temporary_prefix(target)
    return sorted(
        path
        for path in target.absolute().parent.iterdir()
        if path.name.startswith(prefix) and re.fullmatch(r"[0-9a-f]{16}\.part", path.name[len(prefix) :])
    )


@contextmanager
def temporary_path(target: Path) -> Iterator[Path]:
    """A temporary path at which to create a file or folder, to be renamed. Removes what is left of it at the end.

    Create it inside the `with`: a signal between creation and clean-up would otherwise leave it behind.
    """
    temporary = temporary_path_for(target)
    try:
        yield temporary
    finally:
        remove(temporary)


def remove(temporary: Path) -> None:
    """Removes a file or a folder if it exists."""
    if temporary.is_dir():
        shutil.rmtree(temporary, ignore_errors=True)
    else:
        temporary.unlink(missing_ok=True)


def sync_to_disk(path: Path) -> None:
    """Syncs the content of a file, or the names in a folder, to disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def atomic_folder(target: Path) -> Iterator[Path]:
    """A new folder to fill; it gets its name when the block ends without an error and all below is on disk.

    Raises OSError.
    """
    with temporary_path(target) as temporary:
        temporary.mkdir()
        yield temporary
        for path in (temporary, *temporary.rglob("*")):
            sync_to_disk(path)
        temporary.rename(target)
    sync_to_disk(target.absolute().parent)


@contextmanager
def atomic_stream(target: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A stream whose bytes become the file when the block ends without an error. Raises OSError.

    durable: syncs to disk, so that the file survives a power cut; otherwise a power cut may damage it.
    """
    with temporary_path(target) as temporary:
        with temporary.open("xb") as stream:
            yield stream
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        temporary.replace(target)
    if durable:
        sync_to_disk(target.parent)


def _resolve_link(target: Path) -> Path:
    """The target of a link. Raises OSError for links in a circle."""
    path = Path(os.path.realpath(target))
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return path


def write_atomically(target: Path, content: bytes) -> None:
    """Writes a file atomically. Raises LogFull, LogError. An existing file keeps its permissions."""
    with disk_errors(f"{target} cannot be written", FREE_SPACE):
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        path = _resolve_link(target)
        with atomic_stream(path) as stream:
            if path.exists():
                # Before the first byte is written: a private file must not be readable in the meantime.
                os.fchmod(stream.fileno(), stat.S_IMODE(path.stat().st_mode))
            stream.write(content)


class WholeFile(io.RawIOBase):
    """A file whose content replaces the file `name` when `keep` is called. Raises LogFull, LogError.

    Closed without `keep`, it is deleted and the old file stays. It takes the permissions of the old file. The first
    write creates it (see `temporary_path`).
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._path = Path(name)
        self._temporary: Path | None = None
        """None before the first write, and for special files, which are written directly."""
        self._file: BinaryIO | None = None

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        with disk_errors(f"{self._name} cannot be written", FREE_SPACE):
            return self._open().write(content)

    def keep(self) -> None:
        """Moves the file to its place."""
        with disk_errors(f"{self._name} cannot be written", FREE_SPACE):
            file = self._open()
            file.flush()
            if self._temporary is not None:
                os.fsync(file.fileno())
                if self._path.exists():
                    self._temporary.chmod(stat.S_IMODE(self._path.stat().st_mode))
                self._temporary.replace(self._path)
                self._temporary = None
                sync_to_disk(self._path.parent)

    def close(self) -> None:
        try:
            if self._file is not None:
                with disk_errors(f"{self._name} cannot be written", FREE_SPACE):
                    self._file.close()
        finally:
            if self._temporary is not None:
                self._temporary.unlink(missing_ok=True)
            super().close()

    def _open(self) -> BinaryIO:
        """The open file, which the first call creates."""
        if self._file is None:
            if self._path.exists() and not self._path.is_file():
                self._file = open(self._path, "wb")  # noqa: SIM115 (closed by close)
            else:
                self._path = _resolve_link(self._path)
                self._temporary = temporary_path_for(self._path)
                self._file = open(self._temporary, "xb")  # noqa: SIM115
        return self._file
