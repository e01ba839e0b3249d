"""Commands to a board: sent again every 200 ms until it has acknowledged their number."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from harness.devices.wire.messages import Set, Text, to_frame

AGAIN_S = 0.2


@dataclass(slots=True)
class Command:
    """`done` is set in the end; `acknowledged` says how it ended."""

    frame: bytes
    next_s: float = float("-inf")
    acknowledged: bool = False
    done: threading.Event = field(default_factory=threading.Event)


class Commands:
    """Of one boot of the board. Not thread-safe, but for `Command.done`.

    first: number before the first one. The board carries out each number once within its boot, which may last over many
    sessions: so they must not begin at 1 in each.
    """

    def __init__(self, first: int) -> None:
        self._last = first
        self._pending: dict[int, Command] = {}

    def add(self, message: Text | Set) -> Command:
        self._last = (self._last + 1) & 0xFFFFFFFF or 1
        command = Command(to_frame(message, self._last))
        self._pending[self._last] = command
        return command

    def drop(self, command: Command) -> None:
        """Nobody waits for it any more."""
        self._pending = {number: one for number, one in self._pending.items() if one is not command}

    def acknowledge(self, number: int) -> None:
        command = self._pending.pop(number, None)
        if command is not None:
            command.acknowledged = True
            command.done.set()

    def fail(self) -> None:
        """The board has restarted or is lost: nobody knows which of them it carried out."""
        for command in self._pending.values():
            command.done.set()
        self._pending.clear()

    def due(self, now_s: float) -> bytes:
        frames = []
        for command in self._pending.values():
            if command.next_s <= now_s:
                command.next_s = now_s + AGAIN_S
                frames.append(command.frame)
        return b"".join(frames)

    def wait_s(self, now_s: float) -> float | None:
        return min((max(0.0, command.next_s - now_s) for command in self._pending.values()), default=None)
