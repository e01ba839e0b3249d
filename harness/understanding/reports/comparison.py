"""Two systems on the utterances that both have predictions for, as lines for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness.base.cells import shown
from harness.understanding.reports.words import NOTHING, per_cent, table
from harness.understanding.scoring.comparison import Difference, FrameComparison


def lines(comparisons: Sequence[FrameComparison], width: int) -> Iterator[str]:
    """A table for each two systems: difference in points of per cent, its interval, and whether it comes by chance."""
    for one in comparisons:
        yield ""
        yield shown(f"first: {one.first}, second: {one.second}; on {len(one.utterances):,} utterances of both", width)
        left = one.only_first + one.only_second + one.neither
        if left:
            yield (
                f"left out: {one.only_first:,} of the first alone, {one.only_second:,} of the second alone, "
                f"{one.neither:,} of neither"
            )
        rows = [
            (key.value.replace("_", " "), _cells(of)) for key, of in one.differences.items() if of.value is not None
        ]
        yield from table("figure", ("first", "second", "difference", "95 % interval", "p"), rows, width)


def comparison_json(one: FrameComparison) -> dict[str, Any]:
    """The differences, 0–1; p two-sided."""
    return {
        "first": one.first,
        "second": one.second,
        "utterances": len(one.utterances),
        "only_first": one.only_first,
        "only_second": one.only_second,
        "neither": one.neither,
        "differences": {
            key.value: {
                "first": of.first,
                "second": of.second,
                "difference": of.value,
                "interval": None if of.interval is None else list(of.interval),
                "p": of.p,
            }
            for key, of in one.differences.items()
        },
    }


def _cells(of: Difference) -> tuple[str, ...]:
    apart = NOTHING if of.interval is None else f"{_points(of.interval[0])} to {_points(of.interval[1])}"
    p = NOTHING if of.p is None else "< 0.001" if of.p < 0.001 else f"{of.p:.3f}"
    return per_cent(of.first), per_cent(of.second), _points(of.value), apart, p


def _points(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:+.2f}"
