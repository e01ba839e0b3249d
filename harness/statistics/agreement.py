"""How far raters agree, and how much of that agreement is expected by chance.

A table of labels has a row for each rater and a column for each item. A label is the number of a category from 0, or
MISSING where a rater gave none. An item that two or more raters labelled is *shared*. Only shared items count for
agreement. Where a coefficient is undefined (all labels equal, one rater, no shared item), the reason is given instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.model.frozen import frozen
from harness.statistics.intervals import TAIL, Interval, Share, clopper_pearson
from harness.statistics.ratios import MIN_RESAMPLED_UNITS
from harness.statistics.word_intervals import wer_interval

Counts = NDArray[np.int64]
Sums = NDArray[np.float64]

MIN_DEFINED_SHARE = 0.95
"""There is an interval only if the statistic has a value in at least this share of the resamples."""
ROUGH_BELOW = 30
"""With fewer items, up to one interval in five missed the true value in simulations, instead of one in twenty."""
_SHARED, _EQUAL, _UNEQUAL, _LABELLED, _FIRST_CATEGORY = range(5)
"""Columns of the sums, see `columns_of`."""
_BLOCK_CELLS = 1 << 21
"""Number of values that the bootstrap draws at a time."""


def columns_of(counts: Counts) -> Sums:
    """The terms that each item adds to the sums, a row for each. counts: how often each item (row) got each category
    (column).

    Columns: shared (0 or 1), share of equal pairs among its pairs of labels, alpha's number of unequal pairs, labelled
    (0 or 1). Then a column for each category with its labels if the item is shared. Then a column for each category
    with its share of the item's labels.
    """
    counted = counts.astype(np.float64)
    label_totals = counted.sum(axis=1)
    shared = label_totals >= 2
    squares = (counted**2).sum(axis=1)
    equal = np.where(shared, (squares - label_totals) / np.where(shared, label_totals * (label_totals - 1), 1), 0)
    unequal = np.where(shared, (label_totals**2 - squares) / np.where(shared, label_totals - 1, 1), 0)
    shares = counted / np.maximum(label_totals, 1)[:, None]
    return np.column_stack([shared, equal, unequal, label_totals > 0, counted * shared[:, None], shares])


def figures_of(sums: Sums) -> Sums:
    """Raw agreement, alpha and AC1 from sums of `columns_of`, which are the last axis. NaN where one is undefined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        raw = sums[..., _EQUAL] / sums[..., _SHARED]
        by_chance = alpha_chance(sums)
        labels = _margins(sums).sum(axis=-1)
        # The number of pairs that differ by chance is 0, or at least 1; anything in between is rounding.
        differing = by_chance * labels * (labels - 1) > 0.5
        alpha = np.where(differing, 1 - sums[..., _UNEQUAL] / labels / by_chance, np.nan)
        ac1 = 1 - (1 - raw) / ac1_chance(sums)
    return np.stack([raw, alpha, ac1], axis=-1)


def alpha_chance(sums: Sums) -> Sums:
    """The share of pairs that differ by chance, by alpha's definition: all labels are paired at random."""
    margins = _margins(sums)
    labels = margins.sum(axis=-1)
    return np.asarray((labels**2 - (margins**2).sum(axis=-1)) / (labels * (labels - 1)))


def ac1_chance(sums: Sums) -> Sums:
    """The share of pairs that differ by chance, by AC1's definition: only guessed labels agree by chance."""
    shares = sums[..., _FIRST_CATEGORY + _categories(sums) :] / sums[..., _LABELLED, None]
    return np.asarray(1 - (shares * (1 - shares)).sum(axis=-1) / (_categories(sums) - 1))


def resample(columns: Sums, kind_counts: Counts, resamples: int, seed: int) -> Sums:
    """Raw agreement, alpha and AC1 (columns) of `resamples` tables (rows). Each table has as many items as the
    original, drawn with replacement.

    - columns: from `columns_of`, a row for each kind of item.
    - kind_counts: number of items of each kind.
    """
    random = np.random.default_rng(seed)
    items = int(kind_counts.sum())
    tables_per_block = max(1, _BLOCK_CELLS // len(kind_counts))
    blocks = []
    for begin in range(0, resamples, tables_per_block):
        samples = random.multinomial(items, kind_counts / items, size=min(tables_per_block, resamples - begin))
        blocks.append(figures_of(samples @ columns))
    return np.concatenate(blocks)


def bca(value: float, drawn: Sums, left_out: Sums, kind_counts: Counts) -> Interval | None:
    """The bias-corrected and accelerated interval of a statistic; None if too few resamples have a value.

    - value: the statistic.
    - drawn: its values on resamples.
    - left_out: for each kind of item, its value without one such item.
    - kind_counts: number of items of each kind. Source: Efron, J. Am. Stat. Assoc. 82 (1987).
    """
    defined = drawn[~np.isnan(drawn)]
    if len(defined) < MIN_DEFINED_SHARE * len(drawn):
        return None
    weights = np.where(np.isnan(left_out), 0, kind_counts)
    if not weights.any():
        return None
    influences = np.nan_to_num(left_out)
    influences = np.average(influences, weights=weights) - influences
    spread = float((weights * influences**2).sum())
    if not spread:
        return None
    acceleration = float((weights * influences**3).sum()) / (6 * spread**1.5)
    smaller, equal = float((defined < value - 1e-12).sum()), float((np.abs(defined - value) <= 1e-12).sum())
    below = (smaller + 0.5 * equal) / len(defined)
    from harness.statistics.special_functions import special  # here, since it loads slowly

    # Counts at least half a resample on each side. With all on one side, the deviate would be infinite.
    bias = float(special.ndtri(min(max(below, 0.5 / len(defined)), 1 - 0.5 / len(defined))))
    tail = float(special.ndtri(TAIL))
    ends = [bias + z for z in (tail, -tail)]
    # BCa has a pole where the acceleration times an end is 1.
    low, high = (float(special.ndtr(bias + end / max(1e-3, 1 - acceleration * end))) for end in ends)
    return float(np.quantile(defined, low)), float(np.quantile(defined, high))


def interval_without_disagreement(items: int, by_chance: float) -> Interval:
    """The interval of a coefficient that is 1 because no item has unequal labels.

    by_chance: the share of pairs that differ by chance. A bootstrap of such a table would not vary.
    """
    exact = clopper_pearson(0, items)
    return max(-1.0, 1 - (exact[1] if exact else 1.0) / by_chance), 1.0


def _categories(sums: Sums) -> int:
    """Number of categories in the columns of sums."""
    return int(sums.shape[-1] - _FIRST_CATEGORY) // 2


def _margins(sums: Sums) -> Sums:
    """The number of labels of each category on shared items."""
    return sums[..., _FIRST_CATEGORY : _FIRST_CATEGORY + _categories(sums)]


Labels = NDArray[np.integer]

MISSING = -1
RESAMPLES = 2000
SEED = 20200920  # Any fixed one: the same labels then give the same interval.

NOTHING_JUDGED = "nothing was judged"
ONE_RATER = "there is only one rater"
NO_OVERLAP = "no item was judged by two raters"
ALL_EQUAL = "every label is the same, so chance agreement is 100 %"
TOO_ALIKE = "too few labels differ for an interval"
TOO_FEW_ITEMS = f"an interval needs {MIN_RESAMPLED_UNITS} items or more"
ROUGH = f"Intervals are rough below {ROUGH_BELOW} items: up to 1 in 5 is wrong, not just 1 in 20."
NEVER_GIVEN = "nobody gave it to an item that two raters judged"


@frozen
class Figure:
    """A coefficient of agreement, at most 1. why_not: why there is no value or no interval; "" if there are both."""

    value: float | None
    interval: Interval | None = None
    why_not: str = ""


def resampled_figure(value: float, drawn: Sums, left_out: Sums, kind_counts: Counts, items: int) -> Figure:
    """A coefficient with its interval by `bca`. items: number of items that two or more raters labelled."""
    if items < MIN_RESAMPLED_UNITS:
        return Figure(value, why_not=TOO_FEW_ITEMS)
    interval = bca(value, drawn, left_out, kind_counts)
    return Figure(value, interval, "" if interval else TOO_ALIKE)


def rough_note(items: int) -> tuple[str, ...]:
    """A sentence that warns of rough intervals if there are few items, but enough for an interval; else ()."""
    return (ROUGH,) if MIN_RESAMPLED_UNITS <= items < ROUGH_BELOW else ()


@frozen
class CategoryAgreement:
    """Specific agreement on a category: if one rater gives it to an item, how often another rater gives it too.

    - labels: number of times that raters gave it on shared items.
    - items: number of shared items to which a rater gave it. Source: Cicchetti & Feinstein, J. Clin. Epidemiol. 43
      (1990); for many raters Uebersax, Biometrics 38 (1982).
    """

    labels: int
    items: int
    agreement: Figure


@frozen
class PairAgreement:
    """Two raters, by the numbers of their rows in the table, on the items that both judged.

    - agreed: share of these items with equal labels.
    - kappa: Cohen's, Educ. Psychol. Meas. 20 (1960). confusion[c, k]: number of items that the first labelled c and the
      second k.
    """

    first: int
    second: int
    agreed: Share
    kappa: Figure
    confusion: Counts


@frozen
class Agreement:
    """The agreement in one table.

    - raters: number of raters (rows of the table).
    - items: number of items with at least one label.
    - shared: number of items with two or more labels.
    - labels: number of all labels.
    - shared_labels: number of labels on shared items.
    - raw: share of equal pairs of labels, averaged over shared items. Each item has the same weight, however many
      raters it has.
    - alpha: Krippendorff's alpha for nominal data.
    - ac1: Gwet's AC1, over all categories of the scheme.
    - categories: the specific agreement on each category of the scheme.
    - confusion[c, k]: number of pairs of labels c and k on shared items. Symmetric; the diagonal counts equal pairs.

    Intervals apply to further items judged by these raters, not to other raters.
    """

    raters: int
    items: int
    shared: int
    labels: int
    shared_labels: int
    raw: Figure
    alpha: Figure
    ac1: Figure
    categories: tuple[CategoryAgreement, ...]
    confusion: Counts


def agreement(labels: Labels, categories: int, *, resamples: int = RESAMPLES, seed: int = SEED) -> Agreement:
    """The agreement in a table (raters × items). categories: number of categories in the scheme.

    Raises ValueError for labels of other categories.

    Sources: Krippendorff, Content Analysis, 11; Gwet, Br. J. Math. Stat. Psychol. 61 (2008). Intervals are
    bootstrapped over items (`bca`), with two exceptions. If the labels of each item agree all or not at all, raw has
    Wilson's interval. If all labels of every item agree, alpha and AC1 have exact intervals.
    """
    counts = label_counts(labels, categories)
    label_totals = counts.sum(axis=1)
    shared = counts[label_totals >= 2]
    raters = int((labels != MISSING).any(axis=1).sum()) if labels.size else 0
    if why_not := _nothing_shared(raters, int(label_totals.sum()), len(shared)):
        raw = alpha = ac1 = Figure(None, why_not=why_not)
    else:
        raw, alpha, ac1 = _overall_figures(counts[label_totals > 0], resamples, seed)
    return Agreement(
        raters=raters,
        items=int((label_totals > 0).sum()),
        shared=len(shared),
        labels=int(label_totals.sum()),
        shared_labels=int(shared.sum()),
        raw=raw,
        alpha=alpha,
        ac1=ac1,
        categories=tuple(_category_agreement(shared, category, why_not) for category in range(categories)),
        confusion=_label_pairs(shared),
    )


def label_counts(labels: Labels, categories: int) -> Counts:
    """How often each item (row) got each category (column)."""
    if labels.ndim != 2:
        raise ValueError(f"a table has raters and items, not the shape {labels.shape}")
    if labels.size and (labels.min() < MISSING or labels.max() >= categories):
        raise ValueError(f"labels are numbers below {categories}, or {MISSING}")
    counts = np.empty((labels.shape[1], categories), np.int64)
    for category in range(categories):
        counts[:, category] = (labels == category).sum(axis=0)
    return counts


def pairs(labels: Labels, categories: int) -> tuple[PairAgreement, ...]:
    """The agreement of every two raters that share an item."""
    agreements = []
    for first, second in combinations(range(len(labels)), 2):
        shared = (labels[first] != MISSING) & (labels[second] != MISSING)
        if not shared.any():
            continue
        label_pairs = labels[first][shared].astype(np.int64) * categories + labels[second][shared]
        confusion = np.bincount(label_pairs, minlength=categories**2).reshape(categories, categories)
        agreed = Share(int(np.trace(confusion)), int(confusion.sum()))
        agreements.append(PairAgreement(first, second, agreed, _kappa(confusion), confusion))
    return tuple(agreements)


def confusions(confusion: Counts) -> Sequence[tuple[int, int, int]]:
    """The pairs of different categories that raters gave to the same item: c, k, and how often; the most frequent
    first."""
    first, second = np.triu_indices(len(confusion), 1)
    pair_counts = confusion[first, second]
    order = np.argsort(-pair_counts, kind="stable")
    return [(int(first[index]), int(second[index]), int(pair_counts[index])) for index in order if pair_counts[index]]


def _nothing_shared(raters: int, labels: int, shared: int) -> str:
    """Why there is no agreement to compute; "" if there is."""
    if not labels:
        return NOTHING_JUDGED
    if raters < 2:
        return ONE_RATER
    return "" if shared else NO_OVERLAP


def _overall_figures(counts: Counts, resamples: int, seed: int) -> tuple[Figure, Figure, Figure]:
    """Raw agreement, alpha and AC1, with the intervals that `agreement` describes. counts: of items with labels."""
    # Items with the same counts are of one kind, and have the same effect. The bootstrap draws the number of each kind.
    kinds, kind_counts = np.unique(counts, axis=0, return_counts=True)
    columns = columns_of(kinds)
    sums = kind_counts @ columns
    raw, alpha, ac1 = map(float, figures_of(sums))
    shared = columns[:, 0] > 0
    unequal = np.repeat(1 - columns[shared, 1], kind_counts[shared])
    is_all_or_nothing = (unequal == 0) | (unequal == 1)
    raw_by_items = Figure(raw, Share(int((unequal == 0).sum()), len(unequal)).interval)
    if not unequal.any():
        items = len(unequal)
        alpha_figure = Figure(None, why_not=ALL_EQUAL)
        if not np.isnan(alpha):
            alpha_figure = Figure(alpha, interval_without_disagreement(items, float(alpha_chance(sums))))
        return raw_by_items, alpha_figure, Figure(ac1, interval_without_disagreement(items, float(ac1_chance(sums))))
    samples = resample(columns, kind_counts, resamples, seed)
    left_out = figures_of(sums - columns)
    figures = [
        resampled_figure(value, samples[:, column], left_out[:, column], kind_counts, len(unequal))
        for column, value in enumerate((raw, alpha, ac1))
    ]
    # If the labels of each item agree all or not at all, as with two raters, raw agreement is a share of items.
    return raw_by_items if is_all_or_nothing.all() else figures[0], figures[1], figures[2]


def _category_agreement(shared: Counts, category: int, why_not: str) -> CategoryAgreement:
    """The agreement on a category.

    - shared: counts of shared items.
    - why_not: the reason if there are none.
    """
    own_counts = shared[:, category]
    other_counts = shared.sum(axis=1) - 1
    own_counts, other_counts = own_counts[own_counts > 0], other_counts[own_counts > 0]
    if not len(own_counts):
        return CategoryAgreement(0, 0, Figure(None, why_not=why_not or NEVER_GIVEN))
    comparisons = own_counts * other_counts
    disagreements = comparisons - own_counts * (own_counts - 1)
    value = 1 - float(disagreements.sum()) / float(comparisons.sum())
    # Specific agreement is a ratio of sums over items, as a word error rate is a ratio of sums over utterances.
    return CategoryAgreement(
        int(own_counts.sum()), len(own_counts), Figure(value, _complement(wer_interval(disagreements, comparisons)))
    )


def _complement(interval: Interval | None) -> Interval | None:
    """The interval of a share, from that of its complement."""
    return None if interval is None else (max(0.0, 1 - interval[1]), min(1.0, 1 - interval[0]))


def _label_pairs(shared: Counts) -> Counts:
    """Number of pairs of labels on shared items, as in `Agreement.confusion`."""
    together = shared.T @ shared
    np.fill_diagonal(together, (shared * (shared - 1) // 2).sum(axis=0))
    return together


def _kappa(confusion: Counts) -> Figure:
    """Cohen's kappa of two raters."""
    total = float(confusion.sum())
    by_chance = float((confusion.sum(axis=0) / total) @ (confusion.sum(axis=1) / total))
    if by_chance > 1 - 1e-12:
        return Figure(None, why_not=ALL_EQUAL)
    return Figure((float(np.trace(confusion)) / total - by_chance) / (1 - by_chance))


Probabilities = NDArray[np.float64]

MIN_AGREEING_RATERS = 2
"""At least this many raters must give a category for it to count as the one on which they agree."""
DOUBTFUL = 0.9
"""Items whose most likely category has a lower probability in the model come first in a review."""
OWN = 0.6
"""Share of the pseudo-labels that are right. The rest is spread over the other categories."""
WORTH_TOGETHER = 10.0
"""Number of pseudo-labels for each category in the common matrix of all raters."""
WORTH_EACH = 20.0
"""Number of pseudo-labels for each category in the matrix of a single rater, spread as in the common matrix."""
PRIOR_WORTH = 1.0
"""Number of pseudo-items, spread over the categories, in the frequencies of categories."""
TOLERANCE = 1e-6  # Of probabilities.
MAX_ROUNDS = 500


Label = TypeVar("Label")


def leading_label(labels: Iterable[Label], min_raters: int = MIN_AGREEING_RATERS) -> tuple[Label, int] | None:
    """The label that more raters gave than any other, and how many gave it. None for a tie, or if fewer than
    `min_raters` gave it."""
    most = Counter(labels).most_common(2)
    if not most or most[0][1] < min_raters or (len(most) > 1 and most[0][1] == most[1][1]):
        return None
    return most[0]


def leave_one_out(labels: Labels) -> NDArray[np.int64]:
    """For each rater, the labels on which the others agree (raters × items): that which most of them gave.

    MISSING where the rater gave no label, or no two others agree.
    """
    consensus = np.full(labels.shape, MISSING, np.int64)
    for item, column in enumerate(labels.T.tolist()):
        for rater, label in enumerate(column):
            if label != MISSING:
                consensus[rater, item] = _leading_or_missing([*column[:rater], *column[rater + 1 :]])
    return consensus


def _leading_or_missing(column: Sequence[int]) -> int:
    """The leading label among those that are given; MISSING without one."""
    leader = leading_label(label for label in column if label != MISSING)
    return MISSING if leader is None else leader[0]


@frozen
class DawidSkene:
    """The model of Dawid and Skene for one table: the probability of each category for each item.

    It assumes that raters err independently. If they share an error, it is far too certain, so its probabilities only
    decide the order of a review.

    - posteriors: probabilities, items × categories. NaN for items without a label.
    - priors: frequency of each category.
    - confusion[r, c, k]: probability that rater r labels an item of category c as k. NaN for categories nobody gave.
    - rounds: number of iterations. converged: whether they ended before MAX_ROUNDS.
    - objectives: the log posterior of priors and confusions after each round, up to a constant. It never decreases.
    """

    posteriors: Probabilities
    priors: Probabilities
    confusion: Probabilities
    rounds: int
    converged: bool
    objectives: tuple[float, ...]


def dawid_skene(labels: Labels, categories: int) -> DawidSkene:
    """The model of a table; the same table always gives the same result.

    A few hundred labels do not determine a matrix for each rater. So one matrix for all raters is fitted first, with
    WORTH_TOGETHER pseudo-labels per category. Then each rater gets a matrix, with WORTH_EACH pseudo-labels per category
    that are spread as in the common matrix. A rater with few labels therefore counts as an average one. Both fits
    maximise the posterior. They start from the shares of the labels of each item. Categories that nobody gave are left
    out.
    Sources: Dawid & Skene, Appl. Stat. 28 (1979). The pseudo-labels are a Dirichlet prior. The common matrix follows
    the hierarchical model of Paun et al., Trans. Assoc. Comput. Linguist. 6 (2018).
    """
    counts = label_counts(labels, categories)
    raters, items = labels.shape
    used_categories = np.flatnonzero(counts.any(axis=0))
    labelled = np.flatnonzero(counts.any(axis=1))
    posteriors = np.full((items, categories), np.nan)
    confusion = np.full((raters, categories, categories), np.nan)
    priors = np.zeros(categories)
    if not len(used_categories):
        return DawidSkene(posteriors, np.full(categories, np.nan), confusion, 0, True, ())
    size = len(used_categories)
    shares = counts[labelled][:, used_categories]
    one_hot = _one_hot(labels[:, labelled], used_categories)
    other = (1 - OWN) / (size - 1) if size > 1 else 0.0
    average = WORTH_TOGETHER * np.where(np.eye(size, dtype=bool), OWN, other)
    common_model = _Model(
        counts[labelled][:, used_categories].astype(np.float64), 1, shares / shares.sum(axis=1, keepdims=True), average
    )
    common_model.fit()
    model = _Model(one_hot, raters, common_model.posteriors, WORTH_EACH * np.exp(common_model.confusion[:, 0]))
    objectives, converged = model.fit()
    posteriors[labelled] = 0.0
    posteriors[np.ix_(labelled, used_categories)] = model.posteriors
    priors[used_categories] = np.exp(model.priors)
    confusion[:, used_categories, :] = 0.0
    confusion[np.ix_(np.arange(raters), used_categories, used_categories)] = np.exp(model.confusion).transpose(1, 0, 2)
    return DawidSkene(posteriors, priors, confusion, len(objectives), converged, objectives)


class _Model:
    """One fit, by expectation maximisation.

    - counts: how often a rater gave a category to an item, items × (raters · categories). With one rater, that is all
      of them together.
    - pseudo_labels: of each rater, categories × categories. priors, confusion (categories × raters × categories):
      logarithms of probabilities.
    """

    def __init__(
        self, counts: Probabilities, raters: int, posteriors: Probabilities, pseudo_labels: Probabilities
    ) -> None:
        size = posteriors.shape[1]
        self._label_counts = counts
        self._raters = raters
        self._pseudo_labels = pseudo_labels[:, None, :]
        self.posteriors = posteriors
        self.priors = np.zeros(size)
        self.confusion = np.zeros((size, raters, size))

    def fit(self) -> tuple[tuple[float, ...], bool]:
        """Iterates until the probabilities no longer change. Returns the objective after each round, and whether the
        fit converged."""
        objectives: list[float] = []
        converged = False
        while not converged and len(objectives) < MAX_ROUNDS:
            max_change, objective = self._round()
            objectives.append(objective)
            converged = max_change < TOLERANCE
        return tuple(objectives), converged

    def _round(self) -> tuple[float, float]:
        """Computes the parameters from the posteriors, and the posteriors from the parameters. Returns the largest
        change of a probability, and the objective."""
        size = len(self.priors)
        frequency = self.posteriors.sum(axis=0) + PRIOR_WORTH / size
        self.priors = np.log(frequency / frequency.sum())
        answers = (self.posteriors.T @ self._label_counts).reshape(size, self._raters, size) + self._pseudo_labels
        self.confusion = np.log(answers / answers.sum(axis=2, keepdims=True))
        joint = self._label_counts @ self.confusion.reshape(size, -1).T + self.priors
        top = joint.max(axis=1, keepdims=True)
        likelihoods = np.exp(joint - top)
        total = likelihoods.sum(axis=1, keepdims=True)
        posteriors = likelihoods / total
        max_change = float(np.abs(posteriors - self.posteriors).max(initial=0.0))
        self.posteriors = posteriors
        objective = float((top + np.log(total)).sum()) + float((self._pseudo_labels * self.confusion).sum())
        return max_change, objective + PRIOR_WORTH / size * float(self.priors.sum())


def _one_hot(labels: Labels, used_categories: NDArray[np.int64]) -> Probabilities:
    """Items × (raters · used categories): 1 where the rater gave the category to the item, else 0."""
    matches = labels.T[:, :, None] == used_categories
    return np.asarray(matches.reshape(len(matches), -1), np.float64)
