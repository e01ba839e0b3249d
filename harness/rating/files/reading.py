"""Files of judgments, read whole and checked row by row: CSV with a header, JSON lines, Parquet."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from harness.base.plain_json import refuse_constant
from harness.base.text_file import (
    MAX_LISTED,
    CsvRows,
    Problems,
    read_bytes,
    read_text_and_faults,
    separator_of,
    shown,
    without_mark,
)
from harness.base.typed_table import ColumnContent, demand_parquet
from harness.base.user_text import checked_text, person_name
from harness.model.choices import JudgmentFormat as Format
from harness.model.effect import EffectOutcome
from harness.model.errors import InputError, InputProblems, Place, did_you_mean, nearest
from harness.model.frozen import frozen
from harness.model.judgment import SUB_FLAGS_OF, Category, Flag, JudgmentStatus, ProposalShown, SubFlag
from harness.model.numbers import WRITTEN_NUMBER, counted
from harness.rating.reports.judgment_table import COLUMNS, CONDITION, CONTEXT

MAX_COLUMNS = 1000


@frozen
class RawRows:
    """The rows of a file, not yet checked.

    - header: column names, all different. header_line: line number of the header; 0 if the file has none.
    - rows: line number and cells of each row.
    - bad_lines: errors in lines that are not rows; filled while the rows are read.
    - normalise_number: turns the text of a number in a cell into the form that Python reads.
    """

    file: str
    header: list[str]
    header_line: int
    rows: Iterable[tuple[int, list[object]]]
    bad_lines: list[InputError]
    normalise_number: Callable[[str], str] = str


def read_csv(path: Path, encoding: str | None) -> RawRows:
    """Reads CSV with a header. Raises InputProblems if the file is not text or not CSV."""
    text, faults = read_text_and_faults(path, encoding, as_written=True)
    csv_problems = Problems(str(path))
    table = CsvRows.of(text, csv_problems, separator_of(path.name))
    lines = list(table) or [(1, [])]
    csv_problems.refuse()
    header_line, header = lines[0]
    # A row may have several lines: it ends where the next one begins.
    ends = [number for number, _ in lines[1:]] + [max(faults, default=0) + 1]
    faults_by_row = [
        [faults[number] for number in range(begin, end) if number in faults]
        for (begin, _), end in zip(lines, ends, strict=True)
    ]
    header_faults, *row_faults = faults_by_row
    if header_faults or (row_faults and all(row_faults)):
        raise InputProblems([fault for faults_of_row in faults_by_row for fault in faults_of_row][:MAX_LISTED])
    names = [name.strip() for name in header]
    problems = Problems(str(path))
    for index, name in enumerate(names):
        if not name:
            remedy = "Add a name, or remove the column's comma from every row"
            problems.add(header_line, 1, f"column {index + 1} has no name", remedy)
        elif names.index(name) < index:
            problems.add(header_line, 1, f"two columns are named {shown(name)}", "Rename one of the columns")
    problems.refuse()
    errors: list[InputError] = []
    rows = _checked_csv_rows(zip(lines[1:], row_faults, strict=True), len(names), str(path), errors)
    return RawRows(str(path), names, header_line, rows, errors, table.number)


def _checked_csv_rows(
    rows: Iterable[tuple[tuple[int, list[str]], list[InputError]]],
    column_count: int,
    file: str,
    errors: list[InputError],
) -> Iterator[tuple[int, list[object]]]:
    """The rows without faults and with a field for each column. Adds the errors of the others."""
    for (line, row), faults in rows:
        if faults:
            errors.append(faults[0])
            continue
        if len(row) != column_count:
            problem = f"{counted(len(row), 'field')}, but the header has {column_count}"
            remedy = "Add a field for each column, even an empty one; put fields that contain commas in quotes"
            errors.append(InputError(problem, place=Place(file, line, 1), remedy=remedy))
            continue
        yield line, list(row)


def read_jsonl(path: Path, encoding: str | None) -> RawRows:
    """Reads JSON lines. The header has every key that occurs, in order of first occurrence.

    Raises InputError for too many keys, and InputProblems if no line is valid.
    """
    errors: list[InputError] = []
    objects: list[tuple[int, dict[str, object]]] = []
    names: dict[str, None] = {}
    file_text, faults = read_text_and_faults(path, encoding)
    for line, text in enumerate(file_text.split("\n"), 1):
        if not text or text.isspace():
            continue
        if line in faults:
            errors.append(faults[line])
            continue
        try:
            row = json.loads(text, object_pairs_hook=_object_without_duplicates, parse_constant=refuse_constant)
            if not isinstance(row, dict):
                raise ValueError(f"a line must be an object, not {shown(text)}")
        except (ValueError, RecursionError) as error:
            problem = f"the line is not a JSON object: {error}"
            remedy = 'Write one object on each line: {"trial": "t1", "rater": "ann", "category": "correct"}'
            errors.append(InputError(problem, place=Place(str(path), line, 1), remedy=remedy))
            continue
        names.update(dict.fromkeys(row))
        objects.append((line, row))
    if len(names) > MAX_COLUMNS:
        raise InputError(
            f"the lines have {len(names):,} different keys, more than {MAX_COLUMNS:,}",
            place=Place(str(path)),
            remedy="Use the same keys on each line",
        )
    if not objects and errors:
        raise InputProblems(errors[:MAX_LISTED])
    header = list(names)
    rows = ((line, [row.get(name) for name in header]) for line, row in objects)
    return RawRows(str(path), header, header_line=0, rows=rows, bad_lines=errors)


def read_parquet(path: Path) -> RawRows:
    """Reads Parquet. Its rows, from 1, count as lines.

    Raises InputError for a file that is not valid, and HarnessError if the library for it is not installed.
    """
    demand_parquet(Place(str(path)))
    import pyarrow
    import pyarrow.parquet

    content = read_bytes(path)
    try:
        table = pyarrow.parquet.read_table(pyarrow.BufferReader(content))
        names = list(table.column_names)
        columns = [column.to_pylist() for column in table.columns]
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        remedy = "Check the program that wrote the file"
        raise InputError(f"the file is not Parquet: {reason}", place=Place(str(path)), remedy=remedy) from error
    if len(set(names)) < len(names):
        raise InputError("two columns have the same name", place=Place(str(path)), remedy="Rename one of the columns")
    rows = ((number, list(cells)) for number, cells in enumerate(zip(*columns, strict=True), 1))
    return RawRows(str(path), names, header_line=0, rows=rows, bad_lines=[])


def _object_without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key occurs twice")
    return fields


Value = str | int | float | bool | tuple[str, ...]
MAX_CELL_CHARS = 100_000
_WHOLE = re.compile(r"[-+]?[0-9]{1,15}(\.0+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_EXACT_FLOAT = 1 << 53  # whole numbers below are exact as floats
_YES = frozenset({"true", "yes", "1"})
_NO = frozenset({"false", "no", "0"})


class WrongCell(Exception):
    """A value that is not valid in its column, or a row that belongs to no response. The reader of the row adds the
    line."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.what = problem
        self.remedy = remedy


def parse_cell(cell: object, content: ColumnContent) -> Value | None:
    """The value of a cell; None if it is empty. Raises WrongCell."""
    if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, str):
        if len(cell) > MAX_CELL_CHARS:
            raise WrongCell(f"the text has {len(cell):,} characters", f"Use at most {MAX_CELL_CHARS:,} characters")
        _refuse_surrogates(cell)
    return _PARSERS[content](cell)


def _refuse_surrogates(text: str) -> None:
    if not text.isascii() and _SURROGATE.search(text):
        raise WrongCell(f"{shown(text)} contains an incomplete character", "Use complete Unicode characters")


def _parse_text(cell: object) -> str | None:
    match cell:
        case str():
            return cell if cell.strip() else None
        case bool() | list() | dict():
            raise WrongCell(f"{shown(str(cell))} is not text", "Put the text in quotes")
    return str(cell)


def _parse_integer(cell: object) -> int | None:
    match cell:
        case bool():
            pass
        case int() if abs(cell) < _MAX_EXACT_FLOAT:
            return cell
        case float() if cell.is_integer() and abs(cell) < _MAX_EXACT_FLOAT:
            return int(cell)
        case str() if not cell.strip():
            return None
        case str() if _WHOLE.fullmatch(cell.strip()):
            return int(cell.strip().partition(".")[0])
    raise WrongCell(f"{shown(str(cell))} is not a whole number", "Use digits only")


def _parse_number(cell: object) -> float | None:
    number = math.nan
    match cell:
        case bool():
            pass
        case int() | float():
            number = float(cell) if abs(cell) < 1e300 else math.inf  # float() refuses whole numbers beyond 1.8e308
        case str() if not cell.strip():
            return None
        case str() if WRITTEN_NUMBER.fullmatch(cell.strip()):
            number = float(cell.strip())
        case str():
            number = _parse_time(cell.strip())
        case datetime():
            number = _parse_time(cell.isoformat())
    if not math.isfinite(number):
        remedy = "Use a number, such as 12.5; for a time, use Unix time or 2026-01-31T10:00:00Z"
        raise WrongCell(f"{shown(str(cell))} is not a number", remedy)
    return number


def _parse_time(text: str) -> float:
    """Unix time of an ISO 8601 time with a zone; NaN for anything else."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    return moment.timestamp() if moment.tzinfo is not None else math.nan


def _parse_yes_no(cell: object) -> bool | None:
    if isinstance(cell, bool):
        return cell
    word = str(cell).strip().lower()
    if not word:
        return None
    if word in _YES or word in _NO:
        return word in _YES
    raise WrongCell(f"{shown(str(cell))} is not true or false", "Use true or false")


def _parse_list(cell: object) -> tuple[str, ...] | None:
    items: object = cell
    if isinstance(cell, str):
        text = cell.strip()
        if text.startswith("["):
            try:
                items = json.loads(text)
            except (ValueError, RecursionError) as error:
                remedy = 'Use one;two, or a JSON list: ["one", "two"]'
                raise WrongCell(f"{shown(text)} is not a list", remedy) from error
        else:
            items = [word.strip() for word in text.split(";")]
    if not isinstance(items, list) or not all(isinstance(word, str) for word in items):
        raise WrongCell(f"{shown(str(cell))} is not a list of words", "Use one;two")
    for word in items:
        _refuse_surrogates(word)
    return tuple(word for word in items if word) or None


_PARSERS: dict[ColumnContent, Callable[[object], Value | None]] = {
    ColumnContent.TEXT: _parse_text,
    ColumnContent.WHOLE: _parse_integer,
    ColumnContent.NUMBER: _parse_number,
    ColumnContent.YES_NO: _parse_yes_no,
    ColumnContent.LIST: _parse_list,
}


_MINIMA = {"take": 1, "attempt": 1, "position": 1, "plays": 0, "heard_ms": 0, "time_to_answer_s": 0}
_ENUM_COLUMNS: dict[str, type[StrEnum]] = {
    "status": JudgmentStatus, "effect": EffectOutcome, "proposed": Category, "proposal_shown": ProposalShown,
    "unaided": Category
}  # fmt: skip
_ENUM_LIST_COLUMNS: dict[str, type[StrEnum]] = {"sub_flags": SubFlag, "flags": Flag}


@frozen
class ParsedJudgment:
    """A row with valid values, whose response is not looked up yet.

    - line: its line in the file, from 1; for Parquet its row.
    - values: the values that are not empty, by column.
    - category: None unless the status is SUBMITTED.
    """

    line: int
    values: Mapping[str, Value]
    status: JudgmentStatus
    category: Category | None

    def text(self, column: str) -> str:
        """The value of a column as text; "" if it is empty."""
        return str(self.values.get(column, ""))

    def integer(self, column: str) -> int | None:
        """The value of a column if it is a whole number; else None."""
        number = self.values.get(column)
        return number if isinstance(number, int) else None


def check_row(line: int, values: dict[str, Value], categories: Mapping[str, Category]) -> ParsedJudgment:
    """Checks the values of a row against each other, and parses words. Raises WrongCell.

    - values: by column; they are changed.
    - categories: the category for every accepted word, in lower case.
    """
    rater = str(values.get("rater", "")).strip()
    if not rater:
        raise WrongCell("the row has no rater", "Add the rater's pseudonym")
    try:
        person_name(rater, "rater name")
        checked_text(str(values.get("comment", "")))
    except InputError as error:
        raise WrongCell(error.what, error.remedy) from error
    values["rater"] = rater
    if not values.get("trial") and not values.get("clip_sha256"):
        raise WrongCell(
            "the row does not identify a response",
            "Add the response's trial, or the SHA-256 of its clip (`clip_sha256`)",
        )
    _check_numbers(values)
    if ("span_start_s" in values) != ("span_end_s" in values):
        raise WrongCell(
            "only one of `span_start_s` and `span_end_s` is filled in", "Fill in both columns, or leave both empty"
        )
    for column, enum in _ENUM_COLUMNS.items():
        if column in values:
            values[column] = _parse_enum_value(str(values[column]), enum, column)
    for column, enum in _ENUM_LIST_COLUMNS.items():
        cell = values.get(column)
        if isinstance(cell, tuple):
            values[column] = tuple(_parse_enum_value(word, enum, column) for word in cell)
    category = _parse_category(str(values.pop("category", "")), categories)
    status = _check_status(values.pop("status", None), category)
    _check_sub_flags(values.get("sub_flags", ()), category)
    return ParsedJudgment(line, values, status, category)


def _check_numbers(values: Mapping[str, Value]) -> None:
    for column, minimum in _MINIMA.items():
        number = values.get(column)
        if isinstance(number, int | float) and number < minimum:
            raise WrongCell(f"`{column}` is {number}", f"Use a number of at least {minimum}")
    if values.get("confidence", 1) not in (1, 2, 3):
        raise WrongCell(f"the confidence cannot be {values['confidence']}", "Use 1 (unsure), 2 or 3 (sure)")
    probability = values.get("proposed_probability")
    if isinstance(probability, int | float) and not 0 <= probability <= 1:
        raise WrongCell(f"`proposed_probability` cannot be {probability}", "Use a number from 0 to 1")
    confidence = values.get("program_confidence")
    if isinstance(confidence, int | float) and not (values.get("program") and 0 <= confidence <= 1):
        raise WrongCell(
            f"`program_confidence` cannot be {confidence}", "Use a number from 0 to 1, and true in the column `program`"
        )


def _parse_enum_value(text: str, enum: type[StrEnum], column: str) -> StrEnum:
    word = text.strip().lower().replace(" ", "_")
    allowed = [member.value for member in enum]
    if word not in allowed:
        raise WrongCell(f"{shown(text)} is not a valid value of {column}", nearest(word, allowed))
    return enum(word)


def _parse_category(text: str, categories: Mapping[str, Category]) -> Category | None:
    """The category that a cell names; None for an empty one."""
    word = " ".join(text.lower().split())
    if not word:
        return None
    category = categories.get(word)
    if category is None:
        remedy = f"{did_you_mean(word, categories)}Categories: {', '.join(Category)}; or their keys 1 to 9, 0 and -"
        raise WrongCell(f"{shown(text)} is not a category", remedy)
    return category


def _check_status(value: Value | None, category: Category | None) -> JudgmentStatus:
    """The status of a row, which must fit its category. Without a status, the category decides."""
    if value is None:
        if category is None:
            raise WrongCell("the row has no category", "Add a category, or a status such as `skipped`")
        return JudgmentStatus.SUBMITTED
    status = JudgmentStatus(str(value))
    if status is JudgmentStatus.SUBMITTED and category is None:
        raise WrongCell("the row has the status `submitted`, but no category", "Add a category, or change the status")
    if status is not JudgmentStatus.SUBMITTED and category is not None:
        raise WrongCell(
            f"the row has the status `{status}`, but also a category",
            "Remove the category, or change the status to `submitted`",
        )
    return status


def _check_sub_flags(sub_flags: Value, category: Category | None) -> None:
    allowed = SUB_FLAGS_OF.get(category, ()) if category is not None else ()
    for sub_flag in sub_flags if isinstance(sub_flags, tuple) else ():
        if sub_flag not in allowed:
            carrier = category.value if category is not None else "a row without a category"
            allowed_text = ", ".join(allowed) or "none"
            raise WrongCell(
                f"the sub-flag {sub_flag} cannot be used with {carrier}", f"Allowed sub-flags: {allowed_text}"
            )


ALIASES = {
    "session_id": "session",
    "trial_id": "trial",
    "clip": "clip_sha256",
    "label": "category",
    "time": "given_wall_s",
}
"""Other names that columns may have."""
REQUIRED_FIELDS = ("rater", "category")


@frozen
class JudgmentFile:
    """A file of judgments.

    - rows: the valid rows, in order.
    - problems: errors of other rows, of which only the first are listed.
    - bad_count: number of other rows.
    - ignored_columns: unknown columns.
    """

    rows: tuple[ParsedJudgment, ...]
    problems: tuple[InputError, ...]
    bad_count: int
    ignored_columns: tuple[str, ...]


def format_from_suffix(path: Path) -> Format:
    """The format that a file's suffix names. Raises InputError for another suffix."""
    suffix = path.suffix.lower().lstrip(".")
    formats = {"ndjson": Format.JSONL, **{file_format.value: file_format for file_format in Format}}
    if suffix not in formats:
        remedy = "Rename the file to .csv, .jsonl or .parquet, or specify its format: --format csv|jsonl|parquet"
        raise InputError("the file suffix is not a known format", place=Place(str(path)), remedy=remedy)
    return formats[suffix]


def read_judgments(
    path: Path,
    file_format: Format,
    categories: Mapping[str, Category],
    names: Mapping[str, str] | None = None,
    encoding: str | None = None,
) -> JudgmentFile:
    """Reads all rows of a file. Raises InputError or InputProblems if it is not a table of judgments.

    - categories: the category for every accepted word, in lower case.
    - names: the field of each column with another name.
    """
    match file_format:
        case Format.CSV:
            table = read_csv(path, encoding)
        case Format.JSONL:
            table = read_jsonl(path, encoding)
        case Format.PARQUET:
            table = read_parquet(path)
    fields = _fields_of_columns(table, names or {})
    problems = Problems(str(path))
    rows: list[ParsedJudgment] = []
    bad_count = row_count = 0
    columns = [(index, field, COLUMNS[field]) for index, field in enumerate(fields) if field]
    for line, cells in table.rows:
        row_count += 1
        try:
            values = _parse_cells(cells, columns, table.normalise_number, is_csv=file_format is Format.CSV)
            rows.append(check_row(line, values, categories))
        except WrongCell as wrong:
            problems.add(line, 0 if file_format is Format.PARQUET else 1, wrong.what, wrong.remedy)
            bad_count += 1
    bad_count += len(table.bad_lines)
    if not row_count and not bad_count:
        raise InputError("the file has no rows", place=Place(str(path)), remedy="Check the program that wrote the file")
    ignored_columns = tuple(
        name
        for name, field in zip(table.header, fields, strict=True)
        if not field and name not in CONTEXT and not name.startswith(CONDITION)
    )
    return JudgmentFile(tuple(rows), (*table.bad_lines, *problems.listed), bad_count, ignored_columns)


def _parse_cells(
    cells: list[object],
    columns: list[tuple[int, str, ColumnContent]],
    normalise_number: Callable[[str], str],
    *,
    is_csv: bool,
) -> dict[str, Value]:
    """The values of a row by field, without empty ones. columns: position, field and content of each.

    Raises WrongCell.
    """
    values: dict[str, Value] = {}
    for index, field, content in columns:
        cell = cells[index]
        if cell is None or cell == "":
            continue
        if is_csv and isinstance(cell, str):
            cell = without_mark(cell)
            if content is ColumnContent.NUMBER:
                cell = normalise_number(cell)
        try:
            value = parse_cell(cell, content)
        except WrongCell as wrong:
            raise WrongCell(f"{field}: {wrong.what}", wrong.remedy) from wrong
        if value is not None:
            values[field] = value
    return values


def _fields_of_columns(table: RawRows, names: Mapping[str, str]) -> list[str]:
    """The field of each column; "" for a column that is ignored. Raises InputProblems if the columns do not suffice."""
    problems = Problems(table.file)
    fields: list[str] = []
    for column, field in names.items():
        if column not in table.header:
            problems.add(table.header_line, 0, f"there is no column {shown(column)}", nearest(column, table.header))
        if field not in COLUMNS:
            problems.add(0, 0, f"there is no field {shown(field)}", nearest(field, list(COLUMNS)))
    for column in table.header:
        name = column.strip().lower()
        field = names.get(column) or ALIASES.get(name, name if name in COLUMNS else "")
        if field and field in fields:
            problems.add(
                table.header_line,
                1,
                f"two columns contain {field}",
                "Rename one of the columns, or map one: --map COLUMN=FIELD",
            )
        fields.append(field)
    for field_name in REQUIRED_FIELDS:
        is_replaced = field_name == "category" and "status" in fields
        if field_name not in fields and not is_replaced:
            remedy = (
                f"Add this column, or map another one: --map COLUMN={field_name}. {nearest(field_name, table.header)}"
            )
            problems.add(table.header_line, 1, f"the file has no column `{field_name}`", remedy)
    if "trial" not in fields and "clip_sha256" not in fields:
        remedy = f"Add one of these columns, or map another one: --map COLUMN=trial. {nearest('trial', table.header)}"
        problems.add(
            table.header_line, 1, "no column identifies the response: neither `trial` nor `clip_sha256`", remedy
        )
    problems.refuse()
    return fields
