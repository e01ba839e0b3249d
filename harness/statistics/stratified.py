"""Two systems asked the same things, each some number of times: how much their shares differ, like with like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from scipy.special import chdtrc

from harness.statistics.word_intervals import wer_difference

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Stratum:
    """What is alike for both: how many of the first's tries counted, and of the second's; neither is without tries."""

    first: int
    first_total: int
    second: int
    second_total: int

    def __post_init__(self) -> None:
        if not (0 <= self.first <= self.first_total and 0 <= self.second <= self.second_total):
            raise ValueError(f"a stratum cannot be {self}")
        if not (self.first_total and self.second_total):
            raise ValueError("a stratum of which one system has tried nothing compares nothing")

    @property
    def weight(self) -> Fraction:
        """Pairs that it is worth: 1 with one try each, r with r each; the harmonic mean of the two numbers of tries."""
        return Fraction(2 * self.first_total * self.second_total, self.first_total + self.second_total)

    @property
    def shares(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.first, self.first_total), Fraction(self.second, self.second_total)

    @property
    def apart(self) -> Fraction:
        """The difference of the shares times the weight."""
        first, second = self.shares
        return self.weight * (first - second)


@dataclass(frozen=True, slots=True)
class StratifiedDifference:
    """Shares of both, each stratum by its weight, and the first less the second (Mantel–Haenszel's risk difference).

    interval: 95 %, from how clusters differ; None with fewer than two of them.
    """

    first: float
    second: float
    difference: float
    interval: Interval | None


def stratified_difference(clusters: Sequence[Sequence[Stratum]]) -> StratifiedDifference | None:
    """The difference over all strata; None without any. clusters: strata that are not independent of each other.

    What both systems share (a hard query) falls out. Interval: the delete-one variance of clusters, with Student's t.
    Sources: Mantel & Haenszel, J. Natl. Cancer Inst. 22 (1959); as in `word_intervals.wer_difference`.
    """
    held = [of for of in clusters if of]
    if not held:
        return None
    weights = [float(sum((one.weight for one in of), Fraction())) for of in held]
    firsts = [float(sum((one.weight * one.shares[0] for one in of), Fraction())) for of in held]
    seconds = [float(sum((one.weight * one.shares[1] for one in of), Fraction())) for of in held]
    total = sum(weights)
    found = wer_difference(firsts, seconds, weights)
    interval = None if found is None else (max(-1.0, found.interval[0]), min(1.0, found.interval[1]))
    first, second = sum(firsts) / total, sum(seconds) / total
    return StratifiedDifference(first, second, first - second, interval)


def mantel_haenszel(strata: Sequence[Stratum]) -> float | None:
    """Two-sided p that both are equally good within strata, every try by itself; None when nothing can tell.

    Without correction for continuity; with one try each it is McNemar's chi-square. Sources: Cochran, Biometrics 10
    (1954); Mantel & Haenszel, J. Natl. Cancer Inst. 22 (1959).
    """
    apart = variance = 0.0
    for one in strata:
        total = one.first_total + one.second_total
        counted = one.first + one.second
        apart += one.first - one.first_total * counted / total
        variance += one.first_total * one.second_total * counted * (total - counted) / (total * total * (total - 1))
    return float(chdtrc(1, apart * apart / variance)) if variance else None
