"""Is what a device says that it heard what was said to it?"""

from __future__ import annotations

from typing import NamedTuple

from harness.metrics.rewriting import rewrite
from harness.metrics.words import best_of, normalise, word_counts
from harness.model.errors import InputError
from harness.model.scenario import Normalisation, Recognised
from harness.model.transcript import WordCounts
from harness.model.trial import Trial

Words = tuple[str, ...]


class Judged(NamedTuple):
    """counts: of `heard` against `reference`, both normalised; of reference and alternatives the one that fits best."""

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
    words = words_of(heard, rule)
    phrases = [words_of(phrase, rule) for phrase in _phrases(trial)]
    candidates = [words, *(words[len(wake) :] for wake in phrases if wake and words[: len(wake)] == wake)]
    references = [words_of(text, rule) for text in (trial.reference, *trial.alternatives)]
    pairs = [(reference, said) for said in candidates for reference in references]
    counts = [word_counts(reference, said) for reference, said in pairs]
    best = best_of(counts)
    return Judged(counts[best].within(rule.wer), counts[best], *pairs[best])


def words_of(text: str, rule: Recognised) -> Words:
    """The words of any text, also of a device's, under a rule."""
    try:
        words = normalise(text, rule.normalisation)
    except InputError:
        # A device does not write .sro: a mark that is open in what it wrote is a sign like any other.
        words = tuple(word.upper() for word in normalise(text, Normalisation.PLAIN))
    return words if rule.rewriting is None else rewrite(words, rule.rewriting)


def _phrases(trial: Trial) -> tuple[str, ...]:
    return trial.wake_phrases if trial.listening is None else (*trial.wake_phrases, trial.listening.phrase)
