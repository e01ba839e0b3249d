"""Numbers as text: the only place where a number gets its digits.

Everything that a person reads calls these functions; JSON and CSV keep the numbers themselves. `setup/shape.py` refuses
other prints of numbers. Shares and intervals, which need their types, stand in `harness/statistics/text.py`.
"""

from __future__ import annotations

import re
import time

WRITTEN_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
"""A finite number, as files write it."""
NOTHING = "n/a"
"""What stands where there is no value: a rate over nothing, a quantile of too few values."""
TOO_FEW = "too few"
"""What stands at the end of an interval that needs more values."""


def number(value: float | None) -> str:
    """A result, with two or three significant digits: `0.0025`, `0.042`, `0.42`, `3.90`, `42.0`, `142`."""
    if value is None:
        return NOTHING
    size = abs(value)
    if size >= 99.5:  # the bounds are those from which rounding gives one digit more
        return f"{value:.0f}"
    if size >= 9.95:
        return f"{value:.1f}"
    if size >= 0.095 or value == 0:
        return f"{value:.2f}"
    return f"{value:.3f}" if size >= 0.0095 else exact(value, 2)


def exact(value: float, digits: int = 6) -> str:
    """A value as somebody declared it, never with an exponent: `600`, `2.5`, `0.00001`.

    digits: significant digits to which it is rounded, at most 15.
    """
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    decimals = max(0, len(mantissa.partition(".")[2]) - int(exponent))
    return f"{float(text):.{decimals}f}"


def fixed(value: float | None, decimals: int, unit: str = "") -> str:
    """A value of a column or scale with a fixed number of decimals: `0.433`, `-42.1 dBFS`. Zero is never negative."""
    if value is None:
        return NOTHING
    text = f"{value:.{decimals}f}"
    return (text.removeprefix("-") if float(text) == 0 else text) + (unit and f" {unit}")


def data_size(size_bytes: int) -> str:
    """A number of bytes: `33.55 MB`, `20 GB`, in powers of 1000; `1,024 bytes` below 1 MB."""
    for unit_bytes, unit in ((10**9, "GB"), (10**6, "MB")):
        if size_bytes >= unit_bytes:
            return f"{exact(size_bytes / unit_bytes, 4)} {unit}"
    return f"{size_bytes:,} bytes"


def signed(value: float, decimals: int | None = None) -> str:
    """A difference: `+0.42`, `-12.0`. What is rounded to zero is never negative.

    decimals: None gives as many as `number` does.
    """
    if decimals is not None:
        return f"{value:+z.{decimals}f}"
    return f"{'-' if value < 0 else '+'}{number(abs(value))}"


def signed_ms(difference_s: float) -> str:
    """A difference of times in ms: `+8.00`, `-0.12`. Less than half a microsecond is rounding: `+0.00`."""
    return signed(round(1000 * difference_s, 3))


def hundredths(value: float | None, digits: int | None = None) -> str:
    """A share of 0–1 in percent, without the percent sign: `2.50`, `12.5`, `100`; with `digits`, this many decimals."""
    if value is None:
        return NOTHING
    value *= 100
    if digits is None:
        digits = 2
        if abs(value) >= 99.95:
            digits = 0
        elif abs(value) >= 9.95:
            digits = 1
    return f"{value:.{digits}f}"


def percent(value: float | None, digits: int | None = None) -> str:
    """A share of 0–1 with the percent sign: `2.50 %`, `12.5 %`, `100 %`; with `digits`, this many decimals."""
    return NOTHING if value is None else f"{hundredths(value, digits)} %"


def points(difference: float | None) -> str:
    """The difference of two shares, in percentage points: `+1.25`."""
    return NOTHING if difference is None else signed(100 * difference, 2)


def probability(value: float | None) -> str:
    """A p-value: `0.433`; what three decimals cannot show is `< 0.001`."""
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def p_is(value: float | None) -> str:
    """A p-value after its name: `p = 0.433`, `p < 0.001`, `p n/a`."""
    text = probability(value)
    return f"p {text}" if value is None or text.startswith("<") else f"p = {text}"


def seconds(value_s: float | None) -> str:
    """A duration: `0.2 ms`, `812 ms`, `2.41 s`, `34.0 s`."""
    if value_s is None:
        return NOTHING
    size = abs(value_s)
    if size < 0.9995:  # the rest would be written as 1000 ms or more
        return f"{value_s * 1000:.1f} ms" if 0 < size < 0.00095 else f"{value_s * 1000:.0f} ms"
    return f"{value_s:.2f} s" if size < 9.995 else f"{value_s:.1f} s"


def moment(at_s: float) -> str:
    """A place in a recording or on a clock, to the millisecond: `12.345 s`."""
    return f"{at_s:.3f} s"


def local_time(wall_s: float) -> str:
    """A time since the epoch as the host's local time of day, cut to the millisecond: `14:03:07.250`."""
    whole_s, milliseconds = divmod(int(wall_s * 1000), 1000)
    return time.strftime("%H:%M:%S", time.localtime(whole_s)) + f".{milliseconds:03d}"


def hours(value_s: float, decimals: int = 0) -> str:
    """A long duration as H:MM:SS, hours not padded: `1:02:03`, with one decimal `1:02:03.4`. Cut, never rounded up."""
    parts = int(value_s * 10**decimals)
    whole_s, rest = divmod(parts, 10**decimals)
    fraction = f".{rest:0{decimals}}" if decimals else ""
    return f"{whole_s // 3600}:{whole_s // 60 % 60:02}:{whole_s % 60:02}{fraction}"


def exposure(value_h: float) -> str:
    """The hours in which false accepts were counted: `0.008 h`, `142.984 h`."""
    return f"{value_h:.3f} h"


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `11th`, `21st`."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def time_left(eta_s: float | None) -> str:
    """The time left, coarsely: more digits would look more exact than it is."""
    if eta_s is None:
        return "time left unknown"
    if eta_s < 50:
        return f"about {max(5, round(eta_s / 5) * 5)} s left"
    minutes = round(eta_s / 60)
    if minutes < 90:
        return f"about {max(1, minutes)} min left"
    return f"about {eta_s / 3600:.1f} h left"


def counted(count: int, noun: str, several: str = "") -> str:
    """`1 row`, `2 rows`. several: the plural of the noun, if it does not end in s: `2 queries`."""
    return f"{count} {noun}" if count == 1 else f"{count} {several or noun + 's'}"
