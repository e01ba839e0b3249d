"""Lists of files of audio: -i and -o with one path a line, -c with `audio,reference`.

Source: seed snsr-eval-batch, Usage. Lines end with a line feed; a carriage return before it and a byte order mark are
taken off, lines without anything are passed over, and there are no comments: a file may be called #1.wav. Names are
bytes, as the system has them, and need not be UTF-8. What a list names is looked for (one lstat a name) but not opened:
whether it can be read, and what it is, shows when its turn comes.
"""

from __future__ import annotations

import csv
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from harness.model.errors import InputError, InputProblems, Place
from harness.model.offline import ListedFile, ListKind
from harness.offline.audio_places import Found, Places
from harness.offline.listed_files import FileColumns, ListedFiles, seal
from harness.sound.sound_stores import is_address, open_address
from harness.sound.wave_file import UnusableSound

_BLOCK = 1 << 18
_LONGEST_LINE = 1 << 16
"""Bytes; the longest path that Linux takes has 4,096."""
_MOST_PROBLEMS = 20
_SOUND_STARTS = (b"RIFF", b"RF64", b"BW64", b"fLaC", b"OggS", b"ID3", b"FORM", b".snd")


@dataclass(frozen=True, slots=True)
class Listing:
    """What an evaluation goes through. files: in-vocabulary or referenced ones, then those out of the vocabulary.

    By the name of each list as it was given: sha256 of its bytes (hex), bases (the folders in which relative paths were
    found: the current one, the list's), and missing (how many of its files were not there).
    """

    files: Sequence[ListedFile]
    sha256: Mapping[str, str]
    bases: Mapping[str, tuple[str, ...]]
    missing: Mapping[str, int]


def read_lists(inv: Sequence[str], oov: Sequence[str], referenced: Sequence[str]) -> Listing:
    """Reads the lists of an evaluation, each kind's in the order in which they are given.

    InputError, or InputProblems with each line's place, when a list cannot be read or is none.
    """
    places = Places()
    reader = _Lists(places)
    columns = {kind: FileColumns(kind, places.bases) for kind in (ListKind.INV, ListKind.REFERENCED, ListKind.OOV)}
    for kind, names in ((ListKind.INV, inv), (ListKind.REFERENCED, referenced), (ListKind.OOV, oov)):
        for name in names:
            reader.read(name, columns[kind])
    seal((columns[ListKind.INV], columns[ListKind.REFERENCED]), columns[ListKind.OOV])
    return Listing(ListedFiles(tuple(columns.values())), reader.sha256, reader.bases, reader.missing)


class _Lists:
    def __init__(self, places: Places) -> None:
        self._places = places
        self.sha256: dict[str, str] = {}
        self.bases: dict[str, tuple[str, ...]] = {}
        self.missing: dict[str, int] = {}

    def read(self, name: str, columns: FileColumns) -> None:
        reading = _OneList(name, self._places, columns)
        reading.read()
        self.sha256[name] = reading.digest.hexdigest()
        self.bases[name] = tuple(
            os.fsdecode(self._places.bases[base]) for base in reading.folders if base in reading.used
        )
        self.missing[name] = reading.missing


class _OneList:
    """One list while it is read."""

    def __init__(self, name: str, places: Places, columns: FileColumns) -> None:
        self._name, self._places, self._columns = name, places, columns
        self.digest = hashlib.sha256()
        self.folders: tuple[int, ...] = ()
        self.used: set[int] = set()
        self.missing = 0
        self._problems: list[InputError] = []

    def read(self) -> None:
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
        if len(self._columns) == before:
            raise InputError("no file is in this list", place=Place(self._name), remedy="Write one path a line")

    def _take(self, number: int, line: bytes) -> None:
        found = self._found(number, line)
        self._columns.add(number, line, found.base, self._places.key(found))
        self.missing += not found.there

    def _take_pair(self, number: int, line: bytes) -> None:
        fields = self._fields(number, line)
        if fields is None:
            return
        audio, reference = fields
        self._take(number, audio)
        self._columns.add_reference(reference, self._found(number, reference).base)

    def _found(self, number: int, name: bytes) -> Found:
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
            self.digest.update(block)
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
