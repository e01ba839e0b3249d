"""A table with a type for each column, as CSV, JSON lines or Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from importlib.util import find_spec
from typing import Any

from harness.base.plugins import pip_install
from harness.base.text_file import safe_csv
from harness.model.errors import HarnessError, Place
from harness.model.frozen import frozen


class ColumnContent(StrEnum):
    """The type of a column's values.

    LIST: texts; in CSV joined by semicolons, or a JSON list if one of them contains a semicolon.
    """

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    YES_NO = "true or false"
    LIST = "list"


Value = str | int | float | bool | tuple[str, ...] | None


@frozen
class TypedTable:
    """A table.

    - columns: (name, type).
    - rows: one value for each column; None if absent, and () for an absent list.
    """

    columns: tuple[tuple[str, ColumnContent], ...]
    rows: tuple[tuple[Value, ...], ...]


def _columns_of(table: TypedTable) -> Iterable[list[Value]]:
    """The values of each column."""
    if not table.rows:
        return ([] for _ in table.columns)
    return (list(values) for values in zip(*table.rows, strict=True))


def csv_of(table: TypedTable, decimals: Mapping[str, int] | None = None) -> bytes:
    """Comma-separated text with a header, in UTF-8; safe to open in a spreadsheet (`safe_csv`).

    decimals: name of a column → number of decimals of its numbers. Default: as many as each number needs.
    """
    header = [name for name, _ in table.columns]
    column_decimals = [(decimals or {}).get(name) for name in header]
    rows = ([_cell(value, places) for value, places in zip(row, column_decimals, strict=True)] for row in table.rows)
    return safe_csv([header, *rows]).encode("utf-8", "replace")  # a lone surrogate becomes "?"


def jsonl_of(table: TypedTable) -> bytes:
    """One JSON object in each line, in ASCII; absent values are null."""
    names = [name for name, _ in table.columns]
    lines = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=True) for row in table.rows)
    return "".join(line + "\n" for line in lines).encode("ascii")


def parquet_of(table: TypedTable, schema_name: str | None = None) -> bytes:
    """Parquet with typed columns. Raises HarnessError when the library for it is not installed.

    schema_name: stored as `schema` in the file's metadata; None: not stored.
    """
    demand_parquet()
    import pyarrow
    import pyarrow.parquet

    types = {
        ColumnContent.TEXT: pyarrow.string(),
        ColumnContent.WHOLE: pyarrow.int64(),
        ColumnContent.NUMBER: pyarrow.float64(),
        ColumnContent.YES_NO: pyarrow.bool_(),
        ColumnContent.LIST: pyarrow.list_(pyarrow.string()),
    }
    schema = pyarrow.schema(
        [(name, types[content]) for name, content in table.columns],
        metadata=None if schema_name is None else {"schema": schema_name},
    )
    arrays: list[Any] = [
        pyarrow.array(values, field.type) for values, field in zip(_columns_of(table), schema, strict=True)
    ]
    target = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), target)
    return target.getvalue()


def demand_parquet(place: Place | None = None) -> None:
    """Raises HarnessError when the library for Parquet is not installed."""
    if find_spec("pyarrow") is None:
        raise HarnessError(
            "Parquet files need the library pyarrow, which is not installed",
            place=place,
            remedy=f"Install it: {pip_install('parquet')}, or use CSV or JSON lines",
        )


def _cell(value: Value, decimals: int | None) -> str:
    """The text of a value in CSV; "" for an absent one."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case tuple():
            if any(";" in part or part.startswith("[") or part != part.strip() or not part for part in value):
                return json.dumps(list(value), ensure_ascii=False)  # joined, it would be read as another list
            return ";".join(value)
        case float():
            return repr(value) if decimals is None else f"{value:.{decimals}f}"
    return str(value)
