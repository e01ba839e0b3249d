"""Speech at 16 kHz for tests, straight from espeak-ng."""

from __future__ import annotations

import io
import subprocess

import numpy as np
import soundfile
import soxr


def spoken(text: str, voice: str = "en-gb+f2", level_dbfs: float = -26.0) -> np.ndarray:
    """float32 (n,), silence trimmed at both ends."""
    made = subprocess.run(["espeak-ng", "-v", voice, "--stdout", "--", text], capture_output=True, check=True)
    samples, rate_hz = soundfile.read(io.BytesIO(made.stdout), dtype="float32")
    samples = soxr.resample(samples, rate_hz, 16000).astype(np.float32)
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    samples = samples[loud[0] : loud[-1] + 1]
    gain = 10 ** (level_dbfs / 20) / np.sqrt(np.mean(samples**2))
    return np.asarray(samples * gain, dtype=np.float32)
