"""The numbers that devices give their messages: `boot` and `seq` at the top of a JSON payload."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.bench import PlainValue

_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Judged:
    """What a message's numbers say: it came before; a new start of the device; so many before it are missing."""

    duplicate: bool = False
    rebooted: bool = False
    missing: int = 0


class Numbering:
    """Of one device, over all its topics. Messages without numbers are taken as they are."""

    def __init__(self) -> None:
        self._boot: str | None = None
        self._earlier_boots: set[str] = set()
        self._highest = 0
        self._seen: dict[int, None] = {}

    def judge(self, document: PlainValue) -> Judged:
        """Of the next message in the order of arrival."""
        if not isinstance(document, dict):
            return Judged()
        boot, seq = document.get("boot"), document.get("seq")
        if not isinstance(boot, str | int) or isinstance(boot, bool):
            return Judged()
        numbered = isinstance(seq, int) and not isinstance(seq, bool)
        boot = str(boot)
        if boot in self._earlier_boots:
            # A late word of a device that has started anew: its last will, mostly. It says nothing about the numbers.
            return Judged()
        rebooted = self._boot is not None and boot != self._boot
        if boot != self._boot:
            if self._boot is not None:
                self._earlier_boots.add(self._boot)
            self._boot, self._highest, self._seen = boot, 0, {}
            # Nothing is known of what it said before we listened, but after a restart it counts from 1.
            if numbered and isinstance(seq, int) and not rebooted:
                self._highest = seq - 1
        if not numbered or not isinstance(seq, int):
            return Judged(rebooted=rebooted)
        if seq in self._seen or seq <= self._highest - _REMEMBERED:
            return Judged(duplicate=True)
        missing = max(0, seq - self._highest - 1)
        self._highest = max(self._highest, seq)
        self._seen[seq] = None
        while len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return Judged(rebooted=rebooted, missing=missing)
