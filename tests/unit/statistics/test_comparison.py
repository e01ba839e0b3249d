"""The words of a comparison: who is worse, by how much, and what is not shown."""

from __future__ import annotations

import math

import pytest

from harness.model.time import MeasuredDuration
from harness.statistics.comparison import (
    ComparedUnit,
    DifferenceVerdict,
    MeasureKind,
    compare_units,
    difference_text,
    sentence,
    verdict_of,
)
from harness.statistics.significance import Difference
from tests.known import known

WORSE, BETTER, UNDECIDED, NOT_SHOWN = DifferenceVerdict


@pytest.mark.parametrize(
    ("difference", "p", "corrected", "more_is_better", "verdict"),
    [
        (0.1, 0.01, None, False, WORSE),
        (0.1, 0.01, None, True, BETTER),
        (-0.1, 0.01, 0.04, True, WORSE),
        (-0.1, 0.01, 0.06, True, UNDECIDED),
        (-0.1, 0.06, 0.06, True, NOT_SHOWN),
        (0.0, 1.0, 1.0, True, NOT_SHOWN),
        (None, None, None, True, UNDECIDED),
    ],
)
def test_a_difference_is_shown_by_its_corrected_p(
    difference: float | None, p: float | None, corrected: float | None, more_is_better: bool, verdict: DifferenceVerdict
) -> None:
    assert verdict_of(difference, p, more_is_better=more_is_better, corrected=corrected) is verdict


def test_the_sentence_names_the_worse_and_by_how_much() -> None:
    apart = Difference(-0.021, (-0.038, -0.004), 0.012)
    difference = "by 2.10 points (0.40 to 3.80), p = 0.012"
    assert sentence("A", "B", apart, MeasureKind.SHARE, more_is_better=False) == f"B is worse than A {difference}"
    assert sentence("A", "B", apart, MeasureKind.SHARE, more_is_better=True) == f"B is better than A {difference}"
    other = Difference(0.021, (0.004, 0.038), 0.012)
    assert sentence("A", "B", other, MeasureKind.SHARE, more_is_better=False) == f"B is better than A {difference}"
    assert sentence("A", "B", apart, MeasureKind.SHARE, more_is_better=None) == f"B is higher than A {difference}"
    assert sentence("A", "B", other, MeasureKind.SHARE, more_is_better=None) == f"B is lower than A {difference}"
    unknown = sentence("A", "B", Difference(-3.0, (-10.0, 4.0), 0.42), MeasureKind.RATE, more_is_better=False)
    assert unknown == "B is not shown to differ from A: B minus A +3.00 per hour (-4.00 to +10.0), p = 0.420"
    assert sentence("A", "B", None, MeasureKind.RATE, more_is_better=False) == "B minus A n/a"


def test_an_interval_without_an_end_says_so_and_a_rounding_error_is_no_difference() -> None:
    assert difference_text(MeasureKind.TIME, 0.012, (-math.inf, 0.03)) == "+12.0 ms (too few to +30.0)"
    assert difference_text(MeasureKind.RATE, -1.4e-14, (-1.0, 1.0)) == "+0.00 per hour (-1.00 to +1.00)"
    assert difference_text(MeasureKind.TIME, -1.4e-14, (-4e-6, 0.012)) == "+0.00 ms (-0.004 to +12.0)"
    assert difference_text(MeasureKind.SHARE, None, None) == "n/a"


def test_units_without_a_partner_are_compared_unpaired() -> None:
    first = [ComparedUnit((number,), str(number), count=0, total=1) for number in range(10)]
    second = [ComparedUnit((number + 6,), str(number + 6), count=1, total=1) for number in range(10)]
    unpaired = compare_units(MeasureKind.SHARE, first, second)
    assert (unpaired.first, unpaired.second) == ("0 of 10 = 0.00 %", "10 of 10 = 100 %")
    assert unpaired.how == "unpaired, 10 trials"
    paired = compare_units(MeasureKind.SHARE, first, [*second[:4], *first[:6]])
    assert paired.how == "paired, 10 trials"
    assert known(paired.difference).difference == pytest.approx(0.4)


def test_repetitions_are_clusters_where_there_are_enough_of_them() -> None:
    def side(add_s: float, clusters: int) -> list[ComparedUnit]:
        return [
            ComparedUnit((number,), str(number % clusters), time=MeasuredDuration(1 + number / 100 + add_s, 0.001))
            for number in range(24)
        ]

    assert compare_units(MeasureKind.TIME, side(0, 6), side(0.5, 6)).how == "paired, 6 clusters"
    few = compare_units(MeasureKind.TIME, side(0, 5), side(0.5, 5))
    assert few.how == "paired, 24 trials"
    assert known(few.difference).difference == pytest.approx(0.5)
