"""Commands for a board over MQTT: numbered, one at a time, sent again until they are acknowledged."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass

AGAIN_S = 1.0


@dataclass(slots=True, eq=False)
class Command:
    """taken: the board has acknowledged it."""

    topic: str
    fields: dict[str, object]
    number: int = 0
    sent_s: float = float("-inf")
    taken: bool = False


class Commands:
    """Of one boot. The board says the number of the last one that it carried out, nothing of those before it.

    by: written into each, so that it is known as ours when the broker echoes it.
    """

    def __init__(self, by: str) -> None:
        self._by = by
        self._waiting: deque[Command] = deque()
        self._number = 0
        self._acknowledged: int | None = None

    def add(self, command: Command) -> None:
        self._waiting.append(command)

    def holds(self, command: Command) -> bool:
        return command in self._waiting

    def drop(self, command: Command) -> None:
        if command in self._waiting:
            self._waiting.remove(command)

    def clear(self) -> None:
        """Another boot: numbers begin again."""
        self._waiting.clear()
        self._number, self._acknowledged = 0, None

    def acknowledge(self, number: int) -> None:
        self._acknowledged = number
        while self._waiting and 0 < self._waiting[0].number <= number:
            self._waiting.popleft().taken = True

    def due(self, now_s: float) -> list[tuple[str, bytes, int]]:
        """Topic, payload and QoS; nothing before the board has said what its last number is."""
        if not self._waiting or self._acknowledged is None:
            return []
        first = self._waiting[0]
        if not first.number:
            self._number = first.number = max(self._number, self._acknowledged) + 1
        if now_s - first.sent_s < AGAIN_S:
            return []
        first.sent_s = now_s
        return [(first.topic, json.dumps({"number": first.number, "by": self._by, **first.fields}).encode(), 1)]
