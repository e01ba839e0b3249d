"""Intents by id as CSV (`id,intent` or `ID,intent`): the form of the public MEDIA intent files.

Only the intent column is parted at #; an id may hold # and, in quotes, commas. A column `text` is the words, every
other one is a group. Source: spec understanding (Public intent files).
"""

from __future__ import annotations

from pathlib import Path

from harness.base.problems import Problems, shown
from harness.base.safe_csv import unmarked
from harness.model.errors import InputError, InputProblems, Place
from harness.model.understanding import Utterance, intent_set
from harness.transcripts.files.encoding import read_text
from harness.transcripts.files.lists import filled_rows, is_header
from harness.understanding.files.bio_folder import split_words
from harness.understanding.files.lines import as_utf_8

ID, INTENT, TEXT = "id", "intent", "text"
_NEARLY = frozenset({INTENT, "intents", "intention", "intentions", "intentlabel", "intentlabels", "intentname"})
_EXAMPLE = "Write a header, then a row for each utterance: id,intent"


def read_intents_csv(path: Path, name: str) -> list[Utterance]:
    """The utterances of a file; InputProblems with all that is wrong with it."""
    problems = Problems(name)
    rows = filled_rows(csv_text(path, name), problems)
    line, written = next(rows, (1, [""]))
    header = [" ".join(field.split()) for field in written]
    columns = [field.lower() if field.lower() in (ID, INTENT, TEXT) else field for field in header]
    _check_header(columns, line, problems)
    problems.refuse()
    id_at, intent_at = columns.index(ID), columns.index(INTENT)
    text_at = columns.index(TEXT) if TEXT in columns else None
    others = [at for at in range(len(columns)) if at not in (id_at, intent_at, text_at)]
    found: list[Utterance] = []
    first: dict[str, int] = {}
    kept: dict[str, tuple[str, ...]] = {}
    for line, row in rows:
        if len(row) != len(columns):
            what = f"{len(row)} field{'s' * (len(row) != 1)}, where the header has {len(columns)}"
            problems.add(line, 0, what, "Put a field with commas in quotes; see whether the file was cut off")
            continue
        id_ = unmarked(row[id_at].strip())
        if not id_:
            problems.add(line, 0, "the row has no id", _EXAMPLE)
            continue
        if (known := first.setdefault(id_, line)) != line:
            problems.add(line, 0, f"the id {shown(id_)} is there already, in line {known}", "Remove one of the rows")
            continue
        label = row[intent_at]
        if label not in kept:
            kept[label] = intent_set(" ".join(unmarked(label.strip()).split()))
        words = () if text_at is None else tuple(split_words(unmarked(row[text_at])))
        groups = tuple((columns[at], " ".join(unmarked(row[at]).split())) for at in others)
        found.append(Utterance(id_, words, kept[label], groups=groups, place=Place(name, line)))
    problems.refuse()
    if not found:
        raise InputError("the file has no rows below its header", place=Place(name), remedy=_EXAMPLE)
    return found


def is_intents_file(text: str) -> bool:
    """Whether the first row of a file is a header of intents: as it should be, or so nearly that nothing else is meant.

    So `id,intents` is a header with a mistake in it, and not an utterance; `id,text` is one of texts.
    """
    _, row = next(filled_rows(text, Problems("")), (0, []))
    fields = ["".join(field.split()).lower().replace("_", "") for one in row for field in one.split(";")]
    return not _NEARLY.isdisjoint(fields) or (fields[:1] == [ID] and not is_header(row))


def csv_text(path: Path, name: str) -> str:
    """The text of a file with the name that a person knows in what is wrong with it."""
    try:
        return read_text(path)
    except InputProblems as error:
        raise InputProblems([_named(one, name) for one in error.problems]) from error
    except InputError as error:
        raise _named(error, name) from error


def _named(error: InputError, name: str) -> InputError:
    at = error.place
    place = Place(name) if at is None else Place(name, at.line, at.column)
    return as_utf_8(InputError(error.what, place=place, remedy=error.remedy))


def _check_header(columns: list[str], line: int, problems: Problems) -> None:
    for name in (ID, INTENT):
        if name not in columns:
            parted = next((mark for mark in ";\t" if any(mark in one for one in columns)), "")
            one = "; columns are parted by commas" if parted else ""
            what = f"the header has no column {name}: found {shown(','.join(columns))}; expected {ID},{INTENT}"
            problems.add(line, 0, what, f"{_EXAMPLE}{one}")
            return
    for at, name in enumerate(columns):
        if not name:
            problems.add(line, 0, f"column {at + 1} has no name", "Name it, or take its comma out of every row")
        elif columns.index(name) < at:
            problems.add(line, 0, f"two columns are called {shown(name)}", "Rename one")
