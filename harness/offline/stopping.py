"""Ctrl-C and SIGTERM ask a run to stop in order; a second time they end it at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ASKS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stop_when_asked() -> Iterator[threading.Event]:
    """An event that is set by the first of these signals; the second raises KeyboardInterrupt.

    What was ignored before, as behind `nohup`, stays ignored. Outside the main thread nothing is changed.
    """
    stop = threading.Event()

    def asked(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    mine = threading.current_thread() is threading.main_thread()
    before = {one: signal.getsignal(one) for one in _ASKS if mine and signal.getsignal(one) is not signal.SIG_IGN}
    for one in before:
        signal.signal(one, asked)
    try:
        yield stop
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
