"""Where a listed file is: in the current folder or in the list's, and which file it is, whatever way its name takes."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import NamedTuple

from harness.model.errors import InputError
from harness.offline.listed_files import KEY_BYTES
from harness.sound.sound_stores import check_store, is_address, kind_of_store, local_path

_MOST_FOLDERS = 4096
"""Folders whose real path is remembered; lists go through one folder after another."""


class Found(NamedTuple):
    """base: index of the folder that a relative name was found in, 0 for none; there: whether anything has the name."""

    base: int
    there: bool
    path: bytes
    link: bool = False


class Places:
    """The folders in which relative names are looked for. bases: those that were, by their index; 0 is none."""

    def __init__(self) -> None:
        self.bases: list[bytes] = [b""]
        try:
            self._current = self._base(os.getcwdb())
        except FileNotFoundError as error:
            raise InputError("the current folder is no more", remedy="Go to one that is there (cd)") from error
        self._stores: set[str] = set()
        self._real_folders: dict[bytes, bytes] = {}

    def of_list(self, folder: bytes | None) -> tuple[int, ...]:
        """Indices of the folders for the names of a list that stands in `folder` (None: in none, it is a pipe)."""
        if folder is None:
            return (self._current,)
        return tuple(dict.fromkeys((self._current, self._base(folder))))

    def find(self, name: bytes, folders: tuple[int, ...]) -> Found:
        """Where a name is; in the first of the folders when it is nowhere. One look (lstat) a folder, none in a store.

        InputError for an address of a kind that cannot be read here.
        """
        if is_listed_address(name):
            self._check(os.fsdecode(name))
            return Found(0, True, name)
        if name.startswith(b"/"):
            mode = _mode(name)
            return Found(0, mode is not None, name, _is_link(mode))
        for base in folders:
            path = self.bases[base] + b"/" + name
            if is_listed_address(path):
                return Found(base, True, path)
            mode = _mode(path)
            if mode is not None:
                return Found(base, True, path, _is_link(mode))
        return Found(folders[0], False, self.bases[folders[0]] + b"/" + name)

    def key(self, found: Found) -> bytes:
        """The same for the same file: of its real path, without links and detours; of an address as it stands."""
        path = found.path
        if is_listed_address(path):
            local = local_path(os.fsdecode(path))
            if local is None:
                return _digest(path)
            path = os.fsencode(os.path.realpath(local))
            return _digest(path)
        folder, _, name = path.rpartition(b"/")
        if found.link or name in (b"", b".", b".."):
            return _digest(os.path.realpath(path))
        real = self._real_folders.get(folder)
        if real is None:
            if len(self._real_folders) >= _MOST_FOLDERS:
                self._real_folders.clear()
            real = os.path.realpath(folder or b"/").rstrip(b"/")
            self._real_folders[folder] = real
        return _digest(real + b"/" + name)

    def _check(self, address: str) -> None:
        kind = kind_of_store(address)
        if kind not in self._stores:
            check_store(address)
            self._stores.add(kind)

    def _base(self, folder: bytes) -> int:
        if folder not in self.bases:
            self.bases.append(folder)
        return self.bases.index(folder)


def is_listed_address(name: bytes) -> bool:
    """Whether a name in a list is an address of a store."""
    return b"://" in name and is_address(os.fsdecode(name))


def _mode(path: bytes) -> int | None:
    try:
        return os.lstat(path).st_mode
    except OSError:  # why it cannot be had is told when it is opened
        return None


def _is_link(mode: int | None) -> bool:
    return mode is not None and stat.S_ISLNK(mode)


def _digest(path: bytes) -> bytes:
    return hashlib.blake2b(path, digest_size=KEY_BYTES).digest()
