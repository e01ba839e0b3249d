"""Exits at a signal, in an orderly way but after a limited time; and stops as a job of a shell."""

from __future__ import annotations

import os
import signal
import threading

END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
"""Signals by which others ask a process to end."""
FORCED_EXIT_S = 10.0
"""Time after which a process that does not end by itself is ended, in seconds."""


def stop_job() -> None:
    """Stops this process group, as Ctrl-Z does in a terminal; returns when the shell continues it (`fg`).

    Returns at once where no shell could continue it: the kernel then ignores the signal.
    """
    previous_handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        os.kill(0, signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, previous_handler)


def exit_soon(signal_number: int) -> int:
    """The exit status that shells report for that signal; the caller exits with it.

    If the process is still there after FORCED_EXIT_S, it is ended. A thread that reads from a terminal that is gone, or
    writes to it, may never end.
    """
    status = 128 + signal_number
    forced_exit = threading.Timer(FORCED_EXIT_S, os._exit, (status,))
    forced_exit.daemon = True
    forced_exit.start()
    return status
