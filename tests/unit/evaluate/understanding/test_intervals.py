"""Intervals of figures: of what they are, and how often they hold what is true."""

from __future__ import annotations

import random

import numpy as np
import pytest

from harness.evaluate.understanding.columns import Figure, basis, columns
from harness.evaluate.understanding.intervals import intervals
from harness.metrics.intervals import wilson
from harness.metrics.understanding.counts import FrameCounts, total
from harness.metrics.understanding.figures import FrameFigures, figures
from harness.metrics.understanding.rule import Rule
from harness.metrics.understanding.zero_division import ONE, SEED, ZERO, ZeroDivision
from tests.unit.metrics.understanding.random_frames import counted, pairs

RULE = Rule(spoken=True)


def counts_of(seed: int, utterances: int) -> list[FrameCounts]:
    return [counted([pair], RULE) for pair in pairs(random.Random(seed), utterances)]


def value(found: FrameFigures, figure: Figure) -> float | None:
    slots = found.valued if figure.value.endswith("with_values") else found.slots
    match figure:
        case Figure.ACCURACY:
            return found.intents.accuracy
        case Figure.EMR:
            return found.intents.exact.value
        case Figure.SAMPLES_F1:
            return found.intents.samples.f1
        case Figure.MACRO_F1:
            return found.intents.macro.f1
        case Figure.MICRO_F1:
            return found.intents.micro.f1
    if slots is None:
        return None
    match figure:
        case Figure.SLOT_F1 | Figure.VALUED_SLOT_F1:
            return slots.micro.f1
        case Figure.F1MH | Figure.VALUED_F1MH:
            return slots.concept_sets.f1
        case Figure.CER | Figure.VALUED_CER:
            return slots.cer
    return slots.frames.value


@pytest.mark.parametrize("zero", [ZERO, SEED, ONE])
@pytest.mark.parametrize("utterances", [1, 2, 30, 400])
def test_columns_have_the_figures_of_counts(zero: ZeroDivision, utterances: int) -> None:
    counts = counts_of(utterances, utterances)
    declared = ("annulation", "never seen")
    found = columns([counts], basis([counts], zero, declared)).found()
    expected = figures(total(counts), zero, declared)
    for figure in Figure:
        of = value(expected, figure)
        assert found[figure].tolist() == pytest.approx([np.nan if of is None else of], nan_ok=True), figure


def test_samples_have_the_figures_of_the_utterances_they_are_of() -> None:
    # The figures of a sample do not depend on whether utterances share a row.
    counts = counts_of(1, 60)
    made = columns([counts * 3], basis([counts * 3], ZERO, None))
    assert len(made.number) < 100
    assert made.utterances == 180
    drawn = made.resampled(400, 1)
    for figure, of in made.found().items():
        assert np.mean(drawn[figure]) == pytest.approx(of[0], abs=0.02)


def test_shares_have_wilsons_interval() -> None:
    counts = counts_of(2, 150)
    exact = total(counts).intents.exact
    assert intervals(counts)[Figure.EMR] == wilson(exact.count, exact.total)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    population = counts_of(5, 2_000)
    truth = columns([population], basis([population], ZERO, None)).found()
    source = random.Random(3)
    held = dict.fromkeys(Figure, 0)
    for seed in range(80):
        found = intervals([source.choice(population) for _ in range(100)], draws=200, seed=seed)
        for figure, interval in found.items():
            assert interval is not None
            held[figure] += interval[0] <= truth[figure][0] <= interval[1]
    # 95 % of 80 is 76. Fewer than 68 would be one in a thousand.
    assert all(68 <= times <= 80 for times in held.values()), held
    assert sum(held.values()) < 80 * len(held)


def test_the_same_seed_gives_the_same_interval() -> None:
    counts = counts_of(8, 50)
    assert intervals(counts, seed=4) == intervals(counts, seed=4)
    assert intervals(counts, seed=4)[Figure.CER] != intervals(counts, seed=5)[Figure.CER]


def test_what_cannot_be_drawn_has_no_interval() -> None:
    counts = counts_of(8, 50)
    assert set(intervals([]).values()) == {None}
    assert intervals(counts[:9])[Figure.CER] is None
    assert intervals(counts[:9])[Figure.EMR] is not None
    assert intervals(counts[:10])[Figure.CER] is not None
    right = [counted([(gold, gold)]) for gold, _ in pairs(random.Random(0), 40)]
    found = intervals(right)
    assert found[Figure.SLOT_F1] is None
    assert found[Figure.EMR] == wilson(40, 40)
    assert found[Figure.VALUED_CER] is None
