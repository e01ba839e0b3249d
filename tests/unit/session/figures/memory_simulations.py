"""Devices that forget by chance, asked by a memory probe: how often its interval holds the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from harness.session.figures.memory import CRITICAL, Floats, Pair, forgotten, memory_length


@dataclass(frozen=True, slots=True)
class Design:
    """Waits in equal ratios, each tried `repeat` times."""

    shortest_s: float
    longest_s: float
    count: int
    repeat: int

    @property
    def tried_s(self) -> Floats:
        return np.repeat(np.geomspace(self.shortest_s, self.longest_s, self.count), self.repeat)


@dataclass(frozen=True, slots=True)
class Kept:
    """Of `runs`: covered, whose interval holds the length; told, with a wait to recommend; over, whose bound on the
    share at that wait is too low; surer_over, at the longer wait beside it. ratio: median of upper over lower end, of
    intervals that have both.
    """

    runs: int
    covered: int
    told: int
    over: int
    surer_over: int
    ratio: float | None


def remembers(waits_s: Floats, length_s: float, spread: float) -> Floats:
    """The share that remembers after each wait, half of it at length_s. spread: of a logistic in log(s); 0: none."""
    if spread == 0:
        return (waits_s < length_s).astype(np.float64)
    share: Floats = expit((math.log(length_s) - np.log(waits_s)) / spread)
    return share


def kept(random: np.random.Generator, design: Design, spread: float, runs: int, critical: float = CRITICAL) -> Kept:
    """Runs with lengths of 2.5 to 28 s, drawn evenly on a logarithmic scale."""
    tried_s, ratios = design.tried_s, []
    covered = told = over = surer_over = 0
    for _ in range(runs):
        length_s = math.exp(random.uniform(math.log(2.5), math.log(28)))
        share = remembers(tried_s, length_s, spread)
        shown = random.random(len(tried_s)) < share
        pairs = [Pair(float(wait_s), bool(one)) for wait_s, one in zip(tried_s, shown, strict=True)]
        found = memory_length(pairs, critical)
        assert found is not None
        low, high = found.interval
        covered += low <= length_s <= (math.inf if high is None else high)
        if low > 0 and high is not None:
            ratios.append(high / low)
        if (rest := forgotten(pairs, found)) is not None:
            told += 1
            over += float(share[tried_s == rest.wait_s][0]) > rest.at_most
            if rest.surer is not None:
                surer_over += float(share[tried_s == rest.surer[0]][0]) > rest.surer[1]
    return Kept(runs, covered, told, over, surer_over, float(np.median(ratios)) if ratios else None)
