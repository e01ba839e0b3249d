"""Shares, intervals and latencies as text. Single numbers are written by `harness/model/numbers.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.model.numbers import NOTHING, TOO_FEW, counted, exact, fixed, hundredths, number, percent, points, seconds
from harness.statistics.intervals import MAX_ERROR_S, may_be_nothing, values_needed

if TYPE_CHECKING:
    from harness.model.time import MeasuredDuration
    from harness.statistics.intervals import Interval, LatencyFigures, Quantile, Share


def percent_interval(ends: Interval | None, digits: int | None = None) -> str:
    """The ends of an interval of shares: `0.52–7.13 %`."""
    return NOTHING if ends is None else f"{hundredths_interval(ends, digits)} %"


def hundredths_interval(ends: Interval | None, digits: int | None = None) -> str:
    """Like `percent_interval`, but without the unit, for a column that has it in its head: `0.52–7.13`."""
    return NOTHING if ends is None else f"{hundredths(ends[0], digits)}–{hundredths(ends[1], digits)}"


TOO_FEW_VOICES = "too few voices for an interval"


def voices_interval(ends: Interval | None) -> str:
    """Like `percent_interval`, for a known share: without an interval, the text says that there are too few voices."""
    return TOO_FEW_VOICES if ends is None else percent_interval(ends)


def basis(voices: int | None, unknown: bool, trials: str = "exact") -> str:
    """The units of an interval: `over 5 voices`, or `trials` (such as `exact`) if voices is None. unknown: whether some
    recordings name no talker."""
    if voices is None:
        return f"{trials}, talkers unknown" if unknown else trials
    return f"over {counted(voices, 'voice')}" + (", unknown talkers counted as one" if unknown else "")


def number_interval(ends: Interval | None) -> str:
    """The ends of an interval of rates: `2.18–20.5`."""
    return NOTHING if ends is None else f"{number(ends[0])}–{number(ends[1])}"


def coefficient(value: float | None) -> str:
    """Agreement beyond chance, -1 to 1: `0.684`."""
    return fixed(value, 3)


def coefficient_interval(ends: Interval | None) -> str:
    """The ends of an interval of coefficients, which may be negative: `-0.012 to 0.775`."""
    return NOTHING if ends is None else f"{coefficient(ends[0])} to {coefficient(ends[1])}"


def points_interval(ends: Interval | None) -> str:
    """The ends of an interval of differences, which may be negative: `-0.39 to +2.18`."""
    return NOTHING if ends is None else f"{points(ends[0])} to {points(ends[1])}"


def share(ratio: Share, digits: int | None = None) -> str:
    """`3 of 120 = 2.50 %`; n/a if the total is 0."""
    return NOTHING if ratio.value is None else f"{ratio.count} of {ratio.total} = {percent(ratio.value, digits)}"


def share_with_interval(ratio: Share) -> str:
    """`3 of 120 = 2.50 % (95 % interval 0.85–7.09 %)`."""
    if ratio.interval is None:
        return NOTHING
    return f"{share(ratio)} (95 % interval {percent_interval(ratio.interval)})"


def measured(value: MeasuredDuration | None) -> str:
    """A duration with its error: `812 ms ± 10 ms`; `at most 2.95 s` if a large error exceeds the duration."""
    if value is None:
        return NOTHING
    if may_be_nothing(value):
        return f"at most {seconds(value.value_s + value.error_s)}"
    return f"{seconds(value.value_s)} ± {seconds(value.error_s)}"


def seconds_interval(low_s: float | None, high_s: float | None) -> str:
    """`290–330 ms`, `10.8–24.0 s`, `812 ms – 1.20 s`; "too few" for an end that is None."""
    if low_s is None and high_s is None:
        return TOO_FEW
    low, high = (TOO_FEW if end is None else seconds(end) for end in (low_s, high_s))
    if low_s is None or high_s is None or low.split()[1] != high.split()[1]:
        return f"{low} – {high}"
    return f"{low.split()[0]}–{high}"


def quantile(value: Quantile | None) -> str:
    """A quantile with its 95 % interval: `312 ms (290–330 ms)`, `19.0 s (10.8 s – too few)`."""
    if value is None:
        return NOTHING
    return f"{seconds(value.value_s)} ({seconds_interval(value.low_s, value.high_s)})"


def percentile(value: Quantile | None, total: int) -> str:
    """Like `quantile`, but "too few" if `total` values are too few for this quantile."""
    return TOO_FEW if value is not None and total < values_needed(value.share) else quantile(value)


def delays(figures: LatencyFigures) -> str:
    """`median 312 ms (290–330 ms), p95 512 ms (480 ms – too few), p99 too few, clock error ± 1 ms, n = 57`.

    The clock error is the median error of the durations used. The number of those left out follows.
    """
    left_out = ""
    if figures.excluded:
        left_out = f"; {figures.excluded} left out with an error above {seconds(MAX_ERROR_S)}"
    if figures.p50 is None or figures.p95 is None or figures.p99 is None:
        return f"{NOTHING}{left_out}"
    return (
        f"median {quantile(figures.p50)}, p95 {percentile(figures.p95, figures.total)}, "
        f"p99 {percentile(figures.p99, figures.total)}, "
        f"{clocks(figures.error_s)}, n = {figures.total}{left_out}"
    )


def clocks(error_s: float | None) -> str:
    """The error of a time: `clock error ± 1.3 ms`, `clock error ± 940 ms`, `clock error n/a`."""
    if error_s is None:
        return f"clock error {NOTHING}"
    return f"clock error ± {exact(error_s * 1000, 2)} ms"
