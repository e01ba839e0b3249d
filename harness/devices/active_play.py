"""A sound being sent to a device: its samples of 16 bits, its position in all audio that is sent, and its level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import soxr

from harness.devices.wire.adpcm import EncodedSound, Pcm
from harness.model.stimulus import Waveform
from harness.sound.level import FLOOR_DBFS, rms_dbfs

LEVEL_S = 0.1
"""Length of the sound whose level is shown, in seconds."""


@dataclass(slots=True, eq=False)
class ActivePlay:
    """One call of `play`.

    - start, end: positions of the sound in all audio that is sent to the device, in samples.
    - unplaced: the encoded sound while the device has not heard all earlier sound; it gets its position after that.
    - requested_s: when `play` was called.
    - has_started: whether the device has begun to hear it.
    - last_event: number of the device's last event about this sound, once the device has reported that number.
    - events_due_s: deadline for the arrival of the events up to that one.
    """

    play_id: str
    samples: Pcm
    rate_hz: int
    start: int = 0
    end: int = 0
    unplaced: EncodedSound | None = None
    requested_s: float = 0.0
    has_started: bool = False
    last_event: int | None = None
    events_due_s: float = 0.0

    def level_dbfs(self, position: int) -> float:
        """RMS level of the last 100 ms before a position in the audio that is sent."""
        end = max(0, min(position - self.start, len(self.samples)))
        part = self.samples[max(0, end - round(LEVEL_S * self.rate_hz)) : end]
        return rms_dbfs((part / 32768).astype(np.float32)) if len(part) else FLOOR_DBFS


def to_pcm(waveform: Waveform, rate_hz: int) -> Pcm:
    """The samples of a sound, with 16 bits at the device's rate; samples beyond full scale are clipped."""
    samples = waveform.samples
    if waveform.rate_hz != rate_hz:
        samples = soxr.resample(samples, waveform.rate_hz, rate_hz, quality="HQ")
    return np.clip(np.round(samples * 32768.0), -32768, 32767).astype(np.int16)
