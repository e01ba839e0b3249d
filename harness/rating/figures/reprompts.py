"""How often queries had to be said until they were recognised, and how long was waited before they were said again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from harness.rating.figures.categories import CountedShare, counted_share
from harness.rating.figures.rated_trials import RatedTrial
from harness.session.figures.trials import DECIDED
from harness.statistics.intervals import Interval, design_effect
from harness.statistics.word_intervals import wer_interval


@dataclass(frozen=True, slots=True)
class Waits:
    """Pauses before attempts after the first, seconds. shorter: than the scenario asks for; unknown: not in the log."""

    count: int = 0
    least_s: float | None = None
    median_s: float | None = None
    most_s: float | None = None
    shorter: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class RepromptFigures:
    """Of queries that were decided and whose recognition was assessed. needed: (attempts, queries), ascending.

    never: queries never recognised, so that the attempts which they would have needed are unknown; they are in no mean.
    first: recognised at the first attempt, of all assessed. mean: attempts of those recognised, with its 95 % interval,
    None with fewer than two queries. unassessed: decided queries that are left out.
    """

    needed: tuple[tuple[int, int], ...]
    never: int
    first: CountedShare
    mean: float | None
    mean_interval: Interval | None
    unassessed: int
    waits: Waits

    @property
    def recognised(self) -> int:
        return sum(queries for _, queries in self.needed)

    @property
    def assessed(self) -> int:
        return self.recognised + self.never


def reprompts_of(trials: Iterable[RatedTrial]) -> RepromptFigures:
    """The figures over `trials`; repetitions of a query count as far as they differ."""
    decided = [one for one in trials if one.progress.outcome in DECIDED]
    held = [one for one in decided if one.assessed]
    by_query: dict[tuple[str, str], list[int | None]] = {}
    for one in held:
        by_query.setdefault(one.query, []).append(one.attempts)
    needed = [attempts for of in by_query.values() for attempts in of if attempts is not None]
    of = list(by_query.values())
    totals = [len(each) for each in of]
    at_first = [each.count(1) for each in of]
    later = [total - first for first, total in zip(at_first, totals, strict=True)]
    return RepromptFigures(
        needed=tuple(sorted(Counter(needed).items())),
        never=len(held) - len(needed),
        first=counted_share(at_first, totals, design_effect([at_first, later], totals)),
        mean=sum(needed) / len(needed) if needed else None,
        mean_interval=_mean_interval(of),
        unassessed=len(decided) - len(held),
        waits=_waits(decided),
    )


def _mean_interval(queries: list[list[int | None]]) -> Interval | None:
    """Of the attempts after the first for each query, as word errors are of words; None with fewer than two queries."""
    units = [[attempts - 1 for attempts in of if attempts is not None] for of in queries]
    units = [of for of in units if of]
    found = wer_interval([sum(of) for of in units], [len(of) for of in units])
    return None if found is None else (1 + found[0], 1 + found[1])


def _waits(trials: Iterable[RatedTrial]) -> Waits:
    waited: list[tuple[float | None, float]] = []
    for one in trials:
        take = one.progress.counting
        asked_s = one.trial.reprompt.context_wait_s
        waited += [(found.waited_s, asked_s) for found in take.attempts if found.attempt > 1] if take else []
    known = [(seconds, asked_s) for seconds, asked_s in waited if seconds is not None]
    if not known:
        return Waits(unknown=len(waited))
    seconds = [one for one, _ in known]
    shorter = sum(one < asked_s for one, asked_s in known)
    return Waits(len(known), min(seconds), median(seconds), max(seconds), shorter, len(waited) - len(known))
