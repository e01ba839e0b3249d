"""Figures of many samples at once are the figures that counts have."""

from __future__ import annotations

import random

import numpy as np
import pytest

from harness.model.understanding import Chunking, Corpus, Utterance
from harness.statistics.significance import mcnemar
from harness.understanding.comparison import SHARES, Metric, basis, columns, compare, differences
from harness.understanding.counts import FrameCounts, Rule, total
from harness.understanding.figures import ONE, SEED, ZERO, FrameFigures, ZeroDivision, figures
from harness.understanding.scoring import FrameScoring, score
from tests.unit.understanding.random_frames import counted, near, pairs, utterance

RULE = Rule(spoken=True)


def counts_of(seed: int, utterances: int) -> list[FrameCounts]:
    return [counted([pair], RULE) for pair in pairs(random.Random(seed), utterances)]


def value(found: FrameFigures, figure: Metric) -> float | None:
    slots = found.valued if figure.value.endswith("with_values") else found.slots
    match figure:
        case Metric.ACCURACY:
            return found.intents.accuracy
        case Metric.EMR:
            return found.intents.exact.value
        case Metric.SAMPLES_F1:
            return found.intents.samples.f1
        case Metric.MACRO_F1:
            return found.intents.macro.f1
        case Metric.MICRO_F1:
            return found.intents.micro.f1
    if slots is None:
        return None
    match figure:
        case Metric.SLOT_F1 | Metric.VALUED_SLOT_F1:
            return slots.micro.f1
        case Metric.F1MH | Metric.VALUED_F1MH:
            return slots.concept_sets.f1
        case Metric.CER | Metric.VALUED_CER:
            return slots.cer
    return slots.frames.value


@pytest.mark.parametrize("zero", [ZERO, SEED, ONE])
@pytest.mark.parametrize("utterances", [1, 2, 30, 400])
def test_columns_have_the_figures_of_counts(zero: ZeroDivision, utterances: int) -> None:
    counts = counts_of(utterances, utterances)
    declared = ("annulation", "never seen")
    found = columns([counts], basis([counts], zero, declared)).found()
    expected = figures(total(counts), zero, declared)
    for figure in Metric:
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


NOT_VALUED = [figure for figure in Metric if "values" not in figure.value]


def corpus(seed: int, utterances: int) -> Corpus:
    source = random.Random(seed)
    return Corpus("gold", tuple(utterance(source, str(n), source.randint(1, 8), wild=False) for n in range(utterances)))


def system(gold: Corpus, seed: int, right: float) -> FrameScoring:
    source = random.Random(seed)
    said = tuple(one if source.random() < right else near(source, one) for one in gold.utterances)
    return score(gold, Corpus(f"system {seed}", said), Rule())


def counts(scoring: FrameScoring) -> list[FrameCounts]:
    return [frame.counts for frame in scoring.frames]


def test_a_better_system_is_told_from_a_worse_one() -> None:
    gold = corpus(1, 400)
    found = compare(system(gold, 1, 0.8), system(gold, 2, 0.3))
    for figure in NOT_VALUED:
        one = found.differences[figure]
        assert one.difference is not None
        assert one.interval is not None
        assert one.p is not None
        assert one.p < 0.01, figure
        assert one.interval[0] < one.difference < one.interval[1]
        # Errors are fewer, all other figures higher.
        assert (one.interval[1] < 0) if figure is Metric.CER else (one.interval[0] > 0)


def test_turned_round_the_difference_has_the_other_sign() -> None:
    gold = corpus(2, 150)
    first, second = system(gold, 1, 0.6), system(gold, 2, 0.5)
    there, back = compare(first, second), compare(second, first)
    for figure in NOT_VALUED:
        one, other = there.differences[figure], back.differences[figure]
        assert one.difference == pytest.approx(-(other.difference or 0))
        if figure in SHARES:
            assert one.p == other.p
            assert one.interval is not None
            assert one.interval == pytest.approx(tuple(-end for end in reversed(other.interval or ())))


def test_a_system_does_not_differ_from_itself() -> None:
    found = compare(system(corpus(3, 100), 1, 0.5), system(corpus(3, 100), 1, 0.5))
    for figure in NOT_VALUED:
        one = found.differences[figure]
        assert (one.difference, one.p) == (0, 1)
        assert figure in SHARES or one.interval is None


def test_equal_systems_seldom_seem_to_differ() -> None:
    seldom = 0
    for seed in range(50):
        gold = corpus(seed, 60)
        found = differences(counts(system(gold, 2 * seed, 0.5)), counts(system(gold, 2 * seed + 1, 0.5)), draws=199)
        p = found[Metric.SLOT_F1].p
        assert p is not None
        seldom += p <= 0.05
    # A test of level 5 % says so in 2.5 of 50; more than 8 would be one in a thousand.
    assert seldom <= 8


def test_shares_have_mcnemars_p() -> None:
    gold = corpus(5, 120)
    first, second = system(gold, 1, 0.6), system(gold, 2, 0.4)
    right = [[frame.counts.slots.frames_placed.count for frame in scoring.frames] for scoring in (first, second)]
    only_first = sum(one > other for one, other in zip(*right, strict=True))
    only_second = sum(one < other for one, other in zip(*right, strict=True))
    found = compare(first, second).differences[Metric.SFA]
    assert found.p == mcnemar(only_first, only_second)
    assert found.difference == pytest.approx((only_first - only_second) / 120)


def test_swapping_keeps_the_sum_of_both() -> None:
    gold = corpus(6, 80)
    pair = counts(system(gold, 1, 0.6)), counts(system(gold, 2, 0.4))
    made = columns(pair, basis(pair, ZERO, None))
    found, swapped = made.found(), made.swapped(50, 0)
    for figure in SHARES[:2]:
        assert swapped[figure].sum(axis=0) == pytest.approx(found[figure].sum())
        assert len(set(swapped[figure][0].tolist())) > 5


def test_only_utterances_that_both_have_are_compared() -> None:
    gold = corpus(7, 10)
    first, second = (
        score(gold, Corpus(name, tuple(one for one in gold.utterances if int(one.id) in ids)), Rule())
        for name, ids in (("one", {0, 1, 2, 3, 4, 5}), ("two", {4, 5, 6}))
    )
    found = compare(first, second)
    assert found.utterances == ("4", "5")
    assert (found.only_first, found.only_second, found.neither) == (4, 1, 3)
    assert (found.first, found.second) == ("one", "two")


def test_two_rules_are_not_compared() -> None:
    gold = corpus(8, 3)
    strict = score(gold, gold, Rule(chunking=Chunking.IOB2))
    with pytest.raises(ValueError, match="frames were read by"):
        compare(strict, score(gold, gold, Rule()))


def test_over_nothing_there_is_no_difference() -> None:
    found = compare(score(Corpus("g", ()), Corpus("a", ()), Rule()), score(Corpus("g", ()), Corpus("b", ()), Rule()))
    assert {one.difference for one in found.differences.values()} == {None}
    bare = Corpus("g", (Utterance("1", intents=("a",)),))
    one = compare(score(bare, bare, Rule()), score(bare, bare, Rule())).differences
    assert one[Metric.CER].difference is None
    assert one[Metric.EMR].difference == 0
