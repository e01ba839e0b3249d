"""Which detections are the same: one rule for live counting and for every engine that reports events."""

from __future__ import annotations


def is_within_refractory(place: float, previous_place: float, refractory: float) -> bool:
    """Whether an event is part of the last one that counts by itself; all three in one unit.

    The time runs from the event that counts, so a stuck device keeps adding events.
    """
    return place - previous_place < refractory


class RefractoryFilter:
    """Keeps separate events of a phrase apart from repetitions. refractory: in the unit of the places."""

    def __init__(self, refractory: float) -> None:
        self._refractory = refractory
        self._previous_places: dict[str, float] = {}

    def counts(self, phrase: str, place: float) -> bool:
        """Whether the next event of a phrase counts by itself. Events come in the order of their places."""
        previous_place = self._previous_places.get(phrase)
        if previous_place is not None and is_within_refractory(place, previous_place, self._refractory):
            return False
        self._previous_places[phrase] = place
        return True
