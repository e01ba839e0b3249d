"""Understanders on the generated corpus: SFA and processor time, beside a yardstick in the same run.

python benchmarks/bench_understanders.py [TRAIN [EPOCHS]]      1,500 and 7: some ten minutes of one processor

The yardstick of SFA looks up values that it has seen, longest first, and gives each text the intents of the training
text that shares most words with it. The yardstick of processor time is the understander `crf`.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from sizes import sized
from timing import timed

from harness.model.errors import PluginError
from harness.model.understanding import Chunking, Corpus, Utterance
from harness.statistics.intervals import wilson
from harness.understanding.comparison import Metric
from harness.understanding.counts import chunks
from harness.understanding.files.grammar_file import load_grammars
from harness.understanding.grammar import generate
from harness.understanding.models.training import Contender, ContenderRow, bench

GRAMMARS = Path(__file__).parent.parent / "scenarios" / "understanding"
SEED = 1
HELD_OUT, TEST = sized(200, 20), sized(1000, 20)


def main(train: int, epochs: int) -> None:
    grammars = load_grammars(sorted(GRAMMARS.glob("*.yaml")))
    corpus = generate(grammars, SEED, {"train": train, "dev": HELD_OUT, "test": TEST})
    train_split, dev_split, test_split = (_split(corpus, name) for name in ("train", "dev", "test"))
    print(f"{train:,} generated utterances to train on, {HELD_OUT} held out, {TEST:,} to score on, seed {SEED}")
    right, lookup_s = timed(lambda: count_right_by_lookup(train_split.utterances, test_split.utterances))
    print(f"{'':14s}{'SFA':>8s}{'95 %':>14s}{'/ lookup':>10s}{'EMR':>8s}{'slot F1':>9s}{'CPU s':>9s}{'/ crf':>8s}"
          f"{'CPU s/1,000':>13s}")  # fmt: skip
    low, high = wilson(right, TEST) or (0, 0)
    print(f"{'lookup':14s}{100 * right / TEST:8.1f}{100 * low:7.1f}–{100 * high:.1f}{1:10.1f}{'':17s}{lookup_s:9.1f}")
    crf_row: ContenderRow | None = None
    for contender in (Contender("crf"), Contender("transformer", (("epochs", str(epochs)),))):
        try:
            row = bench(
                contender, (train_split, dev_split, test_split), SEED, lambda line: print(f"  {line}", file=sys.stderr)
            )
        except PluginError as error:
            print(f"{contender.name}: {error}")
            continue
        crf_row = crf_row or row
        print_row(row, crf_row, right / TEST)


def print_row(row: ContenderRow, crf_row: ContenderRow, lookup_sfa: float) -> None:
    results = {metric: (value or 0, interval or (0, 0)) for metric, value, interval in row.figures}
    sfa, (low, high) = results[Metric.SFA]
    emr, _ = results[Metric.EMR]
    slot_f1, _ = results[Metric.SLOT_F1]
    cpu_s, crf_cpu_s = row.train_cpu_s or 0, crf_row.train_cpu_s or 1
    print(f"{row.name:14s}{100 * sfa:8.1f}{100 * low:7.1f}–{100 * high:.1f}{sfa / max(lookup_sfa, 1e-9):10.1f}"
          f"{100 * emr:8.1f}{100 * slot_f1:9.1f}"
          f"{cpu_s:9.1f}{cpu_s / crf_cpu_s:8.1f}{row.predict_cpu_s or 0:13.2f}", flush=True)  # fmt: skip


def count_right_by_lookup(train: tuple[Utterance, ...], test: tuple[Utterance, ...]) -> int:
    """How many frames of the test utterances a table of values and the nearest text get right."""
    concepts: dict[tuple[str, ...], Counter[str]] = {}
    for utterance in train:
        for chunk in chunks(utterance.tags or (), Chunking.CONLLEVAL):
            concepts.setdefault(utterance.words[chunk.start : chunk.end], Counter())[chunk.concept] += 1
    max_words = max(map(len, concepts), default=0)
    word_sets = [(set(utterance.words), utterance.intents) for utterance in train]
    right = 0
    for utterance in test:
        words = set(utterance.words)
        _, intents = max(word_sets, key=lambda known: len(words & known[0]) / len(words | known[0]))
        right += intents == utterance.intents and _tags(utterance.words, concepts, max_words) == utterance.tags
    return right


def _tags(words: tuple[str, ...], concepts: dict[tuple[str, ...], Counter[str]], max_words: int) -> tuple[str, ...]:
    """Tags of the longest values that are known, from the left; each has its most frequent concept."""
    tags: list[str] = []
    while len(tags) < len(words):
        first = len(tags)
        for length in range(min(max_words, len(words) - first), 0, -1):
            if counts := concepts.get(words[first : first + length]):
                concept = counts.most_common(1)[0][0]
                tags += [f"B-{concept}", *[f"I-{concept}"] * (length - 1)]
                break
        else:
            tags.append("O")
    return tuple(tags)


def _split(corpus: Corpus, name: str) -> Corpus:
    return Corpus(
        corpus.path, tuple(utterance for utterance in corpus.utterances if dict(utterance.groups)["split"] == name)
    )


if __name__ == "__main__":
    train, epochs = sized((1500, 7), (60, 1))
    arguments = [int(argument) for argument in sys.argv[1:]]
    main(*arguments, *(train, epochs)[len(arguments) :])
