"""Numbers as text, in one way for every report and screen."""

from __future__ import annotations

import pytest

from harness.model import numbers
from harness.model.time import MeasuredDuration
from harness.statistics import text
from harness.statistics.intervals import Quantile, Share, latency_figures


@pytest.mark.parametrize(
    ("value", "percentage"),
    [(None, "n/a"), (0.0, "0.00 %"), (0.025, "2.50 %"), (1 / 3, "33.3 %"), (0.9999, "100 %"), (1.0, "100 %")],
)
def test_a_percentage_has_three_digits(value: float | None, percentage: str) -> None:
    assert numbers.percent(value) == percentage


def test_a_percentage_may_have_set_decimals() -> None:
    assert numbers.percent(1 / 3, 2) == "33.33 %"
    assert text.percent_interval((0.0042, 0.5), 0) == "0–50 %"


@pytest.mark.parametrize(
    ("value", "rate"),
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
def test_a_rate_has_about_three_digits(value: float | None, rate: str) -> None:
    assert numbers.number(value) == rate


def test_a_difference_that_is_rounded_to_nothing_has_no_minus() -> None:
    assert [numbers.points(value) for value in (None, -0.0125, -0.00001, 0.0)] == ["n/a", "-1.25", "+0.00", "+0.00"]
    assert [numbers.signed(value, 1) for value in (-0.04, -0.06, 3.0)] == ["+0.0", "-0.1", "+3.0"]


def test_a_share_says_of_how_many() -> None:
    assert text.share(Share(1, 3)) == "1 of 3 = 33.3 %"
    assert text.share_with_interval(Share(3, 120)) == "3 of 120 = 2.50 % (95 % interval 0.85–7.09 %)"


def test_an_undefined_value_is_not_shown_as_zero() -> None:
    assert text.share(Share()) == text.share_with_interval(Share()) == text.percent_interval(None) == "n/a"


def test_durations_are_shown_in_suitable_units() -> None:
    assert [numbers.seconds(value) for value in (None, 0.0, 0.0002, 0.812, 0.9996, 2.414, 13.39)] == [
        "n/a",
        "0 ms",
        "0.2 ms",
        "812 ms",
        "1.00 s",
        "2.41 s",
        "13.4 s",
    ]
    assert (text.measured(MeasuredDuration(0.812, 0.01)), text.measured(None)) == ("812 ms ± 10 ms", "n/a")
    assert text.measured(MeasuredDuration(0.635, 2.31)) == "at most 2.95 s"
    assert text.measured(MeasuredDuration(0.005, 0.01)) == "5 ms ± 10 ms"
    assert text.measured(MeasuredDuration(-1.0, 0.5)) == "-1.00 s ± 500 ms"
    assert numbers.hours(3723.46) == "1:02:03"
    assert numbers.hours(3723.46, 1) == "1:02:03.4"


def test_a_quantile_of_few_values_has_an_open_end() -> None:
    assert text.quantile(Quantile(0.95, 0.512, 0.480, None, 0.001)) == "512 ms (480 ms – too few)"
    assert text.quantile(Quantile(0.5, 19.042, 10.83, None, 0.001)) == "19.0 s (10.8 s – too few)"


@pytest.mark.parametrize(("total", "p95", "p99"), [(4, 0, 0), (19, 0, 0), (20, 1, 0), (99, 1, 0), (100, 1, 1)])
def test_a_percentile_of_too_few_values_would_be_the_longest(total: int, p95: int, p99: int) -> None:
    figures = latency_figures([MeasuredDuration(number / 1000, 0.001) for number in range(1, total + 1)])
    assert ("p95 too few" not in text.delays(figures), "p99 too few" not in text.delays(figures)) == (p95, p99)
    assert figures.p95 is not None
    assert (figures.p95.value_s < total / 1000) == bool(p95)


def test_ends_of_an_interval_share_their_unit() -> None:
    assert text.seconds_interval(0.29, 0.33) == "290–330 ms"
    assert text.seconds_interval(0.812, 1.2) == "812 ms – 1.20 s"
    assert text.seconds_interval(None, None) == "too few"


def test_the_error_of_a_clock_has_two_digits() -> None:
    assert [text.clocks(error) for error in (0.94, 0.0312, 0.0013, 0.00042, 0.0002, None)] == [
        "clock error ± 940 ms",
        "clock error ± 31 ms",
        "clock error ± 1.3 ms",
        "clock error ± 0.42 ms",
        "clock error ± 0.2 ms",
        "clock error n/a",
    ]


@pytest.mark.parametrize(
    ("value", "number_text"),
    [(600.0, "600"), (2.5, "2.5"), (1e-05, "0.00001"), (1.5e-07, "0.00000015"), (123456.7, "123457")],
)
def test_a_declared_value_has_no_exponent(value: float, number_text: str) -> None:
    assert numbers.exact(value) == number_text


def test_a_value_that_rounds_to_zero_has_no_minus_sign() -> None:
    assert [numbers.fixed(value, 1, "dB") for value in (-0.04, -42.06, None)] == ["0.0 dB", "-42.1 dB", "n/a"]


def test_a_count_of_one_takes_the_singular() -> None:
    assert [numbers.counted(count, "attempt") for count in (0, 1, 2)] == ["0 attempts", "1 attempt", "2 attempts"]


def test_differences_have_their_sign_and_a_p_its_name() -> None:
    assert [numbers.points(difference) for difference in (0.0125, -0.5, None)] == ["+1.25", "-50.00", "n/a"]
    assert text.points_interval((-0.0039, 0.0218)) == "-0.39 to +2.18"
    assert [numbers.p_is(p_value) for p_value in (0.4331, 0.0004, None)] == ["p = 0.433", "p < 0.001", "p n/a"]


def test_a_column_with_its_unit_in_the_head_has_no_sign() -> None:
    assert [numbers.hundredths(value) for value in (None, 0.025, 0.602, 1.0)] == ["n/a", "2.50", "60.2", "100"]
    assert [text.hundredths_interval(ends) for ends in (None, (0.0042, 0.5))] == ["n/a", "0.42–50.0"]


def test_agreement_beyond_chance_has_three_decimals() -> None:
    assert [text.coefficient(value) for value in (None, 0.6837, -0.00001)] == ["n/a", "0.684", "0.000"]
    assert [text.coefficient_interval(ends) for ends in (None, (-0.0124, 0.775))] == ["n/a", "-0.012 to 0.775"]


def test_a_noun_follows_its_count() -> None:
    assert [numbers.counted(count, "row") for count in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert [numbers.counted(count, "query", "queries") for count in (1, 2)] == ["1 query", "2 queries"]


def test_ordinals_of_attempts() -> None:
    assert [numbers.ordinal(number) for number in (1, 2, 3, 4, 11, 13, 22, 100)] == (
        ["1st", "2nd", "3rd", "4th", "11th", "13th", "22nd", "100th"]
    )


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 bytes"), (999_999, "999,999 bytes"), (10**6, "1 MB"), (32 << 20, "33.55 MB"), (20 * 10**9, "20 GB")],
)
def test_a_size_is_shown_in_the_units_of_max_size(size_bytes: int, text: str) -> None:
    assert numbers.data_size(size_bytes) == text
