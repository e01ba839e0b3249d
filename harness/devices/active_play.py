"""A sound being sent to a device: its samples of 16 bits, its position in all audio that is sent, and its level."""

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
    """One call of `play`.

    start, end: positions of the sound in all audio that is sent to the device, in samples.
    waiting: the encoded sound while the device has not heard all earlier sound; it gets its position after that.
    asked_s: when `play` was called. started: whether the device has begun to hear it.
    needed: number of the device's last event about this sound, once the device has reported that number; None before.
    due_s: deadline for the arrival of the events up to that one.
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
        """RMS level of the last 100 ms before a position in the audio that is sent."""
        last = max(0, min(position - self.start, len(self.samples)))
        part = self.samples[max(0, last - round(LEVEL_S * self.rate_hz)) : last]
        return rms_dbfs((part / 32768).astype(np.float32)) if len(part) else FLOOR_DBFS


def quantised(waveform: Waveform, rate_hz: int) -> Pcm:
    """16 bits at the device's rate; samples beyond full scale are clipped."""
    samples = waveform.samples
    if waveform.rate_hz != rate_hz:
        samples = soxr.resample(samples, waveform.rate_hz, rate_hz, quality="HQ")
    return np.clip(np.round(samples * 32768.0), -32768, 32767).astype(np.int16)
