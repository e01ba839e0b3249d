"""Leaving at a signal, in order and at the latest after a while; and stopping as a job of a shell."""

from __future__ import annotations

import os
import signal
import threading

ASKED_TO_END = (signal.SIGTERM, signal.SIGHUP)
LEAVES_WITHIN_S = 10.0


def stop_job() -> None:
    """Stops this process group, as Ctrl-Z does in a terminal; returns when the shell continues it (`fg`).

    Returns at once where no shell could continue it: the kernel then ignores the signal.
    """
    previous_handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        os.kill(0, signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, previous_handler)


def exit_soon(number: int) -> int:
    """The exit status that shells report for that signal. The process ends with it in 10 s, if it is still there.

    A thread that reads from or writes to a terminal that is gone may never end.
    """
    limit = threading.Timer(LEAVES_WITHIN_S, os._exit, (128 + number,))
    limit.daemon = True
    limit.start()
    return 128 + number
