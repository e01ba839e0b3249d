"""A program that is asked to end tidies up what it has begun."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

ASKED_TO_END = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def orderly_end() -> Iterator[None]:
    """Within it, what asks the program to end leaves as an exit does, so that temporary files go.

    The status is the one that shells say of a program that the signal ended. What was ignored before, as behind
    `nohup`, stays ignored.
    """
    mine = threading.current_thread() is threading.main_thread()
    taken = [one for one in ASKED_TO_END if mine and signal.getsignal(one) is signal.SIG_DFL]
    for one in taken:
        signal.signal(one, _leave)
    try:
        yield
    finally:
        for one in taken:
            signal.signal(one, signal.SIG_DFL)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    for one in ASKED_TO_END:  # asked twice, it still tidies up once
        signal.signal(one, signal.SIG_IGN)
    sys.exit(128 + number)
