"""Which detections are one event: the rule for live counting and for every engine that reports events."""

from __future__ import annotations


def is_within_refractory(place: float, previous_place: float, refractory: float) -> bool:
    """Whether an event is part of the last separate one. All three values are in the same unit.

    The refractory time runs from the last separate event, so a device that keeps reporting adds new events.
    """
    return place - previous_place < refractory


class RefractoryFilter:
    """Separates new events of a phrase from repetitions. refractory: refractory time, in the unit of the places."""

    def __init__(self, refractory: float) -> None:
        self._refractory = refractory
        self._previous_places: dict[str, float] = {}

    def accept(self, phrase: str, place: float) -> bool:
        """Takes the next event of a phrase, and returns whether it is a separate one. Events come in the order of their
        places."""
        previous_place = self._previous_places.get(phrase)
        if previous_place is not None and is_within_refractory(place, previous_place, self._refractory):
            return False
        self._previous_places[phrase] = place
        return True
