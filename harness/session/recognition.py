"""Was the query recognised? Judged by what the device, or the operator, says that it heard."""

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
    """Whether `heard` counts as the trial's query, under its normalisation and its share of allowed word errors.

    A wake phrase of the device at the front of `heard` is no part of the query and is taken off first.
    """
    rule = trial.recognised
    words = normalise(heard, rule.normalisation)
    candidates = [words]
    for phrase in trial.wake_phrases:
        wake = normalise(phrase, rule.normalisation)
        if wake and words[: len(wake)] == wake:
            candidates.append(words[len(wake) :])
    # A query may itself begin with the wake phrase's words, so what was heard is taken both ways.
    references = [normalise(text, rule.normalisation) for text in (trial.reference, *trial.alternatives)]
    found = min((best_word_errors(references, candidate) for candidate in candidates), key=lambda each: each.errors)
    return Judged(found.within(rule.wer), found.errors, found.words)
