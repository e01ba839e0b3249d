"""Wyoming's events in a byte stream: a header line of JSON, then its data, then its payload.

Source: wyoming 1.10.2, event.py: `data_length` bytes of JSON are merged into `data`; `payload_length` bytes (sound)
follow. Lines that are no such header (a satellite's log, events of before the split) are left as they are.
"""

from __future__ import annotations

import json

from harness.devices.wire.binary_frames import Segment

STALE_S = 2.0
"""An event that has not come whole after so long a silence was cut off (a new connection begins with a header)."""
_NEWLINE = b"\n"


class WyomingEvents:
    """Finds events in a stream that comes in pieces; of an event at most `max_bytes` are held, of a payload none.

    broken: events that were cut off, or whose data are no JSON object.
    """

    def __init__(self, max_bytes: int) -> None:
        self.broken = 0
        self._max_bytes = max_bytes
        self._held = bytearray()
        self._header: dict[str, object] | None = None
        self._data_bytes = 0
        self._skip = 0
        self._in_line = False
        self._last_s: float | None = None

    def feed(self, data: bytes, at_s: float) -> list[Segment]:
        """Segments that are complete by now: events as one line of JSON (`is_frame`), all else as it came."""
        found: list[Segment] = []
        if self._last_s is not None and at_s - self._last_s > STALE_S and (self._header is not None or self._skip):
            self.broken += 1
            self._header, self._skip = None, 0
            self._held.clear()
        if data:
            self._last_s = at_s
        self._held += data
        while self._held and self._step(found):
            pass
        return found

    def _step(self, found: list[Segment]) -> bool:
        """Takes one more thing off what is held; False when it needs more bytes."""
        if self._skip:
            taken = min(self._skip, len(self._held))
            del self._held[:taken]
            self._skip -= taken
            return True
        if self._header is not None:
            return self._take_data(self._header, found)
        end = self._held.find(_NEWLINE) + 1
        if not end and self._held[:1] == b"{" and not self._in_line and len(self._held) <= self._max_bytes:
            return False
        line = bytes(self._held[:end] if end else self._held)
        del self._held[: len(line)]
        header = None if self._in_line or not end else _header(line)
        self._in_line = not end
        if header is None:
            found.append(Segment(line, False))
            return True
        self._data_bytes, self._skip = _size(header, "data_length"), 0
        if not self._data_bytes:
            self._tell(header, {}, found)
        elif self._data_bytes > self._max_bytes:
            # Let the console say that it was too long: what it was is not known without its data.
            found.append(Segment(line.rstrip() + b" " * self._max_bytes + _NEWLINE, False))
            self._skip = self._data_bytes + _size(header, "payload_length")
        else:
            self._header = header
        return True

    def _take_data(self, header: dict[str, object], found: list[Segment]) -> bool:
        if len(self._held) < self._data_bytes:
            return False
        try:
            data = json.loads(bytes(self._held[: self._data_bytes]))
        except (ValueError, RecursionError):
            data = None
        self._header = None
        if not isinstance(data, dict):
            # The bytes may hold the next header: they are looked at again, as lines.
            self.broken += 1
            return True
        del self._held[: self._data_bytes]
        self._tell(header, data, found)
        return True

    def _tell(self, header: dict[str, object], data: dict[str, object], found: list[Segment]) -> None:
        given = header.get("data")
        event = {"type": header["type"], "data": {**(given if isinstance(given, dict) else {}), **data}}
        found.append(Segment(json.dumps(event, ensure_ascii=False).encode(), True))
        self._skip = _size(header, "payload_length")


def _header(line: bytes) -> dict[str, object] | None:
    """A header that says what follows it; None for any other line."""
    if not line.startswith(b"{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        return None
    return found


def _size(header: dict[str, object], name: str) -> int:
    size = header.get(name)
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else 0
