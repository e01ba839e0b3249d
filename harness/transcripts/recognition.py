"""Whether a device recognised what was said to it, judged by the transcript that it reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from harness.statistics.word_intervals import MIN_QUERIES, wer_interval
from harness.transcripts.alignment import count
from harness.transcripts.networks import align_readings
from harness.transcripts.readings import Readings, Words, first_reading, have_common_reading, rewrite, without_beginning
from harness.transcripts.words import best_of, normalise, readings


class JudgedTranscript(NamedTuple):
    """A transcript, compared with the reference or alternative that fits it best, both normalised.

    - recognised: whether it counts as recognised.
    - counts: counts of the aligned words. If a numeral has several readings, both texts are in the readings that fit
      best.
    """

    recognised: bool
    counts: WordCounts
    words: tuple[AlignedWord, ...]

    @property
    def reference(self) -> Words:
        return tuple(word.reference for word in self.words if word.edit is not Edit.INSERTION)

    @property
    def heard(self) -> Words:
        """The words of the transcript."""
        return tuple(word.hypothesis for word in self.words if word.edit is not Edit.DELETION)


def recognised(trial: Trial, heard: str) -> JudgedTranscript:
    """Judges `heard` against the trial's query or command, by its normalisation and its allowed share of word errors.

    `heard` is compared with and without a leading wake phrase of the device, and with the reference and each of its
    alternatives. The pair with the fewest errors per word counts; of equal pairs, the first.
    """
    phrases = trial.wake_phrases if trial.listening is None else (*trial.wake_phrases, trial.listening.phrase)
    return _judge(heard, trial.recognised, phrases, (trial.reference, *trial.alternatives))


@lru_cache(maxsize=1 << 10)
def _judge(heard: str, rule: RecognitionRule, wake_phrases: Words, texts: Words) -> JudgedTranscript:
    """As `recognised`; cached, since a session and its replays need the same transcript several times. texts: the
    reference and its alternatives."""
    heard_readings = readings_of(heard, rule)
    phrases = [readings_of(phrase, rule) for phrase in wake_phrases]
    remainders = [without_beginning(heard_readings, wake) for wake in phrases if wake]
    candidates = [heard_readings, *(remainder for remainder in remainders if remainder is not None)]
    references = [readings_of(text, rule) for text in texts]
    paths = [align_readings(*_comparable(reference, words, rule)) for words in candidates for reference in references]
    counts = [count("".join(word.edit.value for word in path)) for path in paths]
    best = best_of(counts)
    return JudgedTranscript(counts[best].within(rule.wer), counts[best], paths[best])


def words_of(text: str, rule: RecognitionRule) -> Words:
    """The words of any text, such as a device's response, under a rule; in the first of several readings."""
    return first_reading(readings_of(text, rule))


def readings_of(text: str, rule: RecognitionRule) -> Readings:
    """The words of any text, such as a device's response, under a rule, with the choices between readings."""
    try:
        pieces = readings(text, rule.normalisation, rule.language)
    except InputError:
        # A device does not write .sro text, so an unbalanced mark in its text is a character like any other.
        pieces = tuple(word.upper() for word in normalise(text, Normalisation.PLAIN))
    return pieces if rule.rewriting is None else rewrite(pieces, rule.rewriting)


def same_words(text: str, other: str, rule: RecognitionRule) -> bool:
    """Whether two texts may be read as the same words under a rule."""
    return have_common_reading(*_comparable(readings_of(text, rule), readings_of(other, rule), rule))


def _comparable(expected: Readings, heard: Readings, rule: RecognitionRule) -> tuple[Readings, Readings]:
    """Both texts, prepared for comparison under a rule."""
    if rule.normalisation is not Normalisation.SPOKEN:
        return expected, heard
    from harness.transcripts.spoken_words import comparable  # here, since its lists take a while to read

    return comparable(expected, heard)


class SamplingUnit(StrEnum):
    """The population that an interval is about: further queries, or further attempts at these queries."""

    QUERIES = "queries"
    ATTEMPTS = "attempts"


@frozen
class GroupTranscripts:
    """The attempts of a group.

    - transcripts: the counts of each attempt with a transcript. Others count in no rate.
    - queries: for each transcript, the id of its query.
    - attempts: number of all attempts.
    - typed: number of transcripts that an operator typed.
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
        """Counts attempts. Each is the id of its query and its counts, None without a transcript."""
        pairs = tuple(attempts)
        transcripts = [(query, counts) for query, counts in pairs if counts is not None]
        return cls(
            tuple(counts for _, counts in transcripts), tuple(query for query, _ in transcripts), len(pairs), typed
        )

    @property
    def counts(self) -> WordCounts:
        """The sum over all transcripts; each counts as a sentence."""
        return WordCounts.total(self.transcripts)

    @property
    def wer(self) -> float | None:
        """Word errors per reference word; None over no words."""
        return self.counts.wer

    @property
    def unit(self) -> SamplingUnit:
        """The unit of the interval: queries, if there are enough. A repeated query tends to be recognised in the same
        way again."""
        return SamplingUnit.QUERIES if len(set(self.queries)) >= MIN_QUERIES else SamplingUnit.ATTEMPTS

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the WER, from the differences between units; None over no words or one transcript."""
        units: Sequence[WordCounts] = self.transcripts
        if self.unit is SamplingUnit.QUERIES:
            # Sums over each query, so that its repetitions do not narrow the interval, even if no word is wrong.
            by_query = group_by(zip(self.queries, self.transcripts, strict=True))
            units = [WordCounts.total(query_counts) for query_counts in by_query.values()]
        return wer_interval([counts.errors for counts in units], [counts.words for counts in units])

    def __add__(self, other: GroupTranscripts) -> GroupTranscripts:
        return GroupTranscripts(
            self.transcripts + other.transcripts,
            self.queries + other.queries,
            self.attempts + other.attempts,
            self.typed + other.typed,
        )


def words_heard(trial: Trial, verdict: AttemptFinished) -> WordCounts | None:
    """The counts of an attempt's transcript, computed from what the log says was heard; None without a transcript."""
    return None if verdict.heard is None else recognised(trial, verdict.heard).counts
