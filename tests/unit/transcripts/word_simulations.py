"""Made-up corpora with a known WER, whose errors come in bad utterances and bad speakers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.statistics.word_intervals import wer_difference, wer_interval
from tests.known import known

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Corpus:
    """speakers: how many. utterances: of each, in the mean. inserted: errors beside those of the words themselves.

    between: the squared coefficient of variation of the speakers' own WERs. unequal: sigma of the log of how many
    utterances each speaker has.
    """

    speakers: int
    utterances: int
    wer: float
    between: float = 0.0
    unequal: float = 0.0
    inserted: float = 0.0

    @property
    def truth(self) -> float:
        return self.wer + self.inserted

    def hard_words(self, random: np.random.Generator) -> tuple[Numbers, Numbers, NDArray[np.float64]]:
        """The speaker of each utterance, its words (10 in the mean), and its own WER without insertions."""
        spread = np.exp(random.normal(0, self.unequal, self.speakers))
        sizes = np.maximum(2, self.utterances * spread).astype(np.int64)
        rates = np.full(self.speakers, self.wer)
        if self.between:
            rates = np.minimum(self.wer * random.gamma(1 / self.between, self.between, self.speakers), 0.98)
        talkers = np.repeat(np.arange(self.speakers), sizes)
        words = np.clip(random.gamma(4, 2.5, len(talkers)).round(), 1, 40).astype(np.int64)
        mean = rates[talkers]
        return talkers, words, random.beta(0.75, 0.75 * (1 - mean) / np.maximum(mean, 1e-9))

    def heard(self, random: np.random.Generator, words: Numbers, hard: NDArray[np.float64]) -> Numbers:
        """A system's errors of each utterance."""
        return random.binomial(words, hard) + random.poisson(self.inserted * words)


def kept(random: np.random.Generator, corpus: Corpus, runs: int) -> tuple[int, int, int]:
    """Runs whose interval holds the true WER, is below it, is above it."""
    below = above = 0
    for _ in range(runs):
        talkers, words, hard = corpus.hard_words(random)
        clusters = talkers if corpus.between else None
        interval = known(wer_interval(corpus.heard(random, words, hard), words, clusters))
        below += interval[1] < corpus.truth
        above += interval[0] > corpus.truth
    return runs - below - above, below, above


def called_different(random: np.random.Generator, corpus: Corpus, runs: int) -> tuple[int, int]:
    """Runs in which two equally good systems on the same utterances have p under 0.05, and an interval without 0."""
    significant = excluded = 0
    for _ in range(runs):
        talkers, words, hard = corpus.hard_words(random)
        first, second = (corpus.heard(random, words, hard) for _ in range(2))
        comparison = known(wer_difference(first, second, words, talkers if corpus.between else None))
        significant += comparison.p < 0.05
        excluded += not comparison.interval[0] <= 0 <= comparison.interval[1]
    return significant, excluded
