"""Sound files for an evaluation: 16-bit mono at the engine's rate, exact to the sample, a block at a time.

Nothing is converted silently. What is not 16-bit PCM, mono and of the right rate raises `UnusableSound` with the reason
for the log; `resample` alone brings another rate to the engine's. Memory is a block's, whatever a file's length or its
head's claim. Only files proper are opened: a pipe, a device or a folder is refused before it could be waited for.
"""

from __future__ import annotations

import functools
import hashlib
import io
import mmap
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self, cast

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from harness.model.offline import RejectReason
from harness.sound.sound_stores import local_file, open_address
from harness.sound.wave_file import MARK_BYTES, UnusableSound, WaveSound, cut_off, demand_whole, is_wave_file, read_wave

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


__all__ = ["OpenSound", "UnusableSound", "open_file", "open_sound"]

RATES_HZ = range(1000, 768_001)
"""Rates that can be resampled; others are no sound."""
_RESAMPLED_BLOCK = 1 << 18
_PIECE = 1 << 20
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class OpenSound:
    """An open sound file. samples, rate_hz: of the file as it is, exact; sha256: of its bytes, "" unless it was asked
    for. A context manager."""

    def __init__(self, file: BinaryIO, source: PcmSource, rate_hz: int, sha256: str = "") -> None:
        self._file, self._source, self._engine_rate_hz = file, source, rate_hz
        self.samples, self.rate_hz, self.sha256 = source.samples, source.rate_hz, sha256

    def blocks(self) -> Iterator[Samples]:
        """Its samples at the engine's rate, mono int16, shape (n,), n > 0; perhaps read-only; once.

        UnusableSound also here: a head whose claim is not met shows only at the end, damage where it is, and so does
        a file that changes. What was given before then is no use either.
        """
        blocks = self._source.blocks()
        return (
            blocks if self.rate_hz == self._engine_rate_hz else _resampled(blocks, self.rate_hz, self._engine_rate_hz)
        )

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_sound(path: str, rate_hz: int, *, resample: bool, hashed: bool = False) -> OpenSound:
    """Opens a file, or an address of a store, for an engine that listens at rate_hz.

    hashed: with the sha256 of its bytes. A short file is read once for both; a long one is read ahead of its sound, of
    which the system then holds what it has room for, and a store's is copied to this machine so that it is sent once.
    UnusableSound when it is no use. InputError when a store's package is not installed.
    """
    file = _held_or_open(path)
    try:
        if hashed and not isinstance(file, io.BytesIO) and state_of(file) is None:
            file = _copied(file)  # a store's
        source = _source(file)
        if source.rate_hz != rate_hz and not (resample and source.rate_hz in RATES_HZ):
            detail = f"{source.rate_hz} Hz; the engine listens at {rate_hz} Hz"
            raise UnusableSound(RejectReason.RATE, detail)
        if not source.samples:
            raise UnusableSound(RejectReason.EMPTY, "it has no samples")
        sha256 = _sha256(file) if hashed else ""
    except OSError as error:
        file.close()
        raise read_error(error) from error
    except BaseException:
        file.close()
        raise
    return OpenSound(file, source, rate_hz, sha256)


def open_file(path: str) -> BinaryIO:
    """The bytes of a file proper, or behind an address; UnusableSound for everything else, at once."""
    local = local_file(path)
    return open_address(path) if local is None else os.fdopen(_opened(local)[0], "rb")


def _opened(path: str) -> tuple[int, os.stat_result]:
    """The descriptor of a file proper, and what it was when it was opened."""
    try:
        # Looked at first: only opening some devices has an effect. And without waiting, for what it is by now.
        _refuse_others(os.stat(path))
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise read_error(error) from error
    except ValueError as error:  # a NUL in the name, or what no name can hold
        raise UnusableSound(RejectReason.UNREADABLE, f"no name of a file: {error}") from error
    status = os.fstat(number)
    try:
        _refuse_others(status)
    except UnusableSound:
        os.close(number)
        raise
    return number, status


def _refuse_others(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise UnusableSound(RejectReason.UNREADABLE, f"{kind}, not a file")


def _held_or_open(path: str) -> BinaryIO:
    """A short file's bytes, in memory; an open file where they are more."""
    local = local_file(path)
    if local is None:
        return _held_of_store(open_address(path))
    number, before = _opened(local)
    if before.st_size > HELD_BYTES:
        return os.fdopen(number, "rb")
    try:
        content = os.read(number, before.st_size + 1)
        after = os.fstat(number)
    except OSError as error:
        raise read_error(error) from error
    finally:
        os.close(number)
    if len(content) != before.st_size or (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise changed()
    return io.BytesIO(content)


def _held_of_store(file: BinaryIO) -> BinaryIO:
    try:
        if file.seek(0, os.SEEK_END) > HELD_BYTES:
            return file
        file.seek(0)
        content = file.read()
    except OSError as error:
        file.close()
        raise read_error(error) from error
    file.close()
    return io.BytesIO(content)


def _copied(file: BinaryIO) -> BinaryIO:
    """What a store has, in a file of this machine that has no name and goes when it is closed."""
    copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 – the sound's to close
    with file:
        file.seek(0)
        shutil.copyfileobj(file, copy, _PIECE)
    copy.flush()
    return copy


def _source(file: BinaryIO) -> PcmSource:
    length = file.seek(0, os.SEEK_END)
    if not length:
        raise UnusableSound(RejectReason.EMPTY, "the file has no bytes")
    file.seek(0)
    if not is_wave_file(file.read(MARK_BYTES)):
        demand_whole(file, length)
        return DecodedFile(file)
    sound = read_wave(file, length)
    if sound.channels != 1:
        raise UnusableSound(RejectReason.CHANNELS, f"{sound.channels} channels; one is read")
    return wave_source(file, sound)


def _sha256(file: BinaryIO) -> str:
    """Of the bytes of a file, whose place stays where it is."""
    if isinstance(file, io.BytesIO):
        return hashlib.sha256(file.getvalue()).hexdigest()
    digest, at = hashlib.sha256(), 0
    while piece := os.pread(file.fileno(), _PIECE, at):
        digest.update(piece)
        at += len(piece)
    return digest.hexdigest()


def _resampled(blocks: Iterator[Samples], from_hz: int, to_hz: int) -> Iterator[Samples]:
    """By soxr, high quality, rounded to the nearest (half to even) and clipped at full scale; the same samples however
    the sound is cut."""
    stream = soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32", quality="HQ")
    for block in blocks:
        for first in range(0, len(block), _RESAMPLED_BLOCK):
            piece = block[first : first + _RESAMPLED_BLOCK].astype(np.float32)
            yield from _whole(stream.resample_chunk(piece))
    yield from _whole(stream.resample_chunk(np.empty(0, np.float32), last=True))


def _whole(sound: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Iterator[Samples]:
    if len(sound):
        yield np.clip(np.rint(sound), -32768, 32767).astype(np.int16)
