"""Numbers as text: the one place where a share, an interval, a rate, a duration or "n/a" is written.

Terminal output, screens, pages and logs for people call these functions; JSON and CSV keep the numbers themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.base.text_table import counted
from harness.statistics.intervals import MOST_ERROR_S

if TYPE_CHECKING:
    from harness.model.time import Measured
    from harness.statistics.intervals import Interval, LatencyFigures, Quantile, Share

NOTHING = "n/a"
"""What stands where there is no value: a rate over nothing, a quantile of too few values."""


def number(value: float | None) -> str:
    """Two or three significant digits: `0.0025`, `0.042`, `0.42`, `3.90`, `42.0`, `142`."""
    if value is None:
        return NOTHING
    size = abs(value)
    if size >= 99.5:
        return f"{value:.0f}"
    if size >= 9.95:
        return f"{value:.1f}"
    if size >= 0.095 or value == 0:
        return f"{value:.2f}"
    return f"{value:.3f}" if size >= 0.0095 else f"{value:.2g}"


def _hundredths(value: float, digits: int | None) -> str:
    value *= 100
    if digits is None:
        digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.95 else 2
    return f"{value:.{digits}f}"


def percent(value: float | None, digits: int | None = None) -> str:
    """A share of 0–1 with its sign: `2.50 %`, `12.5 %`, `100 %`; with `digits`, so many decimals."""
    return NOTHING if value is None else f"{_hundredths(value, digits)} %"


def percent_interval(ends: Interval | None, digits: int | None = None) -> str:
    """The ends of an interval of shares: `0.52–7.13 %`."""
    return NOTHING if ends is None else f"{_hundredths(ends[0], digits)}–{_hundredths(ends[1], digits)} %"


TOO_FEW_VOICES = "too few voices for an interval"


def voices_interval(ends: Interval | None, digits: int | None = None) -> str:
    """As `percent_interval`, of a share that is known: only too few voices leave it without an interval."""
    return TOO_FEW_VOICES if ends is None else percent_interval(ends, digits)


def basis(voices: int | None, unknown: bool, trials: str = "exact") -> str:
    """What an interval is over: `over 5 voices`, or `exact` for trials. unknown: some recordings name no talker."""
    if voices is None:
        return f"{trials}, talkers unknown" if unknown else trials
    return f"over {counted(voices, 'voice')}" + (", unknown talkers as one" if unknown else "")


def number_interval(ends: Interval | None) -> str:
    """The ends of an interval of rates: `2.18–20.5`."""
    return NOTHING if ends is None else f"{number(ends[0])}–{number(ends[1])}"


def points(difference: float | None) -> str:
    """The difference of two shares: `+1.25`, in points of a percentage."""
    return NOTHING if difference is None else f"{100 * difference:+.2f}"


def signed(value: float) -> str:
    """A difference of numbers: `+0.42`, `-12.0`."""
    return f"{'-' if value < 0 else '+'}{number(abs(value))}"


def points_interval(ends: Interval | None) -> str:
    """The ends of an interval of differences, which may be negative: `-0.39 to +2.18`."""
    return NOTHING if ends is None else f"{points(ends[0])} to {points(ends[1])}"


def probability(value: float | None) -> str:
    """A p: `0.433`; what three decimals cannot show is `< 0.001`."""
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def p_is(value: float | None) -> str:
    """The same behind its name: `p = 0.433`, `p < 0.001`, `p n/a`."""
    found = probability(value)
    return f"p {found}" if value is None or found.startswith("<") else f"p = {found}"


def share(of: Share, digits: int | None = None) -> str:
    """`3 of 120 = 2.50 %`; n/a of nothing."""
    return NOTHING if of.value is None else f"{of.count} of {of.total} = {percent(of.value, digits)}"


def share_with_interval(of: Share, digits: int | None = None) -> str:
    """`3 of 120 = 2.50 % (95 % interval 0.85–7.09 %)`."""
    if of.interval is None:
        return NOTHING
    return f"{share(of, digits)} (95 % interval {percent_interval(of.interval, digits)})"


def seconds(value_s: float | None) -> str:
    """A short duration: `812 ms`, `2.41 s`, `34.0 s`."""
    if value_s is None:
        return NOTHING
    if abs(value_s) < 0.9995:
        return f"{value_s * 1000:.0f} ms"
    return f"{value_s:.2f} s" if abs(value_s) < 10 else f"{value_s:.1f} s"


def measured(value: Measured | None) -> str:
    """A duration with its error: `812 ms ± 10 ms`."""
    return NOTHING if value is None else f"{seconds(value.value_s)} ± {seconds(value.error_s)}"


def hours(value_s: float, decimals: int = 0) -> str:
    """A long duration as H:MM:SS, hours not padded: `1:02:03`, with one decimal `1:02:03.4`. Cut, never rounded up."""
    parts = int(value_s * 10**decimals)
    whole, rest = divmod(parts, 10**decimals)
    fraction = f".{rest:0{decimals}}" if decimals else ""
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}{fraction}"


def time_left(eta_s: float | None) -> str:
    """The time left, coarsely: more digits would look more exact than it is."""
    if eta_s is None:
        return "time left not known"
    if eta_s < 50:
        return f"about {max(5, round(eta_s / 5) * 5)} s left"
    minutes = round(eta_s / 60)
    if minutes < 90:
        return f"about {max(1, minutes)} min left"
    return f"about {eta_s / 3600:.1f} h left"


def quantile(value: Quantile | None) -> str:
    """In milliseconds with its 95 % interval: `312 ms (290–330)`; `?` where there are too few values for an end."""
    if value is None:
        return NOTHING
    low, high = ("?" if end is None else f"{end * 1000:.0f}" for end in (value.low_s, value.high_s))
    return f"{value.value_s * 1000:.0f} ms ({low}–{high})"


def delays(found: LatencyFigures) -> str:
    """`median 312 ms (290–330), p95 512 ms (480–?), p99 620 ms (512–?), clocks ± 1 ms (of 117)`.

    The error is the median one of the times used. Times that were left out follow.
    """
    left_out = ""
    if found.excluded:
        left_out = f"; {found.excluded} left out: clocks ± more than {MOST_ERROR_S * 1000:.0f} ms"
    if found.p50 is None or found.p95 is None or found.p99 is None:
        return f"{NOTHING}{left_out}"
    return (
        f"median {quantile(found.p50)}, p95 {quantile(found.p95)}, p99 {quantile(found.p99)}, "
        f"{clocks(found.error_s)} (of {found.total}){left_out}"
    )


def clocks(error_s: float) -> str:
    """The error of a time: `clocks ± 1.3 ms`."""
    return f"clocks ± {float(f'{error_s * 1000:.2g}'):g} ms"
