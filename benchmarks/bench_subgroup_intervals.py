"""How often the interval of a category's share holds the share of all such queries, in subgroups of few queries.

python benchmarks/bench_subgroup_intervals.py [--runs N]            about two minutes

Queries are drawn, each is said several times, and the share of correct responses is asked for, as `harness categories`
does it for a subgroup. "often alike": a query has a usual answer, which nine of ten responses are; "at times": three of
five; "always": all; "mixed": each query has shares of its own (Dirichlet); "never": repetitions are independent.
queries × times: "12, 1" is said 12 times and once in turn. Wilson's interval over responses, which takes repetitions
for further queries, stands beside it. Ends with status 1 when an interval holds the share in fewer than 90 % of runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from itertools import cycle, islice
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


def usual(alike: float) -> Callable[[np.random.Generator, NDArray[np.float64], list[int]], Counts]:
    def drawn(random: np.random.Generator, shares: NDArray[np.float64], times: list[int]) -> Counts:
        counts = np.zeros((len(shares), len(times)), np.int64)
        for query, (answer, of) in enumerate(zip(random.choice(len(shares), len(times), p=shares), times, strict=True)):
            same = random.binomial(of, alike)
            counts[answer, query] = same
            counts[:, query] += random.multinomial(of - same, shares)
        return counts

    return drawn


def mixed(random: np.random.Generator, shares: NDArray[np.float64], times: list[int]) -> Counts:
    return np.array([random.multinomial(of, random.dirichlet(shares)) for of in times]).T


KINDS = {"often": usual(0.9), "at times": usual(0.6), "always": usual(1.0), "mixed": mixed, "never": usual(0.0)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=sized(400, 1))
    runs = parser.parse_args().runs
    print(f"held in % of {runs} runs (mean width, points); Wilson over responses behind the stroke")
    worst = 1.0
    for name, column in SHARES.items():
        shares = np.array(column)
        print(f"\n{name}\nqueries × times" + "".join(f"{kind:>18}" for kind in KINDS))
        for queries in QUERIES:
            for label, pattern in TIMES.items():
                times = list(islice(cycle(pattern), queries))
                cells = []
                for draw in KINDS.values():
                    random = np.random.default_rng(5)
                    held = naive = 0
                    width = 0.0
                    for _ in range(runs):
                        counts = draw(random, shares, times)
                        found = counted_share(counts[0].tolist(), times, design_effect(counts.tolist(), times))
                        low, high = found.interval or (0.0, 1.0)
                        held += low <= shares[0] <= high
                        width += high - low
                        low, high = wilson(found.count, found.total) or (0.0, 1.0)
                        naive += low <= shares[0] <= high
                    worst = min(worst, held / runs)
                    cells.append(f"{100 * held / runs:5.1f} ({100 * width / runs:2.0f}) / {100 * naive / runs:3.0f}")
                print(f"{queries:7} × {label:<5}" + "".join(f"{cell:>18}" for cell in cells))
    print(f"\nthe worst: {worst:.1%}")
    return 0 if worst >= MIN_HELD or SMALLEST else 1


if __name__ == "__main__":
    sys.exit(main())
