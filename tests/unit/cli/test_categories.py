"""`harness categories`, as a user types it, on sessions on the disk."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import group
from harness.model.errors import InputError
from harness.model.judgment import Category, JudgmentStatus
from tests.judged_sessions import Answer, answers, clips_of, give, judged, store_session

C, W = Category.CORRECT, Category.WRONG
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "categories.md"


def harness(*arguments: str | Path, columns: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(columns)}).invoke(group, ["categories", *map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve queries to each of two devices; kitchen is right on all but one, den on eight; all by two raters."""
    path = store_session(tmp_path_factory.mktemp("rated") / "one", answers(12, ("kitchen", "den")), "one")
    clips = clips_of(path)
    rows = []
    for number in range(1, 13):
        for device, right in (("kitchen", 11), ("den", 8)):
            trial = f"q{number}-{device}"
            category = C if number <= right else W
            rows += [judged(trial, clips[trial][1], rater, category, round="first") for rater in ("ann", "bo")]
    give(path, rows)
    return path


def test_reported_counts_match_the_judgments_given(folder: Path) -> None:
    report: dict[str, Any] = json.loads(harness(folder, "--json").output)
    assert report["categories"]["correct"]["a"]["count"] == 19
    assert report["categories"]["wrong"]["a"] == report["categories"]["wrong"]["b"]
    assert report["funnel"]["judged"] == report["total"] == 24
    by_device = {group["label"]: group["categories"]["correct"]["a"]["count"] for group in report["groups"]["device"]}
    assert by_device == {"den": 8, "kitchen": 11}
    assert report["interval_method"] == "clustered"


def test_json_ends_with_one_line_end(folder: Path) -> None:
    output = harness(folder, "--json").output
    assert output.endswith("}\n")
    assert not output.endswith("\n\n")


def test_the_report_fits_80_columns_without_colour_in_a_pipe(folder: Path) -> None:
    output = harness(folder, "--compare", "kitchen", "den").output
    assert "\x1b" not in output
    assert max(map(len, output.splitlines())) <= 80
    assert "kitchen versus den: Correct" in output


def test_devices_are_compared_pair_by_pair(folder: Path) -> None:
    (comparison,) = json.loads(harness(folder, "--compare", "kitchen", "den", "--json").output)["comparisons"]
    assert comparison["pairs"] == {"both": 8, "only_first": 3, "only_second": 0, "neither": 1}
    assert comparison["swap"] == {"p": 0.25, "exact": True, "queries": 3}
    assert comparison["difference"] == pytest.approx(0.25)


def test_sessions_are_taken_together_and_one_may_be_compared_with_another(folder: Path, tmp_path: Path) -> None:
    other = store_session(tmp_path / "two", answers(12, ("kitchen",)), "two")
    clips = clips_of(other)
    give(other, [judged(trial, clip, "ann", W) for trial, (_, clip) in clips.items()])
    (comparison,) = json.loads(harness(folder, other, "--compare", "one", "two", "--json").output)["comparisons"]
    assert (comparison["queries"], comparison["responses"]) == (12, [24, 12])
    assert json.loads(harness(folder, other, "--by", "session", "--json").output)["total"] == 36


def test_the_csv_has_a_row_for_each_category_of_each_group(folder: Path) -> None:
    output = harness(folder, "--csv", "--by", "device", "--cross", "device,class").output
    rows = list(csv.DictReader(io.StringIO(output)))
    assert len(rows) == (1 + 2 + 6) * 14 * 2
    kitchen = [row for row in rows if row["label"] == "kitchen" and not row["by_2"] and row["reading"] == "a"]
    assert [row["count"] for row in kitchen if row["category"] in ("correct", "wrong")] == ["11", "1"]


def test_a_label_in_the_csv_is_not_a_spreadsheet_formula(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "one", [replace(answer, query_class="=1+1") for answer in answers(1)], "one")
    rows = csv.DictReader(io.StringIO(harness(folder, "--csv", "--by", "class").output))
    assert {row["label"] for row in rows} == {"", "'=1+1"}


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--min-correct", "0.6"], 0),
        (["--min-correct", "70%"], 1),
        (["--min-correct", "70%", "--limits-on", "upper"], 0),
        (["--min-correct", "0.6", "--limits-on", "lower"], 1),
        (["--min-correct", "0.6", "--limits-on", "safe"], 1),
        (["--max-wrong", "0.34"], 0),
        (["--max-wrong", "0.3"], 1),
        (["--max-wrong", "0.34", "--limits-on", "safe"], 1),
        (["--max-wrong", "0.3", "--limits-on", "lower"], 0),
    ],
)
def test_limits_hold_for_every_device(folder: Path, options: list[str], status: int) -> None:
    result = harness(folder, *options)
    assert result.exit_code == status, result.output
    messages = [line for line in result.stderr.splitlines() if line.startswith("harness: ")]
    assert bool(messages) == bool(status)
    assert all(" of den" in line or " of kitchen" in line for line in messages)


def test_the_chosen_reading_decides_which_categories_are_wrong(tmp_path: Path) -> None:
    path = store_session(tmp_path / "s", [Answer("a", core_capability=True), Answer("b", query_id="b")])
    clips = clips_of(path)
    give(path, [judged("a", clips["a"][1], "ann", Category.ADMITTED_DEFEAT), judged("b", clips["b"][1], "ann", C)])
    assert harness(path, "--max-wrong", "0.1").exit_code == 1
    assert harness(path, "--max-wrong", "0.1", "--reading", "a").exit_code == 0


def test_a_limit_over_nothing_does_not_hold(tmp_path: Path) -> None:
    path = store_session(tmp_path / "s", [Answer("a")])
    result = harness(path, "--max-wrong", "1")
    assert result.exit_code == 1
    assert "no data (nothing was judged), undecided" in result.stderr


def test_one_rater_or_one_round_can_be_looked_at(folder: Path, tmp_path: Path) -> None:
    path = store_session(tmp_path / "s", [Answer("a"), Answer("b", query_id="b")])
    clips = clips_of(path)
    give(
        path,
        [
            judged("a", clips["a"][1], "ann", C, round="one"),
            judged("a", clips["a"][1], "bo", W, round="two"),
            judged("b", clips["b"][1], "bo", status=JudgmentStatus.HELD, round="two"),
        ],
    )

    def fates(*options: str) -> dict[str, int]:
        counts: dict[str, int] = json.loads(harness(path, "--json", *options).output)["funnel"]["fates"]
        return {name: count for name, count in counts.items() if count}

    assert fates() == {"disputed": 1, "held": 1}
    assert fates("--rater", "ann") == fates("--round", "one") == {"category": 1, "unjudged": 1}
    assert fates("--round", "two") == {"category": 1, "held": 1}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rater", "an"], "there is no rater 'an'. Did you mean 'ann'"),
        (["--round", "frst"], "there is no round 'frst'"),
        (["--compare", "kitchen", "garden"], "there is no device or session 'garden'"),
        (["--json", "--csv"], "--json and --csv cannot be combined"),
    ],
)
def test_wrong_names_are_refused_with_the_nearest(folder: Path, options: list[str], words: str) -> None:
    result = harness(folder, *options)
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)


def test_sessions_named_twice_and_other_folders_are_refused(folder: Path, tmp_path: Path) -> None:
    assert isinstance(harness(folder, folder).exception, InputError)
    assert isinstance(harness(tmp_path).exception, InputError)
    assert harness(folder, "--cross", "device,device").exit_code == 2
    assert harness(folder, "--max-wrong", "7").exit_code == 2


def test_the_docs_name_every_key_of_the_json(folder: Path) -> None:
    def keys(node: Any) -> list[str]:
        if isinstance(node, dict):
            return [key for name, value in node.items() for key in (name, *keys(value))]
        return [key for child in node for key in keys(child)] if isinstance(node, list) else []

    values = {category.value for category in Category} | {"kitchen", "den", "1"}
    report = json.loads(harness(folder, "--compare", "kitchen", "den", "--json").output)
    text = PAGE.read_text(encoding="utf-8")
    missing = [key for key in dict.fromkeys(keys(report)) if key not in values and not re.search(rf"`{key}`", text)]
    assert missing == []


def test_a_session_that_nobody_has_judged_has_no_tables_of_categories(tmp_path: Path) -> None:
    output = harness(store_session(tmp_path / "new", answers(6, ("kitchen", "den")))).output
    assert "categories   n/a: nothing was judged. To judge: harness rate SESSION" in output
    assert "not judged          12" in output
    assert "attempts until recognition" in output
    assert "correct %" not in output
    assert "device by class" not in output
