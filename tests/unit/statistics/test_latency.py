"""Quantiles of durations; differences of independent systems, and how often they err."""

from __future__ import annotations

from math import comb, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.time import MeasuredDuration
from harness.statistics import text
from harness.statistics.intervals import LatencyFigures, Share, is_exact_enough, latency_figures
from harness.statistics.latency import paired_shift, unpaired_shift
from harness.statistics.word_intervals import (
    share_difference,
    unpaired_rate_difference,
    unpaired_share_difference,
    unpaired_wer_difference,
)
from tests.known import known


def test_quantiles_of_no_durations_are_undefined() -> None:
    assert latency_figures([]) == LatencyFigures()


def test_quantiles_are_observed_values() -> None:
    figures = latency_figures([MeasuredDuration(n / 10) for n in range(1, 21)])
    assert figures.p50 is not None
    assert figures.p95 is not None
    assert figures.p50.value_s == pytest.approx(1.0)
    assert figures.p95.value_s == pytest.approx(1.9)
    assert figures.p95.high_s is None


@given(
    st.lists(
        st.tuples(
            st.floats(0, 10, allow_nan=False), st.floats(0, 0.25, allow_nan=False), st.floats(-1, 1, allow_nan=False)
        ),
        min_size=1,
        max_size=60,
    )
)
def test_clock_error_bounds_the_true_quantile(values: list[tuple[float, float, float]]) -> None:
    figures = latency_figures([MeasuredDuration(value, error) for value, error, _ in values])
    true = latency_figures([MeasuredDuration(value + error * part) for value, error, part in values])
    for mine, other in ((figures.p50, true.p50), (figures.p95, true.p95)):
        assert mine is not None
        assert other is not None
        assert abs(mine.value_s - other.value_s) <= mine.clock_error_s + 1e-9


def test_times_with_a_large_error_are_left_out_and_counted() -> None:
    times = [MeasuredDuration(n / 10, 0.01 * n) for n in range(1, 11)]
    figures = latency_figures([*times, MeasuredDuration(9.0, 0.94)])
    assert (figures.total, figures.excluded, figures.measured) == (10, 1, 11)
    assert figures.error_s == pytest.approx(0.055)
    assert known(figures.p95).value_s == pytest.approx(1.0)
    assert text.delays(figures).endswith("clock error ± 55 ms, n = 10; 1 left out with an error above 250 ms")
    assert is_exact_enough(MeasuredDuration(0.1, 0.25))
    assert not is_exact_enough(MeasuredDuration(0.1, 0.251))


def test_latency_is_undefined_when_all_times_are_excluded() -> None:
    figures = latency_figures([MeasuredDuration(0.4, 0.94)] * 2)
    assert (figures.total, figures.excluded, figures.p50, figures.p95) == (0, 2, None, None)
    assert text.delays(figures) == "n/a; 2 left out with an error above 250 ms"
    assert latency_figures([MeasuredDuration(0.4, 0.94)], inf).p50 is not None


@given(
    st.lists(st.floats(0, 10, allow_nan=False), min_size=1, max_size=60),
    st.lists(st.floats(0, 10, allow_nan=False), max_size=20),
)
def test_excluded_times_may_have_any_length(used: list[float], left_out: list[float]) -> None:
    figures = latency_figures(
        [*(MeasuredDuration(value) for value in used), *(MeasuredDuration(value, 1.0) for value in left_out)]
    )
    low, high = figures.p95_between_s
    assert low <= known(figures.p95).value_s <= high
    assert low <= known(latency_figures([MeasuredDuration(value) for value in (*used, *left_out)]).p95).value_s <= high


def test_shares_over_different_trials_are_compared() -> None:
    sides = [[Share(1, 1)] * right + [Share(0, 1)] * (20 - right) for right in (12, 3)]
    comparison = known(unpaired_share_difference(*sides))
    assert comparison.difference == pytest.approx(0.45)
    chances = [comb(20, right) * comb(20, 15 - right) / comb(40, 15) for right in range(16)]
    assert comparison.p == pytest.approx(sum(chance for chance in chances if chance <= chances[12] * (1 + 1e-7)))
    assert comparison.interval[0] > 0
    assert (
        unpaired_share_difference([Share(12, 20)], [Share(3, 20)]) is None
    )  # one cluster says nothing of further ones


def test_a_share_is_compared_also_where_p_is_too_small_for_a_float() -> None:
    comparison = known(share_difference([1] * 3000, [0] * 3000))
    assert comparison.difference == 1
    assert comparison.p < 1e-100


def test_rates_and_word_error_rates_are_compared() -> None:
    assert known(unpaired_rate_difference(20, 2.0, 4, 2.0)).interval[0] > 0
    assert known(unpaired_rate_difference(5, 2.0, 4, 2.0)).interval[0] < 0
    assert unpaired_rate_difference(1, 0.0, 1, 1.0) is None
    words, names = [10] * 20, [str(n) for n in range(20)]
    comparison = known(
        unpaired_wer_difference(([4] * 10 + [2] * 10, words, names), ([1] * 10 + [0] * 10, words, names))
    )
    assert comparison.difference == pytest.approx(0.25)
    assert comparison.interval[0] > 0
    assert known(unpaired_wer_difference(([0] * 20, words, names), ([0] * 20, words, names))).p == 1


def test_a_shift_within_the_errors_of_the_clocks_is_not_shown() -> None:
    longer = [MeasuredDuration(0.010 + n / 1e4, 0.002) for n in range(20)]
    assert known(paired_shift(longer)).p < 0.001
    assert known(paired_shift(longer)).interval[0] > 0
    assert known(paired_shift([MeasuredDuration(delay.value_s, 0.02) for delay in longer])).p == 1
    base = [MeasuredDuration(0.5 + n / 1e3, 0.001) for n in range(20)]
    later = [MeasuredDuration(delay.value_s + 0.1, 0.001) for delay in base]
    shift = known(unpaired_shift(later, base))
    assert shift.difference == pytest.approx(0.1)
    assert shift.interval[0] > 0
    assert shift.p < 0.001
    vague = [MeasuredDuration(delay.value_s, 0.12) for delay in base]
    assert known(unpaired_shift(later, vague)).p == 1
    assert known(unpaired_shift(later, vague)).interval[0] < 0


@pytest.mark.parametrize("total", [7, 8])
def test_exchanging_the_sides_changes_only_the_sign_of_a_paired_shift(total: int) -> None:
    delays = [MeasuredDuration(0.03 * n * n - 0.2, 0.001) for n in range(total)]
    shift = known(paired_shift(delays))
    exchanged = known(paired_shift([MeasuredDuration(-delay.value_s, delay.error_s) for delay in delays]))
    assert (shift.difference, shift.p) == (-exchanged.difference, exchanged.p)
    assert shift.interval == (-exchanged.interval[1], -exchanged.interval[0])
