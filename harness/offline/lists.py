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
from harness.model.offline import INLINE, PHRASE, LabelledPhrase, ListedFile, ListKind, RejectReason
from harness.model.stimulus import SoundCondition
from harness.offline.file_sources import CollectedFiles, collect_files, demand_phrase_ends
from harness.offline.journal_lines import ListFacts
from harness.sound.manifests import FOREIGN_LISTS, MANIFESTS, TEXT
from harness.sound.sound_stores import check_store, is_address, kind_of_store, local_file, local_path, open_address
from harness.sound.wave_file import UnusableSound

_REASONS = (None, RejectReason.TWICE, RejectReason.BOTH)
_TWICE, _BOTH = 1, 2
"""Indices in _REASONS."""
_KEY_BYTES = 16
"""Length of the hash of a file's path. With 8, two of 10⁷ files would be taken for the same in one of 400,000 lists."""
_MAX_FOLDERS = 4096
"""Number of folders whose real paths are cached."""
_BLOCK = 1 << 18
"""Bytes that are read at once."""
_MAX_LINE_BYTES = 1 << 16
"""In bytes. The longest path in Linux has 4,096."""
_MAX_REPORTED_PROBLEMS = 20
_SOUND_STARTS = (b"RIFF", b"RF64", b"BW64", b"fLaC", b"OggS", b"ID3", b"FORM", b".snd")


class _FileColumns:
    """The files of one kind of list, as columns.

    - bases: the folders in which relative names were found, shared by all kinds. A name with base 0 is absolute or an
      address.
    - names: joined bytes of all names. With references, there are two names for each file.
    - keys: _KEY_BYTES bytes for each file, until `_mark_repeated`; reasons: an index in _REASONS for each, after it.
    - labels: for each file, its labelled phrases; empty without labels.
    """

    def __init__(self, kind: ListKind, bases: list[bytes]) -> None:
        self.kind, self.bases = kind, bases
        self.names, self.keys, self.reasons = bytearray(), bytearray(), bytearray()
        self._ends, self._lines, self._sizes = array("Q"), array("Q"), array("Q")
        self._base_indices = array("H")
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
        self._base_indices.append(base)

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
            rejected=_REASONS[self.reasons[number]],
            labels=self.labels[number] if self.labels else (),
            size=self._sizes[number],
        )

    def _name(self, index: int) -> tuple[bytes, bytes]:
        """A name as listed, and its path."""
        start = self._ends[index - 1] if index else 0
        name = bytes(self.names[start : self._ends[index]])
        base = self._base_indices[index]
        return name, os.path.join(self.bases[base], name) if base else name


def _files(columns: Sequence[_FileColumns], conditions: Sequence[SoundCondition]) -> Sequence[ListedFile]:
    """All files of an evaluation: in-vocabulary or referenced ones first, each kind in the order of its lists.

    conditions: each file occurs once for each of them, one after the other. Empty: once, as it is.
    """
    repeats = max(1, len(conditions))

    def file_at(number: int) -> ListedFile:
        for file_columns in columns:
            if number < repeats * len(file_columns):
                file = file_columns.file(number // repeats)
                return _in_condition(file, number, conditions[number % repeats]) if conditions else file
            number -= repeats * len(file_columns)
        raise IndexError(number)

    return LazySequence(repeats * sum(map(len, columns)), file_at)


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
            raise InputError(problem, place=Place(file.listed), remedy="Copy or unpack it, and give the local folder")


CONDITION = "condition"
"""Name of the column with the label of the whole condition. Each axis of the conditions is a further column."""
Columns = Mapping[str, Mapping[ListKind, Sequence[str]]]
"""For each column and kind of list, the value for each file; "" for none."""


def _columns_in_conditions(
    columns: Columns, files: Mapping[ListKind, int], conditions: Sequence[SoundCondition]
) -> Columns:
    """The columns for files that occur once for each condition, with the columns of the conditions added. files: number
    of files of each kind, without repetitions."""
    if not conditions:
        return columns
    repeats = len(conditions)

    def repeat_each(values: Sequence[str]) -> Sequence[str]:
        return LazySequence(repeats * len(values), lambda index: values[index // repeats])

    def repeat_all(count: int, values: Sequence[str]) -> Sequence[str]:
        return LazySequence(repeats * count, lambda index: values[index % repeats])

    all_columns: dict[str, dict[ListKind, Sequence[str]]] = {}
    for name, by_kind in columns.items():
        all_columns[name] = {kind: repeat_each(values) for kind, values in by_kind.items()}
    condition_columns = {CONDITION: [condition.label() for condition in conditions]}
    for name, _ in conditions[0].axes:
        condition_columns[name] = [dict(condition.axes).get(name, "") for condition in conditions]
    for name, values in condition_columns.items():
        all_columns[name] = {kind: repeat_all(count, values) for kind, count in files.items()}
    return all_columns


def _mark_repeated(kinds: Sequence[_FileColumns]) -> None:
    """Rejects later entries of a file that is listed twice, and all entries of a file that is both in and out of
    vocabulary. kinds: all kinds, of which the last two are out of vocabulary and labelled. Frees the keys: call it
    last."""
    keys = np.frombuffer(b"".join(columns.keys for columns in kinds), dtype=np.uint64).reshape(-1, 2)
    marks = np.zeros(len(keys), np.uint8)
    if len(keys):
        order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: equal keys stay in list order
        repeated = np.append(False, (keys[order[1:]] == keys[order[:-1]]).all(axis=1))
        marks[order[repeated]] = _TWICE
        firsts = np.flatnonzero(~repeated)
        lasts = np.append(firsts[1:], len(order)) - 1
        in_vocabulary = sum(map(len, kinds[:-2]))
        # Of the entries of one file, in list order, the first is in vocabulary and the last is not.
        in_both = (order[firsts] < in_vocabulary) & (order[lasts] >= in_vocabulary)
        marks[order[np.repeat(in_both, lasts - firsts + 1)]] = _BOTH
    start = 0
    for columns in kinds:
        columns.reasons = bytearray(marks[start : start + len(columns)].tobytes())
        columns.keys = bytearray()
        start += len(columns)


class _FileLocation(NamedTuple):
    """Where a name was looked up.

    base: index of the folder for a relative name; 0 for another name. exists: whether there is a file. is_link: whether
    it is a symbolic link. size: in bytes; 0 if unknown.
    """

    base: int
    exists: bool
    is_link: bool
    path: bytes
    size: int = 0


class _FileFinder:
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

    def lookup_folders(self, folder: bytes | None) -> tuple[int, ...]:
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
            kind = kind_of_store(address)
            if kind not in self._stores:
                check_store(address)
                self._stores.add(kind)
            return _FileLocation(0, True, False, name)
        if name.startswith(b"/"):
            exists, is_link, size = _file_status(name)
            return _FileLocation(0, exists, is_link, name, size)
        for base in folders:
            path = self.bases[base] + b"/" + name
            if _is_listed_address(path):
                return _FileLocation(base, True, False, path)
            exists, is_link, size = _file_status(path)
            if exists:
                return _FileLocation(base, True, is_link, path, size)
        return _FileLocation(folders[0], False, False, self.bases[folders[0]] + b"/" + name)

    def key(self, file: _FileLocation) -> bytes:
        """A hash that is equal for two names of the same file: of its real path (links resolved), or of an address as
        written."""
        path = file.path
        if _is_listed_address(path):
            local = local_path(os.fsdecode(path))
            return _path_digest(path if local is None else os.fsencode(os.path.realpath(local)))
        folder, _, name = path.rpartition(b"/")
        if file.is_link or name in (b"", b".", b".."):
            return _path_digest(os.path.realpath(path))
        real = self._real_folders.get(folder)
        if real is None:
            if len(self._real_folders) >= _MAX_FOLDERS:
                self._real_folders.clear()
            real = os.path.realpath(folder or b"/").rstrip(b"/")
            self._real_folders[folder] = real
        return _path_digest(real + b"/" + name)

    def _base(self, folder: bytes) -> int:
        """Index of a folder in `bases`, to which it is added if it is new."""
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
    is_link = stat.S_ISLNK(file_status.st_mode)
    return True, is_link, 0 if is_link else file_status.st_size


def _path_digest(path: bytes) -> bytes:
    return hashlib.blake2b(path, digest_size=_KEY_BYTES).digest()


@frozen
class Listing:
    """What an evaluation plays.

    files, lists: those in vocabulary or with references first, then those out of vocabulary. bases: the folders in
    which relative names were found.
    """

    files: Sequence[ListedFile]
    lists: tuple[ListFacts, ...]
    bases: tuple[str, ...]
    columns: Columns
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
    finder = _FileFinder()
    sources: tuple[tuple[ListKind, Sequence[str | CollectedFiles]], ...] = (
        (ListKind.INV, [*(_table_or_list(path, encoding) for path in inv), *inside]),
        (ListKind.REFERENCED, [_referenced_table_or_list(path, encoding) for path in referenced]),
        (ListKind.OOV, [*(_table_or_list(path, encoding) for path in oov), *outside]),
        (ListKind.LABELLED, long),
    )
    _, in_vocabulary = sources[0]
    for source in in_vocabulary:
        if isinstance(source, CollectedFiles):
            demand_phrase_ends(source)
    files_by_kind: list[_FileColumns] = []
    lists: list[ListFacts] = []
    bases: dict[str, None] = {}
    for kind, kind_sources in sources:
        columns = _FileColumns(kind, finder.bases)
        files_by_kind.append(columns)
        for source in kind_sources:
            reader = _ListReader(source, finder, columns)
            lists.append(reader.read())
            if isinstance(source, CollectedFiles):
                columns.labels += source.labels
            used_bases = [base for base in reader.folders if base in reader.used_folders]
            bases |= dict.fromkeys(os.fsdecode(finder.bases[base]) for base in used_bases)
    _mark_repeated(files_by_kind)
    counts = {columns.kind: len(columns) for columns in files_by_kind}
    columns_of_all = _collected_columns(sources, lists)
    repeats = max(1, len(conditions))
    return Listing(
        files=_files(files_by_kind, conditions),
        lists=tuple(replace(list_facts, files=repeats * list_facts.files) for list_facts in lists),
        bases=tuple(bases),
        columns=_columns_in_conditions(columns_of_all, counts, conditions),
        label_columns=_label_columns(long),
    )


def _collected_columns(
    sources: Sequence[tuple[ListKind, Sequence[str | CollectedFiles]]], lists: Sequence[ListFacts]
) -> dict[str, dict[ListKind, list[str]]]:
    """The columns that collected files have, over all lists of each kind; "" for files of other lists. lists: the facts
    of each source, in the same order."""
    collected = [source for _, kind_sources in sources for source in kind_sources if isinstance(source, CollectedFiles)]
    names = dict.fromkeys(name for source in collected for name in source.columns)
    columns: dict[str, dict[ListKind, list[str]]] = {}
    remaining_lists = iter(lists)
    for kind, kind_sources in sources:
        for source in kind_sources:
            blank = ("",) * next(remaining_lists).files
            source_columns = source.columns if isinstance(source, CollectedFiles) else {}
            for name in names:
                columns.setdefault(name, {}).setdefault(kind, []).extend(source_columns.get(name, blank))
    return columns


def _label_columns(long: Sequence[CollectedFiles]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for source in long:
        for labels in source.labels:
            for label in labels:
                names |= dict.fromkeys((PHRASE, *(name for name, _ in label.traits)))
    return tuple(names)


def _table_or_list(name: str, encoding: str | None) -> str | CollectedFiles:
    """The recordings of a table of another tool, or the name of a list of paths."""
    if name.lower().endswith(FOREIGN_LISTS) and os.path.isfile(name):
        return collect_files(name, encoding)
    return name


def _referenced_table_or_list(name: str, encoding: str | None) -> str | CollectedFiles:
    """As `_table_or_list`, for recordings with references. InputError for a recording without words."""
    if not (name.lower().endswith(_TABLES) and os.path.isfile(name)):
        return name
    table = collect_files(name, encoding)
    if not table.texts:
        remedy = f"Add a column named {TEXT[0]} or {', '.join(TEXT[1:])}"
        if name.lower().endswith(FOREIGN_LISTS):
            remedy += "; for wav.scp, put Kaldi's file `text` next to it"
        raise InputError("the list has no transcripts of its recordings", place=Place(name), remedy=remedy)
    for recording, text in zip(table.names, table.texts, strict=True):
        if not text.strip():
            raise InputError(f"the list has no transcript for {recording}", place=Place(name), remedy="Add one")
    return table


_TABLES = tuple(ending for ending in MANIFESTS if ending != ".csv")
"""Endings of lists that are read as tables. CSV is a list of pairs, which needs no header."""


class _ListReader:
    """Reads one list, or collected files, into columns. used_folders: indices of folders in which names were found."""

    def __init__(self, source: str | CollectedFiles, finder: _FileFinder, columns: _FileColumns) -> None:
        self._collected = source if isinstance(source, CollectedFiles) else None
        self._name = source.place if isinstance(source, CollectedFiles) else source
        self._finder, self._columns = finder, columns
        self._digest = hashlib.sha256()
        self.folders: tuple[int, ...] = ()
        self.used_folders: set[int] = set()
        self._problems: list[InputError] = []

    def read(self) -> ListFacts:
        """Adds the files of the list to the columns. InputError or InputProblems if it is not a list."""
        count_before = len(self._columns)
        with self._open() as file:
            if self._columns.kind is ListKind.REFERENCED and self._collected is None:
                self._add_pairs(file)
            else:
                self._add_names(file)
        if self._problems:
            raise InputProblems(self._problems) if len(self._problems) > 1 else self._problems[0]
        count = len(self._columns) - count_before
        if not count:
            raise InputError("this list contains no files", place=Place(self._name), remedy="Write one path per line")
        sha256 = None if self._collected is None else self._collected.sha256()
        return ListFacts(self._name, sha256 or self._digest.hexdigest(), self._columns.kind, count)

    def _open(self) -> BinaryIO:
        """Opens the list, or the names of collected files as a list. Sets `folders`."""
        if self._collected is None:
            file = _open_list(self._name)
            self.folders = self._finder.lookup_folders(_folder_of_list(self._name))
            return file
        folder = self._collected.folder
        self.folders = self._finder.lookup_folders(None if folder is None else os.fsencode(folder))
        return io.BytesIO(self._collected.content())

    def _add_names(self, file: BinaryIO) -> None:
        """Adds the file on each line; collected files with references get their texts."""
        texts: tuple[str, ...] = ()
        if self._columns.kind is ListKind.REFERENCED and self._collected is not None:
            texts = self._collected.texts
        for number, line in self._lines(file):
            if not line.strip():
                continue
            self._add_file(number, line)
            if texts:
                self._add_text(texts[number - 1].encode("utf-8", "surrogatepass"))
            if len(self._problems) >= _MAX_REPORTED_PROBLEMS:
                break

    def _add_file(self, number: int, line: bytes) -> None:
        file = self._locate(number, line)
        self._columns.add(number, line, file.base, self._finder.key(file), file.size)

    def _locate(self, number: int, name: bytes) -> _FileLocation:
        """Where a file is. Adds a problem if the file exists only under the name without its surrounding blanks."""
        try:
            file = self._finder.find(name, self.folders)
        except InputError as error:
            raise InputError(error.what, place=Place(self._name, number), remedy=error.remedy) from error
        if not file.exists:
            trimmed = name.strip()
            if trimmed != name and self._finder.find(trimmed, self.folders).exists:
                shown = trimmed.decode("utf-8", "backslashreplace")
                self._refuse(number, f"there are spaces around {shown}", "Remove them: they count as part of the name")
        if file.base and file.exists:
            self.used_folders.add(file.base)
        return file

    def _add_pairs(self, file: BinaryIO) -> None:
        """Adds the rows `audio,reference`. The header `audio,text` says that the second field is the text itself."""
        from harness.transcripts.files.lists import is_header, is_text_column  # imported here, since few lists need it

        problems = Problems(self._name)
        lines = (f"{line.decode('utf-8', 'surrogateescape')}\n" for _, line in self._lines(file))
        has_texts = False
        for row, (number, fields) in enumerate(CsvRows(lines, problems, separator_of(self._name))):
            if row == 0 and is_header(fields):
                has_texts = is_text_column(fields[1])
                continue
            if len(fields) != 2:
                problem = f"expected two fields, `audio,reference`, but found {len(fields)}"
                self._refuse(number, problem, 'Put names that contain a comma in quotes: "a,b.wav",a.txt')
            elif not fields[0].strip() or not fields[1].strip():
                self._refuse(number, "a field is empty", "Write the audio file and its reference: audio.wav,audio.txt")
            elif any("\n" in field.rstrip("\n") for field in fields):
                self._refuse(number, "a field contains a line break", "Close the quotes on the same line")
            else:
                audio, reference = (field.encode("utf-8", "surrogateescape") for field in fields)
                self._add_file(number, audio)
                if has_texts:
                    self._add_text(reference)
                else:
                    self._columns.add_name(reference, self._locate(number, reference).base)
            if len(self._problems) >= _MAX_REPORTED_PROBLEMS:
                break
        self._problems += problems.listed

    def _add_text(self, text: bytes) -> None:
        """Adds a text as the reference of the file added last."""
        self._columns.add_name(INLINE.encode() + b" ".join(text.split()), 0)

    def _refuse(self, number: int, problem: str, remedy: str) -> None:
        self._problems.append(InputError(problem, place=Place(self._name, number), remedy=remedy))

    def _lines(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        """Number and bytes of each line, without its end. InputError for what cannot be a list. Every byte goes into
        the hash of the list."""
        tail, number, has_begun = b"", 0, False
        while True:
            try:
                block = file.read(_BLOCK)
            except OSError as error:
                raise InputError(f"cannot be read: {error.strerror or error}", place=Place(self._name)) from error
            self._digest.update(block)
            if not has_begun:
                has_begun = True
                self._demand_text(block)
                block = block.removeprefix(b"\xef\xbb\xbf")
            if b"\0" in block:
                line_number = number + 1 + block[: block.index(b"\0")].count(b"\n")
                raise InputError("this is not text: it contains a NUL byte", place=Place(self._name, line_number))
            lines = (tail + block).split(b"\n")
            tail = lines.pop()
            if not block and tail:
                lines, tail = [tail], b""
            for line in lines:
                number += 1
                if len(line) > _MAX_LINE_BYTES:
                    raise self._too_long_error(number)
                yield number, line.removesuffix(b"\r")
            if len(tail) > _MAX_LINE_BYTES:
                raise self._too_long_error(number + 1)
            if not block:
                return

    def _demand_text(self, block: bytes) -> None:
        """InputError for UTF-16 and for sound files, by the first bytes."""
        if block.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError("this list is UTF-16", place=Place(self._name), remedy="Save the list as UTF-8")
        if block.startswith(_SOUND_STARTS) and b"\0" in block[:64]:
            remedy = f"For sound files, use --in (with the phrase) or --out (without it): --in {self._name}"
            raise InputError("this is a sound file, not a list", place=Place(self._name), remedy=remedy)

    def _too_long_error(self, number: int) -> InputError:
        problem = f"a line has more than {_MAX_LINE_BYTES >> 10} KiB: this is not a list of files"
        return InputError(problem, place=Place(self._name, number))


def _folder_of_list(name: str) -> bytes | None:
    """The folder of a list, or the part of an address before its last slash; None for a pipe."""
    if is_address(name):
        return os.fsencode(name.rpartition("/")[0])
    if not os.path.isfile(name):
        return None
    return os.path.dirname(os.path.abspath(os.fsencode(name)))


def _open_list(name: str) -> BinaryIO:
    """Opens a list: a file, a pipe such as the shell's <(find …), or a file in a store."""
    try:
        if is_address(name):
            return open_address(name)
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            remedy = f"For folders, use --in (with the phrase) or --out (without it): --in {name}"
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
