"""The host time of a PortAudio stream's samples: counted, with the constant latency that PortAudio reports added."""

from __future__ import annotations

import statistics

from harness.audio.packets import Packet
from harness.audio.sample_clock import SampleClock

RATE_HZ = 48000
_PLAUSIBLE_S = 1.0
_REPORTS = 64


class StreamClock:
    """A `SampleClock` of callbacks, shifted from "the callback had it" to "the converter had it".

    The shift is the median of the first reports after the clock has settled: PortAudio's first ones are wrong, and
    later ones wander by some milliseconds behind mixing sinks, while the true latency stays. The error covers that:
    `shift_error_s` is what was measured, as a part of a buffer (0.8 of one for playback, where PulseAudio's mixing
    sinks report up to 4 of 30 ms too little at 480 frames; 0.5 ms for capture).
    """

    def __init__(self, fallback_shift_s: float, shift_error_s: float) -> None:
        self._count = SampleClock(RATE_HZ)
        self._fallback_shift_s = fallback_shift_s
        self._shift_error_s = shift_error_s
        self._reports: list[float] = []
        self._shift_s = fallback_shift_s
        self._believed = False

    @property
    def settled(self) -> bool:
        return self._count.settled and self._believed

    @property
    def shift_s(self) -> float:
        return self._shift_s

    def observe(self, packet: Packet) -> float:
        """Takes one callback; returns the seconds of sound that are missing before it, mostly 0.0."""
        missing_s = self._count.observe(packet.first_sample, packet.moment_s)
        if self._count.settled and len(self._reports) < _REPORTS:
            self._report(packet.reported_s)
        return missing_s

    def time_of(self, sample: int) -> tuple[float, float]:
        """Converter time of a sample, and its error, in seconds of the host clock."""
        at_s, error_s = self._count.time_of(sample)
        return at_s + self._shift_s, error_s + self._shift_error_s

    def sample_at(self, moment_s: float) -> int:
        """The sample at the converter at a moment."""
        return self._count.sample_at(moment_s - self._shift_s)

    def _report(self, reported_s: float) -> None:
        if 0 < abs(reported_s) < _PLAUSIBLE_S:
            self._reports.append(reported_s)
        if len(self._reports) >= 5:
            self._shift_s = statistics.median(self._reports)
        # A host that reports nothing usable is believed to have the latency of its buffers.
        self._believed = True
