"""Sound in object stores and behind other addresses (`s3://…`, `memory://…`), by fsspec, the extra `stores`."""

from __future__ import annotations

import re
from typing import BinaryIO, cast

from harness.audio.wave_file import UnusableSound
from harness.model.errors import InputError
from harness.model.offline import RejectReason

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z][A-Za-z0-9+.-]+)*://")
"""Two letters at least, so that a drive is none; chains as fsspec has them (`zip::s3://…`)."""


def is_address(path: str) -> bool:
    """Whether a path is an address of a store and no file's name."""
    return _ADDRESS.match(path) is not None


def local_path(path: str) -> str | None:
    """The path of a file of this machine that an address names (`file:///a/b.wav`), or None."""
    scheme, _, rest = path.partition("://")
    return rest if scheme in ("file", "local") and rest.startswith("/") else None


def open_address(address: str) -> BinaryIO:
    """The bytes behind an address, seekable, read in blocks.

    InputError when fsspec, or what it needs for this kind of address, is missing; UnusableSound with the store's words.
    """
    try:
        import fsspec
    except ImportError as error:
        remedy = "Install it: pip install 'voice-harness[stores]'"
        raise InputError(f"{address}: reading from a store needs fsspec", remedy=remedy) from error
    try:
        return cast(BinaryIO, fsspec.open(address, "rb").open())
    except ImportError as error:  # fsspec's words name the package: "Install s3fs to access S3"
        remedy = "Install what it names, beside voice-harness[stores]"
        raise InputError(f"{address}: {error}", remedy=remedy) from error
    except Exception as error:  # every store has its own errors, and none may end the run
        raise store_failed(error) from error


def store_failed(error: BaseException) -> UnusableSound:
    """A store's error as a rejection, with the store's own words."""
    words = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, FileNotFoundError):
        words = "no such file"
    return UnusableSound(RejectReason.UNREADABLE, words)
