"""Device times in console lines: the device's clock, fitted to the lower envelope of the lines' arrivals.

A line arrives an unknown time after it was written. Each arrival minus its device time is an upper bound of the offset
between the two clocks. The lowest of many bounds (their lower envelope) is close to the offset. How close:

- A driver states the width: the longest time from writing to reading (transmission, reading thread, adapter).
  The envelope lies within a width of the truth.
- The spread S of the arrivals above the envelope shows whether lines are held back for longer. Assume n delays
  between 0 and a longest one. The shortest exceeds c · S with the probability (1 + c)^(1 - n).
  The larger of the two is the bound.
- If delays of every length have been seen, the delay that all lines share is at most the width minus S.

One-way times cannot show a delay that all lines share and that exceeds the width.
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
TICKS = 0.1  # a clock that counts ticks may lose this much; assumed until lines show less
UNSURE = 0.01
PROVEN_POINTS, PROVEN_SPAN_S = 8, 2.0
STEP_BACK_S = 0.05  # two cores may write their lines in the wrong order
DOUBT = 0.002  # probability that the envelope is farther above the truth than stated
MOST_SPREADS = 3.0
MANY, EVEN = 32, 0.4
CREDIBLE_S = 1.0  # Longest credible delay. Times that differ by more are not the device's clock.
UNPROVEN_S = 0.12  # Assumed delay of the first lines, if it was not measured.
JUMP_BINS = 5  # After this many late quarters of a second in a row, the device's clock has stood still.

_HMS = re.compile(r"(?:(\d+):)?(\d+):(\d\d):(\d\d)(?:[.,]([\d,]+))?")
_UNITS = {ClockKind.S: 1.0, ClockKind.MS: 1e-3, ClockKind.US: 1e-6, ClockKind.AUDIO_S: 1.0, ClockKind.AUDIO_MS: 1e-3}


@dataclass(frozen=True, slots=True)
class DeviceTime:
    """A time that a device wrote, and the step in which it counts, both in seconds."""

    device_s: float
    step_s: float


def read_time(text: str, kind: ClockKind) -> DeviceTime | None:
    """The value of a line's `time`; None when it does not have that form."""
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
    """The lowest and the highest upper bound of the offset within a quarter of a second, each with its device time.

    width: of the lowest one: longest possible time from writing to reading.
    """

    start_s: float
    high_at_s: float
    high: float
    width: float
    late_at_s: float
    late: float


class LineClock:
    """Takes every line with a device time. Starts again after a step back, and after the clock stood still."""

    def __init__(self, hold_back_s: float = 0.0, unproven_s: float = 0.0) -> None:
        """hold_back_s: the adapter's share of the stated errors.

        unproven_s: assumed delay of the first lines, if hold_back_s was not measured.
        """
        self._hold_back_s = hold_back_s
        self._unproven_s = unproven_s
        self._bins: deque[_Bin] = deque(maxlen=KEPT)
        self._last_s: float | None = None

    @property
    def spread_s(self) -> float | None:
        """How much later than the promptest line others arrived, s; None while there are too few lines."""
        if len(self._bins) < PROVEN_POINTS:
            return None
        slope, _ = self._drift()
        return max(self._above(self._bins[-1].high_at_s, slope))

    def add(self, time: DeviceTime, at: Stamp) -> None:
        """Adds a line's device time and its arrival."""
        d = time.device_s
        if self._last_s is not None and d < self._last_s - STEP_BACK_S - time.step_s:
            self._bins.clear()
        self._last_s = d
        low, high = self._offset(time, at)
        newest = self._bins[-1] if self._bins else None
        if newest is None or not 0 <= d - newest.start_s < BIN_S:
            self._leave_a_jump()
            self._bins.append(_Bin(d, d, high, high - low, d, high))
            return
        if high < newest.high:
            newest.high_at_s, newest.high, newest.width = d, high, high - low
        if high > newest.late:
            newest.late_at_s, newest.late = d, high

    def stamp(self, time: DeviceTime, at: Stamp) -> Stamp:
        """When the line was written; the interval of its arrival if the clock is unknown."""
        d = time.device_s
        if not self._bins:
            return at
        slope, drift = self._drift()
        high, best = self._envelope(d, slope, drift)
        above = self._above(d, slope)
        if max(above) > CREDIBLE_S:
            return at
        near = sum(drift * abs(d - one.high_at_s) <= max(above) / 4 for one in self._bins)
        farthest = self._farthest(best.width, above, near)
        if drift == TICKS:
            farthest = max(farthest, best.width - self._hold_back_s + self._unproven_s)
        low = high - farthest - 2 * drift * abs(d - best.high_at_s)
        start_s = d - time.step_s / 2 + low
        end_s = min(at.at_s + at.error_s, d + time.step_s + high)
        if start_s > end_s or end_s < at.at_s - at.error_s - CREDIBLE_S:
            return at
        return Stamp((start_s + end_s) / 2, (end_s - start_s) / 2)

    @staticmethod
    def _offset(time: DeviceTime, at: Stamp) -> tuple[float, float]:
        """Bounds of host − device; the device's step may be truncated or rounded."""
        return (
            at.at_s - at.error_s - time.device_s - time.step_s,
            at.at_s + at.error_s - time.device_s + time.step_s / 2,
        )

    def _envelope(self, d: float, slope: float, drift: float) -> tuple[float, _Bin]:
        """The lowest upper bound of the offset at a device time, and where it comes from."""
        return min(
            ((one.high + slope * (d - one.high_at_s) + drift * abs(d - one.high_at_s), one) for one in self._bins),
            key=lambda found: found[0],
        )

    def _above(self, d: float, slope: float) -> list[float]:
        """How far above the promptest line the latest one of each bin came."""
        prompt = min(one.high + slope * (d - one.high_at_s) for one in self._bins)
        return [one.late + slope * (d - one.late_at_s) - prompt for one in self._bins]

    def _farthest(self, width: float, above: list[float], n: int) -> float:
        """How far the envelope may lie above the truth.

        width: longest time from writing to reading. n: number of bins near enough to be part of the envelope.
        """
        spread = max(above)
        share = min(MOST_SPREADS, DOUBT ** (-1 / (n - 1)) - 1) if n > 1 else MOST_SPREADS
        by_spread = share * spread + width - self._hold_back_s
        if n >= MANY and sum(above) / len(above) > EVEN * spread > EVEN * self._hold_back_s / 2:
            # Delays of every length have been seen, so the shared delay is at most the rest of the width.
            return max(width - spread, by_spread)
        return max(width, by_spread)

    def _leave_a_jump(self) -> None:
        """Forgets lines from before the clock stood still: since then every line seems late by that time."""
        if len(self._bins) < PROVEN_POINTS + JUMP_BINS:
            return
        bins = list(self._bins)
        before, since = bins[:-JUMP_BINS], bins[-JUMP_BINS:]
        spread = max(one.high for one in before) - min(one.high for one in before)
        if min(one.high for one in since) > max(one.high for one in before) + max(spread, before[-1].width):
            self._bins = deque(since, maxlen=KEPT)

    def _drift(self) -> tuple[float, float]:
        """The drift between the clocks, s per s, and how far it may be from that."""
        n = len(self._bins)
        if n < PROVEN_POINTS or self._bins[-1].start_s - self._bins[0].start_s < PROVEN_SPAN_S:
            return 0.0, TICKS
        # Use differences to the first point: squares of large monotonic times lose digits.
        first = self._bins[0]
        xs = [one.high_at_s - first.high_at_s for one in self._bins]
        ys = [one.high - first.high for one in self._bins]
        mean_x, mean_y = sum(xs) / n, sum(ys) / n
        spread = sum((x - mean_x) ** 2 for x in xs)
        slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
        rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in zip(xs, ys, strict=True))
        lines = [y - slope * x for x, y in zip(xs, ys, strict=True)]
        error = max(3 * math.sqrt(rest / (n - 2) / spread), (max(lines) - min(lines)) / max(xs))
        if error > UNSURE:
            return 0.0, TICKS
        # The difference of two crystals explains it, so the delays are not fitted as a slope.
        return (0.0, CRYSTAL) if abs(slope) <= CRYSTAL + error else (slope, min(TICKS, max(CRYSTAL, error)))
