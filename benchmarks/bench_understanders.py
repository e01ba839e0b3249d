"""Understanders on the generated corpus: SFA and processor time, beside a yardstick in the same run.

python benchmarks/bench_understanders.py [TRAIN [EPOCHS]]      1,500 and 7: some ten minutes of one processor

The yardstick of SFA looks values up that it has seen, longest first, and gives each text the intents of the training
text that shares most words with it; the yardstick of processor time is the understander `crf`.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from sizes import sized

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
    made = generate(grammars, SEED, {"train": train, "dev": HELD_OUT, "test": TEST})
    splits = [_split(made, name) for name in ("train", "dev", "test")]
    print(f"{train:,} generated utterances to train on, {HELD_OUT} held out, {TEST:,} to score on, seed {SEED}")
    started = time.process_time()
    right = looked_up(splits[0].utterances, splits[2].utterances)
    spent = time.process_time() - started
    print(f"{'':14s}{'SFA':>8s}{'95 %':>14s}{'/ lookup':>10s}{'EMR':>8s}{'slot F1':>9s}{'CPU s':>9s}{'/ crf':>8s}"
          f"{'CPU s/1,000':>13s}")  # fmt: skip
    low, high = wilson(right, TEST) or (0, 0)
    print(f"{'lookup':14s}{100 * right / TEST:8.1f}{100 * low:7.1f}–{100 * high:.1f}{1:10.1f}{'':17s}{spent:9.1f}")
    of_crf: ContenderRow | None = None
    for contender in (Contender("crf"), Contender("transformer", (("epochs", str(epochs)),))):
        try:
            row = bench(
                contender, (splits[0], splits[1], splits[2]), SEED, lambda line: print(f"  {line}", file=sys.stderr)
            )
        except PluginError as error:
            print(f"{contender.name}: {error}")
            continue
        of_crf = of_crf or row
        show(row, of_crf, right / TEST)


def show(row: ContenderRow, of_crf: ContenderRow, lookup: float) -> None:
    found = {figure: (value or 0, interval or (0, 0)) for figure, value, interval in row.figures}
    sfa, (low, high) = found[Metric.SFA]
    cpu, least = row.train_cpu_s or 0, of_crf.train_cpu_s or 1
    print(f"{row.name:14s}{100 * sfa:8.1f}{100 * low:7.1f}–{100 * high:.1f}{sfa / max(lookup, 1e-9):10.1f}"
          f"{100 * found[Metric.EMR][0]:8.1f}{100 * found[Metric.SLOT_F1][0]:9.1f}"
          f"{cpu:9.1f}{cpu / least:8.1f}{row.predict_cpu_s or 0:13.2f}", flush=True)  # fmt: skip


def looked_up(train: tuple[Utterance, ...], test: tuple[Utterance, ...]) -> int:
    """How many frames of the test utterances a table of values and the nearest text get right."""
    concepts: dict[tuple[str, ...], Counter[str]] = {}
    for one in train:
        for it in chunks(one.tags or (), Chunking.CONLLEVAL):
            concepts.setdefault(one.words[it.start : it.end], Counter())[it.concept] += 1
    longest = max(map(len, concepts), default=0)
    known = [(set(one.words), one.intents) for one in train]
    right = 0
    for one in test:
        words = set(one.words)
        _, intents = max(known, key=lambda other: len(words & other[0]) / len(words | other[0]))
        right += intents == one.intents and _tags(one.words, concepts, longest) == one.tags
    return right


def _tags(words: tuple[str, ...], concepts: dict[tuple[str, ...], Counter[str]], longest: int) -> tuple[str, ...]:
    tags: list[str] = []
    while len(tags) < len(words):
        at = len(tags)
        for length in range(min(longest, len(words) - at), 0, -1):
            if found := concepts.get(words[at : at + length]):
                concept = found.most_common(1)[0][0]
                tags += [f"B-{concept}", *[f"I-{concept}"] * (length - 1)]
                break
        else:
            tags.append("O")
    return tuple(tags)


def _split(made: Corpus, name: str) -> Corpus:
    return Corpus(made.path, tuple(one for one in made.utterances if dict(one.groups)["split"] == name))


if __name__ == "__main__":
    main(*(int(one) for one in (sys.argv[1:] + sized(["1500", "7"], ["60", "1"])[len(sys.argv) - 1 :])))
