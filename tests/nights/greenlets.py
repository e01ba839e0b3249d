"""Threads of a simulation that are greenlets, not threads of the host.

A night hands over two thousand times. Between threads of the host, that took more than a tenth of its CPU time.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from greenlet import getcurrent, greenlet

from harness.base.simulated_threads import SimulatedThreads, _SimulatedThread
from harness.base.threads import using


class GreenletThreads(SimulatedThreads):
    """As `SimulatedThreads`, in the same order. Greenlets share what belongs to a thread of the host."""

    def __init__(self, now_s: float = 1000.0) -> None:
        super().__init__(now_s)
        self._greenlets = {self._first: getcurrent()}

    def __exit__(self, *_: object) -> None:
        self._over = True
        with using(self):
            while self._waiting:
                self._running = strand = self._waiting.pop()
                ending = self._greenlets[strand]
                ending.parent = getcurrent()  # this one goes on when that one has ended
                ending.switch()

    def begin(self, thread: threading.Thread, target: Callable[[], object]) -> None:
        strand = _SimulatedThread()
        strand.thread = thread
        self._greenlets[strand] = greenlet(lambda *_: self._run(strand, target))
        self._waiting.append(strand)

    def _run(self, strand: _SimulatedThread, target: Callable[[], object]) -> None:
        try:
            super()._run(strand, target)
        except Exception:  # noqa: BLE001 - shown as that of a thread; it must not reach the greenlet that goes on
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), strand.thread)))
        del self._greenlets[strand]

    def _switch(self, me: _SimulatedThread | None, following: _SimulatedThread | None) -> None:
        if me is not None and following is not None:
            self._greenlets[following].switch()
        elif following is not None:
            getcurrent().parent = self._greenlets[following]
