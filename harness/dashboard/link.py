"""What the dashboard needs of a connection to the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from harness.model.feed import Command, Hello, Message


class Link(Protocol):
    """A connection; `send` raises EngineError when the engine is gone. Both may be called from any thread."""

    def send(self, command: Command) -> None: ...
    def close(self) -> None: ...


Connect = Callable[[Hello, Callable[[Message], None], Callable[[str], None]], Link]
"""Makes the connection: hello, on_message, on_closed; the two are called on the connection's own thread."""
