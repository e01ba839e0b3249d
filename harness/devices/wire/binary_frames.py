"""Binary messages in a byte stream, as a device profile describes them; what is none of them is left as text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import xor

from harness.model.bench import BinaryFrames, Checksum

_CHECKSUM_BYTES = {Checksum.NONE: 0, Checksum.SUM8: 1, Checksum.SUM16: 2, Checksum.XOR8: 1}
WAIT_S = 0.5  # a frame that has not come whole by then is none


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the stream: the body of a whole frame, or bytes that belong to none."""

    data: bytes
    is_frame: bool


class FrameFinder:
    """Finds frames in a stream that comes in pieces; keeps at most one frame's bytes."""

    def __init__(self, frames: BinaryFrames) -> None:
        self._frames = frames
        self._held = bytearray()
        self._held_since_s = 0.0
        self.broken = 0
        """Heads that no frame followed: wrong length, checksum or tail."""

    def feed(self, data: bytes, at_s: float) -> list[Segment]:
        """The segments that are complete by now; at_s is the arrival, for frames that never come whole."""
        found: list[Segment] = []
        if self._held and at_s - self._held_since_s > WAIT_S:
            self.broken += 1
            self._text(found, bytes(self._held[:1]))
            del self._held[:1]
        if not self._held:
            self._held_since_s = at_s
        self._held += data
        position = 0
        head = self._frames.head
        stream = bytes(self._held)
        while position < len(stream):
            start = stream.find(head, position)
            if start < 0:
                start = _partial_head(stream, head, position)
                self._text(found, stream[position:start])
                position = start
                break
            self._text(found, stream[position:start])
            position = start
            size = self._size(stream[start:])
            if size is None or (size and start + size > len(stream)):
                break
            body = self._body(stream[start : start + size]) if size else None
            if body is None:
                self.broken += 1
                self._text(found, stream[start : start + 1])
                position = start + 1
                continue
            found.append(Segment(body, True))
            position = start + size
        if position:
            self._held_since_s = at_s
        self._held = bytearray(stream[position:])
        return found

    def _size(self, stream: bytes) -> int | None:
        """Bytes of the frame that begins here; 0: it is none; None: its length has not come yet."""
        f = self._frames
        if len(stream) < f.length_at + f.length_size:
            return None
        size = int.from_bytes(stream[f.length_at : f.length_at + f.length_size], "little") + f.length_plus
        least = f.body_from + _CHECKSUM_BYTES[f.checksum] + len(f.tail)
        return size if least <= size <= f.max_bytes else 0

    def _body(self, frame: bytes) -> bytes | None:
        f = self._frames
        if not frame.endswith(f.tail):
            return None
        end = len(frame) - len(f.tail) - _CHECKSUM_BYTES[f.checksum]
        given = int.from_bytes(frame[end : len(frame) - len(f.tail)], "little")
        return frame[f.body_from : end] if checksum(f.checksum, frame[f.checksum_from : end]) == given else None

    @staticmethod
    def _text(found: list[Segment], data: bytes) -> None:
        if not data:
            return
        if found and not found[-1].is_frame:
            found[-1] = Segment(found[-1].data + data, False)
        else:
            found.append(Segment(data, False))


def checksum(kind: Checksum, data: bytes) -> int:
    """The checksum of that kind; 0 for NONE."""
    match kind:
        case Checksum.NONE:
            return 0
        case Checksum.SUM8:
            return sum(data) & 0xFF
        case Checksum.SUM16:
            return sum(data) & 0xFFFF
        case Checksum.XOR8:
            return reduce(xor, data, 0)


def _partial_head(stream: bytes, head: bytes, position: int) -> int:
    """Where a head may have begun at the very end; the end of the stream when nowhere."""
    for size in range(min(len(head) - 1, len(stream) - position), 0, -1):
        if stream.endswith(head[:size]):
            return len(stream) - size
    return len(stream)
