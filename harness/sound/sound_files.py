"""Sound files for an evaluation: 16-bit mono at the engine's rate, exact to the sample, a block at a time.

Nothing is converted silently. A file that is not 16-bit PCM, mono and at the right rate raises `UnusableSound` with
the reason for the log. Only `resample` converts other rates to the engine's. Memory use is that of one block,
whatever the header declares. A pipe, a device or a folder is refused before it is opened, since opening could block.
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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import soxr

from harness.model.offline import RejectReason
from harness.sound.sound_stores import local_file, open_address
from harness.sound.wave_file import (
    MARK_BYTES,
    UnusableSound,
    WaveSound,
    check_whole,
    is_wave_file,
    read_error,
    read_wave,
    state_of,
)

if TYPE_CHECKING:
    from harness.sound.decoded_file import DecodedFile

Samples = npt.NDArray[np.int16]

BLOCK_SAMPLES = 960_000
"""Samples in a block: 60 s at 16 kHz. Longer ones exceed the processor's cache, shorter ones need more calls
(bench_sound_files.py)."""
HELD_BYTES = 1 << 20
"""Files up to this size (33 s at 16 kHz) are read into memory, since mapping them takes longer."""
_LOCAL_FILE_SYSTEMS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "overlay", "vfat"})


class _WaveFile:
    """A WAVE file of PCM samples."""

    def __init__(self, file: BinaryIO, sound: WaveSound) -> None:
        self.samples, self.rate_hz, self.assumed = sound.frames, sound.rate_hz, sound.assumed
        self._file, self._offset = file, sound.offset
        self._state_at_open = state_of(file)


class MappedWave(_WaveFile):
    """A memory-mapped WAVE file. Blocks are read-only views of the file, without a copy."""

    def blocks(self) -> Iterator[Samples]:
        """As `OpenSound.blocks`, at the rate of the file."""
        descriptor = self._file.fileno()
        try:
            mapped = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: the file is empty by now
            raise UnusableSound(RejectReason.UNREADABLE, f"cannot be mapped: {error}") from error
        if len(mapped) < self._offset + 2 * self.samples:
            raise changed_error()
        samples = np.frombuffer(mapped, "<i2", self.samples, self._offset)
        for first_sample in range(0, self.samples, BLOCK_SAMPLES):
            yield samples[first_sample : first_sample + BLOCK_SAMPLES]
            # Also releases what was read after this block: a day's file would fill the memory.
            if state_of(self._file) != self._state_at_open:
                raise changed_error()
            page_start = (self._offset + 2 * first_sample) // mmap.PAGESIZE * mmap.PAGESIZE
            mapped.madvise(mmap.MADV_DONTNEED, 0, page_start)


class StreamedWave(_WaveFile):
    """A WAVE file that is read: from a network file system or a store by blocks, in memory as one view."""

    def blocks(self) -> Iterator[Samples]:
        if isinstance(self._file, io.BytesIO):
            yield np.frombuffer(self._file.getvalue(), "<i2", self.samples, self._offset)
            return
        try:
            if self._state_at_open is not None:
                self._file.seek(0, os.SEEK_END)  # drops what was buffered with the header, before the check for changes
            self._file.seek(self._offset)
            for first_sample in range(0, self.samples, BLOCK_SAMPLES):
                size = 2 * min(BLOCK_SAMPLES, self.samples - first_sample)
                content = self._file.read(size)
                if len(content) < size:
                    raise changed_error()
                yield np.frombuffer(content, "<i2")
                if state_of(self._file) != self._state_at_open:
                    raise changed_error()
        except OSError as error:
            raise read_error(error) from error


PcmSource: TypeAlias = "MappedWave | StreamedWave | DecodedFile"
"""A source of the 16-bit mono samples of one file.

samples, rate_hz: number of samples and sample rate of the file. assumed: what was assumed about its length (see
`WaveLayout`); "" for nothing. blocks: yields the samples once, in order.
"""


def wave_source(file: BinaryIO, sound: WaveSound) -> PcmSource:
    """The reader for a WAVE file in memory, in a store, or on this computer."""
    if state_of(file) is not None and sound.offset % 2 == 0 and _is_local_device(os.fstat(file.fileno()).st_dev):
        return MappedWave(file, sound)
    return StreamedWave(file, sound)


@functools.lru_cache(maxsize=64)
def _is_local_device(device: int) -> bool:
    """Whether a device has a local file system, from which reading cannot fail because of a network."""
    device_id = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            for line in mounts:
                left, _, right = line.partition(" - ")
                if left.split(" ", 3)[2] == device_id:
                    return right.split(" ", 1)[0] in _LOCAL_FILE_SYSTEMS
    except OSError:
        return False
    return False


def changed_error() -> UnusableSound:
    """The rejection of a file that changes while it is read."""
    return UnusableSound(RejectReason.UNREADABLE, "it changed while the harness was reading it")


__all__ = ["ConstantStretches", "OpenSound", "UnusableSound", "open_file", "open_sound"]

RATES_HZ = range(1000, 768_001)
_RESAMPLED_BLOCK_SAMPLES = 1 << 18
_COPY_BYTES = 1 << 20
_FILE_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class ConstantStretches:
    """Finds stretches of a sound in which every sample has the same value, while its blocks pass.

    - stretches: (first sample, end) of each, in the order of their first samples.
    - values: value of each stretch with only one value, once all blocks have passed; 0 is digital silence.
    """

    def __init__(self, stretches: Sequence[tuple[int, int]]) -> None:
        self._stretches = stretches
        self._position = 0
        self._pending = list(range(len(stretches)))
        self.values: dict[int, int] = {}

    @property
    def decided(self) -> bool:
        """Whether no further block can change the result."""
        return not self._pending

    def observe_blocks(self, blocks: Iterable[Samples]) -> Iterator[Samples]:
        """Observes the blocks, and yields them unchanged."""
        for block in blocks:
            self._compare(block)
            yield block

    def read(self, observed_blocks: Iterable[Samples]) -> None:
        """Reads as many blocks of `observe_blocks` as are needed."""
        for _ in observed_blocks:
            if self.decided:
                return

    def _compare(self, block: Samples) -> None:
        """Compares the next block with the values of the stretches that it overlaps."""
        block_start, self._position = self._position, self._position + len(block)
        pending: list[int] = []
        for place, index in enumerate(self._pending):
            first, end = self._stretches[index]
            if first >= self._position:  # this stretch and all later ones begin after the block
                pending += self._pending[place:]
                break
            part = block[max(0, first - block_start) : max(0, end - block_start)]
            if len(part):
                # The first sample of a stretch gives its value, which the following blocks must have, too.
                value = self.values.setdefault(index, int(part[0]))
                # The last sample alone decides most stretches: a comparison of all takes longer.
                if part[-1] != value or (part != value).any():
                    del self.values[index]
                    continue
            if end > self._position:  # the stretch continues in the next block
                pending.append(index)
        self._pending = pending


class OpenSound(AbstractContextManager["OpenSound"]):
    """An open sound file, which is a context manager.

    - samples, rate_hz: exact number of samples and sample rate of the file.
    - sha256: hash of its bytes; "" unless it was requested.
    - assumed: what was assumed about its length, for people; "" for nothing.
    """

    def __init__(self, file: BinaryIO, source: PcmSource, rate_hz: int, sha256: str = "") -> None:
        self._file, self._pcm_source, self._engine_rate_hz = file, source, rate_hz
        self.samples, self.rate_hz, self.sha256 = source.samples, source.rate_hz, sha256
        self.assumed = source.assumed
        self.constant: ConstantStretches | None = None
        """Observes the file's own samples while they are read; None: nothing does."""

    def blocks(self) -> Iterator[Samples]:
        """Its samples at the engine's rate, mono int16, shape (n,), n > 0, perhaps read-only. Call it once.

        UnusableSound during the reading: if the file is damaged, changes, or is shorter than its header declares.
        Earlier blocks are then not valid either.
        """
        blocks = self._pcm_source.blocks()
        if self.constant is not None:
            blocks = self.constant.observe_blocks(blocks)
        return blocks if self.rate_hz == self._engine_rate_hz else _resample(blocks, self.rate_hz, self._engine_rate_hz)

    def close(self) -> None:
        self._file.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def open_sound(path: str, rate_hz: int, *, resample: bool, hashed: bool = False) -> OpenSound:
    """Opens a file, or an address of a store, for an engine that listens at rate_hz.

    hashed: whether to compute the SHA-256 of the bytes. A short file is read once for both. A long file is read for the
    hash first, and the system may cache it. A file in a store is copied to this computer, so that it is sent once.
    Raises UnusableSound if the file is not usable. Raises InputError if the package of a store is not installed.
    """
    file = _read_or_open(path)
    try:
        if hashed and not isinstance(file, io.BytesIO) and state_of(file) is None:
            # From a store. The copy is an unnamed file on this computer, which disappears when it is closed.
            copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 – OpenSound closes it
            with file:
                file.seek(0)
                shutil.copyfileobj(file, copy, _COPY_BYTES)
            copy.flush()
            file = copy
        source = _pcm_source(file)
        if source.rate_hz != rate_hz and not (resample and source.rate_hz in RATES_HZ):
            raise UnusableSound(RejectReason.RATE, f"{source.rate_hz} Hz; the engine needs {rate_hz} Hz")
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
    """The bytes of a regular file or behind an address. Raises UnusableSound at once for anything else."""
    local = local_file(path)
    return open_address(path) if local is None else os.fdopen(_open_unchanged(local)[0], "rb")


def _open_unchanged(path: str) -> tuple[int, os.stat_result]:
    """The descriptor of a regular file, and its status when it was opened."""
    try:
        # Checked first, since opening some devices has an effect. Opened without blocking, in case it has changed.
        _refuse_irregular(os.stat(path))
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise read_error(error) from error
    except ValueError as error:  # a NUL or an invalid character in the name
        raise UnusableSound(RejectReason.UNREADABLE, f"not a valid file name: {error}") from error
    status = os.fstat(descriptor)
    try:
        _refuse_irregular(status)
    except UnusableSound:
        os.close(descriptor)
        raise
    return descriptor, status


def _refuse_irregular(status: os.stat_result) -> None:
    """Raises UnusableSound for anything but a regular file."""
    if not stat.S_ISREG(status.st_mode):
        kind = _FILE_KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise UnusableSound(RejectReason.UNREADABLE, f"{kind}, not a file")


def _read_or_open(path: str) -> BinaryIO:
    """The bytes of a short file in memory, or an open file if it is longer."""
    local = local_file(path)
    if local is None:
        return _read_from_store(open_address(path))
    descriptor, status = _open_unchanged(local)
    if status.st_size > HELD_BYTES:
        return os.fdopen(descriptor, "rb")
    try:
        content = os.read(descriptor, status.st_size + 1)
        status_after = os.fstat(descriptor)
    except OSError as error:
        raise read_error(error) from error
    finally:
        os.close(descriptor)
    is_resized = len(content) != status.st_size or status_after.st_size != status.st_size
    if is_resized or status_after.st_mtime_ns != status.st_mtime_ns:
        raise changed_error()
    return io.BytesIO(content)


def _read_from_store(file: BinaryIO) -> BinaryIO:
    """The bytes of a short file in memory, or the file itself if it is longer."""
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


def _pcm_source(file: BinaryIO) -> PcmSource:
    """The reader for the format of a file. Raises UnusableSound if its header shows that it cannot be used."""
    length = file.seek(0, os.SEEK_END)
    if not length:
        raise UnusableSound(RejectReason.EMPTY, "the file has no bytes")
    file.seek(0)
    if not is_wave_file(file.read(MARK_BYTES)):
        from harness.sound.decoded_file import DecodedFile  # imported here, since most files need no libsndfile

        check_whole(file, length)
        return DecodedFile(file)
    sound = read_wave(file, length)
    if sound.channels != 1:
        raise UnusableSound(RejectReason.CHANNELS, f"{sound.channels} channels instead of 1")
    return wave_source(file, sound)


def _sha256(file: BinaryIO) -> str:
    """SHA-256 of a file's bytes. The position in the file does not change."""
    if isinstance(file, io.BytesIO):
        return hashlib.sha256(file.getvalue()).hexdigest()
    digest, offset = hashlib.sha256(), 0
    while piece := os.pread(file.fileno(), _COPY_BYTES, offset):
        digest.update(piece)
        offset += len(piece)
    return digest.hexdigest()


def _resample(blocks: Iterator[Samples], from_hz: int, to_hz: int) -> Iterator[Samples]:
    """Resampled by soxr, high quality, rounded to the nearest (half to even) and clipped at full scale.

    The samples do not depend on how the sound is cut into blocks."""
    stream = soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32", quality="HQ")
    for block in blocks:
        for first in range(0, len(block), _RESAMPLED_BLOCK_SAMPLES):
            piece = block[first : first + _RESAMPLED_BLOCK_SAMPLES].astype(np.float32)
            yield from _as_int16(stream.resample_chunk(piece))
    yield from _as_int16(stream.resample_chunk(np.empty(0, np.float32), last=True))


def _as_int16(sound: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> Iterator[Samples]:
    if len(sound):
        yield np.clip(np.rint(sound), -32768, 32767).astype(np.int16)
