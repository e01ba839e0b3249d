"""Looks every few seconds for what has come from elsewhere to what a rater or an annotator works on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from textual.message import Message

from harness.dashboard.messages import RoomRead
from harness.model.errors import HarnessError

EVERY_S = 10.0


class Refreshes(Protocol):
    """A room: it reads again what it is made of. HarnessError when that cannot be read."""

    def refresh(self) -> object: ...


class Refreshing:
    """A thread that reads the room again; tell: posts a message to the screen, never after `close`."""

    def __init__(self, room: Refreshes, tell: Callable[[Message], object], every_s: float = EVERY_S) -> None:
        self._room, self._tell, self._every_s = room, tell, every_s
        self._closed = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._work, name="refreshing", daemon=True).start()

    def close(self) -> None:
        """Returns at once, also while it reads."""
        with self._lock:
            self._closed.set()

    def _work(self) -> None:
        while not self._closed.wait(self._every_s):
            fault = ""
            try:
                self._room.refresh()
            except HarnessError as error:
                fault = str(error)
            with self._lock:
                if not self._closed.is_set():
                    self._tell(RoomRead(fault))
