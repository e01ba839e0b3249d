"""Sound in object stores and behind other addresses (`s3://…`, `memory://…`), by fsspec, the extra `stores`."""

from __future__ import annotations

import io
import os
import re
from types import ModuleType
from typing import Any, BinaryIO, cast

from harness.model.errors import InputError
from harness.model.offline import RejectReason
from harness.sound.wave_file import UnusableSound

FLAC_LONGER = 1.8
"""How much longer a FLAC's sound is than its size says."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z][A-Za-z0-9+.-]+)*://")
"""Two letters at least, so that a drive is none; chains as fsspec has them (`zip://a.wav::s3://…`)."""
_READ_AHEAD = 1 << 20


def is_address(path: str) -> bool:
    """Whether a path is an address of a store and no file's name."""
    return "://" in path and _ADDRESS.match(path) is not None


def local_path(path: str) -> str | None:
    """The path of a file of this machine that an address names (`file:///a/b.wav`), or None."""
    scheme, _, rest = path.partition("://")
    return rest if scheme in ("file", "local") and "::" not in rest else None


def kind_of_store(address: str) -> str:
    """What stands before `://` of an address, of each link of a chain: what decides which packages it needs."""
    return "::".join(link.partition("://")[0] for link in address.split("::"))


def check_store(address: str) -> None:
    """InputError, with what to install, when addresses of this kind cannot be read here. Asks no store."""
    fsspec = _fsspec(address)
    for kind in kind_of_store(address).split("::"):
        try:
            fsspec.get_filesystem_class(kind)
        except ImportError as error:  # fsspec's words name the package: "Install s3fs to access S3"
            remedy = "Install that package beside voice-harness[stores]"
            raise InputError(f"{address}: {error}", remedy=remedy) from error
        except ValueError as error:
            remedy = "Write a path of a file, or an address that fsspec knows: s3://…, gs://…, https://…, file:///…"
            raise InputError(f"no kind of store is called {kind}://", remedy=remedy) from error


def open_address(address: str) -> BinaryIO:
    """The bytes behind an address, seekable; every error of reading it is an OSError.

    InputError when fsspec, or what it needs for this kind of address, is missing; UnusableSound with the store's words.
    """
    check_store(address)
    try:
        return cast(BinaryIO, io.BufferedReader(_StoreFile(_fsspec(address).open(address, "rb")), _READ_AHEAD))
    except Exception as error:  # every store has its own errors, and none may end the run
        raise UnusableSound(RejectReason.UNREADABLE, _words(error)) from error


class _StoreFile(io.RawIOBase):
    """A store's file whose errors are all OSErrors.

    opened: fsspec's OpenFile. It is kept, since the files that it holds below (of a zip, say) close with it.
    """

    def __init__(self, opened: Any) -> None:
        super().__init__()
        self._opened = opened
        self._file = opened.open()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        try:
            content = self._file.read(len(into))
        except Exception as error:  # whatever a store raises
            raise OSError(_words(error)) from error
        into[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        try:
            return int(self._file.seek(offset, whence))
        except Exception as error:  # whatever a store raises, for a stream that only goes forward too
            raise OSError(_words(error)) from error

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def _fsspec(address: str) -> ModuleType:
    try:
        import fsspec
    except ImportError as error:
        remedy = "Install it: pip install 'voice-harness[stores]'"
        raise InputError(f"{address}: reading from a store needs fsspec", remedy=remedy) from error
    return cast(ModuleType, fsspec)


def _words(error: BaseException) -> str:
    """The store's own words, on one line."""
    if isinstance(error, FileNotFoundError):
        return "No such file in the store"
    return " ".join(str(error).split()) or type(error).__name__


def rough_seconds(path: str) -> float:
    """About how long a file is, by its size, as if it were 16-bit at 16 kHz; 0 for a store's, or what is not there."""
    local = local_file(path)
    try:
        size = 0 if local is None else os.stat(local).st_size
    except (OSError, ValueError):
        return 0.0
    return size / 32_000 * (FLAC_LONGER if path[-5:].lower() == ".flac" else 1.0)


def local_file(path: str) -> str | None:
    """The path of a file of this machine; None for what is in a store."""
    return local_path(path) if is_address(path) else path
