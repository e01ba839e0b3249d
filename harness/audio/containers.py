"""What a sound file is, by the bytes that it begins with.

libsndfile is given only what it is known to read without loss: it tries some thirty forms on whatever it is given, and
some of their readers print to standard output.
"""

from __future__ import annotations

from harness.audio.wave_file import UnusableSound, is_wave
from harness.model.offline import RejectReason

MARK_BYTES = 16

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


def _is_mpeg_layer_3(start: bytes) -> bool:
    """A frame's sync word, a version that exists, layer III (ISO/IEC 11172-3, 2.4.1.3)."""
    return len(start) > 1 and start[0] == 0xFF and start[1] & 0xE6 == 0xE2 and start[1] & 0x18 != 0x08
