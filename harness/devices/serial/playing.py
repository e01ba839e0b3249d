"""What is being given to a board: quantised, with a level for a meter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import soxr

from harness.devices.wire.adpcm import Pcm
from harness.model.stimulus import Waveform

LEVEL_S = 0.1


@dataclass(slots=True)
class Playing:
    """start, end: positions on the audio line. events: number of the board's last event when it had heard the end."""

    play_id: str
    samples: Pcm
    rate_hz: int
    start: int = 0
    end: int = 0
    started: bool = False
    events: int | None = None

    def level_dbfs(self, position: int) -> float:
        """RMS of the last 100 ms up to a position on the line; 0 dBFS is a full-scale square wave."""
        last = max(0, min(position - self.start, len(self.samples)))
        part = self.samples[max(0, last - round(LEVEL_S * self.rate_hz)) : last].astype(np.float64)
        power = float(np.mean(part**2)) / 32768.0**2 if len(part) else 0.0
        return max(-100.0, 10 * math.log10(power)) if power > 0 else -100.0


def quantised(waveform: Waveform, rate_hz: int) -> Pcm:
    """16 bits at the board's rate; what is beyond full scale is cut off."""
    samples = waveform.samples
    if waveform.rate_hz != rate_hz:
        samples = soxr.resample(samples, waveform.rate_hz, rate_hz, quality="HQ")
    return np.clip(np.round(samples * 32768.0), -32768, 32767).astype(np.int16)
