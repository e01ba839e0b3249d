"""`harness memory`, and the line that `harness show` has of it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import memory, show
from harness.model.errors import InputError
from harness.session.log.database import SqliteLog
from tests.unit.session.figures.memory_rows import NO, Told, clear_cut, session
from tests.unit.session.figures.rows import Rows, planned

WAITS = (2.0, 4.0, 8.0, 16.0)


def store(folder: Path, rows: Rows) -> str:
    folder.mkdir()
    at_s = [0.0]
    with SqliteLog(folder, now_s=lambda: at_s[0]) as log:
        for entry in rows.entries:
            at_s[0] = entry.at_s
            log.append(entry.record)
    return str(folder)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(memory.command, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_report_has_a_plot_the_memory_length_and_a_profile_line(tmp_path: Path) -> None:
    pairs = [
        *clear_cut(5.0, WAITS)[:-1],
        Told(16.0, text="\x1b[31m what", recognition=clear_cut(5.0, WAITS)[0].recognition),
    ]
    lines = run(store(tmp_path / "one", session(*pairs))).splitlines()
    assert lines[0] == "device kitchen: 11 of 12 pairs count"
    assert lines[2] == f"     2.0 s  {'█' * 30}  3 of 3 (29–100 %)"
    assert lines[4] == f"     8.0 s  {'·' * 21}{' ' * 9}  0 of 3 (0–71 %)"
    text = "\n".join(lines)
    assert "memory length      between 4 and 8 s (95 % interval 4 to 8 s)" in text
    assert "context_wait_s: 8  # at 8 s, at most 63 % show memory (95 %); observed: 0 of 5 pairs at 8 s or more" in text
    assert "more cautious      16 s: at most 45 % of pairs show memory" in text
    assert "do not count       neither 1" in text
    assert "the device's own answer" in text
    assert "\x1b" not in text


def test_the_line_can_be_pasted_into_a_profile(tmp_path: Path) -> None:
    from harness.base.strict_yaml import parse

    lines = run(store(tmp_path / "one", session(*clear_cut(5.0, WAITS)))).splitlines()
    line = next(line for line in lines if "context_wait_s" in line).split(maxsplit=1)[1]
    assert parse(line.encode(), "profile").plain() == {"context_wait_s": 8}


def test_sessions_are_pooled_and_conditions_are_separated(tmp_path: Path) -> None:
    near = [replace(pair, conditions=(("position", "near"),)) for pair in clear_cut(5.0, WAITS)]
    far = [replace(pair, conditions=(("position", "far"),)) for pair in clear_cut(3.0, WAITS)]
    sessions = [store(tmp_path / name, session(*pairs)) for name, pairs in (("one", near), ("two", far))]
    assert "24 of 24 pairs count" in run(*sessions)
    apart = run("--by", "position", *sessions)
    assert "device kitchen, position near: 12 of 12 pairs count" in apart
    assert "device kitchen, position far: 12 of 12 pairs count" in apart


def test_pairs_are_grouped_by_any_axis_of_a_matrix(tmp_path: Path) -> None:
    pairs = [replace(pair, conditions=(("room", "hall"),)) for pair in clear_cut(5.0, WAITS)]
    folder = store(tmp_path / "one", session(*pairs))
    assert "device kitchen, room hall: 12 of 12 pairs count" in run("--by", "room", folder)
    refused = CliRunner().invoke(memory.command, [folder, "--by", "rom"])
    assert refused.exit_code == 2
    assert "'room'" in refused.output


def test_a_session_that_is_named_twice_does_not_count_twice(tmp_path: Path) -> None:
    folder = store(tmp_path / "one", session(*clear_cut(5.0, WAITS)))
    with pytest.raises(InputError, match="a session is listed twice"):
        run(folder, f"{folder}/.")


def test_an_answer_is_no_formula_in_a_spreadsheet(tmp_path: Path) -> None:
    folder = store(tmp_path / "one", session(Told(2.0, text="=1+1")))
    (pair,) = csv.DictReader(io.StringIO(run("--csv", folder)))
    assert pair["answer"] == "'=1+1"


def test_json_and_csv_have_every_pair(tmp_path: Path) -> None:
    folder = store(tmp_path / "one", session(*clear_cut(5.0, WAITS)[:-1], Told(16.0)))
    report = json.loads(run("--json", folder))
    (device,) = report["devices"]
    assert (device["counted"], device["left_out"], device["context_wait_s"]) == (11, {"no_text": 1}, 8.0)
    assert device["length"]["interval"] == [4.0, 8.0]
    assert [point["shown"] for point in device["points"]] == [1] * 6 + [0] * 5 + [None]
    rows = list(csv.DictReader(io.StringIO(run("--csv", folder))))
    assert len(rows) == 12
    assert (rows[-2]["planned_s"], rows[-2]["shown"], rows[-2]["answer"], rows[-2]["answer_by"]) == (
        "16.0",
        "0",
        NO,
        "device",
    )
    assert rows[-1]["shown"] == ""
    assert float(rows[0]["to_wake_s"]) == pytest.approx(float(rows[0]["waited_s"]) + 0.75, abs=0.05)


def test_a_session_without_a_memory_trial_is_refused(tmp_path: Path) -> None:
    rows = Rows.of(planned(1))
    folder = store(tmp_path / "one", rows)
    with pytest.raises(InputError, match="no memory trial"):
        run(folder)
    with pytest.raises(InputError, match="cannot be combined"):
        run(folder, "--json", "--csv")


def test_show_ends_with_a_line_about_memory(tmp_path: Path) -> None:
    folder = store(tmp_path / "one", session(*clear_cut(5.0, WAITS)))
    text = CliRunner().invoke(show.command, [folder], catch_exceptions=False).output
    line = next(line for line in text.splitlines() if line.startswith("memory "))
    assert line.startswith(
        "memory               kitchen: between 4 and 8 s (95 % interval 4 to 8 s); context_wait_s: 8 "
    )
