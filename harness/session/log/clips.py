"""Clips of a session: FLAC, 16 bit, safe on the disk before a row names them."""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from harness.base.whole_file import disk_errors, write_whole
from harness.model.errors import LogError
from harness.model.record import Clip, Entry, EventClipped, ResponseFrozen, StimulusStored
from harness.model.stimulus import Waveform


class ClipShelf:
    """The clips/ folder of one session that is being written; thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        with disk_errors(f"{folder} cannot be made"):
            folder.mkdir(exist_ok=True)
            # Parts are of a process that was killed while it wrote: nothing names them.
            for part in folder.glob(".*.part"):
                part.unlink()
        self._next = 1 + max((_number(path.name) for path in folder.glob("*.flac")), default=0)

    def save(self, waveform: Waveform, start_s: float) -> Clip:
        """The stored clip, on the disk and whole; LogFull, LogError."""
        if not len(waveform.samples):
            raise LogError("a clip without samples cannot be stored", remedy="Report this: it is a defect of the tool")
        content = _flac(waveform)
        digest = hashlib.sha256(content).hexdigest()
        with self._lock:
            name = f"{self._next:05d}-{digest[:12]}.flac"
            write_whole(self._folder / name, content)
            self._next += 1
        return Clip(name=name, sha256=digest, rate_hz=waveform.rate_hz, samples=len(waveform.samples), start_s=start_s)


@dataclass(frozen=True, slots=True)
class ClipFinding:
    """What is wrong with a clip that a row names."""

    seq: int
    name: str
    what: str


def named_clips(entries: Iterable[Entry]) -> Iterator[tuple[int, Clip]]:
    """Clips that rows name, with the row's seq."""
    for entry in entries:
        if isinstance(entry.record, ResponseFrozen | EventClipped | StimulusStored):
            yield entry.seq, entry.record.clip


def read_clip(folder: Path, clip: Clip) -> Waveform:
    """A clip's samples; LogError when it is missing, altered or no FLAC."""
    wrong = clip_damage(folder, clip)
    if wrong:
        raise LogError(f"{folder / clip.name} {wrong}", remedy="See all damage with: harness show SESSION --check")
    try:
        samples, rate_hz = soundfile.read(folder / clip.name, dtype="float32")
    except (soundfile.LibsndfileError, OSError) as error:
        raise LogError(f"{folder / clip.name} cannot be read: {error}") from error
    return Waveform(samples=np.ascontiguousarray(samples, dtype=np.float32), rate_hz=int(rate_hz))


def clip_damage(folder: Path, clip: Clip) -> str:
    """What is wrong with the file of a clip, as the end of a sentence; "" when nothing is."""
    if Path(clip.name).name != clip.name or clip.name.startswith("."):
        return "is no name of a clip"
    try:
        content = (folder / clip.name).read_bytes()
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if hashlib.sha256(content).hexdigest() != clip.sha256:
        return "is not what was stored: its SHA-256 differs"
    return ""


def _number(name: str) -> int:
    head, _, _ = name.partition("-")
    return int(head) if head.isdecimal() else 0


def _flac(waveform: Waveform) -> bytes:
    buffer = io.BytesIO()
    clipped = np.clip(waveform.samples, -1.0, 1.0)
    try:
        soundfile.write(buffer, clipped, waveform.rate_hz, format="FLAC", subtype="PCM_16")
    except soundfile.LibsndfileError as error:
        raise LogError(f"a clip of {waveform.rate_hz} Hz cannot be stored: {error}") from error
    return buffer.getvalue()
