"""Leaving at a signal: in order, and at the latest after a while."""

from __future__ import annotations

import os
import signal
import threading

ASKED_TO_END = (signal.SIGTERM, signal.SIGHUP)
LEAVES_WITHIN_S = 10.0


def leave_soon(number: int) -> int:
    """The exit status that shells report for that signal. The process ends with it in 10 s, if it is still there.

    A thread that reads from or writes to a terminal that is gone may never end.
    """
    limit = threading.Timer(LEAVES_WITHIN_S, os._exit, (128 + number,))
    limit.daemon = True
    limit.start()
    return 128 + number
