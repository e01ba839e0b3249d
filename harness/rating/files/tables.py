"""The rows of a CSV file, of JSON lines or of a Parquet file under one header, with the lines that they stand in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from harness.base.problems import Problems, shown
from harness.model.errors import HarnessError, InputError, InputProblems, Place
from harness.transcripts.files.encoding import read_bytes, read_text_and_faults
from harness.transcripts.files.lists import filled_rows

MOST_COLUMNS = 1000


@dataclass(frozen=True, slots=True)
class Table:
    """header: names of columns, each once. line: of the header, 0 where there is none. rows: line and cells.

    bad_lines: what is wrong with lines that are no rows; filled while the rows are read.
    """

    file: str
    header: list[str]
    line: int
    rows: Iterable[tuple[int, list[object]]]
    bad_lines: list[InputError] = field(default_factory=list)


def csv_table(path: Path, encoding: str | None) -> Table:
    """InputProblems where the text is none, or no CSV."""
    text, faults = read_text_and_faults(path, encoding)
    broken = Problems(str(path))
    written = list(filled_rows(text, broken))
    broken.refuse()
    line, header = written[0]
    ends = [at for at, _ in written[1:]] + [text.count("\n") + 1]
    wrong = [
        [faults[at] for at in range(begins, end) if at in faults]
        for (begins, _), end in zip(written, ends, strict=True)
    ]
    if wrong[0] or (wrong[1:] and all(wrong[1:])):
        raise InputProblems([fault for faults in wrong for fault in faults][:50])
    names = [name.strip() for name in header]
    problems = Problems(str(path))
    for at, name in enumerate(names):
        if not name:
            problems.add(line, 1, f"column {at + 1} has no name", "Name it, or take its comma out of every row")
        elif names.index(name) < at:
            problems.add(line, 1, f"two columns are called {shown(name)}", "Rename one")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        problems.add(line, 1, "columns are parted by commas here", "Save the file as CSV with commas")
    problems.refuse()
    found: list[InputError] = []
    rows = zip(written[1:], wrong[1:], strict=True)
    return Table(str(path), names, line, _csv_rows(rows, len(names), str(path), found), found)


def _csv_rows(
    written: Iterable[tuple[tuple[int, list[str]], list[InputError]]], columns: int, file: str, found: list[InputError]
) -> Iterator[tuple[int, list[object]]]:
    for (line, row), faults in written:
        if faults:
            found.append(faults[0])
            continue
        if len(row) != columns:
            what = f"{len(row)} field{'s' * (len(row) != 1)}, where the header has {columns}"
            remedy = "Write one for each column, empty for none; put a field with commas in quotes"
            found.append(InputError(what, place=Place(file, line, 1), remedy=remedy))
            continue
        yield line, list(row)


def jsonl_table(path: Path, encoding: str | None) -> Table:
    """The header holds every key of every line, in the order in which they come."""
    found: list[InputError] = []
    objects: list[tuple[int, dict[str, object]]] = []
    names: dict[str, None] = {}
    whole, faults = read_text_and_faults(path, encoding)
    for line, text in enumerate(whole.split("\n"), 1):
        if not text or text.isspace():
            continue
        if line in faults:
            found.append(faults[line])
            continue
        try:
            row = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
            if not isinstance(row, dict):
                raise ValueError(f"a line holds an object, not {shown(text)}")
        except (ValueError, RecursionError) as error:
            what = f"not a JSON object: {error}"
            remedy = 'Write one object in each line: {"trial": "t1", "rater": "ann", "category": "correct"}'
            found.append(InputError(what, place=Place(str(path), line, 1), remedy=remedy))
            continue
        names.update(dict.fromkeys(row))
        objects.append((line, row))
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"the lines have {len(names)} different keys", place=Place(str(path)), remedy="Use the same in each line"
        )
    if not objects and found:
        raise InputProblems(found[:50])
    header = list(names)
    return Table(str(path), header, 0, ((line, [row.get(name) for name in header]) for line, row in objects), found)


def parquet_table(path: Path) -> Table:
    """Lines are rows, from 1. HarnessError when the library for it is not installed."""
    if find_spec("pyarrow") is None:
        raise HarnessError(
            "Parquet files need the library pyarrow, which is not installed",
            place=Place(str(path)),
            remedy='Install it with: pip install "voice-harness[parquet]", or use CSV or JSON lines',
        )
    import pyarrow
    import pyarrow.parquet

    content = read_bytes(path)
    try:
        table = pyarrow.parquet.read_table(pyarrow.BufferReader(content))
        names = list(table.column_names)
        columns = [column.to_pylist() for column in table.columns]
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        first = str(error).split("\n")[0]
        remedy = "Check what wrote it"
        raise InputError(f"the file is no Parquet: {first}", place=Place(str(path)), remedy=remedy) from error
    if len(set(names)) < len(names):
        raise InputError("two columns have the same name", place=Place(str(path)), remedy="Rename one")
    rows = ((number, list(cells)) for number, cells in enumerate(zip(*columns, strict=True), 1))
    return Table(str(path), names, 0, rows)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")
