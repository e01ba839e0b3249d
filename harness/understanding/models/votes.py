"""Three classifiers' label sets of the same texts: where two of them agree, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Intents = tuple[str, ...]
Given = npt.NDArray[np.bool_]
"""Shape (texts, labels): whether a text is given a label."""
THRESHOLD = 0.5
"""Above it a label is given. Source: seed MEDIA, 3.2 and 4.1."""
Refusal = Callable[[Intents], str]
"""Why labels cannot stand together, "" when they can (`LabelSet.refusal`)."""


@dataclass(frozen=True, slots=True)
class Voted:
    """What three classifiers make of an utterance. votes: of each of them.

    intents: that two of them agree on as a whole; None without consensus. refused: why the set that two agree on
    cannot stand, in which case it is no consensus; "" else. certainty: 0.5–1, how far the mean probability of the
    least certain label lies on its side; for ordering only.
    """

    utterance: str
    votes: tuple[Intents, Intents, Intents]
    intents: Intents | None
    refused: str
    certainty: float

    @property
    def unanimous(self) -> bool:
        """Whether all three agree on a whole set that can stand."""
        return self.intents is not None and len(set(self.votes)) == 1


def given_by(probabilities: npt.NDArray[np.float64], *, threshold: float = THRESHOLD, may_be_empty: bool) -> Given:
    """Labels above the threshold (THRESHOLD unless named); the best one where none is, unless a text may have none.

    probabilities: shape (texts, labels). A text all of whose labels are impossible (0) gets none: nothing is best.
    """
    given: Given = probabilities > threshold
    if not may_be_empty and probabilities.size:
        best = probabilities.argmax(axis=1)
        without = np.flatnonzero(~given.any(axis=1) & (probabilities.max(axis=1) > 0))
        given[without, best[without]] = True
    return given


def agreed(first: Given, second: Given) -> npt.NDArray[np.bool_]:
    """Shape (texts,): where both give the same whole set."""
    same: npt.NDArray[np.bool_] = (first == second).all(axis=1)
    return same


def sets_of(given: Given, labels: Sequence[str]) -> list[Intents]:
    """The label set of each text, sorted; equal sets are one object, of which there are few."""
    known: dict[bytes, Intents] = {}
    found = []
    for row in given:
        key = row.tobytes()
        if key not in known:
            known[key] = tuple(sorted(label for label, has in zip(labels, row, strict=True) if has))
        found.append(known[key])
    return found


def consensus(votes: Sequence[Intents]) -> Intents | None:
    """The set that at least two of three give; None when all differ."""
    first, second, third = votes
    if first in (second, third):
        return first
    return second if second == third else None


def vote(
    utterances: Sequence[str], probabilities: Sequence[npt.NDArray[np.float64]], labels: Sequence[str],
    threshold: float, refusal: Refusal,
) -> list[Voted]:  # fmt: skip
    """What comes of three classifiers' probabilities, each of shape (utterances, labels).

    Where the refusal refuses the empty set, a classifier that gives no label votes for its best one.
    """
    empty = not refusal(())
    first, second, third = (
        sets_of(given_by(one, threshold=threshold, may_be_empty=empty), labels) for one in probabilities
    )
    mean = np.mean(probabilities, axis=0)
    certainty = np.maximum(mean, 1 - mean).min(axis=1, initial=1.0)
    reasons: dict[Intents, str] = {}
    found = []
    for id_, certain, *votes in zip(utterances, certainty, first, second, third, strict=True):
        of = consensus(votes)
        refused = ""
        if of is not None:
            refused = reasons[of] if of in reasons else reasons.setdefault(of, refusal(of))
        found.append(
            Voted(id_, (votes[0], votes[1], votes[2]), None if refused else of, refused, round(float(certain), 6))
        )
    return found
