"""The numbers that devices give their messages: `boot` and `seq` at the top of a JSON payload."""

from __future__ import annotations

from dataclasses import dataclass

from harness.devices.framing.numbering import DeliveredEvents
from harness.model.bench import PlainValue


@dataclass(frozen=True, slots=True)
class JudgedMessage:
    """What a message's numbers say: it came before; a new start of the device; so many before it are missing.

    late: it is of a start before the present one. beside: the boot that was taken for the present one, when an earlier
    one goes on speaking: two devices use one name.
    """

    duplicate: bool = False
    rebooted: bool = False
    missing: int = 0
    late: bool = False
    beside: str = ""


class MappedNumbering:
    """Of a device whose messages a profile maps: it says no hello, so a new boot id is a restart until the old one
    goes on counting. Messages without numbers are taken as they are.
    """

    def __init__(self) -> None:
        self._boot: str | None = None
        self._boots: dict[str, DeliveredEvents] = {}

    def judge(self, document: PlainValue) -> JudgedMessage:
        """Of the next message in the order of arrival."""
        if not isinstance(document, dict):
            return JudgedMessage()
        boot, seq = document.get("boot"), document.get("seq")
        if not isinstance(boot, str | int) or isinstance(boot, bool):
            return JudgedMessage()
        return self._count(str(boot), seq if isinstance(seq, int) and not isinstance(seq, bool) else None)

    def _count(self, boot: str, seq: int | None) -> JudgedMessage:
        before, beside = self._boot, ""
        if boot != before:
            known = self._boots.get(boot)
            if known is not None and (seq is None or not known.is_next(seq)):
                return JudgedMessage(late=True)  # mostly the last will of a start that is over
            if known is not None:
                beside = before or ""
            else:
                # Nothing is known of what it said before we listened, but after a restart it counts from 1.
                self._boots[boot] = DeliveredEvents(from_one=before is not None)
            self._boot = boot
        rebooted = before is not None and boot != before and not beside
        if seq is None:
            return JudgedMessage(rebooted=rebooted)
        repeated, missing = self._boots[boot].count(seq)
        return JudgedMessage(repeated, rebooted, missing, beside=beside)
