"""Tables of figures in columns of a terminal, and the words of shares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.base.cells import padded, shown, width_of
from harness.rating.figures.categories import CountedShare
from harness.statistics.intervals import Interval

NOTHING = "n/a"
LEAST_LABEL, WIDEST_LABEL = 8, 34
TOO_FEW = "too few"
TOO_FEW_WHY = f"{TOO_FEW}: one query, asked several times, says nothing of others"
FULL, THIN = "█", "▏"


def hundredths(value: float | None) -> str:
    """`60.2` of 0.602; n/a for None."""
    return NOTHING if value is None else f"{100 * value:.1f}"


def span(interval: Interval | None) -> str:
    """`53.8–66.2`, per cent."""
    return NOTHING if interval is None else f"{100 * interval[0]:.1f}–{100 * interval[1]:.1f}"


def share_span(of: CountedShare) -> str:
    """The 95 % interval of a share; `too few` queries where there is a share and no interval."""
    return TOO_FEW if of.interval is None and of.total else span(of.interval)


def bar(value: float | None, width: int) -> str:
    """So many full columns of a share; a share that is not nothing is never drawn as nothing."""
    if not value or width < 1:
        return ""
    return FULL * round(value * width) or THIN


def table(
    heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], width: int, bars: Sequence[str] = ()
) -> Iterator[str]:
    """A head, a rule, and the rows; the first column is a label, shortened as needed. bars: one for each row.

    Columns of figures are never cut: where there is no room at all, lines are longer.
    """
    widths = _widths(heads, rows)
    figures = sum(widths) + len(widths)
    room = max(LEAST_LABEL, min(WIDEST_LABEL, width - figures))
    names = [shown(label, room) for label, _ in rows]
    room = max([LEAST_LABEL, *map(width_of, names), min(room, width_of(heads[0]))])
    yield (
        padded(shown(heads[0], room), room)
        + "".join(f" {head:>{of}}" for head, of in zip(heads[1:], widths, strict=True))
    ).rstrip()
    yield "─" * (room + figures)
    for at, (name, (_, cells)) in enumerate(zip(names, rows, strict=True)):
        line = padded(name, room) + "".join(f" {cell:>{of}}" for cell, of in zip(cells, widths, strict=True))
        yield f"{line} {bars[at]}".rstrip() if bars else line.rstrip()


def room_for_bars(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], width: int, most: int = 24) -> int:
    """Columns that a table leaves for bars; 0 where it leaves too few to tell shares apart."""
    widths = _widths(heads, rows)
    names = [min(WIDEST_LABEL, width_of(shown(name, WIDEST_LABEL))) for name, _ in rows]
    label = max([LEAST_LABEL, width_of(heads[0]), *names])
    left = width - label - sum(widths) - len(widths) - 1
    return min(most, left) if left >= 5 else 0


def _widths(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> list[int]:
    """Of the columns of figures."""
    return [max([len(head), *(len(cells[at]) for _, cells in rows)]) for at, head in enumerate(heads[1:])]
