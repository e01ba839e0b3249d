"""Which boot of a board is the board: only a hello says so. Pure: told of hellos and answers with their times."""

from __future__ import annotations

from enum import Enum, auto

QUIET_S = 2.5
"""Each board is asked for its hello every second while two answer; one that says nothing for so long is gone."""


class Met(Enum):
    """What a hello means.

    FIRST: no boot was known. SAME: the known one. RESTARTED: a boot that was never seen takes the known one's place.
    RETURNED: an earlier boot is the board again; it has not restarted. RIVALS: two boards answer under one name.
    """

    FIRST = auto()
    SAME = auto()
    RESTARTED = auto()
    RETURNED = auto()
    RIVALS = auto()


class Boots:
    """Of one name. A boot id is random, so a boot that speaks after another has taken its place is a second board."""

    def __init__(self) -> None:
        self.current = ""
        self.rivals: tuple[str, ...] = ()
        """The boots that answer under one name; empty when there is one board."""
        self._contested_s = float("-inf")
        self._alive_s: dict[str, float] = {}
        """Of every boot that has said hello: when it last proved that it lives."""

    def known(self, boot: str) -> bool:
        """Whether a hello of it has come."""
        return boot in self._alive_s

    def hello(self, boot: str, now_s: float) -> Met:
        known, before = self.known(boot), self.current
        self._alive_s[boot] = now_s
        if self.rivals:
            alive = tuple(one for one, at_s in self._alive_s.items() if now_s - at_s < QUIET_S)
            if len(alive) > 1 or now_s - self._contested_s < QUIET_S:
                return Met.RIVALS
            self.rivals = ()
            self.current = boot
            return Met.RETURNED if known else Met.RESTARTED
        if boot == before:
            return Met.SAME
        if known:
            self._contest(boot, now_s)
            return Met.RIVALS
        self.current = boot
        return Met.RESTARTED if before else Met.FIRST

    def answered(self, boot: str, now_s: float) -> bool:
        """It has answered a question asked since the current boot was met; whether that first shows a second board."""
        if not self.known(boot):
            return False
        self._alive_s[boot] = now_s
        if boot == self.current or self.rivals:
            return False
        self._contest(boot, now_s)
        return True

    def _contest(self, boot: str, now_s: float) -> None:
        self.rivals, self._contested_s = (self.current, boot), now_s
