"""Tri-training: three classifiers teach each other on unlabelled utterances, and label them where two agree.

Whole sets of intents are compared. Apart from the processor time that it reports, this module is pure.
See docs/explanation/tri-training.md.

Source: the MEDIA paper, section 3.1 (Zhou & Li 2005, adapted by Boulanger et al. 2022).
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from harness.base.plugins import Group, checked_settings, load
from harness.base.ports import IntentClassifier
from harness.model.annotation import Intents
from harness.model.choices import MAX_EPISODES as MAX_EPISODES
from harness.model.choices import SEED_SHARE as SEED_SHARE
from harness.model.choices import EpisodesEnding
from harness.model.frozen import frozen
from harness.model.understanding import Utterance
from harness.statistics.intervals import Share
from harness.understanding.counts import IntentCounts, count_intents, total_intents
from harness.understanding.figures import ZERO, IntentFigures, intent_figures
from harness.understanding.models.votes import (
    THRESHOLD,
    Refusal,
    UtteranceVotes,
    same_sets,
    selected_labels,
    sets_of,
    vote,
)

MakeClassifier = Callable[[int], IntentClassifier]
"""A function that makes a new classifier from a seed."""


def classifier_maker(name: str, assignments: Iterable[tuple[str, str]] = ()) -> MakeClassifier:
    """A function that makes classifiers of that name with those settings. Raises PluginError, InputError."""
    classifier_type: type[IntentClassifier] = load(Group.INTENT_CLASSIFIERS, name)
    settings = checked_settings(classifier_type.settings, assignments, name)
    return lambda seed: classifier_type(settings, seed=seed)


def sampled_indices(sets: Sequence[Intents], share: float, seed: str) -> list[int]:
    """Indices of utterances drawn without replacement, ascending; at least one.

    - sets: the label set of each utterance.
    - share: size of the sample, as a share of the utterances.

    One utterance of each label, rarest first, is drawn before the rest. The sample therefore has every label. With many
    labels, it may be larger than its share.
    """
    generator = random.Random(seed)
    count = Counter(label for intents in sets for label in intents)
    sample: set[int] = set()
    covered: set[str] = set()
    for label in sorted(count, key=lambda name: (count[name], name)):
        if label not in covered:
            index = generator.choice([index for index, intents in enumerate(sets) if label in intents])
            sample.add(index)
            covered.update(sets[index])
    undrawn = [index for index in range(len(sets)) if index not in sample]
    size = max(1, round(share * len(sets)))
    sample.update(generator.sample(undrawn, max(0, min(size - len(sample), len(undrawn)))))
    return sorted(sample)


MAX_CALM_SHARE = 0.005
"""Default of `TriRule.calm`. Not 0, since the labels that classifiers teach each other often never stop changing."""


@frozen
class TriRule:
    """How to train.

    - triads: number of triads to train. The one with the best EMR on the held-out utterances votes.
    - share: share of the labelled utterances in each classifier's sample.
    - episodes: most episodes of a triad.
    - threshold: a label is given if its probability is above this.
    - calm: an episode is the last if EMR is unchanged, and at most this share of the taught labels changes.
    """

    seed: int = 0
    triads: int = 1
    share: float = SEED_SHARE
    episodes: int = MAX_EPISODES
    threshold: float = THRESHOLD
    calm: float = MAX_CALM_SHARE

    def __post_init__(self) -> None:
        shares_are_valid = 0 < self.share <= 1 and 0 < self.threshold < 1 and 0 <= self.calm < 1
        if self.triads < 1 or self.episodes < 0 or not shares_are_valid:
            raise ValueError(f"{self} is not a valid rule for tri-training")


@frozen
class Episode:
    """One round of training.

    - triad: number of the triad, from 0.
    - number: from 0; episode 0 is the training on the samples only.
    - exact: EMR of the ensemble on the held-out utterances.
    - taught: for each classifier, the number of texts on which the other two agree, and which it learns.
    - changed: number of such texts that are new, gone or labelled differently since the previous episode.
    """

    triad: int
    number: int
    exact: Share
    taught: tuple[int, int, int] = (0, 0, 0)
    changed: int = 0
    cpu_s: float = field(default=0.0, compare=False)


@frozen
class Triad:
    """A trained triad. samples: sizes of the samples of its three classifiers."""

    number: int
    samples: tuple[int, int, int]
    episodes: tuple[Episode, ...]
    ending: EpisodesEnding

    @property
    def exact(self) -> Share:
        return self.episodes[-1].exact


@frozen
class TriTraining:
    """The result of tri-training."""

    rule: TriRule
    labels: tuple[str, ...]
    triads: tuple[Triad, ...]
    best: Triad
    """The triad with the best EMR on the held-out utterances, which voted."""
    figures: IntentFigures
    """Metrics of its ensemble on the held-out utterances. No consensus counts as no label."""
    voted: tuple[UtteranceVotes, ...]
    """The votes on the unlabelled utterances, in order."""
    held_out_without_consensus: int
    """Number of held-out utterances on which no two classifiers agree."""
    known_texts: int
    """Number of unlabelled utterances with the same text as a labelled one."""
    shared_texts: int
    """Number of held-out utterances with the same text as a labelled one."""
    absent: tuple[str, ...]
    """Labels that no labelled utterance has. They are never proposed."""
    cpu_s: float = field(default=0.0, compare=False)
    """Processor time of all triads."""


def tri_train(
    labelled: Sequence[Utterance],
    held_out: Sequence[Utterance],
    unlabelled: Sequence[Utterance],
    make_classifier: Callable[[int], IntentClassifier],
    labels: Sequence[str],
    *,
    rule: TriRule = TriRule(),
    refusal: Refusal = lambda intents: "",
    tell: Callable[[Episode], None] = lambda episode: None,
) -> TriTraining:
    """Trains triads. The best one labels the unlabelled utterances by consensus.

    - labelled, held_out: utterances with intents, all among `labels`.
    - unlabelled: utterances whose intents are ignored.
    - refusal: returns why a set is refused, "" if it is not. A refused set is neither consensus nor training data. If
      the empty set is refused, a classifier gives its best label instead.
    - tell: called with each finished episode.

    ValueError without utterances, for other labels, or if an id occurs twice. The same arguments give the same result,
    if the classifiers are deterministic.
    """
    started_s = time.process_time()
    _check_arguments(labelled, held_out, unlabelled, labels)
    examples = [(utterance.text, utterance.intents or ()) for utterance in labelled]
    work = _Training(examples, held_out, unlabelled, tuple(labels), make_classifier, rule, refusal, tell)
    best = work.triad(0)
    triads = [best.triad]
    for number in range(1, rule.triads):
        outcome = work.triad(number)
        triads.append(outcome.triad)
        if outcome.triad.exact.count > best.triad.exact.count:
            best = outcome
    held_out_votes = work.vote(
        [utterance.id for utterance in held_out], [utterance.text for utterance in held_out], best.held_out
    )
    counts = _intent_counts(held_out, held_out_votes)
    texts = {utterance.text for utterance in labelled}
    present_labels = {label for utterance in labelled for label in utterance.intents or ()}
    return TriTraining(
        rule=rule,
        labels=work.labels,
        triads=tuple(triads),
        best=best.triad,
        figures=intent_figures(counts, ZERO, work.labels),
        voted=tuple(work.votes_of_utterances(best.unlabelled)),
        held_out_without_consensus=sum(votes.intents is None for votes in held_out_votes),
        known_texts=sum(utterance.text in texts for utterance in unlabelled),
        shared_texts=sum(utterance.text in texts for utterance in held_out),
        absent=tuple(label for label in labels if label not in present_labels),
        cpu_s=time.process_time() - started_s,
    )


Probabilities = list[npt.NDArray[np.float64]]
"""The probabilities of labels by three classifiers, each of shape (texts, labels)."""


@frozen
class _TriadOutcome:
    triad: Triad
    held_out: Probabilities
    unlabelled: Probabilities


@dataclass(frozen=True)
class _Training:
    """The work of one call of `tri_train`. Each classifier is given each unlabelled text only once."""

    _labelled: list[tuple[str, Intents]]
    _held_out: Sequence[Utterance]
    _unlabelled: Sequence[Utterance]
    labels: tuple[str, ...]
    _make_classifier: Callable[[int], IntentClassifier]
    _rule: TriRule
    _refusal: Refusal
    _tell: Callable[[Episode], None]

    @cached_property
    def _texts(self) -> list[str]:
        return list(dict.fromkeys(utterance.text for utterance in self._unlabelled))

    def triad(self, number: int) -> _TriadOutcome:
        """Trains one triad until it settles, labels repeat, or the maximum number of episodes is reached."""
        started_s = time.process_time()
        samples = [self._sample(f"{self._rule.seed}/{number}/{index}/sample") for index in range(3)]
        # Each classifier's seed is drawn from a text, so that adjacent seeds are unrelated.
        seeds = [random.Random(f"{self._rule.seed}/{number}/{index}").getrandbits(31) for index in range(3)]
        classifiers = [self._make_classifier(seed) for seed in seeds]
        for classifier, sample in zip(classifiers, samples, strict=True):
            self._fit(classifier, sample)
        held_out, unlabelled = self._predict_all(classifiers)
        episodes = [Episode(number, 0, self._held_out_share(held_out), cpu_s=time.process_time() - started_s)]
        self._tell(episodes[0])
        earlier: list[list[dict[str, Intents]]] = [[{}, {}, {}]]
        ending = EpisodesEnding.MOST if self._texts else EpisodesEnding.SETTLED
        while self._texts and len(episodes) <= self._rule.episodes:
            started_s = time.process_time()
            pseudo_labels = self._pseudo_labels(unlabelled, [{text for text, _ in sample} for sample in samples])
            changed = sum(
                len(dict(new.items() ^ old.items())) for new, old in zip(pseudo_labels, earlier[-1], strict=True)
            )
            if changed:
                for classifier, sample, examples in zip(classifiers, samples, pseudo_labels, strict=True):
                    self._fit(classifier, [*sample, *examples.items()])
                held_out, unlabelled = self._predict_all(classifiers)
            exact = self._held_out_share(held_out)
            counts = (len(pseudo_labels[0]), len(pseudo_labels[1]), len(pseudo_labels[2]))
            episodes.append(Episode(number, len(episodes), exact, counts, changed, time.process_time() - started_s))
            self._tell(episodes[-1])
            if exact == episodes[-2].exact and changed <= self._rule.calm * sum(counts):
                ending = EpisodesEnding.SETTLED
                break
            if pseudo_labels in earlier:
                ending = EpisodesEnding.CIRCLING
                break
            earlier.append(pseudo_labels)
        sizes = (len(samples[0]), len(samples[1]), len(samples[2]))
        return _TriadOutcome(Triad(number, sizes, tuple(episodes), ending), held_out, unlabelled)

    def _sample(self, seed: str) -> list[tuple[str, Intents]]:
        sets = [intents for _, intents in self._labelled]
        return [self._labelled[index] for index in sampled_indices(sets, self._rule.share, seed)]

    def vote(self, ids: Sequence[str], texts: Sequence[str], probabilities: Probabilities) -> list[UtteranceVotes]:
        return vote(ids, probabilities, self.labels, self._rule.threshold, self._refusal) if texts else []

    def votes_of_utterances(self, probabilities: Probabilities) -> list[UtteranceVotes]:
        """The votes on all unlabelled utterances, from those on their different texts."""
        row = {text: index for index, text in enumerate(self._texts)}
        rows = [row[utterance.text] for utterance in self._unlabelled]
        ids = [utterance.id for utterance in self._unlabelled]
        return self.vote(ids, self._texts, [matrix[rows] for matrix in probabilities])

    def _fit(self, classifier: IntentClassifier, examples: Sequence[tuple[str, Intents]]) -> None:
        classifier.fit([text for text, _ in examples], [intents for _, intents in examples], self.labels)

    def _predict_all(self, classifiers: Sequence[IntentClassifier]) -> tuple[Probabilities, Probabilities]:
        held_out = [utterance.text for utterance in self._held_out]
        probabilities = [classifier.probabilities([*held_out, *self._texts]) for classifier in classifiers]
        return [matrix[: len(held_out)] for matrix in probabilities], [
            matrix[len(held_out) :] for matrix in probabilities
        ]

    def _pseudo_labels(
        self, probabilities: Probabilities, sampled_texts: Sequence[set[str]]
    ) -> list[dict[str, Intents]]:
        """For each classifier, the texts to which the other two give the same set, with that set.

        Texts of its own sample are left out, and so are refused sets.
        """
        may_be_empty = not self._refusal(())
        selected = [
            selected_labels(matrix, threshold=self._rule.threshold, may_be_empty=may_be_empty)
            for matrix in probabilities
        ]
        sets = [sets_of(matrix, self.labels) for matrix in selected]
        accepted = {
            intents: not self._refusal(intents)
            for intents in {intents for classifier_sets in sets for intents in classifier_sets}
        }
        pseudo_labels = []
        for third in range(3):
            first, second = (number for number in range(3) if number != third)
            same_indices = np.flatnonzero(same_sets(selected[first], selected[second]))
            pseudo_labels.append(
                {
                    self._texts[index]: sets[first][index]
                    for index in same_indices
                    if accepted[sets[first][index]] and self._texts[index] not in sampled_texts[third]
                }
            )
        return pseudo_labels

    def _held_out_share(self, probabilities: Probabilities) -> Share:
        voted = self.vote(
            [utterance.id for utterance in self._held_out],
            [utterance.text for utterance in self._held_out],
            probabilities,
        )
        return _intent_counts(self._held_out, voted).exact


def _intent_counts(gold: Sequence[Utterance], voted: Sequence[UtteranceVotes]) -> IntentCounts:
    return total_intents([
        count_intents(utterance.intents or (), votes.intents or ())
        for utterance, votes in zip(gold, voted, strict=True)
    ])  # fmt: skip


def _check_arguments(
    labelled: Sequence[Utterance], held_out: Sequence[Utterance], unlabelled: Sequence[Utterance], labels: Sequence[str]
) -> None:
    """Raises ValueError for arguments that `tri_train` refuses."""
    if not labelled or not held_out or not labels:
        raise ValueError("tri-training needs labels, labelled utterances and held-out ones")
    ids: set[str] = set()
    for utterance in (*labelled, *held_out, *unlabelled):
        if utterance.id in ids:
            raise ValueError(f"the utterance {utterance.id!r} occurs twice")
        ids.add(utterance.id)
    label_set = set(labels)
    for utterance in (*labelled, *held_out):
        if utterance.intents is None or not label_set.issuperset(utterance.intents):
            raise ValueError(f"the utterance {utterance.id!r} is not labelled with the given labels")
