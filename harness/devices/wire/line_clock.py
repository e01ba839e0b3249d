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
import statistics
from collections import deque
from dataclasses import dataclass

from harness.model.bench import ClockKind
from harness.model.frozen import frozen
from harness.model.time import Stamp

KEPT_BINS, BIN_S = 64, 0.25
"""Number of bins that are kept, and the length of each in device time, in seconds."""
CRYSTAL_DRIFT = 200e-6
"""Drift of two crystals of 100 ppm, s per s."""
TICKS_DRIFT = 0.1
"""A clock that counts ticks may lose this much, s per s. Assumed until lines show less."""
UNSURE_DRIFT = 0.01
"""A drift whose error is larger, in s per s, is not used."""
STEP_SLOPE_FACTOR = 1.5
"""Largest change of the slope of points that span 1, if some of them are off by a step of 1."""
LATE_POINTS_FACTOR = 1.5
"""Factor for the part of a slope that late points far from the others cause; the others may have a slope of their own.
"""
PROVEN_POINTS, PROVEN_SPAN_S = 8, 2.0
"""Least bins, and least device time between the first and the last, for a drift to be fitted."""
STEP_BACK_S = 0.05
"""How far device times may go back, in seconds: two cores may write their lines in the wrong order."""
EXCESS_PROBABILITY = 0.002
"""Probability that the envelope is farther above the truth than stated."""
MAX_SPREADS = 3.0
"""Largest distance of the envelope above the truth, in spreads."""
MANY_BINS, EVEN_SHARE = 32, 0.4
"""With at least MANY_BINS, a mean delay of EVEN_SHARE of the spread shows that there were delays of every length."""
CREDIBLE_S = 1.0
"""Longest credible delay, in seconds. Times that differ by more are not those of the device's clock."""
VAGUE_S = 0.25
"""An arrival with a larger error, in seconds, shows nothing about the clock."""
USUAL_SHARE = 0.1
"""The usual delay is the one that this share of the lines exceeds."""
UNPROVEN_S = 0.12
"""Assumed delay of the first lines, in seconds, if it was not measured."""
JUMP_BINS = 5
"""This many late bins in a row show that the device's clock has stood still."""
MAX_TIME_LENGTH = 40
"""Length, in characters, of the longest text that is read as a time."""

_HMS = re.compile(r"(?:(\d+):)?(\d+):(\d\d):(\d\d)(?:[.,]([\d,]+))?")
_UNITS = {ClockKind.S: 1.0, ClockKind.MS: 1e-3, ClockKind.US: 1e-6, ClockKind.AUDIO_S: 1.0, ClockKind.AUDIO_MS: 1e-3}


@frozen
class DeviceTime:
    """A time that a device wrote, and the step in which it counts, both in seconds."""

    device_s: float
    step_s: float


def read_time(text: str, kind: ClockKind) -> DeviceTime | None:
    """The value of a line's `time`; None when it does not have that form."""
    if kind is ClockKind.NONE or len(text) > MAX_TIME_LENGTH:
        return None
    if kind is ClockKind.HMS:
        return _read_hms(text)
    whole, _, decimals = text.strip().partition(".")
    if not (whole.isascii() and whole.isdigit()) or (decimals and not (decimals.isascii() and decimals.isdigit())):
        return None
    unit = _UNITS[kind]
    return DeviceTime(float(text) * unit, unit * 10.0 ** -len(decimals))


def _read_hms(text: str) -> DeviceTime | None:
    match = _HMS.fullmatch(text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds, fraction_text = match.groups()
    decimals = (fraction_text or "").replace(",", "")
    fraction = int(decimals) / 10.0 ** len(decimals) if decimals else 0.0
    whole_s = int(days or 0) * 86_400 + int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    return DeviceTime(whole_s + fraction, 10.0 ** -len(decimals))


@dataclass(slots=True)
class _Bin:
    """The fastest and the slowest line within BIN_S: the lowest and the highest upper bound of the offset."""

    start_s: float
    """Device time of the first line."""
    fastest_device_s: float
    """Device time of the fastest line."""
    fastest_offset_s: float
    """Upper bound of the offset that the fastest line gives."""
    fastest_width_s: float
    """Longest possible time from writing to reading of the fastest line."""
    slowest_device_s: float
    """Device time of the slowest line."""
    slowest_offset_s: float
    """Upper bound of the offset that the slowest line gives."""


class LineClock:
    """The clock of a device, from every line with a device time. It starts again if the clock jumps or stands still.

    If the clock stands still, all later lines seem late. Until that is certain, a line that is later than usual may
    have been written at any time before its arrival.
    """

    def __init__(self, hold_back_s: float = 0.0, unproven_s: float = 0.0) -> None:
        """hold_back_s: the adapter's part of the stated errors.

        unproven_s: assumed delay of the first lines, if hold_back_s was not measured.
        """
        self._hold_back_s = hold_back_s
        self._unproven_s = unproven_s
        self._bins: deque[_Bin] = deque(maxlen=KEPT_BINS)
        self._last_device_s: float | None = None  # of the last line
        self._late_line_count = 0  # of incredibly late lines in a row
        self._fit: tuple[float, float] | None = None  # drift and its error, until the bins change

    @property
    def spread_s(self) -> float | None:
        """How much later other lines arrived than the fastest one, s; None while there are too few lines."""
        if len(self._bins) < PROVEN_POINTS:
            return None
        slope, _ = self._drift()
        return max(self._bin_lateness(self._bins[-1].fastest_device_s, slope))

    def add(self, time: DeviceTime, stamp: Stamp) -> None:
        """Adds a line's device time and its arrival."""
        device_s = time.device_s
        if self._last_device_s is not None and device_s < self._last_device_s - STEP_BACK_S - time.step_s:
            self._forget()
        self._last_device_s = device_s
        if stamp.error_s > VAGUE_S:
            return
        # Bounds of host − device; the device's step may be truncated or rounded.
        low = stamp.at_s - stamp.error_s - device_s - time.step_s
        high = stamp.at_s + stamp.error_s - device_s + time.step_s / 2
        if self._contradicts(device_s, high) or self._proves_a_stop(device_s, low):
            self._forget()
        if self._late_line_count:
            return
        newest = self._bins[-1] if self._bins else None
        if newest is None or not 0 <= device_s - newest.start_s < BIN_S:
            self._forget_before_jump()
            self._bins.append(
                _Bin(
                    start_s=device_s,
                    fastest_device_s=device_s,
                    fastest_offset_s=high,
                    fastest_width_s=high - low,
                    slowest_device_s=device_s,
                    slowest_offset_s=high,
                )
            )
            self._fit = None
            self._forget_stray()
            return
        if high < newest.fastest_offset_s:
            newest.fastest_device_s = device_s
            newest.fastest_offset_s = high
            newest.fastest_width_s = high - low
            self._fit = None
        if high > newest.slowest_offset_s:
            newest.slowest_device_s = device_s
            newest.slowest_offset_s = high

    def _forget(self) -> None:
        self._bins.clear()
        self._fit = None
        self._late_line_count = 0

    def stamp(self, time: DeviceTime, stamp: Stamp) -> Stamp:
        """When the line was written. If the clock is unknown: its arrival, and a possible delay before that."""
        device_s = time.device_s
        unproven = Stamp(stamp.at_s - self._unproven_s / 2, stamp.error_s + self._unproven_s / 2)
        if not self._bins:
            return unproven
        arrived_s = stamp.at_s + stamp.error_s
        slope, slope_error = self._drift()
        lateness = self._bin_lateness(device_s, slope)
        if max(lateness) > CREDIBLE_S:
            return unproven
        low, high = self._fit_offset(device_s, slope, slope_error, lateness)
        start_s = device_s - time.step_s / 2 + low
        end_s = min(arrived_s, device_s + time.step_s + high)
        if start_s > end_s or end_s < stamp.at_s - stamp.error_s - CREDIBLE_S:
            return unproven
        middle_s, error_s = (start_s + end_s) / 2, (end_s - start_s) / 2
        delay_s = arrived_s - (device_s - time.step_s / 2 + high)
        if delay_s > self._usual_delay(lateness):
            # The device's clock may have stood still: the line may be as new as its arrival.
            error_s = arrived_s - middle_s
        return Stamp(middle_s, error_s)

    def _fit_offset(
        self, device_s: float, slope: float, slope_error: float, lateness: list[float]
    ) -> tuple[float, float]:
        """The bounds of the offset at a device time."""
        high, best = self._envelope(device_s, slope, slope_error)
        near_count = sum(slope_error * abs(device_s - bin.fastest_device_s) <= max(lateness) / 4 for bin in self._bins)
        farthest = self._envelope_error(best.fastest_width_s, lateness, near_count)
        if slope_error == TICKS_DRIFT:
            farthest = max(farthest, best.fastest_width_s - self._hold_back_s + self._unproven_s)
        return high - farthest - 2 * slope_error * abs(device_s - best.fastest_device_s), high

    def _contradicts(self, device_s: float, high: float) -> bool:
        """Whether a line was written after it arrived, by the clock as it was."""
        if not self._bins:
            return False
        slope, slope_error = self._drift()
        return high < self._fit_offset(device_s, slope, slope_error, self._bin_lateness(device_s, slope))[0]

    def _proves_a_stop(self, device_s: float, low: float) -> bool:
        """Counts incredibly late lines in a row. Returns whether they are JUMP_BINS: then the clock has stood still.

        Fewer are not enough, since a line may consist of two that were joined.
        """
        slope, slope_error = self._drift()
        is_late = bool(self._bins) and low > self._envelope(device_s, slope, slope_error)[0] + CREDIBLE_S
        self._late_line_count = self._late_line_count + 1 if is_late else 0
        return self._late_line_count == JUMP_BINS

    @staticmethod
    def _usual_delay(lateness: list[float]) -> float:
        """The delay that one line in ten exceeds. The newest lines do not count: they may be late because of a jump."""
        if len(lateness) < PROVEN_POINTS + JUMP_BINS:
            return 0.0
        return _upper_quantile(lateness[:-JUMP_BINS])

    def _envelope(self, device_s: float, slope: float, slope_error: float) -> tuple[float, _Bin]:
        """The lowest upper bound of the offset at a device time, and the bin that gives it.

        The bound of a bin moves with the fitted slope, and grows by the slope's error with the time since the bin.
        """
        bounds = []
        for bin in self._bins:
            since_s = device_s - bin.fastest_device_s
            bounds.append((bin.fastest_offset_s + slope * since_s + slope_error * abs(since_s), bin))
        return min(bounds, key=lambda bound: bound[0])

    def _bin_lateness(self, device_s: float, slope: float) -> list[float]:
        """For each bin, how much later its latest line arrived than the fastest line of all."""
        prompt = min(bin.fastest_offset_s + slope * (device_s - bin.fastest_device_s) for bin in self._bins)
        return [bin.slowest_offset_s + slope * (device_s - bin.slowest_device_s) - prompt for bin in self._bins]

    def _envelope_error(self, width: float, lateness: list[float], count: int) -> float:
        """How far the envelope may lie above the truth.

        - width: longest time from writing to reading.
        - count: number of bins near enough to be part of the envelope.
        """
        spread = max(lateness)
        share = min(MAX_SPREADS, EXCESS_PROBABILITY ** (-1 / (count - 1)) - 1) if count > 1 else MAX_SPREADS
        by_spread = share * spread + width - self._hold_back_s
        if (
            count >= MANY_BINS
            and sum(lateness) / len(lateness) > EVEN_SHARE * spread > EVEN_SHARE * self._hold_back_s / 2
        ):
            # Delays of every length have been seen, so the shared delay is at most the rest of the width.
            return max(width - spread, by_spread)
        return max(width, by_spread)

    def _forget_before_jump(self) -> None:
        """Forgets lines from before the clock stood still: since then every line seems late by that time."""
        bins = list(self._bins)
        for count in range(JUMP_BINS, min(2 * JUMP_BINS, len(bins) - PROVEN_POINTS) + 1):
            older, newer = bins[:-count], bins[-count:]
            # The more lines are late in a row, the less often each may have been late before.
            older_offsets_s = [bin.fastest_offset_s for bin in older]
            usual_max_s = _upper_quantile(older_offsets_s, USUAL_SHARE ** (JUMP_BINS / count))
            spread_s = usual_max_s - min(older_offsets_s)
            if all(bin.fastest_offset_s > usual_max_s + max(spread_s, bin.fastest_width_s) for bin in newer):
                self._bins = deque(newer, maxlen=KEPT_BINS)
                return

    def _forget_stray(self) -> None:
        """Forgets the only line that is incredibly late, which was held back: no drift could be fitted with it.

        Not one of the newest: the clock may have stood still since.
        """
        if len(self._bins) > PROVEN_POINTS:
            lateness = self._bin_lateness(self._bins[-1].fastest_device_s, self._drift()[0])
            latest_index = lateness.index(max(lateness))
            stray_count = sum(late_s > CREDIBLE_S for late_s in lateness)
            if stray_count == 1 and latest_index < len(lateness) - JUMP_BINS:
                del self._bins[latest_index]
                self._fit = None

    def _drift(self) -> tuple[float, float]:
        """The slope of the offset (the drift between the clocks) and its largest error, both in s per s."""
        if self._fit is None:
            self._fit = self._fit_drift()
        return self._fit

    def _fit_drift(self) -> tuple[float, float]:
        """The drift and its error: TICKS_DRIFT while there are too few bins, or they do not lie on a line."""
        count = len(self._bins)
        if count < PROVEN_POINTS or self._bins[-1].start_s - self._bins[0].start_s < PROVEN_SPAN_S:
            return 0.0, TICKS_DRIFT
        # Use differences to the first point: squares of large monotonic times lose digits.
        first = self._bins[0]
        xs = [bin.fastest_device_s - first.fastest_device_s for bin in self._bins]
        ys = [bin.fastest_offset_s - first.fastest_offset_s for bin in self._bins]
        slope, intercepts, sigma = _fit_line(xs, ys)
        other_slopes = [_fit_line(xs[1:], ys[1:])[0], _fit_line(xs[:-1], ys[:-1])[0], _median_slope(xs, ys)]
        error = max(
            3 * sigma,
            (max(intercepts) - min(intercepts)) / max(xs),
            STEP_SLOPE_FACTOR * (_upper_quantile(intercepts) - min(intercepts)) / max(xs),
            *(LATE_POINTS_FACTOR * abs(slope - other) for other in other_slopes),
        )
        if error > UNSURE_DRIFT:
            return 0.0, TICKS_DRIFT
        # The difference of two crystals explains it, so the delays are not fitted as a slope.
        if abs(slope) <= CRYSTAL_DRIFT + error:
            return 0.0, CRYSTAL_DRIFT
        return slope, min(TICKS_DRIFT, max(CRYSTAL_DRIFT, error))


def _fit_line(xs: list[float], ys: list[float]) -> tuple[float, list[float], float]:
    """The slope of the line through the points, each point's intercept at it, and the standard error of the slope."""
    count = len(xs)
    mean_x, mean_y = sum(xs) / count, sum(ys) / count
    spread = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    intercepts = [y - slope * x for x, y in zip(xs, ys, strict=True)]
    squares = sum((intercept - mean_y + slope * mean_x) ** 2 for intercept in intercepts)
    return slope, intercepts, math.sqrt(squares / (count - 2) / spread)


def _median_slope(xs: list[float], ys: list[float]) -> float:
    """The median of the slopes between points that are half of all points apart: few late points do not change it."""
    half = len(xs) // 2
    return statistics.median((ys[i + half] - ys[i]) / (xs[i + half] - xs[i] or BIN_S) for i in range(len(xs) - half))


def _upper_quantile(numbers: list[float], share: float = USUAL_SHARE) -> float:
    """The highest of the numbers, after the highest `share` of them is left out."""
    return sorted(numbers)[-1 - int(share * len(numbers))]
