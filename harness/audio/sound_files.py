"""Sound files for an evaluation: 16-bit mono at the engine's rate, exact to the sample, a block at a time.

Nothing is converted silently. What is not 16-bit PCM, mono and of the right rate raises `UnusableSound` with the reason
for the log; `resample` alone brings another rate to the engine's. Memory is a block's, whatever a file's length or its
head's claim. Only files proper are opened: a pipe, a device or a folder is refused before it could be waited for.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np
import soxr

from harness.audio.containers import MARK_BYTES, is_wave_file
from harness.audio.pcm_source import DecodedFile, PcmSource, Samples, StreamedWave, read_error, wave_source
from harness.audio.sound_stores import is_address, local_path, open_address
from harness.audio.wave_file import UnusableSound, read_wave
from harness.model.offline import RejectReason

__all__ = ["OpenSound", "UnusableSound", "file_sha256", "open_file", "open_sound", "rough_seconds"]

RATES_HZ = range(1000, 768_001)
"""Rates that can be resampled; others are no sound."""
_RESAMPLED_BLOCK = 1 << 18
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_SMALLER = {".flac": 1.8}
"""How much longer a file's sound is than its size says; by the ending of its name."""


class OpenSound:
    """An open sound file. samples, rate_hz: of the file as it is, exact. A context manager."""

    def __init__(self, file: BinaryIO, source: PcmSource, rate_hz: int) -> None:
        self._file, self._source, self._engine_rate_hz = file, source, rate_hz
        self.samples, self.rate_hz = source.samples, source.rate_hz

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


def open_sound(path: str, rate_hz: int, *, resample: bool) -> OpenSound:
    """Opens a file, or an address of a store, for an engine that listens at rate_hz.

    UnusableSound when it is no use. InputError when a store's package is not installed.
    """
    file = open_file(path)
    try:
        source = _source(file, is_address(path) and local_path(path) is None)
        if source.rate_hz != rate_hz and not (resample and source.rate_hz in RATES_HZ):
            detail = f"{source.rate_hz} Hz; the engine listens at {rate_hz} Hz"
            raise UnusableSound(RejectReason.RATE, detail)
        if not source.samples:
            raise UnusableSound(RejectReason.EMPTY, "it has no samples")
    except OSError as error:
        file.close()
        raise read_error(error) from error
    except BaseException:
        file.close()
        raise
    return OpenSound(file, source, rate_hz)


def open_file(path: str) -> BinaryIO:
    """The bytes of a file proper, or behind an address; UnusableSound for everything else, at once."""
    if is_address(path):
        local = local_path(path)
        if local is None:
            return open_address(path)
        path = local
    try:
        # Looked at first: only opening some devices has an effect. And without waiting, for what it is by now.
        _refuse_others(os.stat(path))
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise read_error(error) from error
    except ValueError as error:  # a NUL in the name, or what no name can hold
        raise UnusableSound(RejectReason.UNREADABLE, f"no name of a file: {error}") from error
    file = os.fdopen(number, "rb")
    try:
        _refuse_others(os.fstat(number))
    except UnusableSound:
        file.close()
        raise
    return file


def file_sha256(path: str) -> str:
    """The sha256 of a file's bytes, or of those behind an address. UnusableSound when it cannot be read."""
    with open_file(path) as file:
        try:
            digest = hashlib.sha256()
            while content := file.read(1 << 20):
                digest.update(content)
            return digest.hexdigest()
        except OSError as error:
            raise read_error(error) from error


def rough_seconds(path: str) -> float:
    """About how long a file is, by its size, as if it were 16-bit at 16 kHz; 0 for a store's, or what is not there."""
    if is_address(path):
        local = local_path(path)
        if local is None:
            return 0.0
        path = local
    try:
        size = os.stat(path).st_size
    except (OSError, ValueError):
        return 0.0
    return size / 32_000 * _SMALLER.get(os.path.splitext(path)[1].lower(), 1.0)


def _refuse_others(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise UnusableSound(RejectReason.UNREADABLE, f"{kind}, not a file")


def _source(file: BinaryIO, in_store: bool) -> PcmSource:
    length = file.seek(0, os.SEEK_END)
    if not length:
        raise UnusableSound(RejectReason.EMPTY, "the file has no bytes")
    file.seek(0)
    if not is_wave_file(file.read(MARK_BYTES)):
        return DecodedFile(file, in_store=in_store)
    sound = read_wave(file, length)
    if sound.channels != 1:
        raise UnusableSound(RejectReason.CHANNELS, f"{sound.channels} channels; one is read")
    return StreamedWave(file, sound) if in_store else wave_source(file, sound)


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
