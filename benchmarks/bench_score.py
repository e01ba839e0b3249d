"""Time of a whole scoring, from the command to its end: `harness score`, sclite, and a script with jiwer.

python benchmarks/bench_score.py [UTTERANCES]      200,000: some three minutes, most of them sclite's
python benchmarks/bench_score.py spoken            `--normalise spoken` only: beside verbatim, of what recognisers wrote

All read the same two trn files. Ours and sclite print their summary by speaker, jiwer's script the word error rate.
Each is run in turn; the figure is that of the quickest round, as wall clock and as processor time of the process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

import transcript_corpus
import yardsticks
from sizes import sized
from timing import HARNESS, Times, quickest_program, timed

from harness.model.choices import TranscriptFormat
from harness.model.transcript import Normalisation
from harness.transcripts.files.transcripts import read_transcripts
from harness.transcripts.scoring import score
from harness.transcripts.words import WordRules

ASR = Path(__file__).parents[1] / "tests" / "data" / "asr"
PAIRS = sized(7, 1)
ROUNDS = sized(5, 1)
SLOW_ROUNDS = sized(2, 1)
WERS = sized((0.03, 0.12, 0.3), (0.12,))
OURS = [*HARNESS, "score"]
JIWER = """
import sys
import jiwer
texts = []
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as lines:
        texts.append([line.rpartition("(")[0].strip().lower() for line in lines])
print(jiwer.process_words(*texts).wer)
"""


def main(utterances: int) -> None:
    jiwer = [str(yardsticks.python()), "-c", JIWER]
    for wer in WERS:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), utterances, wer, jiwer)
    start = quickest_program([*OURS, "--help"], ROUNDS)
    print(f"\nof ours, to start and print its help: wall {start.wall_s:.2f} s, processor {start.cpu_s:.2f} s")


def spoken() -> None:
    """Prints what `--normalise spoken` costs on tests/data/asr, in this process: no start-up is in the times.

    Both normalisations take turns, so that load that comes and goes is in both.
    """
    print(f"\nscoring of real English, {PAIRS} pairs of runs; median")
    references = read_transcripts(ASR / "reference.trn", TranscriptFormat.TRN)
    for system in ("whisper", "pocketsphinx"):
        hypotheses = read_transcripts(ASR / f"{system}.trn", TranscriptFormat.TRN)
        rules = WordRules(Normalisation.VERBATIM), WordRules(Normalisation.SPOKEN)
        for word_rules in rules:
            score(references, hypotheses, word_rules)  # reads the tables of spoken English, once per process
        runs = [[timed(partial(score, references, hypotheses, each))[1] for each in rules] for _ in range(PAIRS)]
        verbatim_s, spoken_s = map(median, zip(*runs, strict=True))
        print(
            f"{system}, {len(references):,} utterances: verbatim {verbatim_s:.3f} s, spoken {spoken_s:.3f} s: "
            f"{spoken_s / verbatim_s:.1f} ×"
        )


def measure(folder: Path, utterances: int, wer: float, jiwer: list[str]) -> None:
    """Prints the table of one corpus. jiwer: the command of its script."""
    reference, hypothesis = transcript_corpus.write(folder, utterances, 1, wer)
    ours = [*OURS, "-r", str(reference), "-H", str(hypothesis), "--like-sclite"]
    sclite = transcript_corpus.sclite_command(reference, hypothesis)
    rows: dict[str, Times] = {
        "harness score": quickest_program(ours, ROUNDS),
        "sclite -o sum": quickest_program(sclite, SLOW_ROUNDS),
        "jiwer, a script": quickest_program([*jiwer, str(reference), str(hypothesis)], SLOW_ROUNDS),
        "harness score --json": quickest_program([*ours, "--json", os.devnull], SLOW_ROUNDS),
        "harness score --confusions": quickest_program([*ours, "--confusions"], SLOW_ROUNDS),
        "harness score --alignments": quickest_program([*ours, "--alignments"], SLOW_ROUNDS),
    }
    our_totals, sclite_totals = totals(ours, r"Sum / avg +(.*)"), totals(sclite, r"Sum/Avg *\|(.*)")
    same = "the same in both" if our_totals == sclite_totals else f"NOT THE SAME: {(our_totals, sclite_totals)}"
    print(f"\n{utterances:,} utterances, WER {our_totals[-2]} %; totals are {same}")
    print(f"{'seconds':28s}{'wall':>8s}{'processor':>11s}{'wall / ours':>13s}{'processor / ours':>18s}")
    base = rows["harness score"]
    for name, times in rows.items():
        print(
            f"{name:28s}{times.wall_s:8.2f}{times.cpu_s:11.2f}"
            f"{times.wall_s / base.wall_s:13.1f}{times.cpu_s / base.cpu_s:18.1f}"
        )


def totals(command: list[str], row: str) -> list[str]:
    """Runs a command, and returns the numbers in the row of totals of its summary; none if it prints no such row."""
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    match = re.search(row, printed)
    return re.findall(r"[\d.]+", match[1]) if match else []


if __name__ == "__main__":
    if sys.argv[1:] != ["spoken"]:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else sized(200_000, 500))
    spoken()
