"""Which detections are the same: one rule for live counting and for every engine that reports events."""

from __future__ import annotations


def is_within_refractory(place: float, stands: float, refractory: float) -> bool:
    """Whether an event is part of the last one that counts by itself; all three in one unit.

    The time runs from the event that counts, so a stuck device keeps adding events.
    """
    return place - stands < refractory


class RefractoryFilter:
    """Keeps separate events of a phrase apart from repetitions. refractory: in the unit of the places."""

    def __init__(self, refractory: float) -> None:
        self._refractory = refractory
        self._stands: dict[str, float] = {}

    def counts(self, phrase: str, place: float) -> bool:
        """Whether the next event of a phrase counts by itself. Events come in the order of their places."""
        stands = self._stands.get(phrase)
        if stands is not None and is_within_refractory(place, stands, self._refractory):
            return False
        self._stands[phrase] = place
        return True
