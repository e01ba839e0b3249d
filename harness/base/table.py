"""Parts of a report, declared once for text, JSON and pages: tables, crossed tables, counts, notes; sections of them.

`lines` of each is its text; the macro `parts` in `macros.html` puts them on a page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, ClassVar, Generic, TypeVar

from harness.base.plain_json import to_plain
from harness.base.text_table import GAP, LEAST_LABEL, NOTES, Column, note, padded, shown, text_table, width_of
from harness.model.frozen import frozen
from harness.model.numbers import NOTHING

Row = TypeVar("Row")
NO_LABEL = "(none)"
"""The group of what has no label."""


@frozen
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


LEAST_BAR, WIDEST_BAR = 5, 24
FULL, THIN = "█", "▏"


def bar(value: float | None, width: int) -> str:
    """So many full columns of a share; a share that is not nothing is never drawn as nothing."""
    if not value or width < 1:
        return ""
    return FULL * round(value * width) or THIN


Plot = tuple[float | None, tuple[float, float] | None]
"""A value and its interval, to be drawn."""


@frozen
class Table(Generic[Row]):
    """Columns and rows; the first column is a label of foreign text (`text_table`).

    ends: cells of closing rows. plots: for each row, what a page draws beside it, on a scale from 0 to `scale`.
    bars: text draws them, too, where it has room; `plots` then has the values of `ends`, too.
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

    def lines(self, width: int, most: int | None = None) -> Iterator[str]:
        """Text for a terminal; most: rows to show."""
        columns = [Column(field.title, field.left, field.gives_way) for field in self.titled]
        lines = list(text_table(columns, self.cells, width, ends=self.ends, most=most))
        room = min(WIDEST_BAR, width - width_of(lines[1]) - len(GAP)) if self.bars else 0
        if room >= LEAST_BAR:
            with_bars = [
                [*cells, bar(plot[0], room)] for cells, plot in zip((*self.cells, *self.ends), self.plots, strict=True)
            ]
            rows, ends = with_bars[: len(self.rows)], with_bars[len(self.rows) :]
            lines = list(text_table([*columns, Column("", left=True)], rows, width, ends=ends, most=most))
        return iter(lines)

    @property
    def titles(self) -> list[str]:
        return [field.title for field in self.titled]

    @property
    def cells(self) -> list[list[str]]:
        """A text for each row and titled column; not escaped."""
        return [[field.cell(row) for field in self.titled] for row in self.rows]

    def json(self) -> list[dict[str, Any]]:
        """An object for each row, with plain values."""
        return [{field.key: to_plain(field.value(row)) for field in self.fields if field.key} for row in self.rows]

    @property
    def titled(self) -> list[Field[Row]]:
        """The columns of text and pages."""
        return [field for field in self.fields if field.title]


LEAST_CROSSED, WIDEST_CROSSED = 14, 40
Cell = tuple[str, str]
"""A text and a text below it, each "" where there is none; safe."""


@frozen
class CrossTable:
    """Labels of two groupings crossed. title: what the cells are. corner: the grouping of the rows.

    columns: labels. rows: a label and a cell for each column. ends: the same, of all.
    """

    kind: ClassVar = "crossed"
    title: str
    corner: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    ends: Sequence[tuple[str, Sequence[Cell]]] = ()

    def lines(self, width: int, most: int | None = None) -> Iterator[str]:
        """Text for a terminal, in as many tables below each other as the width asks for."""
        side = max(LEAST_CROSSED, min(WIDEST_CROSSED, width // 5))
        above = max(LEAST_CROSSED, min(WIDEST_CROSSED, (width - side) // len(self.columns) - len(GAP)))
        heads = [shown(label, above) for label in self.columns]
        rows, ends = ([(shown(label, side), cells) for label, cells in group] for group in (self.rows, self.ends))
        texts = (text for _, cells in (*rows, *ends) for cell in cells for text in cell)
        cell_width = max(map(width_of, (*heads, *texts)))
        corner = shown(self.corner, side)
        room = max(LEAST_LABEL, *map(width_of, (corner, *(label for label, _ in (*rows, *ends)))))
        at_once = max(1, (width - room) // (cell_width + len(GAP)))
        yield shown(self.title, width)
        for begin in range(0, len(heads), at_once):
            part = slice(begin, begin + at_once)
            columns = (
                Column(padded(corner, room)),
                *(Column(" " * (cell_width - width_of(head)) + head) for head in heads[part]),
            )
            body, closing = ([line for row in group for line in _two_lines(row, part)] for group in (rows, ends))
            yield ""
            yield from text_table(columns, body, width, ends=closing)


def _two_lines(row: tuple[str, Sequence[Cell]], part: slice) -> Iterator[Sequence[str]]:
    """A row of a matrix; the second line only where a cell has a text below."""
    label, cells = row
    yield (label, *(above for above, _ in cells[part]))
    if any(below for _, below in cells[part]):
        yield ("", *(below for _, below in cells[part]))


ARROW = " → "


@frozen
class Occurrences:
    """What occurred how often, the most frequent first. rows: foreign texts, joined by an arrow, and their number."""

    kind: ClassVar = "occurrences"
    title: str
    rows: Sequence[tuple[Sequence[str], int]]

    @property
    def head(self) -> str:
        return f"{self.title}: {sum(count for _, count in self.rows):,} in all, {len(self.rows):,} different"

    def lines(self, width: int, most: int | None = None) -> Iterator[str]:
        """Text for a terminal; most: rows to show."""
        yield self.head
        rows = self.rows[:most]
        digits = max((len(f"{count:,}") for _, count in rows), default=1)
        cut = []
        for texts, _ in rows:
            room = max(4, (width - digits - 4 - len(ARROW)) // len(texts))
            cut.append(ARROW.join(shown(text, room) for text in texts))
        if len(set(cut)) < len(rows):  # two would look alike
            cut = [ARROW.join(map(shown, texts)) for texts, _ in rows]
        for line, (_, count) in zip(cut, rows, strict=True):
            yield f"  {count:>{digits},}  {line}"
        if len(rows) < len(self.rows):
            yield f"  … and {len(self.rows) - len(rows):,} more"


@frozen
class Notes:
    """Names with their texts, safe ones. A text without a name is a sentence, and may be foreign.

    at: the column at which texts begin in a terminal.
    """

    kind: ClassVar = "notes"
    pairs: Sequence[tuple[str, str]]
    at: int = NOTES

    def lines(self, width: int, most: int | None = None) -> Iterator[str]:
        for name, text in self.pairs:
            yield from note(name, text, width, self.at) if name else note("", shown(text), width, 0)


Part = Table[Any] | CrossTable | Occurrences | Notes


@frozen
class Section:
    """Parts that belong together. key, title: its anchor and heading on a page; text has blank lines between parts."""

    key: str
    title: str
    parts: Sequence[Part]

    def lines(self, width: int, most: int | None = None) -> Iterator[str]:
        for number, part in enumerate(self.parts):
            if number:
                yield ""
            yield from part.lines(width, most)
