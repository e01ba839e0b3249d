"""Files of judgments, read whole and checked row by row: CSV with a header, JSON lines, Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.base.findings import nearest
from harness.base.problems import Problems, shown
from harness.base.safe_csv import unmarked
from harness.model.choices import JudgmentFormat as Format
from harness.model.errors import InputError, InputProblems, Place
from harness.model.judgment import COLUMNS, CONDITION, CONTEXT, Category, Content
from harness.rating.files.cells import Value, WrongCell, value_of
from harness.rating.files.row import WrittenJudgment, row_of
from harness.rating.files.tables import Table, csv_table, jsonl_table, parquet_table

ALIASES = {
    "session_id": "session",
    "trial_id": "trial",
    "clip": "clip_sha256",
    "label": "category",
    "time": "given_wall_s",
}
"""Other names that columns may have."""
NEEDED = ("rater", "category")


@dataclass(frozen=True, slots=True)
class ReadJudgments:
    """rows: the right ones, in the file's order. problems: of the others. bad: rows that have one.

    left_out: columns that mean nothing here, and are not ours.
    """

    rows: tuple[WrittenJudgment, ...]
    problems: tuple[InputError, ...]
    bad: int
    left_out: tuple[str, ...]


def format_of(path: Path) -> Format:
    """By the file's suffix; InputError."""
    suffix = path.suffix.lower().lstrip(".")
    known = {"ndjson": Format.JSONL, **{one.value: one for one in Format}}
    if suffix not in known:
        remedy = "Name it .csv, .jsonl or .parquet, or say what it is: --csv, --jsonl, --parquet"
        raise InputError("the file's suffix does not say what it holds", place=Place(str(path)), remedy=remedy)
    return known[suffix]


def read_judgments(
    path: Path,
    kind: Format,
    categories: Mapping[str, Category],
    names: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> ReadJudgments:
    """All rows of a file; InputError, InputProblems when it is no table of judgments at all.

    categories: by every word that stands for one, in small letters. names: columns that are called otherwise, as
    column → field.
    """
    match kind:
        case Format.CSV:
            table = csv_table(path, encoding)
        case Format.JSONL:
            table = jsonl_table(path, encoding)
        case Format.PARQUET:
            table = parquet_table(path)
    fields = _fields(table, names or {})
    problems = Problems(str(path))
    rows: list[WrittenJudgment] = []
    bad = seen = 0
    contents = [(at, field, COLUMNS[field]) for at, field in enumerate(fields) if field]
    for line, cells in table.rows:
        seen += 1
        try:
            rows.append(row_of(line, _values(cells, contents, marked=kind is Format.CSV), categories))
        except WrongCell as wrong:
            problems.add(line, 1 if kind is not Format.PARQUET else 0, wrong.what, wrong.remedy)
            bad += 1
    bad += len(table.bad_lines)
    if not seen and not bad:
        raise InputError("the file has no rows", place=Place(str(path)), remedy="Check what was to write it")
    left_out = tuple(name for name, field in zip(table.header, fields, strict=True) if not field and not _ours(name))
    return ReadJudgments(tuple(rows), (*table.bad_lines, *_told(problems)), bad, left_out)


def _values(cells: list[object], contents: list[tuple[int, str, Content]], *, marked: bool) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for at, field, content in contents:
        cell = cells[at]
        if cell is None or cell == "":
            continue
        if marked and isinstance(cell, str):
            cell = unmarked(cell)
        try:
            value = value_of(cell, content)
        except WrongCell as wrong:
            raise WrongCell(f"{field}: {wrong.what}", wrong.remedy) from wrong
        if value is not None:
            values[field] = value
    return values


def _fields(table: Table, names: Mapping[str, str]) -> list[str]:
    """The field of each column, "" for none; InputProblems."""
    problems = Problems(table.file)
    fields: list[str] = []
    for column, field in names.items():
        if column not in table.header:
            problems.add(table.line, 0, f"there is no column {shown(column)}", nearest(column, table.header))
        if field not in COLUMNS:
            problems.add(0, 0, f"there is no field {shown(field)}", nearest(field, list(COLUMNS)))
    for column in table.header:
        name = column.strip().lower()
        field = names.get(column) or ALIASES.get(name, name if name in COLUMNS else "")
        if field and field in fields:
            problems.add(table.line, 1, f"two columns are {field}", "Rename one of them, or map it: --map COLUMN=FIELD")
        fields.append(field)
    for needed in NEEDED:
        if needed not in fields and not (needed == "category" and "status" in fields):
            remedy = f"Add it, or say which one it is: --map COLUMN={needed}. {nearest(needed, table.header)}"
            problems.add(table.line, 1, f"no column is {needed}", remedy)
    if "trial" not in fields and "clip_sha256" not in fields:
        remedy = f"Add one, or say which it is: --map COLUMN=trial. {nearest('trial', table.header)}"
        problems.add(table.line, 1, "no column says which response is judged: trial or clip_sha256", remedy)
    problems.refuse()
    return fields


def _ours(name: str) -> bool:
    return name in CONTEXT or name.startswith(CONDITION)


def _told(problems: Problems) -> tuple[InputError, ...]:
    try:
        problems.refuse()
    except InputProblems as found:
        return found.problems
    return ()
