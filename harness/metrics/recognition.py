"""Is what a device says that it heard what was said to it?"""

from __future__ import annotations

from typing import NamedTuple

from harness.metrics.words import best_word_errors, normalise
from harness.model.trial import Trial


class Judged(NamedTuple):
    """errors and words: of what was heard against the best of reference and alternatives."""

    recognised: bool
    errors: int
    words: int


def recognised(trial: Trial, heard: str) -> Judged:
    """Whether `heard` is the trial's query or command, under its normalisation and its share of allowed word errors.

    A wake phrase of the device at the front of `heard` is taken off, and left on: the better of the two counts.
    """
    rule = trial.recognised
    words = normalise(heard, rule.normalisation)
    phrases = [normalise(phrase, rule.normalisation) for phrase in _phrases(trial)]
    candidates = [words, *(words[len(wake) :] for wake in phrases if wake and words[: len(wake)] == wake)]
    references = [normalise(text, rule.normalisation) for text in (trial.reference, *trial.alternatives)]
    found = min((best_word_errors(references, candidate) for candidate in candidates), key=lambda each: each.errors)
    return Judged(found.within(rule.wer), found.errors, found.words)


def _phrases(trial: Trial) -> tuple[str, ...]:
    return trial.wake_phrases if trial.listening is None else (*trial.wake_phrases, trial.listening.phrase)
