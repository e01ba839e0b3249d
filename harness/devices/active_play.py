"""A sound being sent to a device: quantised, with its place on the audio line and a level for a meter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import soxr

from harness.devices.wire.adpcm import EncodedSound, Pcm
from harness.model.stimulus import Waveform
from harness.sound.level import FLOOR_DBFS, rms_dbfs

LEVEL_S = 0.1


@dataclass(slots=True, eq=False)
class ActivePlay:
    """One `play`. start, end: positions on the audio line.

    waiting: The device has not heard all earlier sound. The sound gets its place after that.
    needed: Number of its last event, once the device has reported it.
    due_s: Deadline of those events.
    """

    play_id: str
    samples: Pcm
    rate_hz: int
    start: int = 0
    end: int = 0
    waiting: EncodedSound | None = None
    asked_s: float = 0.0
    started: bool = False
    needed: int | None = None
    due_s: float = 0.0

    def level_dbfs(self, position: int) -> float:
        """RMS of the last 100 ms up to a position on the audio line."""
        last = max(0, min(position - self.start, len(self.samples)))
        part = self.samples[max(0, last - round(LEVEL_S * self.rate_hz)) : last]
        return rms_dbfs((part / 32768).astype(np.float32)) if len(part) else FLOOR_DBFS


def quantised(waveform: Waveform, rate_hz: int) -> Pcm:
    """16 bits at the device's rate; samples beyond full scale are clipped."""
    samples = waveform.samples
    if waveform.rate_hz != rate_hz:
        samples = soxr.resample(samples, waveform.rate_hz, rate_hz, quality="HQ")
    return np.clip(np.round(samples * 32768.0), -32768, 32767).astype(np.int16)
