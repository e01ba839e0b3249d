"""Sound files for an evaluation: 16-bit mono at the engine's rate, exact to the sample, a block at a time.

Nothing is converted silently. What is not 16-bit PCM, mono and of the right rate raises `UnusableSound` with the reason
for the log; `resample` alone brings another rate to the engine's. Memory is a block's, whatever a file's length or its
head's claim. Only files proper are opened: a pipe, a device or a folder is refused before it could be waited for.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO, Self, cast

import numpy as np
import soxr

from harness.model.offline import RejectReason
from harness.sound.containers import MARK_BYTES, demand_whole, is_wave_file
from harness.sound.pcm_source import (
    HELD_BYTES,
    DecodedFile,
    PcmSource,
    Samples,
    changed,
    read_error,
    state_of,
    wave_source,
)
from harness.sound.sound_stores import is_address, local_path, open_address
from harness.sound.wave_file import UnusableSound, read_wave

__all__ = ["OpenSound", "UnusableSound", "open_file", "open_sound", "rough_seconds"]

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
FLAC_LONGER = 1.8
"""How much longer a FLAC's sound is than its size says."""


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
    local = _local(path)
    return open_address(path) if local is None else os.fdopen(_opened(local)[0], "rb")


def rough_seconds(path: str) -> float:
    """About how long a file is, by its size, as if it were 16-bit at 16 kHz; 0 for a store's, or what is not there."""
    local = _local(path)
    try:
        size = 0 if local is None else os.stat(local).st_size
    except (OSError, ValueError):
        return 0.0
    return size / 32_000 * (FLAC_LONGER if path[-5:].lower() == ".flac" else 1.0)


def _local(path: str) -> str | None:
    """The path of a file of this machine; None for what is in a store."""
    return local_path(path) if is_address(path) else path


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
    local = _local(path)
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
