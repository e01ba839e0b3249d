"""Time to align reference and hypothesis, an utterance: ours, jiwer, rapidfuzz (a distance only), sclite as a process.

python benchmarks/bench_alignment.py [UTTERANCES]      200,000: some two minutes, most of them sclite's

All are given the same texts, already read; sclite reads them itself and prints its shortest report. Each is run in
turn, in several rounds; the figure is that of its quickest round, as wall clock and as processor time.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import transcript_corpus
import yardsticks
from program_times import timed
from sizes import sized

sys.path.append(str(Path(__file__).parents[1]))

from rapidfuzz.distance import Levenshtein

from harness.transcripts.alignment import Alignments

SCLITE = os.environ.get("SCLITE", "/usr/lib/sctk/bin/sclite")
ROUNDS = sized(5, 1)
SLOW_ROUNDS = sized(2, 1)
WERS = sized((0.12, 0.3, 0.6), (0.12,))
JIWER = """
import json, sys, time
import jiwer
references, hypotheses = (open(path, encoding="utf-8").read().split("\\n")[:-1] for path in sys.argv[1:3])
took = []
for _ in range(int(sys.argv[3])):
    began = time.perf_counter(), time.process_time()
    found = jiwer.process_words(references, hypotheses)
    took.append([time.perf_counter() - began[0], time.process_time() - began[1]])
errors = found.substitutions + found.deletions + found.insertions
print(json.dumps([min(wall for wall, _ in took), min(cpu for _, cpu in took), errors]))
"""


def main(utterances: int) -> None:
    for wer in WERS:
        measure(utterances, wer)
    for sentences in sized((1000, 10_000), (100,)):
        conversation(sentences)


def measure(utterances: int, wer: float) -> None:
    _, references, hypotheses = transcript_corpus.texts(utterances, 1, wer)
    equal = sum(map(str.__eq__, references, hypotheses)) / utterances
    aligned = Alignments(references, hypotheses)
    totals = aligned.columns.totals()
    with tempfile.TemporaryDirectory() as folder:
        jiwer, least = by_jiwer(Path(folder), references, hypotheses)
        rows = {
            "ours: counts of sclite's path": best(lambda: Alignments(references, hypotheses), ROUNDS),
            "ours: all paths, after the counts": best(lambda: aligned.paths(range(utterances)), ROUNDS),
            "jiwer process_words": jiwer,
            "rapidfuzz distance where unequal": best(lambda: distances(references, hypotheses), ROUNDS),
            "sclite, the whole process": by_sclite(Path(folder), utterances, wer),
        }
    print(f"\n{utterances:,} utterances, {totals.words:,} words, {equal:.0%} without an error, WER {totals.wer:.2%}")
    print(f"errors: {totals.errors:,} on sclite's paths, {least:,} at the least (jiwer)")
    print(f"{'µs an utterance':34s}{'wall':>9s}{'processor':>11s}{'wall / ours':>13s}{'processor / ours':>18s}")
    ours = rows["ours: counts of sclite's path"]
    each = 1e6 / utterances
    for name, (wall, cpu) in rows.items():
        print(f"{name:34s}{wall * each:9.2f}{cpu * each:11.2f}{wall / ours[0]:13.1f}{cpu / ours[1]:18.1f}")


def best(what: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Wall clock and processor seconds of the quickest round."""
    took = []
    for _ in range(rounds):
        began = time.perf_counter(), time.process_time()
        what()
        took.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    return min(wall for wall, _ in took), min(cpu for _, cpu in took)


def distances(references: list[str], hypotheses: list[str]) -> int:
    return sum(
        Levenshtein.distance(of.split(" "), said.split(" "), weights=(3, 3, 4))
        for of, said in zip(references, hypotheses, strict=True)
        if of != said
    )


def by_jiwer(folder: Path, references: list[str], hypotheses: list[str]) -> tuple[tuple[float, float], int]:
    paths = folder / "references", folder / "hypotheses"
    for path, texts in zip(paths, (references, hypotheses), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    wall, cpu, errors = json.loads(yardsticks.run(JIWER, *map(str, paths), str(SLOW_ROUNDS)))
    return (wall, cpu), errors


def by_sclite(folder: Path, utterances: int, wer: float) -> tuple[float, float]:
    """Reading included, and its report by speaker."""
    of, said = transcript_corpus.write(folder, utterances, 1, wer)
    files = ["-r", str(of), "trn", "-h", str(said), "trn"]
    return timed([SCLITE, *files, "-i", "spu_id", "-s", "-f", "0", "-o", "sum", "stdout"], SLOW_ROUNDS)


def conversation(sentences: int) -> None:
    """One pair of texts: 1,000 sentences are a conversation of an hour."""
    _, references, hypotheses = transcript_corpus.texts(sentences, 2, 0.2)
    of, said = " ".join(references), " ".join(filter(None, hypotheses))
    wall, _ = best(lambda: Alignments([of], [said]), 2)
    with_path, _ = best(lambda: Alignments([of], [said]).paths([0]), 2)
    sides = len(of.split()), len(said.split())
    print(f"\none pair of {sides[0]:,} and {sides[1]:,} words: counts {wall:.2f} s, with the path {with_path:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else sized(200_000, 500))
