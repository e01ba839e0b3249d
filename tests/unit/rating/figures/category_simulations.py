"""Two devices whose shares of correct responses are known, on queries that are hard or easy for both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from harness.model.judgment import Category
from harness.rating.figures.judged import RatedTrial
from tests.unit.rating.figures.rated_rows import Case, rated


@dataclass(frozen=True)
class Fleet:
    """first, second: shares of correct responses over all queries. spread: of a query's own share, in 0 to 1.

    own: of the spread, the part that each device has for itself; the rest a query has for both alike.
    """

    queries: int = 40
    repeats: int = 2
    first: float = 0.7
    second: float = 0.7
    spread: float = 0.6
    own: float = 0.5

    def __str__(self) -> str:
        return f"{self.queries}x{self.repeats},{self.first}/{self.second},{self.spread},{self.own}"


def chances(rng: np.random.Generator, fleet: Fleet) -> np.ndarray:
    """Of each query for each device; on average the shares of the fleet."""
    which = rng.random((fleet.queries, 2))
    which = np.where(rng.random((fleet.queries, 1)) < fleet.own, which, which[:, :1])
    shares = np.array([fleet.first, fleet.second])
    # A query is all right or all wrong by `spread`, else as good as the device is.
    return fleet.spread * (which < shares) + (1 - fleet.spread) * shares


def simulated(rng: np.random.Generator, fleet: Fleet) -> tuple[RatedTrial, ...]:
    """A session in which each query was asked of both devices, and one rater judged all."""
    right = (rng.random((fleet.queries, 2, fleet.repeats)) < chances(rng, fleet)[:, :, None]).ravel().tolist()
    return tuple(
        replace(one, category=Category.CORRECT if good else Category.WRONG)
        for one, good in zip(_asked(fleet.queries, fleet.repeats), right, strict=True)
    )


@cache
def _asked(queries: int, repeats: int) -> tuple[RatedTrial, ...]:
    return rated(
        *(
            Case(f"q{query}-{device}.r{again}", {"ann": Category.CORRECT}, device=device, query=f"q{query}")
            for query in range(queries)
            for device in "ab"
            for again in range(repeats)
        )
    )
