"""How long agreement and the model of Dawid and Skene take, alpha beside the `krippendorff` library.

python benchmarks/bench_agreement.py          under a minute
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import krippendorff
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from sizes import sized
from timing import quickest

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
from tests.unit.statistics.simulations import CATEGORIES, confusion_matrix, drawn_labels, truths

SIZES = sized(((3, 300), (5, 2000), (20, 10_000)), ((3, 30),))
ROUNDS = sized(3, 1)


def alpha(labels: Labels) -> float:
    """Krippendorff's alpha alone, by the functions that `agreement` calls."""
    return float(figures_of(columns_of(label_counts(labels, CATEGORIES)).sum(axis=0))[1])


def main() -> None:
    random = np.random.default_rng(1)
    print("processor seconds, the best of", ROUNDS)
    print("raters  items     alpha   library  ratio  agreement  pairs     model    others")
    for raters, items in SIZES:
        matrices = [confusion_matrix(right) for right in np.linspace(0.95, 0.6, raters)]
        labels = drawn_labels(truths(items, random), matrices, random, missing=0.2)
        reliability_data = np.where(labels == MISSING, np.nan, labels.astype(float))
        ours_s = quickest(partial(alpha, labels), ROUNDS).cpu_s
        library = partial(krippendorff.alpha, reliability_data, level_of_measurement="nominal")
        library_s = quickest(library, ROUNDS).cpu_s
        others_s = (
            quickest(work, ROUNDS).cpu_s
            for work in (
                partial(agreement, labels, CATEGORIES),
                partial(pairs, labels, CATEGORIES),
                partial(dawid_skene, labels, CATEGORIES),
                partial(leave_one_out, labels),
            )
        )
        columns = "  ".join(f"{cpu_s:8.3f}" for cpu_s in others_s)
        print(f"{raters:6}  {items:6}  {ours_s:8.4f}  {library_s:8.4f}  {library_s / ours_s:5.1f}  {columns}")


if __name__ == "__main__":
    main()
