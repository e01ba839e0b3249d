"""A table of judgments as the bytes of a file."""

from __future__ import annotations

import io
import json
from importlib.util import find_spec
from typing import Any

from harness.base.safe_csv import safe_csv
from harness.model.errors import HarnessError
from harness.model.judgment import Content
from harness.rating.reports.rows import JudgmentTable, Value, columns_of


def csv_of(table: JudgmentTable) -> bytes:
    """Comma-separated text with a header, in UTF-8; safe to open in a spreadsheet (`safe_csv`)."""
    header = [name for name, _ in table.columns]
    return safe_csv([header, *([_cell(value) for value in row] for row in table.rows)]).encode("utf-8", "replace")


def jsonl_of(table: JudgmentTable) -> bytes:
    """An object in each line, in ASCII; what is absent is null."""
    names = [name for name, _ in table.columns]
    lines = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=True) for row in table.rows)
    return "".join(line + "\n" for line in lines).encode("ascii")


def parquet_of(table: JudgmentTable) -> bytes:
    """Parquet with typed columns; HarnessError when the library for it is not installed."""
    demand_parquet()
    import pyarrow
    import pyarrow.parquet

    types = {
        Content.TEXT: pyarrow.string(),
        Content.WHOLE: pyarrow.int64(),
        Content.NUMBER: pyarrow.float64(),
        Content.YES_NO: pyarrow.bool_(),
        Content.LIST: pyarrow.list_(pyarrow.string()),
    }
    schema = pyarrow.schema([(name, types[content]) for name, content in table.columns])
    arrays: list[Any] = [
        pyarrow.array(values, field.type) for values, field in zip(columns_of(table), schema, strict=True)
    ]
    target = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), target)
    return target.getvalue()


def demand_parquet() -> None:
    """HarnessError, with the extra's name, when the library for Parquet is not installed."""
    if find_spec("pyarrow") is None:
        raise HarnessError(
            "Parquet files need the library pyarrow, which is not installed",
            remedy='Install it with: pip install "voice-harness[parquet]", or use CSV or JSON lines',
        )


def _cell(value: Value) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case tuple():
            plain = not any(";" in one or one.startswith("[") or one != one.strip() or not one for one in value)
            return ";".join(value) if plain else json.dumps(list(value), ensure_ascii=False)
        case float():
            return repr(value)
    return str(value)
