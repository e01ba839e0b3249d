"""Samples of one stream against the host clock, and the way from its rate to the detectors' rate."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque

import numpy as np
import numpy.typing as npt

from harness.model.time import Stamp

Mono = npt.NDArray[np.float32]

ANALYSIS_HZ = 16000


class Timeline:
    """Where each sample lies on the host clock: anchors of the last `keep` blocks, nearest earlier one counts."""

    def __init__(self, rate_hz: int, keep: int = 6000) -> None:
        self.rate_hz = rate_hz
        self._anchors: deque[tuple[int, float, float]] = deque(maxlen=keep)

    def add(self, first_sample: int, at_s: float, error_s: float) -> None:
        """An anchor: sample `first_sample` was at `at_s`; they come in rising order."""
        self._anchors.append((first_sample, at_s, error_s))

    def clear(self) -> None:
        self._anchors.clear()

    def at(self, sample: float) -> Stamp:
        """The host time of a sample (may be fractional); ValueError when there is no anchor."""
        first, at_s, error_s = self._nearest(sample, 0)
        return Stamp(at_s + (sample - first) / self.rate_hz, error_s)

    def sample(self, at_s: float) -> float:
        """The sample at a host time, extrapolated where none has arrived; ValueError when there is no anchor."""
        first, anchor_s, _ = self._nearest(at_s, 1)
        return first + (at_s - anchor_s) * self.rate_hz

    def _nearest(self, value: float, column: int) -> tuple[int, float, float]:
        if not self._anchors:
            raise ValueError("no block has arrived yet")
        # Asked almost always about the newest anchors.
        if value >= self._anchors[-1][column]:
            return self._anchors[-1]
        index = bisect_right(self._anchors, value, key=lambda anchor: anchor[column])
        return self._anchors[max(index - 1, 0)]


class Decimator:
    """From a multiple of 16 kHz to 16 kHz, in blocks of any length; linear phase, so that its delay is one number.

    Output sample k stands for input sample k·factor − delay, where `delay` is in input samples.
    """

    def __init__(self, rate_hz: int) -> None:
        from scipy import signal  # here, since it takes long to import and a list of engines needs none

        if rate_hz % ANALYSIS_HZ:
            raise ValueError(f"the rate is a multiple of {ANALYSIS_HZ} Hz, not {rate_hz}")
        self.factor = rate_hz // ANALYSIS_HZ
        half = 32 * self.factor if self.factor > 1 else 0
        self.delay = half
        cutoff = 7600 / (rate_hz / 2)
        self._convolved = signal.fftconvolve
        taps = signal.firwin(2 * half + 1, cutoff, window=("kaiser", 8.0)) if half else np.ones(1)
        self._taps: Mono = taps.astype(np.float32)
        self.reset()

    def reset(self) -> None:
        self._past: Mono = np.zeros(len(self._taps) - 1, np.float32)
        self._phase = 0

    def feed(self, samples: Mono) -> Mono:
        """The next output samples, float32 (m,)."""
        if not len(samples):
            return samples
        joined = np.concatenate((self._past, samples))
        filtered = (
            self._convolved(joined, self._taps, "valid")
            if len(samples) > 4096
            else np.convolve(joined, self._taps, "valid")
        )
        if len(self._taps) > 1:
            self._past = joined[-(len(self._taps) - 1) :]
        kept = filtered[self._phase :: self.factor].astype(np.float32)
        self._phase = (self._phase - len(samples)) % self.factor
        return kept
