"""Word errors by group as tables for people: one for each grouping, one for each two that are crossed, differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.base.cells import padded, shown, width_of
from harness.transcripts.groups import Crossed, Grouped, GroupedComparison, GroupFigures, GroupWords, Interval
from harness.transcripts.reports.summary import GAP, INTERVALS, NOTHING, listed, note, per_cent, points, probability

NO_LABEL = "(none)"
ALL = "all"
LEAST_LABEL, WIDEST_LABEL = 8, 40
LEAST_CROSSED = 14
MOST_ROWS = 100
"""Rows of a table that a person reads; the JSON has all."""
Row = tuple[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class _Heads:
    """Titles of a table's figures, and which go first where there is no room."""

    titles: tuple[str, ...]
    first_to_go: tuple[int, ...]


_VALUES = _Heads(("sentences", "words", "errors", "WER", "95 % interval", "over", "sent.err"), (0, 2, 6, 5, 1))
_OVER = 5
_DIFFERENCES = _Heads(("sentences", "first", "second", "difference", "95 % interval", "p"), (0, 5, 2, 1))


def lines(found: GroupFigures, width: int) -> Iterator[str]:
    """A table for each grouping, then the crossed ones, then what belongs to none; blank lines between."""
    for one in found.grouped:
        if len(one.values) > 1:
            yield from _grouped(one, width)
            yield ""
    for both in found.crossed:
        yield from _crossed(both, width)
        yield ""
    yield from _notes(found, width)


def differences(found: Sequence[GroupedComparison], width: int) -> Iterator[str]:
    """A table for each grouping that parts the utterances: the first system against the second within each label."""
    for one in found:
        if len(one.values) < 2:
            continue
        rows: list[Row] = []
        for label, pair in one.values:
            figures = (str(pair.utterances), per_cent(pair.first_counts.wer), per_cent(pair.second_counts.wer))
            rest = (points(pair.difference), _apart(pair.interval), probability(pair.p))
            rows.append((label, (*figures, *rest)))
        yield ""
        yield from _table(f"by {one.by}", _DIFFERENCES, rows, width)


def label_of(label: str) -> str:
    """A label for people; it is still to be made harmless."""
    return label or NO_LABEL


def interval_in_words(interval: Interval | None) -> str:
    """`5.1–16.3 %`."""
    return NOTHING if interval is None else f"{100 * interval[0]:.1f}–{100 * interval[1]:.1f} %"


def _grouped(one: Grouped, width: int) -> Iterator[str]:
    rows = [(label, _cells(words)) for label, words in one.values]
    alike = len({words.unit for _, words in one.values}) == 1
    yield from _table(f"by {one.by}", _VALUES, rows, width, without=(_OVER,) if alike else ())


def _cells(words: GroupWords) -> tuple[str, ...]:
    counts = words.counts
    wrong = f"{100 * counts.sentences_with_error / counts.sentences:.1f}" if counts.sentences else NOTHING
    figures = (str(counts.sentences), str(counts.words), str(counts.errors), per_cent(counts.wer))
    return (*figures, interval_in_words(words.interval), words.unit.value, wrong)


def _table(title: str, heads: _Heads, rows: Sequence[Row], width: int, without: Sequence[int] = ()) -> Iterator[str]:
    listed_rows = rows[:MOST_ROWS]
    widths = [max(len(head), *(len(cells[at]) for _, cells in listed_rows)) for at, head in enumerate(heads.titles)]
    columns = [at for at in range(len(heads.titles)) if at not in without]
    for at in heads.first_to_go:
        if LEAST_LABEL + sum(widths[one] + len(GAP) for one in columns) <= width:
            break
        columns = [one for one in columns if one != at]
    figures = sum(widths[one] + len(GAP) for one in columns)
    names = [shown(label_of(name), max(LEAST_LABEL, min(WIDEST_LABEL, width - figures))) for name, _ in listed_rows]
    room = max(LEAST_LABEL, *map(width_of, names))
    head = shown(title, max(LEAST_LABEL, width - figures))
    room = max(room, width_of(head))
    yield padded(head, room) + "".join(GAP + heads.titles[at].rjust(widths[at]) for at in columns)
    yield "─" * (room + figures)
    for name, (_, cells) in zip(names, listed_rows, strict=True):
        yield padded(name, room) + "".join(GAP + cells[at].rjust(widths[at]) for at in columns)
    if len(rows) > len(listed_rows):
        yield f"… and {len(rows) - len(listed_rows):,} more, which the JSON has"


def _crossed(one: Crossed, width: int) -> Iterator[str]:
    side = max(LEAST_CROSSED, min(WIDEST_LABEL, width // 5))
    above = max(LEAST_CROSSED, min(WIDEST_LABEL, (width - side) // (len(one.columns) + 1) - len(GAP)))
    names = [shown(label_of(label), side) for label in (*one.rows, ALL)]
    heads = [shown(label_of(label), above) for label in (*one.columns, ALL)]
    rows = [(*cells, total) for cells, total in zip(one.cells, one.row_sums, strict=True)]
    rows.append((*one.column_sums, one.total))
    cells = [[_crossed_cell(words) for words in row] for row in rows]
    first, second = (shown(name, side) for name in one.by)
    room = max(LEAST_LABEL, width_of(first), *map(width_of, names))
    each = max(*map(width_of, heads), *(len(text) for row in cells for cell in row for text in cell))
    at_once = max(1, (width - room) // (each + len(GAP)))
    title = f"{first} by {second}: WER in % of so many words, 95 % interval below"
    yield shown(title, width)
    yield ""
    for begin in range(0, len(heads), at_once):
        part = slice(begin, begin + at_once)
        if begin:
            yield ""
        yield padded(first, room) + "".join(GAP + _right(head, each) for head in heads[part])
        rule = "─" * (room + (each + len(GAP)) * len(heads[part]))
        yield rule
        for name, row in zip(names, cells, strict=True):
            if row is cells[-1]:
                yield rule
            for text, line in ((name, 0), ("", 1)):
                if found := (padded(text, room) + "".join(GAP + cell[line].rjust(each) for cell in row[part])).rstrip():
                    yield found


def _crossed_cell(words: GroupWords | None) -> tuple[str, str]:
    if words is None:
        return NOTHING, ""
    wer, interval = words.counts.wer, words.interval
    rate = NOTHING if wer is None else f"{100 * wer:.2f}"
    below = NOTHING if interval is None else f"{100 * interval[0]:.1f}–{100 * interval[1]:.1f}"
    return f"{rate} of {words.counts.words}", below


def _notes(found: GroupFigures, width: int) -> Iterator[str]:
    for one in found.grouped:
        if len(one.values) == 1:
            yield shown(f"{one.by}: {label_of(one.values[0][0])} in every utterance", width)
    for name, labels in found.left_out:
        yield shown(f"{name}: {labels:,} different labels, which are no conditions; no table", width)
    units = {words.unit for one in found.grouped for _, words in one.values}
    for unit in sorted(units):
        over = f"over {unit.value}: " if len(units) > 1 else ""
        yield from note("intervals", f"{over}{INTERVALS[unit]}", width)
    without, strangers = found.without_row, found.strangers
    if without:
        text = f"{listed(len(without), without, width)}; their group is {NO_LABEL}"
        yield from note("without a row", text, width)
    if strangers:
        yield from note("rows of no utterance", f"{listed(len(strangers), strangers, width)}; counted nowhere", width)


def _apart(interval: Interval | None) -> str:
    return NOTHING if interval is None else f"{points(interval[0])} to {points(interval[1])}"


def _right(text: str, width: int) -> str:
    return " " * (width - width_of(text)) + text
