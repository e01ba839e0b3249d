"""Trends of sessions: the numbers of the report, the night of a change, what is left out, and names of others."""

from __future__ import annotations

import csv
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.record import AttemptStarted, EndReason, SessionFinished, SessionStarted
from harness.report.comparison import Measure
from harness.report.session import read_session
from harness.report.trend import TrendFolder, TrendMeasure, read_trends
from harness.report.trend_page import cell, ends, lines, write_page
from harness.statistics.comparison import DifferenceVerdict
from harness.statistics.intervals import latency_figures
from harness.transcripts.recognition import SamplingUnit
from tests.command import harness, succeeded
from tests.unit.report.test_comparison import wake_session
from tests.unit.report.test_session_page import HOSTILE, session
from tests.unit.session.figures.rows import Rows, planned
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial

MEASURES = (Measure.FALSE_REJECTS, Measure.FALSE_ACCEPTS)
REJECTS = TrendMeasure(Measure.FALSE_REJECTS)


def night(
    folder: Path,
    index: int,
    missed: int,
    scenario: str = "kitchen",
    name: str = "",
    ended: bool = True,
    heard_s: float = 1.75,
    error_s: float = 0.0,
) -> Path:
    """A session of 20 wake trials that began on day `index`; the first `missed` ones are missed."""
    planned = [wake_trial(number, injected=False) for number in range(20)]
    rows: WakeRows = rows_of(*planned)
    first = rows.entries[0]
    assert isinstance(first.record, SessionStarted)
    rows.entries[0] = replace(first, record=replace(first.record, session_id=name or f"s{index}", scenario_id=scenario))
    for number, trial in enumerate(planned):
        rows.play(trial, [] if number < missed else [("kitchen", heard_s + 0.001 * (index % 3))], error_s=error_s)
    if ended:
        rows.add(SessionFinished(EndReason.COMPLETED))
    return session(folder / (name or f"n{index:02}"), rows, wall_s=lambda: 86_400.0 * (20_000 + index))


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """12 sessions, written in another order; from the eighth on more are missed."""
    folder = tmp_path_factory.mktemp("nights")
    for number in (5, 0, 11, 3, 8, 1, 9, 2, 10, 4, 7, 6):
        night(folder, number, number % 2 + 1 if number < 7 else 9 + number % 2)
    return folder


def of(folder: TrendFolder, measure: TrendMeasure = REJECTS) -> list[tuple[int, DifferenceVerdict]]:
    return [
        (change.at, change.change) for trend in folder.trends if trend.measure == measure for change in trend.changes
    ]


def test_the_night_of_a_change_is_found_with_its_sign(nights: Path) -> None:
    folder = read_trends(nights)
    assert [session.folder for session in folder.sessions] == [f"n{number:02}" for number in range(12)]
    assert of(folder) == [(7, DifferenceVerdict.WORSE)]
    change = next(change for trend in folder.trends for change in trend.changes)
    assert (change.before.count, change.before.of, change.after.count, change.after.of) == (10, 140, 48, 100)
    assert change.interval is not None
    assert change.interval[0] > 0
    assert of(folder, TrendMeasure(Measure.WAKE_DELAY, 0.5)) == []


def test_numbers_are_those_of_the_report(tmp_path: Path) -> None:
    path = wake_session(tmp_path / "one", 0.3)
    (session,) = read_trends(tmp_path).sessions
    wake = read_session(path).wake
    reported = wake.snapshot().devices[0]
    rejects, accepts = (
        session.values["kitchen", TrendMeasure(m)] for m in (Measure.FALSE_REJECTS, Measure.FALSE_ACCEPTS)
    )
    assert (rejects.value, rejects.interval) == (reported.false_rejects.share.value, reported.false_rejects.interval)
    assert accepts.value == pytest.approx(reported.after_review.per_hour)
    assert accepts.interval == pytest.approx(reported.after_review.interval)
    delays = latency_figures([play.reading.delay for play in wake.plays("kitchen") if play.reading.delay is not None])
    assert delays.p95 is not None
    assert session.values["kitchen", TrendMeasure(Measure.WAKE_DELAY, 0.95)].value == delays.p95.value_s


def test_the_interval_of_a_wer_is_that_of_the_report(tmp_path: Path) -> None:
    """8 queries with 5 stimuli each; in one of them, the device never hears a word."""
    trials = [replace(planned(number), query_id=f"q{number % 8}") for number in range(40)]
    rows = Rows.of(*trials)
    for number, trial in enumerate(trials):
        rows.trial(trial.id, heard="what time is it" if number % 8 else "")
        started = next(entry for entry in reversed(rows.entries) if isinstance(entry.record, AttemptStarted))
        stimulus = replace(started.record, stimulus_sha256=trial.id)
        rows.entries[started.seq - 1] = replace(started, record=stimulus)
    rows.add(SessionFinished(EndReason.COMPLETED))
    path = session(tmp_path / "one", rows)
    reported = read_session(path).progress.totals.first_words
    (trend_session,) = read_trends(tmp_path).sessions
    assert reported.unit is SamplingUnit.QUERIES
    assert trend_session.values["kitchen", TrendMeasure(Measure.FIRST_WER)].interval == reported.interval


@pytest.mark.parametrize(("error_s", "changes"), [(0.0, [(6, DifferenceVerdict.WORSE)]), (0.06, [])])
def test_a_shift_within_the_errors_of_the_clocks_is_not_shown(
    tmp_path: Path, error_s: float, changes: list[tuple[int, DifferenceVerdict]]
) -> None:
    for number in range(12):
        night(tmp_path, number, 0, heard_s=1.75 if number < 6 else 1.80, error_s=error_s)
    delay = TrendMeasure(Measure.WAKE_DELAY, 0.5)
    assert of(read_trends(tmp_path, [delay.name]), delay) == changes


def test_a_change_that_is_not_shown_does_not_end_the_level_of_the_change_before(tmp_path: Path) -> None:
    for number, heard_s in enumerate((1.75, 2.0, 2.02)):
        for index in range(8 * number, 8 * number + 8):
            night(tmp_path, index, 0, heard_s=heard_s, error_s=0.02)
    delay = TrendMeasure(Measure.WAKE_DELAY, 0.5)
    (trend,) = read_trends(tmp_path, [delay.name]).trends
    (change,) = trend.changes
    assert [level for *_, level in trend.levels] == [change.before, change.after]


def test_a_percentile_of_too_few_durations_is_not_printed(tmp_path: Path) -> None:
    night(tmp_path, 1, 1)
    night(tmp_path, 2, 0)
    (trend,) = read_trends(tmp_path, [TrendMeasure(Measure.WAKE_DELAY, 0.95).name]).trends
    assert [cell(trend, value) for value in trend.values] == ["too few (19)", "152 ms (20)"]
    assert [ends(trend, value) for value in trend.values] == ["", "152 ms – too few"]


def test_sessions_that_do_not_count_are_listed_with_the_reason(tmp_path: Path) -> None:
    night(tmp_path, 1, 1)
    shutil.copytree(tmp_path / "n01", tmp_path / "other")
    night(tmp_path / "deep" / "er", 2, 1, scenario="bath")
    night(tmp_path, 3, 1, name="killed", ended=False)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "log.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 3000)
    shutil.copytree(tmp_path / "n01", tmp_path / os.fsdecode(b"other\xff"))  # not UTF-8
    (tmp_path / "never").mkdir()
    (tmp_path / "never" / "resolved.json").write_text("{}", encoding="utf-8")
    folder = read_trends(tmp_path)
    assert {trend.scenario for trend in folder.trends} == {"kitchen", "bath"}
    why = dict(folder.left_out)
    assert why.keys() == {"other", "other\\udcff", "killed", "cut", "never"}
    assert why["other"] == why["other\\udcff"] == "it is a copy of n01"
    assert why["killed"] == "the run has not ended; 20 of 20 trials are finished"
    assert "log.sqlite is missing" in why["never"]
    result = succeeded(harness("trend", tmp_path))
    assert "left out: killed: the run has not ended" in result.stdout
    assert "scenarios are analysed separately" in result.stdout


def test_a_recent_change_for_the_worse_ends_with_status_1(nights: Path) -> None:
    assert harness("trend", nights, "--fail-on-change", 5).exit_code == 1
    assert harness("trend", nights, "--fail-on-change", 4).exit_code == 0  # five nights ago
    assert harness("trend", nights).exit_code == 0
    assert harness("trend", nights, "--fail-on-change", 2).exit_code == 2  # no change can be that recent


def test_csv_and_json_hold_every_session(nights: Path, tmp_path: Path) -> None:
    rows = list(csv.DictReader(harness("trend", nights, "--measure", "false rejects", "--csv").stdout.splitlines()))
    assert [row["count"] for row in rows] == [*["1", "2"] * 3, "1", *["10", "9"] * 2, "10"]
    assert [row["folder"] for row in rows if row["change"]] == ["n07"]
    report = json.loads(harness("trend", nights, "--json", "--since", "2024-10-08").stdout)
    assert [session["folder"] for session in report["trends"][0]["sessions"]] == [f"n{n:02}" for n in range(4, 12)]
    assert harness("trend", nights, "--json", tmp_path / "t.json").exit_code == 0
    assert json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["trends"][0]["changes"][0]["change"] == "worse"


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    night(tmp_path, 1, 1, scenario=HOSTILE, name="=cmd|'x'\x1b[31m\u202e<b>")
    night(tmp_path, 2, 1, scenario=HOSTILE)
    assert harness("trend", tmp_path, "--html", tmp_path / "t.html").exit_code == 0
    for output in (harness("trend", tmp_path).stdout, harness("trend", tmp_path, "--csv").stdout):
        assert "\x1b" not in output
        assert "\u202e" not in output
    assert "\n=cmd" not in harness("trend", tmp_path, "--csv").stdout
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<b>," not in page


def test_wrong_usage_is_refused(nights: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ([tmp_path], "there is no session in"),
        ([nights, "--measure", "false reject"], "there is no measure 'false reject'"),
        ([nights, "--device", "kitchn"], "no session has the device 'kitchn'"),
        ([nights, "--since", "2100-01-01"], "that began on or after --since"),
    ):
        with pytest.raises(InputError, match=message):
            raise harness("trend", *arguments).exception or AssertionError
    assert harness("trend", __file__).exit_code == 2


@pytest.mark.parametrize("heard_s", [(1.45, 1.61), (1.45, 1.5)])
def test_events_before_the_end_of_the_phrase_have_a_trend(tmp_path: Path, heard_s: tuple[float, ...]) -> None:
    for index, at_s in enumerate(heard_s):
        night(tmp_path / "n", index, 1, heard_s=at_s)
    trend = read_trends(tmp_path / "n")
    assert list(lines(trend, 200))
    write_page(trend, tmp_path / "trend.html")
