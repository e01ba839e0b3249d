"""How often the share that still shows memory at the recommended wait is above the bound that is printed beside it.

python benchmarks/bench_memory_bound.py [RUNS]      200 runs: about two minutes

"old" is the bound that earlier versions printed, on all pairs from the recommended wait on. It is a bound on the mean
over this and all longer waits, and was read as one at this wait. The wait is always chosen by the same pairs. All
columns are per cent of all runs; "advised" are the runs that recommend a wait at all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

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


class Design(NamedTuple):
    """Waits in equal ratios, and the number of pairs at each."""

    shortest_s: int
    longest_s: int
    waits: int
    pairs: int


DESIGNS = (
    Design(2, 32, 5, 3), Design(1, 60, 8, 3), Design(1, 60, 8, 6),
    Design(1, 60, 12, 10), Design(1, 60, 20, 2), Design(1, 60, 60, 1),
)  # fmt: skip


def exceeded(curve: Curve, design: Design, runs: int) -> tuple[float, list[float]]:
    """The share of runs that recommend a wait; the shares above the old bound, the new one, and that of the surer wait.

    A run without any pair that shows memory counts as one without a recommendation.
    """
    random = np.random.default_rng(7)
    waits_s = np.repeat(np.round(np.geomspace(design.shortest_s, design.longest_s, design.waits), 1), design.pairs)
    recommended = above_old = above_new = above_surer = 0
    for _ in range(runs):
        shown = random.random(len(waits_s)) < curve(waits_s)
        pairs = [Pair(float(wait_s), bool(is_shown)) for wait_s, is_shown in zip(waits_s, shown, strict=True)]
        length = memory_length(pairs)
        assert length is not None
        wait = find_forgetting_wait(pairs, length)
        if wait is None or not shown.any():
            continue
        recommended += 1
        true_share = float(curve(np.array([wait.wait_s]))[0])
        # One-sided, hence the confidence of an interval with twice the risk.
        old_interval = clopper_pearson(wait.left.count, wait.left.total, 2 * CONFIDENCE - 1)
        assert old_interval is not None
        above_old += true_share > old_interval[1]
        above_new += true_share > wait.at_most
        if wait.surer is not None:
            surer_s, surer_bound = wait.surer
            above_surer += float(curve(np.array([surer_s]))[0]) > surer_bound
    return recommended / runs, [above_old / runs, above_new / runs, above_surer / runs]


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else sized(200, 1)
    print(f"{runs} runs each. advised: a wait is recommended; old, new, surer: its share is above the bound\n")
    print(f"{'true curve':22} {'waits × pairs':>14} {'advised':>7} {'old':>7} {'new':>7} {'surer':>7}")
    worst = [0.0, 0.0, 0.0]
    for name, curve in CURVES.items():
        for design in DESIGNS:
            recommended, above = exceeded(curve, design, runs)
            worst = list(map(max, worst, above))
            cells = " ".join(f"{share:7.1%}" for share in above)
            print(f"{name:22} {f'{design.waits} × {design.pairs}':>14} {recommended:7.0%} {cells}", flush=True)
    print(f"{'worst':45} " + " ".join(f"{share:7.1%}" for share in worst))


if __name__ == "__main__":
    main()
