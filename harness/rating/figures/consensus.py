"""What several raters say together: the majority, and the consensus that trusts each rater as far as they earn it.

Tables of labels are those of `agreement`: raters × items, MISSING where a rater gave none. How often a consensus is
right is measured by benchmarks/bench_consensus.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.statistics.agreement import MISSING, Labels, label_counts

Probabilities = NDArray[np.float64]

SURE_ENOUGH = 0.9
"""An item's label is the majority's category where it is at least so probable; the rest is left open."""
OWN = 0.6
"""Of the labels that are imagined, so many are right; the rest is spread over the other categories."""
WORTH_TOGETHER = 10.0
"""Labels that are imagined for each category before anything is known of the raters together."""
WORTH_EACH = 20.0
"""Labels that are imagined for each category of a single rater, spread as those of all raters together."""
PRIOR_WORTH = 1.0
"""Items that are imagined, spread over the categories."""
TOLERANCE = 1e-6
MOST_ROUNDS = 500


@dataclass(frozen=True, slots=True)
class Consensus:
    """Of one table, by the model of Dawid and Skene.

    labels: for each item the category that more raters gave than any other, where it is at least SURE_ENOUGH probable,
    else MISSING. posteriors: items × categories; NaN where nobody labelled. priors: how frequent each category is.
    confusion[r, c, k]: how probable rater r says k of what is c; NaN for categories that nobody gave. rounds: of the
    iteration; converged: it came to rest before MOST_ROUNDS. objectives: what each round made larger (log of the
    posterior of priors and confusions, up to a constant).
    """

    labels: NDArray[np.int64]
    posteriors: Probabilities
    priors: Probabilities
    confusion: Probabilities
    rounds: int
    converged: bool
    objectives: tuple[float, ...]


def majority(labels: Labels, categories: int) -> NDArray[np.int64]:
    """The category that more raters gave than any other, for each item; MISSING for a tie, or without a label."""
    counts = label_counts(labels, categories)
    best = counts.argmax(axis=1)
    most = counts[np.arange(len(counts)), best]
    alone = (counts == most[:, None]).sum(axis=1) == 1
    return np.where(alone & (most > 0), best, MISSING)


def consensus(labels: Labels, categories: int, start: Probabilities | None = None) -> Consensus:
    """The consensus of a table; the same table gives the same, whatever else.

    A matrix for each rater holds more numbers than a few hundred labels can tell. So one matrix of all raters together
    is fitted first, with WORTH_TOGETHER imagined labels a category; then one for each rater, with WORTH_EACH imagined
    labels a category that are spread as in the common matrix: a rater of whom little is known is taken for an average
    one. Both are the most probable parameters. The iteration starts from the shares of the labels of each item, or
    from `start` (posteriors, items × categories). Categories that nobody gave are left out.
    Sources: Dawid & Skene, Appl. Stat. 28 (1979); the imagined labels are a Dirichlet prior, and matrices that lean on
    a common one the hierarchical model of Paun et al., Trans. Assoc. Comput. Linguist. 6 (2018).
    """
    counts = label_counts(labels, categories)
    raters, items = labels.shape
    used = np.flatnonzero(counts.any(axis=0))
    labelled = np.flatnonzero(counts.any(axis=1))
    posteriors = np.full((items, categories), np.nan)
    confusion = np.full((raters, categories, categories), np.nan)
    priors = np.zeros(categories)
    if not len(used):
        return Consensus(np.full(items, MISSING), posteriors, np.full(categories, np.nan), confusion, 0, True, ())
    size = len(used)
    shares = counts[labelled][:, used] if start is None else start[labelled][:, used]
    said = _one_hot(labels[:, labelled], used)
    other = (1 - OWN) / (size - 1) if size > 1 else 0.0
    average = WORTH_TOGETHER * np.where(np.eye(size, dtype=bool), OWN, other)
    together = _Model(
        counts[labelled][:, used].astype(np.float64), 1, shares / shares.sum(axis=1, keepdims=True), average
    )
    together.fit()
    model = _Model(said, raters, together.posteriors, WORTH_EACH * np.exp(together.confusion[:, 0]))
    objectives, converged = model.fit()
    posteriors[labelled] = 0.0
    posteriors[np.ix_(labelled, used)] = model.posteriors
    priors[used] = np.exp(model.priors)
    confusion[:, used, :] = 0.0
    confusion[np.ix_(np.arange(raters), used, used)] = np.exp(model.confusion).transpose(1, 0, 2)
    most = majority(labels, categories)
    sure = np.nan_to_num(posteriors)[np.arange(items), most] >= SURE_ENOUGH
    found = np.where((most != MISSING) & sure, most, MISSING)
    return Consensus(found, posteriors, priors, confusion, len(objectives), converged, objectives)


def without_each(labels: Labels, categories: int, whole: Consensus) -> NDArray[np.int64]:
    """For each rater, what the others agree on (raters × items): the consensus without the rater's own labels.

    MISSING where fewer than two others labelled the item, or none is sure enough. The iteration begins where the
    consensus of all ended.
    """
    found = np.full(labels.shape, MISSING, np.int64)
    given = (labels != MISSING).sum(axis=0)
    start = np.nan_to_num(whole.posteriors) + 1e-3
    for rater, own in enumerate(labels):
        others = np.delete(labels, rater, axis=0)
        asked = (own != MISSING) & (given >= 3)
        if asked.any():
            found[rater] = np.where(asked, consensus(others, categories, start).labels, MISSING)
    return found


class _Model:
    """One fit. said: items × (raters · categories). imagined: labels imagined for each rater, categories × categories.

    priors, confusion (categories × raters × categories): logarithms.
    """

    def __init__(self, said: Probabilities, raters: int, posteriors: Probabilities, imagined: Probabilities) -> None:
        size = posteriors.shape[1]
        self._said = said
        self._raters = raters
        self._imagined = imagined[:, None, :]
        self.posteriors = posteriors
        self.priors = np.zeros(size)
        self.confusion = np.zeros((size, raters, size))

    def fit(self) -> tuple[tuple[float, ...], bool]:
        """Rounds until nothing moves any more; the objective after each, and whether it came to rest."""
        objectives: list[float] = []
        converged = False
        while not converged and len(objectives) < MOST_ROUNDS:
            moved, objective = self._round()
            objectives.append(objective)
            converged = moved < TOLERANCE
        return tuple(objectives), converged

    def _round(self) -> tuple[float, float]:
        """Parameters from posteriors and those from the parameters; the largest move, and the objective."""
        size = len(self.priors)
        frequency = self.posteriors.sum(axis=0) + PRIOR_WORTH / size
        self.priors = np.log(frequency / frequency.sum())
        answers = (self.posteriors.T @ self._said).reshape(size, self._raters, size) + self._imagined
        self.confusion = np.log(answers / answers.sum(axis=2, keepdims=True))
        joint = self._said @ self.confusion.reshape(size, -1).T + self.priors
        top = joint.max(axis=1, keepdims=True)
        likely = np.exp(joint - top)
        total = likely.sum(axis=1, keepdims=True)
        posteriors = likely / total
        moved = float(np.abs(posteriors - self.posteriors).max(initial=0.0))
        self.posteriors = posteriors
        objective = float((top + np.log(total)).sum()) + float((self._imagined * self.confusion).sum())
        return moved, objective + PRIOR_WORTH / size * float(self.priors.sum())


def _one_hot(labels: Labels, used: NDArray[np.int64]) -> Probabilities:
    """Items × (raters · used categories): 1 where the rater said it."""
    said = labels.T[:, :, None] == used
    return np.asarray(said.reshape(len(said), -1), np.float64)
