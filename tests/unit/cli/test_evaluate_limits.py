"""Limits on the figures of an evaluation."""

from __future__ import annotations

import pytest

from harness.model.choices import LimitsOn
from harness.model.errors import InputError
from harness.model.offline import Counting, FileOutcome, ListKind
from harness.offline.asked import DeclaredLimits, EvaluationAsked
from harness.offline.figures.counts import Tally
from harness.offline.figures.figures import Figures, figures, limit_failures
from tests.unit.offline.figures.outcomes import outcome, said, spot

INV, OOV, REF = ListKind.INV, ListKind.OOV, ListKind.REFERENCED
WORDS = Counting(words=True, lead_in_ms=0)


def of(outcomes: list[FileOutcome], counting: Counting | None = None) -> Figures:
    tally = Tally(counting or Counting())
    for one in outcomes:
        tally.add(one)
    return figures(tally, counting or Counting())


HOURS = of([outcome(OOV, *([spot(5, 6)] if at < 2 else ()), seconds=3600) for at in range(10)])  # 2 FA in 10 h
TENTH = of([outcome(INV, *([spot(1.2, 2)] if at else ())) for at in range(10)])  # 1 of 10 missed
SHORT = of([outcome(REF, said=said(text), reference="on") for text in ["on"] * 9 + ["off"]])
SPOKEN = of([outcome(REF, said=said("a b c d" if at else "a x c d"), reference="a b c d") for at in range(10)], WORDS)


@pytest.mark.parametrize(
    ("limits", "found", "estimate", "bound"),
    [
        (DeclaredLimits(false_accepts_per_hour=0.2), HOURS, True, False),
        (DeclaredLimits(false_accepts_per_hour=0.73), HOURS, True, True),
        (DeclaredLimits(false_accepts_per_hour=0.19), HOURS, False, False),
        (DeclaredLimits(false_accepts_per_hour=5), TENTH, False, False),  # n/a fails
        (DeclaredLimits(false_rejects_percent=10), TENTH, True, False),
        (DeclaredLimits(false_rejects_percent=44.6), TENTH, True, True),
        (DeclaredLimits(false_rejects_percent=9.9), TENTH, False, False),
        (DeclaredLimits(false_rejects_percent=100), HOURS, False, False),
        (DeclaredLimits(false_rejects_percent=9.9), SHORT, False, False),  # substitutions count, too
        (DeclaredLimits(false_rejects_percent=10), SHORT, True, False),
        (DeclaredLimits(wer=0.025), SPOKEN, True, False),
        (DeclaredLimits(wer=0.2), SPOKEN, True, True),
        (DeclaredLimits(wer=0.024), SPOKEN, False, False),
        (DeclaredLimits(wer=1.0), HOURS, False, False),
        (DeclaredLimits(), of([]), True, True),
    ],
)
def test_limits_hold_by_the_figure_or_by_its_bound(
    limits: DeclaredLimits, found: Figures, estimate: bool, bound: bool
) -> None:
    on_estimate = DeclaredLimits(
        limits.false_accepts_per_hour, limits.false_rejects_percent, limits.wer, LimitsOn.ESTIMATE
    )
    assert (not list(limit_failures(on_estimate, found))) == estimate
    assert (not list(limit_failures(limits, found))) == bound


def test_a_failure_says_what_was_found_and_how_to_ask_less() -> None:
    (said,) = limit_failures(DeclaredLimits(false_accepts_per_hour=0.5), HOURS)
    assert said == (
        "--max-fa-per-hour: false accepts an hour is 0.2, and the upper end of its 95 % interval, 0.7225, is above 0.5 "
        "(--limits-on estimate judges 0.2)"
    )
    (said,) = limit_failures(DeclaredLimits(false_accepts_per_hour=0.5), TENTH)
    assert said == "--max-fa-per-hour: false accepts an hour is n/a, which no limit allows"


def test_where_false_accepts_come_in_clusters_the_wider_interval_decides() -> None:
    burst = [spot(at, at + 0.5) for at in range(0, 400, 10)]
    found = of([outcome(OOV, *(burst if at == 3 else ()), seconds=3600) for at in range(100)])
    assert found.clustered
    assert found.false_accepts is not None
    assert found.clustering is not None
    between = (found.false_accepts[1] + found.clustering.interval[1]) / 2
    assert list(limit_failures(DeclaredLimits(false_accepts_per_hour=between), found))


def test_a_limit_on_what_is_not_measured_is_refused_at_once() -> None:
    spoken = EvaluationAsked(oov=("o",), referenced=("c",), words=True)
    for limits, without in (
        (DeclaredLimits(1.0), EvaluationAsked(inv=("i",))),
        (DeclaredLimits(None, 1.0), EvaluationAsked(oov=("o",))),
        (DeclaredLimits(None, None, 0.1), EvaluationAsked(inv=("i",), oov=("o",))),
    ):
        with pytest.raises(InputError):
            limits.demand_figures(without)
        limits.demand_figures(spoken)
    DeclaredLimits(1.0).demand_figures(EvaluationAsked(inv=("i",), count_in_vocabulary=True))
