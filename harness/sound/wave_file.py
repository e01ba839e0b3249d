"""The header of a RIFF/WAVE file: the format, the beginning and the length of its sound.

Sources: Multimedia Programming Interface and Data Specifications 1.0 (RIFF, PCM), Microsoft's mmreg.h
(WAVE_FORMAT_EXTENSIBLE), EBU Tech 3306 (RF64) and ITU-R BS.2088 (BW64).

The sizes are compared with the file's own. If a `data` chunk declares more than the file has, the file is truncated
and rejected. Otherwise an hour would count of which only half was heard. Sizes that programs write into a pipe,
when they cannot know the length, declare nothing: the sound then extends to the end of the file.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal

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
"""The bytes after the two bytes of a format in WAVE_FORMAT_EXTENSIBLE's SubFormat."""
_UNKNOWN_32 = 0xFFFFFFFF
_STREAMED = range(0x7FFFF000, 0x80000000)
"""Lengths that SoX, arecord and others write when they cannot know the length."""
_MOST_CHUNKS = 1000
"""Limit of chunks before the sound. A file with only empty chunks would otherwise take hours."""
_LONGEST_FMT = 4096


class UnusableSound(Exception):
    """A file cannot be used for an evaluation. reason: the code in the log; detail: for people."""

    def __init__(self, reason: RejectReason, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


@dataclass(frozen=True, slots=True)
class WaveSound:
    """16-bit PCM, little endian, in a file. offset: of the first sample, in bytes. frames: exact."""

    offset: int
    frames: int
    rate_hz: int
    channels: int


def is_wave(start: bytes) -> bool:
    """Whether a file that begins with these 12 bytes is RIFF/WAVE, with 32- or 64-bit sizes, in either byte order."""
    return start[:4] in (b"RIFF", b"RF64", b"BW64", b"RIFX") and start[8:12] == b"WAVE"


def read_wave(file: BinaryIO, length: int) -> WaveSound:
    """The position of the sound in an open file of `length` bytes. Reads only the headers of chunks.

    UnusableSound: ENCODING unless it is 16-bit PCM; UNREADABLE if the header is broken or the file truncated.
    """
    file.seek(0)
    start = file.read(12)
    if not is_wave(start):
        raise _unreadable("not a WAVE file")
    if start[:4] == b"RIFX":
        raise UnusableSound(RejectReason.ENCODING, "big-endian (RIFX); the samples must be little-endian")
    form: tuple[int, int] | None = None
    for name, size, at, sound_bytes in _chunks(file, length, start):
        if sound_bytes is not None:
            if form is None:
                raise _unreadable("the `data` chunk comes before the `fmt ` chunk")
            rate_hz, channels = form
            return WaveSound(at, sound_bytes // (2 * channels), rate_hz, channels)
        if name == b"fmt ":
            form = _format(file.read(min(size, _LONGEST_FMT)), size)
    raise _unreadable(f"no `data` chunk among the first {_MOST_CHUNKS} chunks")


def _chunks(file: BinaryIO, length: int, start: bytes) -> Iterator[tuple[bytes, int, int, int | None]]:
    """Name, size and position of each chunk up to `data`, and for that one the number of bytes of sound."""
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
                raise _unreadable("the `ds64` chunk is truncated")
            long_data = struct.unpack_from("<Q", sizes, 8)[0]
        at += size + size % 2
        if at > length:
            raise _unreadable(f"the chunk {name.decode('latin-1')!r} declares {size} bytes, beyond the end of the file")


def _format(content: bytes, size: int) -> tuple[int, int]:
    """Rate and channels."""
    if size < 16 or len(content) < 16:
        raise _unreadable(f"the `fmt ` chunk has {min(size, len(content))} bytes; it needs at least 16")
    tag, channels, rate_hz, _, block, bits = struct.unpack_from("<HHIIHH", content)
    if tag == _EXTENSIBLE:
        if len(content) < 40:
            raise _unreadable("the `fmt ` chunk is too short for WAVE_FORMAT_EXTENSIBLE")
        (tag,) = struct.unpack_from("<H", content, 24)
        if content[26:40] != _GUID_TAIL:
            raise UnusableSound(RejectReason.ENCODING, f"sub-format {content[24:40].hex()}; it must be 16-bit PCM")
        (valid,) = struct.unpack_from("<H", content, 18)
        if tag == _PCM and bits == 16 and valid not in (0, 16):
            raise UnusableSound(RejectReason.ENCODING, f"only {valid} of 16 bits are used; all must be")
    if tag != _PCM:
        name = _FORMATS.get(tag, f"format 0x{tag:04x}")
        raise UnusableSound(RejectReason.ENCODING, f"{name}, {bits} bits; it must be 16-bit PCM")
    if not channels or not rate_hz:
        raise _unreadable(f"the header declares {channels} channels and {rate_hz} Hz")
    if bits != 16:
        raise UnusableSound(RejectReason.ENCODING, f"{bits}-bit PCM; it must be 16-bit PCM")
    if block != 2 * channels:
        raise _unreadable(f"the header declares {block} bytes for {channels} samples of 16 bits")
    return rate_hz, channels


def _data_bytes(size: int, long_data: int | None, riff_size: int, at: int, length: int) -> int:
    """Number of bytes of sound from `at` on."""
    rest = length - at
    if size == _UNKNOWN_32 and long_data is not None:
        size = long_data
        open_end = size in (0, 0xFFFFFFFFFFFFFFFF)
    else:
        # A length of 0 is meant if the RIFF chunk continues after it. Otherwise it was never filled in.
        never_closed = size == 0 and (riff_size in (0, _UNKNOWN_32) or riff_size in _STREAMED or riff_size + 8 <= at)
        open_end = size == _UNKNOWN_32 or never_closed or (size in _STREAMED and size > rest)
    if open_end:
        return rest
    if size > rest:
        raise cut_off(size, rest)
    return size


def cut_off(said: int, there: int, unit: str = "bytes of sound") -> UnusableSound:
    """The rejection of a file with less sound than its header declares."""
    return _unreadable(f"truncated: the header declares {said} {unit}, the file has {there}")


def _unreadable(detail: str) -> UnusableSound:
    return UnusableSound(RejectReason.UNREADABLE, detail)


MARK_BYTES = 16
_LONGEST_HEAD = 4096
_LONGEST_PAGE = 65_307
"""Of an Ogg stream, in bytes."""
_NO_SIZE = 0xFFFFFFFF

_DECODED = (b"fLaC", b"FORM", b".snd", b"dns.", b"caff", b"NIST_1A", b"ID3")
"""FLAC, AIFF, AU in both byte orders, CAF, SPHERE. A FLAC file may begin with an ID3 tag, as MP3 files do."""
_W64 = bytes.fromhex("726966662e91cf11a5d628db04c10000")
_OTHERS = {
    b"OggS": "Ogg",
    b"\x1a\x45\xdf\xa3": "Matroska or WebM",
    b"\x30\x26\xb2\x75": "Windows Media",
    b"#!AMR": "AMR",
    b"wvpk": "WavPack",
    b"MAC ": "Monkey's Audio",
}


def is_wave_file(start: bytes) -> bool:
    """True for WAVE, which this module reads; False for a file that libsndfile reads.

    UnusableSound for all others: ENCODING if the format is known, UNREADABLE if not.
    """
    if is_wave(start):
        return True
    if start.startswith(_DECODED) or start == _W64:
        return False
    other = next((name for mark, name in _OTHERS.items() if start.startswith(mark)), None)
    if start[4:8] == b"ftyp":
        other = "MPEG-4"
    elif _is_mpeg_layer_3(start):
        other = "MP3"
    if other is not None:
        raise UnusableSound(RejectReason.ENCODING, f"{other}; it must be 16-bit PCM")
    raise UnusableSound(RejectReason.UNREADABLE, "not a supported sound file")


def demand_whole(file: BinaryIO, length: int) -> None:
    """UnusableSound if the header shows that an open file of `length` bytes is truncated.

    For other formats, decoding shows it. libsndfile accepts a truncated file as complete.

    Sources, beside those of this module:

    - AIFF 1.3 (FORM)
    - Sun's .au header
    - Sony's Wave64 (sizes include their own header)
    - Apple's CAF 1.0 (chunk sizes of 64 bits, -1 for unknown data)
    - NIST SPHERE (header.doc)
    - RFC 3533, 6 (the last page of an Ogg stream has a flag)
    """
    file.seek(0)
    start = file.read(_LONGEST_HEAD)
    said = 0
    if is_wave(start):
        if not any(sound_bytes is not None for *_, sound_bytes in _chunks(file, length, start)):
            raise _unreadable(f"no `data` chunk among the first {_MOST_CHUNKS} chunks")
    elif start[:4] == b"FORM" and len(start) >= 12:
        said = 8 + int.from_bytes(start[4:8], "big")
    elif start[:4] in (b".snd", b"dns.") and len(start) >= 24:
        order: Literal["big", "little"] = "big" if start[:4] == b".snd" else "little"
        offset, size = (int.from_bytes(start[at : at + 4], order) for at in (4, 8))
        said = 0 if size == _NO_SIZE else offset + size
    elif start.startswith(_W64) and len(start) >= 24:
        said = int.from_bytes(start[16:24], "little")
    elif start[:4] == b"caff":
        said = _caf_bytes(file, length)
    elif start.startswith(b"NIST_1A"):
        said = _sphere_bytes(start)
    elif start.startswith(b"OggS") and not _ogg_ends(file, length):
        raise UnusableSound(RejectReason.UNREADABLE, "truncated: the last page of its Ogg stream is missing")
    if said > length:
        raise cut_off(said, length, "bytes")


def _caf_bytes(file: BinaryIO, length: int) -> int:
    """End of the `data` chunk of a CAF file; 0 without the chunk or its size."""
    at = 8
    while at < length:
        file.seek(at)
        head = file.read(12)
        size = int.from_bytes(head[4:], "big", signed=True)
        if len(head) < 12 or size < 0:
            return 0
        at += 12 + size
        if head[:4] == b"data":
            return at
    return at


def _sphere_bytes(start: bytes) -> int:
    """Number of bytes of a SPHERE file of PCM; 0 for other codings."""
    fields = dict(re.findall(rb"^(\w+) -\S+ (\S+)$", start, re.MULTILINE))
    try:
        head = int(start[8:16])
        count, size = int(fields[b"sample_count"]), int(fields[b"sample_n_bytes"])
        channels = int(fields.get(b"channel_count", b"1"))
    except (KeyError, ValueError):
        return 0
    return head + count * size * channels if fields.get(b"sample_coding", b"pcm") == b"pcm" else 0


def _ogg_ends(file: BinaryIO, length: int) -> bool:
    """Whether the last page exists and is marked as the last."""
    file.seek(max(0, length - _LONGEST_PAGE))
    tail = file.read(_LONGEST_PAGE)
    at = tail.rfind(b"OggS")
    if at < 0 or len(tail) < at + 27:
        return False
    lengths = tail[at + 27 : at + 27 + tail[at + 26]]
    return bool(tail[at + 5] & 4) and len(tail) >= at + 27 + tail[at + 26] + sum(lengths)


def _is_mpeg_layer_3(start: bytes) -> bool:
    """A frame's sync word, a version that exists, layer III (ISO/IEC 11172-3, 2.4.1.3)."""
    return len(start) > 1 and start[0] == 0xFF and start[1] & 0xE6 == 0xE2 and start[1] & 0x18 != 0x08
