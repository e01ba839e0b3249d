"""What an earlier version wrote opens, and gives the numbers that it gave: sessions, judgments, an evaluation.

tests/data/kept was written by version 0.1.0 (README there) and is never made anew. A key may be added to a JSON output;
one that is missing, or a number that differs, fails.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import group

KEPT = Path(__file__).parent.parent / "data" / "kept"
OUTPUTS = {
    "queries.csv": ["show", "queries", "--csv"],
    "wake.csv": ["show", "wake", "--csv"],
    "wake.json": ["export", "wake", "--json"],
    "categories.json": ["categories", "queries", "--json"],
    "agreement.json": ["agreement", "queries", "--json"],
    "evaluation.json": ["report", "evaluation.log", "--json"],
    "journal.json": ["report", "evaluation.log.jsonl", "--json"],
    "wake_log.txt": ["export", "wake", "--wake-log", "-", "--device", "wired"],
    "junit.txt": ["export", "wake", "--junit", "-"],
    "scores.json": ["score", "-r", "texts/ref.trn", "-H", "texts/a.trn", "-H", "texts/b.trn", "--json"],
    "scores.txt": ["score", "-r", "texts/ref.trn", "-H", "texts/a.trn"],
    "understanding.json": [
        *("understanding", "score", "--gold", "texts/gold.jsonl"),
        *("--pred", "texts/pred.jsonl", "--pred", "texts/pred_b.jsonl", "--json"),
    ],
    "distribution.json": ["understanding", "distribution", "texts/gold.jsonl", "--json"],
    "comparison.json": ["compare", "evaluation.log", "evaluation.log", "--json"],
    "annotation.json": ["annotate", "report", "annotation", "--json"],
    "annotation_status.json": ["annotate", "status", "annotation", "--json"],
    "plan.json": ["plan", "--json"],
}


@pytest.fixture(scope="module")
def kept_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy, since SQLite writes beside what it reads."""
    return shutil.copytree(KEPT, tmp_path_factory.mktemp("kept") / "kept")


def said(folder: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(group, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("name", OUTPUTS)
def test_kept_output_is_unchanged(name: str, kept_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    was = (KEPT / "outputs" / name).read_text(encoding="utf-8")
    now = said(kept_folder, OUTPUTS[name], monkeypatch)
    match Path(name).suffix:
        case ".json":
            assert_holds(json.loads(was), json.loads(now), name)
        case ".csv":
            assert_holds(list(csv.DictReader(io.StringIO(was))), list(csv.DictReader(io.StringIO(now))), name)
        case _:
            assert comparable(now) == comparable(was)


def test_an_older_session_is_whole(kept_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "whole" in said(kept_folder, ["show", "queries", "--check"], monkeypatch)


def assert_holds(was: Any, now: Any, place: str) -> None:
    """Every key and every value of `was` is in `now`."""
    if isinstance(was, dict):
        for key, value in was.items():
            if key in ("harness", "version"):  # of the harness that wrote it
                continue
            assert key in now, f"{place}.{key} is missing"
            assert_holds(value, now[key], f"{place}.{key}")
    elif isinstance(was, list):
        assert len(was) == len(now), place
        for number, (entry, other) in enumerate(zip(was, now, strict=True)):
            assert_holds(entry, other, f"{place}[{number}]")
    elif isinstance(was, float):
        assert now == pytest.approx(was, rel=1e-9, abs=1e-12), place
    else:
        assert now == was, place


def comparable(text: str) -> list[str]:
    """The lines without what says when, where and by which version it was written."""
    varying = (
        "INFO command-line",
        "INFO sdk-version",
        "<?xml",
        "<testsuites",
        "<testsuite ",
        '<property name="version',
    )
    return [line.strip() for line in text.splitlines() if not line.strip().startswith(varying)]
