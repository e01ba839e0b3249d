"""The samples of an open sound file in blocks: held, by memory map, by plain reading, or decoded by libsndfile.

A short file is read whole and at once. A map costs half of what reading a long file costs, but an I/O error in it ends
the process and a file that shrinks reads as silence. So only long files on this machine's own file systems are mapped,
and a file that has changed while it was read is refused at the block in which it shows.
"""

from __future__ import annotations

import functools
import io
import mmap
import os
from collections.abc import Iterator
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
import soundfile

from harness.model.offline import RejectReason
from harness.sound.wave_file import UnusableSound, WaveSound, cut_off

Samples = npt.NDArray[np.int16]

BLOCK_SAMPLES = 960_000
"""60 s at 16 kHz: longer blocks fall out of the processor's cache, shorter ones cost calls (bench_sound_files.py)."""
HELD_BYTES = 1 << 20
"""Files up to here, 33 s at 16 kHz, are read whole: making and unmaking a map costs more than their copy."""
_DECODED_BLOCK = 1 << 17
_OWN_FILE_SYSTEMS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "overlay", "vfat"})
NO_TOTAL = 1 << 62
"""From here on a number of frames is libsndfile's "not known"."""


class PcmSource(Protocol):
    """16-bit mono samples of one file. samples, rate_hz: of the file; blocks: once, in order."""

    samples: int
    rate_hz: int

    def blocks(self) -> Iterator[Samples]: ...


class HeldWave:
    """A WAVE file whose bytes are in memory: one block, a view of them."""

    def __init__(self, content: bytes, sound: WaveSound) -> None:
        self.samples, self.rate_hz = sound.frames, sound.rate_hz
        self._content, self._offset = content, sound.offset

    def blocks(self) -> Iterator[Samples]:
        yield np.frombuffer(self._content, "<i2", self.samples, self._offset)


class MappedWave:
    """A WAVE file by memory map: blocks are views of the file, read-only, without a copy."""

    def __init__(self, file: BinaryIO, sound: WaveSound) -> None:
        self.samples, self.rate_hz = sound.frames, sound.rate_hz
        self._file, self._offset = file, sound.offset
        self._before = state_of(file)

    def blocks(self) -> Iterator[Samples]:
        number = self._file.fileno()
        try:
            mapped = mmap.mmap(number, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: it has been emptied
            raise UnusableSound(RejectReason.UNREADABLE, f"cannot be mapped: {error}") from error
        if len(mapped) < self._offset + 2 * self.samples:
            raise changed()
        samples = np.frombuffer(mapped, "<i2", self.samples, self._offset)
        for first in range(0, self.samples, BLOCK_SAMPLES):
            yield samples[first : first + BLOCK_SAMPLES]
            # Behind the block, as it was read in between; it is let go of too, or a day's file would fill the memory.
            if state_of(self._file) != self._before:
                raise changed()
            done = (self._offset + 2 * first) // mmap.PAGESIZE * mmap.PAGESIZE
            mapped.madvise(mmap.MADV_DONTNEED, 0, done)


class StreamedWave:
    """A WAVE file by reading: of a network's file system, or from a store. A block is a new array."""

    def __init__(self, file: BinaryIO, sound: WaveSound) -> None:
        self.samples, self.rate_hz = sound.frames, sound.rate_hz
        self._file, self._offset = file, sound.offset
        self._before = state_of(file)

    def blocks(self) -> Iterator[Samples]:
        try:
            if self._before is not None:
                self._file.seek(0, os.SEEK_END)  # Drops what was read along with the head, before the look at it.
            self._file.seek(self._offset)
            for first in range(0, self.samples, BLOCK_SAMPLES):
                wanted = 2 * min(BLOCK_SAMPLES, self.samples - first)
                content = self._file.read(wanted)
                if len(content) < wanted:
                    raise changed()
                yield np.frombuffer(content, "<i2")
                if state_of(self._file) != self._before:
                    raise changed()
        except OSError as error:
            raise read_error(error) from error


class Forward(soundfile.SoundFile):  # type: ignore[misc]
    """A file that is read from its beginning to its end: without the seek that soundfile does after every block,
    which decodes a FLAC frame again, and which fails at the end of a file whose head claims more or does not know."""

    def seekable(self) -> bool:
        return False


class _Telling:
    """A file that libsndfile reads by callbacks, which must not raise: an error ends the file, and is kept."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.failed: OSError | None = None

    def read(self, size: int) -> bytes:
        try:
            return b"" if self.failed else self._file.read(size)
        except OSError as error:
            self.failed = error
            return b""

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        try:
            return self._file.seek(offset, whence)
        except OSError as error:
            self.failed = error
            return -1

    def tell(self) -> int:
        return self._file.tell()


class DecodedFile:
    """A file that libsndfile reads: FLAC, AIFF, W64, SPHERE, …; mono, 16 bits, without loss."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file if state_of(file) is not None else _Telling(file)
        sound = self._opened()
        if sound.subtype != "PCM_16":
            raise UnusableSound(RejectReason.ENCODING, f"{sound.format} {sound.subtype}; 16-bit PCM is read")
        if sound.channels != 1:
            raise UnusableSound(RejectReason.CHANNELS, f"{sound.channels} channels; one is read")
        self.rate_hz = int(sound.samplerate)
        self.samples = int(sound.frames)
        if self.samples >= NO_TOTAL:  # FLAC from a pipe: only decoding tells
            self.samples = sum(len(block) for block in _decoded(sound))
            self._check_store()
            sound = self._opened()
        self._sound = sound

    def blocks(self) -> Iterator[Samples]:
        read = 0
        with self._sound as sound:
            for block in _decoded(sound, self.samples):
                read += len(block)
                yield block
        self._check_store()
        if read != self.samples:
            raise cut_off(self.samples, read, "samples")

    def _check_store(self) -> None:
        if isinstance(self._file, _Telling) and self._file.failed is not None:
            raise read_error(self._file.failed) from self._file.failed

    def _opened(self) -> Any:
        try:
            if isinstance(self._file, _Telling):
                self._file.seek(0)
                return Forward(self._file)
            # A descriptor where there is one: libsndfile reads it without Python's help, a third faster.
            os.lseek(self._file.fileno(), 0, os.SEEK_SET)
            return Forward(self._file.fileno(), closefd=False)
        except (soundfile.LibsndfileError, TypeError) as error:  # TypeError: what has no head at all
            self._check_store()
            words = getattr(error, "error_string", str(error)).strip().rstrip(".")
            raise UnusableSound(RejectReason.UNREADABLE, f"no sound file that is known here: {words}") from error


def _decoded(sound: Any, samples: int = NO_TOTAL) -> Iterator[Samples]:
    try:
        yield from decoded(sound, samples, _DECODED_BLOCK, "int16")
    except soundfile.LibsndfileError as error:
        raise UnusableSound(RejectReason.UNREADABLE, f"damaged: {error.error_string.strip()}") from error


def decoded(sound: Any, samples: int, block: int, dtype: str) -> Iterator[Any]:
    """All blocks of an open file; LibsndfileError where it is damaged within the samples that its head says.

    What stands behind those is no part of the sound: many FLAC files have a tag there, at which the decoder loses sync.
    """
    read = 0
    while True:
        try:
            # Never beyond the end in the same call, which would lose the samples before it.
            found = sound.read(min(block, samples - read) or block, dtype=dtype)
        except soundfile.LibsndfileError:
            if read == samples:
                return
            raise
        if not len(found):
            return
        read += len(found)
        yield found


def wave_source(file: BinaryIO, sound: WaveSound) -> PcmSource:
    """The way to read a WAVE file that is held, in a store, or open here."""
    if isinstance(file, io.BytesIO):
        return HeldWave(file.getvalue(), sound)
    if state_of(file) is not None and sound.offset % 2 == 0 and _is_own(os.fstat(file.fileno()).st_dev):
        return MappedWave(file, sound)
    return StreamedWave(file, sound)


@functools.lru_cache(maxsize=64)
def _is_own(device: int) -> bool:
    """Whether a device holds a file system of this machine, in which a read does not fail for a network's sake."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                left, _, right = line.partition(" - ")
                if left.split(" ", 3)[2] == wanted:
                    return right.split(" ", 1)[0] in _OWN_FILE_SYSTEMS
    except OSError:
        return False
    return False


def state_of(file: BinaryIO) -> tuple[int, int] | None:
    """What tells that somebody has written to a file; None of a store's, or of one that is held."""
    try:
        status = os.fstat(file.fileno())
    except io.UnsupportedOperation:
        return None
    return status.st_size, status.st_mtime_ns


def changed() -> UnusableSound:
    """The rejection of a file that somebody writes to."""
    return UnusableSound(RejectReason.UNREADABLE, "it changed while it was read")


def read_error(error: OSError) -> UnusableSound:
    """The rejection of a file that the system cannot read, in the system's words."""
    return UnusableSound(RejectReason.UNREADABLE, error.strerror or str(error) or type(error).__name__)
