"""Two systems against each other, and whether events come in clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, chdtr, chdtrc


@dataclass(frozen=True, slots=True)
class Discordance:
    """Two systems on the same stimuli. both, neither: heard by both, by none; only_first, only_second: by that alone.

    p: that the two differ so much by chance though they are equally good; None when they never differ.
    """

    both: int = 0
    only_first: int = 0
    only_second: int = 0
    neither: int = 0

    @property
    def total(self) -> int:
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def p(self) -> float | None:
        return mcnemar(self.only_first, self.only_second)


def mcnemar(only_first: int, only_second: int) -> float | None:
    """Exact two-sided p of McNemar's test, from the stimuli on which two systems differ; None when there are none.

    Source: McNemar, Psychometrika 12 (1947), with the binomial distribution in place of its approximation.
    """
    differing = only_first + only_second
    return min(1.0, 2 * float(bdtr(min(only_first, only_second), differing, 0.5))) if differing else None


def poisson_rates(first: int, first_hours: float, second: int, second_hours: float) -> float | None:
    """Exact two-sided p that two Poisson rates, on different audio, are the same; None over nothing.

    Given the sum of both, the first count is binomial. Source: Przyborowski & Wilenski, Biometrika 31 (1940).
    """
    from scipy.stats import binomtest  # here, since it takes longer to import than most of what we print takes to make

    if first_hours <= 0 or second_hours <= 0:
        return None
    if first + second == 0:
        return 1.0
    return float(binomtest(first, first + second, first_hours / (first_hours + second_hours)).pvalue)


@dataclass(frozen=True, slots=True)
class Dispersion:
    """index: variance over mean of counts in equal stretches, 1 for events that come by themselves; more in clusters.

    p: two-sided, that such counts are Poisson's.
    """

    index: float
    p: float


def dispersion(counts: Sequence[int]) -> Dispersion | None:
    """Index of dispersion of counts in stretches of equal length; None without two stretches and an event.

    Where it is well above 1 the exact interval of the rate is too narrow. Source: Fisher, Statistical Methods, 16.
    """
    if len(counts) < 2 or not any(counts):
        return None
    values = np.asarray(counts, dtype=float)
    index = float(values.var(ddof=1) / values.mean())
    degrees = len(counts) - 1
    below, above = float(chdtr(degrees, degrees * index)), float(chdtrc(degrees, degrees * index))
    return Dispersion(index, min(1.0, 2 * min(below, above)))
