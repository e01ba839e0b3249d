"""Which sessions figures of raters are about: named, or of a round file; and where a session stands with its raters."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.cli import group
from harness.cli.options import RatedAsked
from harness.cli.sessions import figures_of, rated_sessions
from harness.model.errors import InputError
from harness.model.judgment import Category, JudgmentStatus
from harness.model.record import Entry
from harness.rating.exercises import BUILT_IN_EXERCISES
from harness.session.log.reader import LogReader
from tests.judged_sessions import answers, clips_of, give, judged, store_session

C, W = Category.CORRECT, Category.WRONG


def harness(*arguments: str | Path) -> Result:
    return CliRunner().invoke(group, list(map(str, arguments)))


def figures(verb: str, *arguments: str | Path) -> dict[str, Any]:
    done = harness(verb, "--json", *arguments)
    assert done.exit_code == 0, done.exception
    found: dict[str, Any] = json.loads(done.output)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four responses; ann and bob judge all of them in the round `spring`, and cem the first one elsewhere."""
    folder = store_session(tmp_path / "s1", answers(4))
    clips = clips_of(folder)
    rows = [
        judged(trial, clip, rater, C if rater == "ann" or trial != "q1-kitchen" else W, round="spring")
        for rater in ("ann", "bob")
        for trial, (_, clip) in clips.items()
    ]
    give(folder, [*rows, judged("q1-kitchen", clips["q1-kitchen"][1], "cem", C, round="other")])
    return folder


@pytest.fixture
def round_file(folder: Path) -> Path:
    (folder.parent / "known.yaml").write_text(
        "gold: known\nresponses:\n  - {session: s1, trial: q2-kitchen, category: correct}\n"
    )
    path = folder.parent / "spring.yaml"
    path.write_text("round: spring\nsessions: [s1]\ntraining: none\ngold: known.yaml\n")
    return path


def test_a_round_file_says_which_sessions_answers_and_judgments(folder: Path, round_file: Path) -> None:
    asked = rated_sessions(RatedAsked((str(round_file),), None))
    assert [one.resolve() for one in asked.folders] == [folder.resolve()]
    assert asked.round_id == "spring"
    assert asked.round is not None
    assert [one.trial for one in asked.round.gold] == ["q2-kitchen"]
    assert asked.round.exercises != BUILT_IN_EXERCISES
    assert rated_sessions(RatedAsked((str(round_file),), "other")).round_id == "other"
    assert rated_sessions(RatedAsked((str(folder),), None)).round_id is None


def test_agreement_of_a_round_file_leaves_out_gold_and_judgments_of_elsewhere(folder: Path, round_file: Path) -> None:
    of_round, of_all = figures("agreement", round_file), figures("agreement", folder)
    assert [one["rater"] for one in of_round["raters"]] == ["ann", "bob"]
    assert [one["rater"] for one in of_all["raters"]] == ["ann", "bob", "cem"]
    assert (of_round["agreement"]["items"], of_all["agreement"]["items"]) == (3, 4)
    assert of_round["raters"][0]["gold"]["of"] == 1
    assert figures("agreement", folder, "--round", "other")["judged"] == 1


def test_categories_of_a_round_file_keep_gold_and_leave_out_judgments_of_elsewhere(
    folder: Path, round_file: Path
) -> None:
    of_round, of_all = figures("categories", round_file), figures("categories", folder)
    assert (of_round["total"], of_round["funnel"]["fates"]["disputed"]) == (3, 1)
    assert (of_all["total"], of_all["funnel"]["fates"]["disputed"]) == (3, 1), "four items say little of three raters"
    assert of_round["round"] == "spring"
    assert figures("categories", round_file, "--round", "other")["total"] == 1


@pytest.mark.parametrize("verb", ["agreement", "categories", "rate"])
def test_a_round_file_stands_alone(folder: Path, round_file: Path, verb: str) -> None:
    done = harness(verb, round_file, folder)
    assert isinstance(done.exception, InputError)
    assert "says itself which sessions" in str(done.exception)


@pytest.mark.parametrize("verb", ["agreement", "categories"])
def test_a_round_that_nobody_judged_in_is_refused_when_it_is_typed(folder: Path, round_file: Path, verb: str) -> None:
    done = harness(verb, folder, "--round", "sprin")
    assert isinstance(done.exception, InputError)
    assert "Did you mean 'spring'" in str(done.exception)
    round_file.write_text(round_file.read_text().replace("round: spring", "round: autumn"))
    assert figures(verb, round_file)["judged" if verb == "agreement" else "total"] == 0


def test_show_check_says_what_was_changed_and_what_is_not_sealed(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "s1", answers(2))
    done = harness("show", folder, "--check")
    assert done.exit_code == 0, done.output
    assert "seal   log.sqlite: row" in done.output
    assert done.output.endswith(": whole\n")
    with sqlite3.connect(folder / "log.sqlite") as connection:
        connection.execute("DROP TRIGGER never_changed")
        connection.execute("UPDATE entries SET body = replace(body, 'answer 1 of', 'answer 9 of')")
        (seq,) = connection.execute("SELECT min(seq) FROM entries WHERE body LIKE '%answer 9 of%'").fetchone()
    connection.close()
    done = harness("show", folder, "--check")
    assert done.exit_code == 3
    assert "DAMAGE the trigger never_changed" in done.output
    assert f"DAMAGE row {seq} is not what was written" in done.output
    old = shutil.copytree(Path(__file__).parents[2] / "data" / "unsealed" / "session", tmp_path / "old")
    done = harness("show", old, "--check")
    assert done.exit_code == 0
    assert done.output.endswith("17 rows and 1 clips: whole, but not sealed\n")
    assert "1 of 1 = 100 %" in harness("show", old).output


def test_show_counts_what_raters_judged_later(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "s1", answers(3))
    clips = clips_of(folder)
    assert "judged               0 of 3 responses" in harness("show", folder).output
    rows = [judged(trial, clip, "ann") for trial, (_, clip) in clips.items()]
    give(folder, rows[:2])
    assert "judged               2 of 3 responses" in harness("show", folder).output
    undone = judged(
        rows[0].trial_id, rows[0].clip_sha256, "ann", status=JudgmentStatus.WITHDRAWN, id="u", replaces=rows[0].id
    )
    give(folder, [undone])
    progress, _ = figures_of(folder)
    assert progress.totals.judged == 1
    assert progress.seq == max(row.seq for row in _rows(folder)), "rows of raters are no rows of the log"


def _rows(folder: Path) -> list[Entry]:
    with LogReader(folder) as reader:
        return list(reader.entries())
