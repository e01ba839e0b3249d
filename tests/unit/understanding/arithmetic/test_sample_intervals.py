"""Intervals of ratios over utterances, from how many of them count what."""

import random
from collections import Counter

import pytest

from harness.statistics.intervals import wilson
from harness.understanding.counts import FrameCounts
from harness.understanding.figures import (
    SEED,
    Interval,
    accuracy_interval,
    figures,
    pooled_spans,
    ratio_interval,
    samples_spans,
)
from tests.unit.understanding.arithmetic.random_frames import counted, pairs


def f1(counts: dict[tuple[int, int, int], int]) -> Interval | None:
    return ratio_interval(counts, lambda one: 2 * one[0], lambda one: one[1] + one[2])


def drawn(draw: random.Random, number: int) -> dict[tuple[int, int, int], int]:
    """Utterances with four slots that are right with three chances of four, all of an utterance alike or not."""
    rows: Counter[tuple[int, int, int]] = Counter()
    for _ in range(number):
        wrong = draw.choice((0, 0, 2, 4)) if draw.random() < 0.5 else sum(draw.random() < 0.25 for _ in range(4))
        rows[4 - wrong, 4, 4] += 1
    return dict(rows)


def test_an_interval_has_the_truth_in_it_as_often_as_it_says() -> None:
    draw = random.Random(1)
    true = 0.5 * (1 - 1.5 / 4) + 0.5 * 0.75
    found = [f1(drawn(draw, 120)) for _ in range(300)]
    held = sum(one is not None and one[0] <= true <= one[1] for one in found)
    assert 0.90 <= held / 300 <= 0.98


def test_the_order_of_counting_changes_nothing() -> None:
    counts = drawn(random.Random(2), 200)
    other = dict(sorted(counts.items(), reverse=True))
    assert list(other) != sorted(counts)
    assert f1(counts) == f1(other) == f1(dict(counts))


def test_where_nothing_varies_utterances_stand_for_what_is_counted() -> None:
    assert f1({(2, 2, 2): 30, (0, 0, 0): 5}) == wilson(30, 30)
    assert f1({(0, 2, 2): 30}) == wilson(0, 30)
    assert ratio_interval({(3, 3): 9}, lambda one: one[0], lambda one: one[1], None) is None
    assert ratio_interval({(0, 3): 9}, lambda one: one[0], lambda one: one[1], None) == wilson(0, 9)


@pytest.mark.parametrize("counts", [{}, {(0, 0, 0): 9}, {(3, 4, 4): 1}, {(3, 4, 4): 1, (0, 0, 0): 9}])
def test_one_utterance_that_counts_says_nothing_of_others(counts: dict[tuple[int, int, int], int]) -> None:
    assert f1(counts) is None


def test_an_error_rate_may_go_above_one() -> None:
    found = ratio_interval({(6, 2): 20, (1, 2): 20}, lambda one: one[0], lambda one: one[1], None)
    assert found is not None
    assert found[0] < 1.75 < found[1]
    assert found[1] > 2


def intents_of(counts: FrameCounts) -> list[float | None]:
    found = figures(counts, SEED).intents
    averages = [of for one in (found.samples, found.micro) for of in (one.precision, one.recall, one.f1)]
    return [found.accuracy, *averages]


def test_intervals_of_intents_have_the_figures_of_all_utterances_in_them() -> None:
    draw = random.Random(3)
    population = pairs(random.Random(5), 2_000)
    truth = intents_of(counted(population))
    held = [0] * len(truth)
    for _ in range(60):
        overlaps = counted([draw.choice(population) for _ in range(100)]).intents.overlaps
        spans = [accuracy_interval(overlaps, SEED), *samples_spans(overlaps, SEED), *pooled_spans(overlaps)]
        for at, (value, span) in enumerate(zip(truth, spans, strict=True)):
            assert value is not None
            assert span is not None
            held[at] += span[0] <= value <= span[1]
    # 95 % of 60 is 57. Fewer than 50 would be one in a thousand.
    assert all(times >= 50 for times in held), held
    assert sum(held) < 60 * len(held)
