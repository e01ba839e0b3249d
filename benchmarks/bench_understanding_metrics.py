"""Utterances a second that are scored in intents and slots, beside scikit-learn with seqeval on the same data.

python benchmarks/bench_understanding_metrics.py [UTTERANCES]      10,000: under a minute

Both start from intents and tags in memory and end with the same figures: EMR, Godbole & Sarawagi's accuracy, precision,
recall and F1 over samples, macro and micro, and slot F1. Ours counts per concept, concept errors, F1mh, SFA and
confusions besides, which the others do not. The quickest of several rounds counts, each on utterances of its own, so
that nothing is known from the round before.
"""

from __future__ import annotations

import random
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from seqeval.metrics.sequence_labeling import precision_recall_fscore_support as seqeval_figures
from sizes import sized
from sklearn.metrics import accuracy_score, jaccard_score, precision_recall_fscore_support
from sklearn.preprocessing import MultiLabelBinarizer

from harness.model.understanding import Corpus, Utterance
from harness.understanding.counts import Rule
from harness.understanding.figures import frame_figures
from harness.understanding.reports.score_text import SystemReport
from harness.understanding.scoring import FrameScoring, counted, score

ROUNDS = sized(3, 1)
Result = TypeVar("Result")
INTENTS = [f"intent_{n}" for n in range(20)]
CONCEPTS = [f"concept_{n}" for n in range(30)]


def main(utterances: int) -> None:
    ours, theirs, spans = [], [], []
    same = True
    for seed in range(ROUNDS):
        sides = corpora(utterances, seed)
        (scoring, found), ours_s = timed(partial(scored, *sides))
        figures_, theirs_s = timed(partial(yardstick, *sides))
        _, spans_s = timed(partial(rows, scoring))
        same = same and all(abs(one - other) < 1e-9 for one, other in zip(found, figures_, strict=True))
        ours.append(ours_s)
        theirs.append(theirs_s)
        spans.append(spans_s)
    print(f"{utterances:,} utterances; the figures are {'the same in both' if same else 'NOT THE SAME'}")
    print(f"{'utterances a second':34s}{utterances / min(ours):12,.0f}")
    print(f"{'scikit-learn and seqeval':34s}{utterances / min(theirs):12,.0f}")
    print(f"{'ours / theirs':34s}{min(theirs) / min(ours):12.2f}")
    print(f"{'seconds for all 95 % intervals':34s}{min(spans):12.2f}")


def scored(gold: Corpus, predicted: Corpus) -> tuple[FrameScoring, tuple[float, ...]]:
    scoring = score(gold, predicted, Rule())
    found = frame_figures(scoring.totals, labels=INTENTS)
    intents_ = found.intents
    return scoring, tuple(
        one or 0.0 for one in (intents_.accuracy, intents_.exact.value, intents_.macro.f1, found.slots.micro.f1)
    )


def rows(scoring: FrameScoring) -> object:
    """All figures with their intervals, as the report has them."""
    return SystemReport(counted([scoring]), labels=tuple(INTENTS)).rows


def yardstick(gold: Corpus, predicted: Corpus) -> tuple[float, ...]:
    binarizer = MultiLabelBinarizer(classes=INTENTS)
    of, said = (binarizer.fit_transform([one.intents or () for one in side.utterances]) for side in (gold, predicted))
    macro = 0.0
    for average in ("samples", "macro", "micro"):
        found = precision_recall_fscore_support(of, said, average=average, zero_division=0)
        macro = found[2] if average == "macro" else macro
    tags = [[list(one.tags or ()) for one in side.utterances] for side in (gold, predicted)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slots = seqeval_figures(*tags, average="micro", zero_division=0)
    accuracy = jaccard_score(of, said, average="samples", zero_division=0)
    return float(accuracy), float(accuracy_score(of, said)), float(macro), float(slots[2])


def corpora(utterances: int, seed: int = 1) -> tuple[Corpus, Corpus]:
    source = random.Random(seed)
    gold, predicted = [], []
    for number in range(utterances):
        words = tuple(f"w{n}" for n in range(source.randint(3, 14)))
        one = Utterance(str(number), words, intents(source), tags(source, len(words)))
        gold.append(one)
        other = Utterance(str(number), words, intents(source), tags(source, len(words)))
        predicted.append(one if source.random() < 0.8 else other)
    return Corpus("gold", tuple(gold)), Corpus("predicted", tuple(predicted))


def intents(source: random.Random) -> tuple[str, ...]:
    return tuple(sorted(source.sample(INTENTS, 1 if source.random() < 0.85 else 2)))


def tags(source: random.Random, words: int) -> tuple[str, ...]:
    found: list[str] = []
    while len(found) < words:
        if source.random() < 0.6:
            found.append("O")
        else:
            concept = source.choice(CONCEPTS)
            found += [f"B-{concept}", *[f"I-{concept}"] * source.randint(0, 2)]
    return tuple(found[:words])


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    """What it gives, and its processor seconds."""
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else sized(10_000, 50))
