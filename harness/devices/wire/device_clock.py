"""Converts a device's times to the host's clock, with error bounds, from pings.

The device reads its clock at some time between the sending of a ping and the arrival of the answer. So each ping gives
an error bar: the middle of the round trip, ± half of it. The bars of many pings, with the possible drift between them,
bound the true time from both sides. The estimate is a line through the tenth of the pings with the fastest answers.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from harness.model.frozen import frozen
from harness.model.time import Stamp

Floats = npt.NDArray[np.float64]

KEPT_PINGS = 600  # Ten minutes at one a second.
_MIN_PINGS = 16
_SHARE = 10
"""The fit uses one in _SHARE of the kept pings, the best ones, but at least _MIN_PINGS."""
MAX_DRIFT = 0.1
"""Largest drift, in s per s: a clock that counts ticks may lose this much."""
_WANDER = 1e-6
"""Change of a crystal's drift within the minutes considered, s per s."""
_STEP_S = 1e-6
"""Resolution of the device's times: it counts µs."""
_JUMP_S = 2e-5
"""A ping that lies this far outside of the bounds, in seconds, shows that the clock has jumped."""
_LINE_SPAN_S = 0.2
"""Pings within a shorter span, in seconds, give no slope."""
_GROWTH = 1.25
"""Each gap of a burst is this many times as long as the one before."""
_UNANSWERED_S = 0.2
"""Least gap in a burst while a ping is unanswered."""


class PingResult(Enum):
    """Result of a ping: accepted, first of a new fit (the clock has jumped), or rejected as impossible."""

    TAKEN = auto()
    JUMPED = auto()
    IMPOSSIBLE = auto()


@frozen
class ClockFit:
    """The fit of one boot's clock: host = offset_s + device / (1 + skew_ppm · 10⁻⁶). A fast device has a positive skew.

    error_s: bound on the error of a conversion at the time of the last ping.
    """

    boot: str
    offset_s: float
    skew_ppm: float
    error_s: float


@frozen
class _Bar:
    device_s: float
    host_s: float
    half_s: float


class DeviceClock:
    """The clock of one boot at a time. Not thread-safe. Device times are µs since boot (u64)."""

    def __init__(self) -> None:
        self.boot = ""
        self._origin: _Bar | None = None
        self._last_device_s = 0.0
        # Bars relative to the origin: device time, host time minus device time, half width. First all, then the best.
        self._bars: Floats = np.zeros((3, 0))
        self._x: Floats = np.zeros(0)
        self._y: Floats = np.zeros(0)
        self._h: Floats = np.zeros(0)
        self._fit: tuple[float, float] | None = None
        self._slowest = -MAX_DRIFT
        self._fastest = MAX_DRIFT

    @property
    def fitted(self) -> bool:
        return self._origin is not None

    def start(self, boot: str) -> None:
        """Starts with a boot, whose clock is unknown; the same boot again changes nothing."""
        if boot == self.boot:
            return
        self.boot = boot
        self._forget()

    def ping(self, sent_s: float, received_us: int, answered_us: int, arrived_s: float) -> PingResult:
        """Adds a ping and its answer; host times in s, just before sending and at arrival."""
        held_s = (answered_us - received_us) * 1e-6
        way_s = arrived_s - sent_s - held_s
        # The device may count the time it held the ping too long, by its drift.
        if arrived_s < sent_s or held_s < 0 or way_s < -MAX_DRIFT * held_s - _STEP_S:
            return PingResult.IMPOSSIBLE
        half_s = max(way_s, 0.0) / 2 + _STEP_S
        bar = _Bar((received_us + answered_us) * 0.5e-6, (sent_s + arrived_s) / 2, half_s)
        jumped = self._origin is not None and self._contradicts(bar)
        if jumped:
            self._forget()
        if self._origin is None:
            self._origin = bar
        self._last_device_s = bar.device_s
        x = bar.device_s - self._origin.device_s
        y = bar.host_s - self._origin.host_s - x
        self._bars = np.concatenate((self._bars[:, 1 - KEPT_PINGS :], ((x,), (y,), (half_s,))), axis=1)
        self._choose_best()
        return PingResult.JUMPED if jumped else PingResult.TAKEN

    def host_time(self, device_us: int) -> Stamp:
        """Converts a device time to the host's; ValueError before the boot's first answered ping."""
        if self._origin is None:
            raise ValueError(f"the clock of boot {self.boot or '?'} is not known yet")
        x = device_us * 1e-6 - self._origin.device_s
        lowest, highest = self._bounds(x)
        level, slope = self._fit_line()
        estimate = level + slope * x
        if lowest > highest:
            # The clock's rate has changed more than allowed: widen the error.
            lowest, highest = highest, lowest
        estimate = min(max(estimate, lowest), highest)
        error_s = max(highest - estimate, estimate - lowest)
        return Stamp(self._origin.host_s + x + estimate, error_s)

    def fit(self) -> ClockFit | None:
        """The current fit; None before the first ping."""
        if self._origin is None:
            return None
        level, slope = self._fit_line()
        offset_s = self._origin.host_s - self._origin.device_s + level - slope * self._origin.device_s
        skew_ppm = (1 / (1 + slope) - 1) * 1e6
        return ClockFit(self.boot, offset_s, skew_ppm, self.host_time(round(self._last_device_s * 1e6)).error_s)

    def _forget(self) -> None:
        self._bars = np.zeros((3, 0))
        self._origin = None

    def _contradicts(self, bar: _Bar) -> bool:
        assert self._origin is not None
        x = bar.device_s - self._origin.device_s
        y = bar.host_s - self._origin.host_s - x
        lowest, highest = self._bounds(x)
        return y + bar.half_s < lowest - _JUMP_S or y - bar.half_s > highest + _JUMP_S

    def _bounds(self, x: float) -> tuple[float, float]:
        """Bounds of host minus device time at x, from the kept bars and the possible drifts."""
        away = x - self._x
        slow, fast = away * self._slowest, away * self._fastest
        return (
            float((self._y - self._h + np.minimum(slow, fast)).max()),
            float((self._y + self._h + np.maximum(slow, fast)).min()),
        )

    def _choose_best(self) -> None:
        x, y, h = self._bars
        count = min(len(x), max(_MIN_PINGS, len(x) // _SHARE))
        # An old ping must beat a new one by the possible drift since.
        best = np.sort(np.argsort(h + _WANDER * (x[-1] - x), kind="stable")[:count])
        self._x, self._y, self._h = x[best], y[best], h[best]
        self._limit_drift()
        self._fit = None

    def _fit_line(self) -> tuple[float, float]:
        """Level and slope of the line through the best bars, fitted at its first use after a ping."""
        if self._fit is None:
            weights = 1 / self._h**2
            total = weights.sum()
            centre_x = float((self._x * weights).sum() / total)
            centre_y = float((self._y * weights).sum() / total)
            away = self._x - centre_x
            slope = 0.0
            if self._x[-1] - self._x[0] > _LINE_SPAN_S:
                slope = float((weights * away * (self._y - centre_y)).sum()) / float((weights * away**2).sum())
            slope = min(max(slope, self._slowest), self._fastest)
            self._fit = centre_y - slope * centre_x, slope
        return self._fit

    def _limit_drift(self) -> None:
        """The slowest and fastest drift through every pair of bars, with room for its own change."""
        first, second = _pairs(len(self._x))
        spacing_s = self._x[second] - self._x[first]
        far = spacing_s > 1e-3  # s; pairs closer together bound no drift
        if not far.any():
            self._slowest, self._fastest = -MAX_DRIFT, MAX_DRIFT
            return
        rise = (self._y[second] - self._y[first])[far] / spacing_s[far]
        room = (self._h[second] + self._h[first])[far] / spacing_s[far] + _WANDER
        slowest, fastest = float((rise - room).max()), float((rise + room).min())
        if slowest > fastest:  # the rate has changed more than allowed, as in `host_time`
            slowest, fastest = fastest, slowest
        self._slowest, self._fastest = max(slowest, -MAX_DRIFT), min(fastest, MAX_DRIFT)


@lru_cache(maxsize=KEPT_PINGS // _SHARE)
def _pairs(count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The indices of every pair of `count` things, as two arrays."""
    first, second = np.triu_indices(count, 1)
    return first, second


class PingSchedule:
    """When to ping: in bursts at the start, after a jump and every few minutes, one at a time otherwise.

    A burst starts with gaps of gap_s, which grow to the period. Short gaps find quick round trips, long ones drift.
    """

    # The last of 24 growing gaps has 0.85 s, almost the period.
    def __init__(self, period_s: float = 1.0, *, burst: int = 24, gap_s: float = 0.005, every_s: float = 120.0) -> None:
        self._period_s = period_s
        self._burst = burst
        self._gap_s = gap_s
        self._every_s = every_s
        self._pings_left = 0
        self._last_ping_s = self._last_burst_s = float("-inf")
        self._unanswered = False

    def burst(self) -> None:
        """Requests a burst from now on."""
        self._pings_left = self._burst

    def answered(self) -> None:
        self._unanswered = False

    def wait_s(self, now_s: float) -> float:
        """Time until the next ping is due, s; 0 when it is due."""
        if self._pings_left <= 0 and now_s - self._last_burst_s >= self._every_s:
            self.burst()
        step_s = self._period_s
        if self._pings_left > 0:
            step_s = min(step_s, self._gap_s * _GROWTH ** (self._burst - self._pings_left))
            if self._unanswered:
                step_s = min(self._period_s, max(step_s, _UNANSWERED_S))
        return max(0.0, self._last_ping_s + step_s - now_s)

    def sent(self, now_s: float) -> None:
        """A ping was sent."""
        self._last_ping_s, self._unanswered = now_s, True
        if self._pings_left > 0:
            self._pings_left -= 1
            self._last_burst_s = now_s
