"""DET curves: intervals, points that are chosen, the table and the picture."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from harness.engines.settings import operating_points
from harness.model.choices import TargetBasis
from harness.model.errors import LogError
from harness.model.offline import CountingRules, FileOutcome, ListKind, ScoreTrack, SpotRule
from harness.offline.figures.det import (
    Det,
    at_most_false_accepts,
    at_most_false_rejects,
    best_twv,
    least_cost,
    term_weighted_value,
)
from harness.offline.figures.sweep import (
    ChosenPoint,
    PointFigures,
    Sweep,
    SweepCriterion,
    SweepTarget,
    choose,
    point_figures,
)
from harness.offline.reports.det import (
    DETECTS_NOTHING,
    FLATTERING_POINT,
    MAX_ROWS,
    Curve,
    chosen_json,
    chosen_lines,
    det_csv,
    draw,
    figures_text,
    target_text,
    threshold_text,
)
from harness.statistics.intervals import clopper_pearson, garwood
from tests.known import known


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
    """At 1.9 false accepts per hour a line between the two points would give 2 %; no threshold has that."""
    curve = det((0.9, 73, 10), (0.5, 0, 22))
    x, y = curve.per_hour(), curve.false_rejects()
    assert round(float(np.interp(1.875, x, y)), 2) == 0.02  # the known fault
    index = at_most_false_accepts(curve, 1.875)
    assert index == 0
    assert y[index] == 0.073


def test_no_point_is_chosen_if_none_meets_the_target() -> None:
    curve = det((0.9, 73, 10), (0.5, 0, 22))
    assert at_most_false_accepts(curve, 0.5) is None
    assert at_most_false_rejects(det((0.9, 73, 10)), 0.05) is None
    empty = det((0.9, 0, 0), files=0)
    assert at_most_false_accepts(empty, 1) is None
    assert least_cost(empty, 1, 1, 1) is None
    assert at_most_false_accepts(det((0.9, 0, 0), hours=0), 1) is None
    assert best_twv(term_weighted_value(empty)) is None


EQUALS = ((0.9, 50, 1), (0.8, 40, 3), (0.7, 40, 5), (0.6, 30, 50))
FEWEST = ((0.9, 50, 3), (0.8, 40, 3), (0.7, 35, 3), (0.6, 30, 50))
# Below 0.3 the detector is hardly ever silent, and all its false accepts run into one: that makes nothing better.
STUCK = ((0.9, 80, 2), (0.5, 20, 40), (0.3, 10, 90), (0.1, 0, 1))


@pytest.mark.parametrize(
    ("rows", "per_hour", "by_accepts", "share", "by_rejects"),
    [
        pytest.param(EQUALS, 0.5, 1, 0.04, 1, id="of equals the strictest"),
        pytest.param(FEWEST, 0.3, 2, 0.05, 2, id="fewest false rejects among equal false accepts"),
        pytest.param(STUCK, 0.2, 0, 0.05, 1, id="a stuck detector is no better"),
        pytest.param(STUCK, 0.2, 0, 0.0, 3, id="unless nothing stricter keeps it"),
    ],
)
def test_best_operating_point_is_chosen(
    rows: tuple[tuple[float, int, int], ...], per_hour: float, by_accepts: int, share: float, by_rejects: int
) -> None:
    assert at_most_false_accepts(det(*rows), per_hour) == by_accepts
    assert at_most_false_rejects(det(*rows), share) == by_rejects


def test_a_choice_by_bound_keeps_the_upper_end() -> None:
    curve = det((0.9, 60, 0), (0.8, 40, 1), (0.7, 20, 3), hours=40)
    assert at_most_false_accepts(curve, 0.1) == 2
    assert at_most_false_accepts(curve, 0.1, TargetBasis.BOUND) == 0
    interval = known(garwood(0, 40))
    assert interval[1] < 0.1
    assert at_most_false_rejects(curve, 0.045) == 1
    assert at_most_false_rejects(curve, 0.045, TargetBasis.BOUND) == 2


def test_intervals_are_those_of_single_counts() -> None:
    curve = det((0.9, 1000, 0), (0.8, 73, 1), (0.7, 0, 400), hours=142.984)
    for index in range(3):
        shares, rates = curve.false_reject_band(), curve.per_hour_band()
        assert (shares[0][index], shares[1][index]) == pytest.approx(clopper_pearson(int(curve.misses[index]), 1000))
        expected = garwood(int(curve.false_accepts[index]), 142.984)
        assert (rates[0][index], rates[1][index]) == pytest.approx(expected)
    assert np.isnan(det((0.9, 0, 0), files=0).false_reject_band()[1]).all()
    assert np.isnan(det((0.9, 0, 0), hours=0).per_hour_band()[1]).all()


def test_least_cost_weighs_misses_by_use() -> None:
    curve = det((0.9, 100, 1), (0.5, 50, 10), (0.3, 40, 100))
    assert least_cost(curve, 1, 1, 1) == 0
    assert least_cost(curve, 1, 1, 50) == 1  # 50 uses an hour: 5 misses against 2.5 and one false accept
    assert least_cost(curve, 0, 1, 1) == 0


def test_term_weighted_value_matches_hand_calculation() -> None:
    assert best_twv(term_weighted_value(det(*STUCK))) == 0
    curve = det((0.9, 100, 0), (0.5, 50, 1), (0.3, 40, 36), files=1000, hours=1.0)
    values = term_weighted_value(curve)
    assert values == pytest.approx([0.9, 1 - 0.05 - 999.9 / 3600, 1 - 0.04 - 999.9 * 36 / 3600])
    assert best_twv(values) == 0
    of_ten_hours = term_weighted_value(curve, speech_s=36_000)
    assert of_ten_hours[1] == pytest.approx(1 - 0.05 - 999.9 / 36_000)
    assert best_twv(of_ten_hours) == 1
    with_targets = det((0.5, 50, 1), files=1000, hours=1.0, targets=1000)
    assert term_weighted_value(with_targets, beta=10)[0] == pytest.approx(1 - 0.05 - 10 / 2600)


def test_wrong_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="strictest"):
        det((0.5, 0, 0), (0.9, 0, 0))
    with pytest.raises(ValueError, match="misses"):
        det((0.5, 11, 0), files=10)


POINTS = operating_points(0.97)


@cache
def sweep(seed: int, files: int = 60, hours: int = 2) -> Sweep:
    random = np.random.default_rng(seed)
    sweep = Sweep(CountingRules(), SpotRule(0.97, 16_000, 12_800), POINTS)
    for number in range(hours):
        scores = (1 / (1 + np.exp(-random.gumbel(-9, 1.2, 3600 * 33)))).astype(np.float32)
        sweep.add(FileOutcome(ListKind.OOV, number, 57_600_000, 16_000, 16_000), (ScoreTrack("hey", scores, 480, 480),))
    for number in range(files):
        odds = random.gumbel(-9, 1.2, 100)
        odds[70] = random.normal(4, 2)
        scores = (1 / (1 + np.exp(-odds))).astype(np.float32)
        sweep.add(FileOutcome(ListKind.INV, number, 48_000, 16_000, 16_000), (ScoreTrack("hey", scores, 480, 480),))
    return sweep


def test_the_table_has_counts_and_named_points_for_any_number_of_thresholds() -> None:
    sweep_result = sweep(1)
    det = sweep_result.det_at()
    assert len(det) > MAX_ROWS
    rows = list(csv.DictReader(det_csv(det, POINTS, chosen=float(det.thresholds[100]), twv=(999.9, None)).splitlines()))
    assert len(rows) <= MAX_ROWS
    thresholds = [float(row["threshold"]) for row in rows]
    assert thresholds == sorted(thresholds, reverse=True)
    assert [row["operating_point"] for row in rows if row["operating_point"]] == [str(point.number) for point in POINTS]
    (chosen,) = (row for row in rows if row["chosen"] == "yes")
    assert chosen["threshold"] == threshold_text(det.thresholds[100])
    for row in rows[:: len(rows) // 20]:
        figures = sweep_result.figures_at(float(row["threshold"]))
        assert int(row["false_rejects"]) == figures.misses
        assert int(row["false_accepts"]) == figures.false_accepts
        assert float(row["hours"]) == 2.0
        interval = known(figures.per_hour_interval)
        assert (float(row["fa_per_hour_low"]), float(row["fa_per_hour_high"])) == pytest.approx(interval, rel=1e-5)
    nothing = list(csv.DictReader(det_csv(sweep(1, files=0, hours=0).det_at(), POINTS).splitlines()))
    assert {row["fr"] for row in nothing} == {row["fa_per_hour"] for row in nothing} == {"n/a"}


def test_a_threshold_in_the_table_is_the_very_threshold() -> None:
    for threshold in np.random.default_rng(2).random(1000, np.float32):
        assert np.float32(float(threshold_text(threshold))) == threshold


def test_plots_are_complete_and_reproducible(tmp_path: Path) -> None:
    dev, report = sweep(1), sweep(2)
    curve, developed = Curve("reported", report.det_at()), Curve("development", dev.det_at())
    chosen = choose(SweepTarget(SweepCriterion.FALSE_ACCEPTS, 3.0), developed.det, POINTS, report)
    for name in ("a.png", "b.png", "a.svg", "b.svg"):
        draw(tmp_path / name, "an engine & <its> model", [curve, developed], POINTS, chosen)
    for ending in ("png", "svg"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    text = (tmp_path / "a.svg").read_text()
    for words in (
        "false accepts per hour",
        "false rejects, %",
        "an engine &amp; &lt;its&gt; model",
        "operating points",
    ):
        assert words in text
    assert chosen is not None
    assert f"{known(chosen.reported).false_accepts} FA in 2.000 h" in text
    with pytest.raises(LogError, match="cannot be written"):
        draw(tmp_path / "no folder" / "a.png", "", [curve], POINTS)


@pytest.mark.parametrize(("files", "target"), [(1, 0.0), (3, 50.0)])
def test_few_files_and_no_false_accept_can_be_drawn(tmp_path: Path, files: int, target: float) -> None:
    few = sweep(5, files=files, hours=1)
    chosen = choose(SweepTarget(SweepCriterion.FALSE_ACCEPTS, target), few.det_at(), POINTS, None)
    draw(tmp_path / "few.png", "few", [Curve("list", few.det_at())], POINTS, chosen)
    assert (tmp_path / "few.png").stat().st_size > 10_000


def test_chosen_point_is_shown_for_development_and_reported_lists() -> None:
    dev, report = sweep(1), sweep(2)
    target = SweepTarget(SweepCriterion.FALSE_ACCEPTS, 3.0)
    choice = known(choose(target, dev.det_at(), POINTS, report))
    lines = list(chosen_lines(target, choice))
    assert "development list" in lines[3]
    assert lines[4].startswith("  on the reported list:")
    assert re.search("The target is (NOT )?met on the reported list.$", lines[5])
    assert choice.chosen.threshold == known(choice.reported).threshold
    single = choose(target, dev.det_at(), POINTS, None)
    assert list(chosen_lines(target, single))[-1] == FLATTERING_POINT
    assert chosen_json(target, single)["one_list"] is True
    assert "No threshold" in list(chosen_lines(target, None))[1]
    by_bound = known(
        choose(SweepTarget(SweepCriterion.FALSE_ACCEPTS, 3.0, TargetBasis.BOUND), dev.det_at(), POINTS, report)
    )
    interval = known(by_bound.chosen.per_hour_interval)
    assert interval[1] <= 3.0
    assert by_bound.chosen.threshold > choice.chosen.threshold


def test_chosen_point_names_the_data_that_its_target_needs() -> None:
    target = SweepTarget(SweepCriterion.FALSE_ACCEPTS, 1.0)
    short = PointFigures(0.5, None, misses=0, files=12, false_accepts=0, hours=20 / 3600)
    needed = (
        "  The 95 % interval reaches beyond the target. To show it with 0 false accepts, you need 3.689 h of audio; "
    )
    assert f"{needed}the list has 0.006 h of audio." in list(chosen_lines(target, ChosenPoint(short, None)))
    enough = replace(short, hours=4.0)
    assert not [line for line in chosen_lines(target, ChosenPoint(enough, None)) if "reaches beyond" in line]
    share = SweepTarget(SweepCriterion.FALSE_REJECTS, 0.05)
    assert list(chosen_lines(share, ChosenPoint(short, short)))[-1] == (
        "  The 95 % interval reaches beyond the target. To show it with 0 false rejects, you need 72 phrases; "
        "the list has 12 phrases."
    )


def test_a_chosen_threshold_that_rejects_every_phrase_is_remarked() -> None:
    target = SweepTarget(SweepCriterion.FALSE_ACCEPTS, 1.0)
    curve = det((1.0, 12, 0), (0.5, 6, 3), files=12, hours=1.0)
    choice = known(choose(target, curve, (), None))
    assert choice.chosen.misses == 12
    assert DETECTS_NOTHING in list(chosen_lines(target, choice))
    detecting = ChosenPoint(replace(choice.chosen, misses=11), None)
    assert DETECTS_NOTHING not in list(chosen_lines(target, detecting))


def test_a_target_of_one_false_accept_is_singular() -> None:
    one, two = (SweepTarget(SweepCriterion.FALSE_ACCEPTS, limit) for limit in (1.0, 2.0))
    assert target_text(one) == "at most 1 false accept per hour (the estimate)"
    assert target_text(two) == "at most 2 false accepts per hour (the estimate)"


def test_undefined_rates_are_shown_as_na() -> None:
    assert figures_text(PointFigures(0.5, None, 0, 0, 0, 0.0)) == "FA n/a; FR n/a"


def test_recordings_that_are_there_in_each_condition_count_once_in_intervals() -> None:
    single, often = det((0.9, 7, 0), (0.5, 0, 3), files=20), det((0.9, 28, 0), (0.5, 0, 12), files=80, hours=40.0)
    often = replace(often, repeats=4)
    assert often.false_rejects() == pytest.approx(single.false_rejects())
    for actual, expected in zip(often.false_reject_band(), single.false_reject_band(), strict=True):
        assert actual == pytest.approx(expected)
    for actual, expected in zip(often.per_hour_band(), single.per_hour_band(), strict=True):
        assert actual == pytest.approx(expected)
    point, alone = point_figures(often, 1, ()), point_figures(single, 1, ())
    assert (point.misses, point.false_accepts, point.hours) == (0, 12, 40.0)
    assert point.false_reject_interval == pytest.approx(alone.false_reject_interval)
    assert point.per_hour_interval == pytest.approx(alone.per_hour_interval)
    # Three misses of 80 are less than one of 20: still an interval, and wider than of 80 separate recordings.
    few = replace(det((0.9, 3, 0), files=80), repeats=4)
    low, high = (float(edge[0]) for edge in few.false_reject_band())
    narrow = known(clopper_pearson(3, 80))
    assert 0 < low < narrow[0]
    assert narrow[1] < high
    assert point_figures(few, 0, ()).false_reject_interval == pytest.approx((low, high))
