"""A corpus of transcripts to measure with: references and hypotheses of several speakers, the same for a seed.

python benchmarks/transcript_corpus.py FOLDER [UTTERANCES [SEED [WER]]]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SPEAKERS = 40
VOCABULARY = 12_000
MEAN_WORDS = 10
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def texts(utterances: int, seed: int, wer: float = 0.12) -> tuple[list[str], list[str], list[str]]:
    """Ids, references and hypotheses, with about `wer` errors a word.

    Utterances have 1 to 40 words, 10 in the mean, drawn as often as words are in a language (Zipf). Each is good or
    bad as a whole, so that at 12 % about half of them are without an error.
    """
    random = np.random.default_rng(seed)
    words = _vocabulary(random)
    shares = 1 / np.arange(3, VOCABULARY + 3)
    lengths = np.clip(random.gamma(4, MEAN_WORDS / 4, utterances).round(), 1, 40).astype(np.int64)
    total = int(lengths.sum())
    spoken = random.choice(VOCABULARY, total, p=shares / shares.sum())
    # Errors come in bad utterances; a shape below 1 leaves many without any. Some errors undo each other, hence 1.02.
    mean = min(0.97, wer * 1.02)
    badness = random.beta(0.75, 0.75 * (1 - mean) / mean, utterances)
    kinds = random.random(total) / np.repeat(badness, lengths)
    other = random.choice(VOCABULARY, total, p=shares / shares.sum())
    # Of a hundred errors 62 are substitutions, 20 deletions, 18 insertions after a word that was heard.
    heard = np.where(kinds < 0.62, words[other], words[spoken])
    said, pieces = words[spoken].tolist(), heard.tolist()
    for at in np.flatnonzero((kinds >= 0.62) & (kinds < 0.82)).tolist():
        pieces[at] = ""
    for at in np.flatnonzero((kinds >= 0.82) & (kinds < 1)).tolist():
        pieces[at] += " " + str(words[other[at]])
    ends = np.cumsum(lengths).tolist()
    references, hypotheses = [], []
    begin = 0
    for end in ends:
        references.append(" ".join(said[begin:end]))
        hypotheses.append(" ".join(filter(None, pieces[begin:end])))
        begin = end
    names = [f"{LETTERS[n % 26]}{LETTERS[n // 26 % 26]}{n % 10}{LETTERS[n * 7 % 26]}" for n in range(SPEAKERS)]
    speakers = np.sort(random.integers(SPEAKERS, size=utterances)).tolist()
    width = max(5, len(str(utterances)))
    ids = [f"{names[speaker]}_{number:0{width}d}" for number, speaker in enumerate(speakers)]
    return ids, references, hypotheses


def write(folder: Path, utterances: int, seed: int, wer: float = 0.12) -> tuple[Path, Path]:
    """Writes ref.trn and hyp.trn into `folder` (made if need be) and gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    ids, references, hypotheses = texts(utterances, seed, wer)
    paths = folder / "ref.trn", folder / "hyp.trn"
    for path, lines in zip(paths, (references, hypotheses), strict=True):
        path.write_text("".join(f"{text} ({id_})\n" for id_, text in zip(ids, lines, strict=True)), encoding="utf-8")
    return paths


def _vocabulary(random: np.random.Generator) -> NDArray[np.object_]:
    """Made-up words, the frequent ones short."""
    found: dict[str, None] = {}
    while len(found) < VOCABULARY:
        length = 2 + int(random.poisson(1 + 4 * len(found) / VOCABULARY + 1.2 * (len(found) > 60)))
        found["".join(LETTERS[at] for at in random.integers(26, size=length))] = None
    return np.array(list(found), dtype=object)


def main(folder: str, utterances: str = "200000", seed: str = "1", wer: str = "0.12") -> None:
    print(*write(Path(folder), int(utterances), int(seed), float(wer)))


if __name__ == "__main__":
    main(*sys.argv[1:])
