"""Figures of many samples at once are the figures that counts have."""

from __future__ import annotations

import random

import numpy as np
import pytest

from harness.understanding.comparison import Metric, basis, columns
from harness.understanding.counts import FrameCounts, Rule, total
from harness.understanding.figures import ONE, SEED, ZERO, FrameFigures, ZeroDivision, figures
from tests.unit.understanding.arithmetic.random_frames import counted, pairs

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
