"""The numbers that devices give their messages: `boot` and `seq` at the top of a JSON payload."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.bench import PlainValue

_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Judged:
    """What a message's numbers say: it came before; a new start of the device; so many before it are missing.

    late: it is of a start before the present one. beside: the boot that was taken for the present one, when an earlier
    one goes on speaking: two devices use one name.
    """

    duplicate: bool = False
    rebooted: bool = False
    missing: int = 0
    late: bool = False
    beside: str = ""


class Numbering:
    """Of one boot, over all its topics. from_one: every number since its start is expected, else since the first."""

    def __init__(self, *, from_one: bool = False) -> None:
        self._highest = 0 if from_one else -1
        self._seen: dict[int, None] = {}
        self._settled = 0

    def count(self, seq: int) -> Judged:
        """Of the next message in the order of arrival."""
        if self._highest < 0:
            self._highest = self._settled = max(seq - 1, self._settled)
        if seq in self._seen or seq <= self._highest - _REMEMBERED:
            return Judged(duplicate=True)
        missing = max(0, seq - self._highest - 1)
        self._highest = max(self._highest, seq)
        self._seen[seq] = None
        while len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        self._advance()
        return Judged(missing=missing)

    def is_next(self, seq: int) -> bool:
        """Whether it is beyond every number so far."""
        return seq > self._highest >= 0

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


class MappedNumbering:
    """Of a device whose messages a profile maps: it says no hello, so a new boot id is a restart until the old one
    goes on counting. Messages without numbers are taken as they are.
    """

    def __init__(self) -> None:
        self._boot: str | None = None
        self._boots: dict[str, Numbering] = {}

    def judge(self, document: PlainValue) -> Judged:
        """Of the next message in the order of arrival."""
        if not isinstance(document, dict):
            return Judged()
        boot, seq = document.get("boot"), document.get("seq")
        if not isinstance(boot, str | int) or isinstance(boot, bool):
            return Judged()
        return self._count(str(boot), seq if isinstance(seq, int) and not isinstance(seq, bool) else None)

    def _count(self, boot: str, seq: int | None) -> Judged:
        before, beside = self._boot, ""
        if boot != before:
            known = self._boots.get(boot)
            if known is not None and (seq is None or not known.is_next(seq)):
                return Judged(late=True)  # mostly the last will of a start that is over
            if known is not None:
                beside = before or ""
            else:
                # Nothing is known of what it said before we listened, but after a restart it counts from 1.
                self._boots[boot] = Numbering(from_one=before is not None)
            self._boot = boot
        rebooted = before is not None and boot != before and not beside
        if seq is None:
            return Judged(rebooted=rebooted)
        judged = self._boots[boot].count(seq)
        return Judged(judged.duplicate, rebooted, judged.missing, beside=beside)
