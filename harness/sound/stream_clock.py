"""The host time of a PortAudio stream's samples: counted, with the constant latency of the stream added.

The latency is what is hard. PortAudio's reports are wrong in the first callbacks, wander by milliseconds, and behind
PulseAudio's mixing sinks they can be wrong by 0.3 s and more for a whole stream (measured: 342 ms reported, 30 ms
true). So a report counts only where the path is not known, and only while reports agree with each other. They are
compared by the converter time that they name, not by themselves: a late callback is told of a later one.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from harness.sound.packets import Packet
from harness.sound.sample_clock import SampleClock

RATE_HZ = 48000
_REPORTS = 48
_ENOUGH = 5
_AGREE_S = 0.01
_PLAUSIBLE_S = 0.5


@dataclass(frozen=True, slots=True)
class Latency:
    """Converter time of a sample less the moment of its callback: negative for capture, true within ± error_s."""

    shift_s: float
    error_s: float


class StreamClock:
    """A `SampleClock` of callbacks, shifted from "the callback had it" to "the converter had it".

    assumed: the latency as long as reports say nothing better. report_error_s: the error of reports that agree; None:
    reports are not believed on this path.
    """

    def __init__(self, assumed: Latency, report_error_s: float | None) -> None:
        self._count = SampleClock(RATE_HZ)
        self._report_error_s = report_error_s
        self._reports: list[float] = []
        """Converter times of samples, each less the sample's time in the stream."""
        self._none_told = True
        self.latency = assumed

    @property
    def settled(self) -> bool:
        return self._count.settled and (self._report_error_s is None or len(self._reports) >= _ENOUGH)

    def observe(self, packet: Packet) -> float:
        """Takes one callback; returns the seconds of sound that are missing before it, mostly 0.0."""
        missing_s = self._count.observe(packet.first_sample, packet.moment_s)
        if missing_s:
            # Those before it are of another count.
            self._reports.clear()
        if self._count.settled and len(self._reports) < _REPORTS:
            # A report of 0 is none.
            self._none_told = self._none_told and packet.reported_s == 0
            nominal_s = packet.first_sample / RATE_HZ
            self._reports.append(packet.moment_s + packet.reported_s - nominal_s)
            self._weigh(self._count.time_of(packet.first_sample)[0] - nominal_s)
        return missing_s

    def time_of(self, sample: int) -> tuple[float, float]:
        """Converter time of a sample, and its error, in seconds of the host clock."""
        at_s, error_s = self._count.time_of(sample)
        return at_s + self.latency.shift_s, error_s + self.latency.error_s

    def left(self, sample: int) -> tuple[float, float]:
        """When a sample that is played left, and its error; wider than `time_of` while the stream's pace is in doubt.

        Samples leave one after the other, and none is left out: they may get later, when the buffers ran empty, but
        never earlier. Callbacks that come earlier mean fuller buffers, or that all were late before.
        """
        at_s, error_s = self.time_of(sample)
        half_s = self._count.ahead_s / 2
        return at_s + half_s, error_s + half_s + self._count.doubt_s(sample)

    def sample_at(self, moment_s: float) -> int:
        """The sample at the converter at a moment."""
        return self._count.sample_at(moment_s - self.latency.shift_s)

    def _weigh(self, counted_s: float) -> None:
        """counted_s: as the reports, but of the count."""
        if self._report_error_s is None or len(self._reports) < _ENOUGH:
            return
        middle_s = statistics.median(self._reports) - counted_s
        agree = max(self._reports) - min(self._reports) < _AGREE_S
        if agree and not self._none_told and abs(middle_s) < _PLAUSIBLE_S:
            self.latency = Latency(middle_s, self._report_error_s)
