"""Cells, tables and notes for a terminal: the only layout of rows of names and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from textwrap import wrap

from harness.base.foreign import ELLIPSIS, plain_text
from harness.model.frozen import frozen

GAP = "  "
MIN_LABEL_COLUMNS = 8
NO_ROOM = "(no room for: "  # Begins the line on columns that were left out.
MAX_LABEL_COLUMNS = 60
MIN_FOLDED_COLUMNS = 24
"""The least width to which a column is folded."""
_NUMBER = re.compile(r"([-+−]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*(\D*)")
_DIGITS = re.compile(r"(\d{1,15})")


MAX_CELL_CHARS = 2000


def width_of(text: str) -> int:
    """Width of a text in columns."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # here, since most transcripts never need its tables

    return cell_len(text)


def shown(text: str, width: int = MAX_CELL_CHARS) -> str:
    """A sanitised text, at most `width` columns wide; a longer one ends in an ellipsis."""
    if text.isascii() and text.isprintable() and len(text) <= width:
        return text
    safe = plain_text(text, max(1, min(width, MAX_CELL_CHARS)))
    while safe and width_of(safe) > width:
        safe = safe.removesuffix(ELLIPSIS)[:-1] + ELLIPSIS
    return safe


def padded(text: str, width: int) -> str:
    """A sanitised text, padded with spaces on the right."""
    return text + " " * (width - width_of(text))


def fit(text: str, width: int) -> str:
    """A sanitised cell, `width` columns wide."""
    return padded(shown(text, width), width)


def bold(line: str, colour: bool) -> str:
    """The line, in bold where there are colours."""
    return f"\x1b[1m{line}\x1b[0m" if colour else line


def heading(title: str, columns: int, colour: bool) -> str:
    """The line above the results of one of several systems, as wide as the terminal."""
    text = f"── {shown(title, max(8, columns - 8))} "
    return bold(text + "─" * (columns - width_of(text)), colour)


@frozen
class Column:
    """A column of a table.

    - left: whether it is aligned left.
    - gives_way: order in which columns are dropped on a narrow screen, highest first; 0: never.
    - folds: whether its texts continue on further lines on a narrow screen; only for the last column.
    """

    title: str
    left: bool = False
    gives_way: int = 0
    folds: bool = False


def text_table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    ends: Sequence[Sequence[str]] = (),
    max_rows: int | None = None,
) -> Iterator[str]:
    """Lines: titles, a rule and the rows; then, if there are any, a rule and the closing rows `ends`.

    The first column is foreign text: it is sanitised, and shortened so that lines are at most `width` columns wide.
    Labels that differ within `MAX_LABEL_COLUMNS` columns stay different.
    All other cells must be safe. They are never cut, since a cut number is a different number. If no column can be
    dropped or folded, lines are longer. max_rows: rows to show; a line gives the number of the others.
    """
    shown_rows = rows if max_rows is None else rows[:max_rows]
    hidden_count = len(rows) - len(shown_rows)
    if columns[-1].folds:
        shown_rows = _fold_last_column(columns, shown_rows, width)
    printed = [*shown_rows, *ends]
    widths = [
        max(width_of(column.title), *(width_of(cells[index]) for cells in printed), 0)
        for index, column in enumerate(columns)
    ]
    shown_indices = list(range(1, len(columns)))

    def used_width() -> int:
        return sum(len(GAP) + widths[index] for index in shown_indices)

    min_label = _min_label_width({cells[0] for cells in shown_rows})
    for index in sorted(
        (index for index in shown_indices if columns[index].gives_way), key=lambda index: -columns[index].gives_way
    ):
        if min_label + used_width() > width:
            shown_indices.remove(index)
    most_label = max(min_label, min(MAX_LABEL_COLUMNS, width - used_width()))
    label = max(width_of(shown(text, most_label)) for text in (columns[0].title, *(cells[0] for cells in printed)))
    rule = "─" * (label + used_width())

    def line(cells: Sequence[str]) -> str:
        text = padded(shown(cells[0], most_label), label)
        for index in shown_indices:
            blank = " " * (widths[index] - width_of(cells[index]))
            text += GAP + (cells[index] + blank if columns[index].left else blank + cells[index])
        return text.rstrip()

    yield line([column.title for column in columns])
    yield rule
    yield from map(line, shown_rows)
    if hidden_count:
        yield f"… and {hidden_count:,} more"
    if ends:
        yield rule
        yield from map(line, ends)
    if dropped := [column.title for index, column in enumerate(columns) if index and index not in shown_indices]:
        yield f"{NO_ROOM}{', '.join(dropped)})"


def _fold_last_column(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[Sequence[str]]:
    """The lines of rows whose last cells are folded at blanks, so that all lines have at most `width` columns.

    That column keeps MIN_FOLDED_COLUMNS.
    """
    other_columns = list(zip([column.title for column in columns], *rows, strict=True))[:-1]
    others_width = sum(max(map(width_of, texts)) + len(GAP) for texts in other_columns)
    lines: list[Sequence[str]] = []
    for *other_cells, text in rows:
        first_part, *other_parts = wrap(text, max(MIN_FOLDED_COLUMNS, width - others_width)) or [""]
        lines.append([*other_cells, first_part])
        lines += [[*([""] * len(other_cells)), part] for part in other_parts]
    return lines


def _min_label_width(labels: set[str]) -> int:
    """The width that labels need so that no two of them look the same."""
    widths = range(MIN_LABEL_COLUMNS, MAX_LABEL_COLUMNS)
    return next(
        (width for width in widths if len({shown(label, width) for label in labels}) == len(labels)), MAX_LABEL_COLUMNS
    )


NOTES = 21
"""Width of the names of notes, in columns."""
_BREAKS = re.compile(r" (?=\()|(?<=;) ")


def note(name: str, text: str, width: int, indent: int = NOTES) -> Iterator[str]:
    """A name and its text, which wraps at `width` columns, before brackets and after semicolons; else at blanks."""
    line = padded(name, indent)
    has_begun = False
    pieces = ([part] if indent + width_of(part) <= width else part.split(" ") for part in _BREAKS.split(text))
    for part in chain.from_iterable(pieces):
        if has_begun and width_of(line) + 1 + width_of(part) > width:
            yield line
            line, has_begun = " " * indent, False
        line += f" {part}" if has_begun else part
        has_begun = True
    yield line


def wrap_wide_lines(lines: Iterable[str], width: int) -> list[str]:
    """Lines of names and texts; those that are wider than `width` wrap as in `note`."""
    return [
        part
        for line in lines
        for part in (note(line[:NOTES], line[NOTES:], width) if width_of(line) > width else (line,))
    ]


def labelled_lines(name: str, lines: Iterable[str], indent: int = NOTES) -> list[str]:
    """Lines that begin at column `indent`; the name stands before the first."""
    return [padded("" if number else name, indent) + line for number, line in enumerate(lines)]


def first_lines(lines: Sequence[str], max_lines: int, hint: str = "") -> list[str]:
    """The first lines, then a line with the number of the rest. hint: how to see it (`; --csv lists all`)."""
    omitted = len(lines) - max_lines
    return [*lines[:max_lines], f"and {omitted:,} more{hint}"] if omitted > 0 else list(lines)


def join_blocks(*blocks: Iterable[str]) -> Iterator[str]:
    """The lines of all blocks, with an empty line between two; blocks without lines are left out."""
    for number, block in enumerate(filter(None, map(list, blocks))):
        yield from ("", *block) if number else block


def sorted_labels(labels: Sequence[str], first: Sequence[str] = ()) -> list[str]:
    """Labels in order: `first`, then numbers with the same unit by size, then the rest by letters and by the numbers in
    them; "" is last."""
    leading = [label for label in first if label in labels]
    others = [label for label in labels if label and label not in first]
    numbers = {label: number for label in others if (number := _NUMBER.fullmatch(label))}
    if len({match[2] for match in numbers.values()}) > 1:
        numbers.clear()
    sorted_numbers = sorted(numbers, key=lambda label: (float(numbers[label][1].replace("−", "-")), label))
    sorted_texts = sorted((label for label in others if label not in numbers), key=_letter_key)
    blank = [""] if "" in labels else []
    return [*leading, *sorted_numbers, *sorted_texts, *blank]


def _letter_key(label: str) -> tuple[list[tuple[int, str]], str]:
    """The key by which labels are sorted by letters, and by the numbers in them: `track 9` comes before `track 10`."""
    # The split gives texts and numbers in turn. Each is a pair, so that a number is never compared with a text.
    pieces = enumerate(_DIGITS.split(label.casefold()))
    return [(int(piece), "") if index % 2 else (0, piece) for index, piece in pieces], label
