"""Recordings by their content, and waveforms at the wished rate."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache

import numpy as np
import soxr

from harness.model.errors import InputError, Place
from harness.model.stimulus import Waveform


def content_sha256(path: str) -> str:
    """Hash of the file's bytes, read once as long as the file does not change; InputError when it cannot be read."""
    try:
        standing = os.stat(path)
        return _content_sha256(path, standing.st_mtime_ns, standing.st_size, standing.st_ino)
    except OSError as error:
        raise InputError(
            f"the recording cannot be read: {error.strerror}", place=Place(path), remedy="Check the path"
        ) from error


@lru_cache(maxsize=10_000)
def _content_sha256(path: str, *_: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def at_rate(waveform: Waveform, rate_hz: int) -> Waveform:
    """The whole waveform at another rate (soxr, very high quality; no delay)."""
    if waveform.rate_hz == rate_hz:
        return waveform
    resampled = soxr.resample(waveform.samples, waveform.rate_hz, rate_hz, quality="VHQ")
    return Waveform(np.asarray(resampled, dtype=np.float32), rate_hz)
