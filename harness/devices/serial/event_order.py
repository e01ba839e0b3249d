"""The numbers of a board's events: in their order, each once (docs/framing.md, Frame)."""

from __future__ import annotations

import zlib
from enum import Enum, auto

from harness.devices.wire.frames import Frame

KEPT_BY_BOARD = 32
_REMEMBERED = 8 * KEPT_BY_BOARD
"""How far ahead an event may be: one that is lost again and again stays on the board while others get through."""
GAP_LIMIT_S = 2.0


class Heard(Enum):
    """What to do with an event's frame: acknowledge it; leave it, for it will come again; ask who is speaking."""

    TAKEN = auto()
    LEFT = auto()
    STRANGE = auto()


class EventOrder:
    """Of one boot. Nothing is taken before it is known which events are of before."""

    def __init__(self) -> None:
        self.expected: int | None = None
        self.repeated = self.missing = 0
        self._waiting: dict[int, Frame] = {}
        self._waiting_since_s: float | None = None
        self._told: dict[int, int] = {}

    def start(self, last: int) -> None:
        """Events up to `last` are of before: they are acknowledged, and not told."""
        self.expected = last + 1
        self._waiting.clear()
        self._told.clear()
        self._waiting_since_s = None

    def resume(self, last: int) -> int:
        """The board's last event is known: those that it has not kept will not come; how many."""
        assert self.expected is not None
        gone = last - KEPT_BY_BOARD + 1 - self.expected
        if gone <= 0:
            return 0
        self.expected += gone
        self.missing += gone
        self._waiting = {number: frame for number, frame in self._waiting.items() if number >= self.expected}
        return gone

    def up_to(self, number: int) -> bool:
        """Whether all events up to that one were told."""
        return self.expected is not None and self.expected > number

    def offer(self, frame: Frame, now_s: float) -> Heard:
        """Takes an event's frame; `due` then gives what can be told."""
        if self.expected is None:
            return Heard.LEFT
        if frame.seq < self.expected:
            before = self._told.get(frame.seq)
            if before is not None and before != zlib.crc32(frame.payload):
                return Heard.STRANGE
            self.repeated += 1
            return Heard.TAKEN
        if frame.seq >= self.expected + _REMEMBERED:
            return Heard.STRANGE
        if frame.seq in self._waiting:
            self.repeated += 1
        self._waiting[frame.seq] = frame
        if self._waiting_since_s is None:
            self._waiting_since_s = now_s
        return Heard.TAKEN

    def due(self) -> list[Frame]:
        """Events whose turn has come."""
        ready: list[Frame] = []
        while self.expected is not None and (frame := self._waiting.pop(self.expected, None)) is not None:
            ready.append(frame)
            self._told[self.expected] = zlib.crc32(frame.payload)
            self.expected += 1
        while len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
        if not self._waiting:
            self._waiting_since_s = None
        return ready

    def skip(self, now_s: float) -> int:
        """Gives up what has not come for 2 s (the board keeps 32 events only); how many there were."""
        if self.expected is None or self._waiting_since_s is None or now_s - self._waiting_since_s < GAP_LIMIT_S:
            return 0
        first = min(self._waiting)
        gone = first - self.expected
        self.expected = first
        self.missing += gone
        self._waiting_since_s = now_s
        return gone
