"""Is what a device says that it heard what was said to it?"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from harness.base.grouping import group_by
from harness.model.errors import InputError
from harness.model.frozen import frozen
from harness.model.record import AttemptFinished
from harness.model.scenario import Normalisation, RecognitionRule
from harness.model.transcript import AlignedWord, Edit, WordCounts
from harness.model.trial import Trial
from harness.statistics.word_intervals import LEAST_QUERIES, wer_interval
from harness.transcripts.alignment import count
from harness.transcripts.networks import align_readings
from harness.transcripts.readings import Readings, Words, first, rewrite, same, without
from harness.transcripts.words import best_of, normalise, readings


class JudgedTranscript(NamedTuple):
    """counts: of the aligned words, both sides normalised; of reference and alternatives the one that fits best.

    Where a numeral has several readings, both are in those that fit best.
    """

    recognised: bool
    counts: WordCounts
    words: tuple[AlignedWord, ...]

    @property
    def reference(self) -> Words:
        return tuple(word.reference for word in self.words if word.edit is not Edit.INSERTION)

    @property
    def heard(self) -> Words:
        return tuple(word.hypothesis for word in self.words if word.edit is not Edit.DELETION)


def recognised(trial: Trial, heard: str) -> JudgedTranscript:
    """Whether `heard` is the trial's query or command, under its normalisation and its share of allowed word errors.

    `heard` is compared with and without a leading wake phrase of the device, and with the reference and each of its
    alternatives. The pair with the fewest errors per word counts, and the first of equals.
    """
    phrases = trial.wake_phrases if trial.listening is None else (*trial.wake_phrases, trial.listening.phrase)
    return _judge(heard, trial.recognised, phrases, (trial.reference, *trial.alternatives))


@lru_cache(maxsize=1 << 10)
def _judge(heard: str, rule: RecognitionRule, wake_phrases: Words, texts: Words) -> JudgedTranscript:
    """As `recognised`; cached, since a session and its replays ask about each transcript several times."""
    heard_readings = readings_of(heard, rule)
    phrases = [readings_of(phrase, rule) for phrase in wake_phrases]
    rests = [without(heard_readings, wake) for wake in phrases if wake]
    candidates = [heard_readings, *(rest for rest in rests if rest is not None)]
    references = [readings_of(text, rule) for text in texts]
    paths = [align_readings(*_comparable(reference, words, rule)) for words in candidates for reference in references]
    counts = [count("".join(word.edit.value for word in path)) for path in paths]
    best = best_of(counts)
    return JudgedTranscript(counts[best].within(rule.wer), counts[best], paths[best])


def words_of(text: str, rule: RecognitionRule) -> Words:
    """The words of any text, also of a device's, under a rule; the first of several readings."""
    return first(readings_of(text, rule))


def readings_of(text: str, rule: RecognitionRule) -> Readings:
    """The words of any text, also of a device's, under a rule, and the choices between readings."""
    try:
        pieces = readings(text, rule.normalisation, rule.language)
    except InputError:
        # A device does not write .sro: a mark that is open in what it wrote is a sign like any other.
        pieces = tuple(word.upper() for word in normalise(text, Normalisation.PLAIN))
    return pieces if rule.rewriting is None else rewrite(pieces, rule.rewriting)


def same_words(text: str, other: str, rule: RecognitionRule) -> bool:
    """Whether two texts may be read as the same words under a rule."""
    return same(*_comparable(readings_of(text, rule), readings_of(other, rule), rule))


def _comparable(expected: Readings, heard: Readings, rule: RecognitionRule) -> tuple[Readings, Readings]:
    if rule.normalisation is not Normalisation.SPOKEN:
        return expected, heard
    from harness.transcripts.spoken_words import comparable  # here, since its lists take a while to read

    return comparable(expected, heard)


class SamplingUnit(StrEnum):
    """What varies freely, and so what an interval speaks of: further queries, or further attempts at these."""

    QUERIES = "queries"
    ATTEMPTS = "attempts"


@frozen
class GroupTranscripts:
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
    def of(cls, attempts: Iterable[tuple[str, WordCounts | None]], typed: int = 0) -> GroupTranscripts:
        """Of attempts, each with the id of its query, and its counts or None without a transcript."""
        pairs = tuple(attempts)
        transcripts = [(query, counts) for query, counts in pairs if counts is not None]
        return cls(
            tuple(counts for _, counts in transcripts), tuple(query for query, _ in transcripts), len(pairs), typed
        )

    @property
    def counts(self) -> WordCounts:
        """All transcripts together, each a sentence."""
        return WordCounts.total(self.transcripts)

    @property
    def wer(self) -> float | None:
        """Word errors per reference word; None over no words."""
        return self.counts.wer

    @property
    def unit(self) -> SamplingUnit:
        """What the interval takes as one. A query that is said again tends to be heard the same again."""
        return SamplingUnit.QUERIES if len(set(self.queries)) >= LEAST_QUERIES else SamplingUnit.ATTEMPTS

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the WER, from how units differ; None over no words or one transcript."""
        if self.unit is SamplingUnit.QUERIES:
            # Sums, so that where no word is wrong, too, as many queries as there are say so, and not each repetition.
            by_query = group_by((query, counts) for query, counts in zip(self.queries, self.transcripts, strict=True))
            errors = [sum(counts.errors for counts in query_counts) for query_counts in by_query.values()]
            return wer_interval(
                errors, [sum(counts.words for counts in query_counts) for query_counts in by_query.values()]
            )
        return wer_interval(
            [counts.errors for counts in self.transcripts], [counts.words for counts in self.transcripts]
        )

    def __add__(self, other: GroupTranscripts) -> GroupTranscripts:
        return GroupTranscripts(
            self.transcripts + other.transcripts,
            self.queries + other.queries,
            self.attempts + other.attempts,
            self.typed + other.typed,
        )


def words_heard(trial: Trial, verdict: AttemptFinished) -> WordCounts | None:
    """The counts of an attempt's transcript, worked out from what the log says was heard; None without one."""
    return None if verdict.heard is None else recognised(trial, verdict.heard).counts
