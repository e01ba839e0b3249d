"""Numbers as text, in one way for every report and screen."""

from __future__ import annotations

import pytest

from harness.model.time import Measured
from harness.statistics import text
from harness.statistics.intervals import Quantile, Share


@pytest.mark.parametrize(
    ("value", "told"),
    [(None, "n/a"), (0.0, "0.00 %"), (0.025, "2.50 %"), (1 / 3, "33.3 %"), (0.9999, "100 %"), (1.0, "100 %")],
)
def test_a_percentage_has_three_digits(value: float | None, told: str) -> None:
    assert text.percent(value) == told


def test_a_percentage_may_have_set_decimals() -> None:
    assert text.percent(1 / 3, 2) == "33.33 %"
    assert text.percent_interval((0.0042, 0.5), 0) == "0–50 %"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "n/a"),
        (0.002532, "0.0025"),
        (0.0417, "0.042"),
        (0.417, "0.42"),
        (3.9, "3.90"),
        (42.0, "42.0"),
        (142.4, "142"),
    ],
)
def test_a_rate_has_about_three_digits(value: float | None, told: str) -> None:
    assert text.number(value) == told


def test_a_share_says_of_how_many() -> None:
    assert text.share(Share(1, 3)) == "1 of 3 = 33.3 %"
    assert text.share_with_interval(Share(3, 120)) == "3 of 120 = 2.50 % (95 % interval 0.85–7.09 %)"


def test_nothing_is_not_zero() -> None:
    assert text.share(Share()) == text.share_with_interval(Share()) == text.percent_interval(None) == "n/a"


def test_durations() -> None:
    assert [text.seconds(value) for value in (None, 0.812, 0.9996, 2.414, 34.0)] == [
        "n/a",
        "812 ms",
        "1.00 s",
        "2.41 s",
        "34.0 s",
    ]
    assert (text.measured(Measured(0.812, 0.01)), text.measured(None)) == ("812 ms ± 10 ms", "n/a")
    assert text.hours(3723.46) == "1:02:03"
    assert text.hours(3723.46, 1) == "1:02:03.4"


def test_a_quantile_of_few_values_has_an_open_end() -> None:
    assert text.quantile(Quantile(0.95, 0.512, 0.480, None, 0.001)) == "512 ms (480–?)"


def test_differences_have_their_sign_and_a_p_its_name() -> None:
    assert [text.points(one) for one in (0.0125, -0.5, None)] == ["+1.25", "-50.00", "n/a"]
    assert text.points_interval((-0.0039, 0.0218)) == "-0.39 to +2.18"
    assert [text.p_is(one) for one in (0.4331, 0.0004, None)] == ["p = 0.433", "p < 0.001", "p n/a"]
