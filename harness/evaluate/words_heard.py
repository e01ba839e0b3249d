"""Words that devices heard, added up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.metrics.recognition import recognised
from harness.metrics.word_intervals import wer_interval
from harness.model.record import AttemptFinished
from harness.model.transcript import WordCounts
from harness.model.trial import Trial


@dataclass(frozen=True, slots=True)
class WordsHeard:
    """Attempts of a group. transcripts: the counts of each that has one; the others are stated, and count nowhere."""

    transcripts: tuple[WordCounts, ...] = ()
    attempts: int = 0

    def __post_init__(self) -> None:
        if len(self.transcripts) > self.attempts:
            raise ValueError(f"{len(self.transcripts)} transcripts of {self.attempts} attempts")

    @classmethod
    def of(cls, attempts: Iterable[WordCounts | None]) -> WordsHeard:
        """Of attempts, each with its counts, or None without a transcript."""
        found = tuple(attempts)
        return cls(tuple(one for one in found if one is not None), len(found))

    @property
    def counts(self) -> WordCounts:
        """All transcripts together, each a sentence."""
        # Sums of columns: adding up one object after another is slow where a session is long.
        columns = [
            (one.correct, one.substitutions, one.deletions, one.insertions, one.sentences, one.sentences_with_error)
            for one in self.transcripts
        ]
        return WordCounts(*map(sum, zip(*columns, strict=True)))

    @property
    def wer(self) -> float | None:
        """Word errors per reference word; None over no words."""
        return self.counts.wer

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the WER, from how attempts differ; None over no words or one transcript."""
        return wer_interval([one.errors for one in self.transcripts], [one.words for one in self.transcripts])

    def __add__(self, other: WordsHeard) -> WordsHeard:
        return WordsHeard(self.transcripts + other.transcripts, self.attempts + other.attempts)


def words_heard(trial: Trial, verdict: AttemptFinished) -> WordCounts | None:
    """The counts of an attempt's transcript, worked out from what the log says was heard; None without one."""
    return None if verdict.heard is None else recognised(trial, verdict.heard).counts
