"""When the device of the in-process sound path wakes: at its phrase unless it misses it, and falsely, by a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

WAKES_AFTER_S = 0.15
"""From the end of the phrase to the event."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A wake phrase in a sound, and the command after it ("" when there is none); seconds from the first sample."""

    text: str
    ends_s: float
    command: str = ""
    command_ends_s: float = 0.0


class WakeAt(NamedTuple):
    """An event, so many seconds into the sound."""

    at_s: float
    score: float
    phrase: str


def wakes_in(
    duration_s: float, phrase: Phrase | None, *, miss_share: float, false_per_hour: float, seed: str
) -> tuple[WakeAt, ...]:
    """The events in a sound, in their order; the same seed gives the same ones.

    False ones come as a Poisson process over the whole sound, also where a phrase is.
    """
    chance = random.Random(seed)
    found: list[WakeAt] = []
    missed = chance.random() < miss_share
    if phrase is not None and not missed:
        found.append(WakeAt(phrase.ends_s + WAKES_AFTER_S, round(chance.uniform(0.7, 1.0), 3), phrase.text))
    at_s = 0.0
    while false_per_hour > 0:
        at_s += chance.expovariate(1.0) * (3600 / false_per_hour)  # infinite for a rate near 0: late enough
        if at_s >= duration_s:
            break
        found.append(WakeAt(at_s, round(chance.uniform(0.5, 0.8), 3), phrase.text if phrase else ""))
    return tuple(sorted(found))
