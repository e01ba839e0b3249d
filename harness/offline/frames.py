"""What goes between a run and its worker processes: a kind and a length, then that many bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import Enum

_HEAD = struct.Struct("<cI")
LARGEST = 1 << 28
BEGUN = struct.Struct("<Q")
"""In memory that a worker shares with its run: how many files it has begun."""
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Frame(Enum):
    """To a worker: EVALUATION (once, first), FILES, END_OF_SEQUENCE. From it: READY, REFUSED, OUTCOMES, TOLD."""

    EVALUATION = b"E"
    FILES = b"F"
    END_OF_SEQUENCE = b"S"
    READY = b"R"
    REFUSED = b"X"
    OUTCOMES = b"O"
    TOLD = b"T"


def framed(kind: Frame, content: bytes = b"") -> bytes:
    return _HEAD.pack(kind.value, len(content)) + content


class FrameReader:
    """Puts bytes that come in pieces together to frames. ValueError when they cannot be ours."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> Iterator[tuple[Frame, bytes]]:
        self._rest += piece
        at = 0
        while len(self._rest) - at >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._rest, at)
            if length > LARGEST:
                raise ValueError(f"a frame of {length} bytes")
            end = at + _HEAD.size + length
            if len(self._rest) < end:
                break
            frame = Frame(kind), bytes(self._rest[at + _HEAD.size : end])
            at = end
            yield frame
        del self._rest[:at]
