"""Compares two devices or sessions by the responses of a category, on the queries that both answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from harness.base.grouping import group_by
from harness.model.choices import CategoryGroup, Reading
from harness.model.frozen import frozen
from harness.model.judgment import Category
from harness.rating.figures.categories import Figure, category_under, counts_as
from harness.rating.figures.judged_responses import QueryOutcome, RatedTrial
from harness.statistics.significance import SwapTestResult, joint_swap_test
from harness.statistics.word_intervals import StratifiedDifference, Stratum, stratified_difference

_CATEGORY_INDEX: dict[Category | None, int] = {category: number for number, category in enumerate(Category)}
_MORE_IS_BETTER: dict[Figure, bool] = {
    Category.CORRECT: True,
    CategoryGroup.SATISFIED: True,
    CategoryGroup.HELPFUL: True,
    Category.WRONG: False,
}
_Query = tuple[str, str]
"""Id and text of a query."""
_StratumKey = tuple[_Query, tuple[str, ...]]
"""A query, and the labels of its conditions."""


@frozen
class DifferingQuery:
    """A query on which the two sides differ.

    - difference: weighted difference of the shares, first minus second.
    - first, second: the categories of each side, with their counts.
    """

    query_id: str
    text: str
    difference: float
    first: tuple[tuple[Category, int], ...]
    second: tuple[tuple[Category, int], ...]


@frozen
class CategoryComparison:
    """First side minus second side, on queries for which both have a category.

    A stratum is a query under certain conditions. Sides are compared by their shares within each stratum.

    - on: the category or group that is compared.
    - queries, strata: numbers of those that both sides have.
    - first_responses, second_responses: numbers of responses in these strata.
    - first_unpaired, second_unpaired: numbers of responses with a category in other strata.
    - difference: over the queries. Its test swaps the two sides of whole queries.
    - all_swap: the same test over all eleven categories.
    - differing: queries that differ on `on`, largest difference first.
    - why_not: why there is no comparison; "" if there is one.
    """

    first: str
    second: str
    on: Figure
    reading: Reading
    queries: int = 0
    strata: int = 0
    first_responses: int = 0
    second_responses: int = 0
    first_unpaired: int = 0
    second_unpaired: int = 0
    difference: StratifiedDifference | None = None
    all_swap: SwapTestResult | None = None
    differing: tuple[DifferingQuery, ...] = ()
    why_not: str = ""

    @property
    def more_is_better(self) -> bool | None:
        """Whether more responses of this category are better; None if it is neither good nor bad."""
        return _MORE_IS_BETTER.get(self.on)


def compare_categories(
    trials: Sequence[RatedTrial], first: str, second: str, figure: Figure, reading: Reading = Reading.ADMITTED
) -> CategoryComparison:
    """Compares two devices by name, or two sessions by id. Raises ValueError for an unknown name."""
    first_side, second_side = trials_of_side(trials, first), trials_of_side(trials, second)
    varying = _varying_axes((*first_side, *second_side))
    first_trials = _trials_by_stratum(first_side, varying)
    second_trials = _trials_by_stratum(second_side, varying)
    comparison = CategoryComparison(
        first,
        second,
        figure,
        reading,
        first_unpaired=sum(len(first_trials[key]) for key in first_trials if key not in second_trials),
        second_unpaired=sum(len(second_trials[key]) for key in second_trials if key not in first_trials),
    )
    shared = [key for key in first_trials if key in second_trials]
    if not shared:
        return _without_comparison(comparison, first_side, second_side)
    strata = {key: _make_stratum(first_trials[key], second_trials[key], figure, reading) for key in shared}
    by_query = group_by((query, (query, labels)) for query, labels in shared)
    return replace(
        comparison,
        queries=len(by_query),
        strata=len(shared),
        first_responses=sum(len(first_trials[key]) for key in shared),
        second_responses=sum(len(second_trials[key]) for key in shared),
        difference=stratified_difference([[strata[key] for key in keys] for keys in by_query.values()]),
        all_swap=_swap_all_categories(first_trials, second_trials, list(by_query.values()), reading),
        differing=_differing_queries(first_trials, second_trials, by_query, strata, reading),
    )


def trials_of_side(trials: Iterable[RatedTrial], name: str) -> tuple[RatedTrial, ...]:
    """The queries of a device, or else of a session. Raises ValueError for an unknown name."""
    all_trials = tuple(trials)
    side = [trial for trial in all_trials if trial.trial.device == name]
    side = side or [trial for trial in all_trials if trial.session_id == name]
    if not side:
        raise ValueError(f"there is no device or session {name!r}")
    return tuple(side)


def _varying_axes(trials: Iterable[RatedTrial]) -> set[str]:
    """The axes that have several labels within a session. An axis with a single label in each session, such as a
    setting, is what is compared, so it does not separate strata."""
    labels = {(trial.session_id, axis, label) for trial in trials for axis, label in trial.trial.conditions}
    label_counts = Counter((session_id, axis) for session_id, axis, _ in labels)
    return {axis for (_, axis), count in label_counts.items() if count > 1}


def _trials_by_stratum(trials: Iterable[RatedTrial], varying: Collection[str]) -> dict[_StratumKey, list[RatedTrial]]:
    def key(trial: RatedTrial) -> _StratumKey:
        labels = (f"{axis}={label}" for axis, label in trial.trial.conditions if axis in varying)
        return trial.query, (*trial.conditions, *labels)

    return group_by((key(trial), trial) for trial in trials if trial.outcome is QueryOutcome.CATEGORY)


def _without_comparison(
    comparison: CategoryComparison, first: Sequence[RatedTrial], second: Sequence[RatedTrial]
) -> CategoryComparison:
    """The comparison with the reason why there is none."""
    for name, side in ((comparison.first, first), (comparison.second, second)):
        if all(trial.outcome is not QueryOutcome.CATEGORY for trial in side):
            return replace(comparison, why_not=f"no response of {name} has a category")
    common_queries = {trial.query for trial in first} & {trial.query for trial in second}
    why = "they have no query in common under the same conditions" if common_queries else "they have no query in common"
    return replace(comparison, why_not=why)


def _make_stratum(
    first_trials: Sequence[RatedTrial], second_trials: Sequence[RatedTrial], figure: Figure, reading: Reading
) -> Stratum:
    first_count = sum(counts_as(trial, figure, reading) for trial in first_trials)
    second_count = sum(counts_as(trial, figure, reading) for trial in second_trials)
    return Stratum(first_count, len(first_trials), second_count, len(second_trials))


def _swap_all_categories(
    first_trials: dict[_StratumKey, list[RatedTrial]],
    second_trials: dict[_StratumKey, list[RatedTrial]],
    queries: Sequence[Sequence[_StratumKey]],
    reading: Reading,
) -> SwapTestResult | None:
    """The swap test over the differences of all categories, a row for each query. Strata have harmonic weights."""
    differences = np.zeros((len(queries), len(Category)))
    for row, keys in zip(differences, queries, strict=True):
        for key in keys:
            first, second = first_trials[key], second_trials[key]
            weight = 2 * len(first) * len(second) / (len(first) + len(second))
            for trial in first:
                row[_CATEGORY_INDEX[category_under(trial, reading)]] += weight / len(first)
            for trial in second:
                row[_CATEGORY_INDEX[category_under(trial, reading)]] -= weight / len(second)
    return joint_swap_test(np.where(np.abs(differences) < 1e-9, 0.0, differences))  # without rounding errors


def _differing_queries(
    first_trials: dict[_StratumKey, list[RatedTrial]],
    second_trials: dict[_StratumKey, list[RatedTrial]],
    by_query: dict[_Query, list[_StratumKey]],
    strata: dict[_StratumKey, Stratum],
    reading: Reading,
) -> tuple[DifferingQuery, ...]:
    differing = []
    for (query_id, text), keys in by_query.items():
        if not any(strata[key].difference for key in keys):
            continue
        weight = sum((strata[key].weight for key in keys), Fraction())
        difference = sum((strata[key].difference for key in keys), Fraction()) / weight
        differing.append(
            DifferingQuery(
                query_id,
                text,
                float(difference),
                first=_category_counts([trial for key in keys for trial in first_trials[key]], reading),
                second=_category_counts([trial for key in keys for trial in second_trials[key]], reading),
            )
        )
    return tuple(sorted(differing, key=lambda query: (-abs(query.difference), -query.difference, query.query_id)))


def _category_counts(trials: Iterable[RatedTrial], reading: Reading) -> tuple[tuple[Category, int], ...]:
    counts = Counter(category_under(trial, reading) for trial in trials)
    return tuple((category, counts[category]) for category in Category if counts[category])
