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
import warnings
from functools import partial

from seqeval.metrics.sequence_labeling import precision_recall_fscore_support as seqeval_figures
from sizes import sized
from sklearn.metrics import accuracy_score, jaccard_score, precision_recall_fscore_support
from sklearn.preprocessing import MultiLabelBinarizer
from timing import timed

from harness.model.understanding import Corpus, Utterance
from harness.understanding.counts import Rule
from harness.understanding.figures import frame_figures
from harness.understanding.reports.score_text import SystemReport
from harness.understanding.scoring import FrameScoring, count_system, score

ROUNDS = sized(3, 1)
INTENTS = [f"intent_{n}" for n in range(20)]
CONCEPTS = [f"concept_{n}" for n in range(30)]


def main(utterances: int) -> None:
    ours_s, theirs_s, intervals_s = [], [], []
    same = True
    for seed in range(ROUNDS):
        gold, predicted = corpora(utterances, seed)
        (scoring, our_metrics), our_cpu_s = timed(partial(score_ours, gold, predicted))
        their_metrics, their_cpu_s = timed(partial(score_theirs, gold, predicted))
        _, rows_cpu_s = timed(partial(report_rows, scoring))
        same = same and all(abs(ours - theirs) < 1e-9 for ours, theirs in zip(our_metrics, their_metrics, strict=True))
        ours_s.append(our_cpu_s)
        theirs_s.append(their_cpu_s)
        intervals_s.append(rows_cpu_s)
    print(f"{utterances:,} utterances; the figures are {'the same in both' if same else 'NOT THE SAME'}")
    print(f"{'utterances a second':34s}{utterances / min(ours_s):12,.0f}")
    print(f"{'scikit-learn and seqeval':34s}{utterances / min(theirs_s):12,.0f}")
    print(f"{'ours / theirs':34s}{min(theirs_s) / min(ours_s):12.2f}")
    print(f"{'seconds for all 95 % intervals':34s}{min(intervals_s):12.2f}")


def score_ours(gold: Corpus, predicted: Corpus) -> tuple[FrameScoring, tuple[float, ...]]:
    """The scoring, and what is compared with the libraries: accuracy, EMR, macro F1 of intents, micro F1 of slots."""
    scoring = score(gold, predicted, Rule())
    figures = frame_figures(scoring.totals, labels=INTENTS)
    intents = figures.intents
    metrics = (intents.accuracy, intents.exact.value, intents.macro.f1, figures.slots.micro.f1)
    return scoring, tuple(metric or 0.0 for metric in metrics)


def report_rows(scoring: FrameScoring) -> object:
    """All metrics with their intervals, as the report has them."""
    return SystemReport(count_system([scoring]), labels=tuple(INTENTS)).rows


def score_theirs(gold: Corpus, predicted: Corpus) -> tuple[float, ...]:
    """The metrics of `score_ours` by scikit-learn and seqeval, which also compute the averages that ours has."""
    binarizer = MultiLabelBinarizer(classes=INTENTS)
    gold_intents, predicted_intents = (
        binarizer.fit_transform([utterance.intents or () for utterance in corpus.utterances])
        for corpus in (gold, predicted)
    )
    _, (_, _, macro_f1, _), _ = (
        precision_recall_fscore_support(gold_intents, predicted_intents, average=average, zero_division=0)
        for average in ("samples", "macro", "micro")
    )
    tags = [[list(utterance.tags or ()) for utterance in corpus.utterances] for corpus in (gold, predicted)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, _, slot_f1, _ = seqeval_figures(*tags, average="micro", zero_division=0)
    accuracy = jaccard_score(gold_intents, predicted_intents, average="samples", zero_division=0)
    return float(accuracy), float(accuracy_score(gold_intents, predicted_intents)), float(macro_f1), float(slot_f1)


def corpora(utterances: int, seed: int) -> tuple[Corpus, Corpus]:
    """Random gold utterances, and predictions of which four in five are right."""
    source = random.Random(seed)
    gold, predicted = [], []
    for number in range(utterances):
        words = tuple(f"w{n}" for n in range(source.randint(3, 14)))
        right = Utterance(str(number), words, random_intents(source), random_tags(source, len(words)))
        other = Utterance(str(number), words, random_intents(source), random_tags(source, len(words)))
        gold.append(right)
        predicted.append(right if source.random() < 0.8 else other)
    return Corpus("gold", tuple(gold)), Corpus("predicted", tuple(predicted))


def random_intents(source: random.Random) -> tuple[str, ...]:
    return tuple(sorted(source.sample(INTENTS, 1 if source.random() < 0.85 else 2)))


def random_tags(source: random.Random, words: int) -> tuple[str, ...]:
    tags: list[str] = []
    while len(tags) < words:
        if source.random() < 0.6:
            tags.append("O")
        else:
            concept = source.choice(CONCEPTS)
            tags += [f"B-{concept}", *[f"I-{concept}"] * source.randint(0, 2)]
    return tuple(tags[:words])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else sized(10_000, 50))
