"""Quantiles of durations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.time import Measured
from harness.statistics.latency import LatencyFigures, latency_figures
from tests.known import known


def test_nothing_has_no_quantiles() -> None:
    assert latency_figures([]) == LatencyFigures()


def test_quantiles_are_observed_values() -> None:
    found = latency_figures([Measured(n / 10) for n in range(1, 21)])
    assert found.p50 is not None
    assert found.p95 is not None
    assert found.p50.value_s == pytest.approx(1.0)
    assert found.p95.value_s == pytest.approx(1.9)
    assert found.p95.high_s is None


def test_interval_covers_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    true_median = np.log(2.0)
    covered = 0
    for _ in range(400):
        found = known(latency_figures([Measured(float(v)) for v in random.exponential(size=40)]).p50)
        assert found.low_s is not None
        assert found.high_s is not None
        covered += found.low_s <= true_median <= found.high_s
    assert covered / 400 > 0.93


@given(
    st.lists(
        st.tuples(
            st.floats(0, 10, allow_nan=False), st.floats(0, 0.5, allow_nan=False), st.floats(-1, 1, allow_nan=False)
        ),
        min_size=1,
        max_size=60,
    )
)
def test_clock_error_bounds_the_true_quantile(values: list[tuple[float, float, float]]) -> None:
    found = latency_figures([Measured(value, error) for value, error, _ in values])
    true = latency_figures([Measured(value + error * part) for value, error, part in values])
    for mine, other in ((found.p50, true.p50), (found.p95, true.p95)):
        assert mine is not None
        assert other is not None
        assert abs(mine.value_s - other.value_s) <= mine.clock_error_s + 1e-9
