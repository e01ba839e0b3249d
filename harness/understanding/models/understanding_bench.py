"""Training and scoring of understanders on one corpus: a row of figures and of processor seconds for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.model.errors import InputError, Place
from harness.model.understanding import Corpus
from harness.understanding.arithmetic.counts import total
from harness.understanding.arithmetic.figures import figures
from harness.understanding.arithmetic.frame import count_frame
from harness.understanding.arithmetic.sample_intervals import (
    Interval,
    accuracy_interval,
    cer_interval,
    pooled_f1_interval,
)
from harness.understanding.arithmetic.zero_division import ZERO
from harness.understanding.models.held_out import RULE, predicted
from harness.understanding.models.training import train
from harness.understanding.scoring.columns import Figure
from harness.understanding.scoring.counted import samples

FIGURES = (Figure.ACCURACY, Figure.EMR, Figure.SLOT_F1, Figure.F1MH, Figure.CER, Figure.SFA)
THOUSAND = 1000


@dataclass(frozen=True, slots=True)
class Contender:
    """An understander that is to be tried. settings: (name, value)."""

    name: str
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class BenchRow:
    """figures: figure → its value (0–1, a CER may be more) and its 95 % interval, None over nothing.

    train_cpu_s: processor seconds of training; predict_cpu_s: of a thousand utterances. from_elsewhere: a yardstick,
    which was not measured in this run.
    """

    name: str
    utterances: int
    figures: tuple[tuple[Figure, float | None, Interval | None], ...]
    train_cpu_s: float | None
    predict_cpu_s: float | None
    from_elsewhere: bool = False


def bench(
    contender: Contender,
    data: tuple[Corpus, Corpus | None, Corpus],
    seed: int,
    tell: Callable[[str], None],
) -> BenchRow:
    """Trains on the first corpus, with the second held out, and scores on the third; InputError, PluginError."""
    learned, held_out, test = data
    gold = test.utterances
    if not gold or any(one.intents is None or one.tags is None for one in gold):
        what = "the test utterances are not all annotated with intents and slots" if gold else "there is no utterance"
        raise InputError(what, place=Place(test.path), remedy="Annotate them, or name another folder")
    trained = train(contender.name, contender.settings, seed, learned, held_out, tell)
    started = time.process_time()
    predictions = trained.understander.predict([one.words for one in gold])
    spent = time.process_time() - started
    counts = [count_frame(one, said, RULE) for one, said in zip(gold, predicted(gold, predictions), strict=True)]
    sums, rows = total(counts), samples(counts)
    found, overlaps = figures(sums), sums.intents.overlaps
    intents, slots = found.intents, found.slots
    values: dict[Figure, tuple[float | None, Interval | None]] = {
        Figure.ACCURACY: (intents.accuracy, accuracy_interval(overlaps, ZERO)),
        Figure.EMR: (intents.exact.value, intents.exact.interval),
        Figure.SLOT_F1: (slots.micro.f1, pooled_f1_interval(rows.chunks)),
        Figure.F1MH: (slots.concept_sets.f1, pooled_f1_interval(rows.concepts)),
        Figure.CER: (slots.cer, cer_interval(rows.edits)),
        Figure.SFA: (slots.frames.value, slots.frames.interval),
    }
    return BenchRow(
        contender.name,
        len(gold),
        tuple((figure, *values[figure]) for figure in FIGURES),
        trained.facts.cpu_s,
        spent / len(gold) * THOUSAND,
    )


def _known(name: str, intent: float, slot: float, sfa: float, cpu_s: float | None) -> BenchRow:
    figures_ = (
        (Figure.EMR, intent / 100, None),
        (Figure.SLOT_F1, slot / 100, None),
        (Figure.SFA, sfa / 100, None),
    )
    return BenchRow(name, 0, figures_, cpu_s, None, from_elsewhere=True)


YARDSTICKS: dict[str, Sequence[BenchRow]] = {
    "atis": (
        _known("CRF + TF-IDF", 95.1, 93.3, 79.4, 90),
        _known("BiLSTM from scratch", 96.9, 94.8, 85.0, 195),
        _known("MiniLM, fine-tuned", 97.8, 95.4, 87.4, 610),
        _known("JointBERT, published", 97.5, 96.1, 88.2, None),
    ),
    "snips": (
        _known("CRF + TF-IDF", 98.1, 93.7, 83.7, 90),
        _known("MiniLM, fine-tuned", 98.6, 94.6, 87.3, 610),
        _known("JointBERT, published", 98.6, 97.0, 92.8, None),
    ),
}
"""Intents, slot F1 and SFA, in percent, and processor seconds of training, on the corpus of that name.

What papers call intent accuracy takes `a#b` for a class of its own, so it stands beside our EMR.
Sources: spec understanding (Joint intent and slot model); Chen, Zhuo & Wang 2019 (JointBERT).
"""
