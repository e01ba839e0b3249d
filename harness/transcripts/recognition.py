"""Is what a device says that it heard what was said to it?"""

from __future__ import annotations

from typing import NamedTuple

from harness.model.errors import InputError
from harness.model.scenario import Normalisation, Recognised
from harness.model.transcript import AlignedWord, Edit, WordCounts
from harness.model.trial import Trial
from harness.transcripts.alignment import count
from harness.transcripts.network import align_readings
from harness.transcripts.readings import Readings, first, same, without
from harness.transcripts.rewriting import rewrite
from harness.transcripts.spoken_words import comparable
from harness.transcripts.words import best_of, normalise, readings

Words = tuple[str, ...]


class Judged(NamedTuple):
    """counts: of `heard` against `reference`, both normalised; of reference and alternatives the one that fits best.

    Where a numeral has several readings, both are in those that fit best.
    """

    recognised: bool
    counts: WordCounts
    reference: Words
    heard: Words


def recognised(trial: Trial, heard: str) -> Judged:
    """Whether `heard` is the trial's query or command, under its normalisation and its share of allowed word errors.

    A wake phrase of the device at the front of `heard` is taken off, and left on; of that and of reference and
    alternatives the pair with the fewest errors a word counts, the first of equals.
    """
    rule = trial.recognised
    said = readings_of(heard, rule)
    phrases = [readings_of(phrase, rule) for phrase in _phrases(trial)]
    rests = [without(said, wake) for wake in phrases if wake]
    candidates = [said, *(rest for rest in rests if rest is not None)]
    references = [readings_of(text, rule) for text in (trial.reference, *trial.alternatives)]
    paths = [_aligned(reference, words, rule) for words in candidates for reference in references]
    counts = [count("".join(word.edit.value for word in path)) for path in paths]
    best = best_of(counts)
    reference = tuple(word.reference for word in paths[best] if word.edit is not Edit.INSERTION)
    words = tuple(word.hypothesis for word in paths[best] if word.edit is not Edit.DELETION)
    return Judged(counts[best].within(rule.wer), counts[best], reference, words)


def words_of(text: str, rule: Recognised) -> Words:
    """The words of any text, also of a device's, under a rule; the first of several readings."""
    return first(readings_of(text, rule))


def readings_of(text: str, rule: Recognised) -> Readings:
    """The words of any text, also of a device's, under a rule, and the choices between readings."""
    try:
        found = readings(text, rule.normalisation, rule.language)
    except InputError:
        # A device does not write .sro: a mark that is open in what it wrote is a sign like any other.
        found = tuple(word.upper() for word in normalise(text, Normalisation.PLAIN))
    return found if rule.rewriting is None else rewrite(found, rule.rewriting)


def same_words(text: str, other: str, rule: Recognised) -> bool:
    """Whether two texts may be read as the same words under a rule."""
    of, said = readings_of(text, rule), readings_of(other, rule)
    return same(*(comparable(of, said) if rule.normalisation is Normalisation.SPOKEN else (of, said)))


def _aligned(reference: Readings, said: Readings, rule: Recognised) -> tuple[AlignedWord, ...]:
    of, heard = comparable(reference, said) if rule.normalisation is Normalisation.SPOKEN else (reference, said)
    return align_readings(of, heard)


def _phrases(trial: Trial) -> tuple[str, ...]:
    return trial.wake_phrases if trial.listening is None else (*trial.wake_phrases, trial.listening.phrase)
