"""Clips of a session: FLAC files of 16 bits, which are safe on the disk before a row names them.

Their names are like `00042-0123456789ab.flac`: a number that rises within the session, and the first digits of the
file's SHA-256.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.base import threads
from harness.base.whole_file import disk_errors, write_atomically
from harness.model.errors import LogError
from harness.model.observation import SoundKept
from harness.model.record import Entry, EventClipped, Observed, Record, ResponseFrozen, StimulusStored
from harness.model.stimulus import Clip, Waveform


class ClipStore:
    """The clips/ folder of one session that is being written. Its methods may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threads.lock()
        with disk_errors(f"{folder} cannot be created"):
            folder.mkdir(exist_ok=True)
            # Parts come from a process that was killed while writing. No row names them.
            for part in folder.glob(".*.part"):
                part.unlink()
        self._next_number = 1 + max((_number(path.name) for path in folder.glob("*.flac")), default=0)

    def save(self, waveform: Waveform, start_s: float) -> Clip:
        """Stores a clip, and returns when it is complete on the disk. Raises LogFull or LogError."""
        if not len(waveform.samples):
            raise LogError("a clip without samples cannot be stored", remedy="Please report this as a bug")
        content = _flac(waveform)
        digest = hashlib.sha256(content).hexdigest()
        with self._lock:
            name = f"{self._next_number:05d}-{digest[:12]}.flac"
            write_atomically(self._folder / name, content)
            self._next_number += 1
        return Clip(name=name, sha256=digest, rate_hz=waveform.rate_hz, samples=len(waveform.samples), start_s=start_s)


MISSING = "is missing"
"""What `clip_damage` returns for a clip without a file."""


def clip_of(record: Record) -> Clip | None:
    """The clip that a row names; None if it names none."""
    match record:
        case ResponseFrozen(clip=clip) | EventClipped(clip=clip) | StimulusStored(clip=clip):
            return clip
        case Observed(observation=SoundKept(clip=clip)):
            return clip
        case _:
            return None


def named_clips(entries: Iterable[Entry]) -> Iterator[tuple[int, Clip]]:
    """The clips that rows name, each with the `seq` of its row."""
    for entry in entries:
        if (clip := clip_of(entry.record)) is not None:
            yield entry.seq, clip


MAX_SAMPLES = 3600 * 48_000
"""One hour. Clips last seconds, and a file from elsewhere may have more samples than fit into memory."""


def clip_damage(folder: Path, clip: Clip) -> str:
    """What is wrong with the file of a clip, as the end of a sentence; "" if nothing is."""
    try:
        with clip_file(folder, clip).open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except LogError as error:
        return error.what
    except FileNotFoundError:
        return MISSING
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if digest == clip.sha256 else "is not what was stored: its SHA-256 differs"


def clip_file(folder: Path, clip: Clip) -> Path:
    """The path of a clip's file. Raises LogError, whose text ends a sentence, if it is a link or outside the folder."""
    if Path(clip.name).name != clip.name or clip.name.startswith(".") or not clip.name.isprintable():
        raise LogError("is not a clip name")
    path = folder / clip.name
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise LogError("is not a regular file")
    return path


def clip_samples(folder: Path, clip: Clip) -> npt.NDArray[np.float32]:
    """The samples of a clip, mono, without a check of its SHA-256. Raises LogError, whose text ends a sentence."""
    import soundfile  # here and below, since most readers of rows decode no sound

    try:
        with soundfile.SoundFile(clip_file(folder, clip)) as sound:
            if (sound.frames, sound.channels, sound.samplerate) != (clip.samples, 1, clip.rate_hz):
                raise LogError("is not as long as its row says, or has a different sample rate")
            if sound.frames > MAX_SAMPLES:
                raise LogError(f"has {sound.frames:,} samples; at most {MAX_SAMPLES:,} are read")
            samples: npt.NDArray[np.float32] = sound.read(dtype="float32")
    except (soundfile.LibsndfileError, OSError) as error:
        raise LogError(f"cannot be read: {error}") from error
    return samples


def _number(name: str) -> int:
    """The number in the name of a clip; 0 if it is not the name of a clip."""
    digits, _, _ = name.partition("-")
    return int(digits) if digits.isdecimal() else 0


def _flac(waveform: Waveform) -> bytes:
    import soundfile

    buffer = io.BytesIO()
    clipped = np.clip(waveform.samples, -1.0, 1.0)
    try:
        soundfile.write(buffer, clipped, waveform.rate_hz, format="FLAC", subtype="PCM_16")
    except soundfile.LibsndfileError as error:
        raise LogError(f"a clip of {waveform.rate_hz} Hz cannot be stored: {error}") from error
    return buffer.getvalue()
