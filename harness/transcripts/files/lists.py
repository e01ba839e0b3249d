"""Lists of audio files and their texts (CSV), as the wake-evaluation tool's -c lists: `audio/001.wav,refs/001.txt`.

A second field that ends in .txt names a file with the text, beside the list; any other is the text itself. Texts with
commas stand in quotes. A first row such as `audio,reference` is a header. With `audio,text` all second fields are
texts, with `audio,reference_file` all are names of files. Blank lines are skipped.
Source: snsr-eval-batch (seeds/snsr-eval-batch.txt), -c.

Kaldi's `text` and JSON lines are such lists too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.base.plain_json import is_integer
from harness.base.text_file import CsvRows, Problems, encoding_name, read_text, separator_of, shown
from harness.model.errors import InputError, InputProblems, Place
from harness.model.numbers import counted
from harness.model.transcript import ColumnGrouping, Groupings, Transcripts
from harness.transcripts.files.timed import Segments, declaration, read_stm
from harness.transcripts.files.utterances import UtteranceLines

_FIRST_NAMES = frozenset({"audio", "audio_file", "file", "filename", "id", "path", "utterance"})
_SECOND_ANY = "reference"
_SECOND_TEXT = frozenset({"heard", "hypothesis", "sentence", "text", "transcript", "transcription"})
_SECOND_FILE = frozenset({"reference_file", "reference_filename", "text_file", "transcript_file"})
_TEXT_SUFFIX = ".txt"
_LIST_EXAMPLE = (
    "Begin each row with an audio file, then add its text or a text file: a.wav,turn on the light. "
    "Put text with commas in quotes"
)

_HEADER_EXAMPLE = "Begin the list with the header `audio,text`, or `audio,reference_file` if its rows name text files"


def read_csv(path: Path, encoding: str | None = None, *, may_be_empty: bool = False) -> Transcripts:
    """The texts of a list. Their ids are the names of the audio files as written.

    Raises InputProblems with all its mistakes.

    Text files are looked up in the list's folder, then in the current one, and their lines are joined.

    - encoding: that of the list and of the text files.
    - may_be_empty: see read_trn.
    """
    text = read_text(path, encoding, may_be_empty=may_be_empty)
    problems = Problems(str(path))
    ids: list[str] = []
    texts: list[str] = []
    lines: list[int] = []
    first: dict[str, int] = {}
    header = ""
    for number, (line, row) in enumerate(CsvRows.of(text, problems, separator_of(path.name))):
        if len(row) != 2:
            problem = f"{counted(len(row), 'field')}, but a row needs 2"
            problems.add(line, 1, problem, _LIST_EXAMPLE)
            continue
        audio, transcript = row[0].strip(), " ".join(row[1].split())
        if number == 0 and (header := _second_column_name(audio, transcript)):
            continue
        if not audio:
            problems.add(line, 1, "the row does not name an audio file", _LIST_EXAMPLE)
            continue
        if (first_line := first.setdefault(audio, line)) != line:
            problem = f"the audio file {shown(audio)} is already on line {first_line}"
            problems.add(line, 1, problem, "Remove one of the two rows")
            continue
        by_suffix = header not in _SECOND_TEXT and transcript.lower().endswith(_TEXT_SUFFIX)
        if header in _SECOND_FILE or by_suffix:
            transcript = _read_text_file(transcript, path, encoding, problems, line)
        ids.append(audio)
        texts.append(transcript)
        lines.append(line)
    if not header and len(ids) > 1 and not _has_suffix(ids[0]) and all(map(_has_suffix, ids[1:])):
        # An unknown header that counted as an utterance would change the word error rate unnoticed.
        problem = f"{shown(ids[0])} looks like a header: all other names have a suffix"
        problems.add(lines[0], 1, problem, _HEADER_EXAMPLE)
    problems.demand(first or may_be_empty, "the list has no rows", _LIST_EXAMPLE)
    return Transcripts(str(path), tuple(ids), tuple(texts), tuple(lines), ("",) * len(ids), encoding_name(encoding))


_KALDI_EXAMPLE = "Begin each line with the id of the utterance: utt1 turn on the light"


def read_kaldi(path: Path, encoding: str | None = None, *, may_be_empty: bool = False) -> Transcripts:
    """The transcripts of a file such as `text` of Kaldi: an id and its words in each line.

    Raises InputProblems with all its mistakes.
    """
    utterances = UtteranceLines(str(path))
    for number, line in enumerate(read_text(path, encoding, may_be_empty=may_be_empty).split("\n"), 1):
        if fields := line.split():
            utterances.add(number, fields[0], " ".join(fields[1:]), fields[0].lower())
    return utterances.transcripts(encoding, _KALDI_EXAMPLE, may_be_empty=may_be_empty)


_ID_KEYS = ("id", "utt_id", "utterance_id", "audio_filepath", "audio", "file")
_REFERENCE_KEYS = ("text", "transcript", "reference", "sentence")
_HYPOTHESIS_KEYS = ("pred_text", "hypothesis", "prediction")
_OBJECT_EXAMPLE = 'Put one object on each line: {"id": "utt1", "text": "turn on the light"}'


def read_json_lines(
    path: Path, encoding: str | None = None, *, may_be_empty: bool = False, reference: Path | None = None
) -> Transcripts:
    """The transcripts of JSON lines, such as a NeMo manifest. Raises InputProblems with all its mistakes.

    reference: see read_transcripts. If any line has a key for the hypothesis, such as `pred_text`, then a line that has
    only the reference has no hypothesis.
    """
    utterances = UtteranceLines(str(path))
    rows = list(_json_rows(read_text(path, encoding, may_be_empty=may_be_empty), utterances.problems))
    text_keys: tuple[str, ...] = _REFERENCE_KEYS
    if reference is not None:
        if any(key in row for _, row in rows for key in _HYPOTHESIS_KEYS):
            text_keys = _HYPOTHESIS_KEYS
        elif rows and path.samefile(reference):
            missing_keys = ", ".join(_HYPOTHESIS_KEYS)
            problem = f"this file is also the reference, and no line has any of these keys: {missing_keys}"
            utterances.problems.add(0, 0, problem, "Add the recognised text under the key `pred_text`")
    for number, row in rows:
        if row.keys().isdisjoint(text_keys) and not row.keys().isdisjoint(_REFERENCE_KEYS):
            continue
        values: list[str] = []
        for keys in (_ID_KEYS, text_keys):
            value = next((row[key] for key in keys if key in row), None)
            if isinstance(value, str) or is_integer(value):
                values.append(str(value))
            else:
                problem = "none of these keys has a text: " + ", ".join(keys)
                utterances.problems.add(number, 1, problem, _OBJECT_EXAMPLE)
                break
        if len(values) == 2:
            utterances.add(number, values[0], _single_spaced(values[1]), values[0].lower())
    return utterances.transcripts(encoding, _OBJECT_EXAMPLE, may_be_empty=may_be_empty)


def _json_rows(text: str, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON lines, each with the number of its line. Other lines become problems."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.add(number, 1, f"the line is not JSON: {error}", _OBJECT_EXAMPLE)
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            problems.add(number, 1, "the line is not a JSON object", _OBJECT_EXAMPLE)


def is_header(row: list[str]) -> bool:
    """Whether a list's first row is a header."""
    return len(row) == 2 and bool(_second_column_name(row[0].strip(), " ".join(row[1].split())))


def is_text_column(name: str) -> bool:
    """Whether a header's second column holds texts, not names of files with them."""
    return " ".join(name.split()).lower().replace(" ", "_") in _SECOND_TEXT


def _second_column_name(first: str, second: str) -> str:
    """The name of the second column in lower case if the row is a header; else ""."""
    name = second.lower().replace(" ", "_")
    is_second = name == _SECOND_ANY or name in _SECOND_TEXT or name in _SECOND_FILE
    return name if is_second and first.lower().replace(" ", "_") in _FIRST_NAMES else ""


def _has_suffix(name: str) -> bool:
    return bool(os.path.splitext(name)[1])


def _read_text_file(file_name: str, path: Path, encoding: str | None, problems: Problems, line: int) -> str:
    """The text of a file that a list names. Adds a problem to the line of the list if it cannot be read, and returns
    "". path: that of the list."""
    beside_list, in_current = path.parent / file_name, Path(file_name)
    # Unlike Path.is_file, this returns False for a name that is too long, such as a text.
    source = beside_list if os.path.isfile(beside_list) or not os.path.isfile(in_current) else in_current
    try:
        return " ".join(read_text(source, encoding, may_be_empty=True).split())
    except InputProblems as error:
        faults: tuple[InputError, ...] = error.problems
    except InputError as error:
        faults = (error,)
    is_file = os.path.isfile(source)
    remedy = f"A second field that ends in {_TEXT_SUFFIX} names a text file, unless the header is `audio,text`"
    for fault in faults:
        problems.add(line, 1, f"{fault.place}: {fault.what}", fault.remedy if is_file else remedy)
    return ""


ID = "id"
_GROUPS_EXAMPLE = "Begin with a header, then add a row for each utterance: id,voice,level_dbfs"
_CATEGORY = declaration("CATEGORY")


def read_groups(path: Path, encoding: str | None = None, *, case_counts: bool = False) -> Groupings:
    """The groupings of a list. Raises InputProblems with all its mistakes.

    The column `id` may stand anywhere. Each other column is a grouping, and its fields are labels, empty for none.
    case_counts: whether ids that differ only in case are different, as the names of audio files in lists are.
    """
    text = read_text(path, encoding)
    problems = Problems(str(path))
    rows = iter(CsvRows.of(text, problems, separator_of(path.name)))
    line, header_fields = next(rows, (1, [""]))
    problems.refuse()
    header = [_single_spaced(field) for field in header_fields]
    _check_header(header, line, problems)
    problems.refuse()
    id_column = header.index(ID)
    ids: list[str] = []
    table_rows: list[list[str]] = []
    first: dict[str, int] = {}
    for line, row in rows:
        if len(row) != len(header):
            problem = f"{counted(len(row), 'field')}, but the header has {len(header)}"
            problems.add(
                line,
                1,
                problem,
                "Add a field for each column, even an empty one; put fields that contain commas in quotes",
            )
            continue
        id_ = row[id_column].strip()
        if not id_:
            problems.add(line, 1, "the row has no id", _GROUPS_EXAMPLE)
            continue
        if (first_line := first.setdefault(id_ if case_counts else id_.lower(), line)) != line:
            problem = f"the id {shown(id_)} is already on line {first_line}"
            remedy = "Remove one of the two rows" + (
                "" if case_counts else "; ids that differ only in case are the same"
            )
            problems.add(line, 1, problem, remedy)
            continue
        ids.append(id_)
        table_rows.append(row)
    if not first:
        problems.add(0, 0, "the list has no rows below its header", _GROUPS_EXAMPLE)
    problems.refuse()
    columns = [column for column in zip(header, zip(*table_rows, strict=True), strict=True) if column[0] != ID]
    groupings = tuple(ColumnGrouping(name, _labels(fields)) for name, fields in columns)
    return Groupings(str(path), tuple(ids), groupings, tuple(first.values()))


def read_labels(
    path: Path, references: Transcripts, encoding: str | None = None, taken: Collection[str] = ()
) -> Groupings | None:
    """Groupings from the labels of an stm file: one for each position in `<o,f0,male>`. None without labels.

    - references: the transcripts that `read_pair` made of the file.
    - taken: names that groupings must not have.

    The file declares the names of groupings (`;; CATEGORY`) and the titles of labels (`;; LABEL`). Labels compare
    without case. A label that is not declared is its own title.
    """
    text = read_text(path, encoding)
    if "<" not in text:
        return None
    segments = read_stm(path, encoding)
    labels = {segment.line: segment.labels for segment in segments.segments if segment.labels and not segment.ignored}
    if not labels:
        return None
    titles = _label_titles(segments)
    declared_order = tuple(titles.values())  # before titles of other labels are added below
    categories = [match[2] or match[1] for line in text.split("\n") if (match := _CATEGORY.fullmatch(line))]
    groupings: list[ColumnGrouping] = []
    for position in range(max(map(len, labels.values()))):
        labelled: list[str] = []
        for line in references.lines:
            line_labels = labels.get(line, ())
            label = line_labels[position] if position < len(line_labels) else ""
            labelled.append(titles.setdefault(label.lower(), label))
        used_titles = set(labelled)
        order = tuple(title for title in declared_order if title and title in used_titles)
        category = categories[position] if position < len(categories) else ""
        name = _grouping_name(category, position, {*taken, *(grouping.name for grouping in groupings)})
        groupings.append(ColumnGrouping(name, tuple(labelled), order))
    return Groupings(references.file, references.ids, tuple(groupings))


def refuse_other_list(groups: Groupings, references: Transcripts) -> None:
    """Raises InputError if no id of a list is that of a reference: the list then belongs to other utterances."""
    reference_ids = {id_.lower() for id_ in references.ids}
    if not any(id_.lower() in reference_ids for id_ in groups.ids):
        problem = f"no id in this list matches a reference: the first is {shown(groups.ids[0])}"
        remedy = f"Use the ids of {references.file}, such as {shown(references.ids[0])}"
        raise InputError(problem, place=Place(groups.file), remedy=remedy)


def _label_titles(segments: Segments) -> dict[str, str]:
    """The title of each declared label, by its id in lower case. If two labels have the same title, the id is added to
    the second."""
    titles: dict[str, str] = {"": ""}
    for id_, declared in segments.labels:
        title = _single_spaced(declared.replace("//", " ")) or id_
        titles.setdefault(id_.lower(), f"{title} ({id_})" if title in titles.values() else title)
    return titles


def _grouping_name(declared: str, place: int, names: Collection[str]) -> str:
    """The name of the grouping of labels in a position.

    - declared: title of its category.
    - names: those of others, from which it must differ.
    """
    name = _single_spaced(declared)
    # A category is often declared by its number alone.
    title = name if name and not name.isdigit() else f"label {place + 1}"
    return f"{title} (label {place + 1})" if title in names else title


def _check_header(header: list[str], line: int, problems: Problems) -> None:
    if ID not in header:
        similar = next((name for name in header if name.lower() == ID), None)
        problem = f"the header has no column `{ID}`" + (f", only `{similar}`: case matters" if similar else "")
        problems.add(line, 1, problem, _GROUPS_EXAMPLE)
        return
    if len(header) == 1:
        problems.add(line, 1, f"the header has only the column `{ID}`", _GROUPS_EXAMPLE)
    for number, name in enumerate(header, 1):
        if not name:
            problems.add(
                line, 1, f"column {number} has no name", "Add a name, or remove the column's comma from every row"
            )
        elif header.index(name) < number - 1:
            problems.add(line, 1, f"two columns are named {shown(name)}", "Rename one of the columns")


def _labels(fields: Sequence[str]) -> tuple[str, ...]:
    # Most labels occur many times, so each is cleaned only once.
    label = {field: _single_spaced(field) for field in set(fields)}
    return tuple(map(label.__getitem__, fields))


def _single_spaced(text: str) -> str:
    return " ".join(text.split())
