"""DET curves: intervals, points that are chosen, and what is never read between two points."""

import numpy as np
import pytest

from harness.model.choices import ChosenBy
from harness.offline.figures.det import (
    Det,
    at_most_false_accepts,
    at_most_false_rejects,
    best_twv,
    least_cost,
    term_weighted_value,
)
from harness.statistics.intervals import clopper_pearson, garwood


def det(*rows: tuple[float, int, int], files: int = 1000, hours: float = 10.0, targets: int = 0) -> Det:
    thresholds, misses, accepts = zip(*rows, strict=True)
    return Det(
        np.array(thresholds, np.float32),
        np.array(misses, np.int64),
        files,
        np.array(accepts, np.int64),
        np.full(len(rows), hours),
        targets,
    )


def test_false_rejects_at_a_declared_rate_are_those_of_a_threshold_that_keeps_it() -> None:
    """At 1.9 false accepts an hour a line between the two points would give 2 %; no threshold has that."""
    found = det((0.9, 73, 10), (0.5, 0, 22))
    x, y = found.per_hour(), found.false_rejects()
    assert round(float(np.interp(1.875, x, y)), 2) == 0.02  # the known fault
    index = at_most_false_accepts(found, 1.875)
    assert index == 0
    assert y[index] == 0.073


def test_nothing_is_chosen_where_nothing_keeps_the_target() -> None:
    found = det((0.9, 73, 10), (0.5, 0, 22))
    assert at_most_false_accepts(found, 0.5) is None
    assert at_most_false_rejects(det((0.9, 73, 10)), 0.05) is None
    empty = det((0.9, 0, 0), files=0)
    assert at_most_false_accepts(empty, 1) is None
    assert least_cost(empty, 1, 1, 1) is None
    assert at_most_false_accepts(det((0.9, 0, 0), hours=0), 1) is None
    assert best_twv(term_weighted_value(empty)) is None


def test_of_equals_the_strictest_is_chosen() -> None:
    found = det((0.9, 50, 1), (0.8, 40, 3), (0.7, 40, 5), (0.6, 30, 50))
    assert at_most_false_accepts(found, 0.5) == 1
    assert at_most_false_rejects(found, 0.04) == 1


def test_fewest_false_rejects_among_equal_false_accepts() -> None:
    found = det((0.9, 50, 3), (0.8, 40, 3), (0.7, 35, 3), (0.6, 30, 50))
    assert at_most_false_rejects(found, 0.05) == 2
    assert at_most_false_accepts(found, 0.3) == 2


def test_false_accepts_that_run_into_one_make_no_threshold_better() -> None:
    """Below 0.3 the detector is hardly ever silent, and all its false accepts are one."""
    found = det((0.9, 80, 2), (0.5, 20, 40), (0.3, 10, 90), (0.1, 0, 1))
    assert at_most_false_accepts(found, 0.2) == 0
    assert at_most_false_rejects(found, 0.05) == 1
    assert at_most_false_rejects(found, 0.0) == 3  # nothing stricter keeps it
    assert best_twv(term_weighted_value(found)) == 0


def test_a_choice_by_bound_keeps_the_upper_end() -> None:
    found = det((0.9, 60, 0), (0.8, 40, 1), (0.7, 20, 3), hours=40)
    assert at_most_false_accepts(found, 0.1) == 2
    assert at_most_false_accepts(found, 0.1, ChosenBy.BOUND) == 0
    interval = garwood(0, 40)
    assert interval is not None
    assert interval[1] < 0.1
    assert at_most_false_rejects(found, 0.045) == 1
    assert at_most_false_rejects(found, 0.045, ChosenBy.BOUND) == 2


def test_intervals_are_those_of_single_counts() -> None:
    found = det((0.9, 1000, 0), (0.8, 73, 1), (0.7, 0, 400), hours=142.984)
    for index in range(3):
        shares, rates = found.false_reject_band(), found.per_hour_band()
        assert (shares[0][index], shares[1][index]) == pytest.approx(clopper_pearson(int(found.misses[index]), 1000))
        expected = garwood(int(found.false_accepts[index]), 142.984)
        assert (rates[0][index], rates[1][index]) == pytest.approx(expected)
    assert np.isnan(det((0.9, 0, 0), files=0).false_reject_band()[1]).all()
    assert np.isnan(det((0.9, 0, 0), hours=0).per_hour_band()[1]).all()


def test_least_cost_weighs_misses_by_use() -> None:
    found = det((0.9, 100, 1), (0.5, 50, 10), (0.3, 40, 100))
    assert least_cost(found, 1, 1, 1) == 0
    assert least_cost(found, 1, 1, 50) == 1  # 50 uses an hour: 5 misses against 2.5 and one false accept
    assert least_cost(found, 0, 1, 1) == 0


def test_term_weighted_value() -> None:
    found = det((0.9, 100, 0), (0.5, 50, 1), (0.3, 40, 36), files=1000, hours=1.0)
    values = term_weighted_value(found)
    assert values == pytest.approx([0.9, 1 - 0.05 - 999.9 / 3600, 1 - 0.04 - 999.9 * 36 / 3600])
    assert best_twv(values) == 0
    of_ten_hours = term_weighted_value(found, speech_s=36_000)
    assert of_ten_hours[1] == pytest.approx(1 - 0.05 - 999.9 / 36_000)
    assert best_twv(of_ten_hours) == 1
    with_targets = det((0.5, 50, 1), files=1000, hours=1.0, targets=1000)
    assert term_weighted_value(with_targets, beta=10)[0] == pytest.approx(1 - 0.05 - 10 / 2600)


def test_wrong_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="strictest"):
        det((0.5, 0, 0), (0.9, 0, 0))
    with pytest.raises(ValueError, match="misses"):
        det((0.5, 11, 0), files=10)
