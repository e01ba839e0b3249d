"""Times carry their errors, and refuse nonsense."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.time import Measured, Stamp, between

SECONDS = st.floats(min_value=-1e6, max_value=1e6)
ERRORS = st.floats(min_value=0, max_value=10)


@given(SECONDS, ERRORS, SECONDS, ERRORS, st.floats(-1, 1), st.floats(-1, 1))
def test_the_true_duration_lies_within_the_stated_error(
    start: float, start_error: float, end: float, end_error: float, u: float, v: float
) -> None:
    measured = between(Stamp(start, start_error), Stamp(end, end_error))
    true = (end + v * end_error) - (start + u * start_error)
    assert abs(true - measured.value_s) <= measured.error_s + 1e-9 * (1 + abs(true))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_time_is_finite(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Stamp(bad)
    with pytest.raises(ValueError, match="finite"):
        Measured(0.0, bad)


def test_an_error_is_not_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        Stamp(0.0, -0.001)
