"""Lists of recordings: a CSV file that says of each recording where its phrase ends and what else is known of it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import soundfile

from harness.model.errors import InputError, Place
from harness.model.scenario import AxisName, RecordingFacts

PATH, PHRASE_END = "recording", "phrase_end_ms"
_COLUMN = re.compile(r"[a-z][a-z0-9_]{0,31}")
_COMMENT = re.compile(rf"\b{PHRASE_END}\s*[=:]\s*(\d+(?:\.\d+)?)")
MOST_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Listed:
    """A row. path: as written, relative to the list's folder."""

    path: str
    facts: RecordingFacts
    place: Place


def read_list(path: Path) -> tuple[Listed, ...]:
    """The rows of a list, in order; InputError with file and line for whatever is wrong with one."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            found = tuple(_rows(csv.reader(file, strict=True), str(path)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"the list cannot be read: {error}", place=Place(str(path)), remedy="Save it as CSV, UTF-8"
        ) from error
    if not found:
        raise InputError("the list has no recordings", place=Place(str(path)), remedy="Add a row for each recording")
    return found


def phrase_end_s(path: Path) -> float | None:
    """Where the phrase ends, as the file's own comment says (`phrase_end_ms=1234`); None where it does not."""
    with soundfile.SoundFile(path) as file:
        found = _COMMENT.search(str(file.comment or ""))
    return None if found is None else float(found[1]) / 1000


def _rows(lines: Iterator[list[str]], name: str) -> Iterator[Listed]:
    header = [cell.strip() for cell in next(lines, [])]
    first = Place(name, 1)
    if header.count(PATH) != 1:
        found = ", ".join(header) or "nothing"
        remedy = f"Begin the file with {PATH},{PHRASE_END},talker and any further columns"
        raise InputError(f"the header has no column {PATH!r}; found {found}", place=first, remedy=remedy)
    for column in header:
        if column in get_args(AxisName):
            remedy = "Give the column another name, such as recorded_" + column
            raise InputError(f"the column {column!r} is called like an axis of the matrix", place=first, remedy=remedy)
        if not _COLUMN.fullmatch(column) or header.count(column) > 1:
            remedy = "Use each name once: small letters, digits and _, at most 32"
            raise InputError(f"the header has a wrong column name: {column!r}", place=first, remedy=remedy)
    for number, cells in enumerate(lines, start=2):
        if not any(cell.strip() for cell in cells):
            continue
        place = Place(name, number)
        if len(cells) != len(header):
            what = f"the row has {len(cells)} cells, the header {len(header)}"
            raise InputError(what, place=place, remedy="Put values with commas in quotes")
        if number > MOST_ROWS:
            raise InputError(f"the list has more than {MOST_ROWS} rows", place=place, remedy="Split it")
        row = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        end = row.pop(PHRASE_END, "")
        yield Listed(row.pop(PATH), RecordingFacts(_seconds(end, place), tuple(row.items())), place)


def _seconds(written: str, place: Place) -> float | None:
    if not written:
        return None
    try:
        found = float(written)
    except ValueError:
        found = -1.0
    if not 0 < found < 3_600_000:
        remedy = "Write milliseconds from the start of the file, or leave it empty"
        raise InputError(f"{PHRASE_END} {written!r} is not a time", place=place, remedy=remedy)
    return found / 1000
