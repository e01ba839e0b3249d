"""Attempts until queries were recognised, and waits between them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model.trial import Outcome, Recognition
from harness.rating.figures.categories import Waits, reprompts_of
from harness.rating.figures.judged import RatedTrial
from harness.statistics.intervals import wilson
from tests.unit.rating.figures.rated_rows import Case, rated

NEVER = {"outcome": Outcome.MISHEARD, "recognition": Recognition.NO}


def test_the_mean_is_of_recognised_queries_and_the_share_of_all_assessed() -> None:
    figures = reprompts_of(
        rated(
            *(Case(f"a{n}") for n in range(6)),
            *(Case(f"b{n}", attempts=2) for n in range(2)),
            Case("c", attempts=4),
            Case("d", outcome=Outcome.MISHEARD, recognition=Recognition.NO, attempts=3),
            Case("e", recognition=Recognition.NOT_ASSESSED),
            Case("f", outcome=Outcome.SKIPPED),
        )
    )
    assert figures.needed == ((1, 6), (2, 2), (4, 1))
    assert (figures.never, figures.assessed, figures.unassessed) == (1, 10, 1)
    assert (figures.first.count, figures.first.total, figures.first.interval) == (6, 10, wilson(6, 10))
    assert figures.mean == pytest.approx((6 + 4 + 4) / 9)
    assert figures.mean_interval is not None
    assert 1 <= figures.mean_interval[0] < figures.mean < figures.mean_interval[1]


def test_repetitions_of_a_query_count_together() -> None:
    cases = [Case(f"q{n}.{r}", query=f"q{n}", attempts=1 + n % 2) for n in range(8) for r in range(6)]
    together = reprompts_of(rated(*cases))
    alone = reprompts_of(rated(*(replace(case, query="") for case in cases)))
    assert together.mean == alone.mean == 1.5
    for one, other in ((together.mean_interval, alone.mean_interval), (together.first.interval, alone.first.interval)):
        assert one is not None
        assert other is not None
        assert one[1] - one[0] > 1.5 * (other[1] - other[0])


def test_one_query_said_often_has_no_interval() -> None:
    figures = reprompts_of(rated(Case("a.1", query="a"), Case("a.2", query="a")))
    assert (figures.first.value, figures.first.interval, figures.mean, figures.mean_interval) == (1.0, None, 1.0, None)


@pytest.mark.parametrize("cases", [[], [Case("a", outcome=None)], [Case("a", recognition=Recognition.NOT_ASSESSED)]])
def test_nothing_assessed_has_no_figure(cases: list[Case]) -> None:
    figures = reprompts_of(rated(*cases))
    assert (figures.mean, figures.mean_interval, figures.first.value, figures.first.interval) == (None,) * 4


def waiting(one: RatedTrial, *waited_s: float | None) -> RatedTrial:
    """With these waits before its second attempt and those after it."""
    take = one.progress.takes[0]
    attempts = tuple(
        replace(attempt, waited_s=seconds) for attempt, seconds in zip(take.attempts, (None, *waited_s), strict=True)
    )
    return replace(one, progress=replace(one.progress, takes=(replace(take, attempts=attempts),)))


def test_waits_are_those_before_later_attempts() -> None:
    once, twice, often = rated(Case("a"), Case("b", attempts=2), Case("c", attempts=4))
    found = reprompts_of([once, waiting(twice, 6.0), waiting(often, 5.0, 4.0, None)]).waits
    assert found == Waits(3, 4.0, 5.0, 6.0, shorter=1, unknown=1)
    assert reprompts_of([once]).waits == Waits()
