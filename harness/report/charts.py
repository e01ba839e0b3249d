"""Curves, timelines and pictures of sounds as SVG coordinates. The template draws them in the colours of the page."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.base.pages import templates_of
from harness.model.frozen import frozen
from harness.model.numbers import exact, fixed
from harness.offline.reports.det import Curve, DetScales

WIDTH, HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 632, 10, 190  # edges of the plot
_COLOURS = 4
"""Number of colours and patterns of curves in charts.css."""
MAX_POINTS = 400
MAX_MARKS = 3000
PICTURE_COLUMNS = 300
"""Number of columns in the picture of a waveform or a spectrogram."""
_WINDOW_SAMPLES = 256
_RANGE_DB = 80.0
"""Range of levels in a spectrogram, below a full-scale sine."""

Point = tuple[float, float]
Band = tuple[float, float, float]
"""Lower and upper end of an interval at a place on the x axis: (x, low, high)."""
CurveData = tuple[str, Sequence[Point], Sequence[Band]]
"""Name, points and intervals of a curve."""


@frozen
class DrawnCurve:
    """A line with the band of its intervals, both as SVG points. number: selects its colour and pattern."""

    name: str
    number: int
    line: str
    band: str


@frozen
class Chart:
    """Curves over two axes.

    - x_ticks, y_ticks: coordinate and label of each tick.
    - words: the content as text, for screen readers.
    - marks: points beside the curves, as dictionaries for the template. They have SVG coordinates, and the number of
      their curve.
    """

    id: str
    title: str
    x_name: str
    curves: tuple[DrawnCurve, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    words: str
    marks: tuple[dict[str, Any], ...] = ()


def make_chart(
    id: str, title: str, x_name: str, words: str, curves: Sequence[CurveData], *, y_end: float | None = None
) -> Chart | None:
    """A chart of some curves. None if no curve has two points. Both axes contain 0.

    y_end: upper end of the y axis; None for a little above the highest value or interval.
    """
    curves = [(name, line, band) for name, line, band in curves if len(line) > 1]
    if not curves:
        return None
    x_values = [x for _, line, _ in curves for x, _ in line]
    x_start, x_end = min(0.0, *x_values), max(0.0, *x_values)
    if x_end == x_start:
        x_end = 1.0
    y_values = [y for _, line, _ in curves for _, y in line]
    y_values += [end for _, _, band in curves for _, low, high in band for end in (low, high)]
    y_start = 1.05 * min(0.0, *y_values)
    y_end = y_end or 1.05 * max(0.0, *y_values)
    if y_end == y_start:
        y_end = 1.0

    def svg_x(x: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (x - x_start) / (x_end - x_start)

    def svg_y(y: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * (min(max(y, y_start), y_end) - y_start) / (y_end - y_start)

    x_ticks = tuple((svg_x(x), exact(x)) for x in _ticks(x_end, x_start))
    y_ticks = tuple((svg_y(y), exact(y)) for y in _ticks(y_end, y_start))
    return Chart(
        id=id,
        title=title,
        x_name=x_name,
        curves=_draw_curves(curves, svg_x, svg_y),
        x_ticks=x_ticks,
        y_ticks=y_ticks,
        words=words,
    )


def _draw_curves(
    curves: Sequence[CurveData], svg_x: Callable[[float], float], svg_y: Callable[[float], float]
) -> tuple[DrawnCurve, ...]:
    """The curves as SVG points. svg_x, svg_y: turn values into coordinates."""

    def point(x: float, y: float) -> str:
        return f"{fixed(svg_x(x), 1)},{fixed(svg_y(y), 1)}"

    drawn = []
    for number, (name, line, band) in enumerate(curves):
        # Along the lower ends, and back along the upper ones.
        outline = [point(x, low) for x, low, _ in band] + [point(x, high) for x, _, high in reversed(band)]
        drawn.append(DrawnCurve(name, number % _COLOURS, " ".join(point(x, y) for x, y in line), " ".join(outline)))
    return tuple(drawn)


def make_det_chart(id: str, title: str, words: str, curves: Sequence[Curve]) -> Chart | None:
    """A chart of DET curves, with the point at which each engine ran. None without recordings both with and without the
    phrase."""
    curves = [curve for curve in curves if curve.det.has_accepts and curve.det.has_rejects]
    if not curves:
        return None
    scales = DetScales([curve.det for curve in curves])

    def svg_x(x: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (min(x, scales.right) - scales.zero_x) / (scales.right - scales.zero_x)

    def svg_y(y: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * (y - scales.zero_y) / (scales.all_y - scales.zero_y)

    drawn, marks = [], []
    for number, curve in enumerate(curves):
        x, y, low, high = (coordinates.repeat(2) for coordinates in scales.steps(curve.det))
        x, y, low, high = x[1:], y[:-1], low[:-1], high[:-1]  # each value is valid until the next
        corners = list(zip(x.tolist(), y.tolist(), strict=True))
        drawn.append((curve.name, corners, list(zip(x.tolist(), low.tolist(), high.tolist(), strict=True))))
        for kind, point, mark_words in (("own", curve.as_run, "as it ran"), ("chosen", curve.chosen, "chosen point")):
            if point is not None:
                x_place, y_place = scales.place(point)
                marks.append(
                    {
                        "x": svg_x(x_place),
                        "y": svg_y(y_place),
                        "number": number % _COLOURS,
                        "kind": kind,
                        "words": f"{curve.name}, {mark_words}",
                    }
                )
    return Chart(
        id=id,
        title=title,
        x_name="false accepts per hour",
        curves=_draw_curves(drawn, svg_x, svg_y),
        x_ticks=tuple((svg_x(x), label) for x, label in scales.x_ticks),
        y_ticks=tuple((svg_y(y), label) for y, label in scales.y_ticks),
        words=words,
        marks=tuple(marks),
    )


def charts_html(charts: Sequence[Chart | None]) -> str:
    """The pictures of charts as HTML, styled by templates/charts.css; "" without any. None stands for no chart."""
    figure = templates_of("harness.report").get_template("charts.html").module.figure  # type: ignore[attr-defined]
    return "".join(str(figure(drawn)) for drawn in charts if drawn is not None)


def distribution_steps(values: Sequence[float]) -> list[Point]:
    """The empirical distribution: for each value, the percentage of values up to it. At most MAX_POINTS steps."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    indices = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), MAX_POINTS)).round().astype(int))
    line: list[Point] = []
    previous_share = 0.0
    for index in indices:
        share = 100 * (int(index) + 1) / len(ordered)
        line += [(float(ordered[index]), previous_share), (float(ordered[index]), share)]
        previous_share = share
    return line


def time_unit(span_s: float) -> tuple[str, float]:
    """The unit in which a span reads best, and its length in seconds."""
    if span_s < 180:
        return "seconds", 1.0
    return ("minutes", 60.0) if span_s < 3 * 3600 else ("hours", 3600.0)


def _ticks(end: float, start: float = 0.0) -> list[float]:
    """Round numbers between start and end, at most six or so. The small terms allow for rounding errors."""
    min_step = (end - start) / 5
    size = 10 ** math.floor(math.log10(min_step))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= min_step * 0.999)
    return [step * number for number in range(math.ceil(start / step - 1e-9), int(end / step + 1e-9) + 1)]


@frozen
class LaneMark:
    """An event or a span in a lane, from start_s.

    - kind: its CSS class.
    - words: its text.
    - more: number of marks for which it stands.
    """

    start_s: float
    length_s: float
    kind: str
    words: str
    more: int = 1


@frozen
class Lane:
    """The marks of one source.

    pooled_s: length of the bins into which they were pooled, if there were too many to draw; else 0.
    """

    name: str
    marks: tuple[LaneMark, ...]
    pooled_s: float = 0.0


def make_lane(name: str, marks: Sequence[LaneMark], span_s: float) -> Lane:
    """A lane. More than MAX_MARKS marks are pooled into bins by kind. span_s: length of the whole lane."""
    if len(marks) <= MAX_MARKS:
        return Lane(name, tuple(marks))
    bin_s = span_s / (MAX_MARKS // len({mark.kind for mark in marks}))
    counts = Counter((int(mark.start_s / bin_s), mark.kind) for mark in marks)
    pooled = tuple(
        LaneMark(number * bin_s, bin_s, kind, f"{count} × {kind.replace('_', ' ')}", count)
        for (number, kind), count in sorted(counts.items())
    )
    return Lane(name, pooled, bin_s)


@frozen
class SoundPicture:
    """The picture of a sound.

    - wave: SVG path of the waveform in a box of 300 × 40.
    - spectrogram: a PNG as data URI, with low frequencies at the bottom.
    """

    wave: str
    spectrogram: str


def draw_sound(samples: npt.NDArray[np.float32], rate_hz: int) -> SoundPicture:
    """The picture of mono samples, shape (n,), full scale 1."""
    edges = np.linspace(0, len(samples), PICTURE_COLUMNS + 1).astype(int)
    columns = [samples[start:end] if end > start else np.zeros(1) for start, end in pairwise(edges)]
    # From the highest sample to a little below the lowest, so that silence is a line.
    wave = "".join(
        f"M{x} {fixed(20 - 19 * float(np.max(column)), 1)}V{fixed(20.3 - 19 * float(np.min(column)), 1)}"
        for x, column in enumerate(columns)
    )
    padded = np.pad(samples, (0, max(0, _WINDOW_SAMPLES - len(samples))))
    starts = np.unique(np.linspace(0, len(padded) - _WINDOW_SAMPLES, PICTURE_COLUMNS).astype(int))
    frames = padded[starts[:, None] + np.arange(_WINDOW_SAMPLES)] * np.hanning(_WINDOW_SAMPLES)
    # 0 dB is a full-scale sine, whose peak in the spectrum is a quarter of the window (a half, halved by the taper).
    level_db = 20 * np.log10(np.abs(np.fft.rfft(frames)) / (_WINDOW_SAMPLES / 4) + 1e-9)
    # 16 greys of 5 dB each: with 256 greys, noise would make the picture three times as large.
    grey = np.clip(16 * (1 + level_db / _RANGE_DB), 0, 15).astype(np.uint8).T[::-1] * 17
    return SoundPicture(wave, "data:image/png;base64," + base64.b64encode(_png(255 - grey)).decode("ascii"))


def _png(grey: npt.NDArray[np.uint8]) -> bytes:
    """A PNG with one byte for each pixel. Source: the PNG specification, third edition; filter 0 in each row."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    height, width = grey.shape
    rows = np.hstack([np.zeros((height, 1), np.uint8), grey]).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits, greyscale
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
