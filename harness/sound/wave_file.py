"""The header of a RIFF/WAVE file: the format, the beginning and the length of its sound.

Sources: Multimedia Programming Interface and Data Specifications 1.0 (RIFF, PCM), Microsoft's mmreg.h
(WAVE_FORMAT_EXTENSIBLE), EBU Tech 3306 (RF64) and ITU-R BS.2088 (BW64).

`find_sound` decides the length for every reader: it compares the sizes in the header with the size of the file. A file
with less sound than its header declares is truncated and rejected. Otherwise a whole hour would count although only
half of it was heard. If the header names no length, or is known to be wrong, the sound extends to the end of the file,
and `assumed` says so.
"""

from __future__ import annotations

import io
import os
import re
import struct
from typing import BinaryIO, Literal

from harness.model.frozen import frozen
from harness.model.offline import RejectReason

_PCM = 1  # WAVE_FORMAT_PCM.
_EXTENSIBLE = 0xFFFE  # WAVE_FORMAT_EXTENSIBLE.
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
_UNKNOWN_32 = 0xFFFFFFFF  # In RF64 and BW64: the chunk `ds64` has the size.
_STREAMED_SIZES = (range(0x7FFFF000, 0x80001000), range(0xFFFFF000, 0x100000000))
"""Sizes written by programs that do not know the length: SoX 0x7FFFF000, arecord 0x80000000, FFmpeg 0xFFFFFFFF, or such
a size minus that of the header."""
_WRONG_EXCESSES = (8, 36, 44)
"""How much too big a size may be, in bytes, because it wrongly counts parts of the shortest header."""
_CHUNK_NAMES = frozenset(
    b"fmt |data|fact|LIST|bext|cue |plst|smpl|inst|note|labl|ltxt|id3 |ID3 |iXML|axml|chna|JUNK|junk|PAD |FLLR|PEAK|"
    b"cart|umid|afsp|DISP|acid|strc|slnt|wavl|ds64|_PMX|AFAn|minf|elm1|regn|link".split(b"|")
)
"""Names of chunks that programs write, by which a chunk with a wrong size is still recognised."""
_TAGS = (b"TAG", b"ID3", b"APETAGEX", b"LYRICSBEGIN")
"""Starts of tags that programs append to a file without a chunk around them: ID3 tags of version 1 and 2, APE, lyrics.
"""
_MIN_TRAILING_S = 0.1
"""If fewer seconds of bytes that are neither a chunk nor a tag follow the sound, they do not count as sound."""
_USUAL_BYTES_PER_S = 32_000
"""Bytes per second, if the header does not say it."""
_PIECE_BYTES = 1 << 20
_MAX_CHUNKS = 1000
"""Largest number of chunks before the sound. A file with only empty chunks would otherwise take hours."""
_MAX_FMT_BYTES = 4096  # WAVE_FORMAT_EXTENSIBLE has 40. A wrong size must not fill the memory.


class UnusableSound(Exception):
    """A file cannot be used for an evaluation.

    - reason: the code in the log.
    - detail: the reason in words.
    """

    def __init__(self, reason: RejectReason, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


@frozen
class WaveSound:
    """The sound of a file of 16-bit PCM, little endian.

    - offset: position of the first sample, in bytes.
    - frames: exact number of frames.
    - assumed: what was assumed about the length, for people; "" for nothing.
    """

    offset: int
    frames: int
    rate_hz: int
    channels: int
    assumed: str = ""


@frozen
class WaveLayout:
    """The sound of any WAVE file.

    - fmt_content: content of the `fmt ` chunk; b"" if there is none before the sound.
    - offset, size: position and length of the sound, in bytes.
    - assumed: what was assumed because header and file do not agree, for people; "" if they do.
    - order: byte order of the header, as in `struct`.
    """

    fmt_content: bytes
    offset: int
    size: int
    assumed: str = ""
    order: str = "<"


def is_wave(start: bytes) -> bool:
    """Whether a file that begins with these 12 bytes is RIFF/WAVE, with 32- or 64-bit sizes, in either byte order."""
    return start[:4] in (b"RIFF", b"RF64", b"BW64", b"RIFX") and start[8:12] == b"WAVE"


def read_wave(file: BinaryIO, length: int) -> WaveSound:
    """The position of the sound in an open file of `length` bytes.

    UnusableSound: ENCODING unless it is 16-bit PCM; UNREADABLE if the header is broken or the file truncated.
    """
    file.seek(0)
    start = file.read(12)
    if not is_wave(start):
        raise _unreadable("not a WAVE file")
    if start[:4] == b"RIFX":
        raise UnusableSound(RejectReason.ENCODING, "big-endian (RIFX); the samples must be little-endian")
    layout = find_sound(file, length)
    if not layout.fmt_content:
        raise _unreadable("the `data` chunk comes before the `fmt ` chunk")
    rate_hz, channels = _pcm_format(layout.fmt_content)
    return WaveSound(layout.offset, layout.size // (2 * channels), rate_hz, channels, layout.assumed)


def find_sound(file: BinaryIO, length: int) -> WaveLayout:
    """The sound in an open WAVE file of `length` bytes, of any encoding. Only this function decides its length.

    Reads the headers of chunks, and the bytes after the sound up to the first that is not 0.
    UnusableSound: UNREADABLE if a chunk before the sound, or the sound, is beyond the end of the file.
    """
    file.seek(0)
    start = file.read(12)
    order = ">" if start[:4] == b"RIFX" else "<"
    riff_size = struct.unpack_from(f"{order}I", start, 4)[0]
    long_data: int | None = None
    fmt_content, assumed = b"", ""
    position = 12
    for _ in range(_MAX_CHUNKS):
        file.seek(position)
        head = file.read(8)
        if len(head) < 8:
            raise _unreadable("the file ends before its sound (no `data` chunk)")
        name, size = head[:4], struct.unpack_from(f"{order}I", head, 4)[0]
        position += 8
        if name == b"data":
            if size == length - position < _UNKNOWN_32:  # nearly every file
                return WaveLayout(fmt_content, position, size, assumed, order)
            sizes = _Sizes(size, long_data, riff_size, position, length)
            size, assumed = _sound_size(file, sizes, _min_trailing_bytes(fmt_content, order), order, assumed)
            return WaveLayout(fmt_content, position, size, assumed, order)
        if name == b"fmt ":
            fmt_content = file.read(min(size, _MAX_FMT_BYTES))
            if size < 16 or len(fmt_content) < 16:
                raise _unreadable(f"the `fmt ` chunk has {min(size, len(fmt_content))} bytes; it needs at least 16")
        if name == b"ds64" and start[:4] in (b"RF64", b"BW64"):
            ds64 = file.read(16)
            if len(ds64) < 16 or size < 16:
                raise _unreadable("the `ds64` chunk is truncated")
            long_data = struct.unpack_from("<Q", ds64, 8)[0]
        position += size
        if position > length:
            raise _unreadable(f"the chunk {name.decode('latin-1')!r} declares {size} bytes, beyond the end of the file")
        if size % 2:
            file.seek(position)
            if file.read(4) in _CHUNK_NAMES:
                assumed = f"the chunk {name.decode('latin-1')!r} of {size} bytes has no padding"
            else:
                position += 1
    raise _unreadable(f"no `data` chunk among the first {_MAX_CHUNKS} chunks")


@frozen
class _Sizes:
    """The sizes in a header and of its file, in bytes.

    - data, riff: sizes of the `data` and RIFF chunks.
    - long_data: size of the sound in a `ds64` chunk; None without.
    - offset: where the sound begins.
    - length: size of the file.
    """

    data: int
    long_data: int | None
    riff: int
    offset: int
    length: int

    @property
    def declared(self) -> int:
        """The declared length of the sound."""
        return self.data if self.data != _UNKNOWN_32 or self.long_data is None else self.long_data

    @property
    def available(self) -> int:
        """Number of bytes in the file from the beginning of its sound."""
        return self.length - self.offset

    @property
    def is_unknown(self) -> bool:
        """Whether the header names no length."""
        if self.data == _UNKNOWN_32 and self.long_data is not None:
            return self.long_data in (0, 0xFFFFFFFFFFFFFFFF)
        if self.data:
            return self.data > self.available and _is_streamed(self.data)
        # A length of 0 is meant if the RIFF chunk continues after it. Otherwise it was never filled in.
        return self.riff == 0 or _is_streamed(self.riff) or self.riff + 8 <= self.offset

    @property
    def is_too_big(self) -> bool:
        """Whether the length counts parts of the header as sound."""
        return self.declared - self.available in (*_WRONG_EXCESSES, self.offset, self.offset - 8)


def _sound_size(file: BinaryIO, sizes: _Sizes, min_trailing_bytes: float, order: str, assumed: str) -> tuple[int, str]:
    """Length of the sound in bytes, and what was assumed. Raises UnusableSound if the file is truncated.

    - assumed: what was assumed about chunks before the sound.
    - min_trailing_bytes: fewer bytes after the declared end do not count as sound.
    - order: byte order of the header, as in `struct`.
    """
    notes = [assumed] if assumed else []
    size, available = sizes.declared, sizes.available
    if size == available:
        return size, "; ".join(notes)
    if sizes.is_unknown:
        return available, "; ".join([*notes, "the header declares no length, so all that follows is read as sound"])
    if size > available:
        if not sizes.is_too_big:
            raise truncated_error(size, available)
        note = f"the header declares {size} bytes of sound, but the file ends after {available}, which are read"
        return available, "; ".join([*notes, note])
    file.seek(sizes.offset + size)
    trailing = available - size
    next_bytes = file.read(12)
    if trailing < min_trailing_bytes or _is_chunk(next_bytes, trailing, order) or next_bytes.startswith(_TAGS):
        if trailing >= min_trailing_bytes and (next_bytes[:4] == b"data" or is_wave(next_bytes)):
            kind = "another WAVE file" if is_wave(next_bytes) else "a second `data` chunk"
            notes.append(f"{kind} of {trailing} bytes follows the sound and is not read")
        return size, "; ".join(notes)
    if _has_only_zeros(file, sizes.offset + size):
        return size, "; ".join(notes)
    note = f"the header declares {size} of {available} bytes of sound; the rest is read as well"
    return available, "; ".join([*notes, note])


def _min_trailing_bytes(fmt_content: bytes, order: str) -> float:
    """The least number of bytes after the declared end that may count as sound.

    fmt_content: content of the `fmt ` chunk.
    """
    if not fmt_content:
        return 0
    bytes_per_s: int = struct.unpack_from(f"{order}I", fmt_content, 8)[0]
    return _MIN_TRAILING_S * (bytes_per_s or _USUAL_BYTES_PER_S)


def _is_streamed(size: int) -> bool:
    """Whether a program that does not know the length has written this size."""
    return any(size in sizes for sizes in _STREAMED_SIZES)


def _is_chunk(start: bytes, length: int, order: str) -> bool:
    """Whether bytes begin with the header of a chunk that fits into their length, or that has a known name.

    The padding byte of the previous chunk may come first.
    """
    for offset in (0, 1):
        name, size = start[offset : offset + 4], start[offset + 4 : offset + 8]
        if name in _CHUNK_NAMES:
            return True
        if len(size) == 4 and name.isascii() and name.decode().isprintable():
            return bool(struct.unpack(f"{order}I", size)[0] + 8 + offset <= length)
    return False


def _has_only_zeros(file: BinaryIO, offset: int) -> bool:
    """Whether only zeros follow, because a program had reserved space."""
    file.seek(offset)
    while piece := file.read(_PIECE_BYTES):
        if piece.strip(b"\0"):
            return False
    return True


def _pcm_format(content: bytes) -> tuple[int, int]:
    """Rate and channels, from the content of the `fmt ` chunk."""
    format_tag, channels, rate_hz, _, block_bytes, bits = struct.unpack_from("<HHIIHH", content)
    if format_tag == _EXTENSIBLE:
        if len(content) < 40:
            raise _unreadable("the `fmt ` chunk is too short for WAVE_FORMAT_EXTENSIBLE")
        (format_tag,) = struct.unpack_from("<H", content, 24)
        if content[26:40] != _GUID_TAIL:
            raise UnusableSound(RejectReason.ENCODING, f"sub-format {content[24:40].hex()}; it must be 16-bit PCM")
        (valid_bits,) = struct.unpack_from("<H", content, 18)
        if format_tag == _PCM and bits == 16 and valid_bits not in (0, 16):
            raise UnusableSound(RejectReason.ENCODING, f"only {valid_bits} of 16 bits are used; all must be")
    if format_tag != _PCM:
        name = _FORMATS.get(format_tag, f"format 0x{format_tag:04x}")
        raise UnusableSound(RejectReason.ENCODING, f"{name}, {bits} bits; it must be 16-bit PCM")
    if not channels or not rate_hz:
        raise _unreadable(f"the header declares {channels} channels and {rate_hz} Hz")
    if bits != 16:
        raise UnusableSound(RejectReason.ENCODING, f"{bits}-bit PCM; it must be 16-bit PCM")
    if block_bytes != 2 * channels:
        raise _unreadable(f"the header declares {block_bytes} bytes for {channels} samples of 16 bits")
    return rate_hz, channels


def truncated_error(declared: int, actual: int, unit: str = "bytes of sound") -> UnusableSound:
    """The rejection of a file with less sound than its header declares."""
    return _unreadable(f"truncated: the header declares {declared} {unit}, but the file has {actual}")


def read_error(error: OSError) -> UnusableSound:
    """The rejection of a file that the system cannot read, with the system's message."""
    return UnusableSound(RejectReason.UNREADABLE, error.strerror or str(error) or type(error).__name__)


def state_of(file: BinaryIO) -> tuple[int, int] | None:
    """Size and modification time, which show a write to the file; None in memory or in a store."""
    if isinstance(file, io.BytesIO):  # as most files are, and an exception takes longer
        return None
    try:
        status = os.fstat(file.fileno())
    except io.UnsupportedOperation:
        return None
    return status.st_size, status.st_mtime_ns


def _unreadable(detail: str) -> UnusableSound:
    return UnusableSound(RejectReason.UNREADABLE, detail)


class PlainWave:
    """A WAVE file with a new header that names the right length, for readers that rely on the header."""

    def __init__(self, file: BinaryIO, layout: WaveLayout) -> None:
        padded_fmt = layout.fmt_content + b"\0" * (len(layout.fmt_content) % 2)
        # A size that needs more than 32 bits is one that readers take for unknown: they read to the end.
        fmt_size, data_size, riff_size = (
            struct.pack(f"{layout.order}I", min(size, _UNKNOWN_32))
            for size in (len(layout.fmt_content), layout.size, len(padded_fmt) + layout.size + 20)
        )
        body = b"WAVEfmt " + fmt_size + padded_fmt + b"data" + data_size
        self._file, self._offset = file, layout.offset
        self._head = (b"RIFX" if layout.order == ">" else b"RIFF") + riff_size + body
        self._length = len(self._head) + layout.size
        self._position = 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        origins = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}
        self._position = max(0, offset + origins[whence])
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytes:
        end = self._length if size < 0 else min(self._length, self._position + size)
        content = self._head[self._position : end]
        if end > (start := self._position + len(content)):
            self._file.seek(self._offset + start - len(self._head))
            content += self._file.read(end - start)
        self._position += len(content)
        return content


MARK_BYTES = 16  # Of the longest mark, that of W64.
_MAX_HEAD_BYTES = 4096
_MAX_PAGE_BYTES = 65_307
"""The longest page of an Ogg stream."""
_NO_SIZE = 0xFFFFFFFF  # What AU files declare if their length is unknown.
_STREAMED_FORM = 0x7F000000
"""SoX declares a FORM chunk of at least this size if it does not know the length of an AIFF file."""

_DECODED_MARKS = (b"fLaC", b"FORM", b".snd", b"dns.", b"caff", b"NIST_1A", b"ID3")
"""FLAC, AIFF, AU in both byte orders, CAF, SPHERE. A FLAC file may begin with an ID3 tag, as MP3 files do."""
_W64_MARK = bytes.fromhex("726966662e91cf11a5d628db04c10000")
_UNSUPPORTED_MARKS = {
    b"OggS": "Ogg",
    b"\x1a\x45\xdf\xa3": "Matroska or WebM",
    b"\x30\x26\xb2\x75": "Windows Media",
    b"#!AMR": "AMR",
    b"wvpk": "WavPack",
    b"MAC ": "Monkey's Audio",
}


def is_wave_file(start: bytes) -> bool:
    """True for WAVE, which this module reads; False for a file that libsndfile reads.

    Raises UnusableSound for all others: ENCODING if the format is known, UNREADABLE if not.
    """
    if is_wave(start):
        return True
    if start.startswith(_DECODED_MARKS) or start == _W64_MARK:
        return False
    other = next((name for mark, name in _UNSUPPORTED_MARKS.items() if start.startswith(mark)), None)
    if start[4:8] == b"ftyp":
        other = "MPEG-4"
    elif _is_mpeg_layer_3(start):
        other = "MP3"
    if other is not None:
        raise UnusableSound(RejectReason.ENCODING, f"{other}; it must be 16-bit PCM")
    raise UnusableSound(RejectReason.UNREADABLE, "not a supported sound file")


def check_whole(file: BinaryIO, length: int) -> WaveLayout | None:
    """The sound of a WAVE file, None for other formats.

    Raises UnusableSound if an open file of `length` bytes is truncated, or has sound that its header does not declare.

    For other formats, decoding shows it. libsndfile accepts a truncated file as complete.

    Sources, beside those of this module:

    - AIFF 1.3 (FORM)
    - Sun's .au header
    - Sony's Wave64 (sizes include their own header)
    - Apple's CAF 1.0 (chunk sizes of 64 bits, -1 for unknown data)
    - NIST SPHERE (header.doc)
    - RFC 3533, 6 (the last page of an Ogg stream has a flag)
    - RFC 9639, 8.2 and 9 (STREAMINFO and the frames of FLAC)
    """
    file.seek(0)
    start = file.read(_MAX_HEAD_BYTES)
    declared_bytes = 0
    if is_wave(start):
        return find_sound(file, length)
    if start[:4] == b"FORM" and len(start) >= 12:
        declared_bytes = 8 + int.from_bytes(start[4:8], "big")
    elif start[:4] in (b".snd", b"dns.") and len(start) >= 24:
        order: Literal["big", "little"] = "big" if start[:4] == b".snd" else "little"
        offset, size = (int.from_bytes(start[position : position + 4], order) for position in (4, 8))
        declared_bytes = 0 if size == _NO_SIZE else offset + size
    elif start.startswith(_W64_MARK) and len(start) >= 24:
        declared_bytes = int.from_bytes(start[16:24], "little")
    elif start[:4] == b"caff":
        declared_bytes = _caf_bytes(file, length)
    elif start.startswith(b"NIST_1A"):
        declared_bytes = _sphere_bytes(start)
    elif start.startswith(b"fLaC") and (frame := _flac_frame_after_end(file, start, length)) is not None:
        problem = f"the header declares {_flac_samples(start)} samples, but another frame begins at sample {frame}"
        raise _unreadable(f"{problem}: sound after the declared end would be lost")
    elif start.startswith(b"OggS") and not _has_last_ogg_page(file, length):
        raise UnusableSound(RejectReason.UNREADABLE, "truncated: the last page of its Ogg stream is missing")
    if declared_bytes > length and not (start[:4] == b"FORM" and declared_bytes >= _STREAMED_FORM):
        raise truncated_error(declared_bytes, length, "bytes")
    # Other chunks may follow the sound of a CAF file.
    is_short = 0 < declared_bytes < length - _MIN_TRAILING_S * _USUAL_BYTES_PER_S and start[:4] != b"caff"
    if is_short and not _is_tag_or_zeros(file, declared_bytes):
        raise _unreadable(
            f"the header declares {declared_bytes} of {length} bytes: sound after the declared end would be lost"
        )
    return None


def _is_tag_or_zeros(file: BinaryIO, offset: int) -> bool:
    """Whether the bytes after the declared end of a file are a tag, or only zeros."""
    file.seek(offset)
    return file.read(12).startswith(_TAGS) or _has_only_zeros(file, offset)


def _caf_bytes(file: BinaryIO, length: int) -> int:
    """End of the `data` chunk of a CAF file; 0 without its size, or if it is not among the first _MAX_CHUNKS.

    The end of the last chunk, if the file has no `data` chunk at all.
    """
    position = 8
    for _ in range(_MAX_CHUNKS):
        if position >= length:
            return position
        file.seek(position)
        head = file.read(12)
        size = int.from_bytes(head[4:], "big", signed=True)
        if len(head) < 12 or size < 0:
            return 0
        position += 12 + size
        if head[:4] == b"data":
            return position
    return 0


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


def _flac_samples(start: bytes) -> int:
    """The number of samples that the header of a FLAC file declares; 0 if it declares none."""
    return int.from_bytes(start[18:26], "big") & ((1 << 36) - 1)  # The number of samples has 36 bits in STREAMINFO.


def _flac_frame_after_end(file: BinaryIO, start: bytes, length: int) -> int | None:
    """First sample of the last frame of a FLAC file if that is after the samples that its header declares.

    None if it is not, if the header declares no length, or if the file does not end with a frame.
    """
    samples, block = _flac_samples(start), int.from_bytes(start[8:10], "big")
    if len(start) < 26 or not samples:
        return None
    file.seek(max(0, length - _MAX_FRAME_BYTES))
    tail = file.read(_MAX_FRAME_BYTES)
    position = len(tail)
    while (position := max(tail.rfind(sync, 0, position) for sync in _FLAC_SYNCS)) >= 0:
        number = _flac_number(tail[position : position + 17])
        if number is None:
            continue
        first = number if tail[position + 1] & 1 else number * block
        if first < samples:
            return None
        if not _crc(tail[position:], 0x8005, 16):  # The checksum at the end of a frame (RFC 9639).
            return first
    return None


_FLAC_SYNCS = (b"\xff\xf8", b"\xff\xf9")
_MAX_FRAME_BYTES = 1 << 16


def _flac_number(head: bytes) -> int | None:
    """The coded number of the frame or sample in the head of a frame; None if the bytes are not one."""
    if len(head) < 17 or head[3] & 1:
        return None
    ones = 8 - (~head[4] & 0xFF).bit_length()
    if ones in (1, 8):
        return None
    number_bytes = max(1, ones)
    number = head[4] & (0x7F >> ones)
    for byte in head[5 : 4 + number_bytes]:
        number = number << 6 | byte & 0x3F
    extra_bytes = {6: 1, 7: 2}.get(head[2] >> 4, 0) + {12: 1, 13: 2, 14: 2}.get(head[2] & 15, 0)
    return None if _crc(head[: 4 + number_bytes + extra_bytes + 1], 0x07, 8) else number


def _crc(content: bytes, polynomial: int, bits: int) -> int:
    """The checksum of bytes; 0 if they end with their own checksum."""
    crc, top, mask = 0, 1 << (bits - 1), (1 << bits) - 1
    for byte in content:
        crc ^= byte << (bits - 8)
        for _ in range(8):
            crc = (crc << 1 ^ polynomial if crc & top else crc << 1) & mask
    return crc


def _has_last_ogg_page(file: BinaryIO, length: int) -> bool:
    """Whether the last page exists and is marked as the last."""
    file.seek(max(0, length - _MAX_PAGE_BYTES))
    tail = file.read(_MAX_PAGE_BYTES)
    position = tail.rfind(b"OggS")
    if position < 0 or len(tail) < position + 27:
        return False
    lengths = tail[position + 27 : position + 27 + tail[position + 26]]
    return bool(tail[position + 5] & 4) and len(tail) >= position + 27 + tail[position + 26] + sum(lengths)


def _is_mpeg_layer_3(start: bytes) -> bool:
    """Whether bytes begin with an MP3 frame: sync word, valid version, layer III (ISO/IEC 11172-3, 2.4.1.3)."""
    return len(start) > 1 and start[0] == 0xFF and start[1] & 0xE6 == 0xE2 and start[1] & 0x18 != 0x08
