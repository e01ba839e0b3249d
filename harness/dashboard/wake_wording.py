"""How wake figures are written on a screen, without markup."""

from __future__ import annotations

from harness.dashboard.wording import NOT_AVAILABLE
from harness.wake.wake_progress import DeviceWake, Interval, Rate, Ratio


def number(value: float) -> str:
    """A rate with as many digits as tell something: `0.042`, `3.9`, `142`."""
    if value >= 99.5:
        return f"{value:.0f}"
    if value >= 9.95:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.095 or value == 0 else f"{value:.3f}"


def percent(value: float) -> str:
    """`2.50 %`, `12.5 %`, `100 %`."""
    value *= 100
    if value >= 99.95:
        return f"{value:.0f} %"
    return f"{value:.1f} %" if value >= 9.95 else f"{value:.2f} %"


def ratio_interval(interval: Interval | None) -> str:
    return NOT_AVAILABLE if interval is None else f"{percent(interval[0])[:-2]}–{percent(interval[1])}"


def rate_interval(interval: Interval | None) -> str:
    return NOT_AVAILABLE if interval is None else f"{number(interval[0])}–{number(interval[1])}"


def ratio_value(ratio: Ratio) -> str:
    return NOT_AVAILABLE if ratio.share.value is None else percent(ratio.share.value)


def rate_value(rate: Rate) -> str:
    return NOT_AVAILABLE if rate.per_hour is None else number(rate.per_hour)


def hours(value_s: float) -> str:
    """H:MM:SS, the hours not padded."""
    whole = int(value_s)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def short_span(value_s: float) -> str:
    """`12 s`, `5 min`, `2 h`."""
    if value_s < 60:
        return f"{value_s:.0f} s"
    return f"{value_s / 60:.0f} min" if value_s < 3600 else f"{value_s / 3600:.0f} h"


def plus_minus(error_s: float | None) -> str:
    """A clock's error: `±0.42 ms`."""
    if error_s is None:
        return NOT_AVAILABLE
    milliseconds = error_s * 1000
    return f"±{milliseconds:.2f} ms" if milliseconds < 10 else f"±{milliseconds:.0f} ms"


def delays(device: DeviceWake) -> str:
    """`p50 0.31 p95 0.52 s`."""
    p50, p95 = device.delays.p50, device.delays.p95
    if p50 is None or p95 is None:
        return f"delay {NOT_AVAILABLE}"
    return f"delay p50 {p50.value_s:.2f} p95 {p95.value_s:.2f} s"
