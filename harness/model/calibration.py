"""The calibration of a loudspeaker or a microphone: digital levels in dB SPL."""

from __future__ import annotations

from harness.model.frozen import frozen
from harness.model.numbers import fixed


@frozen
class Calibration:
    """The calibration of a loudspeaker or a microphone.

    L dBFS are spl_at_0_dbfs + L dB SPL at the place `at`, with the frequency weighting `weighting`.

    - path, sha256: the file that the calibration was read from, and its hash.
    - loudspeaker, sound_device: the equipment that was measured (for a microphone, `loudspeaker` is its name).
    - measured_on, expires_on: ISO dates; it is valid until the end of the latter.
    - max_spl: the highest level allowed.
    - settings: the loudspeaker's settings that change its level, when it was measured; None: not stated.
    - weighting_db: weighted minus unweighted level of the sound that was measured.
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
    settings: str | None = None
    weighting_db: float = 0.0

    def spl(self, level_dbfs: float) -> float:
        """The level in dB SPL of a digital level."""
        return self.spl_at_0_dbfs + level_dbfs

    def unweighted_spl(self, level_dbfs: float) -> float:
        """The level in dB SPL without weighting: calibrations by other weightings or sounds give the same."""
        return self.spl(level_dbfs) - self.weighting_db

    def dbfs(self, level_spl: float) -> float:
        """The digital level of a level in dB SPL."""
        return level_spl - self.spl_at_0_dbfs

    def noise_dbfs(self, level_spl: float) -> tuple[float, bool]:
        """The level in dBFS at which a sound level meter shows level_spl for noise of any spectrum. C counts as Z.

        The second value is whether that level is A-weighted.
        """
        return self.dbfs(level_spl) + self.weighting_db, self.weighting == "A"

    def words(self) -> str:
        """`0 dBFS = 94.4 dB(A) SPL at 1 m, measured on 2026-11-23, expires on 2027-05-22`."""
        level = f"0 dBFS = {fixed(self.spl_at_0_dbfs, 1)} dB({self.weighting}) SPL at {self.at}"
        return f"{level}, measured on {self.measured_on}, expires on {self.expires_on}"


def short_calibration(words: str) -> str:
    """`near 94.4 dB(A) until 2027-05-22`, from a part of a session's sound path; "" if that is not a calibration."""
    name, separator, rest = words.partition(": 0 dBFS = ")
    if not separator:
        return ""
    level = rest.partition(" SPL")[0]
    expires_on = rest.partition(", expires on ")[2]
    return f"{name} {level} until {expires_on}" if expires_on else f"{name} {level}"
