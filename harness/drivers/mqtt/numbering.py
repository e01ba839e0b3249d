"""The numbers that devices give their messages: `boot` and `seq` at the top of a JSON payload."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.bench import PlainValue

_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Judged:
    """What a message's numbers say: it came before; a new start of the device; so many before it are missing.

    late: it is of a start before the present one.
    """

    duplicate: bool = False
    rebooted: bool = False
    missing: int = 0
    late: bool = False


class Numbering:
    """Of one device, over all its topics. Messages without numbers are taken as they are."""

    def __init__(self) -> None:
        self.boot: str | None = None
        self._earlier_boots: set[str] = set()
        self._highest = 0
        self._seen: dict[int, None] = {}
        self._settled = 0

    def judge(self, document: PlainValue) -> Judged:
        """Of the next message in the order of arrival."""
        if not isinstance(document, dict):
            return Judged()
        boot, seq = document.get("boot"), document.get("seq")
        if not isinstance(boot, str | int) or isinstance(boot, bool):
            return Judged()
        return self.count(str(boot), seq if isinstance(seq, int) and not isinstance(seq, bool) else None)

    def count(self, boot: str, seq: int | None) -> Judged:
        """The same, of a message whose numbers are known; seq None: it has a boot id only."""
        if boot in self._earlier_boots:
            # A late word of a device that has started anew: its last will, mostly. It says nothing about the numbers.
            return Judged(late=True)
        rebooted = self.boot is not None and boot != self.boot
        if boot != self.boot:
            if self.boot is not None:
                self._earlier_boots.add(self.boot)
            # Nothing is known of what it said before we listened, but after a restart it counts from 1.
            self.boot, self._highest, self._seen, self._settled = boot, 0 if rebooted else -1, {}, 0
        if seq is None:
            return Judged(rebooted=rebooted)
        if self._highest < 0:
            self._highest = self._settled = max(seq - 1, self._settled)
        if seq in self._seen or seq <= self._highest - _REMEMBERED:
            return Judged(duplicate=True, rebooted=rebooted)
        missing = max(0, seq - self._highest - 1)
        self._highest = max(self._highest, seq)
        self._seen[seq] = None
        while len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        self._advance()
        return Judged(rebooted=rebooted, missing=missing)

    def settle(self, number: int) -> None:
        """Nobody waits any more for what has a number up to this one; it is still taken when it comes."""
        self._settled = max(self._settled, number)
        self._advance()

    def complete_to(self, number: int) -> bool:
        """Whether every message up to that number has come, or is not waited for."""
        return self._settled >= number

    def _advance(self) -> None:
        while self._settled + 1 in self._seen:
            self._settled += 1
