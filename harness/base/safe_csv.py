"""Comma-separated text that a spreadsheet shows unchanged and never evaluates.

A spreadsheet would evaluate a cell that begins with = + - @, a tab or a line end; it gets a leading apostrophe. A cell
that begins with an apostrophe gets another one, so that removing one restores every text (`harness judgments import`
does). A signed number is not a formula and stays unchanged.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from harness.base.text_file import Problems

MARK = "'"
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", MARK)
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def safe_csv(rows: Iterable[Sequence[str]]) -> str:
    """The rows as in RFC 4180, but with line feeds as line ends."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        writer.writerow([safe_cell(cell) for cell in row])
    return text.getvalue()


def safe_cell(text: str) -> str:
    """The text, with a leading apostrophe if a spreadsheet would evaluate it."""
    return MARK + text if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def unmarked(text: str) -> str:
    """A CSV cell without the apostrophe that keeps a spreadsheet from evaluating it."""
    return text[1:] if text.startswith(MARK) and text[1:2] in _FORMULA else text


def filled_rows(text: str, problems: Problems) -> Iterator[tuple[int, list[str]]]:
    """The fields of filled rows, with the lines that the rows begin in; notes what is not CSV."""
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
