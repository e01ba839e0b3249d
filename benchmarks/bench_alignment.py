"""Time to align reference and hypothesis, an utterance: ours, jiwer, rapidfuzz (a distance only), sclite as a process.

python benchmarks/bench_alignment.py [UTTERANCES]      200,000: some two minutes, most of them sclite's

All are given the same texts, already read; sclite reads them itself and prints its shortest report. Each is run in
turn, in several rounds; the figure is that of its quickest round, as wall clock and as processor time.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import transcript_corpus
import yardsticks
from sizes import sized
from timing import Times, quickest, quickest_program

sys.path.append(str(Path(__file__).parents[1]))

from rapidfuzz.distance import Levenshtein

from harness.transcripts.alignment import Alignments

ROUNDS = sized(5, 1)
SLOW_ROUNDS = sized(2, 1)
WERS = sized((0.12, 0.3, 0.6), (0.12,))
JIWER = """
import json, sys, time
import jiwer
references, hypotheses = (open(path, encoding="utf-8").read().split("\\n")[:-1] for path in sys.argv[1:3])
times = []
for _ in range(int(sys.argv[3])):
    began_s, cpu_began_s = time.perf_counter(), time.process_time()
    output = jiwer.process_words(references, hypotheses)
    times.append((time.perf_counter() - began_s, time.process_time() - cpu_began_s))
errors = output.substitutions + output.deletions + output.insertions
print(json.dumps([min(wall_s for wall_s, _ in times), min(cpu_s for _, cpu_s in times), errors]))
"""


def main(utterances: int) -> None:
    for wer in WERS:
        measure(utterances, wer)
    for sentences in sized((1000, 10_000), (100,)):
        conversation(sentences)


def measure(utterances: int, wer: float) -> None:
    """Prints the table of one corpus."""
    _, references, hypotheses = transcript_corpus.texts(utterances, 1, wer)
    equal = sum(map(str.__eq__, references, hypotheses)) / utterances
    aligned = Alignments(references, hypotheses)
    totals = aligned.columns.totals()
    with tempfile.TemporaryDirectory() as folder:
        jiwer, min_errors = by_jiwer(Path(folder), references, hypotheses)
        ours = quickest(lambda: Alignments(references, hypotheses), ROUNDS)
        rows = {
            "ours: counts of sclite's path": ours,
            "ours: all paths, after the counts": quickest(lambda: aligned.paths(range(utterances)), ROUNDS),
            "jiwer process_words": jiwer,
            "rapidfuzz distance where unequal": quickest(lambda: distances(references, hypotheses), ROUNDS),
            "sclite, the whole process": by_sclite(Path(folder), utterances, wer),
        }
    print(f"\n{utterances:,} utterances, {totals.words:,} words, {equal:.0%} without an error, WER {totals.wer:.2%}")
    print(f"errors: {totals.errors:,} on sclite's paths, {min_errors:,} at the least (jiwer)")
    print(f"{'µs an utterance':34s}{'wall':>9s}{'processor':>11s}{'wall / ours':>13s}{'processor / ours':>18s}")
    scale = 1e6 / utterances
    for name, times in rows.items():
        print(
            f"{name:34s}{times.wall_s * scale:9.2f}{times.cpu_s * scale:11.2f}"
            f"{times.wall_s / ours.wall_s:13.1f}{times.cpu_s / ours.cpu_s:18.1f}"
        )


def distances(references: list[str], hypotheses: list[str]) -> int:
    """The sum of sclite's weights (substitution 4, insertion and deletion 3) over all pairs that differ."""
    return sum(
        Levenshtein.distance(reference.split(" "), hypothesis.split(" "), weights=(3, 3, 4))
        for reference, hypothesis in zip(references, hypotheses, strict=True)
        if reference != hypothesis
    )


def by_jiwer(folder: Path, references: list[str], hypotheses: list[str]) -> tuple[Times, int]:
    """Runs jiwer in the yardsticks' environment. Returns its times without reading, and the number of errors."""
    paths = folder / "references", folder / "hypotheses"
    for path, texts in zip(paths, (references, hypotheses), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    wall_s, cpu_s, errors = json.loads(yardsticks.run(JIWER, *map(str, paths), str(SLOW_ROUNDS)))
    return Times(wall_s, cpu_s), errors


def by_sclite(folder: Path, utterances: int, wer: float) -> Times:
    """Times of sclite, reading and its report by speaker included."""
    paths = transcript_corpus.write(folder, utterances, 1, wer)
    return quickest_program([*transcript_corpus.sclite_command(*paths), "-s"], SLOW_ROUNDS)


def conversation(sentences: int) -> None:
    """Prints the times of one pair of long texts: 1,000 sentences are a conversation of an hour."""
    _, references, hypotheses = transcript_corpus.texts(sentences, 2, 0.2)
    reference, hypothesis = " ".join(references), " ".join(filter(None, hypotheses))
    counts_s = quickest(lambda: Alignments([reference], [hypothesis]), 2).wall_s
    path_s = quickest(lambda: Alignments([reference], [hypothesis]).paths([0]), 2).wall_s
    words = f"{len(reference.split()):,} and {len(hypothesis.split()):,} words"
    print(f"\none pair of {words}: counts {counts_s:.2f} s, with the path {path_s:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else sized(200_000, 500))
