"""Lists of audio files: -i and --oov with one path per line, -c with `audio,reference`, or tables of other tools.

Source: seed snsr-eval-batch, Usage. There are no comments, since a file may be called #1.wav. Names are bytes, as in
the file system, and need not be UTF-8. Reading a list checks that files exist (one lstat per name) but does not open
them. To save memory, files are kept in columns (`_FileColumns`), and a `ListedFile` is made on each access.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO, NamedTuple

import numpy as np

from harness.base.lazy_sequence import LazySequence
from harness.base.text_file import CsvRows, Problems, separator_of
from harness.model.errors import InputError, InputProblems, Place
from harness.model.frozen import frozen
from harness.model.offline import INLINE, LabelledPhrase, ListedFile, ListKind, RejectReason
from harness.model.stimulus import SoundCondition
from harness.offline.file_sources import CollectedFiles, collect_files, demand_phrase_ends
from harness.offline.journal_lines import ListFacts
from harness.sound.manifests import FOREIGN_LISTS, MANIFESTS, TEXT
from harness.sound.sound_stores import check_store, is_address, kind_of_store, local_file, local_path, open_address
from harness.sound.wave_file import UnusableSound

_REASONS = (None, RejectReason.TWICE, RejectReason.BOTH)
_TWICE, _BOTH = 1, 2  # Places in _REASONS.
_KEY_BYTES = 16  # With 8, two of 10⁷ files would be taken for the same in one of 400,000 lists.
_MAX_FOLDERS = 4096
"""Number of folders whose real paths are cached."""
_BLOCK = 1 << 18
_MAX_LINE_BYTES = 1 << 16
"""In bytes. The longest path in Linux has 4,096."""
_MAX_PROBLEMS = 20
_SOUND_STARTS = (b"RIFF", b"RF64", b"BW64", b"fLaC", b"OggS", b"ID3", b"FORM", b".snd")


class _FileColumns:
    """The files of one kind of list, as columns. bases: the folders in which relative names were found, shared by all
    kinds. A name with base 0 is absolute or an address. With references, `names` has two entries for each file."""

    def __init__(self, kind: ListKind, bases: list[bytes]) -> None:
        self.kind, self.bases = kind, bases
        self.names, self.keys, self.rejected = bytearray(), bytearray(), bytearray()
        self._ends, self._lines, self._sizes = array("Q"), array("Q"), array("Q")
        self._in_base = array("H")
        self._with_reference = kind is ListKind.REFERENCED
        self.labels: list[tuple[LabelledPhrase, ...]] = []

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: int, name: bytes, base: int, key: bytes, size: int) -> None:
        """Adds a file. line: its line in the list. base: index in `bases`. key: _KEY_BYTES bytes that are equal if two
        names are of the same file. size: in bytes; 0 if unknown."""
        self._lines.append(line)
        self._sizes.append(size)
        self.keys += key
        self.add_name(name, base)

    def add_name(self, name: bytes, base: int) -> None:
        """Adds the name of a file, or that of the reference of the file added last."""
        self.names += name
        self._ends.append(len(self.names))
        self._in_base.append(base)

    def file(self, number: int) -> ListedFile:
        index = 2 * number if self._with_reference else number
        name, path = self._name(index)
        return ListedFile(
            kind=self.kind,
            number=number,
            listed=name.decode("utf-8", "surrogateescape"),
            path=os.fsdecode(path),
            line=self._lines[number],
            reference=os.fsdecode(self._name(index + 1)[1]) if self._with_reference else "",
            rejected=_REASONS[self.rejected[number]],
            labels=self.labels[number] if self.labels else (),
            size=self._sizes[number],
        )

    def _name(self, index: int) -> tuple[bytes, bytes]:
        name = bytes(self.names[self._ends[index - 1] if index else 0 : self._ends[index]])
        base = self._in_base[index]
        return name, os.path.join(self.bases[base], name) if base else name


def _files(columns: Sequence[_FileColumns], conditions: Sequence[SoundCondition]) -> Sequence[ListedFile]:
    """All files of an evaluation: in-vocabulary or referenced ones first, each kind in the order of its lists.

    conditions: each file occurs once for each of them, one after the other. Empty: once, as it is.
    """
    times = max(1, len(conditions))

    def at(number: int) -> ListedFile:
        for file_columns in columns:
            if number < times * len(file_columns):
                file = file_columns.file(number // times)
                return _in_condition(file, number, conditions[number % times]) if conditions else file
            number -= times * len(file_columns)
        raise IndexError(number)

    return LazySequence(times * sum(map(len, columns)), at)


def _in_condition(file: ListedFile, number: int, condition: SoundCondition) -> ListedFile:
    """The file as played in a condition, under a new number. Unless the condition alters nothing, the file gets
    another name, and the times of its labels are adapted to the speed."""
    if condition.is_unaltered:
        return replace(file, number=number)
    speed = condition.channel.speed
    labels = tuple(replace(label, start_s=label.start_s / speed, end_s=label.end_s / speed) for label in file.labels)
    return replace(file, number=number, listed=f"{file.listed} @ {condition.label()}", labels=labels)


def demand_local(files: Iterable[ListedFile]) -> None:
    """InputError for a file in a store or an archive, which cannot be rendered in a condition."""
    for file in files:
        if local_file(file.path) is None:
            problem = "conditions need files on this computer, and this one is in a store or an archive"
            raise InputError(problem, place=Place(file.listed), remedy="Copy or unpack it, and name the folder")


CONDITION = "condition"
"""Name of the column with the label of the whole condition. Each axis of the conditions is a further column."""


Columns = Mapping[str, Mapping[ListKind, Sequence[str]]]


def _labels_in_conditions(
    columns: Columns, files: Mapping[ListKind, int], conditions: Sequence[SoundCondition]
) -> Columns:
    """The columns for files that occur once for each condition, with the columns of the conditions added. files: number
    of files of each kind, without repetitions."""
    if not conditions:
        return columns
    times = len(conditions)

    def repeated(labels: Sequence[str]) -> Sequence[str]:
        return LazySequence(times * len(labels), lambda index: labels[index // times])

    def cycled(count: int, labels: Sequence[str]) -> Sequence[str]:
        return LazySequence(times * count, lambda index: labels[index % times])

    all_columns = {
        name: {kind: repeated(labels) for kind, labels in by_kind.items()} for name, by_kind in columns.items()
    }
    condition_columns = {CONDITION: [condition.label() for condition in conditions]}
    condition_columns |= {
        name: [dict(condition.axes).get(name, "") for condition in conditions] for name, _ in conditions[0].axes
    }
    return all_columns | {
        name: {kind: cycled(count, labels) for kind, count in files.items()}
        for name, labels in condition_columns.items()
    }


def _seal(parts: Sequence[_FileColumns]) -> None:
    """Rejects later entries of a file that is listed twice, and all entries of a file that is both in and out of
    vocabulary. parts: all kinds, of which the last two are out of vocabulary and labelled. Frees the keys: call it
    last."""
    keys = np.frombuffer(b"".join(part.keys for part in parts), dtype=np.uint64).reshape(-1, 2)
    marks = np.zeros(len(keys), np.uint8)
    if len(keys):
        order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: equal keys stay in list order
        repeated = np.append(False, (keys[order[1:]] == keys[order[:-1]]).all(axis=1))
        marks[order[repeated]] = _TWICE
        firsts = np.flatnonzero(~repeated)
        lasts = np.append(firsts[1:], len(order)) - 1
        vocabulary = sum(map(len, parts[:-2]))
        in_both = (order[firsts] < vocabulary) & (order[lasts] >= vocabulary)
        marks[order[np.repeat(in_both, lasts - firsts + 1)]] = _BOTH
    start = 0
    for part in parts:
        part.rejected, part.keys = bytearray(marks[start : start + len(part)].tobytes()), bytearray()
        start += len(part)


class _FileLocation(NamedTuple):
    """Where a name was looked up. base: index of the folder for a relative name; 0 for another name. exists: whether
    there is a file. link: whether it is a symbolic link. size: in bytes; 0 if unknown."""

    base: int
    exists: bool
    link: bool
    path: bytes
    size: int = 0


class _Places:
    """Finds files by the names in lists. bases: all folders in which relative names are looked up. Index 0 stands for
    no folder."""

    def __init__(self) -> None:
        self.bases: list[bytes] = [b""]
        try:
            self._current = self._base(os.getcwdb())
        except FileNotFoundError as error:
            raise InputError("the current folder no longer exists", remedy="Change to another folder") from error
        self._stores: set[str] = set()
        self._real_folders: dict[bytes, bytes] = {}

    def of_list(self, folder: bytes | None) -> tuple[int, ...]:
        """Indices of the folders in which names of a list are looked up: the current folder, then that of the list.
        folder: the folder of the list; None for a pipe."""
        if folder is None:
            return (self._current,)
        return tuple(dict.fromkeys((self._current, self._base(folder))))

    def find(self, name: bytes, folders: tuple[int, ...]) -> _FileLocation:
        """Where a file is. If it is in none of the folders: its place in the first, with `exists` False. Takes one
        lstat per folder, and none for an address. InputError for an unsupported kind of address."""
        if _is_listed_address(name):
            address = os.fsdecode(name)
            if (kind := kind_of_store(address)) not in self._stores:
                check_store(address)
                self._stores.add(kind)
            return _FileLocation(0, True, False, name)
        if name.startswith(b"/"):
            exists, link, size = _file_status(name)
            return _FileLocation(0, exists, link, name, size)
        for base in folders:
            path = self.bases[base] + b"/" + name
            if _is_listed_address(path):
                return _FileLocation(base, True, False, path)
            exists, link, size = _file_status(path)
            if exists:
                return _FileLocation(base, True, link, path, size)
        return _FileLocation(folders[0], False, False, self.bases[folders[0]] + b"/" + name)

    def key(self, file: _FileLocation) -> bytes:
        """A hash that is equal for two names of the same file: of its real path (links resolved), or of an address as
        written."""
        path = file.path
        if _is_listed_address(path):
            local = local_path(os.fsdecode(path))
            return _digest(path if local is None else os.fsencode(os.path.realpath(local)))
        folder, _, name = path.rpartition(b"/")
        if file.link or name in (b"", b".", b".."):
            return _digest(os.path.realpath(path))
        real = self._real_folders.get(folder)
        if real is None:
            if len(self._real_folders) >= _MAX_FOLDERS:
                self._real_folders.clear()
            real = os.path.realpath(folder or b"/").rstrip(b"/")
            self._real_folders[folder] = real
        return _digest(real + b"/" + name)

    def _base(self, folder: bytes) -> int:
        if folder not in self.bases:
            self.bases.append(folder)
        return self.bases.index(folder)


def _is_listed_address(name: bytes) -> bool:
    return b"://" in name and is_address(os.fsdecode(name))


def _file_status(path: bytes) -> tuple[bool, bool, int]:
    """Whether a file exists and is a link, and its size in bytes; 0 for a link."""
    try:
        file_status = os.lstat(path)
    except OSError:  # reported when the file is opened
        return False, False, 0
    link = stat.S_ISLNK(file_status.st_mode)
    return True, link, 0 if link else file_status.st_size


def _digest(path: bytes) -> bytes:
    return hashlib.blake2b(path, digest_size=_KEY_BYTES).digest()


@frozen
class Listing:
    """What an evaluation plays. files, lists: those in vocabulary or with references first, then those out of
    vocabulary. bases: the folders in which relative names were found."""

    files: Sequence[ListedFile]
    lists: tuple[ListFacts, ...]
    bases: tuple[str, ...]
    columns: Columns
    """For each column and kind of list, the value for each file; "" for none."""
    label_columns: tuple[str, ...] = ()
    """Names of the columns that labelled phrases have: `phrase`, and the names of their traits."""


def read_lists(
    inv: Sequence[str],
    oov: Sequence[str],
    referenced: Sequence[str],
    inside: Sequence[CollectedFiles] = (),
    outside: Sequence[CollectedFiles] = (),
    long: Sequence[CollectedFiles] = (),
    conditions: Sequence[SoundCondition] = (),
    encoding: str | None = None,
) -> Listing:
    """Reads the lists of an evaluation, those of each kind in the order given. InputError, or InputProblems with the
    place of each line, if a list cannot be read or is not a list.

    inv, oov, referenced: names of lists. inside, outside: collected in-vocabulary and out-of-vocabulary files; they
    follow the files of the lists. long: long recordings with their labels. conditions: every file is listed once in
    each; empty for files as they are. encoding: encoding of tables; None for UTF-8.
    """
    places = _Places()
    columns: list[_FileColumns] = []
    lists: list[ListFacts] = []
    bases: dict[str, None] = {}
    labels: dict[str, dict[ListKind, list[str]]] = {}
    sources: tuple[tuple[ListKind, Sequence[str | CollectedFiles]], ...] = (
        (ListKind.INV, [*(_table_or_list(path, encoding) for path in inv), *inside]),
        (ListKind.REFERENCED, [_referenced_table_or_list(path, encoding) for path in referenced]),
        (ListKind.OOV, [*(_table_or_list(path, encoding) for path in oov), *outside]),
        (ListKind.LABELLED, long),
    )
    gathered = [source for _, of_kind in sources for source in of_kind if isinstance(source, CollectedFiles)]
    for source in sources[0][1]:
        if isinstance(source, CollectedFiles):
            demand_phrase_ends(source)
    names = dict.fromkeys(name for source in gathered for name in source.columns)
    for kind, places_of_kind in sources:
        columns.append(_FileColumns(kind, places.bases))
        for place in places_of_kind:
            before = len(columns[-1])
            lists.append((reading := _ListReader(place, places, columns[-1])).read())
            columns[-1].labels += place.labels if isinstance(place, CollectedFiles) else ()
            place_columns = place.columns if isinstance(place, CollectedFiles) else {}
            blank = ("",) * (len(columns[-1]) - before)
            for name in names:
                labels.setdefault(name, {}).setdefault(kind, []).extend(place_columns.get(name, blank))
            bases |= dict.fromkeys(os.fsdecode(places.bases[base]) for base in reading.folders if base in reading.used)
    _seal(columns)
    label_names: dict[str, None] = {}
    for labels_of_file in (labels_of_file for source in long for labels_of_file in source.labels):
        for label in labels_of_file:
            label_names |= dict.fromkeys(("phrase", *(name for name, _ in label.traits)))
    counts = {kind: len(files) for (kind, _), files in zip(sources, columns, strict=True)}
    played = tuple(replace(list_facts, files=list_facts.files * max(1, len(conditions))) for list_facts in lists)
    labels_of_all = _labels_in_conditions(labels, counts, conditions)
    return Listing(_files(columns, conditions), played, tuple(bases), labels_of_all, tuple(label_names))


def _table_or_list(name: str, encoding: str | None) -> str | CollectedFiles:
    """The recordings of a table of another tool, or the name of a list of paths."""
    return collect_files(name, encoding) if name.lower().endswith(FOREIGN_LISTS) and os.path.isfile(name) else name


def _referenced_table_or_list(name: str, encoding: str | None) -> str | CollectedFiles:
    """As `_table_or_list`, for recordings with references. InputError for a recording without words."""
    if not (name.lower().endswith(_TABLES) and os.path.isfile(name)):
        return name
    table = collect_files(name, encoding)
    if not table.texts:
        remedy = f"Write a column called {TEXT[0]} or {', '.join(TEXT[1:])}"
        if name.lower().endswith(FOREIGN_LISTS):
            remedy += "; for wav.scp, put Kaldi's file `text` next to it"
        raise InputError("the list has no words for its recordings", place=Place(name), remedy=remedy)
    for recording, text in zip(table.names, table.texts, strict=True):
        if not text.strip():
            raise InputError(f"the list has no words for {recording}", place=Place(name), remedy="Add them")
    return table


_TABLES = tuple(ending for ending in MANIFESTS if ending != ".csv")


class _ListReader:
    def __init__(self, place: str | CollectedFiles, places: _Places, columns: _FileColumns) -> None:
        self._gathered = place if isinstance(place, CollectedFiles) else None
        self._name = place.place if isinstance(place, CollectedFiles) else place
        self._places, self._columns = places, columns
        self._digest = hashlib.sha256()
        self.folders: tuple[int, ...] = ()
        self.used: set[int] = set()
        self._problems: list[InputError] = []

    def read(self) -> ListFacts:
        before = len(self._columns)
        with self._opened() as file:
            if self._columns.kind is ListKind.REFERENCED and self._gathered is None:
                self._take_pairs(file)
            else:
                for number, line in self._lines(file):
                    if not line.strip():
                        continue
                    self._take(number, line)
                    if self._columns.kind is ListKind.REFERENCED and self._gathered is not None:
                        self._take_text(self._gathered.texts[number - 1].encode("utf-8", "surrogatepass"))
                    if len(self._problems) >= _MAX_PROBLEMS:
                        break
        if self._problems:
            raise InputProblems(self._problems) if len(self._problems) > 1 else self._problems[0]
        files = len(self._columns) - before
        if not files:
            raise InputError("this list contains no files", place=Place(self._name), remedy="Write one path per line")
        sha256 = None if self._gathered is None else self._gathered.sha256()
        return ListFacts(self._name, sha256 or self._digest.hexdigest(), self._columns.kind, files)

    def _opened(self) -> BinaryIO:
        if self._gathered is None:
            file = _opened(self._name)
            self.folders = self._places.of_list(_folder(self._name))
            return file
        folder = self._gathered.folder
        self.folders = self._places.of_list(None if folder is None else os.fsencode(folder))
        return io.BytesIO(self._gathered.content())

    def _take(self, number: int, line: bytes) -> None:
        file = self._locate(number, line)
        self._columns.add(number, line, file.base, self._places.key(file), file.size)

    def _locate(self, number: int, name: bytes) -> _FileLocation:
        """Where a file is. Adds a problem if the file exists only under the name without its surrounding blanks."""
        try:
            file = self._places.find(name, self.folders)
        except InputError as error:
            raise InputError(error.what, place=Place(self._name, number), remedy=error.remedy) from error
        if not file.exists and (trimmed := name.strip()) != name and self._places.find(trimmed, self.folders).exists:
            shown = trimmed.decode("utf-8", "backslashreplace")
            self._refuse(number, f"there are blanks around {shown}", "Remove them: they count as part of the name")
        if file.base and file.exists:
            self.used.add(file.base)
        return file

    def _take_pairs(self, file: BinaryIO) -> None:
        """Takes the rows `audio,reference`. The header `audio,text` says that the second field is the text itself."""
        from harness.transcripts.files.lists import is_header, is_text_column  # imported here, since few lists need it

        problems = Problems(self._name)
        lines = (f"{line.decode('utf-8', 'surrogateescape')}\n" for _, line in self._lines(file))
        first, texts = True, False
        for number, fields in CsvRows(lines, problems, separator_of(self._name)):
            is_first, first = first, False
            if is_first and is_header(fields):
                texts = is_text_column(fields[1])
                continue
            if len(fields) != 2:
                problem = f"{len(fields)} field{'' if len(fields) == 1 else 's'} instead of the two audio,reference"
                self._refuse(number, problem, 'Put a name with a comma in quotes: "a,b.wav",a.txt')
            elif not fields[0].strip() or not fields[1].strip():
                self._refuse(number, "a field is empty", "Write the audio file and its reference: audio.wav,audio.txt")
            elif any("\n" in field.rstrip("\n") for field in fields):
                self._refuse(number, "a field contains a line break", "Close its quote on the same line")
            else:
                audio, reference = (field.encode("utf-8", "surrogateescape") for field in fields)
                self._take(number, audio)
                if texts:
                    self._take_text(reference)
                else:
                    self._columns.add_name(reference, self._locate(number, reference).base)
            if len(self._problems) >= _MAX_PROBLEMS:
                break
        self._problems += problems.listed

    def _take_text(self, text: bytes) -> None:
        self._columns.add_name(INLINE.encode() + b" ".join(text.split()), 0)

    def _refuse(self, number: int, problem: str, remedy: str) -> None:
        self._problems.append(InputError(problem, place=Place(self._name, number), remedy=remedy))

    def _lines(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        """Number and bytes of each line, without its end."""
        tail, number, has_begun = b"", 0, False
        while True:
            try:
                block = file.read(_BLOCK)
            except OSError as error:
                raise InputError(f"cannot be read: {error.strerror or error}", place=Place(self._name)) from error
            self._digest.update(block)
            if not has_begun:
                has_begun = True
                self._check_start(block)
                block = block.removeprefix(b"\xef\xbb\xbf")
            if b"\0" in block:
                line_number = number + 1 + block[: block.index(b"\0")].count(b"\n")
                raise InputError("this is not text: it contains a NUL", place=Place(self._name, line_number))
            lines = (tail + block).split(b"\n")
            tail = lines.pop()
            if not block and tail:
                lines, tail = [tail], b""
            for line in lines:
                number += 1
                if len(line) > _MAX_LINE_BYTES:
                    raise self._too_long(number)
                yield number, line.removesuffix(b"\r")
            if len(tail) > _MAX_LINE_BYTES:
                raise self._too_long(number + 1)
            if not block:
                return

    def _check_start(self, block: bytes) -> None:
        if block.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError("this is UTF-16", place=Place(self._name), remedy="Save the list as UTF-8")
        if block.startswith(_SOUND_STARTS) and b"\0" in block[:64]:
            remedy = f"Give sound files with --in (with the phrase) or --out (without): --in {self._name}"
            raise InputError("this is a sound file, not a list", place=Place(self._name), remedy=remedy)

    def _too_long(self, number: int) -> InputError:
        problem = f"a line of more than {_MAX_LINE_BYTES >> 10} KiB: this is not a list of files"
        return InputError(problem, place=Place(self._name, number))


def _folder(name: str) -> bytes | None:
    if is_address(name):
        return os.fsencode(name.rpartition("/")[0])
    if not os.path.isfile(name):
        return None
    return os.path.dirname(os.path.abspath(os.fsencode(name)))


def _opened(name: str) -> BinaryIO:
    """Opens a list: a file, a pipe such as the shell's <(find …), or a file in a store."""
    try:
        if is_address(name):
            return open_address(name)
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            remedy = f"Give folders with --in (with the phrase) or --out (without): --in {name}"
            raise InputError("this is a folder, not a list", place=Place(name), remedy=remedy)
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
            raise InputError("this is a device or a socket, not a list", place=Place(name))
        return open(name, "rb")
    except OSError as error:
        problem = f"this list cannot be read: {error.strerror}"
        raise InputError(problem, place=Place(name), remedy="Check the name and the folder") from error
    except UnusableSound as error:
        raise InputError(f"this list cannot be read: {error.detail}", place=Place(name)) from error
    except ValueError as error:
        raise InputError(f"this is not a file name: {error}", place=Place(repr(name))) from error
