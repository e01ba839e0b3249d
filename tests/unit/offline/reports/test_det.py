"""DET curves as a table and as a picture."""

import csv
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from harness.engines.settings import operating_points
from harness.model.choices import ChosenBy
from harness.model.errors import LogError
from harness.model.offline import Counting, FileOutcome, ListKind, ScoreTrack, SpotRule
from harness.offline.figures.sweep import Aim, PointFigures, Sweep, SweepTarget, choose, figures_at
from harness.offline.reports.det import (
    FLATTERS,
    MOST_ROWS,
    Curve,
    chosen_json,
    chosen_lines,
    det_csv,
    draw,
    figures_text,
    threshold_text,
)

POINTS = operating_points(0.97)


@cache
def sweep(seed: int, files: int = 60, hours: int = 2) -> Sweep:
    random = np.random.default_rng(seed)
    found = Sweep(Counting(), SpotRule(0.97, 16_000, 12_800), POINTS)
    for number in range(hours):
        scores = (1 / (1 + np.exp(-random.gumbel(-9, 1.2, 3600 * 33)))).astype(np.float32)
        found.add(FileOutcome(ListKind.OOV, number, 57_600_000, 16_000, 16_000), (ScoreTrack("hey", scores, 480, 480),))
    for number in range(files):
        odds = random.gumbel(-9, 1.2, 100)
        odds[70] = random.normal(4, 2)
        scores = (1 / (1 + np.exp(-odds))).astype(np.float32)
        found.add(FileOutcome(ListKind.INV, number, 48_000, 16_000, 16_000), (ScoreTrack("hey", scores, 480, 480),))
    return found


def test_the_table_tells_counts_and_every_named_point_however_many_thresholds_there_are() -> None:
    found = sweep(1)
    det = found.at()
    assert len(det) > MOST_ROWS
    rows = list(csv.DictReader(det_csv(det, POINTS, chosen=float(det.thresholds[100]), twv=(999.9, None)).splitlines()))
    assert len(rows) <= MOST_ROWS
    thresholds = [float(row["threshold"]) for row in rows]
    assert thresholds == sorted(thresholds, reverse=True)
    assert [row["operating_point"] for row in rows if row["operating_point"]] == [str(one.number) for one in POINTS]
    (chosen,) = (row for row in rows if row["chosen"] == "yes")
    assert chosen["threshold"] == threshold_text(det.thresholds[100])
    for row in rows[:: len(rows) // 20]:
        at = figures_at(found, float(row["threshold"]))
        assert int(row["false_rejects"]) == at.misses
        assert int(row["false_accepts"]) == at.false_accepts
        assert float(row["hours"]) == 2.0
        interval = at.per_hour_interval
        assert interval is not None
        assert (float(row["fa_per_hour_low"]), float(row["fa_per_hour_high"])) == pytest.approx(interval, rel=1e-5)
    nothing = list(csv.DictReader(det_csv(sweep(1, files=0, hours=0).at(), POINTS).splitlines()))
    assert {row["fr"] for row in nothing} == {row["fa_per_hour"] for row in nothing} == {"n/a"}


def test_a_threshold_in_the_table_is_the_very_threshold() -> None:
    for threshold in np.random.default_rng(2).random(1000, np.float32):
        assert np.float32(float(threshold_text(threshold))) == threshold


def test_pictures_are_whole_and_the_same_each_time(tmp_path: Path) -> None:
    dev, report = sweep(1), sweep(2)
    curve, developed = Curve("reported", report.at()), Curve("development", dev.at())
    chosen = choose(SweepTarget(Aim.FALSE_ACCEPTS, 3.0), developed.det, POINTS, report)
    for name in ("a.png", "b.png", "a.svg", "b.svg"):
        draw(tmp_path / name, "an engine & <its> model", curve, POINTS, developed, chosen)
    for ending in ("png", "svg"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    text = (tmp_path / "a.svg").read_text()
    for words in ("false accepts an hour", "false rejects, %", "an engine &amp; &lt;its&gt; model", "operating points"):
        assert words in text
    assert chosen is not None
    assert chosen.reported is not None
    assert f"{chosen.reported.false_accepts} FA in 2 h" in text
    with pytest.raises(LogError, match="cannot be written"):
        draw(tmp_path / "no folder" / "a.png", "", curve, POINTS)


@pytest.mark.parametrize(("files", "target"), [(1, 0.0), (3, 50.0)])
def test_few_files_and_no_false_accept_can_be_drawn(tmp_path: Path, files: int, target: float) -> None:
    few = sweep(5, files=files, hours=1)
    chosen = choose(SweepTarget(Aim.FALSE_ACCEPTS, target), few.at(), POINTS, None)
    draw(tmp_path / "few.png", "few", Curve("list", few.at()), POINTS, chosen=chosen)
    assert (tmp_path / "few.png").stat().st_size > 10_000


def test_both_lists_stand_side_by_side_and_one_list_flatters_itself() -> None:
    dev, report = sweep(1), sweep(2)
    target = SweepTarget(Aim.FALSE_ACCEPTS, 3.0)
    both = choose(target, dev.at(), POINTS, report)
    assert both is not None
    lines = list(chosen_lines(target, both))
    assert "development list" in lines[2]
    assert lines[3].startswith("  reported:")
    assert re.search("the target is (NOT )?kept$", lines[3])
    assert both.reported is not None
    assert both.chosen.threshold == both.reported.threshold
    one = choose(target, dev.at(), POINTS, None)
    assert list(chosen_lines(target, one))[-1] == FLATTERS
    assert chosen_json(target, one)["one_list"] is True
    assert "No threshold" in list(chosen_lines(target, None))[1]
    by_bound = choose(SweepTarget(Aim.FALSE_ACCEPTS, 3.0, ChosenBy.BOUND), dev.at(), POINTS, report)
    assert by_bound is not None
    interval = by_bound.chosen.per_hour_interval
    assert interval is not None
    assert interval[1] <= 3.0
    assert by_bound.chosen.threshold > both.chosen.threshold


def test_nothing_over_nothing() -> None:
    assert figures_text(PointFigures(0.5, None, 0, 0, 0, 0.0)) == "FA n/a; FR n/a"
