"""Devices against each other, on the stimuli that they have all heard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from harness.statistics.significance import Discordance
from harness.wake.wake import WakeFigures

ALL_PAIRS = 3
"""Up to so many devices each is compared with each; of more, all with the first."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two devices on the wake trials that count for both."""

    first: str
    second: str
    found: Discordance


def comparisons(figures: WakeFigures) -> tuple[Comparison, ...]:
    """Of the devices of a session, in the order of the plan; none with fewer than two."""
    names = [device.device for device in figures.snapshot().devices]
    pairs = combinations(names, 2) if len(names) <= ALL_PAIRS else [(names[0], one) for one in names[1:]]
    hits = {name: figures.hits(name) for name in names} if len(names) > 1 else {}
    return tuple(Comparison(first, second, discordance(hits[first], hits[second])) for first, second in pairs)


def discordance(first: Mapping[str, bool], second: Mapping[str, bool]) -> Discordance:
    """Two devices by trial → did it wake?; trials that only one has heard are left out."""
    pairs = [(first[trial], second[trial]) for trial in first if trial in second]
    return Discordance(*(pairs.count(pair) for pair in ((True, True), (True, False), (False, True), (False, False))))
