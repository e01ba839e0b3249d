"""Messages in a byte stream: binary frames that a profile describes, and Wyoming's events; the rest is text.

Wyoming is a header line of JSON, then its data, then its payload. Source: wyoming 1.10.2, event.py: `data_length` bytes
of JSON are merged into `data`; `payload_length` bytes (sound) follow. Lines that are not such a header (a satellite's
log, events of earlier versions) are left as they are.

FrameFinder looks for a head, waits for the length, then for the rest, and checks the checksum and the tail. If any of
that fails, the first byte becomes text and the search starts at the next. WyomingEvents reads header line → data →
payload, and then the next header line.
"""

from __future__ import annotations

import json
from functools import reduce
from operator import xor

from harness.base.plain_json import is_integer
from harness.model.bench import BinaryFrames, Checksum
from harness.model.frozen import frozen

_NOT_A_FRAME = 0
_CHECKSUM_BYTES = {Checksum.NONE: 0, Checksum.SUM8: 1, Checksum.SUM16: 2, Checksum.XOR8: 1}
FRAME_TIMEOUT_S = 0.5  # a frame that is incomplete by then is not a frame


@frozen
class StreamSegment:
    """The body of a frame, or bytes outside of frames.

    is_payload: whether these are part of the payload of a Wyoming event.
    """

    content: bytes
    is_frame: bool
    is_payload: bool = False


class FrameFinder:
    """Finds frames in a stream; keeps at most the bytes of one frame."""

    def __init__(self, layout: BinaryFrames) -> None:
        self._layout = layout
        self._buffer = bytearray()
        self._held_since_s = self._oldest_s = 0.0

    @property
    def oldest_s(self) -> float | None:
        """When the oldest of the held bytes may have arrived; None if none are held."""
        return self._oldest_s if self._buffer else None

    def release(self) -> bytes:
        """The bytes held for a frame, which are text after all, since no more will arrive."""
        held, self._buffer = bytes(self._buffer), bytearray()
        return held

    def feed(self, received: bytes, at_s: float) -> list[StreamSegment]:
        """The segments that are complete. at_s: arrival, to time out incomplete frames."""
        segments: list[StreamSegment] = []
        if self._buffer and at_s - self._held_since_s > FRAME_TIMEOUT_S:
            # Only the first byte is given up, since another frame may begin within the rest.
            self._append_text(segments, bytes(self._buffer[:1]))
            del self._buffer[:1]
        if not self._buffer:
            self._held_since_s = self._oldest_s = at_s
        self._buffer += received
        position = 0
        head = self._layout.head
        stream = bytes(self._buffer)
        while position < len(stream):
            start = stream.find(head, position)
            if start < 0:
                start = _partial_head(stream, head, position)
                self._append_text(segments, stream[position:start])
                position = start
                break
            self._append_text(segments, stream[position:start])
            position = start
            frame_bytes = self._frame_bytes(stream[start:])
            if frame_bytes is None:
                break  # its length has not arrived
            if frame_bytes != _NOT_A_FRAME and start + frame_bytes > len(stream):
                break  # its end has not arrived
            body = None if frame_bytes == _NOT_A_FRAME else self._body(stream[start : start + frame_bytes])
            if body is None:
                self._append_text(segments, stream[start : start + 1])
                position = start + 1
                continue
            segments.append(StreamSegment(body, is_frame=True))
            position = start + frame_bytes
            self._oldest_s = at_s  # the rest arrived with the end of the frame
        if position:  # the rest begins another candidate, which gets the full timeout
            self._held_since_s = at_s
        self._buffer = bytearray(stream[position:])
        return segments

    def _frame_bytes(self, stream: bytes) -> int | None:
        """Bytes of the frame that starts here, or _NOT_A_FRAME. None: its length has not arrived."""
        layout = self._layout
        length_end = layout.length_at + layout.length_size
        if len(stream) < length_end:
            return None
        frame_bytes = int.from_bytes(stream[layout.length_at : length_end], "little") + layout.length_plus
        min_bytes = layout.body_from + _CHECKSUM_BYTES[layout.checksum] + len(layout.tail)
        return frame_bytes if min_bytes <= frame_bytes <= layout.max_bytes else _NOT_A_FRAME

    def _body(self, frame: bytes) -> bytes | None:
        """The body of a frame; None if its tail or its checksum is wrong."""
        layout = self._layout
        if not frame.endswith(layout.tail):
            return None
        tail_start = len(frame) - len(layout.tail)
        end = tail_start - _CHECKSUM_BYTES[layout.checksum]
        sent_checksum = int.from_bytes(frame[end:tail_start], "little")
        if checksum(layout.checksum, frame[layout.checksum_from : end]) != sent_checksum:
            return None
        return frame[layout.body_from : end]

    @staticmethod
    def _append_text(segments: list[StreamSegment], content: bytes) -> None:
        if not content:
            return
        if segments and not segments[-1].is_frame:
            segments[-1] = StreamSegment(segments[-1].content + content, is_frame=False)
        else:
            segments.append(StreamSegment(content, is_frame=False))


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
    """The position at which a head may start at the end of the stream; otherwise the end itself."""
    for size in range(min(len(head) - 1, len(stream) - position), 0, -1):
        if stream.endswith(head[:size]):
            return len(stream) - size
    return len(stream)


EVENT_TIMEOUT_S = 2.0
"""An event still incomplete after this silence, in s, was cut off: a new connection starts with a header.
This holds if several connections share the stream."""
_NEWLINE = b"\n"


class WyomingEvents:
    """Finds events in a stream; holds at most `max_bytes` of an event, and nothing of a payload.

    - payloads: whether the segments contain the payloads, each in pieces after its event.
    - timeout_s: silence that cuts an event off; infinite for the stream of one connection, which may stand still within
      an event but never starts anew.
    """

    def __init__(self, max_bytes: int, *, payloads: bool = False, timeout_s: float = EVENT_TIMEOUT_S) -> None:
        self._max_bytes = max_bytes
        self._includes_payloads = payloads
        self._timeout_s = timeout_s
        self._buffer = bytearray()
        self._pending_header: dict[str, object] | None = None
        self._data_bytes = 0
        self._payload_bytes_left = 0
        self._in_text_line = False
        """Whether the bytes continue a line whose beginning was already passed on as text."""
        self._last_received_s: float | None = None

    def feed(self, received: bytes, at_s: float) -> list[StreamSegment]:
        """The segments that are complete: events as one line of JSON (`is_frame`), other bytes unchanged."""
        segments: list[StreamSegment] = []
        if (
            self._last_received_s is not None
            and at_s - self._last_received_s > self._timeout_s
            and (self._pending_header is not None or self._payload_bytes_left)
        ):
            self._pending_header, self._payload_bytes_left = None, 0
            self._buffer.clear()
        if received:
            self._last_received_s = at_s
        self._buffer += received
        while self._buffer and self._consume(segments):
            pass
        return segments

    def _consume(self, segments: list[StreamSegment]) -> bool:
        """Consumes the next part of the held bytes: a payload, the data of an event, or a line.

        Returns False when it needs more bytes.
        """
        if self._payload_bytes_left:
            size = min(self._payload_bytes_left, len(self._buffer))
            if self._includes_payloads:
                segments.append(StreamSegment(bytes(self._buffer[:size]), is_frame=False, is_payload=True))
            del self._buffer[:size]
            self._payload_bytes_left -= size
            return True
        if self._pending_header is not None:
            return self._read_data(self._pending_header, segments)
        line_bytes = self._buffer.find(_NEWLINE) + 1
        has_line = line_bytes > 0
        may_be_header = self._buffer.startswith(b"{") and not self._in_text_line
        if not has_line and may_be_header and len(self._buffer) <= self._max_bytes:
            return False  # the rest of the header has not arrived
        line = bytes(self._buffer[:line_bytes] if has_line else self._buffer)
        del self._buffer[: len(line)]
        header = _parse_header(line) if has_line and not self._in_text_line else None
        self._in_text_line = not has_line
        if header is None:
            segments.append(StreamSegment(line, is_frame=False))
            return True
        self._data_bytes, self._payload_bytes_left = _header_length(header, "data_length"), 0
        if not self._data_bytes:
            self._append_event(header, {}, segments)
        elif self._data_bytes > self._max_bytes:
            # Without its data the event is unknown. The console rejects and reports lines above max_bytes, so this line
            # is padded beyond that. The data are skipped like a payload.
            segments.append(StreamSegment(line.rstrip() + b" " * self._max_bytes + _NEWLINE, is_frame=False))
            self._payload_bytes_left = self._data_bytes + _header_length(header, "payload_length")
        else:
            self._pending_header = header
        return True

    def _read_data(self, header: dict[str, object], segments: list[StreamSegment]) -> bool:
        """Reads the data that follow a header, and adds the event. Returns False when they have not arrived."""
        if len(self._buffer) < self._data_bytes:
            return False
        try:
            event_data = json.loads(bytes(self._buffer[: self._data_bytes]))
        except (ValueError, RecursionError):
            event_data = None
        self._pending_header = None
        if not isinstance(event_data, dict):
            # The bytes may hold the next header, so they are read again as lines.
            return True
        del self._buffer[: self._data_bytes]
        self._append_event(header, event_data, segments)
        return True

    def _append_event(
        self, header: dict[str, object], event_data: dict[str, object], segments: list[StreamSegment]
    ) -> None:
        """Adds an event. Its payload is next, if it has one."""
        header_data = header.get("data")
        if isinstance(header_data, dict):
            event_data = {**header_data, **event_data}
        event = {"type": header["type"], "data": event_data}
        line = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
        segments.append(StreamSegment(line, is_frame=True))
        self._payload_bytes_left = _header_length(header, "payload_length")


def _parse_header(line: bytes) -> dict[str, object] | None:
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


def _header_length(header: dict[str, object], key: str) -> int:
    """A length in a header; 0 if it has none, or not a valid one."""
    length = header.get(key)
    return length if is_integer(length) and length > 0 else 0
