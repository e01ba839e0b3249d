"""The outlet of a driver's observations: in order, none after close, and no flood of log lines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from harness.base import threads
from harness.base.ports import Sink, Surroundings
from harness.model.numbers import exact
from harness.model.observation import LinkBack, LinkLost, LogLine, Observation
from harness.model.time import Stamp

BROKEN = "a thread of the driver ended with an error, see the engine's output"
_LOG_LINES_PER_S = 50.0
_LOG_LINES_AT_ONCE = 200.0
"""Burst allowed before the rate limit applies."""
_COUNT_EVERY_S = 10.0
"""Interval of reports while a flood lasts."""


class DriverOutlet:
    """Passes observations from any thread to the sink, one at a time, under `lock`, which the driver's modules share.

    A link can be lost for several reasons at once; it is back when none remains.
    Log lines beyond the profile's rate (`console.log_lines_per_s`) are only counted. Their number is reported
    every 10 s, when the flood ends, and at close.
    """

    def __init__(self, id: str, surroundings: Surroundings) -> None:
        self._id = id
        self._now_s = surroundings.clock.now_s
        profile = surroundings.profile
        self._rate = _LOG_LINES_PER_S if profile is None else profile.console.log_lines_per_s
        self.lock = threads.rlock()
        self._sink: Sink | None = None
        self._lost: set[str] = set()
        self._told_lost = False
        self._why = ""
        self._room = _LOG_LINES_AT_ONCE
        self._room_s = 0.0
        self._left_out = 0
        self._flood_s = 0.0

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
        """Returns when no call to the sink is in progress; from then on none is made."""
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
                    return
                self._room -= 1.0
            sink(observation)

    def _tell_left_out(self, sink: Sink, now_s: float) -> None:
        count, self._left_out = self._left_out, 0
        sink(LogLine(self._id, Stamp(now_s), f"{count} lines were left out: more than {exact(self._rate)} per second"))

    def remark(self, text: str) -> None:
        """Logs a remark of the harness about the link."""
        self.tell(LogLine(self._id, self._now(), text))

    def lose(self, part: str, reason: str, *, named: bool = False) -> None:
        """named: the user must act, so the reason is reported even if the link is already lost."""
        with self.lock:
            news = not self._told_lost or (named and reason != self._why)
            self._lost.add(part)
            self._told_lost = True
            if news:
                self._why = reason
                self.tell(LinkLost(self._id, self._now(), reason))

    def back(self, part: str) -> None:
        with self.lock:
            self._lost.discard(part)
            if self._told_lost and not self._lost:
                self._told_lost = False
                self.tell(LinkBack(self._id, self._now()))

    @contextlib.contextmanager
    def reports_errors(self) -> Iterator[None]:
        """For what a thread of the driver does: an error that ends it is a lost link, which does not come back."""
        try:
            yield
        except Exception:
            self.lose(BROKEN, BROKEN, named=True)
            raise

    def _now(self) -> Stamp:
        return Stamp(self._now_s())
