"""Messages in a byte stream: binary frames that a profile describes, and Wyoming's events; the rest is text.

Wyoming is a header line of JSON, then its data, then its payload. Source: wyoming 1.10.2, event.py: `data_length` bytes
of JSON are merged into `data`; `payload_length` bytes (sound) follow. Lines that are not such a header (a satellite's
log, events of earlier versions) are left as they are.
"""

from __future__ import annotations

import json
from functools import reduce
from operator import xor

from harness.base.plain_json import is_integer
from harness.model.bench import BinaryFrames, Checksum
from harness.model.frozen import frozen

_CHECKSUM_BYTES = {Checksum.NONE: 0, Checksum.SUM8: 1, Checksum.SUM16: 2, Checksum.XOR8: 1}
WAIT_S = 0.5  # a frame that is incomplete by then is not a frame


@frozen
class StreamSegment:
    """A segment of the stream: the body of a frame, or bytes outside frames. is_payload: of a Wyoming event."""

    data: bytes
    is_frame: bool
    is_payload: bool = False


class FrameFinder:
    """Finds frames in a stream; keeps at most the bytes of one frame."""

    def __init__(self, frames: BinaryFrames) -> None:
        self._frames = frames
        self._buffer = bytearray()
        self._held_since_s = 0.0
        self.broken = 0
        """Heads without a valid frame: wrong length, checksum or tail."""

    def feed(self, data: bytes, at_s: float) -> list[StreamSegment]:
        """The segments that are complete. at_s: arrival, to time out incomplete frames."""
        segments: list[StreamSegment] = []
        if self._buffer and at_s - self._held_since_s > WAIT_S:
            # Only the first byte is given up, since another frame may begin within the rest.
            self.broken += 1
            self._text(segments, bytes(self._buffer[:1]))
            del self._buffer[:1]
        if not self._buffer:
            self._held_since_s = at_s
        self._buffer += data
        position = 0
        head = self._frames.head
        stream = bytes(self._buffer)
        while position < len(stream):
            start = stream.find(head, position)
            if start < 0:
                start = _partial_head(stream, head, position)
                self._text(segments, stream[position:start])
                position = start
                break
            self._text(segments, stream[position:start])
            position = start
            size = self._size(stream[start:])
            if size is None or (size and start + size > len(stream)):
                break
            body = self._body(stream[start : start + size]) if size else None
            if body is None:
                self.broken += 1
                self._text(segments, stream[start : start + 1])
                position = start + 1
                continue
            segments.append(StreamSegment(body, True))
            position = start + size
        if position:
            self._held_since_s = at_s
        self._buffer = bytearray(stream[position:])
        return segments

    def _size(self, stream: bytes) -> int | None:
        """Bytes of the frame that starts here. 0: not a frame. None: its length has not arrived."""
        f = self._frames
        if len(stream) < f.length_at + f.length_size:
            return None
        size = int.from_bytes(stream[f.length_at : f.length_at + f.length_size], "little") + f.length_plus
        least_bytes = f.body_from + _CHECKSUM_BYTES[f.checksum] + len(f.tail)
        return size if least_bytes <= size <= f.max_bytes else 0

    def _body(self, frame: bytes) -> bytes | None:
        f = self._frames
        if not frame.endswith(f.tail):
            return None
        end = len(frame) - len(f.tail) - _CHECKSUM_BYTES[f.checksum]
        sent_checksum = int.from_bytes(frame[end : len(frame) - len(f.tail)], "little")
        return frame[f.body_from : end] if checksum(f.checksum, frame[f.checksum_from : end]) == sent_checksum else None

    @staticmethod
    def _text(segments: list[StreamSegment], data: bytes) -> None:
        if not data:
            return
        if segments and not segments[-1].is_frame:
            segments[-1] = StreamSegment(segments[-1].data + data, False)
        else:
            segments.append(StreamSegment(data, False))


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
    """Where a head may start at the end of the stream; otherwise the end itself."""
    for size in range(min(len(head) - 1, len(stream) - position), 0, -1):
        if stream.endswith(head[:size]):
            return len(stream) - size
    return len(stream)


STALE_S = 2.0
"""An event still incomplete after this silence was cut off, since a new connection starts with a header."""
_NEWLINE = b"\n"


class WyomingEvents:
    """Finds events in a stream; holds at most `max_bytes` of an event, and nothing of a payload.

    payloads: whether the segments contain the payloads, each in pieces after its event.
    broken: events that were cut off, or whose data are not a JSON object.
    """

    def __init__(self, max_bytes: int, *, payloads: bool = False) -> None:
        self.broken = 0
        self._max_bytes = max_bytes
        self._payloads = payloads
        self._buffer = bytearray()
        self._header: dict[str, object] | None = None
        self._data_bytes = 0
        self._skip = 0
        self._in_line = False
        self._last_s: float | None = None

    def feed(self, data: bytes, at_s: float) -> list[StreamSegment]:
        """The segments that are complete: events as one line of JSON (`is_frame`), other bytes unchanged."""
        segments: list[StreamSegment] = []
        if self._last_s is not None and at_s - self._last_s > STALE_S and (self._header is not None or self._skip):
            self.broken += 1
            self._header, self._skip = None, 0
            self._buffer.clear()
        if data:
            self._last_s = at_s
        self._buffer += data
        while self._buffer and self._step(segments):
            pass
        return segments

    def _step(self, segments: list[StreamSegment]) -> bool:
        """Consumes one item of the held bytes; False when it needs more bytes."""
        if self._skip:
            size = min(self._skip, len(self._buffer))
            if self._payloads:
                segments.append(StreamSegment(bytes(self._buffer[:size]), False, is_payload=True))
            del self._buffer[:size]
            self._skip -= size
            return True
        if self._header is not None:
            return self._take_data(self._header, segments)
        end = self._buffer.find(_NEWLINE) + 1
        if not end and self._buffer[:1] == b"{" and not self._in_line and len(self._buffer) <= self._max_bytes:
            return False
        line = bytes(self._buffer[:end] if end else self._buffer)
        del self._buffer[: len(line)]
        header = None if self._in_line or not end else _header(line)
        self._in_line = not end
        if header is None:
            segments.append(StreamSegment(line, False))
            return True
        self._data_bytes, self._skip = _size(header, "data_length"), 0
        if not self._data_bytes:
            self._tell(header, {}, segments)
        elif self._data_bytes > self._max_bytes:
            # Let the console report a line that is too long; without its data the event is unknown.
            segments.append(StreamSegment(line.rstrip() + b" " * self._max_bytes + _NEWLINE, False))
            self._skip = self._data_bytes + _size(header, "payload_length")
        else:
            self._header = header
        return True

    def _take_data(self, header: dict[str, object], segments: list[StreamSegment]) -> bool:
        if len(self._buffer) < self._data_bytes:
            return False
        try:
            data = json.loads(bytes(self._buffer[: self._data_bytes]))
        except (ValueError, RecursionError):
            data = None
        self._header = None
        if not isinstance(data, dict):
            # The bytes may hold the next header, so they are read again as lines.
            self.broken += 1
            return True
        del self._buffer[: self._data_bytes]
        self._tell(header, data, segments)
        return True

    def _tell(self, header: dict[str, object], data: dict[str, object], segments: list[StreamSegment]) -> None:
        header_data = header.get("data")
        if isinstance(header_data, dict):
            data = {**header_data, **data}
        event = {"type": header["type"], "data": data}
        segments.append(StreamSegment(json.dumps(event, ensure_ascii=False).encode("utf-8", "replace"), True))
        self._skip = _size(header, "payload_length")


def _header(line: bytes) -> dict[str, object] | None:
    """The header in a line; None for any other line."""
    if not line.startswith(b"{"):
        return None
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(header, dict) or not isinstance(header.get("type"), str):
        return None
    return header


def _size(header: dict[str, object], name: str) -> int:
    size = header.get(name)
    return size if is_integer(size) and size > 0 else 0
