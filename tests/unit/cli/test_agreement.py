"""`harness agreement`: lines of at most 80 columns, JSON, CSV, limits, and the reason for what has no value."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from harness.base.text_table import width_of
from harness.cli import group
from harness.model.errors import InputError
from harness.rating.figures.agreement import CATEGORIES
from harness.statistics.agreement import MISSING
from tests.judged_sessions import answers, clips_of, give, judged, store_session
from tests.unit.statistics.simulations import confusion_matrix, drawn_labels, truths

HOSTILE = "cat\x1b]0;owned\x07[red]北京北京北京北京"


def harness(*arguments: str | Path) -> Result:
    return CliRunner().invoke(group, ["agreement", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = store_session(tmp_path / "s1", answers(40, ("kitchen", "den")))
    random = np.random.default_rng(1)
    clips = list(clips_of(folder).items())
    table = drawn_labels(
        truths(80, random), [confusion_matrix(right) for right in (0.95, 0.9, 0.7)], random, missing=0.1
    )
    give(
        folder,
        [
            judged(trial, clip, name, CATEGORIES[label], time_to_answer_s=4.0, heard_ms=1000)
            for name, row in zip(("ann", "bob", HOSTILE), table, strict=True)
            for (trial, (_, clip)), label in zip(clips, row, strict=True)
            if label != MISSING
        ],
    )
    return folder


def test_report_lines_fit_80_columns_and_are_escaped(folder: Path) -> None:
    for options in ((), ("--disagreements",)):
        result = harness(folder, *options)
        assert result.exit_code == 0, result.exception
        for line in result.output.splitlines():
            assert width_of(line) <= 80, line
            assert line.isprintable()
    whole = harness(folder).output
    for part in (
        "Krippendorff's alpha",
        "Gwet's AC1",
        "Dawid-Skene",
        "most frequent confusions",
        "specific agreement",
        "kappa",
    ):
        assert part in whole


def test_missing_judgments_and_how_to_settle_are_explained(tmp_path: Path) -> None:
    session = store_session(tmp_path / "s1", answers(3, ("kitchen",)))
    clips = list(clips_of(session).items())
    labels = {"ann": CATEGORIES[0], "bob": CATEGORIES[1]}
    give(
        session,
        [
            judged(trial, clip, name, label, round="spring")
            for name, label in labels.items()
            for trial, (_, clip) in clips
        ],
    )
    output = harness(session).output
    assert "leave-one-out needs at least two other raters who agree" in output
    assert "To settle: harness rate SESSION… --adjudicate" in output
    (tmp_path / "round.yaml").write_text("round: spring\nsessions: [s1]\n")
    assert f"To settle: harness rate {tmp_path / 'round.yaml'} --adjudicate" in harness(tmp_path / "round.yaml").output


def test_json_and_csv_hold_the_same_numbers(folder: Path) -> None:
    report = json.loads(harness(folder, "--json").output)
    rows = list(csv.DictReader(io.StringIO(harness(folder, "--csv").output)))
    assert len(rows) == len(report["items"]) == report["judged"]
    assert [row["disputed"] == "true" for row in rows] == [item["disputed"] for item in report["items"]]
    for row, item in zip(rows, report["items"], strict=True):
        assert {name: row[f"label.{name}"] for name in item["labels"]} == item["labels"]
        assert row["consensus"] == (item["consensus"] or "")
    assert sum(cell["count"] for cell in report["agreement"]["confusion"]) == sum(
        pair["agreed"]["of"] for pair in report["pairs"]
    )
    assert f"{report['agreement']['alpha']['value']:.3f}" in harness(folder).output


def test_a_consensus_is_printed_with_votes_and_known_answers(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "s1", answers(6))
    rows = [
        judged(trial, clip, rater, CATEGORIES[int(sign)], round="one", id=f"{rater}{trial}")
        for rater, signs in (("ann", "000011"), ("bob", "000015"), ("cat", "888808"))
        for (trial, (_, clip)), sign in zip(clips_of(folder).items(), signs, strict=True)
    ]
    give(folder, rows)
    shown = harness(folder, "--disagreements").output
    assert "consensus Correct, 2 of 3 raters\n" in shown
    assert "%" not in shown
    whole = harness(folder).output
    assert re.search(r"2 of 3 raters +5 +\d +n/a +n/a", whole)
    assert "only known answers can show it" in whole
    trials = list(clips_of(folder))
    answer = "\n".join(f"  - {{session: s1, trial: {trial}, category: correct}}" for trial in trials[:4])
    (tmp_path / "known.yaml").write_text(f"gold: known\nresponses:\n{answer}\n")
    (tmp_path / "round.yaml").write_text("round: one\nsessions: [s1]\ntraining: none\ngold: known.yaml\n")
    result = harness(tmp_path / "round.yaml")
    assert re.search(r"2 of 3 raters +1 +\d +4/4 100 % +51\.0–100 %", result.output), result.output
    shown = harness(tmp_path / "round.yaml", "--disagreements").output
    known_right = "correct on known answers with 2 of 3 raters: 4/4 100 %, 51.0–100 %"
    assert f"consensus Partially correct, 2 of 3 raters\n    {known_right}" in shown
    report = json.loads(harness(tmp_path / "round.yaml", "--json").output)
    (votes,) = report["consensus"]["votes"]
    assert (votes["votes"], votes["raters"], votes["items"], votes["gold"]["count"]) == (2, 3, 1, 4)
    row = list(csv.DictReader(io.StringIO(harness(tmp_path / "round.yaml", "--csv").output)))[4]
    assert (row["consensus_raters"], row["gold_right"], row["gold_right_low"]) == ("2", "1.0000", "0.5101")


def test_an_alpha_limit_sets_the_exit_status(folder: Path) -> None:
    assert harness(folder, "--min-alpha", "0.1").exit_code == 0
    low = harness(folder, "--min-alpha", "0.99")
    assert low.exit_code == 1
    assert "alpha ≥ 0.99: found 0.684, fails" in low.stderr
    assert harness(folder, "--min-alpha", "2").exit_code == 2


@pytest.mark.parametrize(
    ("raters", "why"),
    [
        ((), "nothing was judged"),
        (("ann",), "there is only one rater"),
        (("ann", "bob"), "every label is the same, so chance agreement is 100 %"),
    ],
)
def test_undefined_agreement_states_its_reason_and_fails_its_limit(
    tmp_path: Path, raters: tuple[str, ...], why: str
) -> None:
    folder = store_session(tmp_path / "s1", answers(3))
    give(folder, [judged(trial, clip, name) for name in raters for trial, (_, clip) in clips_of(folder).items()])
    result = harness(folder, "--min-alpha", "-1")
    assert result.exit_code == 1
    assert f": {why}" in result.output
    assert json.loads(harness(folder, "--json").output)["agreement"]["alpha"]["why_not"] == why


def test_unjudged_session_names_the_command_to_judge_it(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "s1", answers(6))
    sentence = "nothing was judged. To judge: harness rate SESSION"
    assert harness(folder).output == f"session s1\n6 responses: {sentence}\n"
    assert harness(folder, "--disagreements").output == f"{sentence}\n"


def test_high_raw_agreement_without_alpha_is_explained(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "s1", answers(45))
    clips = list(clips_of(folder).items())
    wrong = {("ann", 0), ("bob", 1)}
    rows = [
        judged(trial, clip, name, CATEGORIES[8 if (name, index) in wrong or index >= 40 else 0], round="one")
        for name in ("ann", "bob")
        for index, (trial, (_, clip)) in enumerate(clips)
    ]
    give(folder, rows)
    known = "".join(f"  - {{session: s1, trial: {trial}, category: wrong}}\n" for trial, _ in clips[40:])
    (tmp_path / "known.yaml").write_text(f"gold: known\nresponses:\n{known}")
    (tmp_path / "round.yaml").write_text("round: one\nsessions: [s1]\ntraining: none\ngold: known.yaml\n")
    assert "Correct is 97.5 % of the labels" in harness(tmp_path / "round.yaml").output, "without the known answers"


@pytest.mark.parametrize(("responses", "rough"), [(9, False), (10, True), (29, True), (30, False)])
def test_intervals_of_few_responses_are_called_rough(tmp_path: Path, responses: int, rough: bool) -> None:
    folder = store_session(tmp_path / "s1", answers(responses))
    clips = list(clips_of(folder).items())
    rows = [
        judged(trial, clip, name, CATEGORIES[index % 2 or (name == "bob" and index == 0)])
        for name in ("ann", "bob")
        for index, (trial, (_, clip)) in enumerate(clips)
    ]
    give(folder, rows)
    output = harness(folder).output
    assert ("Intervals are rough below 30 items: up to 1 in 5 is wrong, not just 1 in 20." in output) is rough
    assert ("an interval needs 10 items or more" in output) is (responses < 10)
    assert ("Only these intervals are bootstraps. The intervals below hold for any number" in output) is (
        responses < 10
    )


def test_a_pace_that_no_person_keeps_is_not_a_number_of_answers_per_hour(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "s1", answers(3))
    times_s = {"ann": 0.01, "bob": 4.0}
    clips = clips_of(folder).items()
    rows = [
        judged(trial, clip, name, time_to_answer_s=time_s)
        for name, time_s in times_s.items()
        for trial, (_, clip) in clips
    ]
    give(folder, rows)
    output = harness(folder).output
    assert re.search(r"ann .* > 3600\n", output)
    assert re.search(r"bob .* 900\n", output)


def test_contradictory_options_and_missing_sessions_are_refused(folder: Path, tmp_path: Path) -> None:
    for options in (("--json", "--csv"), ("--disagreements", "--json")):
        assert isinstance(harness(folder, *options).exception, InputError)
    assert isinstance(harness(folder, folder).exception, InputError)
    assert harness().exit_code == 2
    assert harness(tmp_path / "none").exit_code != 0
