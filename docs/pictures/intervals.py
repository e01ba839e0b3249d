"""Draws intervals.svg: how both intervals of false accepts per hour narrow over a simulated week of listening.

.venv/bin/python docs/pictures/intervals.py
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from harness.statistics.intervals import Interval, garwood
from harness.statistics.sequential import rate_sequence

TRUE_RATE, HOURS, SEED = 0.5, 160, 12
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 330, 56, 20, 34, 44
MAX_RATE = 2.5
COLOURS = {"any time": "#9ec5e8", "one look": "#2f6fa8", "truth": "#b3541e", "rate": "#12324d"}


def x_of(hour: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * hour / HOURS


def y_of(rate: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(rate, MAX_RATE) / MAX_RATE)


def path(points: Sequence[tuple[float, float]]) -> str:
    """The line through points (hour, rate), as the `d` of an SVG path."""
    return "M" + " L".join(f"{x_of(hour):.1f} {y_of(rate):.1f}" for hour, rate in points)


def band(counts: Sequence[int], interval: Callable[[int, float], Interval | None], colour: str, opacity: float) -> str:
    ends = [(hour, interval(count, hour)) for hour, count in enumerate(counts, start=1)]
    lower = [(hour, bounds[0]) for hour, bounds in ends if bounds]
    upper = [(hour, bounds[1]) for hour, bounds in ends if bounds]
    return f'<path d="{path([*lower, *reversed(upper)])} Z" fill="{colour}" fill-opacity="{opacity}"/>'


def text(x: float, y: float, words: str, anchor: str = "start", colour: str = "#333") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def main() -> None:
    counts = np.random.default_rng(SEED).poisson(TRUE_RATE, HOURS).cumsum().tolist()
    elements = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="13">'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        band(counts, rate_sequence, COLOURS["any time"], 0.6),
        band(counts, garwood, COLOURS["one look"], 0.35),
    ]
    for rate in np.arange(0, MAX_RATE + 0.1, 0.5):
        elements.append(f'<path d="{path([(0, rate), (HOURS, rate)])}" stroke="#ddd" fill="none"/>')
        elements.append(text(LEFT - 8, y_of(rate) + 4, f"{rate:g}", "end"))
    elements += [text(x_of(hour), HEIGHT - BOTTOM + 18, f"{hour}", "middle") for hour in range(0, HOURS + 1, 20)]
    rates = [(hour, count / hour) for hour, count in enumerate(counts, start=1)]
    elements += [
        f'<path d="{path(rates)}" stroke="{COLOURS["rate"]}" stroke-width="1.6" fill="none"/>',
        (
            f'<path d="{path([(0, TRUE_RATE), (HOURS, TRUE_RATE)])}" stroke="{COLOURS["truth"]}" '
            'stroke-dasharray="6 4" fill="none"/>'
        ),
        text(LEFT, 20, "False accepts per hour, and 95 % intervals, by hours heard"),
        text(WIDTH - RIGHT, TOP + 14, "light: at any time · dark: one look (Garwood)", "end", COLOURS["one look"]),
        text(WIDTH - RIGHT, TOP + 32, f"line: counted · dashed: the truth, {TRUE_RATE:g}", "end", COLOURS["truth"]),
        text(x_of(HOURS / 2), HEIGHT - 8, "hours of audio heard", "middle"),
        "</svg>",
    ]
    Path(__file__).with_name("intervals.svg").write_text("\n".join(elements) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
