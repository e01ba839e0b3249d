"""A figure and its interval as they came to be: a band that narrows, in braille."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from harness.dashboard import palette

_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
LEAST_BAND = 3
"""Dots that a band has at least, where a line is left free in it."""

_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


@dataclass(frozen=True, slots=True)
class Point:
    """A figure when so much had been heard: `after` in trials or hours, low ≤ value ≤ high."""

    after: float
    low: float
    value: float
    high: float


def nice_top(value: float) -> float:
    """The least round number that is not below a value > 0."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(step * scale for step in _STEPS if step * scale >= value * (1 - 1e-9))


def top_of(points: Sequence[Point], limit: float | None, highest: float = math.inf) -> float:
    """Where the scale ends: the present band and the limit fit well into it, and what was wider is cut off."""
    last = points[-1] if points else None
    wanted = 1.6 * max(0.0 if last is None else last.high, 0.0 if limit is None else limit)
    return min(highest, nice_top(wanted))


def funnel(points: Sequence[Point], width: int, height: int, top: float) -> list[Text]:
    """`height` lines of `width` characters, from 0 up to `top`: the band, with the figure as a free line."""
    if not points:
        return [Text("·" * width if row == height - 1 else " " * width, style=palette.RULE) for row in range(height)]
    dots_high, dots_wide = height * 4, width * 2
    band = [[0] * width for _ in range(height)]
    lined: list[set[int]] = [set() for _ in range(height)]
    for column, point in enumerate(_columns(points, dots_wide)):
        low, value, high = (
            min(dots_high - 1, int(max(0.0, at) / top * dots_high)) for at in (point.low, point.value, point.high)
        )
        # A figure beyond the scale has no line: it would be taken for one at the edge.
        line = value if point.value <= top and height > 1 and high - low >= LEAST_BAND else None
        for y in range(low, high + 1):
            row, within = divmod(dots_high - 1 - y, 4)
            if y == line:
                lined[row].add(column // 2)
            else:
                band[row][column // 2] |= _BITS[within][column % 2]
    rows: list[Text] = []
    for cells, bright in zip(band, lined, strict=True):
        text = Text()
        for cell, bits in enumerate(cells):
            text.append(chr(0x2800 + bits) if bits else " ", style=palette.CYAN if cell in bright else palette.BLUE)
        rows.append(text)
    return rows


def _columns(points: Sequence[Point], count: int) -> list[Point]:
    """The point that stood at each of `count` equal steps from nothing to the last."""
    found: list[Point] = []
    index = 0
    whole = points[-1].after
    for column in range(count):
        at = whole * (column + 1) / count
        while index + 1 < len(points) and points[index + 1].after <= at * (1 + 1e-12):
            index += 1
        found.append(points[index])
    return found
