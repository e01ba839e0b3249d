"""Change points: found where they are, rare without one, never from one bad session."""

from __future__ import annotations

import numpy as np
import pytest

from harness.statistics.change_points import Scan, SeriesToScan, scan_series


def shares(*counts: int, total: int = 60) -> SeriesToScan:
    return SeriesToScan(Scan.SHARE, tuple(map(float, counts)), (float(total),) * len(counts))


def places(series: SeriesToScan) -> list[int]:
    return [change.at for change in scan_series([series])[0].changes]


def test_a_few_bad_sessions_between_good_ones_are_found() -> None:
    assert places(shares(*[3, 4] * 4, 14, 15, 13, 16, *[3, 4] * 4)) == [8, 12]
    counts = [3, 4, 5, 2] * 40
    assert places(shares(*counts[:83], *[14] * 9, *counts[92:])) == [83, 92]  # more places than are permuted


def test_a_rate_counts_by_its_exposure() -> None:
    hours = (1.0, 2.0, 4.0) * 5
    steady = SeriesToScan(Scan.RATE, tuple(3 * exposure for exposure in hours), hours)
    assert places(steady) == []
    risen = SeriesToScan(
        Scan.RATE, tuple((3 if index < 8 else 9) * exposure for index, exposure in enumerate(hours)), hours
    )
    assert places(risen) == [8]


def test_ranks_take_no_notice_of_one_extreme_delay() -> None:
    values = [0.150 + 0.001 * (index * 7 % 5) for index in range(16)]
    ones = (1.0,) * 16
    assert places(SeriesToScan(Scan.RANK, (*values[:8], 9.0, *values[9:]), ones)) == []
    later = [delay + (0.02 if index >= 9 else 0) for index, delay in enumerate(values)]
    assert places(SeriesToScan(Scan.RANK, tuple(later), ones)) == [9]


def test_one_or_two_bad_sessions_at_the_end_are_not_a_change() -> None:
    assert places(shares(*[3, 4] * 8, 40)) == []
    assert places(shares(*[3, 4] * 3, 40)) == []
    assert scan_series([shares(*[1] * 4, *[30] * 3)])[0].p is None  # too few: cannot tell


def test_p_matches_the_permutation_distribution() -> None:
    """4 of 4 failed after 4 of 4 right: 2 of the 70 orders are as far apart."""
    (scan,) = scan_series([shares(0, 0, 0, 0, 60, 60, 60, 60)])
    assert scan.p == pytest.approx(2 / 70, abs=0.007)


def test_p_values_of_many_series_are_corrected() -> None:
    series = shares(*[3, 4, 2, 5, 3, 4], *[13, 12, 9, 14, 12, 13])
    alone, *_ = scan_series([series])
    among, *_ = scan_series([series, *[shares(*[3, 4] * 6)] * 19])
    assert alone.changes
    assert not among.changes
    assert among.p == alone.p
    assert among.p_holm == pytest.approx(20 * (alone.p or 0))


def test_unchanged_series_rarely_show_a_change() -> None:
    """benchmarks/bench_trend.py has 200 series for each scan."""
    rng = np.random.default_rng(3)
    shown = sum(bool(places(shares(*rng.binomial(60, 0.1, 20)))) for _ in range(12))
    assert shown <= 3  # 0.6 expected; more than 3 has a chance below 0.4 %
