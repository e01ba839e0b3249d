"""What a sound file is, by the bytes that it begins with.

libsndfile is given only what it is known to read without loss: it tries some thirty forms on whatever it is given, and
some of their readers print to standard output.
"""

from __future__ import annotations

import re
from typing import BinaryIO, Literal

from harness.model.offline import RejectReason
from harness.sound.wave_file import UnusableSound, cut_off, demand_whole_wave, is_wave

MARK_BYTES = 16
_LONGEST_HEAD = 4096
_LONGEST_PAGE = 65_307
"""Of Ogg, in bytes."""
_NO_SIZE = 0xFFFFFFFF

_DECODED = (b"fLaC", b"FORM", b".snd", b"dns.", b"caff", b"NIST_1A", b"ID3")
"""FLAC, AIFF, AU in both byte orders, CAF, SPHERE; a FLAC file may have an ID3 tag ahead of it, as MP3 has."""
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
    """Whether a file is WAVE, which we read ourselves, or one for libsndfile.

    UnusableSound for all others: ENCODING where the form is known, UNREADABLE where it is not.
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
        raise UnusableSound(RejectReason.ENCODING, f"{other}; 16-bit PCM is read")
    raise UnusableSound(RejectReason.UNREADABLE, "no sound file of a kind that is known here")


def demand_whole(file: BinaryIO, length: int) -> None:
    """UnusableSound when an open file of `length` bytes has less sound than its head says, as far as a look at the head
    shows it; of the others decoding does. libsndfile takes what is there for the whole.

    Sources: as in wave_file; AIFF 1.3 (FORM); Sun's .au header; Sony's Wave64 (sizes with their own head); Apple's CAF
    1.0 (chunk sizes of 64 bits, -1 of data unknown); NIST SPHERE (header.doc); RFC 3533, 6 (the last page of an Ogg
    stream has a flag).
    """
    file.seek(0)
    start = file.read(_LONGEST_HEAD)
    said = 0
    if is_wave(start):
        demand_whole_wave(file, length)
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
        raise UnusableSound(RejectReason.UNREADABLE, "cut off: the last page of its Ogg stream is missing")
    if said > length:
        raise cut_off(said, length, "bytes")


def _caf_bytes(file: BinaryIO, length: int) -> int:
    """Where the `data` chunk of a CAF file ends; 0 where it says no size, or there is none."""
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
    """How many bytes a SPHERE file of PCM has; 0 of other codings."""
    fields = dict(re.findall(rb"^(\w+) -\S+ (\S+)$", start, re.MULTILINE))
    try:
        head = int(start[8:16])
        count, size = int(fields[b"sample_count"]), int(fields[b"sample_n_bytes"])
        channels = int(fields.get(b"channel_count", b"1"))
    except (KeyError, ValueError):
        return 0
    return head + count * size * channels if fields.get(b"sample_coding", b"pcm") == b"pcm" else 0


def _ogg_ends(file: BinaryIO, length: int) -> bool:
    """Whether the last page is there and is marked as the last one."""
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
