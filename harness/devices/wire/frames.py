"""Frames on a byte stream that also carries log lines (docs/reference/framing.md, Frame).

    00 | COBS( type u8 · seq u32 · payload · crc32 u32 ) | 00

COBS (Cheshire and Baker, 1999) removes the zero bytes of a body, so that 00 only delimits. A code stands before each
run of at most 254 other bytes: the length of the run, plus 1. After a run follows a zero byte, unless the code is 255
or the body ends. What lies between two zero bytes and is not a valid body is console text. The decoder passes on such
text at once, as soon as its first bytes cannot begin a frame.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum

from harness.model.frozen import frozen

MAX_PAYLOAD_BYTES = 1024  # By docs/reference/framing.md: boards reserve memory for it.
_HEAD = struct.Struct("<BI")
_CRC = struct.Struct("<I")
_MIN_BODY = _HEAD.size + _CRC.size
_MAX_BODY = _MIN_BODY + MAX_PAYLOAD_BYTES
MAX_SEGMENT_BYTES = _MAX_BODY + 1 + _MAX_BODY // 254
"""The longest body with its codes: one at the front, and one more for each whole run."""
_MAX_RUN = 254  # Of COBS, whose codes of one byte name at most so many bytes.


class FrameKind(IntEnum):
    """The type byte of a frame."""

    PING = 0x01
    TEXT = 0x02
    AUDIO = 0x03
    SET = 0x04
    RESET = 0x05
    HELLO_REQUEST = 0x06
    EVENT_ACK = 0x07
    HELLO = 0x81
    PONG = 0x82
    AUDIO_ACK = 0x83
    WAKE = 0x84
    COMMAND_ACK = 0x85
    TRANSCRIPT = 0x86
    INTENT = 0x87
    RESPONSE = 0x88
    STATUS = 0x89
    LOG = 0x8A
    ERROR = 0x8B


_KINDS = {kind.value: kind for kind in FrameKind}
_CODES = [bytes([code]) for code in range(256)]


@frozen
class WireFrame:
    """A frame with a correct checksum."""

    kind: FrameKind
    seq: int
    payload: bytes


def encode(kind: int, payload: bytes, seq: int = 0) -> bytes:
    """A frame with its delimiters.

    Raises ValueError when the payload is too long. kind: a FrameKind, or any byte in tests.
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"a frame carries at most {MAX_PAYLOAD_BYTES} bytes, not {len(payload)}")
    body = _HEAD.pack(kind, seq) + payload
    body += _CRC.pack(zlib.crc32(body))
    coded = [b"\0"]
    for run in body.split(b"\0"):
        start = 0
        while len(run) - start >= _MAX_RUN:
            coded += (b"\xff", run[start : start + _MAX_RUN])
            start += _MAX_RUN
        coded += (_CODES[len(run) - start + 1], run[start:])
    coded.append(b"\0")
    return b"".join(coded)


def decode(segment: bytes) -> WireFrame | None:
    """The frame coded between two zero bytes; None when these bytes are not a frame."""
    body = _decode_cobs(segment)
    if body is None or not _MIN_BODY <= len(body) <= _MAX_BODY:
        return None
    if _CRC.unpack_from(body, len(body) - _CRC.size)[0] != zlib.crc32(body[: -_CRC.size]):
        return None
    type_byte, seq = _HEAD.unpack_from(body)
    kind = _KINDS.get(type_byte)
    return None if kind is None else WireFrame(kind, seq, body[_HEAD.size : -_CRC.size])


def _decode_cobs(segment: bytes) -> bytes | None:
    """The body, with its zero bytes; None for inconsistent runs."""
    start, size = 0, len(segment)
    runs: list[bytes] = []
    while start < size:
        code = segment[start]
        end = start + code
        if end > size:
            return None
        runs.append(segment[start + 1 : end])
        if code != 255 and end < size:
            runs.append(b"\0")
        start = end
    return b"".join(runs)


class Decoder:
    """Separates frames from console bytes, in order; memory is bounded by one frame.

    Bytes that cannot be a frame pass at once, so that a log line need not wait for the next frame.
    """

    def __init__(self) -> None:
        self._buffer = b""
        self._in_text = False  # bytes up to the next zero byte are not a frame

    @property
    def held_bytes(self) -> int:
        """Number of bytes held that may become a frame."""
        return len(self._buffer)

    def feed(self, received: bytes) -> list[WireFrame | bytes]:
        """Frames, and runs of console bytes between them."""
        pieces: list[WireFrame | bytes] = []
        *segments, unfinished = received.split(b"\0")
        for segment in segments:
            if self._in_text:
                self._in_text = False
                self._append_text(pieces, segment)
                continue
            if self._buffer:
                segment, self._buffer = self._buffer + segment, b""
            if not segment:
                continue
            frame = decode(segment) if len(segment) <= MAX_SEGMENT_BYTES else None
            if frame is not None:
                pieces.append(frame)
                continue
            self._append_text(pieces, segment)
        if self._in_text:
            self._append_text(pieces, unfinished)
        elif unfinished:
            self._buffer += unfinished
            if not _may_be_frame(self._buffer) or len(self._buffer) > MAX_SEGMENT_BYTES:
                self._append_text(pieces, self.release())
        return pieces

    def release(self) -> bytes:
        """The bytes held for a frame, which are console text after all, as a time without data shows."""
        held, self._buffer = self._buffer, b""
        if held:
            self._in_text = True
        return held

    @staticmethod
    def _append_text(pieces: list[WireFrame | bytes], text: bytes) -> None:
        """Adds console bytes to the last piece, unless that is a frame or long enough."""
        if not text:
            return
        last = pieces[-1] if pieces else None
        if isinstance(last, bytes) and len(last) < MAX_SEGMENT_BYTES:
            pieces[-1] = last + text
        else:
            pieces.append(text)


def _may_be_frame(segment: bytes) -> bool:
    """Whether bytes may be the start of a frame: not if their type byte is there and invalid.

    The type byte is in the first run, since no type is 0.
    """
    return segment[0] > 1 and (len(segment) < 2 or segment[1] in _KINDS)
