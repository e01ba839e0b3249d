"""How a limit is worded; its verdicts are tested with the sessions and evaluations that have them."""

from __future__ import annotations

import pytest

from harness.statistics.verdict import RATE, SHARE, DeclaredLimit, LimitVerdict, ValueUnit, limits_met_text


@pytest.mark.parametrize(
    ("unit", "limit", "value", "sentence"),
    [
        (SHARE, 0.05, 0.05004, "rejects ≤ 5 %: found 5.004 %, fails"),
        (SHARE, 0.05, 0.04996, "rejects ≤ 5 %: found 4.996 %, holds"),
        (SHARE, 0.05, 0.05, "rejects ≤ 5 %: found 5.00 %, holds"),
        (SHARE, 0.05, 0.0512, "rejects ≤ 5 %: found 5.12 %, fails"),
        (RATE, 0.00001, 0.000014, "rejects ≤ 0.00001: found 0.000014, fails"),
    ],
)
def test_a_result_near_its_limit_does_not_read_as_the_limit(
    unit: ValueUnit, limit: float, value: float, sentence: str
) -> None:
    assert DeclaredLimit("x", "rejects", limit, value, unit=unit).sentence == sentence


def test_an_end_of_an_interval_near_the_limit_does_not_read_as_the_limit() -> None:
    limit = DeclaredLimit("x", "rejects", 0.05, 0.03, unit=SHARE, interval=(0.01, 0.05004), compares_bound=True)
    assert limit.sentence == "rejects ≤ 5 %: found 3.00 % (interval up to 5.004 %), fails"


def test_too_little_for_an_interval_is_no_pass() -> None:
    limit = DeclaredLimit("x", "rejects", 0.5, 0.0, unit=SHARE, has_interval=True)
    assert (limit.verdict, limit.fails_run) == (LimitVerdict.MARGINAL, False)
    assert limit.sentence == "rejects ≤ 50 %: found 0.00 %, holds, but with too little data for an interval"


def test_limits_that_hold_are_counted() -> None:
    good, bad = DeclaredLimit("x", "x", 1.0, 0.5), DeclaredLimit("y", "y", 1.0, 2.0)
    assert [limits_met_text([]), limits_met_text([good]), limits_met_text([bad]), limits_met_text([good, bad])] == [
        "no limits are declared",
        "1 of 1 limits met",
        "0 of 1 limits met",
        "1 of 2 limits met",
    ]
