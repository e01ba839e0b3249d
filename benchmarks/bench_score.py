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
import time
from pathlib import Path
from statistics import median

import transcript_corpus
import yardsticks
from program_times import timed
from sizes import sized

from harness.model.choices import TranscriptFormat
from harness.model.transcript import Normalisation
from harness.transcripts.files.transcripts import read_transcripts
from harness.transcripts.scoring import score
from harness.transcripts.words import WordRules

SCLITE = os.environ.get("SCLITE", "/usr/lib/sctk/bin/sclite")
ASR = Path(__file__).parents[1] / "tests" / "data" / "asr"
PAIRS = sized(7, 1)
ROUNDS = sized(5, 1)
SLOW_ROUNDS = sized(2, 1)
WERS = sized((0.03, 0.12, 0.3), (0.12,))
OURS = [sys.executable, "-c", "from harness.cli import main; main()", "score"]
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
    start = timed([*OURS, "--help"], ROUNDS)
    print(f"\nof ours, to start and print its help: wall {start[0]:.2f} s, processor {start[1]:.2f} s")


def spoken() -> None:
    """Of tests/data/asr, in this process: a pair in turn as it is, without time to start."""
    print(f"\nscoring of real English, {PAIRS} pairs of runs; median")
    for system in ("whisper", "pocketsphinx"):
        of, heard = (read_transcripts(ASR / f"{name}.trn", TranscriptFormat.TRN) for name in ("reference", system))
        took: dict[Normalisation, list[float]] = {Normalisation.VERBATIM: [], Normalisation.SPOKEN: []}
        for normalisation in took:
            score(of, heard, WordRules(normalisation))  # what is looked up is there then
        for _ in range(PAIRS):
            for normalisation, seconds in took.items():
                began = time.process_time()
                score(of, heard, WordRules(normalisation))
                seconds.append(time.process_time() - began)
        verbatim, said = map(median, took.values())
        print(
            f"{system}, {len(of):,} utterances: verbatim {verbatim:.3f} s, spoken {said:.3f} s: {said / verbatim:.1f} ×"
        )


def measure(folder: Path, utterances: int, wer: float, jiwer: list[str]) -> None:
    of, said = map(str, transcript_corpus.write(folder, utterances, 1, wer))
    ours = [*OURS, "-r", of, "-H", said, "--like-sclite"]
    sclite = [SCLITE, "-r", of, "trn", "-h", said, "trn", "-i", "spu_id", "-f", "0", "-o", "sum", "stdout"]
    rows = {
        "harness score": timed(ours, ROUNDS),
        "sclite -o sum": timed(sclite, SLOW_ROUNDS),
        "jiwer, a script": timed([*jiwer, of, said], SLOW_ROUNDS),
        "harness score --json": timed([*ours, "--json", os.devnull], SLOW_ROUNDS),
        "harness score --confusions": timed([*ours, "--confusions"], SLOW_ROUNDS),
        "harness score --alignments": timed([*ours, "--alignments"], SLOW_ROUNDS),
    }
    figures = totals(ours, r"Sum / avg +(.*)"), totals(sclite, r"Sum/Avg *\|(.*)")
    same = "the same in both" if figures[0] == figures[1] else f"NOT THE SAME: {figures}"
    print(f"\n{utterances:,} utterances, WER {figures[0][-2]} %; totals are {same}")
    print(f"{'seconds':28s}{'wall':>8s}{'processor':>11s}{'wall / ours':>13s}{'processor / ours':>18s}")
    least = rows["harness score"]
    for name, (wall, cpu) in rows.items():
        print(f"{name:28s}{wall:8.2f}{cpu:11.2f}{wall / least[0]:13.1f}{cpu / least[1]:18.1f}")


def totals(command: list[str], row: str) -> list[str]:
    """The figures of a summary's row of totals."""
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(row, printed)
    return re.findall(r"[\d.]+", found[1]) if found else []


if __name__ == "__main__":
    if sys.argv[1:] != ["spoken"]:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else sized(200_000, 500))
    spoken()
