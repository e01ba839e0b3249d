"""How often other libraries align words otherwise than sclite does, on real and on random pairs (docs).

    python benchmarks/library_differences.py [RANDOM_PAIRS]       20,000 without it; about a minute

Real pairs are those of tests/data/asr under `plain`; random ones have few different words, so that many alignments
cost the same. Prints tables in Markdown. The libraries live in the benchmarks' own environment (yardsticks.py).
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

# Each gives, of every pair, its path in letters, or "S D I" where it shows no path, or its errors alone.
LIBRARIES = r"""
import json, sys
from importlib.metadata import version

import editdistance, jiwer, kaldialign, werpy
from meeteval.wer.wer.siso import siso_word_error_rate
from rapidfuzz.distance import Levenshtein

references, hypotheses = (open(path, encoding="utf-8").read().split("\n")[:-1] for path in sys.argv[1:3])
pairs = [(of.split(), said.split()) for of, said in zip(references, hypotheses)]
LETTERS = {"equal": "C", "substitute": "S", "replace": "S", "delete": "D", "insert": "I"}

def jiwer_path(chunks):
    spans = ((one.type, max(one.ref_end_idx - one.ref_start_idx, one.hyp_end_idx - one.hyp_start_idx))
             for one in chunks)
    return "".join(LETTERS[kind] * length for kind, length in spans)

def rapidfuzz_path(of, said):
    spans = ((one.tag, max(one.src_end - one.src_start, one.dest_end - one.dest_start))
             for one in Levenshtein.opcodes(of, said))
    return "".join(LETTERS[kind] * length for kind, length in spans)

def kaldialign_path(of, said, sclite_mode):
    steps = kaldialign.align(of, said, "", sclite_mode=sclite_mode)
    return "".join("I" if not a else "D" if not b else "C" if a == b else "S" for a, b in steps)

def split(found):
    return f"{found.substitutions} {found.deletions} {found.insertions}"

whole = werpy.summary(references, hypotheses)
print(json.dumps({
    f"jiwer {version('jiwer')}": [jiwer_path(one) for one in jiwer.process_words(references, hypotheses).alignments],
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

def rate(found):
    return found.error_rate if found.length else f"no rate, {found.errors} errors"

CALLS = {
    "jiwer": jiwer.wer,
    "rapidfuzz": lambda of, said: Levenshtein.normalized_distance(of.split(), said.split()),
    "kaldialign": lambda of, said: kaldialign.edit_distance(of.split(), said.split())["err_rate"],
    "meeteval": lambda of, said: rate(siso_word_error_rate(of, said)),
    "werpy": werpy.wer,
}
CASES = [("", "a b c"), ("", ""), ("a b", "a b c d e"), ("Stop", "stop"), ("Stop.", "Stop"), ("{ a / b } c", "b c"),
         (["a", "b"], ["a"])]
for name, call in CALLS.items():
    row = []
    for of, said in CASES:
        try:
            row.append(str(call(of, said)))
        except Exception as error:
            row.append(type(error).__name__)
    print("|", name, "|", " | ".join(row), "|")
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


def of_path(path: str) -> Counts:
    return Counts(path.count("S"), path.count("D"), path.count("I"))


def real_pairs() -> tuple[list[str], list[str]]:
    wording = WordRules(Normalisation.PLAIN)
    references: list[str] = []
    hypotheses: list[str] = []
    for system in SYSTEMS:
        of, said = read_pair(DATA / "reference.trn", DATA / f"{system}.trn")
        references += wording.texts(of)
        hypotheses += wording.texts(said)
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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        true = [one.path for one in sclite.align(folder, references, hypotheses)]
        files = folder / "references", folder / "hypotheses"
        for file, texts in zip(files, (references, hypotheses), strict=True):
            file.write_text("\n".join(texts) + "\n", encoding="utf-8")
        found: dict[str, list[str | int]] = json.loads(yardsticks.run(LIBRARIES, *map(str, files)))
    words = sum(len(text.split()) for text in references)
    errors = sum(of_path(path).errors for path in true)
    print(f"\n{title}: {len(true):,} pairs, {words:,} words, sclite's WER {errors / words:.2%}\n")
    print("| | other path | other S/D/I | other number of errors | WER |")
    print("|---|---:|---:|---:|---:|")
    ours = Alignments(references, hypotheses).paths(range(len(references)))
    for library, results in {"harness": ours, **found}.items():
        print(f"| {library} | {' | '.join(row(true, results, words))} |")


def row(true: Sequence[str], results: Sequence[str | int], words: int) -> list[str]:
    """Shares of pairs that differ; "–" for what a library does not tell."""
    counts = [of_path(path) for path in true]
    first = results[0]
    if isinstance(first, int):
        weights = [4 * one.substitutions + 3 * (one.deletions + one.insertions) for one in counts]
        if all(int(result) == weight for result, weight in zip(results, weights, strict=True)):
            return ["–", "–", "the weighted sum is equal", "–"]
        wrong = sum(result != one.errors for result, one in zip(results, counts, strict=True))
        return ["–", "–", share(wrong, len(true)), f"{sum(map(int, results)) / words:.2%}"]
    shows_path = not any(" " in str(one) for one in results)
    if shows_path:
        theirs = [of_path(str(path)) for path in results]
    else:
        theirs = [Counts(*map(int, str(one).split())) for one in results]
    paths = sum(a != b for a, b in zip(true, results, strict=True))
    splits = sum(a != b for a, b in zip(counts, theirs, strict=True))
    wrong = sum(a.errors != b.errors for a, b in zip(counts, theirs, strict=True))
    total = sum(one.errors for one in theirs)
    return [
        share(paths, len(true)) if shows_path else "–",
        share(splits, len(true)),
        share(wrong, len(true)),
        f"{total / words:.2%}",
    ]


def share(count: int, total: int) -> str:
    return f"{count / total:.1%}" if count else "0"


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
