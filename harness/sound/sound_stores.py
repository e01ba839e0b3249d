"""Sound in object stores and behind other addresses (`s3://…`, `memory://…`), by fsspec (extra `stores`)."""

from __future__ import annotations

import io
import os
import re
from types import ModuleType
from typing import Any, BinaryIO, cast

from harness.base.plugins import pip_install
from harness.model.errors import InputError
from harness.model.offline import RejectReason
from harness.sound.wave_file import UnusableSound

FLAC_LONGER = 1.8
"""The sound in a FLAC file is up to this many times as large as the file."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z][A-Za-z0-9+.-]+)*://")
"""Two letters at least, which excludes drive letters. Chains as in fsspec (`zip://a.wav::s3://…`)."""
_READ_AHEAD_BYTES = 1 << 20


def is_address(path: str) -> bool:
    """Whether a path is an address of a store instead of a file name."""
    return "://" in path and _ADDRESS.match(path) is not None


def local_path(path: str) -> str | None:
    """The path of a local file that an address names (`file:///a/b.wav`), or None."""
    scheme, _, path_in_scheme = path.partition("://")
    return path_in_scheme if scheme in ("file", "local") and "::" not in path_in_scheme else None


def kind_of_store(address: str) -> str:
    """The part of an address before `://`, for each address in a chain. It decides which packages are needed."""
    return "::".join(link.partition("://")[0] for link in address.split("::"))


def check_store(address: str) -> None:
    """Raises InputError with what to install if addresses of this kind cannot be read. Does not contact the store."""
    fsspec = _fsspec(address)
    for kind in kind_of_store(address).split("::"):
        try:
            fsspec.get_filesystem_class(kind)
        except ImportError as error:  # fsspec's words name the package: "Install s3fs to access S3"
            raise InputError(f"{address}: {error}", remedy="Install the package") from error
        except ValueError as error:
            raise InputError(
                f"{kind}:// is not a supported kind of store",
                remedy="Use a file path, or an address that fsspec supports: s3://…, gs://…, https://…, file:///…",
            ) from error


def open_address(address: str) -> BinaryIO:
    """The bytes behind an address, seekable. Every read error is an OSError.

    Raises InputError if fsspec or its package for this kind of address is missing. Raises UnusableSound with the
    store's message.
    """
    check_store(address)
    try:
        return cast(BinaryIO, io.BufferedReader(_StoreFile(_fsspec(address).open(address, "rb")), _READ_AHEAD_BYTES))
    except Exception as error:  # every store has its own errors, and none may end the run
        raise UnusableSound(RejectReason.UNREADABLE, _message(error)) from error


class _StoreFile(io.RawIOBase):
    """A file in a store whose errors are all OSErrors.

    open_file: fsspec's OpenFile. It is kept, since files below it (such as those in a ZIP file) are closed with it.
    """

    def __init__(self, open_file: Any) -> None:
        super().__init__()
        self._open_file = open_file
        self._file = open_file.open()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            content = self._file.read(len(buffer))
        except Exception as error:  # whatever a store raises
            raise OSError(_message(error)) from error
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        try:
            return int(self._file.seek(offset, whence))
        except Exception as error:  # whatever a store raises, also if its stream cannot seek
            raise OSError(_message(error)) from error

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _fsspec(address: str) -> ModuleType:
    try:
        import fsspec
    except ImportError as error:
        raise InputError(
            f"{address}: fsspec is needed to read from a store", remedy=f"Install it: {pip_install('stores')}"
        ) from error
    return cast(ModuleType, fsspec)


def _message(error: BaseException) -> str:
    """The store's own message, on one line."""
    if isinstance(error, FileNotFoundError):
        return "No such file in the store"
    return " ".join(str(error).split()) or type(error).__name__


def rough_seconds(path: str, size: int = 0) -> float:
    """Approximate duration of a file from its size, as 16-bit sound at 16 kHz. 0 in a store, or if it is missing.

    size: in bytes, if it is known already."""
    if not size:
        local = local_file(path)
        try:
            size = 0 if local is None else os.stat(local).st_size
        except (OSError, ValueError):
            return 0.0
    return size / 32_000 * (FLAC_LONGER if path[-5:].lower() == ".flac" else 1.0)


def local_file(path: str) -> str | None:
    """The path of a local file; None for an address in a store."""
    return local_path(path) if is_address(path) else path
