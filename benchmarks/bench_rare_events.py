"""How often figures on rare events keep their promise: false accepts compared over files, and whether they cluster.

python benchmarks/bench_rare_events.py      about three minutes

Old is the rule before: Student's t whatever the counts, and Pearson's dispersion with the interval of its bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sizes import sized

from harness.statistics import word_intervals
from harness.statistics.intervals import garwood
from harness.statistics.significance import clustering
from harness.statistics.word_intervals import wer_difference

RUNS = sized(2000, 10)
CLUSTER_RUNS = sized(300, 2)
Column = NDArray[np.float64]
SPREAD = np.random.default_rng(0).lognormal(-2, 1.5, 60)
FEW_LONG = np.concatenate([np.full(50, 0.01), np.full(5, 2.0)])


@dataclass(frozen=True, slots=True)
class Audio:
    """Two systems on the same files. first, second: false accepts an hour. at_once: how many come together."""

    what: str
    first: float
    second: float
    hours: Column
    at_once: int = 1

    def draw(self, random: np.random.Generator, rate: float) -> Column:
        return self.at_once * random.poisson(rate / self.at_once * self.hours).astype(np.float64)


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
        found = wer_difference(audio.draw(random, audio.first), audio.draw(random, audio.second), audio.hours)
        assert found is not None
        significant += found.p < 0.05
        held += found.interval[0] <= audio.first - audio.second <= found.interval[1]
    return significant / RUNS, held / RUNS


def old_clustering(counts: Column, hours: Column) -> tuple[float, tuple[float, float]] | None:
    """p and interval by Pearson's chi-square and a bootstrap alone."""
    if counts.sum() < 2:
        return None
    random, share, total = np.random.default_rng(1), hours / hours.sum(), int(counts.sum())
    drawn = (random.multinomial(total, share, 999) ** 2 / hours).sum(axis=1)
    p = (1 + int((drawn >= (counts**2 / hours).sum() * (1 - 1e-12)).sum())) / 1000
    at = random.integers(0, len(hours), (2000, len(hours)))
    low, high = np.percentile(counts[at].sum(axis=1) / hours[at].sum(axis=1), [2.5, 97.5])
    return p, (float(low), float(high))


def new_clustering(counts: Column, hours: Column) -> tuple[float, tuple[float, float]] | None:
    found = clustering(counts, hours)
    return None if found is None else (found.p, found.interval)


Rule = Callable[[Column, Column], tuple[float, tuple[float, float]] | None]


def clustered(audio: Audio, rule: Rule, runs: int) -> tuple[float, float, int]:
    """How often clusters are called, and the interval holds the truth; how often it is narrower than Garwood's."""
    random = np.random.default_rng(3)
    called = held = narrower = 0
    for _ in range(runs):
        counts = audio.draw(random, audio.first)
        found, reported = rule(counts, audio.hours), garwood(int(counts.sum()), float(audio.hours.sum()))
        assert reported is not None
        if found is not None and found[0] < 0.05:
            called += 1
            narrower += found[1][1] - found[1][0] < reported[1] - reported[0]
            reported = found[1]
        held += reported[0] <= audio.first <= reported[1]
    return called / runs, held / runs, narrower


def main() -> None:
    print(f"{'two systems on the same files':40} {'p < 0.05: old':>14} {'new':>6} {'held: old':>10} {'new':>6}")
    for audio in PAIRS:
        new = compared(audio)
        most, word_intervals.MAX_EXACT_UNITS = word_intervals.MAX_EXACT_UNITS, 0
        old = compared(audio)
        word_intervals.MAX_EXACT_UNITS = most
        print(f"{audio.what:40} {old[0]:14.1%} {new[0]:6.1%} {old[1]:10.1%} {new[1]:6.1%}")
    heads = f"{'called: old':>14} {'new':>6} {'held: old':>10} {'new':>6} {'narrower: old':>14} new"
    print(f"\n{'clusters in one list':40} {heads}")
    for audio in ALONE:
        old_rule, new_rule = (clustered(audio, rule, CLUSTER_RUNS) for rule in (old_clustering, new_clustering))
        print(
            f"{audio.what:40} {old_rule[0]:14.1%} {new_rule[0]:6.1%} {old_rule[1]:10.1%} {new_rule[1]:6.1%} "
            f"{old_rule[2]:14} {new_rule[2]:3}"
        )


if __name__ == "__main__":
    main()
