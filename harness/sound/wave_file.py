"""The head of a RIFF/WAVE file: what its sound is, where it begins and how much of it there is.

Sources: Multimedia Programming Interface and Data Specifications 1.0 (RIFF, PCM), Microsoft's mmreg.h
(WAVE_FORMAT_EXTENSIBLE), EBU Tech 3306 (RF64) and ITU-R BS.2088 (BW64).

The sizes are held against the file's own. A `data` chunk that promises more than the file has is a file that was cut
off, and is refused: half of it would count as an hour that nobody heard. Sizes that programs write when they cannot
know better (a pipe) are no promise: all that follows is the sound.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from harness.model.offline import RejectReason

_PCM = 1
_EXTENSIBLE = 0xFFFE
_FORMATS = {
    0x0002: "MS ADPCM",
    0x0003: "floating point",
    0x0006: "A-law",
    0x0007: "µ-law",
    0x0010: "OKI ADPCM",
    0x0011: "IMA ADPCM",
    0x0031: "GSM 6.10",
    0x0050: "MPEG",
    0x0055: "MP3",
    0x00FF: "AAC",
    0x0161: "Windows Media",
}
_GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")
"""What follows the two bytes of a format in WAVE_FORMAT_EXTENSIBLE's SubFormat."""
_UNKNOWN_32 = 0xFFFFFFFF
_STREAMED = range(0x7FFFF000, 0x80000000)
"""What SoX, arecord and others write for a length that they cannot know."""
_MOST_CHUNKS = 1000
"""Chunks ahead of the sound; a file of nothing but empty ones would be walked for hours."""
_LONGEST_FMT = 4096


class UnusableSound(Exception):
    """A file is no use for an evaluation: `reason` is the log's word, `detail` is for people."""

    def __init__(self, reason: RejectReason, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


@dataclass(frozen=True, slots=True)
class WaveSound:
    """16-bit PCM in a file. offset: of the first sample, in bytes; frames: exact. Little endian."""

    offset: int
    frames: int
    rate_hz: int
    channels: int


@dataclass(frozen=True, slots=True)
class _Format:
    rate_hz: int
    channels: int


def is_wave(start: bytes) -> bool:
    """Whether a file that begins so (12 bytes) is RIFF/WAVE, of any size of sizes and either byte order."""
    return start[:4] in (b"RIFF", b"RF64", b"BW64", b"RIFX") and start[8:12] == b"WAVE"


def read_wave(file: BinaryIO, length: int) -> WaveSound:
    """Where the sound of an open file of `length` bytes is; reads the heads of chunks alone.

    UnusableSound: ENCODING unless it is 16-bit PCM; UNREADABLE where the head is broken or the file cut off.
    """
    file.seek(0)
    start = file.read(12)
    if not is_wave(start):
        raise _unreadable("no WAVE file")
    if start[:4] == b"RIFX":
        raise UnusableSound(RejectReason.ENCODING, "big-endian (RIFX); the samples must be little-endian")
    form: _Format | None = None
    for name, size, at, sound_bytes in _chunks(file, length, start):
        if sound_bytes is not None:
            if form is None:
                raise _unreadable("the `data` chunk comes before the `fmt ` chunk")
            return WaveSound(at, sound_bytes // (2 * form.channels), form.rate_hz, form.channels)
        if name == b"fmt ":
            form = _format(file.read(min(size, _LONGEST_FMT)), size)
    raise _unreadable(f"no `data` among the first {_MOST_CHUNKS} chunks")


def demand_whole_wave(file: BinaryIO, length: int) -> None:
    """UnusableSound when a WAVE file of any encoding has less sound than its head says, or no sound."""
    file.seek(0)
    start = file.read(12)
    if not any(sound_bytes is not None for *_, sound_bytes in _chunks(file, length, start)):
        raise _unreadable(f"no `data` among the first {_MOST_CHUNKS} chunks")


def _chunks(file: BinaryIO, length: int, start: bytes) -> Iterator[tuple[bytes, int, int, int | None]]:
    """Name, size and place of each chunk's content up to `data`, and of that one how many bytes of sound it has."""
    order = ">" if start[:4] == b"RIFX" else "<"
    riff_size = struct.unpack_from(f"{order}I", start, 4)[0]
    long_data: int | None = None
    at = 12
    for _ in range(_MOST_CHUNKS):
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            raise _unreadable("the file ends before its sound (no `data` chunk)")
        name, size = head[:4], struct.unpack_from(f"{order}I", head, 4)[0]
        at += 8
        if name == b"data":
            yield name, size, at, _data_bytes(size, long_data, riff_size, at, length)
            return
        yield name, size, at, None
        if name == b"ds64" and start[:4] in (b"RF64", b"BW64"):
            file.seek(at)
            sizes = file.read(16)
            if len(sizes) < 16 or size < 16:
                raise _unreadable("the `ds64` chunk is cut off")
            long_data = struct.unpack_from("<Q", sizes, 8)[0]
        at += size + size % 2
        if at > length:
            raise _unreadable(f"the chunk {_shown(name)} says {size} bytes and goes past the end of the file")


def _format(content: bytes, size: int) -> _Format:
    if size < 16 or len(content) < 16:
        raise _unreadable(f"the `fmt ` chunk has {min(size, len(content))} bytes; 16 are the least")
    tag, channels, rate_hz, _, block, bits = struct.unpack_from("<HHIIHH", content)
    if tag == _EXTENSIBLE:
        if len(content) < 40:
            raise _unreadable("the `fmt ` chunk is too short for WAVE_FORMAT_EXTENSIBLE")
        (tag,) = struct.unpack_from("<H", content, 24)
        if content[26:40] != _GUID_TAIL:
            raise UnusableSound(RejectReason.ENCODING, f"sub-format {content[24:40].hex()}; 16-bit PCM is read")
        (valid,) = struct.unpack_from("<H", content, 18)
        if tag == _PCM and bits == 16 and valid not in (0, 16):
            raise UnusableSound(RejectReason.ENCODING, f"{valid} of 16 bits are used; all must be")
    if tag != _PCM:
        name = _FORMATS.get(tag, f"format 0x{tag:04x}")
        raise UnusableSound(RejectReason.ENCODING, f"{name}, {bits} bits; 16-bit PCM is read")
    if not channels or not rate_hz:
        raise _unreadable(f"the head says {channels} channels and {rate_hz} Hz")
    if bits != 16:
        raise UnusableSound(RejectReason.ENCODING, f"{bits}-bit PCM; 16-bit PCM is read")
    if block != 2 * channels:
        raise _unreadable(f"the head says {block} bytes for {channels} samples of 16 bits")
    return _Format(rate_hz, channels)


def _data_bytes(size: int, long_data: int | None, riff_size: int, at: int, length: int) -> int:
    """How many bytes of sound there are from `at` on."""
    rest = length - at
    if size == _UNKNOWN_32 and long_data is not None:
        size = long_data
        open_end = size in (0, 0xFFFFFFFFFFFFFFFF)
    else:
        # A length of nothing is meant where the RIFF chunk goes on behind it; elsewhere it was never filled in.
        never_closed = size == 0 and (riff_size in (0, _UNKNOWN_32) or riff_size in _STREAMED or riff_size + 8 <= at)
        open_end = size == _UNKNOWN_32 or never_closed or (size in _STREAMED and size > rest)
    if open_end:
        return rest
    if size > rest:
        raise cut_off(size, rest)
    return size


def cut_off(said: int, there: int, unit: str = "bytes of sound") -> UnusableSound:
    """The rejection of a file with less sound than its head says."""
    return _unreadable(f"cut off: the head says {said} {unit}, {there} are there")


def _shown(name: bytes) -> str:
    return repr(name.decode("latin-1"))


def _unreadable(detail: str) -> UnusableSound:
    return UnusableSound(RejectReason.UNREADABLE, detail)
