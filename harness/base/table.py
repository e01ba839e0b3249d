"""Parts of a report, declared once for text, JSON and pages: tables, crossed tables, counts, notes; sections of them.

`lines` of each is its text; the macro `parts` in `macros.html` puts them on a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, ClassVar, Generic, TypeVar

from harness.base.plain_json import to_plain
from harness.base.text_table import GAP, MIN_LABEL_COLUMNS, NOTES, Column, note, padded, shown, text_table, width_of
from harness.model.frozen import frozen
from harness.model.numbers import NOTHING

Row = TypeVar("Row")
NO_LABEL = "(none)"
"""The name of the group of rows without a label."""


@frozen
class Field(Generic[Row]):
    """A column of a table.

    - key: its name in JSON; "" leaves it out there.
    - title: its heading in text and on pages, with the unit; "" leaves it out there.
    - value: returns the value of a row, for JSON. text: returns it as text, for people. Default: the value itself,
      "n/a" for None.
    - left: whether it is aligned left. gives_way: order in which text drops columns, highest first; 0: never.
    - folds: as in `Column`.
    - main: whether a page prints it in bold.
    """

    key: str
    title: str
    value: Callable[[Row], Any]
    text: Callable[[Row], str] | None = None
    left: bool = False
    gives_way: int = 0
    folds: bool = False
    main: bool = False

    def cell(self, row: Row) -> str:
        """The text of a row in this column."""
        if self.text is not None:
            return self.text(row)
        value = self.value(row)
        return NOTHING if value is None else str(value)


MIN_BAR, WIDEST_BAR = 5, 24
FULL, THIN = "█", "▏"


def bar(value: float | None, width: int) -> str:
    """A share as a bar of at most `width` columns; a share above 0 is never drawn as nothing."""
    if not value or width < 1:
        return ""
    return FULL * round(value * width) or THIN


Plot = tuple[float | None, tuple[float, float] | None]
"""A value and its interval, to be drawn."""


@frozen
class Table(Generic[Row]):
    """Columns and rows; the first column is a label of foreign text (`text_table`).

    ends: cells of closing rows. plots: for each row, the value that a page draws beside it, on a scale from 0 to
    `scale`. bars: whether text draws these too, if it has room; `plots` then also has the values of `ends`.
    """

    kind: ClassVar = "table"
    fields: Sequence[Field[Row]]
    rows: Sequence[Row]
    ends: Sequence[Sequence[str]] = ()
    plots: Sequence[Plot] = ()
    scale: float = 1.0
    bars: bool = False

    @staticmethod
    def of(
        columns: Sequence[Column],
        rows: Sequence[Sequence[str]],
        ends: Sequence[Sequence[str]] = (),
        plots: Sequence[Plot] = (),
        *,
        bars: bool = False,
    ) -> Table[Sequence[str]]:
        """A table of texts. The first column may be foreign text; the other cells must be escaped already."""
        fields: list[Field[Sequence[str]]] = [
            Field("", column.title, itemgetter(index), left=column.left, gives_way=column.gives_way)
            for index, column in enumerate(columns)
        ]
        return Table(fields, rows, ends, plots, bars=bars)

    def lines(self, width: int, max_rows: int | None = None) -> Iterator[str]:
        """Text for a terminal; max_rows: rows to show."""
        columns = [Column(field.title, field.left, field.gives_way, field.folds) for field in self.titled]
        lines = list(text_table(columns, self.cells, width, ends=self.ends, max_rows=max_rows))
        room = min(WIDEST_BAR, width - width_of(lines[1]) - len(GAP)) if self.bars else 0
        if room >= MIN_BAR:
            with_bars = [
                [*cells, bar(plot[0], room)] for cells, plot in zip((*self.cells, *self.ends), self.plots, strict=True)
            ]
            rows, ends = with_bars[: len(self.rows)], with_bars[len(self.rows) :]
            lines = list(text_table([*columns, Column("", left=True)], rows, width, ends=ends, max_rows=max_rows))
        return iter(lines)

    @property
    def titles(self) -> list[str]:
        """The headings of the columns of text and pages."""
        return [field.title for field in self.titled]

    @property
    def cells(self) -> list[list[str]]:
        """The text of each row and column with a title; not sanitised."""
        return [[field.cell(row) for field in self.titled] for row in self.rows]

    def json(self) -> list[dict[str, Any]]:
        """An object for each row, with plain values."""
        return [{field.key: to_plain(field.value(row)) for field in self.fields if field.key} for row in self.rows]

    @property
    def titled(self) -> list[Field[Row]]:
        """The columns of text and pages."""
        return [field for field in self.fields if field.title]


MIN_CROSSED, WIDEST_CROSSED = 14, 40
Cell = tuple[str, str]
"""A text, and a second one below it, each "" if there is none. Both must be safe."""


@frozen
class CrossTable:
    """A table of one grouping by another.

    - title: what the cells contain.
    - corner: name of the grouping of the rows.
    - columns: labels of the other grouping.
    - rows: (label, a cell for each column).
    - ends: closing rows, such as totals, in the same form.
    """

    kind: ClassVar = "crossed"
    title: str
    corner: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    ends: Sequence[tuple[str, Sequence[Cell]]] = ()

    def lines(self, width: int, max_rows: int | None = None) -> Iterator[str]:
        """Text for a terminal, split into several tables, one below the other, if the width requires it."""
        side = max(MIN_CROSSED, min(WIDEST_CROSSED, width // 5))
        above = max(MIN_CROSSED, min(WIDEST_CROSSED, (width - side) // len(self.columns) - len(GAP)))
        heads = [shown(label, above) for label in self.columns]
        rows, ends = ([(shown(label, side), cells) for label, cells in group] for group in (self.rows, self.ends))
        texts = (text for _, cells in (*rows, *ends) for cell in cells for text in cell)
        cell_width = max(map(width_of, (*heads, *texts)))
        corner = shown(self.corner, side)
        room = max(MIN_LABEL_COLUMNS, *map(width_of, (corner, *(label for label, _ in (*rows, *ends)))))
        columns_at_once = max(1, (width - room) // (cell_width + len(GAP)))
        yield shown(self.title, width)
        for begin in range(0, len(heads), columns_at_once):
            shown_columns = slice(begin, begin + columns_at_once)
            columns = (
                Column(padded(corner, room)),
                *(Column(" " * (cell_width - width_of(head)) + head) for head in heads[shown_columns]),
            )
            body, closing = (
                [line for row in group for line in _two_lines(row, shown_columns)] for group in (rows, ends)
            )
            yield ""
            yield from text_table(columns, body, width, ends=closing)


def _two_lines(row: tuple[str, Sequence[Cell]], shown_columns: slice) -> Iterator[Sequence[str]]:
    """The lines of a row; there is a second one only if a cell has a second text."""
    label, cells = row
    yield (label, *(above for above, _ in cells[shown_columns]))
    if any(below for _, below in cells[shown_columns]):
        yield ("", *(below for _, below in cells[shown_columns]))


ARROW = " → "


@frozen
class Occurrences:
    """How often things occurred, the most frequent first.

    rows: (foreign texts, which an arrow joins; number of occurrences).
    """

    kind: ClassVar = "occurrences"
    title: str
    rows: Sequence[tuple[Sequence[str], int]]

    @property
    def head(self) -> str:
        """The title with the number of all occurrences, and that of different ones."""
        return f"{self.title}: {sum(count for _, count in self.rows):,} in all, {len(self.rows):,} different"

    def lines(self, width: int, max_rows: int | None = None) -> Iterator[str]:
        """Text for a terminal; max_rows: rows to show."""
        yield self.head
        rows = self.rows[:max_rows]
        digits = max((len(f"{count:,}") for _, count in rows), default=1)
        shortened_texts = []
        for texts, _ in rows:
            room = max(4, (width - digits - 4 - len(ARROW)) // len(texts))
            shortened_texts.append(ARROW.join(shown(text, room) for text in texts))
        if len(set(shortened_texts)) < len(rows):  # two would look alike
            shortened_texts = [ARROW.join(map(shown, texts)) for texts, _ in rows]
        for line, (_, count) in zip(shortened_texts, rows, strict=True):
            yield f"  {count:>{digits},}  {line}"
        if len(rows) < len(self.rows):
            yield f"  … and {len(self.rows) - len(rows):,} more"


@frozen
class Notes:
    """Notes: (name, text), which must be safe. A text with the name "" is a sentence, and may be foreign.

    at: the column at which texts begin in a terminal.
    """

    kind: ClassVar = "notes"
    pairs: Sequence[tuple[str, str]]
    at: int = NOTES

    def lines(self, width: int, max_rows: int | None = None) -> Iterator[str]:
        """Text for a terminal."""
        for name, text in self.pairs:
            yield from note(name, text, width, self.at) if name else note("", shown(text), width, 0)


Part = Table[Any] | CrossTable | Occurrences | Notes


@frozen
class Section:
    """Parts that belong together. key, title: anchor and heading on a page. Text has blank lines between the parts."""

    key: str
    title: str
    parts: Sequence[Part]

    def lines(self, width: int, max_rows: int | None = None) -> Iterator[str]:
        """Text for a terminal; max_rows: rows to show of each part."""
        for number, part in enumerate(self.parts):
            if number:
                yield ""
            yield from part.lines(width, max_rows)
