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
from harness.model.observation import ClockFitted
from harness.model.time import Stamp

Floats = npt.NDArray[np.float64]

KEPT_PINGS = 600  # Ten minutes at one a second.
_MIN_PINGS = 16
_ONE_IN = 10
"""The fit uses one in _ONE_IN of the kept pings, the best ones, but at least _MIN_PINGS."""
MAX_DRIFT = 0.1
"""Largest drift, in s per s: a clock that counts ticks may lose this much."""
_DRIFT_CHANGE = 1e-6
"""Change of a crystal's drift within the minutes considered, s per s."""
_STEP_S = 1e-6
"""Resolution of the device's times: it counts µs."""
_JUMP_S = 2e-5
"""A ping that lies this far outside of the bounds, in seconds, shows that the clock has jumped."""
_LINE_SPAN_S = 0.2
"""Pings within a shorter span, in seconds, give no slope."""
_GAP_GROWTH = 1.25
"""Each gap of a burst is this many times as long as the one before."""
_MIN_UNANSWERED_GAP_S = 0.2
"""Least gap in a burst while a ping is unanswered."""


class PingResult(Enum):
    """Result of a ping.

    JUMPED: the clock has jumped, so this ping is the first of a new fit. IMPOSSIBLE: it was rejected.
    """

    ACCEPTED = auto()
    JUMPED = auto()
    IMPOSSIBLE = auto()


@frozen
class _Bar:
    """The error bar of one ping: at device_s on the device's clock, the host's clock showed host_s ± half_s."""

    device_s: float
    host_s: float
    half_s: float


class DeviceClock:
    """The clock of one boot at a time. Not thread-safe. Device times are µs since boot (u64)."""

    def __init__(self) -> None:
        self.boot = ""
        self._origin: _Bar | None = None
        self._last_device_s = 0.0
        # Bars relative to the origin: device time, host time minus device time, half width. First all as rows of one
        # array, then the best as three arrays.
        self._bars: Floats = np.zeros((3, 0))
        self._device_s: Floats = np.zeros(0)
        self._offset_s: Floats = np.zeros(0)
        self._half_width_s: Floats = np.zeros(0)
        self._line: tuple[float, float] | None = None
        self._min_drift = -MAX_DRIFT
        self._max_drift = MAX_DRIFT

    @property
    def fitted(self) -> bool:
        """Whether a ping of this boot was answered, so that its times can be converted."""
        return self._origin is not None

    def start(self, boot: str) -> None:
        """Starts with a boot, whose clock is unknown; the same boot again changes nothing."""
        if boot == self.boot:
            return
        self.boot = boot
        self._forget()

    def add_ping(self, sent_s: float, received_us: int, answered_us: int, arrived_s: float) -> PingResult:
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
        self._select_best()
        return PingResult.JUMPED if jumped else PingResult.ACCEPTED

    def host_time(self, device_us: int) -> Stamp:
        """Converts a device time to the host's. Raises ValueError before the boot's first answered ping."""
        if self._origin is None:
            raise ValueError(f"the clock of boot {self.boot or '?'} is not known yet")
        x = device_us * 1e-6 - self._origin.device_s
        lowest, highest = self._bounds(x)
        level, slope = self._fitted_line()
        estimate = level + slope * x
        if lowest > highest:
            # The clock's rate has changed more than allowed: widen the error.
            lowest, highest = highest, lowest
        estimate = min(max(estimate, lowest), highest)
        error_s = max(highest - estimate, estimate - lowest)
        return Stamp(self._origin.host_s + x + estimate, error_s)

    def fit(self, source: str, stamp: Stamp) -> ClockFitted | None:
        """The current fit, reported by a source at a time; None before the first ping.

        host = offset_s + device / (1 + skew_ppm · 10⁻⁶). A fast device has a positive skew. error_s: bound on the error
        of a conversion at the time of the last ping.
        """
        if self._origin is None:
            return None
        level, slope = self._fitted_line()
        offset_s = self._origin.host_s - self._origin.device_s + level - slope * self._origin.device_s
        skew_ppm = (1 / (1 + slope) - 1) * 1e6
        error_s = self.host_time(round(self._last_device_s * 1e6)).error_s
        return ClockFitted(source, stamp, self.boot, offset_s, skew_ppm, error_s)

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
        distance_s = x - self._device_s
        slow, fast = distance_s * self._min_drift, distance_s * self._max_drift
        return (
            float((self._offset_s - self._half_width_s + np.minimum(slow, fast)).max()),
            float((self._offset_s + self._half_width_s + np.maximum(slow, fast)).min()),
        )

    def _select_best(self) -> None:
        """Selects the bars for the fit: the narrowest ones, and new ones before old ones."""
        x, y, h = self._bars
        count = min(len(x), max(_MIN_PINGS, len(x) // _ONE_IN))
        # An old ping must beat a new one by the possible drift since.
        best = np.sort(np.argsort(h + _DRIFT_CHANGE * (x[-1] - x), kind="stable")[:count])
        self._device_s, self._offset_s, self._half_width_s = x[best], y[best], h[best]
        self._limit_drift()
        self._line = None

    def _fitted_line(self) -> tuple[float, float]:
        """Level and slope of the line through the best bars, fitted at its first use after a ping."""
        if self._line is None:
            weights = 1 / self._half_width_s**2
            total = weights.sum()
            centre_x = float((self._device_s * weights).sum() / total)
            centre_y = float((self._offset_s * weights).sum() / total)
            distance_s = self._device_s - centre_x
            slope = 0.0
            if self._device_s[-1] - self._device_s[0] > _LINE_SPAN_S:
                slope = float((weights * distance_s * (self._offset_s - centre_y)).sum()) / float(
                    (weights * distance_s**2).sum()
                )
            slope = min(max(slope, self._min_drift), self._max_drift)
            self._line = centre_y - slope * centre_x, slope
        return self._line

    def _limit_drift(self) -> None:
        """Sets the smallest and largest drift that every pair of bars allows, with room for its own change."""
        first, second = _pairs(len(self._device_s))
        spacing_s = self._device_s[second] - self._device_s[first]
        far = spacing_s > 1e-3  # s; pairs closer together bound no drift
        if not far.any():
            self._min_drift, self._max_drift = -MAX_DRIFT, MAX_DRIFT
            return
        rise = (self._offset_s[second] - self._offset_s[first])[far] / spacing_s[far]
        room = (self._half_width_s[second] + self._half_width_s[first])[far] / spacing_s[far] + _DRIFT_CHANGE
        slowest, fastest = float((rise - room).max()), float((rise + room).min())
        if slowest > fastest:  # the rate has changed more than allowed, as in `host_time`
            slowest, fastest = fastest, slowest
        self._min_drift, self._max_drift = max(slowest, -MAX_DRIFT), min(fastest, MAX_DRIFT)


@lru_cache(maxsize=KEPT_PINGS // _ONE_IN)
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

    def request_burst(self) -> None:
        """Requests a burst from now on."""
        self._pings_left = self._burst

    def record_answer(self) -> None:
        """Records that the last ping was answered."""
        self._unanswered = False

    def wait_s(self, now_s: float) -> float:
        """Time until the next ping is due, s; 0 when it is due."""
        if self._pings_left <= 0 and now_s - self._last_burst_s >= self._every_s:
            self.request_burst()
        step_s = self._period_s
        if self._pings_left > 0:
            step_s = min(step_s, self._gap_s * _GAP_GROWTH ** (self._burst - self._pings_left))
            if self._unanswered:
                step_s = min(self._period_s, max(step_s, _MIN_UNANSWERED_GAP_S))
        return max(0.0, self._last_ping_s + step_s - now_s)

    def record_sent(self, now_s: float) -> None:
        """Records that a ping was sent."""
        self._last_ping_s, self._unanswered = now_s, True
        if self._pings_left > 0:
            self._pings_left -= 1
            self._last_burst_s = now_s
