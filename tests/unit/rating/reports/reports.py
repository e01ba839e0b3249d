"""Category reports of many sorts, for the tests of every way to write them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from harness.model.judgment import Category, JudgmentStatus
from harness.model.trial import Outcome, Recognition
from harness.rating.reports.categories import CategoryReport, Selection, make_report
from tests.unit.rating.figures.rated_rows import Case, rated

C, W, A = Category.CORRECT, Category.WRONG, Category.ADMITTED_DEFEAT
HOSTILE = "\x1b]0;title\x07\x1b[31m[red]\u202eabc\u200b\x9b2J<script>alert(1)</script>&\"'"
WIDE = "ｗｉｄｅ東京" * 6


def two_devices() -> list[Case]:
    """Eight queries to each of two devices in three classes, of every outcome; one is hostile and one is wide."""
    device_cases = [
        Case(
            f"q{n}-{device}",
            {"ann": category, "bo": category},
            device=device,
            query=f"q{n}",
            text=(HOSTILE, WIDE)[n] if n < 2 else f"question {n}",
            query_class=("time", "lists", WIDE)[n % 3],
            conditions=(("voice", ("ann", HOSTILE)[n % 2]),),
            core=n == 3,
            attempts=1 + n % 3,
        )
        for device, said_of in (
            ("kitchen", (C, C, C, C, W, C, A, C)),
            (HOSTILE, (C, W, W, A, W, C, A, Category.FINDABLE)),
        )
        for n, category in enumerate(said_of)
    ]
    return [
        *device_cases,
        Case("disputed", {"ann": C, "bo": W}, text=HOSTILE),
        Case("held", {"ann": JudgmentStatus.HELD}),
        Case("misheard", outcome=Outcome.MISHEARD, recognition=Recognition.NO),
        Case("to come", outcome=None),
    ]


def reported(cases: Sequence[Case], selection: Selection | None = None) -> CategoryReport:
    return make_report(rated(*cases), selection or Selection(compare=("kitchen", HOSTILE)), ("s1",))


SORTS = 8


@cache
def every_sort() -> list[CategoryReport]:
    """The usual, one rater, nothing judged, nothing answered, all tied, nothing to pair, nothing at all."""
    other = Selection(compare=("kitchen", "radio"), on=W)
    radio = Case("r", {"ann": C}, device="radio")
    sorts = [
        reported(two_devices()),
        reported(two_devices(), Selection(raters=("ann",), round_id=HOSTILE, on=W, compare=("kitchen", HOSTILE))),
        reported([Case("a", {"ann": C}), Case("b", {"ann": C}, query="a")], Selection()),
        reported([Case("a"), Case("b")], Selection()),
        reported([Case("a", outcome=Outcome.NO_WAKE, recognition=Recognition.NO)], Selection()),
        reported([Case(f"a{n}", {"ann": C, "bo": W}) for n in range(30)], Selection()),
        reported([Case("a", {"ann": C}), radio], other),
        reported([], Selection()),
    ]
    assert len(sorts) == SORTS
    return sorts
