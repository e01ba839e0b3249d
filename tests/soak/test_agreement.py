"""The promise of the intervals of agreement, over tables of simulated raters whose confusions are known."""

import numpy as np
import pytest

from harness.statistics.agreement import agreement
from tests.unit.statistics.simulations import (
    CATEGORIES,
    confusion_matrix,
    drawn_labels,
    prevalences,
    true_raw_and_alpha,
    truths,
)

RUNS = 1000


@pytest.mark.soak
@pytest.mark.parametrize(
    ("rights", "items", "min_share"),
    [
        ((0.9, 0.8), 60, 0.93),
        ((0.9, 0.8), 300, 0.93),
        ((0.95, 0.9, 0.7), 30, 0.92),
        ((0.95, 0.9, 0.7), 60, 0.92),
        ((0.95, 0.9, 0.7), 300, 0.93),
        ((0.6, 0.6, 0.6, 0.6), 100, 0.92),
    ],
    ids=str,
)
def test_intervals_keep_the_true_agreement(rights: tuple[float, ...], items: int, min_share: float) -> None:
    random = np.random.default_rng(31)
    matrices = [confusion_matrix(right) for right in rights]
    truth = true_raw_and_alpha(matrices, prevalences())
    covered = np.zeros(2)
    for _ in range(RUNS):
        estimate = agreement(drawn_labels(truths(items, random), matrices, random), CATEGORIES, resamples=1000)
        for index, (figure, true) in enumerate(zip((estimate.raw, estimate.alpha), truth, strict=True)):
            assert figure.interval is not None
            covered[index] += figure.interval[0] <= true <= figure.interval[1]
    assert (covered >= min_share * RUNS).all(), f"raw {covered[0] / RUNS:.1%}, alpha {covered[1] / RUNS:.1%}"
