"""The calibration of a loudspeaker or a microphone: digital levels in dB SPL."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calibration:
    """Of a loudspeaker or a microphone: L dBFS are spl_at_0_dbfs + L dB SPL at the place `at`, by that weighting.

    loudspeaker, sound_device: what was measured (or the microphone's name). measured_on, expires_on: ISO dates; it
    counts until the end of the latter. max_spl: the highest level allowed.
    """

    path: str
    sha256: str
    loudspeaker: str
    sound_device: str
    spl_at_0_dbfs: float
    weighting: str
    at: str
    measured_on: str
    expires_on: str
    max_spl: float

    def spl(self, level_dbfs: float) -> float:
        return self.spl_at_0_dbfs + level_dbfs

    def dbfs(self, level_spl: float) -> float:
        return level_spl - self.spl_at_0_dbfs

    def words(self) -> str:
        """`0 dBFS = 94.4 dB(A) SPL at 1 m, measured on 2026-11-23`."""
        return (
            f"0 dBFS = {self.spl_at_0_dbfs:.1f} dB({self.weighting}) SPL at {self.at}, measured on {self.measured_on}"
        )
