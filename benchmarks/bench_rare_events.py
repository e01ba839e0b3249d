"""How often statements on rare events are right: comparisons of false accepts over files, and whether they cluster.

python benchmarks/bench_rare_events.py      about three minutes

"old" is the rule of earlier versions: Student's t whatever the counts, and Pearson's dispersion with the interval of
its bootstrap. "held" is the share of intervals that hold the truth; "called" that of lists called clustered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sizes import sized

from harness.statistics import word_intervals
from harness.statistics.intervals import Interval, garwood
from harness.statistics.significance import clustering
from harness.statistics.word_intervals import wer_difference

RUNS = sized(2000, 10)
CLUSTER_RUNS = sized(300, 2)
Column = NDArray[np.float64]
SPREAD = np.random.default_rng(0).lognormal(-2, 1.5, 60)
FEW_LONG = np.concatenate([np.full(50, 0.01), np.full(5, 2.0)])


@dataclass(frozen=True, slots=True)
class Audio:
    """Files on which two systems are compared, or one is examined.

    - first_per_hour, second_per_hour: false accepts an hour of each system.
    - hours: the length of each file.
    - at_once: how many false accepts come together.
    """

    name: str
    first_per_hour: float
    second_per_hour: float
    hours: Column
    at_once: int = 1

    def draw(self, random: np.random.Generator, per_hour: float) -> Column:
        """The number of false accepts in each file."""
        return self.at_once * random.poisson(per_hour / self.at_once * self.hours).astype(np.float64)


PAIRS = (
    Audio("equal, 0.05/h, 40 × 1 h", 0.05, 0.05, np.ones(40)),
    Audio("equal, 0.2/h, 40 × 1 h", 0.2, 0.2, np.ones(40)),
    Audio("equal, 0.2/h, 60 of any length", 0.2, 0.2, 10 * SPREAD),
    Audio("equal, 0.2/h, by fives, 60 × 1 h", 0.2, 0.2, np.ones(60), 5),
    Audio("0.1 against 0, 40 × 1 h", 0.1, 0.0, np.ones(40)),
    Audio("0.2 against 0.05, 60 × 1 h", 0.2, 0.05, np.ones(60)),
    Audio("0.3 against 0.1, by fives, 100 × 1 h", 0.3, 0.1, np.ones(100), 5),
    Audio("0.2 against 0.1, 400 × 1 h", 0.2, 0.1, np.ones(400)),
)
ALONE = (
    Audio("0.5/h, 60 × 1 h", 0.5, 0, np.ones(60)),
    Audio("0.5/h, 60 of any length", 0.5, 0, SPREAD),
    Audio("3/h, 60 of any length", 3.0, 0, SPREAD),
    Audio("3/h, 50 short, 5 long", 3.0, 0, FEW_LONG),
    Audio("1/h, by fives, 60 × 1 h", 1.0, 0, np.ones(60), 5),
    Audio("1/h, by fives, 60 of any length", 1.0, 0, SPREAD, 5),
    Audio("1/h, by fives, 50 short, 5 long", 1.0, 0, FEW_LONG, 5),
)


def compared(audio: Audio) -> tuple[float, float]:
    """How often p is below 0.05, and how often the interval holds the truth."""
    random = np.random.default_rng(1)
    significant = held = 0
    for _ in range(RUNS):
        difference = wer_difference(
            audio.draw(random, audio.first_per_hour), audio.draw(random, audio.second_per_hour), audio.hours
        )
        assert difference is not None
        low, high = difference.interval
        significant += difference.p < 0.05
        held += low <= audio.first_per_hour - audio.second_per_hour <= high
    return significant / RUNS, held / RUNS


Clustering = tuple[float, Interval] | None
"""p, and the interval of the rate; None with fewer than two false accepts."""


def old_clustering(counts: Column, hours: Column) -> Clustering:
    """By Pearson's chi-square and a bootstrap alone."""
    if counts.sum() < 2:
        return None
    random, shares, total = np.random.default_rng(1), hours / hours.sum(), int(counts.sum())
    simulated = (random.multinomial(total, shares, 999) ** 2 / hours).sum(axis=1)
    p = (1 + int((simulated >= (counts**2 / hours).sum() * (1 - 1e-12)).sum())) / 1000
    resamples = random.integers(0, len(hours), (2000, len(hours)))
    low, high = np.percentile(counts[resamples].sum(axis=1) / hours[resamples].sum(axis=1), [2.5, 97.5])
    return p, (float(low), float(high))


def new_clustering(counts: Column, hours: Column) -> Clustering:
    result = clustering(counts, hours)
    return None if result is None else (result.p, result.interval)


def examined(audio: Audio, rule: Callable[[Column, Column], Clustering], runs: int) -> tuple[float, float, int]:
    """How often clusters are called, and the interval holds the truth; how often it is narrower than Garwood's."""
    random = np.random.default_rng(3)
    called = held = narrower = 0
    for _ in range(runs):
        counts = audio.draw(random, audio.first_per_hour)
        reported = garwood(int(counts.sum()), float(audio.hours.sum()))
        assert reported is not None
        result = rule(counts, audio.hours)
        if result is not None and result[0] < 0.05:
            _, (low, high) = result
            called += 1
            narrower += high - low < reported[1] - reported[0]
            reported = low, high
        held += reported[0] <= audio.first_per_hour <= reported[1]
    return called / runs, held / runs, narrower


def main() -> None:
    print(f"{'two systems on the same files':40} {'p < 0.05: old':>14} {'new':>6} {'held: old':>10} {'new':>6}")
    for audio in PAIRS:
        new_significant, new_held = compared(audio)
        usual, word_intervals.MAX_EXACT_UNITS = word_intervals.MAX_EXACT_UNITS, 0  # without an exact test
        old_significant, old_held = compared(audio)
        word_intervals.MAX_EXACT_UNITS = usual
        print(f"{audio.name:40} {old_significant:14.1%} {new_significant:6.1%} {old_held:10.1%} {new_held:6.1%}")
    heads = f"{'called: old':>14} {'new':>6} {'held: old':>10} {'new':>6} {'narrower: old':>14} new"
    print(f"\n{'clusters in one list':40} {heads}")
    for audio in ALONE:
        old_called, old_held, old_narrower = examined(audio, old_clustering, CLUSTER_RUNS)
        new_called, new_held, new_narrower = examined(audio, new_clustering, CLUSTER_RUNS)
        print(
            f"{audio.name:40} {old_called:14.1%} {new_called:6.1%} {old_held:10.1%} {new_held:6.1%} "
            f"{old_narrower:14} {new_narrower:3}"
        )


if __name__ == "__main__":
    main()
