"""Votes of three classifiers on the label sets of the same texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from harness.model.annotation import Intents
from harness.model.frozen import frozen

SelectedLabels = npt.NDArray[np.bool_]
"""Whether a text is given a label, shape (texts, labels)."""
THRESHOLD = 0.5
"""A label is given if its probability is above this. Source: the MEDIA paper, 3.2 and 4.1."""
_CERTAINTY_DIGITS = 6
"""Smaller differences of certainty may be due to rounding. Votes that differ less are ordered by their utterances."""
Refusal = Callable[[Intents], str]
"""Returns why the labels of a set exclude each other; "" if they do not (`LabelSet.refusal`)."""


@frozen
class UtteranceVotes:
    """The votes of three classifiers on an utterance.

    - utterance: its id.
    - intents: the whole set on which at least two agree; None without consensus.
    - refused: why the set on which two agree is refused, "" if it is not. A refused set is not a consensus.
    - certainty: 0.5–1, from the mean probability of the least certain label. Used for ordering only.
    """

    utterance: str
    votes: tuple[Intents, Intents, Intents]
    intents: Intents | None
    refused: str
    certainty: float

    @property
    def unanimous(self) -> bool:
        """Whether all three agree on a set that is not refused."""
        return self.intents is not None and len(set(self.votes)) == 1


def selected_labels(
    probabilities: npt.NDArray[np.float64], *, threshold: float = THRESHOLD, may_be_empty: bool
) -> SelectedLabels:
    """The labels above the threshold. If there are none, and a text must not be empty, the most probable label.

    probabilities: shape (texts, labels). A text whose labels all have probability 0 gets none.
    """
    selected: SelectedLabels = probabilities > threshold
    if not may_be_empty and probabilities.size:
        best = probabilities.argmax(axis=1)
        rows = np.flatnonzero(~selected.any(axis=1) & (probabilities.max(axis=1) > 0))
        selected[rows, best[rows]] = True
    return selected


def same_sets(first: SelectedLabels, second: SelectedLabels) -> npt.NDArray[np.bool_]:
    """Whether both give the same whole set to each text, shape (texts,)."""
    equal: npt.NDArray[np.bool_] = (first == second).all(axis=1)
    return equal


def sets_of(selected: SelectedLabels, labels: Sequence[str]) -> list[Intents]:
    """The sorted label set of each text. Equal sets share one object."""
    shared_sets: dict[bytes, Intents] = {}
    sets = []
    for row in selected:
        key = row.tobytes()
        if key not in shared_sets:
            shared_sets[key] = tuple(
                sorted(label for label, is_selected in zip(labels, row, strict=True) if is_selected)
            )
        sets.append(shared_sets[key])
    return sets


def consensus(votes: Sequence[Intents]) -> Intents | None:
    """The set that at least two of the three votes give. None if all differ."""
    first, second, third = votes
    if first in (second, third):
        return first
    return second if second == third else None


def vote(
    utterances: Sequence[str], probabilities: Sequence[npt.NDArray[np.float64]], labels: Sequence[str],
    threshold: float, refusal: Refusal,
) -> list[UtteranceVotes]:  # fmt: skip
    """The votes from the probabilities of three classifiers, each of shape (utterances, labels).

    utterances: their ids. If the empty set is refused, a classifier that gives no label votes for its best one.
    """
    may_be_empty = not refusal(())
    first, second, third = (
        sets_of(selected_labels(matrix, threshold=threshold, may_be_empty=may_be_empty), labels)
        for matrix in probabilities
    )
    mean = np.mean(probabilities, axis=0)
    certainties = np.maximum(mean, 1 - mean).min(axis=1, initial=1.0)
    reasons: dict[Intents, str] = {}
    outcomes = []
    for id_, certainty, *votes in zip(utterances, certainties, first, second, third, strict=True):
        intents = consensus(votes)
        if intents is not None and intents not in reasons:
            reasons[intents] = refusal(intents)
        refused = "" if intents is None else reasons[intents]
        outcomes.append(
            UtteranceVotes(
                utterance=id_,
                votes=(votes[0], votes[1], votes[2]),
                intents=None if refused else intents,
                refused=refused,
                certainty=round(float(certainty), _CERTAINTY_DIGITS),
            )
        )
    return outcomes
