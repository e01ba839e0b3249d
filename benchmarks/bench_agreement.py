"""How long agreement and the model of Dawid and Skene take, alpha beside the `krippendorff` library.

python benchmarks/bench_agreement.py          under a minute
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import krippendorff
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizes import sized

from harness.statistics.agreement import (
    MISSING,
    Labels,
    agreement,
    columns_of,
    dawid_skene,
    figures_of,
    label_counts,
    leave_one_out,
    pairs,
)
from tests.unit.statistics.simulations import CATEGORIES, confusion_matrix, said, truths

SIZES = sized(((3, 300), (5, 2000), (20, 10_000)), ((3, 30),))
ROUNDS = sized(3, 1)


def best_s(run: Callable[[], object]) -> float:
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        run()
        took.append(time.process_time() - began)
    return min(took)


def alpha(labels: Labels) -> float:
    return float(figures_of(columns_of(label_counts(labels, CATEGORIES)).sum(axis=0))[1])


def main() -> None:
    random = np.random.default_rng(1)
    print("processor seconds, the best of", ROUNDS)
    print("raters  items     alpha   library  ratio  agreement  pairs     model    others")
    for raters, items in SIZES:
        matrices = [confusion_matrix(right) for right in np.linspace(0.95, 0.6, raters)]
        labels = said(truths(items, random), matrices, random, missing=0.2)
        theirs = np.where(labels == MISSING, np.nan, labels.astype(float))
        ours_s = best_s(lambda labels=labels: alpha(labels))
        theirs_s = best_s(lambda theirs=theirs: krippendorff.alpha(theirs, level_of_measurement="nominal"))
        rest = (
            best_s(lambda labels=labels: agreement(labels, CATEGORIES)),
            best_s(lambda labels=labels: pairs(labels, CATEGORIES)),
            best_s(lambda labels=labels: dawid_skene(labels, CATEGORIES)),
            best_s(lambda labels=labels: leave_one_out(labels)),
        )
        figures = "  ".join(f"{one:8.3f}" for one in rest)
        print(f"{raters:6}  {items:6}  {ours_s:8.4f}  {theirs_s:8.4f}  {theirs_s / ours_s:5.1f}  {figures}")


if __name__ == "__main__":
    main()
