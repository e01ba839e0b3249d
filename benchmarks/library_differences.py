"""How often other libraries align words otherwise than sclite does: the tables of docs/reference/scoring-compared.md.

    python benchmarks/library_differences.py [RANDOM_PAIRS]       20,000 without it; about a minute

Real pairs are those of tests/data/asr under `plain`. Random ones have few different words, so that many alignments
cost the same. Prints tables in Markdown. The libraries are in the benchmarks' own environment (yardsticks.py).
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yardsticks

sys.path.append(str(Path(__file__).parents[1]))

from harness.model.scenario import Normalisation
from harness.transcripts.alignment import Alignments
from harness.transcripts.files.transcripts import read_pair
from harness.transcripts.words import WordRules
from tests.conformance.scoring import sclite

DATA = Path(__file__).parents[1] / "tests" / "data" / "asr"
SEED = 1
RANDOM_PAIRS = 20_000
SYSTEMS = ("whisper", "pocketsphinx")

# Prints a JSON object: for each library, the result on every pair. A result is a path in letters, or "S D I" if the
# library shows no path, or the number of errors alone.
LIBRARIES = r"""
import json, sys
from importlib.metadata import version

import editdistance, jiwer, kaldialign, werpy
from meeteval.wer.wer.siso import siso_word_error_rate
from rapidfuzz.distance import Levenshtein

references, hypotheses = (open(path, encoding="utf-8").read().split("\n")[:-1] for path in sys.argv[1:3])
pairs = [(reference.split(), hypothesis.split()) for reference, hypothesis in zip(references, hypotheses)]
LETTERS = {"equal": "C", "substitute": "S", "replace": "S", "delete": "D", "insert": "I"}

def jiwer_path(chunks):
    spans = ((chunk.type, max(chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx))
             for chunk in chunks)
    return "".join(LETTERS[kind] * length for kind, length in spans)

def rapidfuzz_path(reference, hypothesis):
    spans = ((opcode.tag, max(opcode.src_end - opcode.src_start, opcode.dest_end - opcode.dest_start))
             for opcode in Levenshtein.opcodes(reference, hypothesis))
    return "".join(LETTERS[kind] * length for kind, length in spans)

def kaldialign_path(reference, hypothesis, sclite_mode):
    steps = kaldialign.align(reference, hypothesis, "", sclite_mode=sclite_mode)
    return "".join("I" if not a else "D" if not b else "C" if a == b else "S" for a, b in steps)

def split(counts):
    return f"{counts.substitutions} {counts.deletions} {counts.insertions}"

whole = werpy.summary(references, hypotheses)
alignments = jiwer.process_words(references, hypotheses).alignments
print(json.dumps({
    f"jiwer {version('jiwer')}": [jiwer_path(chunks) for chunks in alignments],
    f"rapidfuzz {version('rapidfuzz')}, opcodes": [rapidfuzz_path(*pair) for pair in pairs],
    f"kaldialign {version('kaldialign')}": [kaldialign_path(*pair, False) for pair in pairs],
    f"kaldialign {version('kaldialign')}, sclite_mode": [kaldialign_path(*pair, True) for pair in pairs],
    f"meeteval {version('meeteval')}, siso": [
        split(siso_word_error_rate(*pair)) for pair in zip(references, hypotheses)],
    f"werpy {version('werpy')}": [
        f"{s} {d} {i}" for s, d, i in zip(whole.substitutions, whole.deletions, whole.insertions)],
    f"editdistance {version('editdistance')}": [editdistance.eval(*pair) for pair in pairs],
    f"rapidfuzz {version('rapidfuzz')}, weights 3, 3, 4": [
        Levenshtein.distance(*pair, weights=(3, 3, 4)) for pair in pairs],
}))
"""

BEHAVIOUR = r"""
import jiwer, kaldialign, werpy
from meeteval.wer.wer.siso import siso_word_error_rate
from rapidfuzz.distance import Levenshtein

def rate(result):
    return result.error_rate if result.length else f"no rate, {result.errors} errors"

CALLS = {
    "jiwer": jiwer.wer,
    "rapidfuzz": lambda reference, hypothesis: Levenshtein.normalized_distance(reference.split(), hypothesis.split()),
    "kaldialign": lambda reference, hypothesis: kaldialign.edit_distance(
        reference.split(), hypothesis.split())["err_rate"],
    "meeteval": lambda reference, hypothesis: rate(siso_word_error_rate(reference, hypothesis)),
    "werpy": werpy.wer,
}
CASES = [("", "a b c"), ("", ""), ("a b", "a b c d e"), ("Stop", "stop"), ("Stop.", "Stop"), ("{ a / b } c", "b c"),
         (["a", "b"], ["a"])]
for name, call in CALLS.items():
    cells = []
    for reference, hypothesis in CASES:
        try:
            cells.append(str(call(reference, hypothesis)))
        except Exception as error:
            cells.append(type(error).__name__)
    print("|", name, "|", " | ".join(cells), "|")
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """Substitutions, deletions, insertions of a pair."""

    substitutions: int
    deletions: int
    insertions: int

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions

    @property
    def sclite_weight(self) -> int:
        """What sclite minimises."""
        return 4 * self.substitutions + 3 * (self.deletions + self.insertions)


def counts_of(path: str) -> Counts:
    return Counts(path.count("S"), path.count("D"), path.count("I"))


def real_pairs() -> tuple[list[str], list[str]]:
    rules = WordRules(Normalisation.PLAIN)
    references: list[str] = []
    hypotheses: list[str] = []
    for system in SYSTEMS:
        reference_file, hypothesis_file = read_pair(DATA / "reference.trn", DATA / f"{system}.trn")
        references += rules.texts(reference_file)
        hypotheses += rules.texts(hypothesis_file)
    return references, hypotheses


def random_pairs(total: int) -> tuple[list[str], list[str]]:
    """1–15 words out of 2–6 on either side."""
    source = random.Random(SEED)
    references, hypotheses = [], []
    for _ in range(total):
        words = "abcdef"[: source.randint(2, 6)]
        references.append(" ".join(source.choices(words, k=source.randint(1, 15))))
        hypotheses.append(" ".join(source.choices(words, k=source.randint(1, 15))))
    return references, hypotheses


def compare(title: str, references: Sequence[str], hypotheses: Sequence[str]) -> None:
    """Prints the table of all libraries, and of the harness, on these pairs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sclite_paths = [utterance.path for utterance in sclite.align(folder, references, hypotheses)]
        files = folder / "references", folder / "hypotheses"
        for file, texts in zip(files, (references, hypotheses), strict=True):
            file.write_text("\n".join(texts) + "\n", encoding="utf-8")
        library_results: dict[str, list[str | int]] = json.loads(yardsticks.run(LIBRARIES, *map(str, files)))
    words = sum(len(text.split()) for text in references)
    errors = sum(counts_of(path).errors for path in sclite_paths)
    print(f"\n{title}: {len(sclite_paths):,} pairs, {words:,} words, sclite's WER {errors / words:.2%}\n")
    print("| | other path | other S/D/I | other number of errors | WER |")
    print("|---|---:|---:|---:|---:|")
    ours = Alignments(references, hypotheses).paths(range(len(references)))
    for library, results in {"harness": ours, **library_results}.items():
        print(f"| {library} | {' | '.join(row(sclite_paths, results, words))} |")


def row(sclite_paths: Sequence[str], results: Sequence[str | int], words: int) -> list[str]:
    """Cells of a library: shares of pairs that differ from sclite, and its WER; "–" for what it does not report."""
    counts = [counts_of(path) for path in sclite_paths]
    if isinstance(results[0], int):
        return row_of_distances(counts, [int(result) for result in results], words)
    texts = [str(result) for result in results]
    shows_paths = not any(" " in text for text in texts)
    theirs = [counts_of(text) if shows_paths else Counts(*map(int, text.split())) for text in texts]
    return [
        differing_share(sclite_paths, texts) if shows_paths else "–",
        differing_share(counts, theirs),
        differing_share([pair.errors for pair in counts], [pair.errors for pair in theirs]),
        f"{sum(pair.errors for pair in theirs) / words:.2%}",
    ]


def row_of_distances(counts: Sequence[Counts], distances: Sequence[int], words: int) -> list[str]:
    """Cells of a library that gives one number for each pair: of errors, or weighted as sclite's."""
    if distances == [pair.sclite_weight for pair in counts]:
        return ["–", "–", "the weighted sum is equal", "–"]
    return [
        "–", "–", differing_share([pair.errors for pair in counts], distances), f"{sum(distances) / words:.2%}"
    ]  # fmt: skip


def differing_share(ours: Sequence[object], theirs: Sequence[object]) -> str:
    differing = sum(a != b for a, b in zip(ours, theirs, strict=True))
    return f"{differing / len(ours):.1%}" if differing else "0"


def main(total: int) -> None:
    compare("Real", *real_pairs())
    compare("Random", *random_pairs(total))
    print(
        '\n| | "" : "a b c" | "" : "" | "a b" : "a b c d e" | Stop : stop | Stop. : Stop | { a / b } c : b c | 2 : 1 |'
    )
    print("|---|---|---|---|---|---|---|---|")
    print(yardsticks.run(BEHAVIOUR), end="")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RANDOM_PAIRS)
