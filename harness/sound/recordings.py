"""Recordings that a session plays: which files are valid, by the same rules for `validate` and for a run.

Unlike in an evaluation (sound_files), any encoding and rate is allowed. Files are rejected if they are truncated,
damaged or contain no usable sound.
"""

from __future__ import annotations

import hashlib
import io
import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from harness.base.whole_file import write_atomically
from harness.model.errors import InputError, Place
from harness.model.numbers import exact
from harness.model.stimulus import Waveform
from harness.sound.decoded_file import NO_TOTAL, ForwardFile, decode
from harness.sound.level import SILENCE_PEAK
from harness.sound.sound_files import RATES_HZ
from harness.sound.wave_file import PlainWave, UnusableSound, check_whole

Block = npt.NDArray[np.float32]

MAX_RECORDING_S = 3600.0  # At 48 kHz, 700 MB of memory, since a recording is read whole.
_READ_SAMPLES = 4096
"""Number of samples that are read at a time from a damaged file; those of the read that fails are lost."""
_MAX_FLAC_HZ = 655_350  # A frame of FLAC states its rate in 16 bits, in tens of Hz.
_BLOCK_SAMPLES = 1 << 18
_MAX_CONSTANT_S = 0.1
"""A longer sound with only one value, in seconds, counts as silent. A shorter one may be an impulse response."""


def read(path: str) -> Waveform:
    """The file's samples at its own rate; InputError as for `check`, and if it is longer than an hour."""
    with opened(path, ForwardFile) as file:
        if file.frames < NO_TOTAL and file.frames > MAX_RECORDING_S * file.samplerate:
            raise InputError(
                "the recording is longer than an hour", place=Place(path), remedy="Trim it to the utterance"
            )
        return Waveform(np.concatenate(list(_blocks(file, path))), int(file.samplerate))


def check(path: str) -> float:
    """Duration in seconds, after reading the whole file block by block. Cached until the file changes.

    InputError: missing, not a sound file, more than one channel, unsupported rate, empty, truncated, damaged, NaN or
    infinite samples, silent.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise InputError("the recording does not exist", place=Place(path), remedy="Check the path") from error
    outcome = _measure(path, status.st_mtime_ns, status.st_size, status.st_ino)
    if isinstance(outcome, InputError):
        raise outcome
    return outcome


def assumed(path: str) -> str:
    """What is assumed about the length of a recording whose header and file do not agree.

    "" if they do, or if the recording is refused.
    """
    try:
        with open(path, "rb") as file:
            layout = check_whole(file, file.seek(0, os.SEEK_END))
    except (OSError, ValueError, UnusableSound):
        return ""  # `check` reports the problem
    return "" if layout is None else layout.assumed


@lru_cache(maxsize=100_000)
def _measure(path: str, *_: int) -> float | InputError:
    """What `check` returns or raises. The further arguments (time of change, size, inode) are part of the cache key."""
    try:
        with opened(path, ForwardFile) as file:
            return sum(len(block) for block in _blocks(file, path)) / int(file.samplerate)
    except InputError as error:
        return error


@contextmanager
def opened(path: str, kind: type[soundfile.SoundFile] = soundfile.SoundFile) -> Iterator[soundfile.SoundFile]:
    """The open file after a check of its header: one channel, a valid rate, not truncated.

    Raises InputError otherwise.

    kind: `ForwardFile` for reading from beginning to end.
    """
    place = Place(path)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open(path, "rb"))
            layout = check_whole(file, file.seek(0, os.SEEK_END))
            # libsndfile believes a header: a file whose length is assumed gets one that is right.
            sound = stack.enter_context(kind(path if layout is None or not layout.assumed else PlainWave(file, layout)))
        except UnusableSound as error:
            raise _refusal_error(path, error.detail) from error
        except soundfile.LibsndfileError as error:
            words = error.error_string.removeprefix("Error : ").strip().rstrip(".")
            raise InputError(
                f"the recording cannot be read as a sound file: {words}", place=place, remedy="Use WAV or FLAC"
            ) from error
        except FileNotFoundError as error:
            raise InputError("the recording does not exist", place=place, remedy="Check the path") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"the recording cannot be read: {reason}", place=place, remedy="Check the path") from error
        if sound.channels != 1:
            raise InputError(
                f"the recording has {sound.channels} channels instead of 1",
                place=place,
                remedy="Keep the first channel: sox IN OUT remix 1. Or mix two channels: sox IN OUT remix 1,2",
            )
        if sound.samplerate not in RATES_HZ:
            raise InputError(
                f"the recording has a rate of {sound.samplerate} Hz; it must be {RATES_HZ[0]} to {RATES_HZ[-1]} Hz",
                place=place,
                remedy="Export it again with its true sample rate",
            )
        if not sound.frames:
            raise InputError("the recording is empty: it contains no sound", place=place, remedy="Record it again")
        try:
            yield sound
        except soundfile.LibsndfileError as error:
            words = error.error_string.removeprefix("Error : ").strip().rstrip(".")
            raise _refusal_error(path, f"damaged: {words}") from error


def _blocks(file: soundfile.SoundFile, path: str) -> Iterator[Block]:
    """All blocks of an open file.

    Raises InputError at the first invalid sample. At the end, InputError if the file is shorter than its header
    declares, empty or silent.
    """
    count, lowest, highest = 0, np.inf, -np.inf
    for block in decode(file, file.frames, _BLOCK_SAMPLES, "float32"):
        # Unlike min and max, these keep a NaN.
        lowest, highest = float(np.minimum(lowest, block.min())), float(np.maximum(highest, block.max()))
        if not (np.isfinite(lowest) and np.isfinite(highest)):
            raise InputError(
                "the recording contains invalid samples (NaN or infinite)", place=Place(path), remedy="Export it again"
            )
        count += len(block)
        yield block
    if file.frames < NO_TOTAL and count != file.frames:
        raise _refusal_error(path, f"truncated: the header declares {file.frames} samples, but the file has {count}")
    if not count:
        raise InputError("the recording is empty: it contains no sound", place=Place(path), remedy="Record it again")
    silent = max(-lowest, highest) <= SILENCE_PEAK
    if silent or (lowest == highest and count > _MAX_CONSTANT_S * file.samplerate):
        problem = "the recording is silent" if silent else f"the recording is silent: every sample is {exact(lowest)}"
        raise InputError(problem, place=Place(path), remedy="Record it again, or check how it was exported")


def _refusal_error(path: str, detail: str) -> InputError:
    """The error for an unusable file. For one that is truncated or damaged, the remedy names the command that rescues
    its beginning."""
    place, remedy = Place(path), f"Copy or export {Path(path).name} again"
    if not detail.startswith(("truncated", "damaged")):
        return InputError(detail, place=place, remedy=remedy)
    rescue_remedy = f"keep what can be decoded: harness admin sound recordings {shlex.quote(path)} --rescue FOLDER"
    return InputError(f"the recording is {detail}", place=place, remedy=f"{remedy}, or {rescue_remedy}")


def rescue(path: str, target: Path) -> tuple[float, float | None] | None:
    """Writes what can be decoded of a mono recording, up to its damage or end, to a new FLAC file.

    Returns the seconds that were written, and those that the header declares, or None unless these are more. Returns
    None if nothing can be decoded, or the recording is refused for another reason than damage. Raises InputError if the
    target exists.
    """
    if target.exists():
        raise InputError("this file already exists", place=Place(str(target)), remedy="Choose another folder")
    content = io.BytesIO()
    count = 0
    try:
        with ForwardFile(path) as damaged:
            rate_hz, declared_frames = int(damaged.samplerate), int(damaged.frames)
            if damaged.channels != 1 or rate_hz not in RATES_HZ or rate_hz > _MAX_FLAC_HZ:
                return None
            subtype = "PCM_16" if damaged.subtype in ("PCM_16", "PCM_S8", "PCM_U8") else "PCM_24"
            with soundfile.SoundFile(content, "w", rate_hz, 1, subtype, format="FLAC") as flac:
                try:
                    for block in decode(damaged, declared_frames, _READ_SAMPLES, "float32"):
                        flac.write(block)
                        count += len(block)
                except soundfile.LibsndfileError:
                    pass  # what comes after the damage cannot be placed in time
    except (soundfile.LibsndfileError, OSError, ValueError):
        return None
    if not count:
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, content.getvalue())
    try:
        check(str(target))
    except InputError:  # for example, because it is silent
        target.unlink()
        return None
    return count / rate_hz, declared_frames / rate_hz if count < declared_frames < NO_TOTAL else None


def content_sha256(path: str) -> str:
    """SHA-256 of the file's bytes, cached until the file changes. Raises InputError if it cannot be read."""
    try:
        status = os.stat(path)
        return _content_sha256(path, status.st_mtime_ns, status.st_size, status.st_ino)
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
