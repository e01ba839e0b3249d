"""Uncertainty sampling: first label what a classifier of the labels so far is least sure of. Also estimates its error.

Source: Lewis & Gale, A sequential algorithm for training text classifiers, SIGIR 1994. The classifier learns again
after each batch of labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from harness.annotation.ledger import Ledger, UtteranceAssignment, UtteranceState, project_outcome
from harness.model.annotation import IMPORTED, AnnotationProject, Intents, LabelSet
from harness.model.choices import DEFAULT_CLASSIFIER
from harness.model.frozen import frozen
from harness.model.understanding import Utterance
from harness.understanding.models.tritraining import classifier_maker
from harness.understanding.models.votes import selected_labels, sets_of

MIN_SETS = 2
"""With a single set of labels, a classifier has nothing to learn."""
UNLABELLED = (UtteranceState.OPEN, UtteranceState.PROPOSED, UtteranceState.STRUCK)


@frozen
class Guess:
    """The labels that the classifier guesses for an utterance.

    certainty: of its decisions to give or not to give each label, the probability of the least certain one.
    """

    intents: Intents
    certainty: float


def guess_labels(
    learned: Sequence[tuple[Utterance, Intents]], unlabelled: Sequence[Utterance], label_set: LabelSet, seed: int
) -> dict[str, Guess]:
    """A guess for each unlabelled utterance, by id; {} if there are too few labels to learn from.

    The same arguments give the same guesses. PluginError without scikit-learn.
    """
    examples = [
        (utterance, intents) for utterance, intents in learned if utterance.words and not label_set.refusal(intents)
    ]
    if len({intents for _, intents in examples}) < MIN_SETS or not unlabelled:
        return {}
    classifier = classifier_maker(DEFAULT_CLASSIFIER, [])(seed)
    classifier.fit([utterance.text for utterance, _ in examples], [intents for _, intents in examples], label_set.ids)
    probabilities = classifier.probabilities([utterance.text for utterance in unlabelled])
    selected = selected_labels(probabilities, may_be_empty=label_set.may_be_empty)
    certainties: npt.NDArray[np.float64] = np.where(selected, probabilities, 1 - probabilities).min(axis=1)
    sets = sets_of(selected, label_set.ids)
    return {
        utterance.id: Guess(intents, float(certainty))
        for utterance, intents, certainty in zip(unlabelled, sets, certainties, strict=True)
    }


def estimated_error(guess_by_id: Mapping[str, Guess]) -> float | None:
    """The share of guesses that is expected to be wrong, by the classifier's own probabilities; None without guesses.

    On generated corpora the true share was smaller, by a third to a half: docs/explanation/tri-training.md.
    """
    return float(np.mean([1 - guess.certainty for guess in guess_by_id.values()])) if guess_by_id else None


@frozen
class ProjectGuesses:
    """The guesses of one classifier for all unlabelled utterances, by id.

    learned_count: number of labelled utterances in the project.
    """

    learned_count: int
    guesses: Mapping[str, Guess]

    @property
    def error(self) -> float | None:
        return estimated_error(self.guesses)


def guess_project(
    utterances: Sequence[Utterance], assignment: UtteranceAssignment, ledger: Ledger, label_set: LabelSet, seed: int
) -> ProjectGuesses:
    """Guesses from the labels of all annotators. Labels count even if a second annotator is still to come."""
    statuses = project_outcome(utterances, assignment, ledger).statuses
    learned: list[tuple[Utterance, Intents]] = []
    unlabelled: list[Utterance] = []
    for utterance in utterances:
        status = statuses[utterance.id]
        if status.intents is not None:
            learned.append((utterance, status.intents))
        if status.state in UNLABELLED and utterance.words:
            unlabelled.append(utterance)
    return ProjectGuesses(len(learned), guess_labels(learned, unlabelled, label_set, seed))


@dataclass(slots=True)
class _CachedUncertainty:
    """The state of the classifier for one annotator.

    - change_count: `Ledger.change_count` when the labels were last updated.
    - labels: id of an utterance → (position of the row, labels).
    - learned: (position of the row, id of the utterance) of the labels that the classifier has learnt from.
    - turns, error: the results of the classifier.
    """

    ledger: Ledger
    change_count: int
    labels: dict[str, tuple[int, Intents]]
    learned: tuple[tuple[int, str], ...] = ()
    turns: Mapping[str, int] = field(default_factory=dict)
    error: float | None = None


class UncertaintyOrder:
    """The order in which utterances come up for an annotator.

    It depends only on the annotator's own labels and on imported ones. So two annotators of the same utterance stay
    independent of each other.
    """

    def __init__(self, project: AnnotationProject, label_set: LabelSet, utterances: Sequence[Utterance]) -> None:
        self._project, self._label_set = project, label_set
        self._utterances = {utterance.id: utterance for utterance in utterances}
        self._cached: dict[str, _CachedUncertainty] = {}

    def turns(self, annotator: str, ledger: Ledger) -> Mapping[str, int]:
        """The turn of each unlabelled utterance, 0 for the most doubtful; {} before the first batch of labels.

        The classifier learns again when another batch of labels is complete. That takes some tenths of a second.
        """
        cached = self._updated_labels(annotator, ledger)
        positions = sorted((position, id_) for id_, (position, _) in cached.labels.items())
        learned = tuple(positions[: len(positions) - len(positions) % self._project.batch])
        if learned != cached.learned:
            cached.learned = learned
            guess_by_id = guess_labels(
                [(self._utterances[id_], cached.labels[id_][1]) for _, id_ in learned],
                [
                    utterance
                    for id_, utterance in self._utterances.items()
                    if id_ not in cached.labels and utterance.words
                ],
                self._label_set,
                self._project.seed,
            )
            ordered = sorted(guess_by_id, key=lambda id_: (guess_by_id[id_].certainty, id_))
            cached.turns = {id_: turn for turn, id_ in enumerate(ordered)}
            cached.error = estimated_error(guess_by_id)
        return cached.turns

    def _updated_labels(self, annotator: str, ledger: Ledger) -> _CachedUncertainty:
        """The state for an annotator, with the labels of all rows so far. Reads only utterances that have new rows."""
        cached = self._cached.get(annotator)
        if cached is None or cached.ledger is not ledger:
            cached = self._cached[annotator] = _CachedUncertainty(ledger, ledger.change_count, {})
            changed: Iterable[str] = self._utterances
        else:
            changed = ledger.changed_since(cached.change_count)
        for id_ in changed:
            cached.labels.pop(id_, None)
            choices = ledger.choices(id_)
            choice = choices.get(annotator) or choices.get(IMPORTED)
            if choice is not None and id_ in self._utterances:
                cached.labels[id_] = ledger.position_of(choice), choice.intents
        cached.change_count = ledger.change_count
        return cached

    def error(self, annotator: str) -> float | None:
        """The estimated error of the classifier that gave the latest turns; None before the first batch."""
        cached = self._cached.get(annotator)
        return None if cached is None else cached.error
