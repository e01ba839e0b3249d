"""How often the interval of a category's share holds the share of all such queries, in subgroups of few queries.

python benchmarks/bench_subgroup_intervals.py [--runs N]            about two minutes

A run draws queries, each of which is said several times. It then estimates the share of correct responses, as `harness
categories` does for a subgroup. "often": a query has a usual answer, which nine of ten responses are; "at times": three
of five; "always": all; "mixed": each query has shares of its own (Dirichlet); "never": repetitions are independent.
queries × times: with "12, 1", queries are said 12 times and once in turn. Wilson's interval over responses, which takes
repetitions for further queries, is beside it. Ends with status 1 if an interval holds the share in fewer than 90 % of
runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice, product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizes import SMALLEST, sized

from harness.rating.figures.categories import counted_share
from harness.statistics.intervals import design_effect, wilson

MIN_HELD = 0.90
SHARES = {"60 % correct": (0.6, 0.15, 0.1, 0.08, 0.04, 0.02, 0.01), "90 % correct": (0.9, 0.05, 0.03, 0.02)}
QUERIES = (2, 3, 4, 5, 6, 8, 12, 24)
TIMES = {"3": (3,), "8": (8,), "20": (20,), "12, 1": (12, 1)}
Counts = NDArray[np.int64]


Draw = Callable[[np.random.Generator, NDArray[np.float64], list[int]], Counts]
"""Draws responses to queries that are said so many times each. Returns counts, categories × queries."""


def usual(alike: float) -> Draw:
    """Each query has a usual answer, which such a share of the responses are."""

    def draw(random: np.random.Generator, shares: NDArray[np.float64], times: list[int]) -> Counts:
        counts = np.zeros((len(shares), len(times)), np.int64)
        usual_answers = random.choice(len(shares), len(times), p=shares)
        for query, (answer, responses) in enumerate(zip(usual_answers, times, strict=True)):
            same = random.binomial(responses, alike)
            counts[answer, query] = same
            counts[:, query] += random.multinomial(responses - same, shares)
        return counts

    return draw


def draw_mixed(random: np.random.Generator, shares: NDArray[np.float64], times: list[int]) -> Counts:
    return np.array([random.multinomial(responses, random.dirichlet(shares)) for responses in times]).T


KINDS = {"often": usual(0.9), "at times": usual(0.6), "always": usual(1.0), "mixed": draw_mixed, "never": usual(0.0)}


@dataclass(frozen=True, slots=True)
class Held:
    """The shares of runs in which our interval holds the true share, and Wilson's; the mean width of ours."""

    ours: float
    wilson: float
    width: float


def simulate(draw: Draw, shares: NDArray[np.float64], times: list[int], runs: int) -> Held:
    random = np.random.default_rng(5)
    held = wilson_held = 0
    width = 0.0
    for _ in range(runs):
        counts = draw(random, shares, times)
        share = counted_share(counts[0].tolist(), times, design_effect(counts.tolist(), times))
        low, high = share.interval or (0.0, 1.0)
        held += low <= shares[0] <= high
        width += high - low
        low, high = wilson(share.count, share.total) or (0.0, 1.0)
        wilson_held += low <= shares[0] <= high
    return Held(held / runs, wilson_held / runs, width / runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=sized(400, 1))
    runs = parser.parse_args().runs
    print(f"held in % of {runs} runs (mean width, points); Wilson over responses behind the stroke")
    worst = 1.0
    for name, shares in SHARES.items():
        print(f"\n{name}\nqueries × times" + "".join(f"{kind:>18}" for kind in KINDS))
        for queries, (label, pattern) in product(QUERIES, TIMES.items()):
            times = list(islice(cycle(pattern), queries))
            results = [simulate(draw, np.array(shares), times, runs) for draw in KINDS.values()]
            worst = min(worst, *(held.ours for held in results))
            cells = [f"{100 * held.ours:5.1f} ({100 * held.width:2.0f}) / {100 * held.wilson:3.0f}" for held in results]
            print(f"{queries:7} × {label:<5}" + "".join(f"{cell:>18}" for cell in cells))
    print(f"\nthe worst: {worst:.1%}")
    return 0 if worst >= MIN_HELD or SMALLEST else 1


if __name__ == "__main__":
    sys.exit(main())
