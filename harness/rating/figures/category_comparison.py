"""Two devices, or two sessions, on the same queries under the same conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from harness.model.choices import Reading
from harness.model.judgment import Category
from harness.rating.figures.categories import Figure, category_under, counts_as
from harness.rating.figures.judged import Fate, RatedTrial
from harness.statistics.significance import Discordance, Swapping, swapped, swapped_together
from harness.statistics.word_intervals import StratifiedDifference, Stratum, mantel_haenszel, stratified_difference

SEED = 0
_NUMBER: dict[Category | None, int] = {category: at for at, category in enumerate(Category)}
_Query = tuple[str, str]
_Place = tuple[_Query, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class DifferingQuery:
    """A query on which the two do not fare alike. first, second: categories given to each, with how often."""

    query_id: str
    text: str
    apart: float
    first: tuple[tuple[Category, int], ...]
    second: tuple[tuple[Category, int], ...]


@dataclass(frozen=True, slots=True)
class CategoryComparison:
    """The first less the second, on what both were asked and have a category for.

    A stratum is a query under conditions; where one of the two was asked it more often, shares within the stratum are
    compared. queries, strata: so many both have. first_responses, second_responses: of those strata; first_unpaired,
    second_unpaired: with a category, and in no stratum of the other's. discordance: None unless each stratum has one
    response of each. swap: on `on`, devices swapped in whole queries; alone_p: Mantel–Haenszel's, which takes
    repetitions as independent. all_swap: whether the distributions over the eleven differ. apart: queries on which
    shares of `on` differ, the widest first. why_not: why there is no figure, "" when there is.
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
    discordance: Discordance | None = None
    swap: Swapping | None = None
    alone_p: float | None = None
    all_swap: Swapping | None = None
    apart: tuple[DifferingQuery, ...] = ()
    why_not: str = ""


def compare_categories(
    trials: Sequence[RatedTrial], first: str, second: str, on: Figure, reading: Reading = Reading.ADMITTED
) -> CategoryComparison:
    """The comparison of two devices by name, else of two sessions by id; ValueError for a name that is neither."""
    of_first, of_second = side_of(trials, first), side_of(trials, second)
    mine, theirs = _by_place(of_first), _by_place(of_second)
    shared = [place for place in mine if place in theirs]
    pairs = ((mine, theirs), (theirs, mine))
    left = [sum(len(of) for place, of in side.items() if place not in other) for side, other in pairs]
    head = CategoryComparison(first, second, on, reading, first_unpaired=left[0], second_unpaired=left[1])
    if not shared:
        return _nothing(head, of_first, of_second)
    strata = {place: _stratum(mine[place], theirs[place], on, reading) for place in shared}
    by_query: dict[_Query, list[_Place]] = {}
    for place in shared:
        by_query.setdefault(place[0], []).append(place)
    clusters = [[strata[place] for place in places] for places in by_query.values()]
    single = all(len(mine[place]) == len(theirs[place]) == 1 for place in shared)
    return CategoryComparison(
        first,
        second,
        on,
        reading,
        queries=len(by_query),
        strata=len(shared),
        first_responses=sum(len(mine[place]) for place in shared),
        second_responses=sum(len(theirs[place]) for place in shared),
        first_unpaired=left[0],
        second_unpaired=left[1],
        difference=stratified_difference(clusters),
        discordance=_discordance(strata.values()) if single else None,
        swap=swapped([sum((stratum.apart for stratum in of), Fraction()) for of in clusters], SEED),
        alone_p=mantel_haenszel(list(strata.values())),
        all_swap=_over_the_eleven(mine, theirs, list(by_query.values()), reading),
        apart=_differing(mine, theirs, by_query, strata, reading),
    )


def side_of(trials: Iterable[RatedTrial], name: str) -> tuple[RatedTrial, ...]:
    """The queries of a device, else of a session; ValueError when there is neither."""
    held = tuple(trials)
    found = [one for one in held if one.trial.device == name] or [one for one in held if one.session_id == name]
    if not found:
        raise ValueError(f"there is no device and no session {name!r}")
    return tuple(found)


def _by_place(trials: Iterable[RatedTrial]) -> dict[_Place, list[RatedTrial]]:
    places: dict[_Place, list[RatedTrial]] = {}
    for one in trials:
        if one.fate is Fate.CATEGORY:
            places.setdefault((one.query, one.conditions), []).append(one)
    return places


def _nothing(head: CategoryComparison, first: Sequence[RatedTrial], second: Sequence[RatedTrial]) -> CategoryComparison:
    for name, side in ((head.first, first), (head.second, second)):
        if all(one.fate is not Fate.CATEGORY for one in side):
            return replace(head, why_not=f"no response of {name} has a category")
    asked = {one.query for one in first} & {one.query for one in second}
    why = "both have no query in common under the same conditions" if asked else "both have no query in common"
    return replace(head, why_not=why)


def _stratum(mine: Sequence[RatedTrial], theirs: Sequence[RatedTrial], on: Figure, reading: Reading) -> Stratum:
    counts = [sum(counts_as(one, on, reading) for one in of) for of in (mine, theirs)]
    return Stratum(counts[0], len(mine), counts[1], len(theirs))


def _discordance(strata: Iterable[Stratum]) -> Discordance:
    kinds = Counter((one.first, one.second) for one in strata)
    return Discordance(kinds[1, 1], kinds[1, 0], kinds[0, 1], kinds[0, 0])


def _over_the_eleven(
    mine: dict[_Place, list[RatedTrial]],
    theirs: dict[_Place, list[RatedTrial]],
    queries: Sequence[Sequence[_Place]],
    reading: Reading,
) -> Swapping | None:
    rows = np.zeros((len(queries), len(Category)))
    for row, places in zip(rows, queries, strict=True):
        for place in places:
            sides = mine[place], theirs[place]
            weight = 2 * len(sides[0]) * len(sides[1]) / (len(sides[0]) + len(sides[1]))
            for side, sign in zip(sides, (1, -1), strict=True):
                for one in side:
                    row[_NUMBER[category_under(one, reading)]] += sign * weight / len(side)
    return swapped_together(np.where(np.abs(rows) < 1e-9, 0.0, rows), SEED)


def _differing(
    mine: dict[_Place, list[RatedTrial]],
    theirs: dict[_Place, list[RatedTrial]],
    by_query: dict[_Query, list[_Place]],
    strata: dict[_Place, Stratum],
    reading: Reading,
) -> tuple[DifferingQuery, ...]:
    found = []
    for query, places in by_query.items():
        weight = sum((strata[place].weight for place in places), Fraction())
        apart = sum((strata[place].apart for place in places), Fraction()) / weight
        if any(strata[place].apart for place in places):
            sides = [_given([one for place in places for one in side[place]], reading) for side in (mine, theirs)]
            found.append(DifferingQuery(*query, float(apart), *sides))
    return tuple(sorted(found, key=lambda one: (-abs(one.apart), -one.apart, one.query_id)))


def _given(trials: Iterable[RatedTrial], reading: Reading) -> tuple[tuple[Category, int], ...]:
    counts = Counter(category_under(one, reading) for one in trials)
    return tuple((category, counts[category]) for category in Category if counts[category])
