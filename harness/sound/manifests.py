"""Tables of recordings: CSV and TSV with a header, JSON lines, Parquet, and the lists of Kaldi and Common Voice.

A row names one recording; its other cells describe that. Common Voice keeps the recordings of `validated.tsv` in the
folder `clips` beside it. Kaldi describes the recordings of `wav.scp` in files beside it: the words in `text`, the
talkers in `utt2spk`.
Sources: https://kaldi-asr.org/doc/data_prep.html; Common Voice's `CorporaCreator`, which doubles quotes in its tables.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.base.plugins import pip_install
from harness.base.text_file import TABS, CsvRows, Problems, read_text, separator_of, shown
from harness.model.errors import InputError, Place
from harness.model.frozen import frozen
from harness.model.numbers import counted

KALDI = ".scp"
MANIFESTS = (".csv", TABS, KALDI, ".jsonl", ".parquet")
AUDIO = ("audio", "audio_file", "audio_filepath", "file", "filename", "path", "wav")
FOREIGN_LISTS = (TABS, KALDI)
"""Suffixes of lists that are not simply one path in each line."""
TEXT = ("text", "sentence", "transcript", "transcription", "reference")
"""Columns with the words of a recording."""
ID = "id"
_TIMES = ("_s", "_ms")
"""Endings of the names of columns with times."""
_CLIPS = "clips"
_TALKERS = "utt2spk"
_SEGMENTS = "segments"
_CONVERTED = (".wav", ".flac")
"""Suffixes of converted recordings, which are preferred to the MP3 files of Common Voice."""
_IN_ARCHIVE = re.compile(r"\.ark:\d+(\[.*\])?$")


@frozen
class ManifestRow:
    """A row.

    - line: its line in the file, or the number of the row.
    - cells: column → cell, without surrounding blanks.
    """

    line: int
    cells: dict[str, str]


@frozen
class Manifest:
    """A table.

    - header: names of its columns.
    - line: the line of the file with these names.
    """

    file: str
    header: tuple[str, ...]
    line: int
    rows: tuple[ManifestRow, ...]


def column_of(header: Sequence[str], names: Sequence[str]) -> str | None:
    """The first of the names that is a column, in upper or lower case, as the header writes it; None if none is."""
    columns = {column.lower(): column for column in reversed(header)}
    return next((columns[name] for name in names if name in columns), None)


def read_manifest(path: str, encoding: str | None = None, *, padded: bool = True) -> Manifest:
    """The table in a file; InputError, or InputProblems with the line of each, if it is not a table.

    padded: whether a row may be shorter than the header.
    """
    lower = path.lower()
    if lower.endswith(KALDI):
        return _read_kaldi(path, encoding)
    if lower.endswith(".parquet"):
        return _manifest_of_rows(path, enumerate(_parquet_rows(path), 1))
    if lower.endswith(".jsonl"):
        return _manifest_of_rows(path, _json_rows(path, encoding))
    problems = Problems(path)
    text = read_text(Path(path), encoding, as_written=True)
    table = CsvRows.of(text, problems, separator_of(path))
    rows = iter(table)
    first_line, header_cells = next(rows, (1, []))
    problems.refuse()
    header = tuple(name.strip() for name in header_cells)
    for index, name in enumerate(header):
        if name and header.index(name) < index:
            problems.add(first_line, 0, f"two columns are named {shown(name)}", "Rename one of the columns")
    manifest_rows: list[ManifestRow] = []
    for line, cells in rows:
        if len(cells) > len(header) or (len(cells) < len(header) and not padded):
            problem = f"the row has {counted(len(cells), 'cell')}, but the header has {len(header)}"
            problems.add(
                line, 0, problem, "Add a cell for each column, even an empty one; quote cells that contain commas"
            )
        else:
            cells += [""] * (len(header) - len(cells))
            row_cells = {
                name: table.number(cell) if name.endswith(_TIMES) else cell.strip()
                for name, cell in zip(header, cells, strict=True)
            }
            manifest_rows.append(ManifestRow(line, row_cells))
    problems.refuse()
    if lower.endswith(TABS):
        _find_clips(path, header, manifest_rows)
    return Manifest(path, header, first_line, tuple(manifest_rows))


def _find_clips(path: str, header: Sequence[str], rows: Sequence[ManifestRow]) -> None:
    """Sets the path of each recording in a table of Common Voice to the file that exists, converted or not.

    A table without a column of recordings, or without the folder `clips` beside it, stays as it is.
    """
    folder = os.path.dirname(path)
    if (audio := column_of(header, AUDIO)) is None or not os.path.isdir(os.path.join(folder, _CLIPS)):
        return
    for row in rows:
        name = row.cells[audio]
        stem, ending = os.path.splitext(name)
        names = [*(f"{stem}{suffix}" for suffix in _CONVERTED if ending.lower() == ".mp3"), name]
        candidates = [os.path.join(subfolder, variant) for variant in names for subfolder in (_CLIPS, "")]
        row.cells[audio] = next(
            (candidate for candidate in candidates if os.path.isfile(os.path.join(folder, candidate))), name
        )


def _manifest_of_rows(path: str, rows: Iterator[tuple[int, dict[str, str]]]) -> Manifest:
    manifest_rows = tuple(
        ManifestRow(line, {name: cell.strip() for name, cell in cells.items()}) for line, cells in rows
    )
    return Manifest(path, tuple(dict.fromkeys(name for row in manifest_rows for name in row.cells)), 1, manifest_rows)


def _json_rows(path: str, encoding: str | None) -> Iterator[tuple[int, dict[str, str]]]:
    """The number and the cells of each line of JSON lines. Raises InputProblems at the end if some are not objects."""
    problems = Problems(path)
    for number, line in enumerate(read_text(Path(path), encoding).split("\n"), 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.add(number, 0, f"this manifest cannot be read: {error}", "Put one JSON object on each line")
            continue
        if isinstance(document, dict):
            yield number, {str(name): _cell_text(value) for name, value in document.items()}
        else:
            problems.add(
                number, 0, "the line is not a JSON object", 'Put an object such as {"audio": "a.wav"} on each line'
            )
    problems.refuse()


def _parquet_rows(path: str) -> Iterator[dict[str, str]]:
    """The cells of each row. Raises InputError if the file cannot be read, or pyarrow is not installed."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise InputError(
            "reading Parquet needs pyarrow",
            place=Place(path),
            remedy=f"Install it: {pip_install('parquet')}, or use CSV",
        ) from error
    try:
        for row in parquet.read_table(path).to_pylist():
            yield {str(name): _cell_text(value) for name, value in row.items()}
    except ArrowException as error:
        raise InputError(f"this is not Parquet: {error}", place=Place(path), remedy="Export the table again") from error
    except OSError as error:
        raise InputError(
            f"this manifest cannot be read: {error.strerror or error}",
            place=Place(path),
            remedy="Check the path and its permissions",
        ) from error


def _cell_text(value: object) -> str:
    """A value of JSON or Parquet as the text of a cell: "" for none, JSON for anything but texts."""
    if value is None:
        return ""
    return " ".join(value.split()) if isinstance(value, str) else json.dumps(value, default=str)


def _read_kaldi(path: str, encoding: str | None) -> Manifest:
    """The table of a wav.scp with the files beside it. Commands and archives, which Kaldi allows, are refused."""
    problems = Problems(path)
    sound_by_id: dict[str, tuple[int, str]] = {}
    for line, id_, name in _id_lines(path, encoding):
        if name.endswith("|"):
            problem = f"the sound of {shown(id_)} comes from a command, which the harness does not run"
            problems.add(line, 0, problem, "Write the sounds to files, and list these files: wav-copy scp:wav.scp …")
        elif _IN_ARCHIVE.search(name):
            problem = f"the sound of {shown(id_)} is in a Kaldi archive"
            problems.add(line, 0, problem, "Write the sounds to files, and list these files: wav-copy scp:wav.scp …")
        elif not name:
            problems.add(line, 0, f"{shown(id_)} has no file", "Put an id and a file on each line: utt1 a.wav")
        elif id_ in sound_by_id:
            first_line, _ = sound_by_id[id_]
            problems.add(line, 0, f"{shown(id_)} is already on line {first_line}", "Remove one of the lines")
        else:
            sound_by_id[id_] = (line, name)
    problems.refuse()
    folder = os.path.dirname(path)
    if os.path.isfile(segments := os.path.join(folder, _SEGMENTS)):
        raise InputError(
            "this file cuts the recordings in wav.scp into utterances, which is not supported",
            place=Place(segments),
            remedy="Cut the recordings yourself: extract-segments scp:wav.scp segments …",
        )
    further_columns: dict[str, dict[str, str]] = {}
    for column, name in ((TEXT[0], TEXT[0]), ("speaker", _TALKERS)):
        table_path = os.path.join(folder, name)
        if os.path.isfile(table_path):
            further_columns[column] = {id_: text for _, id_, text in _id_lines(table_path, encoding)}
    rows = tuple(
        ManifestRow(
            line, {ID: id_, AUDIO[0]: name, **{column: texts.get(id_, "") for column, texts in further_columns.items()}}
        )
        for id_, (line, name) in sound_by_id.items()
    )
    return Manifest(path, (ID, AUDIO[0], *further_columns), 1, rows)


def _id_lines(path: str, encoding: str | None) -> Iterator[tuple[int, str, str]]:
    """Yields the number, the first word and the rest of each line that is not empty."""
    for number, line in enumerate(read_text(Path(path), encoding).split("\n"), 1):
        if fields := line.split(maxsplit=1):
            yield number, fields[0], fields[1].strip() if len(fields) > 1 else ""
