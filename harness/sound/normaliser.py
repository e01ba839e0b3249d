"""The gain that brings sound to a level at which speech detectors work."""

from __future__ import annotations

NOISE_DBFS = -50.0
SPEECH_DBFS = -18.0
MAX_GAIN_DB = 50.0
_RELEASE_DB = 0.05


class Normaliser:
    """Gain in dB for the next frame, from the noise floor first and from the loudest recent sound second.

    A detector takes noise near −26 dBFS for speech and misses speech at −56 dBFS. So the floor is put at −50 dBFS,
    unless what is heard would then go above −18 dBFS: the gain falls at once with a loud frame and comes back slowly.
    """

    def __init__(self, frames_per_s: int = 100) -> None:
        self._release_db = _RELEASE_DB * 100 / frames_per_s
        self.reset()

    def reset(self) -> None:
        self._peak_dbfs = -200.0

    def gain_db(self, level_dbfs: float, floor_dbfs: float) -> float:
        """level_dbfs: of the frame that the gain is for."""
        self._peak_dbfs = max(level_dbfs, self._peak_dbfs - self._release_db)
        return max(min(NOISE_DBFS - floor_dbfs, SPEECH_DBFS - self._peak_dbfs, MAX_GAIN_DB), -MAX_GAIN_DB)
