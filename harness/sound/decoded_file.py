"""Sound files that libsndfile reads: FLAC, AIFF, W64, SPHERE, …"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import soundfile

from harness.model.offline import RejectReason
from harness.sound.wave_file import UnusableSound, read_error, state_of, truncated_error

Samples = npt.NDArray[np.int16]

NO_TOTAL = 1 << 62
"""libsndfile reports this many frames or more when the number is unknown."""
_DECODED_BLOCK_SAMPLES = 1 << 17


class ForwardFile(soundfile.SoundFile):  # type: ignore[misc]
    """A file that is read from beginning to end, without the seek that soundfile does after every block.

    That seek decodes a FLAC frame again. At the end of a file with a wrong or incomplete header, it fails."""

    def seekable(self) -> bool:
        return False


class _CallbackFile:
    """A file that libsndfile reads by callbacks, which must not raise. An error ends the file and is stored."""

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
    """A file that libsndfile reads: FLAC, AIFF, W64, SPHERE, … Mono, 16 bits, lossless."""

    assumed = ""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file if state_of(file) is not None else _CallbackFile(file)
        sound = self._open()
        if sound.subtype != "PCM_16":
            raise UnusableSound(RejectReason.ENCODING, f"{sound.format} {sound.subtype}; it must be 16-bit PCM")
        if sound.channels != 1:
            raise UnusableSound(RejectReason.CHANNELS, f"{sound.channels} channels instead of 1")
        self.rate_hz = int(sound.samplerate)
        self.samples = int(sound.frames)
        if self.samples >= NO_TOTAL:  # FLAC from a pipe: the length is known after decoding
            self.samples = sum(len(block) for block in _decode(sound))
            self._check_store()
            sound = self._open()
        self._sound = sound

    def blocks(self) -> Iterator[Samples]:
        count = 0
        with self._sound as sound:
            for block in _decode(sound, self.samples):
                count += len(block)
                yield block
        self._check_store()
        if count != self.samples:
            raise truncated_error(self.samples, count, "samples")

    def _check_store(self) -> None:
        """Raises UnusableSound if a read error has ended the file."""
        if isinstance(self._file, _CallbackFile) and self._file.failed is not None:
            raise read_error(self._file.failed) from self._file.failed

    def _open(self) -> Any:
        """The file from its beginning, for libsndfile. Raises UnusableSound if it does not support the file."""
        try:
            if isinstance(self._file, _CallbackFile):
                self._file.seek(0)
                return ForwardFile(self._file)
            # Through a descriptor if there is one: libsndfile then reads without Python, a third faster.
            os.lseek(self._file.fileno(), 0, os.SEEK_SET)
            return ForwardFile(self._file.fileno(), closefd=False)
        except (soundfile.LibsndfileError, TypeError) as error:  # TypeError: there is no header at all
            self._check_store()
            words = getattr(error, "error_string", str(error)).strip().rstrip(".")
            raise UnusableSound(RejectReason.UNREADABLE, f"not a supported sound file: {words}") from error


def _decode(sound: Any, samples: int = NO_TOTAL) -> Iterator[Samples]:
    """As `decode`, as 16-bit samples. Raises UnusableSound if the file is damaged."""
    try:
        yield from decode(sound, samples, _DECODED_BLOCK_SAMPLES, "int16")
    except soundfile.LibsndfileError as error:
        raise UnusableSound(RejectReason.UNREADABLE, f"damaged: {error.error_string.strip()}") from error


def decode(sound: Any, samples: int, block: int, dtype: str) -> Iterator[Any]:
    """All blocks of an open file; LibsndfileError if it is damaged within the samples that its header declares.

    Bytes after those samples are not sound: many FLAC files have a tag there, at which the decoder loses sync.
    """
    count = 0
    while True:
        try:
            # Never past the end in one call, which would lose the samples before it.
            chunk = sound.read(min(block, samples - count) or block, dtype=dtype)
        except soundfile.LibsndfileError:
            if count == samples:
                return
            raise
        if not len(chunk):
            return
        count += len(chunk)
        yield chunk
