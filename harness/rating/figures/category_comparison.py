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

_NUMBER: dict[Category | None, int] = {category: number for number, category in enumerate(Category)}
_MORE_IS_BETTER: dict[Figure, bool] = {
    Category.CORRECT: True,
    CategoryGroup.SATISFIED: True,
    CategoryGroup.HELPFUL: True,
    Category.WRONG: False,
}
_Query = tuple[str, str]
_Place = tuple[_Query, tuple[str, ...]]


@frozen
class DifferingQuery:
    """A query on which the two sides differ. difference: weighted difference of the shares, first minus second. first,
    second: the categories of each side, with their counts."""

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
    """Compares two devices by name, or two sessions by id; ValueError for an unknown name."""
    of_first, of_second = side_of(trials, first), side_of(trials, second)
    varying = _varying((*of_first, *of_second))
    first_trials, second_trials = _trials_by_place(of_first, varying), _trials_by_place(of_second, varying)
    shared = [place for place in first_trials if place in second_trials]
    pairs = ((first_trials, second_trials), (second_trials, first_trials))
    unpaired = [sum(len(responses) for place, responses in side.items() if place not in other) for side, other in pairs]
    head = CategoryComparison(first, second, figure, reading, first_unpaired=unpaired[0], second_unpaired=unpaired[1])
    if not shared:
        return _no_comparison(head, of_first, of_second)
    strata = {place: _stratum(first_trials[place], second_trials[place], figure, reading) for place in shared}
    by_query = group_by((place[0], place) for place in shared)
    return replace(
        head,
        queries=len(by_query),
        strata=len(shared),
        first_responses=sum(len(first_trials[place]) for place in shared),
        second_responses=sum(len(second_trials[place]) for place in shared),
        difference=stratified_difference([[strata[place] for place in places] for places in by_query.values()]),
        all_swap=_swap_all_categories(first_trials, second_trials, list(by_query.values()), reading),
        differing=_differing(first_trials, second_trials, by_query, strata, reading),
    )


def side_of(trials: Iterable[RatedTrial], name: str) -> tuple[RatedTrial, ...]:
    """The queries of a device, or else of a session; ValueError for an unknown name."""
    all_trials = tuple(trials)
    side = [trial for trial in all_trials if trial.trial.device == name] or [
        trial for trial in all_trials if trial.session_id == name
    ]
    if not side:
        raise ValueError(f"there is no device and no session {name!r}")
    return tuple(side)


def _varying(trials: Iterable[RatedTrial]) -> set[str]:
    """The axes that have several labels within a session. An axis with a single label in each session, such as a
    setting, is what is compared, so it does not separate strata."""
    labels = {(trial.session_id, *condition) for trial in trials for condition in trial.trial.conditions}
    return {axis for (_, axis), count in Counter(place[:2] for place in labels).items() if count > 1}


def _trials_by_place(trials: Iterable[RatedTrial], varying: Collection[str]) -> dict[_Place, list[RatedTrial]]:
    def place(trial: RatedTrial) -> _Place:
        labels = (f"{axis}={label}" for axis, label in trial.trial.conditions if axis in varying)
        return trial.query, (*trial.conditions, *labels)

    return group_by((place(trial), trial) for trial in trials if trial.outcome is QueryOutcome.CATEGORY)


def _no_comparison(
    head: CategoryComparison, first: Sequence[RatedTrial], second: Sequence[RatedTrial]
) -> CategoryComparison:
    for name, side in ((head.first, first), (head.second, second)):
        if all(trial.outcome is not QueryOutcome.CATEGORY for trial in side):
            return replace(head, why_not=f"no response of {name} has a category")
    common_queries = {trial.query for trial in first} & {trial.query for trial in second}
    why = "they have no query in common under the same conditions" if common_queries else "they have no query in common"
    return replace(head, why_not=why)


def _stratum(
    first_trials: Sequence[RatedTrial], second_trials: Sequence[RatedTrial], figure: Figure, reading: Reading
) -> Stratum:
    counts = [sum(counts_as(trial, figure, reading) for trial in side) for side in (first_trials, second_trials)]
    return Stratum(counts[0], len(first_trials), counts[1], len(second_trials))


def _swap_all_categories(
    first_trials: dict[_Place, list[RatedTrial]],
    second_trials: dict[_Place, list[RatedTrial]],
    queries: Sequence[Sequence[_Place]],
    reading: Reading,
) -> SwapTestResult | None:
    rows = np.zeros((len(queries), len(Category)))
    for row, places in zip(rows, queries, strict=True):
        for place in places:
            sides = first_trials[place], second_trials[place]
            weight = 2 * len(sides[0]) * len(sides[1]) / (len(sides[0]) + len(sides[1]))
            for side, sign in zip(sides, (1, -1), strict=True):
                for trial in side:
                    row[_NUMBER[category_under(trial, reading)]] += sign * weight / len(side)
    return joint_swap_test(np.where(np.abs(rows) < 1e-9, 0.0, rows))


def _differing(
    first_trials: dict[_Place, list[RatedTrial]],
    second_trials: dict[_Place, list[RatedTrial]],
    by_query: dict[_Query, list[_Place]],
    strata: dict[_Place, Stratum],
    reading: Reading,
) -> tuple[DifferingQuery, ...]:
    differences = []
    for query, places in by_query.items():
        weight = sum((strata[place].weight for place in places), Fraction())
        difference = sum((strata[place].difference for place in places), Fraction()) / weight
        if any(strata[place].difference for place in places):
            sides = [
                _category_counts([trial for place in places for trial in side[place]], reading)
                for side in (first_trials, second_trials)
            ]
            differences.append(DifferingQuery(*query, float(difference), *sides))
    return tuple(sorted(differences, key=lambda entry: (-abs(entry.difference), -entry.difference, entry.query_id)))


def _category_counts(trials: Iterable[RatedTrial], reading: Reading) -> tuple[tuple[Category, int], ...]:
    counts = Counter(category_under(trial, reading) for trial in trials)
    return tuple((category, counts[category]) for category in Category if counts[category])
