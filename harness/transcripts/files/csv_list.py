"""Lists of audio files and their texts (CSV), as the wake-evaluation tool's -c lists: `audio/001.wav,refs/001.txt`.

A second field that ends in .txt names a file with the text, beside the list; any other is the text itself. Texts with
commas stand in quotes. A first row such as `audio,reference` is a header, and `audio,text` or `audio,reference_file`
says which of the two all second fields are. Blank lines are skipped.
Source: snsr-eval-batch (seeds/snsr-eval-batch.txt), -c.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path

from harness.base.problems import Problems, shown
from harness.model.errors import InputError, InputProblems
from harness.model.transcript import Transcripts
from harness.transcripts.files.encoding import encoding_name, read_text

_FIRST = frozenset({"audio", "audio_file", "file", "filename", "id", "utterance"})
_SECOND_EITHER = "reference"
_SECOND_TEXT = frozenset({"hypothesis", "text", "transcript", "transcription", "heard"})
_SECOND_FILE = frozenset({"reference_file", "reference_filename", "text_file", "transcript_file"})
_TEXT_SUFFIX = ".txt"
_EXAMPLE = "Write audio file and text, or file of the text: a.wav,turn on the light; put texts with commas in quotes"


def read_csv(path: Path, encoding: str | None = None, *, may_be_empty: bool = False) -> Transcripts:
    """The texts of a list, by the audio files' names as written; InputProblems with all that is wrong with it.

    Files of texts are looked for in the list's folder, then in the current one; their lines are joined. encoding: of
    them too. may_be_empty: see read_trn.
    """
    text = read_text(path, encoding, may_be_empty=may_be_empty)
    problems = Problems(str(path))
    ids: list[str] = []
    texts: list[str] = []
    lines: list[int] = []
    first: dict[str, int] = {}
    header = ""
    for number, (line, row) in enumerate(filled_rows(text, problems)):
        if len(row) != 2:
            what = f"{len(row)} field{'s' * (len(row) != 1)}, where a row has 2"
            problems.add(line, 1, what, _EXAMPLE)
            continue
        audio, written = row[0].strip(), " ".join(row[1].split())
        if number == 0 and (header := _header(audio, written)):
            continue
        if not audio:
            problems.add(line, 1, "the row names no audio file", _EXAMPLE)
            continue
        if (known := first.setdefault(audio, line)) != line:
            what = f"the audio file {shown(audio)} is there already, in line {known}"
            problems.add(line, 1, what, "Remove one of the two rows")
            continue
        by_suffix = header not in _SECOND_TEXT and written.lower().endswith(_TEXT_SUFFIX)
        if header in _SECOND_FILE or by_suffix:
            written = _text_of(written, path, encoding, problems, line)
        ids.append(audio)
        texts.append(written)
        lines.append(line)
    problems.refuse()
    if not first and not may_be_empty:
        problems.add(0, 0, "the list has no rows", _EXAMPLE)
        problems.refuse()
    return Transcripts(str(path), tuple(ids), tuple(texts), tuple(lines), ("",) * len(ids), encoding_name(encoding))


def filled_rows(text: str, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """The fields of filled rows, with the lines that the rows begin in; notes what is no CSV."""
    if '"' not in text:
        for number, plain in enumerate(text.split("\n"), 1):
            if plain and not plain.isspace():
                yield number, plain.split(",")
        return
    # The limit is the module's own and for all readers; raised, it only lets longer fields through.
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(io.StringIO(text), strict=True)  # other signs that part lines elsewhere part none here
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = "a quote is not closed" if "unexpected end" in str(error) else f"not CSV: {error}"
            remedy = 'Put a field with commas in quotes; write a quote within it twice: "say ""hi"""'
            problems.add(line, 1, what, remedy)
            continue
        if row and any(field.strip() for field in row):
            yield line, row


def is_header(row: list[str]) -> bool:
    """Whether a list's first row is a header."""
    return len(row) == 2 and bool(_header(row[0].strip(), " ".join(row[1].split())))


def _header(first: str, second: str) -> str:
    """The second column's name, in small letters, when the row is a header; else ""."""
    name = second.lower().replace(" ", "_")
    known = name == _SECOND_EITHER or name in _SECOND_TEXT or name in _SECOND_FILE
    return name if known and first.lower().replace(" ", "_") in _FIRST else ""


def _text_of(written: str, path: Path, encoding: str | None, problems: Problems, line: int) -> str:
    beside, here = path.parent / written, Path(written)
    # Unlike that of Path, this one says no of a name that is too long, such as a text of its own.
    source = beside if os.path.isfile(beside) or not os.path.isfile(here) else here
    try:
        return " ".join(read_text(source, encoding).split())
    except InputProblems as error:
        wrong: tuple[InputError, ...] = error.problems
    except InputError as error:
        if error.what == "the file is empty":
            return ""
        wrong = (error,)
    for one in wrong:
        remedy = f"A second field that ends in {_TEXT_SUFFIX} names a file of the text, unless a header says audio,text"
        of_name = one.what.startswith(("there is no", "the file cannot be read"))
        problems.add(line, 1, f"{one.place}: {one.what}", remedy if of_name else one.remedy)
    return ""
