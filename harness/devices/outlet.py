"""The outlet of a driver's observations: in order, none after close, and no flood of log lines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from harness.base import threads
from harness.base.ports import Sink, Surroundings
from harness.devices.wire.console import LogLimit
from harness.model.bench import ConsoleSettings
from harness.model.observation import LinkBack, LinkLost, LogLine, Observation
from harness.model.time import Stamp

BROKEN = "a thread of the driver ended with an error, see the engine's output"
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
        console = ConsoleSettings() if surroundings.profile is None else surroundings.profile.console
        self._log_lines_per_s = console.log_lines_per_s
        self.lock = threads.rlock()
        self._sink: Sink | None = None
        self._lost: set[str] = set()
        self._told_lost = False
        self._why = ""
        self._limit = self._new_limit()
        self._flood_s = 0.0

    @property
    def linked(self) -> bool:
        return self._sink is not None and not self._lost

    def open(self, sink: Sink) -> None:
        with self.lock:
            self._sink = sink
            self._lost.clear()
            self._told_lost = False
            self._limit = self._new_limit()

    def close(self) -> None:
        """Returns when no call to the sink is in progress; from then on none is made."""
        with self.lock:
            sink, self._sink = self._sink, None
            if sink is not None and self._limit.left_out:
                sink(self._limit.report(self._now()))

    def tell(self, observation: Observation) -> None:
        with self.lock:
            sink = self._sink
            if sink is None:
                return
            now_s, limit = self._now_s(), self._limit
            if limit.left_out and (limit.is_calm(now_s) or now_s - self._flood_s >= _COUNT_EVERY_S):
                sink(limit.report(Stamp(now_s)))
            if isinstance(observation, LogLine) and not limit.admits(now_s):
                if limit.left_out == 1:
                    self._flood_s = now_s
                return
            sink(observation)

    def _new_limit(self) -> LogLimit:
        return LogLimit(self._id, self._log_lines_per_s, _LOG_LINES_AT_ONCE)

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
