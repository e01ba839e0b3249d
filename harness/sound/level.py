"""Levels."""

from __future__ import annotations

import math

import numpy as np

from harness.model.stimulus import Samples

FLOOR_DBFS = -120.0
"""What digital silence is shown as."""


def rms_dbfs(samples: Samples) -> float:
    """RMS level relative to a full-scale square wave (a full-scale sine: −3.01 dBFS); at least −120."""
    if not len(samples):
        return FLOOR_DBFS
    mean = float(np.mean(np.square(samples, dtype=np.float64)))
    return max(FLOOR_DBFS, 10 * math.log10(mean)) if mean > 0 else FLOOR_DBFS
