"""A table of results: its columns are declared once, and its rows become text, JSON or the cells of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from harness.base.plain_json import plain
from harness.base.text_table import Column, text_table
from harness.model.numbers import NOTHING

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Field(Generic[Row]):
    """A column of a table.

    - key: its name in JSON; "" leaves it out there. title: its head in text and pages, with the unit;
      "" leaves it out there.
    - value: of a row, for JSON. text: for people; default: the value itself, "n/a" without one.
    - left, gives_way: as of `text_table.Column`. main: what a page prints bold.
    """

    key: str
    title: str
    value: Callable[[Row], Any]
    text: Callable[[Row], str] | None = None
    left: bool = False
    gives_way: int = 0
    main: bool = False

    def cell(self, row: Row) -> str:
        if self.text is not None:
            return self.text(row)
        value = self.value(row)
        return NOTHING if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Columns and rows; the first column is a label of foreign text (`text_table`)."""

    fields: Sequence[Field[Row]]
    rows: Sequence[Row]

    def lines(self, width: int, *, ends: Sequence[Sequence[str]] = (), most: int | None = None) -> Iterator[str]:
        """Text for a terminal; arguments as of `text_table`."""
        columns = [Column(field.title, field.left, field.gives_way) for field in self.titled]
        return text_table(columns, self.cells, width, ends=ends, most=most)

    @property
    def titles(self) -> list[str]:
        return [field.title for field in self.titled]

    @property
    def cells(self) -> list[list[str]]:
        """A text for each row and titled column; not escaped."""
        return [[field.cell(row) for field in self.titled] for row in self.rows]

    def json(self) -> list[dict[str, Any]]:
        """An object for each row, with plain values."""
        return [{field.key: plain(field.value(row)) for field in self.fields if field.key} for row in self.rows]

    @property
    def titled(self) -> list[Field[Row]]:
        """The columns of text and pages."""
        return [field for field in self.fields if field.title]
