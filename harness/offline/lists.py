"""Lists of files of audio: -i and -o with one path a line, -c with `audio,reference`.

Source: seed snsr-eval-batch, Usage. Lines end with a line feed; a carriage return before it and a byte order mark are
taken off, lines without anything are passed over, and there are no comments: a file may be called #1.wav. Names are
bytes, as the system has them, and need not be UTF-8. What a list names is looked for (one lstat a name) but not opened:
whether it can be read, and what it is, shows when its turn comes.

A million files and more are kept in columns, and each is made when it is asked for: a name once, as the bytes that its
list has; of the folder that it was found in, and of its rejection, a byte.
"""

from __future__ import annotations

import csv
import hashlib
import os
import stat
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

import numpy as np

from harness.base.told_later import ToldLater
from harness.model.errors import InputError, InputProblems, Place
from harness.model.offline import ListedFile, ListKind, RejectReason
from harness.offline.journal_lines import ListFacts
from harness.sound.sound_stores import check_store, is_address, kind_of_store, local_path, open_address
from harness.sound.wave_file import UnusableSound

_REASONS = (None, RejectReason.TWICE, RejectReason.BOTH)
_TWICE, _BOTH = 1, 2
_KEY_BYTES = 16
_MOST_FOLDERS = 4096
"""Folders whose real path is remembered; lists go through one folder after another."""
_BLOCK = 1 << 18
_LONGEST_LINE = 1 << 16
"""Bytes; the longest path that Linux takes has 4,096."""
_MOST_PROBLEMS = 20
_SOUND_STARTS = (b"RIFF", b"RF64", b"BW64", b"fLaC", b"OggS", b"ID3", b"FORM", b".snd")


class _FileColumns:
    """The files of one kind, as they are read. bases: folders that relative names were found in, shared by all kinds.

    A base of 0 is none: the name is absolute, or an address.
    """

    def __init__(self, kind: ListKind, bases: list[bytes]) -> None:
        self.kind, self.bases = kind, bases
        self.names, self.keys, self.rejected = bytearray(), bytearray(), bytearray()
        self._ends, self._lines = array("Q"), array("Q")
        self._in_base = array("H")
        self._with_reference = kind is ListKind.REFERENCED

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: int, name: bytes, base: int, key: bytes) -> None:
        """Takes a file in. key: _KEY_BYTES that are the same for the same file."""
        self._lines.append(line)
        self.keys += key
        self.add_name(name, base)

    def add_name(self, name: bytes, base: int) -> None:
        """Of a file, or of the reference of the file before."""
        self.names += name
        self._ends.append(len(self.names))
        self._in_base.append(base)

    def file(self, number: int) -> ListedFile:
        at = 2 * number if self._with_reference else number
        listed, path = self._name(at)
        return ListedFile(
            kind=self.kind,
            number=number,
            listed=listed.decode("utf-8", "surrogateescape"),
            path=os.fsdecode(path),
            line=self._lines[number],
            reference=os.fsdecode(self._name(at + 1)[1]) if self._with_reference else "",
            rejected=_REASONS[self.rejected[number]],
        )

    def _name(self, at: int) -> tuple[bytes, bytes]:
        name = bytes(self.names[self._ends[at - 1] if at else 0 : self._ends[at]])
        base = self._in_base[at]
        return name, os.path.join(self.bases[base], name) if base else name


def _files(columns: Sequence[_FileColumns]) -> Sequence[ListedFile]:
    """All files of an evaluation, in-vocabulary or referenced ones first, each kind in the order of its lists."""

    def at(number: int) -> ListedFile:
        for one in columns:
            if number < len(one):
                return one.file(number)
            number -= len(one)
        raise IndexError(number)

    return ToldLater(sum(map(len, columns)), at)


def _seal(parts: Sequence[_FileColumns]) -> None:
    """Rejects what is listed twice (from the second on), and what is in the vocabulary's lists and out of it (all).

    Nothing more comes: the keys are let go of. The last part is out of the vocabulary.
    """
    keys = np.frombuffer(b"".join(part.keys for part in parts), dtype=np.uint64).reshape(-1, 2)
    marks = np.zeros(len(keys), np.uint8)
    if len(keys):
        order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: equal keys stay in the order of the lists
        again = np.append(False, (keys[order[1:]] == keys[order[:-1]]).all(axis=1))
        marks[order[again]] = _TWICE
        firsts = np.flatnonzero(~again)
        lasts = np.append(firsts[1:], len(order)) - 1
        vocabulary = len(keys) - len(parts[-1])
        in_both = (order[firsts] < vocabulary) & (order[lasts] >= vocabulary)
        marks[order[np.repeat(in_both, lasts - firsts + 1)]] = _BOTH
    at = 0
    for part in parts:
        part.rejected, part.keys = bytearray(marks[at : at + len(part)].tobytes()), bytearray()
        at += len(part)


class _FoundName(NamedTuple):
    """base: index of the folder that a relative name was found in, 0 for none; there: whether anything has the name."""

    base: int
    there: bool
    link: bool
    path: bytes


class _Places:
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

    def find(self, name: bytes, folders: tuple[int, ...]) -> _FoundName:
        """Where a name is; in the first of the folders when it is nowhere. One look (lstat) a folder, none in a store.

        InputError for an address of a kind that cannot be read here.
        """
        if _is_listed_address(name):
            self._check(os.fsdecode(name))
            return _FoundName(0, True, False, name)
        if name.startswith(b"/"):
            return _FoundName(0, *_seen(name), name)
        for base in folders:
            path = self.bases[base] + b"/" + name
            if _is_listed_address(path):
                return _FoundName(base, True, False, path)
            there, link = _seen(path)
            if there:
                return _FoundName(base, True, link, path)
        return _FoundName(folders[0], False, False, self.bases[folders[0]] + b"/" + name)

    def key(self, found: _FoundName) -> bytes:
        """The same for the same file: of its real path, without links and detours; of an address as it stands."""
        path = found.path
        if _is_listed_address(path):
            local = local_path(os.fsdecode(path))
            return _digest(path if local is None else os.fsencode(os.path.realpath(local)))
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


def _is_listed_address(name: bytes) -> bool:
    """Whether a name in a list is an address of a store."""
    return b"://" in name and is_address(os.fsdecode(name))


def _seen(path: bytes) -> tuple[bool, bool]:
    """Whether anything is there, and whether that is a link."""
    try:
        return True, stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:  # why it cannot be had is told when it is opened
        return False, False


def _digest(path: bytes) -> bytes:
    return hashlib.blake2b(path, digest_size=_KEY_BYTES).digest()


@dataclass(frozen=True, slots=True)
class Listing:
    """What an evaluation goes through. files: in-vocabulary or referenced ones, then those out of the vocabulary.

    lists: in that order, too. bases: the folders in which relative paths were found.
    """

    files: Sequence[ListedFile]
    lists: tuple[ListFacts, ...]
    bases: tuple[str, ...]


def read_lists(inv: Sequence[str], oov: Sequence[str], referenced: Sequence[str]) -> Listing:
    """Reads the lists of an evaluation, each kind's in the order in which they are given.

    InputError, or InputProblems with each line's place, when a list cannot be read or is none.
    """
    places = _Places()
    columns: list[_FileColumns] = []
    lists: list[ListFacts] = []
    bases: dict[str, None] = {}
    for kind, names in ((ListKind.INV, inv), (ListKind.REFERENCED, referenced), (ListKind.OOV, oov)):
        columns.append(_FileColumns(kind, places.bases))
        for name in names:
            lists.append((reading := _ListReader(name, places, columns[-1])).read())
            bases |= dict.fromkeys(os.fsdecode(places.bases[base]) for base in reading.folders if base in reading.used)
    _seal(columns)
    return Listing(_files(columns), tuple(lists), tuple(bases))


class _ListReader:
    """One list while it is read."""

    def __init__(self, name: str, places: _Places, columns: _FileColumns) -> None:
        self._name, self._places, self._columns = name, places, columns
        self._digest = hashlib.sha256()
        self.folders: tuple[int, ...] = ()
        self.used: set[int] = set()
        self._problems: list[InputError] = []

    def read(self) -> ListFacts:
        before = len(self._columns)
        with _opened(self._name) as file:
            self.folders = self._places.of_list(_folder(self._name))
            for number, line in self._lines(file):
                if self._columns.kind is ListKind.REFERENCED:
                    self._take_pair(number, line)
                else:
                    self._take(number, line)
                if len(self._problems) >= _MOST_PROBLEMS:
                    break
        if self._problems:
            raise InputProblems(self._problems) if len(self._problems) > 1 else self._problems[0]
        files = len(self._columns) - before
        if not files:
            raise InputError("no file is in this list", place=Place(self._name), remedy="Write one path a line")
        return ListFacts(self._name, self._digest.hexdigest(), self._columns.kind, files)

    def _take(self, number: int, line: bytes) -> None:
        found = self._found(number, line)
        self._columns.add(number, line, found.base, self._places.key(found))

    def _take_pair(self, number: int, line: bytes) -> None:
        fields = self._fields(number, line)
        if fields is None:
            return
        audio, reference = fields
        self._take(number, audio)
        self._columns.add_name(reference, self._found(number, reference).base)

    def _found(self, number: int, name: bytes) -> _FoundName:
        """Where a name is. One with blanks around it that is nowhere, but is there without them, is a problem."""
        try:
            found = self._places.find(name, self.folders)
        except InputError as error:
            raise InputError(error.what, place=Place(self._name, number), remedy=error.remedy) from error
        if not found.there and (trimmed := name.strip()) != name and self._places.find(trimmed, self.folders).there:
            shown = trimmed.decode("utf-8", "backslashreplace")
            self._refuse(number, f"blanks stand around {shown}", "Take them off: they count as part of the name")
        if found.base and found.there:
            self.used.add(found.base)
        return found

    def _fields(self, number: int, line: bytes) -> tuple[bytes, bytes] | None:
        if b'"' not in line:
            fields = line.split(b",")
        else:
            text = line.decode("utf-8", "surrogateescape")
            try:
                [cells] = csv.reader([text], strict=True)
            except csv.Error as error:
                self._refuse(number, f"no CSV: {error}", 'Write a quote within quotes twice: "say ""hey"".wav",say.txt')
                return None
            fields = [cell.encode("utf-8", "surrogateescape") for cell in cells]
        if len(fields) != 2:
            what = f"{len(fields)} field{'' if len(fields) == 1 else 's'}, not the two of audio,reference"
            self._refuse(number, what, 'Put a name with a comma in quotes: "a,b.wav",a.txt')
            return None
        if not fields[0].strip() or not fields[1].strip():
            self._refuse(number, "a field is empty", "Write the audio file and its reference: audio.wav,audio.txt")
            return None
        return fields[0], fields[1]

    def _refuse(self, number: int, what: str, remedy: str) -> None:
        self._problems.append(InputError(what, place=Place(self._name, number), remedy=remedy))

    def _lines(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        """Number and bytes of each line that has something in it, without its end."""
        tail, number, begun = b"", 0, False
        while True:
            try:
                block = file.read(_BLOCK)
            except OSError as error:
                raise InputError(f"cannot be read: {error.strerror or error}", place=Place(self._name)) from error
            self._digest.update(block)
            if not begun:
                begun = True
                self._check_start(block)
                block = block.removeprefix(b"\xef\xbb\xbf")
            if b"\0" in block:
                at = number + 1 + block[: block.index(b"\0")].count(b"\n")
                raise InputError("a NUL stands here: this is no text", place=Place(self._name, at))
            lines = (tail + block).split(b"\n")
            tail = lines.pop()
            if not block and tail:
                lines, tail = [tail], b""
            for line in lines:
                number += 1
                if len(line) > _LONGEST_LINE:
                    raise self._too_long(number)
                line = line.removesuffix(b"\r")
                if line.strip():
                    yield number, line
            if len(tail) > _LONGEST_LINE:
                raise self._too_long(number + 1)
            if not block:
                return

    def _check_start(self, block: bytes) -> None:
        if block.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError("this is UTF-16", place=Place(self._name), remedy="Save the list as UTF-8")
        if block.startswith(_SOUND_STARTS) and b"\0" in block[:64]:
            remedy = "Write its path into a text file and give that"
            raise InputError("this is a file of sound, no list of such", place=Place(self._name), remedy=remedy)

    def _too_long(self, number: int) -> InputError:
        what = f"a line of more than {_LONGEST_LINE >> 10} KiB: this is no list of files"
        return InputError(what, place=Place(self._name, number))


def _folder(name: str) -> bytes | None:
    """The folder that a list stands in, or None of a pipe."""
    if is_address(name):
        return os.fsencode(name.rpartition("/")[0])
    if not os.path.isfile(name):
        return None
    return os.path.dirname(os.path.abspath(os.fsencode(name)))


def _opened(name: str) -> BinaryIO:
    """A list: a file, a pipe, as the shell makes of <(find …), or one in a store."""
    try:
        if is_address(name):
            return open_address(name)
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            remedy = f"Make a list of it: find {name} -name '*.wav' > list.txt"
            raise InputError("this is a folder, no list", place=Place(name), remedy=remedy)
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise InputError("this is a device or a socket, no list", place=Place(name))
        return open(name, "rb")
    except OSError as error:
        what = f"this list cannot be read: {error.strerror}"
        raise InputError(what, place=Place(name), remedy="Check the name and the folder") from error
    except UnusableSound as error:
        raise InputError(f"this list cannot be read: {error.detail}", place=Place(name)) from error
    except ValueError as error:
        raise InputError(f"this is no name of a file: {error}", place=Place(repr(name))) from error
