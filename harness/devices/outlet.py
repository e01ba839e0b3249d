"""The outlet of a driver's observations: it keeps their order, sends none after close, and limits log lines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from harness.base import threads
from harness.base.ports import Sink, Surroundings
from harness.devices.wire.console import LogLimit
from harness.model.bench import ConsoleSettings
from harness.model.observation import LinkBack, LinkLost, LogLine, Observation
from harness.model.time import Stamp

BROKEN = "a thread of the driver ended with an error; see the engine's output"
_LOG_BURST = 200.0
"""Number of log lines at once to which the rate limit does not apply. Chosen: enough for a board's boot messages."""
_FLOOD_REPORT_INTERVAL_S = 10.0
"""Interval of reports while too many lines come, in seconds. Chosen: a reader of the log sees that they still do."""


class DriverOutlet:
    """Passes observations from any thread to the sink, one at a time, under `lock`, which the driver's modules share.

    The link is lost while any part of the driver has lost it (a port, the board behind it). Each part calls `lose`, and
    `back` when it has it again. The sink gets one LinkLost at the first loss, and one LinkBack when no loss remains.

    Log lines beyond the profile's rate (`console.log_lines_per_s`) are only counted. Their number is reported
    every 10 s, when the flood ends, and at close. This limit applies to everything that a driver logs. `Console` has
    its own limit, for the unmapped lines of a device. At the default rate, lines that pass that one also pass this one.
    """

    def __init__(self, id: str, surroundings: Surroundings) -> None:
        self._id = id
        self._now_s = surroundings.clock.now_s
        console = ConsoleSettings() if surroundings.profile is None else surroundings.profile.console
        self._log_lines_per_s = console.log_lines_per_s
        self.lock = threads.rlock()
        self._sink: Sink | None = None
        self._lost_parts: set[str] = set()
        self._loss_reported = False
        self._reason = ""
        self._flood_began_s = 0.0

    @property
    def link_is_up(self) -> bool:
        """Whether the driver is open and no part of it has lost the link."""
        return self._sink is not None and not self._lost_parts

    def open(self, sink: Sink) -> None:
        """Passes observations on from now on. Losses of an earlier opening are forgotten."""
        with self.lock:
            self._sink = sink
            self._lost_parts.clear()
            self._loss_reported = False
            self._limit = LogLimit(self._id, self._log_lines_per_s, _LOG_BURST)

    def close(self) -> None:
        """Returns when no call to the sink is in progress; from then on none is made."""
        with self.lock:
            sink, self._sink = self._sink, None
            if sink is not None and self._limit.left_out:
                sink(self._limit.report(self._now()))

    def tell(self, observation: Observation) -> None:
        """Passes an observation on, unless the outlet is closed, or it is a log line beyond the rate."""
        with self.lock:
            sink = self._sink
            if sink is None:
                return
            now_s, limit = self._now_s(), self._limit
            if limit.left_out and (limit.is_calm(now_s) or now_s - self._flood_began_s >= _FLOOD_REPORT_INTERVAL_S):
                sink(limit.report(Stamp(now_s)))
            if isinstance(observation, LogLine) and not limit.admits(now_s):
                if limit.left_out == 1:
                    self._flood_began_s = now_s
                return
            sink(observation)

    def remark(self, text: str) -> None:
        """Logs a remark of the harness about the link."""
        self.tell(LogLine(self._id, self._now(), text))

    def lose(self, part: str, reason: str, *, urgent: bool = False) -> None:
        """Records that a part of the driver has lost the link, and reports the first such loss.

        urgent: whether the user must act, so that a new reason is reported even if the link was lost already.
        """
        with self.lock:
            is_new = not self._loss_reported or (urgent and reason != self._reason)
            self._lost_parts.add(part)
            self._loss_reported = True
            if is_new:
                self._reason = reason
                self.tell(LinkLost(self._id, self._now(), reason))

    def back(self, part: str) -> None:
        """Records that a part has the link again, and reports LinkBack if no other part has lost it."""
        with self.lock:
            self._lost_parts.discard(part)
            if self._loss_reported and not self._lost_parts:
                self._loss_reported = False
                self.tell(LinkBack(self._id, self._now()))

    @contextlib.contextmanager
    def reports_errors(self) -> Iterator[None]:
        """Guards a thread of the driver: an error that ends it is reported as a lost link, which does not come back."""
        try:
            yield
        except Exception:
            self.lose(BROKEN, BROKEN, urgent=True)
            raise

    def _now(self) -> Stamp:
        return Stamp(self._now_s())
