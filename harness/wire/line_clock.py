"""Device times in console lines: they narrow down when a line was written, and never widen it.

A line arrives some unknown time after it was written, never before. Its device time d and its arrival interval bound
the offset of the two clocks; the offsets of many lines must agree but for drift, so their intersection (upper bounds:
the lower envelope of arrival − d) says more than one line does. One way only: a delay that all lines share cannot be
seen, and stays in the stated error.
"""

from __future__ import annotations

import math
import re
from collections import deque
from dataclasses import dataclass

from harness.model.bench import ClockKind
from harness.model.time import Stamp

KEPT = 64
BIN_S = 0.25
CRYSTAL = 200e-6  # two crystals of 100 ppm
TICKS = 0.1  # a clock that counts ticks may lose so much; assumed until lines have shown better
PROVEN_POINTS, PROVEN_SPAN_S = 8, 2.0
STEP_BACK_S = 0.05  # two cores may write their lines in the wrong order
MAX_CONTRADICTIONS = 3

_HMS = re.compile(r"(?:(\d+):)?(\d+):(\d\d):(\d\d)(?:[.,]([\d,]+))?")
_UNITS = {
    ClockKind.S: 1.0,
    ClockKind.MS: 1e-3,
    ClockKind.US: 1e-6,
    ClockKind.AUDIO_S: 1.0,
    ClockKind.AUDIO_MS: 1e-3,
}


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """A time that a device wrote, and the step in which it counts, both in seconds."""

    device_s: float
    step_s: float


def read_time(text: str, kind: ClockKind) -> DeviceTime | None:
    """What a line's `time` says; None when it is no time of that kind."""
    if kind is ClockKind.NONE or len(text) > 40:
        return None
    if kind is ClockKind.HMS:
        return _hours(text)
    whole, _, decimals = text.strip().partition(".")
    if not (whole.isascii() and whole.isdigit()) or (decimals and not (decimals.isascii() and decimals.isdigit())):
        return None
    unit = _UNITS[kind]
    return DeviceTime(float(text) * unit, unit * 10.0 ** -len(decimals))


def _hours(text: str) -> DeviceTime | None:
    found = _HMS.fullmatch(text.strip())
    if found is None:
        return None
    days, hours, minutes, seconds, written = found.groups()
    decimals = (written or "").replace(",", "")
    fraction = int(decimals) / 10.0 ** len(decimals) if decimals else 0.0
    total_s = ((int(days or 0) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(seconds) + fraction
    return DeviceTime(total_s, 10.0 ** -len(decimals))


@dataclass(slots=True)
class _Bin:
    """The tightest bounds of the offset within a quarter of a second, each with its device time."""

    start_s: float
    high_at_s: float
    high: float
    low_at_s: float
    low: float


class LineClock:
    """Fed with every line that has a device time. After a step back or three contradictions it begins anew."""

    def __init__(self) -> None:
        self._bins: deque[_Bin] = deque(maxlen=KEPT)
        self._last_s: float | None = None
        self._contradictions = 0

    def add(self, time: DeviceTime, at: Stamp) -> None:
        """Takes a line's device time and its arrival."""
        d = time.device_s
        if self._last_s is not None and d < self._last_s - STEP_BACK_S - time.step_s:
            self._bins.clear()
        self._last_s = d
        low, high = self._offset(time, at)
        newest = self._bins[-1] if self._bins else None
        if newest is None or not 0 <= d - newest.start_s < BIN_S:
            self._bins.append(_Bin(d, d, high, d, low))
            return
        if high < newest.high:
            newest.high_at_s, newest.high = d, high
        if low > newest.low:
            newest.low_at_s, newest.low = d, low

    def narrowed(self, time: DeviceTime, at: Stamp) -> Stamp:
        """When the line was written: a part of the interval of its arrival, or that itself when nothing is known."""
        d, drift = time.device_s, self._drift()
        low, high = self._offset(time, at)
        for one in self._bins:
            high = min(high, one.high + drift * abs(d - one.high_at_s))
            low = max(low, one.low - drift * abs(d - one.low_at_s))
        if low > high:
            self._contradictions += 1
            if self._contradictions >= MAX_CONTRADICTIONS:
                self._bins.clear()
                self._contradictions = 0
            return at
        self._contradictions = 0
        start_s = max(at.at_s - at.error_s, d - time.step_s / 2 + low)
        end_s = min(at.at_s + at.error_s, d + time.step_s + high)
        if start_s > end_s:
            return at
        return Stamp((start_s + end_s) / 2, min(at.error_s, (end_s - start_s) / 2))

    @staticmethod
    def _offset(time: DeviceTime, at: Stamp) -> tuple[float, float]:
        """Bounds of host − device; the step is taken as cut off or as rounded."""
        return (
            at.at_s - at.error_s - time.device_s - time.step_s,
            at.at_s + at.error_s - time.device_s + time.step_s / 2,
        )

    def _drift(self) -> float:
        """Bound of the drift between the clocks, s per s: the envelope's slope with three standard errors."""
        n = len(self._bins)
        if n < PROVEN_POINTS or self._bins[-1].start_s - self._bins[0].start_s < PROVEN_SPAN_S:
            return TICKS
        # Differences to the first point: monotonic host times are large, and squares of them lose digits.
        first = self._bins[0]
        xs = [one.high_at_s - first.high_at_s for one in self._bins]
        ys = [one.high - first.high for one in self._bins]
        mean_x, mean_y = sum(xs) / n, sum(ys) / n
        spread = sum((x - mean_x) ** 2 for x in xs)
        slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
        rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in zip(xs, ys, strict=True))
        return min(TICKS, max(CRYSTAL, abs(slope) + 3 * math.sqrt(rest / (n - 2) / spread)))
