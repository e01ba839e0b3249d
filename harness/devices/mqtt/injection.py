"""A sound on its way to a device: where it lies on the audio line, and how loud it was a moment ago."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import soxr

from harness.devices.wire.adpcm import EncodedSound, Pcm
from harness.model.stimulus import Samples, Waveform
from harness.sound.level import FLOOR_DBFS, rms_dbfs

METER_S = 0.1


@dataclass(slots=True, eq=False)
class Injection:
    """One `play`. start, end: positions on the audio line.

    sound: as long as it waits for what was sent before it to be heard; then it has its place.
    needed: number of the last event that belongs to it, as soon as the device has said so; due_s: when those events
    must have come.
    """

    play_id: str
    samples: Samples
    rate_hz: int
    start: int
    end: int
    sound: EncodedSound | None = None
    asked_s: float = 0.0
    started: bool = False
    needed: int | None = None
    due_s: float = 0.0

    def level_dbfs(self, sent: int) -> float:
        """RMS of the last 100 ms before a position."""
        last = min(max(sent - self.start, 0), len(self.samples))
        return rms_dbfs(self.samples[max(0, last - round(METER_S * self.rate_hz)) : last]) if last else FLOOR_DBFS


def at_rate(waveform: Waveform, rate_hz: int) -> Samples:
    """The samples at the device's rate."""
    if waveform.rate_hz == rate_hz:
        return waveform.samples
    found: Samples = soxr.resample(waveform.samples, waveform.rate_hz, rate_hz).astype(np.float32, copy=False)
    return found


def pcm16(samples: Samples) -> Pcm:
    """Rounded to 16 bits; what is beyond full scale is clipped."""
    words: Pcm = np.clip(np.rint(samples * np.float32(32768)), -32768, 32767).astype(np.int16)
    return words
