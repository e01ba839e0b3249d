"""Recordings: sound files to mono waveforms at the wished rate."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import soundfile
import soxr

from harness.model.errors import InputError, Place
from harness.model.stimulus import Waveform
from harness.stimuli.level import SILENCE_PEAK

LONGEST_S = 3600.0


def read(path: str) -> Waveform:
    """The file's samples at its own rate.

    InputError: missing, no sound file, more than one channel, longer than an hour, empty, NaN or infinite, silent.
    """
    place = Place(path)
    try:
        with soundfile.SoundFile(path) as file:
            if file.channels != 1:
                raise InputError(
                    f"the recording has {file.channels} channels; which one was meant, is not ours to guess",
                    place=place,
                    remedy="Keep one: sox IN OUT remix 1 (the first), or remix 1,2 (their mean)",
                )
            if file.frames > LONGEST_S * file.samplerate:
                raise InputError("the recording is longer than an hour", place=place, remedy="Cut it to the utterance")
            samples = file.read(dtype="float32")
            rate_hz = int(file.samplerate)
    except soundfile.LibsndfileError as error:
        if not Path(path).is_file():
            raise InputError("there is no such recording", place=place, remedy="Check the path") from error
        raise InputError(
            f"not a sound file that can be read: {error.error_string}", place=place, remedy="Use WAV, FLAC or Ogg"
        ) from error
    if not len(samples):
        raise InputError("the recording is empty", place=place, remedy="Record it again")
    if not np.isfinite(samples).all():
        raise InputError(
            "the recording holds samples that are no numbers (NaN or infinite)", place=place, remedy="Export it again"
        )
    if float(np.abs(samples).max()) <= SILENCE_PEAK:
        raise InputError("the recording is silent", place=place, remedy="Record it again, or check its export")
    return Waveform(np.asarray(samples, dtype=np.float32), rate_hz)


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
