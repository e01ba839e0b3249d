"""Files that a scenario names, most of them sounds: only below its own folder or a named asset root."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import get_args

import soundfile

from harness.base.findings import Findings, KeyPath
from harness.base.text_file import as_utf_8, without_mark
from harness.model.errors import InputError, InputProblems, Place, nearest
from harness.model.numbers import exact, moment
from harness.model.scenario import PLACING_AXES, AxisName, RecordingFacts, Scenario
from harness.model.stimulus import Recording
from harness.sound.manifests import FOREIGN_LISTS, MANIFESTS, ManifestRow, read_manifest
from harness.sound.recordings import assumed
from harness.sound.recordings import check as check_recording

PATH, PHRASE_END = "recording", "phrase_end_ms"
_COLUMN_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_PHRASE_END_COMMENT = re.compile(rf"\b{PHRASE_END}\s*[=:]\s*(\d+(?:\.\d+)?)")
TALKER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
MAX_ROWS = 100_000
_FOREIGN_COLUMNS = {
    "path": PATH, "audio": PATH, "client_id": "talker", "speaker": "talker", "age": "age", "gender": "gender",
    "accents": "accents", "variant": "variant", "locale": "locale",
}  # fmt: skip
"""Column of Common Voice or Kaldi → our name for it. Their other columns, such as votes, are left out.

Otherwise each of those would count as a condition of the recording.
"""


ListedRecording = tuple[str, RecordingFacts, Place]
"""A row of a list of recordings: (path as written, relative to the folder of the list, facts, place of the row)."""


def read_list(path: Path) -> tuple[ListedRecording, ...]:
    """The rows of a list, in order. Raises InputError with file and line for the first mistake.

    Its columns are PATH, PHRASE_END and any others; those of Common Voice and Kaldi have other names.
    """
    name = str(path)
    try:
        table = read_manifest(name, padded=False)
    except InputError as error:
        raise as_utf_8(error) from error
    name_by_column = {column: column for column in table.header}
    if PATH not in name_by_column and name.lower().endswith(FOREIGN_LISTS):
        name_by_column = {column: _FOREIGN_COLUMNS[column] for column in table.header if column in _FOREIGN_COLUMNS}
    header = [name_by_column[column] for column in table.header if column in name_by_column]
    place = Place(name, table.line)
    if header.count(PATH) != 1:
        columns = ", ".join(header) or "nothing"
        remedy = f"Start the file with a header such as `{PATH},{PHRASE_END},talker`"
        raise InputError(f"the header has no column {PATH!r}; found {columns}", place=place, remedy=remedy)
    check_columns(header, place)
    if len(table.rows) > MAX_ROWS:
        raise InputError(f"the list has more than {MAX_ROWS} rows", place=Place(name), remedy="Split the list")
    if not table.rows:
        raise InputError("the list contains no recordings", place=Place(name), remedy="Add a row for each recording")
    return tuple(_read_row(row, name_by_column, Place(name, row.line)) for row in table.rows)


def _read_row(row: ManifestRow, name_by_column: Mapping[str, str], place: Place) -> ListedRecording:
    cells = {name: without_mark(row.cells[column]) for column, name in name_by_column.items()}
    end = cells.pop(PHRASE_END, "")
    return cells.pop(PATH), RecordingFacts(_parse_phrase_end(end, place), tuple(cells.items())), place


def phrase_end_s(path: Path) -> float | None:
    """End of the phrase from the comment in the file (`phrase_end_ms=1234`), s; None without one."""
    with soundfile.SoundFile(path) as file:
        match = _PHRASE_END_COMMENT.search(str(file.comment or ""))
    return None if match is None else float(match[1]) / 1000


def check_columns(header: Sequence[str], place: Place) -> None:
    """Raises InputError for a column that a list of recordings cannot have."""
    for column in header:
        # A column that places the talker clashes only if the matrix has the same axis.
        if column in get_args(AxisName) and column not in PLACING_AXES:
            remedy = f"Rename the column, for example to `recorded_{column}`"
            raise InputError(f"the column {column!r} has the same name as a matrix axis", place=place, remedy=remedy)
        if not _COLUMN_NAME.fullmatch(column) or header.count(column) > 1:
            remedy = "Use unique names of at most 32 lowercase letters, digits and underscores"
            raise InputError(f"the column name {column!r} is not valid, or occurs twice", place=place, remedy=remedy)


def _parse_phrase_end(cell: str, place: Place) -> float | None:
    """The end of a phrase in s from a cell in ms; None for an empty cell. Raises InputError for anything else."""
    if not cell:
        return None
    try:
        time_ms = float(cell)
    except ValueError:
        time_ms = -1.0
    if not 0 < time_ms < 3_600_000:
        remedy = "Write milliseconds from the start of the file, or leave the cell empty"
        raise InputError(f"{PHRASE_END} {cell!r} is not a time", place=place, remedy=remedy)
    return time_ms / 1000


def length_notes(scenario: Scenario) -> Iterator[str]:
    """Notes on recordings whose header and file do not agree about their length. These are not mistakes."""
    for path in dict.fromkeys(_recordings_in(scenario)):
        if note := assumed(path):
            yield f"{Path(path).name!r}: {note}"


def _recordings_in(value: object) -> Iterator[str]:
    """Paths of the recordings that occur in a value, at any depth. value: a scenario or a part of it."""
    if isinstance(value, tuple):
        for part in value:
            yield from _recordings_in(part)
    elif isinstance(value, Recording):
        yield value.path
    elif is_dataclass(value):
        for field in fields(value):
            part = getattr(value, field.name)
            if field.name == "recordings":
                yield from part
            elif field.name == "recording" and isinstance(part, str):
                yield part
            else:
                yield from _recordings_in(part)


SOUND_SUFFIXES = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff")
_GLOB = re.compile(r"[*?\[]")


class Assets:
    """Finds the files that a YAML file names, in its folder and its asset roots. Notes problems in `findings`.

    Paths are relative to the folder of the YAML file, or `root:path`.
    """

    def __init__(self, folder: Path, findings: Findings) -> None:
        self._folder = folder
        self._findings = findings
        self._roots: dict[str, Path] = {}
        self._refused_roots: set[str] = set()

    def add_roots(self, folders: Mapping[str, str], extra: Mapping[str, Path]) -> None:
        """Adds the roots that the file names (relative to its folder); `extra` overrides them."""
        for name, text in folders.items():
            if name in extra:
                continue
            if Path(text).is_absolute():
                self._refuse_root(name, f"{text!r} is an absolute path", "Write a path relative to this file's folder")
            elif not _is_folder(self._folder / text):
                self._refuse_root(
                    name, f"there is no folder {text!r} relative to this file", "Create the folder, or correct the path"
                )
            else:
                self._roots[name] = (self._folder / text).resolve()
        self._roots.update({name: path.resolve() for name, path in extra.items()})

    def _refuse_root(self, name: str, problem: str, remedy: str) -> None:
        self._refused_roots.add(name)
        self._findings.add(("assets", name), problem, remedy)

    def sound_path(self, text: str, key_path: KeyPath) -> str:
        """The absolute path of a playable recording; "" if there was a problem, which is noted."""
        root, root_name, inner = self._split_root(text, key_path)
        if root is None:
            return ""
        duration_s = self._checked_duration_s(root, inner, root_name, key_path)
        return "" if duration_s is None else str((root / inner).resolve())

    def file_path(self, text: str, key_path: KeyPath) -> Path | None:
        """The absolute path of an existing file of any kind; None if there was a problem, which is noted."""
        root, root_name, inner = self._split_root(text, key_path)
        if root is None:
            return None
        problem = _missing_file_reason(root, inner, root_name, "a file")
        if problem:
            self._findings.add(key_path, *problem)
            return None
        return (root / inner).resolve()

    def sound_durations(self, text: str, key_path: KeyPath) -> dict[str, float]:
        """Absolute paths of the sound files that a file name, a folder or a pattern stands for, with durations in s.

        In the order of their names; only those that can be played. Notes problems.
        """
        root, root_name, inner = self._split_root(text, key_path)
        if root is None:
            return {}
        if Path(inner).is_absolute():
            self._findings.add(
                key_path, f"{inner!r} is an absolute path", "Write a relative path, or declare an asset root"
            )
            return {}
        try:
            if (root / inner).is_dir():
                paths = sorted(path for path in (root / inner).iterdir() if path.suffix.lower() in SOUND_SUFFIXES)
            elif _GLOB.search(inner) and not (root / inner).exists():  # a name may have brackets: take[2].wav
                paths = sorted(path for path in root.glob(inner) if path.suffix.lower() in SOUND_SUFFIXES)
            else:
                paths = [root / inner]
        except (OSError, ValueError, NotImplementedError) as error:
            self._findings.add(key_path, f"{inner!r} cannot be read: {error}", "Check the path and its permissions")
            return {}
        if not paths:
            problem = f"{inner!r} in {root_name} matches no sound file"
            self._findings.add(
                key_path,
                problem,
                f"Specify a folder, or a pattern that matches sound files ({', '.join(SOUND_SUFFIXES)})",
            )
        durations: dict[str, float] = {}
        for path in paths:
            duration_s = self._checked_duration_s(root, str(path.relative_to(root)), root_name, key_path)
            if duration_s is not None:
                durations[str(path.resolve())] = duration_s
        return durations

    def recording_facts(self, text: str, key_path: KeyPath) -> dict[str, RecordingFacts]:
        """Path of each file that `sound_durations` finds → facts, from the columns of a list, else from the file."""
        if not text.lower().endswith(MANIFESTS):
            durations = self.sound_durations(text, key_path)
            return {
                path: RecordingFacts(self._phrase_end_comment(path, duration_s, key_path))
                for path, duration_s in durations.items()
            }
        if (path := self.file_path(text, key_path)) is None:
            return {}
        try:
            rows = read_list(path)
        except InputError as error:
            self._findings.problems += error.problems if isinstance(error, InputProblems) else [error]
            return {}
        facts_by_path: dict[str, RecordingFacts] = {}
        prefix = text[: max(text.rfind("/"), text.rfind(":")) + 1]
        for name, known_facts, place in rows:
            problem_count = len(self._findings.problems)
            for sound, duration_s in self.sound_durations(prefix + name, key_path).items():
                facts = known_facts
                if facts.phrase_end_s is None:
                    facts = replace(facts, phrase_end_s=self._phrase_end_comment(sound, duration_s, key_path))
                elif facts.phrase_end_s > duration_s:
                    ends = f"the phrase ends at {exact(facts.phrase_end_s)} s"
                    message = f"{ends}, but {name!r} is {moment(duration_s)} long"
                    self._findings.add_at(place, message, f"Correct `{PHRASE_END}` or the recording")
                if facts_by_path.setdefault(sound, facts) != facts:
                    self._findings.add_at(
                        place, f"an earlier row has other values for {name!r}", "Keep one of the two rows"
                    )
            for problem in self._findings.problems[problem_count:]:
                problem.place = place
        return facts_by_path

    def _phrase_end_comment(self, path: str, duration_s: float, key_path: KeyPath) -> float | None:
        """End of the phrase from the comment in the file, s; notes an impossible value."""
        ends_s = phrase_end_s(Path(path))
        if ends_s is not None and not 0 < ends_s <= duration_s:
            comment = f"the comment in {Path(path).name!r} puts the end of the phrase at {exact(ends_s)} s"
            problem = f"{comment}, outside the recording ({moment(duration_s)})"
            self._findings.add(key_path, problem, "Correct the comment in the file")
        return ends_s

    def _checked_duration_s(self, root: Path, inner: str, root_name: str, key_path: KeyPath) -> float | None:
        """Reads a whole recording and returns its duration, s; None if there was a problem, which is noted."""
        problem = _missing_file_reason(root, inner, root_name, "a sound file")
        if problem is None:
            try:
                return check_recording(str((root / inner).resolve()))
            except InputError as error:
                problem = error.what.replace("the recording", repr(inner), 1), error.remedy
        self._findings.add(key_path, *problem)
        return None

    def _split_root(self, text: str, key_path: KeyPath) -> tuple[Path | None, str, str]:
        """The folder that a path is relative to, its name for messages, and the path in it."""
        if ":" not in text:
            return self._folder.resolve(), "this file's folder", text
        name, inner = text.split(":", 1)
        if name not in self._refused_roots:
            self._findings.is_known(key_path, "asset root", name, self._roots, "Asset roots")
        return self._roots.get(name), f"the asset root {name!r}", inner


def _missing_file_reason(root: Path, inner: str, root_name: str, name: str) -> tuple[str, str] | None:
    """Why a path is not a file in its root, and the remedy; None if it is a file.

    name: what the path should be, for the remedy, such as a sound file.
    """
    if Path(inner).is_absolute():
        return (
            f"{inner!r} is an absolute path",
            "Write a relative path, or declare an asset root: `assets: {name: folder}`",
        )
    try:
        path = (root / inner).resolve()
        if not path.is_relative_to(root):
            return (
                f"{inner!r} points outside {root_name}",
                "Declare the folder of the file as an asset root: `assets: {name: folder}`",
            )
        if not path.exists():
            siblings = [child.name for child in path.parent.iterdir()] if path.parent.is_dir() else []
            return f"there is no file {inner!r} in {root_name}", nearest(
                path.name, sorted(siblings), listed="In that folder"
            )
        if not path.is_file():
            return f"{inner!r} is not a file", f"Specify {name}"
    except (OSError, RuntimeError, ValueError) as error:
        return f"{inner!r} cannot be read: {error}", "Check the path and its permissions"
    return None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
