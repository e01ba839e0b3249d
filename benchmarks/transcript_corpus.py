"""A corpus of transcripts to measure with: references and hypotheses of several speakers, the same for a seed.

python benchmarks/transcript_corpus.py FOLDER [UTTERANCES [SEED [WER]]]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SCLITE = os.environ.get("SCLITE", "/usr/lib/sctk/bin/sclite")
SPEAKERS = 40
VOCABULARY = 12_000
MEAN_WORDS = 10
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def texts(utterances: int, seed: int, wer: float = 0.12) -> tuple[list[str], list[str], list[str]]:
    """Ids, references and hypotheses, with about `wer` errors a word.

    Utterances have 1 to 40 words, 10 in the mean. Words are as frequent as Zipf's law says. An utterance is good or
    bad as a whole, so that at 12 % about half of them are without an error.
    """
    random = np.random.default_rng(seed)
    words = _vocabulary(random)
    shares = 1 / np.arange(3, VOCABULARY + 3)
    lengths = np.clip(random.gamma(4, MEAN_WORDS / 4, utterances).round(), 1, 40).astype(np.int64)
    total = int(lengths.sum())
    spoken = words[random.choice(VOCABULARY, total, p=shares / shares.sum())]
    # Errors come in bad utterances; a shape below 1 leaves many without any. Some errors undo each other, hence 1.02.
    mean = min(0.97, wer * 1.02)
    badness = random.beta(0.75, 0.75 * (1 - mean) / mean, utterances)
    kinds = random.random(total) / np.repeat(badness, lengths)
    other = words[random.choice(VOCABULARY, total, p=shares / shares.sum())]
    # Of a hundred errors 62 are substitutions, 20 deletions, 18 insertions after a word that was heard.
    spoken_words, heard_words = spoken.tolist(), np.where(kinds < 0.62, other, spoken).tolist()
    for position in np.flatnonzero((kinds >= 0.62) & (kinds < 0.82)).tolist():
        heard_words[position] = ""
    for position in np.flatnonzero((kinds >= 0.82) & (kinds < 1)).tolist():
        heard_words[position] += f" {other[position]}"
    references, hypotheses = [], []
    begin = 0
    for end in np.cumsum(lengths).tolist():
        references.append(" ".join(spoken_words[begin:end]))
        hypotheses.append(" ".join(filter(None, heard_words[begin:end])))
        begin = end
    names = [f"{LETTERS[n % 26]}{LETTERS[n // 26 % 26]}{n % 10}{LETTERS[n * 7 % 26]}" for n in range(SPEAKERS)]
    speakers = np.sort(random.integers(SPEAKERS, size=utterances)).tolist()
    width = max(5, len(str(utterances)))
    ids = [f"{names[speaker]}_{number:0{width}d}" for number, speaker in enumerate(speakers)]
    return ids, references, hypotheses


def write(folder: Path, utterances: int, seed: int, wer: float = 0.12) -> tuple[Path, Path]:
    """Writes ref.trn and hyp.trn into `folder`, which is made if it is missing, and returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    ids, references, hypotheses = texts(utterances, seed, wer)
    paths = folder / "ref.trn", folder / "hyp.trn"
    for path, lines in zip(paths, (references, hypotheses), strict=True):
        path.write_text("".join(f"{text} ({id_})\n" for id_, text in zip(ids, lines, strict=True)), encoding="utf-8")
    return paths


def sclite_command(reference: Path, hypothesis: Path) -> list[str]:
    """The command with which sclite scores two trn files, and prints its summary by speaker."""
    files = ["-r", str(reference), "trn", "-h", str(hypothesis), "trn"]
    return [SCLITE, *files, "-i", "spu_id", "-f", "0", "-o", "sum", "stdout"]


def _vocabulary(random: np.random.Generator) -> NDArray[np.object_]:
    """Made-up words, all different, from the most frequent to the rarest; the frequent ones are short."""
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        longer = 1.2 if len(words) > 60 else 0
        length = 2 + int(random.poisson(1 + 4 * len(words) / VOCABULARY + longer))
        words["".join(LETTERS[letter] for letter in random.integers(26, size=length))] = None
    return np.array(list(words), dtype=object)


def main(folder: str, utterances: str = "200000", seed: str = "1", wer: str = "0.12") -> None:
    print(*write(Path(folder), int(utterances), int(seed), float(wer)))


if __name__ == "__main__":
    main(*sys.argv[1:])
