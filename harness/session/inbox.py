"""The one way in to the conductor's thread."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Iterable

from harness.base.ports import Clock
from harness.session.stage import Told

Arrived = tuple[Told, float]
"""What came, and when (session seconds)."""


class Inbox:
    """Things in the order of their arrival, each with its time: they may wait while a row is being stored."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: queue.SimpleQueue[Arrived] = queue.SimpleQueue()
        self._first: deque[Arrived] = deque()

    def put(self, told: Told) -> None:
        """From any thread; never blocks."""
        self._queue.put((told, self._clock.now_s()))

    def get(self, wait_s: float) -> Arrived | None:
        """The next thing, waited for at most so many real seconds; None when nothing came."""
        if self._first:
            return self._first.popleft()
        return self.get_new(wait_s)

    def get_new(self, wait_s: float) -> Arrived | None:
        """As `get`, past what was put back."""
        try:
            return self._queue.get(timeout=wait_s) if wait_s > 0 else self._queue.get_nowait()
        except queue.Empty:
            return None

    def put_back(self, arrived: Iterable[Arrived]) -> None:
        """What was taken too early comes first again, in its order."""
        self._first.extendleft(reversed(list(arrived)))
