"""The shape of a clip: loudest sample of each of so many slices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

SLICES = 600
"""Fine enough for any width; drawn by taking the maximum of neighbours."""


def peaks(path: Path) -> npt.NDArray[np.float32] | None:
    """Peaks of a sound file, shape (≤ SLICES,), 0–1; None when the file cannot be read (it is elsewhere, or broken)."""
    try:
        samples, _ = soundfile.read(path, dtype="float32", always_2d=True)
    except (OSError, soundfile.LibsndfileError):
        return None
    return slices(np.abs(samples).max(axis=1) if len(samples) else np.zeros(0, np.float32), SLICES)


def slices(values: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float32]:
    """The maximum of each of at most `count` equal slices."""
    if len(values) <= count:
        return values
    edges = np.linspace(0, len(values), count, endpoint=False).astype(int)
    found: npt.NDArray[np.float32] = np.maximum.reduceat(values, edges)
    return found
