"""The one way of what a driver has to tell: in order, not after its end, and no flood of log lines."""

from __future__ import annotations

import threading

from harness.base.ports import Sink, Surroundings
from harness.model.observation import LinkBack, LinkLost, LogLine, Observation
from harness.model.time import Stamp

_LOG_LINES_PER_S = 50.0
_LOG_LINES_AT_ONCE = 200.0
"""In a burst, before the rate holds."""
_COUNT_EVERY_S = 10.0
"""How often a flood is told of while it lasts."""


class DriverOutlet:
    """From any thread to the sink, one at a time, under `lock`, which the parts of the driver share.

    A link is lost for several reasons at once, and back when none is left.
    Log lines beyond the rate that the profile allows (`console.log_lines_per_s`) are counted; their number is told
    every 10 s, when the flood is over, and at the end.
    """

    def __init__(self, id: str, surroundings: Surroundings) -> None:
        self._id = id
        self._now_s = surroundings.clock.now_s
        profile = surroundings.profile
        self._rate = _LOG_LINES_PER_S if profile is None else profile.console.log_lines_per_s
        self.lock = threading.RLock()
        self._sink: Sink | None = None
        self._lost: set[str] = set()
        self._told_lost = False
        self._why = ""
        self._room = _LOG_LINES_AT_ONCE
        self._room_s = 0.0
        self._left_out = 0
        self._flood_s = 0.0
        self.left_out = 0

    @property
    def linked(self) -> bool:
        return self._sink is not None and not self._lost

    def open(self, sink: Sink) -> None:
        with self.lock:
            self._sink = sink
            self._lost.clear()
            self._told_lost = False
            self._room, self._room_s, self._left_out = _LOG_LINES_AT_ONCE, self._now_s(), 0

    def close(self) -> None:
        """Returns when nobody is being told; from then on nobody is."""
        with self.lock:
            sink, self._sink = self._sink, None
            if sink is not None and self._left_out:
                self._tell_left_out(sink, self._now_s())

    def tell(self, observation: Observation) -> None:
        with self.lock:
            sink = self._sink
            if sink is None:
                return
            now_s = self._now_s()
            self._room = min(_LOG_LINES_AT_ONCE, self._room + (now_s - self._room_s) * self._rate)
            self._room_s = now_s
            over = self._room >= _LOG_LINES_AT_ONCE / 2
            if self._left_out and (over or now_s - self._flood_s >= _COUNT_EVERY_S):
                self._tell_left_out(sink, now_s)
            if isinstance(observation, LogLine):
                if self._room < 1.0:
                    if not self._left_out:
                        self._flood_s = now_s
                    self._left_out += 1
                    self.left_out += 1
                    return
                self._room -= 1.0
            sink(observation)

    def _tell_left_out(self, sink: Sink, now_s: float) -> None:
        count, self._left_out = self._left_out, 0
        sink(LogLine(self._id, Stamp(now_s), f"{count} lines were left out: more than {self._rate:g} a second"))

    def remark(self, text: str) -> None:
        """Of ours, about the link."""
        self.tell(LogLine(self._id, self._now(), text))

    def lose(self, part: str, what: str, *, named: bool = False) -> None:
        """named: a person has to do something about it, so it is told although the link is lost already."""
        with self.lock:
            news = not self._told_lost or (named and what != self._why)
            self._lost.add(part)
            self._told_lost = True
            if news:
                self._why = what
                self.tell(LinkLost(self._id, self._now(), what))

    def back(self, part: str) -> None:
        with self.lock:
            self._lost.discard(part)
            if self._told_lost and not self._lost:
                self._told_lost = False
                self.tell(LinkBack(self._id, self._now()))

    def _now(self) -> Stamp:
        return Stamp(self._now_s())
