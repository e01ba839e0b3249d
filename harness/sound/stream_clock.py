"""The host time of the samples in a PortAudio stream: a count, plus the constant latency of the stream.

PortAudio's reports of the latency are wrong in the first callbacks, and wander by milliseconds. Behind PulseAudio's
mixing sinks they can be wrong by 0.3 s and more for a whole stream (measured: 342 ms reported, 30 ms true). A report
is therefore used only on an unknown path, and only while reports agree. They are compared by the converter time that
they give, since a late callback reports a later one.
"""

from __future__ import annotations

import statistics
from collections import deque

from harness.model.frozen import frozen
from harness.sound.child import Packet

WINDOW_S = 1.0
WINDOWS = 12
"""Number of windows through which the drift is fitted."""
FIT_FROM = 5
"""Number of windows from which on the clock estimates drift."""
DRIFT_LIMIT = 500e-6
"""Largest drift of a sound card against the host, s per s. A fit that gives more is cut to it."""
SETTLED_S = 0.3
"""Length of the deliveries after which a clock is settled, in seconds."""
LATE_S = 0.008
"""If all deliveries during GAP_S are later than this, samples are missing: it is not jitter."""
GAP_S = 0.8
EARLY_S = 0.005
"""If a delivery is earlier than this, the stream has jumped ahead: it is not drift."""
BASE_ERROR_S = 0.0002
"""Error of every time, in seconds, to which the spread of the anchors is added."""
FIRST_SPREAD_S = 0.001
"""Assumed difference between anchors while there is only one, in seconds."""
FILLED_S = 0.1
"""Time after which the buffers are full, in seconds. Later early deliveries have another reason."""
STEP_S = 0.002
"""A delivery earlier than the anchor by this much is a step: jitter and drift move the anchor by less."""
AHEAD_LIMIT_S = 0.05
"""Largest growth of the harness's buffers, in seconds."""
_MAX_RECENT = 128  # More callbacks than come in GAP_S: 80 of 10 ms.


class SampleClock:
    """The clock of a stream. It takes (sample, time of its delivery or request), and gives the time of any sample.

    The offset of a delivery is its time minus sample / rate. A host can only deliver late, so the least offsets are
    closest to the truth:

        offset   ·   · ·     ·   ·        the least of each window of 1 s: · on the line
               ·_______·__·____·_____     slope: drift, by least squares through the last 12 windows
               window  window  window     height: the least of the last 5 windows

    Deliveries that are all late for GAP_S show that samples are missing, and an early one that the stream jumped
    ahead. The clock then starts afresh.
    """

    def __init__(self, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self._stream_start_s: float | None = None
        self._ahead_s = 0.0
        self._restart()

    def _restart(self) -> None:
        """Forgets all deliveries. A delivery is a pair of its nominal time (sample / rate) and its offset."""
        self._first_nominal_s: float | None = None
        self._minima: deque[tuple[float, float]] = deque(maxlen=WINDOWS)
        self._window_minimum: tuple[float, float] | None = None
        self._window_from = 0.0
        self._late_since_s: float | None = None
        self._least_late_s = 0.0
        self._latest_nominal_s = 0.0
        self._drift = 0.0
        self._base_s = 0.0
        self._spread_s = FIRST_SPREAD_S
        self._recent: deque[tuple[float, float]] = deque(maxlen=_MAX_RECENT)

    @property
    def settled(self) -> bool:
        """Whether enough deliveries have been observed that the anchor is not a late one."""
        return self._first_nominal_s is not None and self._latest_nominal_s - self._first_nominal_s >= SETTLED_S

    @property
    def ahead_s(self) -> float:
        """How much earlier deliveries have become since the buffers were full, in seconds.

        Either all deliveries were late at first, or a buffer has grown while the sound itself did not become earlier.
        """
        return self._ahead_s

    def observe(self, sample: int, moment_s: float) -> float:
        """Takes one delivery. Returns the seconds of sound that turn out to be missing, usually 0.0.

        `sample` and `moment_s` never decrease. After a gap the clock starts afresh and is not settled.
        """
        nominal_s = sample / self.rate_hz
        offset_s = moment_s - nominal_s
        if self._first_nominal_s is None:
            self._first_nominal_s, self._latest_nominal_s = nominal_s, nominal_s
            self._window_minimum, self._window_from = (nominal_s, offset_s), nominal_s
            self._base_s = offset_s
            self._stream_start_s = nominal_s if self._stream_start_s is None else self._stream_start_s
            self._recent.append((nominal_s, offset_s))
            return 0.0
        self._recent.append((nominal_s, offset_s))
        late_s = offset_s - self._expected_s(nominal_s)
        if late_s < -STEP_S and self._stream_start_s is not None and nominal_s - self._stream_start_s >= FILLED_S:
            self._ahead_s = min(self._ahead_s - late_s, AHEAD_LIMIT_S)
        if late_s < -EARLY_S and self.settled:
            self._restart()
            return self.observe(sample, moment_s)
        if self.settled and late_s > LATE_S:
            if self._late_since_s is None:
                self._late_since_s, self._least_late_s = nominal_s, late_s
            self._least_late_s = min(self._least_late_s, late_s)
            if nominal_s - self._late_since_s >= GAP_S:
                missing_s = self._least_late_s
                self._restart()
                # This delivery may be late for another reason than the gap.
                self.observe(sample, moment_s - late_s + missing_s)
                return missing_s
            self._latest_nominal_s = nominal_s
            return 0.0
        self._late_since_s = None
        self._latest_nominal_s = nominal_s
        self._add_delivery(nominal_s, offset_s)
        return 0.0

    def time_of(self, sample: int) -> tuple[float, float]:
        """The time of that sample and its error, in seconds. Raises ValueError before the first observation."""
        if self._first_nominal_s is None:
            raise ValueError("nothing has been observed yet")
        nominal_s = sample / self.rate_hz
        return nominal_s + self._expected_s(nominal_s), BASE_ERROR_S + self._spread_s

    def doubt_s(self, sample: int) -> float:
        """How much later than `time_of` a sample may have been, in seconds, ≥ 0, by the observations so far.

        Late deliveries count as jitter until they have been late for GAP_S. But samples may also be missing: at most as
        much as the smallest delay of the deliveries since. Raises ValueError before the first observation.
        """
        if self._first_nominal_s is None:
            raise ValueError("nothing has been observed yet")
        nominal_s = sample / self.rate_hz
        least_s = float("inf")
        for delivery_s, offset_s in reversed(self._recent):
            # Deliveries after the sample, or the last one before it if there is none.
            if delivery_s < nominal_s and least_s < float("inf"):
                break
            least_s = min(least_s, offset_s - self._expected_s(delivery_s))
        return max(0.0, least_s)

    def sample_at(self, moment_s: float) -> int:
        """The sample that was due at a time, rounded."""
        if self._first_nominal_s is None:
            raise ValueError("nothing has been observed yet")
        return round((moment_s - self._base_s) / (1 + self._drift) * self.rate_hz)

    def _expected_s(self, nominal_s: float) -> float:
        return self._base_s + self._drift * nominal_s

    def _add_delivery(self, nominal_s: float, offset_s: float) -> None:
        """Takes a delivery that is not late. At the end of each window, fits the line again."""
        if offset_s < self._expected_s(nominal_s):
            # Earlier than the anchor: the anchor was late.
            self._base_s = offset_s - self._drift * nominal_s
        if self._window_minimum is None or offset_s < self._window_minimum[1]:
            self._window_minimum = (nominal_s, offset_s)
        if nominal_s - self._window_from >= WINDOW_S:
            self._minima.append(self._window_minimum)
            self._window_minimum, self._window_from = None, nominal_s
            self._fit()

    def _fit(self) -> None:
        """Drift by least squares through the earliest delivery of each window. Base: the earliest of the last few."""
        if len(self._minima) >= FIT_FROM:
            count = len(self._minima)
            mean_x = sum(x for x, _ in self._minima) / count
            mean_y = sum(y for _, y in self._minima) / count
            covariance = sum((x - mean_x) * (y - mean_y) for x, y in self._minima)
            drift = covariance / sum((x - mean_x) ** 2 for x, _ in self._minima)
            self._drift = max(-DRIFT_LIMIT, min(DRIFT_LIMIT, drift))
        recent = [y - self._drift * x for x, y in list(self._minima)[-FIT_FROM:]]
        self._base_s = min(recent)
        self._spread_s = max(recent) - min(recent) if len(recent) > 1 else FIRST_SPREAD_S


RATE_HZ = 48000  # The virtual lab's: clients at another rate are resampled, and no longer bit-exact.
_MAX_REPORTS = 48
_MIN_REPORTS = 5
"""Of PortAudio's reports, at most _MAX_REPORTS are collected, and they are compared from _MIN_REPORTS on."""
_MAX_SPREAD_S = 0.01
_MAX_PLAUSIBLE_S = 0.5
"""Reports are used if all of them lie within _MAX_SPREAD_S, and if the latency that they give is shorter than this."""


@frozen
class Latency:
    """The latency of a stream. shift_s: converter time of a sample minus the time of its callback, ± error_s.

    It is negative for capture.
    """

    shift_s: float
    error_s: float


class StreamClock:
    """A `SampleClock` of callbacks, shifted from the time of the callback to the time at the converter.

    - assumed: the latency that is used unless reports give a better one.
    - report_error_s: error of reports that agree; None if reports are not used on this path.
    """

    def __init__(self, assumed: Latency, report_error_s: float | None) -> None:
        self._count = SampleClock(RATE_HZ)
        self._report_error_s = report_error_s
        self._reports: list[float] = []
        """Reported converter times of samples, each minus the sample's time in the stream."""
        self._none_reported = True
        self.latency = assumed

    @property
    def settled(self) -> bool:
        """Whether times no longer change much: by the count, and by the reports if they are used."""
        return self._count.settled and (self._report_error_s is None or len(self._reports) >= _MIN_REPORTS)

    def observe(self, packet: Packet) -> float:
        """Takes one callback; returns the seconds of sound that are missing before it, usually 0.0."""
        missing_s = self._count.observe(packet.first_sample, packet.moment_s)
        if missing_s:
            # Earlier reports belong to another count.
            self._reports.clear()
        if self._count.settled and len(self._reports) < _MAX_REPORTS:
            # A report of 0 means that there is none.
            self._none_reported = self._none_reported and packet.reported_s == 0
            nominal_s = packet.first_sample / RATE_HZ
            self._reports.append(packet.moment_s + packet.reported_s - nominal_s)
            self._compare_reports(self._count.time_of(packet.first_sample)[0] - nominal_s)
        return missing_s

    def time_of(self, sample: int) -> tuple[float, float]:
        """Converter time of a sample and its error, in seconds of the host clock."""
        at_s, error_s = self._count.time_of(sample)
        return at_s + self.latency.shift_s, error_s + self.latency.error_s

    def departure_of(self, sample: int) -> tuple[float, float]:
        """When a played sample left, and the error of that: larger than in `time_of` while the pace is uncertain.

        Samples leave in order, and none is left out. They may leave later if buffers ran empty, but never earlier.
        Earlier callbacks mean that buffers have grown, or that all previous callbacks were late.
        """
        at_s, error_s = self.time_of(sample)
        half_ahead_s = self._count.ahead_s / 2
        return at_s + half_ahead_s, error_s + half_ahead_s + self._count.doubt_s(sample)

    def sample_at(self, moment_s: float) -> int:
        """The sample at the converter at a given time."""
        return self._count.sample_at(moment_s - self.latency.shift_s)

    def _compare_reports(self, counted_s: float) -> None:
        """Compares the reports, and uses their latency if they agree. counted_s: the sample's time by the count."""
        if self._report_error_s is None or len(self._reports) < _MIN_REPORTS:
            return
        middle_s = statistics.median(self._reports) - counted_s
        agree = max(self._reports) - min(self._reports) < _MAX_SPREAD_S
        if agree and not self._none_reported and abs(middle_s) < _MAX_PLAUSIBLE_S:
            self.latency = Latency(middle_s, self._report_error_s)
