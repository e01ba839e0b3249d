"""Words that devices heard, added up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from harness.model.record import AttemptFinished
from harness.model.transcript import WordCounts
from harness.model.trial import Trial
from harness.statistics.word_intervals import wer_interval
from harness.transcripts.recognition import recognised

LEAST_QUERIES = 6
"""With fewer, how they differ says too little of how further ones would."""


class Unit(StrEnum):
    """What varies freely, and so what an interval speaks of: further queries, or further attempts at these."""

    QUERIES = "queries"
    ATTEMPTS = "attempts"


@dataclass(frozen=True, slots=True)
class WordsHeard:
    """Attempts of a group. transcripts: the counts of each that has one; the others are stated, and count nowhere.

    queries: for each transcript the id of what was asked. typed: how many of the transcripts an operator typed.
    """

    transcripts: tuple[WordCounts, ...] = ()
    queries: tuple[str, ...] = ()
    attempts: int = 0
    typed: int = 0

    def __post_init__(self) -> None:
        if len(self.transcripts) > self.attempts:
            raise ValueError(f"{len(self.transcripts)} transcripts of {self.attempts} attempts")
        if len(self.queries) != len(self.transcripts):
            raise ValueError(f"{len(self.queries)} queries for {len(self.transcripts)} transcripts")

    @classmethod
    def of(cls, attempts: Iterable[tuple[str, WordCounts | None]], typed: int = 0) -> WordsHeard:
        """Of attempts, each with the id of its query, and its counts or None without a transcript."""
        found = tuple(attempts)
        told = [(query, counts) for query, counts in found if counts is not None]
        return cls(tuple(counts for _, counts in told), tuple(query for query, _ in told), len(found), typed)

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
    def unit(self) -> Unit:
        """What the interval takes as one. A query that is said again tends to be heard the same again."""
        return Unit.QUERIES if len(set(self.queries)) >= LEAST_QUERIES else Unit.ATTEMPTS

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the WER, from how units differ; None over no words or one transcript."""
        if self.unit is Unit.QUERIES:
            # Sums, so that where no word is wrong, too, as many queries as there are say so, and not each repetition.
            by_query: dict[str, list[WordCounts]] = {}
            for query, counts in zip(self.queries, self.transcripts, strict=True):
                by_query.setdefault(query, []).append(counts)
            errors = [sum(one.errors for one in of) for of in by_query.values()]
            return wer_interval(errors, [sum(one.words for one in of) for of in by_query.values()])
        return wer_interval([one.errors for one in self.transcripts], [one.words for one in self.transcripts])

    def __add__(self, other: WordsHeard) -> WordsHeard:
        return WordsHeard(
            self.transcripts + other.transcripts,
            self.queries + other.queries,
            self.attempts + other.attempts,
            self.typed + other.typed,
        )


def words_heard(trial: Trial, verdict: AttemptFinished) -> WordCounts | None:
    """The counts of an attempt's transcript, worked out from what the log says was heard; None without one."""
    return None if verdict.heard is None else recognised(trial, verdict.heard).counts
