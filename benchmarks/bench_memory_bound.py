"""How often the share that still shows memory at the recommended wait is above the bound that is printed beside it.

python benchmarks/bench_memory_bound.py [RUNS]      200 runs: about two minutes

Old is the bound that was printed before: on the pairs from the recommended wait on, all together. It is a bound on the
mean over this and all longer waits, and was read as one at this wait. Both are counted after the wait was chosen by the
same pairs, in per cent of all runs; "told" are the runs that recommend a wait at all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from sizes import sized

from harness.session.figures.memory import Floats, Pair, find_forgetting_wait, memory_length
from harness.statistics.intervals import CONFIDENCE, clopper_pearson

Curve = Callable[[Floats], Floats]
CURVES: dict[str, Curve] = {
    "forgets at 10 s": lambda t: (t < 10) * 1.0,
    "logistic, spread 0.3": lambda t: 1 / (1 + (t / 10) ** (1 / 0.3)),
    "logistic, spread 0.7": lambda t: 1 / (1 + (t / 10) ** (1 / 0.7)),
    "logistic, spread 1.5": lambda t: 1 / (1 + (t / 10) ** (1 / 1.5)),
    "exponential, 14 s": lambda t: np.exp(-t / 14),
    "linear to 0 at 40 s": lambda t: np.clip(1 - t / 40, 0, 1),
    "5 % never forget": lambda t: np.where(t < 8, 0.97, 0.05),
    "20 % never forget": lambda t: np.where(t < 8, 0.97, 0.2),
    "30 % until 20 s": lambda t: np.where(t < 5, 0.95, np.where(t < 20, 0.3, 0.0)),
}
DESIGNS = ((2, 32, 5, 3), (1, 60, 8, 3), (1, 60, 8, 6), (1, 60, 12, 10), (1, 60, 20, 2), (1, 60, 60, 1))
"""Shortest and longest wait (s), how many in equal ratios, pairs of each."""


def exceeded(curve: Curve, design: tuple[int, int, int, int], runs: int) -> tuple[float, float, float, float]:
    """Shares of runs: told; above the old bound; above the new one; above that of the surer wait."""
    shortest, longest, count, repeat = design
    random = np.random.default_rng(7)
    waits = np.repeat(np.round(np.geomspace(shortest, longest, count), 1), repeat)
    told = old = new = surer = 0
    for _ in range(runs):
        shown = random.random(len(waits)) < curve(waits)
        pairs = [Pair(float(wait_s), bool(one)) for wait_s, one in zip(waits, shown, strict=True)]
        length = memory_length(pairs)
        assert length is not None
        found = find_forgetting_wait(pairs, length)
        if found is None or not shown.any():
            continue
        told += 1
        share = float(curve(np.array([found.wait_s]))[0])
        before = clopper_pearson(found.left.count, found.left.total, 2 * CONFIDENCE - 1)
        assert before is not None
        old += share > before[1]
        new += share > found.at_most
        if found.surer is not None:
            surer += float(curve(np.array([found.surer[0]]))[0]) > found.surer[1]
    return told / runs, old / runs, new / runs, surer / runs


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else sized(200, 1)
    print(f"{runs} runs each. told: a wait is recommended; old, new, surer: its share is above the bound\n")
    print(f"{'true curve':22} {'waits × pairs':>14} {'told':>6} {'old':>7} {'new':>7} {'surer':>7}")
    worst = [0.0, 0.0, 0.0]
    for name, curve in CURVES.items():
        for design in DESIGNS:
            told, *over = exceeded(curve, design, runs)
            worst = [max(pair) for pair in zip(worst, over, strict=True)]
            cells = " ".join(f"{one:7.1%}" for one in over)
            print(f"{name:22} {f'{design[2]} × {design[3]}':>14} {told:6.0%} {cells}", flush=True)
    print(f"{'worst':44} " + " ".join(f"{one:7.1%}" for one in worst))


if __name__ == "__main__":
    main()
