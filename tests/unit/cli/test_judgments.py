"""`harness judgments`: files there and back, what is refused, and what a spreadsheet must not calculate."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.base.text_file import safe_cell, safe_csv
from harness.base.user_text import name_key
from harness.cli import group
from harness.model.effect import EffectOutcome
from harness.model.errors import InputError, InputProblems
from harness.model.judgment import (
    SUB_FLAGS_OF,
    Category,
    Exercise,
    Flag,
    Judgment,
    JudgmentStatus,
    ProposalShown,
    RatingRound,
    in_force,
)
from harness.model.record import JudgmentGiven
from harness.rating.figures.agreement import agreement_figures
from harness.rating.figures.judged_responses import read_sessions
from harness.rating.rating_room import RatingRoom
from harness.session.log.reader import rating_rows
from tests.command import succeeded
from tests.files import file_with
from tests.judged_sessions import answers, clips_of, give, judged, judged_responses, store_session

FORMATS = ("csv", "jsonl", "parquet")


def harness(*arguments: str | Path) -> Result:
    return CliRunner().invoke(group, ["judgments", *map(str, arguments)])


def rows_in(folder: Path) -> list[Judgment]:
    return [entry.record.judgment for entry in rating_rows(folder) if isinstance(entry.record, JudgmentGiven)]


def test_a_round_file_is_refused_with_what_makes_rows_count_in_it(tmp_path: Path) -> None:
    result = harness("import", "spring.yaml", file_with(tmp_path / "a.csv", "trial,rater,category\n"))
    assert isinstance(result.exception, InputError)
    assert "spring.yaml is a round file" in result.exception.what
    assert "A row counts in the round that its column `round` names" in result.exception.remedy


def said(folder: Path) -> list[Judgment]:
    """Without the name of a file that they came from."""
    return [replace(judgment, imported_from="") for judgment in rows_in(folder)]


def bare(session: Path, target: Path) -> Path:
    """A copy of a session without its judgments."""
    shutil.copytree(session, target)
    for path in target.glob("judgments.sqlite*"):
        path.unlink()
    return target


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six responses; judgments with all that a row may hold, one changed, one withdrawn, one settled."""
    folder = store_session(tmp_path / "s1", answers(3, ("kitchen", "den")))
    clips = clips_of(folder)
    rows = []
    for n, (trial, (_, clip)) in enumerate(clips.items()):
        full = judged(
            trial, clip, "ann", Category.WRONG if n % 2 else Category.CORRECT,
            session_id="s1", id=f"id-{n}", comment=("=SUM(A1)", "'tis; \"so\"", "-5", "[x]", "two\nlines", "@b")[n],
            flags=(Flag.AUDIO_BAD.value,), sub_flags=("recoverable",) if n % 2 else (), confidence=1 + n % 3,
            plays=2, heard_ms=900, time_to_answer_s=0.1 + n, transcript_shown=False, item_id=f"item{n}", round="r1",
            position=n + 1, aid_path=("whole=yes", "which; one=no"), span_s=(1.25, 2.5), effect_claimed=True,
            effect=EffectOutcome.PARTIAL, shown_wall_s=1e9, tool_version="0.1.0", proposed=Category.INFERRABLE,
            proposed_probability=0.25, proposal_shown=ProposalShown.BEFORE, unaided=Category.CLARIFICATION
        )  # fmt: skip
        rows.append(full)
    rows.append(judged("q1-kitchen", clips["q1-kitchen"][1], "bob", Category.WRONG, session_id="s1", id="b0"))
    rows.append(replace(rows[0], id="c0", category=Category.FINDABLE, replaces="id-0"))
    rows.append(
        judged(
            "q1-den",
            clips["q1-den"][1],
            "ann",
            status=JudgmentStatus.WITHDRAWN,
            id="w1",
            replaces="id-1",
            session_id="s1",
        )
    )
    rows.append(
        judged(
            "q1-kitchen",
            clips["q1-kitchen"][1],
            "ann",
            Category.WRONG,
            id="e0",
            adjudicates=("c0", "b0"),
            session_id="s1",
        )
    )
    give(folder, rows)
    return folder


def test_a_round_file_exports_its_sessions_and_only_its_judgments(folder: Path, tmp_path: Path) -> None:
    round_file, file = tmp_path / "round.yaml", tmp_path / "out.jsonl"
    round_file.write_text(f"round: r1\nsessions: [{folder.name}]\n")
    assert harness("export", round_file, "--jsonl", file).exit_code == 0
    assert [json.loads(line)["id"] for line in file.read_text().splitlines()] == [
        *(f"id-{number}" for number in range(6)), "c0", "w1", "e0"
    ]  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
def test_exported_judgments_can_be_imported_again(folder: Path, tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"out.{kind}"
    result = succeeded(harness("export", folder, f"--{kind}", file))
    assert result.output == f'Writing 10 rows to "{file}"; 7 judgments count\n'
    copy = bare(folder, tmp_path / "copy")
    assert harness("import", copy, file).output == "10 new judgments, 0 already there\n"
    assert said(copy) == said(folder)
    assert {judgment.imported_from for judgment in rows_in(copy)} == {file.name}
    assert judged_responses(copy)[0].settled is not None
    for session in (folder, copy):
        assert harness("import", session, file).output == "0 new judgments, 10 already there\n"
    assert len(rows_in(folder)) == 10


def test_of_two_judgments_given_at_once_the_last_one_counts(folder: Path, tmp_path: Path) -> None:
    clip = clips_of(folder)["q2-den"][1]
    give(folder, [judged("q2-den", clip, "cem", word, id=word) for word in (Category.CORRECT, Category.WRONG)])
    result = harness("export", folder, "--current", "--csv", tmp_path / "out.csv")
    assert result.output.endswith("; 8 judgments count\n")
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [row["id"] for row in csv.DictReader(file) if row["rater"] == "cem"] == ["wrong"]
    (cem,) = (rater for rater in agreement_figures(read_sessions([folder])).raters if rater.rater == "cem")
    assert (cem.submitted, cem.outdated) == (1, 0)


def test_an_exported_row_has_the_facts_of_its_response(folder: Path, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(harness("export", folder, "--csv", "-").stdout)))
    first = rows[0]
    assert (first["device"], first["query"], first["query_class"], first["condition.voice"]) == (
        "kitchen", "q1", "weather", "bob"
    )  # fmt: skip
    assert (first["reference"], first["response"], first["outcome"]) == (
        "question 1", "answer 1 of kitchen", "responded"
    )  # fmt: skip
    assert [row["in_force"] for row in rows].count("false") == 3
    assert (first["final"], first["final_by"], rows[1]["final"]) == ("wrong", "adjudicated", "")
    typed = tmp_path / "t.parquet"
    harness("export", folder, "--parquet", typed)
    schema = pyarrow.parquet.read_schema(typed)
    assert [str(schema.field(name).type) for name in ("plays", "in_force", "time_to_answer_s", "comment")] == [
        "int64", "bool", "double", "string"
    ]  # fmt: skip
    assert str(schema.field("sub_flags").type).startswith("list<")


def test_blind_export_names_no_device_and_can_be_imported(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "blind.jsonl"
    assert harness("export", folder, "--jsonl", file, "--blind", "--current").exit_code == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == 7
    revealing = {"session", "trial", "device", "item_id", "condition.voice", "imported_from"}
    revealing |= {"span_start_s", "span_end_s"}
    assert not revealing & rows[0].keys()
    assert {"reference", "response", "rater", "category"} <= rows[0].keys()
    copy = bare(folder, tmp_path / "copy")
    assert harness("import", copy, file).output == "7 new judgments, 0 already there\n"
    imported = {(judgment.id, judgment.trial_id, judgment.attempt) for judgment in rows_in(copy)}
    assert imported == {(judgment.id, judgment.trial_id, judgment.attempt) for judgment in in_force(rows_in(folder))}
    assert harness("import", folder, file).output == "0 new judgments, 7 already there\n"


def test_rows_of_a_blind_export_do_not_follow_sessions_or_trials(folder: Path, tmp_path: Path) -> None:
    other = store_session(tmp_path / "s2", answers(4, prefix="r"), "s2")
    give(other, [judged(trial, clip, "ann") for trial, (_, clip) in clips_of(other).items()])
    exported = harness("export", folder, other, "--jsonl", "-", "--blind").stdout
    clips = [json.loads(line)["clip_sha256"] for line in exported.splitlines()]
    assert clips == sorted(clips)
    assert "s1" not in exported
    assert "s2" not in exported


def test_a_blind_export_of_equal_clips_can_be_imported(tmp_path: Path) -> None:
    session = store_session(tmp_path / "s1", [replace(answer, tone=1) for answer in answers(2)])
    give(session, [judged(trial, clip, "ann") for trial, (_, clip) in clips_of(session).items()])
    file = tmp_path / "blind.csv"
    harness("export", session, "--csv", file, "--blind")
    assert harness("import", session, file).output == "0 new judgments, 2 already there\n"


def test_a_blind_export_has_no_exercises(folder: Path, tmp_path: Path) -> None:
    give(folder, [judged("exercise:01", "0" * 64, "ann", id="exercise-of-ann")])
    exported = harness("export", folder, "--csv", tmp_path / "a.csv", "--blind")
    whole = harness("export", folder, "--csv", tmp_path / "b.csv")
    assert [result.stdout.rpartition("; ")[2] for result in (exported, whole)] == ["7 judgments count\n"] * 2
    assert "exercise-of-ann" not in (tmp_path / "a.csv").read_text()
    assert "exercise-of-ann" in (tmp_path / "b.csv").read_text()


def test_exported_cells_are_not_spreadsheet_formulas(folder: Path) -> None:
    comments = {
        row["id"]: row["comment"] for row in csv.DictReader(io.StringIO(harness("export", folder, "--csv", "-").stdout))
    }
    assert (comments["id-0"], comments["id-1"], comments["id-2"]) == ("'=SUM(A1)", "''tis; \"so\"", "-5")
    assert [safe_cell(cell) for cell in ("+1", "1e-5", "-2.5e3", "+A", "\tx", "@x", "a=b", "")] == [
        "+1", "1e-5", "-2.5e3", "'+A", "'\tx", "'@x", "a=b", ""
    ]  # fmt: skip
    assert safe_csv([["a,b", '"']]) == '"a,b",""""\n'


def wanted(folder: Path, tmp_path: Path, *rows: str, head: str = "trial,rater,category") -> Result:
    file = file_with(tmp_path / "in.csv", "\n".join([head, *rows]) + "\n")
    return harness("import", folder, file)


def refused(result: Result) -> str:
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


def test_wrong_rows_are_reported_in_the_order_of_the_file(folder: Path, tmp_path: Path) -> None:
    rows = ("q9-kitchen,eve,wrong", "q1-kitchen,,wrong", "q1-kitchen,eve", "q8-kitchen,eve,wrong", "q1-kitchen,eve,no")
    messages = refused(wanted(folder, tmp_path, *rows)).split("\n")
    assert [message.split("in.csv:")[1][0] for message in messages] == ["2", "3", "4", "5", "6"]


def test_judgments_made_elsewhere_are_imported(folder: Path, tmp_path: Path) -> None:
    copy = bare(folder, tmp_path / "copy")
    done = wanted(copy, tmp_path, "q1-kitchen,eve,Partially correct", "q1-den,eve,9", "q1-kitchen,adam,wrong")
    assert done.output == "3 new judgments, 0 already there\n"
    first, second, _ = rows_in(copy)
    response = judged_responses(copy)[0].response
    assert (first.category, second.category, first.attempt, first.clip_sha256) == (
        Category.PARTIALLY_CORRECT, Category.WRONG, response.attempt, response.clip.sha256
    )  # fmt: skip
    assert (first.session_id, first.imported_from, first.rater) == ("s1", "in.csv", "eve")
    # The same rows in another file, in another order, are still the same.
    result = wanted(copy, tmp_path, "q1-kitchen,adam,wrong", "q1-kitchen,eve,Partially correct", "q1-den,eve,wrong")
    assert result.output == "0 new judgments, 3 already there\n"
    assert len(rows_in(copy)) == 3


def test_facts_missing_from_a_file_stay_unknown(folder: Path, tmp_path: Path) -> None:
    copy = bare(folder, tmp_path / "copy")
    wanted(copy, tmp_path, "q1-kitchen,eve,wrong")
    (judgment,) = rows_in(copy)
    assert (judgment.transcript_shown, judgment.plays, judgment.guideline_version) == (None, None, "")
    (row,) = csv.DictReader(io.StringIO(harness("export", copy, "--csv", "-").stdout))
    assert (row["transcript_shown"], row["plays"], row["guideline_version"]) == ("", "", "")
    # Earlier versions wrote the defaults of the desk for the same row.
    earlier = bare(folder, tmp_path / "earlier")
    give(earlier, [replace(judgment, transcript_shown=True, plays=0, guideline_version="2020-09-20")])
    assert wanted(earlier, tmp_path, "q1-kitchen,eve,wrong").output == "0 new judgments, 1 already there\n"


@pytest.mark.parametrize(
    ("row", "head", "message"),
    [
        (
            "q9-kitchen,eve,wrong",
            "trial,rater,category",
            "there is no trial 'q9-kitchen' in this session. Did you mean",
        ),
        ("s2,q1-kitchen,eve,wrong", "session,trial,rater,category", "no session 's2' was given. Did you mean 's1'?"),
        (
            "q1-kitchen,2,eve,wrong",
            "trial,attempt,rater,category",
            "the response that counts comes from attempt 1, not 2",
        ),
        ("q1-kitchen,2,eve,wrong", "trial,take,rater,category", "the response that counts comes from take 1, not 2"),
        ("q1-kitchen,abc,eve,wrong", "trial,clip_sha256,rater,category", "is not a response in the trial 'q1-kitchen'"),
        ("abc,eve,wrong", "clip_sha256,rater,category", "is not a response in this session"),
        (
            "q1-kitchen,eve,wrong,zz",
            "trial,rater,category,replaces",
            "replaces the judgment 'zz', which does not exist",
        ),
        ("q1-den,eve,wrong,b0", "trial,rater,category,replaces", "'b0' of another rater or response"),
        ("q1-kitchen,eve,,withdrawn", "trial,rater,category,status", "does not say which judgment to take back"),
        ("q1-kitchen,ann,wrong", "trial,rater,category", "'ann' already judged this response as findable, in 'c0'"),
        (
            "q1-kitchen,eve,wrong,b0",
            "trial,rater,category,id",
            "the judgment 'b0' is already in the session, with different",
        ),
    ],
)
def test_judgment_for_unknown_response_is_refused_with_its_line(
    folder: Path, tmp_path: Path, row: str, head: str, message: str
) -> None:
    before = rows_in(folder)
    refusal = refused(wanted(folder, tmp_path, row, head=head))
    assert f"in.csv:2: {message}" in refusal or message in refusal
    assert "in.csv:2" in refusal
    assert rows_in(folder) == before


@pytest.mark.parametrize("id_", ["", "x1"])
def test_identical_rows_of_a_file_count_once_with_a_note(folder: Path, tmp_path: Path, id_: str) -> None:
    copy = bare(folder, tmp_path / "copy")
    head = "trial,rater,category,comment,id"
    row = f"q1-kitchen,eve,wrong,late,{id_}"
    repeated = f"q1-kitchen,eve ,Wrong,late,{id_}"  # as a spreadsheet may write it
    result = wanted(copy, tmp_path, row, "q1-den,eve,wrong,,", repeated, row, head=head)
    file = tmp_path / "in.csv"
    assert result.stdout == "2 new judgments, 0 already there, 2 repeated rows counted once\n"
    assert result.stderr == "".join(f"{file}:{line}: the same row as line 2; counted once\n" for line in (4, 5))
    assert len(rows_in(copy)) == 2
    second = harness("import", copy, file)
    assert second.stdout == "0 new judgments, 2 already there, 2 repeated rows counted once\n"
    other = f"q1-kitchen,eve,wrong,another comment,{id_}"
    refusal = refused(wanted(bare(folder, tmp_path / "other"), tmp_path, row, other, head=head))
    assert "on line 2" in refusal


def test_import_is_all_or_nothing_unless_bad_rows_are_skipped(folder: Path, tmp_path: Path) -> None:
    copy = bare(folder, tmp_path / "copy")
    rows = ("q1-kitchen,eve,wrong", "q1-den,eve,wrnog", "q7-den,eve,wrong", "q1-kitchen,eve,correct")
    refusal = refused(wanted(copy, tmp_path, *rows))
    assert [part in refusal for part in (":3:", ":4:", ":5:", "already judged this response, on line 2")] == [True] * 4
    assert rows_in(copy) == []
    file = tmp_path / "in.csv"
    assert "nothing was written" in harness("import", copy, file, "--skip-bad", "--dry-run").stdout
    assert rows_in(copy) == []
    result = harness("import", copy, file, "--skip-bad")
    assert result.stdout == "1 new judgment, 0 already there, 3 rows left out\n"
    assert result.stderr.count("left out: ") == 3
    assert len(rows_in(copy)) == 1


def test_a_control_character_rejects_only_its_row(folder: Path, tmp_path: Path) -> None:
    copy = bare(folder, tmp_path / "copy")
    csv_rows = (
        b"session,trial,rater,category,comment",
        b"s1,q1-kitchen,eve,wrong,fine",
        b"s1,q1-den,eve,wrong,be\x07ll",
        b's1,q2-den,eve,wrong,"two\nlines\x00"',
        b"s1,q2-kitchen,eve,wrong,caf\xe9",
        b's1,q3-den,eve,wrong,"two\nlines, fine"',
    )
    of_json = [
        {"session": "s1", "trial": trial, "rater": "eve", "category": "wrong", "comment": trial + "X"}
        for trial in ("q1-kitchen", "q1-den", "q3-den")
    ]
    lines = [json.dumps(row).encode().replace(b"q1-denX", b"q1-den\x07") for row in of_json]
    for name, content, bad in (("in.csv", csv_rows, [":3:23", ":5:6", ":6:28"]), ("in.jsonl", lines, [":2:"])):
        file = file_with(tmp_path / name, b"\n".join(content) + b"\n")
        assert isinstance(harness("import", copy, file).exception, InputProblems)
        assert rows_in(copy) == []
        result = harness("import", copy, file, "--skip-bad")
        assert (result.exit_code, result.stderr.count("left out: ")) == (0, len(bad)), result.stderr
        assert [place for place in bad if place not in result.stderr] == []
        assert sorted(row.trial_id for row in rows_in(copy)) == ["q1-kitchen", "q3-den"]
        copy = bare(folder, tmp_path / f"after-{name}")


def test_an_import_replaces_earlier_judgments_on_request(folder: Path, tmp_path: Path) -> None:
    refused(wanted(folder, tmp_path, "q2-den,ann,findable"))
    result = harness("import", folder, tmp_path / "in.csv", "--replace")
    assert result.output == "1 new judgment, 1 of them replace earlier judgments, 0 already there\n"
    row = rows_in(folder)[-1]
    assert (row.replaces, row.category) == ("id-3", Category.FINDABLE)
    assert harness("import", folder, tmp_path / "in.csv", "--replace").output.startswith("0 new judgments")


def test_exercises_are_done_where_their_rows_were_imported(folder: Path, tmp_path: Path) -> None:
    exercise = Exercise("lamp", "switch on the lamp", "the lamp is off", Category.CORRECT, "because")
    copy, file = bare(folder, tmp_path / "copy"), tmp_path / "out.jsonl"
    first, second = (RatingRound(sessions=(str(path),), exercises=(exercise,)) for path in (folder, copy))
    with closing(RatingRoom(first)) as room:
        room.desk("eve").judge(Category.CORRECT)
    assert harness("export", folder, "--jsonl", file).exit_code == 0
    assert harness("import", copy, file).exit_code == 0
    with closing(RatingRoom(second)) as room:
        assert room.desk("eve").view.exercises == (1, 1)


def test_a_second_judgment_is_withdrawn_like_the_first(folder: Path, tmp_path: Path) -> None:
    head = "trial,rater,status,replaces"
    assert wanted(folder, tmp_path, "q2-den,ann,withdrawn,id-3", head=head).output.startswith("1 new judgment")
    give(folder, [judged("q2-den", clips_of(folder)["q2-den"][1], "ann", id="second")])
    assert wanted(folder, tmp_path, "q2-den,ann,withdrawn,second", head=head).output.startswith("1 new judgment")
    assert rows_in(folder)[-1].replaces == "second"
    assert harness("import", folder, tmp_path / "in.csv").output.startswith("0 new judgments, 1 already there")


def test_spellings_of_a_name_are_one_rater(folder: Path, tmp_path: Path) -> None:
    head = "trial,rater,category,comment"
    result = wanted(folder, tmp_path, "q1-kitchen,Jo\u0308rg,wrong,sa\u0308id\u3000so", head=head)
    assert result.output == "1 new judgment, 0 already there\n"
    assert (rows_in(folder)[-1].rater, rows_in(folder)[-1].comment) == ("Jörg", "säid\u3000so")
    assert "'Jörg' already judged this response" in refused(wanted(folder, tmp_path, "q1-kitchen,JÖRG,correct"))
    assert wanted(folder, tmp_path, "q1-den,jörg,correct").output.startswith("1 new")
    assert rows_in(folder)[-1].rater == "Jörg"
    two = [judged("q2-den", clips_of(folder)["q2-den"][1], name, id=name) for name in ("Eve", "eve")]
    give(folder, two)
    (session,) = read_sessions([folder])
    (response,) = (response for response in session.responses if response.trial.trial.id == "q2-den")
    assert [(row.id, row.rater) for row in response.judgments if name_key(row.rater) == "eve"] == [("eve", "Eve")]


def test_a_comment_that_is_too_long_is_refused_with_the_limit(folder: Path, tmp_path: Path) -> None:
    head = "trial,rater,category,comment"
    refusal = refused(wanted(folder, tmp_path, f"q1-kitchen,eve,wrong,{'x' * 10_001}", head=head))
    assert "the comment has 10,001 characters; the limit is 10,000" in refusal


def test_judgments_are_imported_into_several_sessions(tmp_path: Path) -> None:
    first = store_session(tmp_path / "s1", answers(2), "s1")
    two = store_session(tmp_path / "s2", [*answers(1), *answers(1, ("den",), "x")], "s2")
    file = file_with(
        tmp_path / "in.csv", "trial,rater,category\nq1-kitchen,eve,wrong\nx1-den,eve,wrong\nq2-kitchen,eve,wrong\n"
    )
    refusal = refused(harness("import", first, two, file))
    assert "in.csv:2: the response occurs in several sessions" in refusal
    assert refusal.count("in.csv:") == 1
    file.write_text(
        "session,trial,rater,category\ns1,q1-kitchen,eve,wrong\ns2,q1-kitchen,eve,wrong\n,x1-den,eve,wrong\n"
    )
    assert harness("import", first, two, file).output.startswith("3 new judgments")
    assert [len(rows_in(folder)) for folder in (first, two)] == [1, 2]


def test_columns_can_be_mapped_and_unknown_columns_are_reported(folder: Path, tmp_path: Path) -> None:
    file = file_with(tmp_path / "in.txt", "what,who,verdict,mood\nq1-kitchen,eve,wrong,\x41\n")
    mapped = [*("--map", "what=trial"), *("--map", "who=rater"), *("--map", "verdict=category")]
    result = harness("import", folder, file, "--csv", *mapped)
    assert "unknown columns, ignored: mood" in result.stderr
    assert result.stdout == "1 new judgment, 0 already there\n"
    assert "suffix" in refused(harness("import", folder, file))
    assert "--map" in refused(harness("import", folder, file, "--format", "csv", "--map", "what"))


def test_wrong_options_and_files_are_refused(folder: Path, tmp_path: Path) -> None:
    assert "no output file is given" in refused(harness("export", folder))
    assert "standard output" in refused(harness("export", folder, "--parquet", "-"))
    assert "standard output" in refused(harness("export", folder, "--csv", "-", "--jsonl", "-"))
    assert "no such file" in refused(harness("import", folder, tmp_path / "none.csv"))
    assert harness("export", folder, "--csv", tmp_path / "no" / "where.csv").exit_code != 0


texts = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters="\ufeff"), max_size=12)
names = st.sampled_from(["ann", "bob", "Zoë", "=cmd|'x'!A1", "@eve", "-1", "x,y", '"']) | texts.filter(
    lambda text: bool(text.strip()) and text.isprintable()
).map(str.strip)
seconds = st.none() | st.floats(0, 1e6)


@st.composite
def judgments(draw: st.DrawFn) -> Callable[[str, str, str], Judgment]:
    category = draw(st.sampled_from(Category))
    allowed = SUB_FLAGS_OF.get(category, ())
    carried = st.sampled_from(allowed) if allowed else st.nothing()
    template = Judgment(
        id="", trial_id="", attempt=1, rater=draw(names), status=JudgmentStatus.SUBMITTED, category=category,
        clip_sha256="", session_id="s1",
        comment=draw(texts.filter(lambda text: not text or bool(text.strip()))),
        sub_flags=tuple(draw(st.lists(carried, unique=True))),
        flags=tuple(draw(st.sets(st.sampled_from([flag.value for flag in Flag])))),
        aid_path=tuple(draw(st.lists(texts.filter(bool), max_size=3))),
        confidence=draw(st.sampled_from([None, 1, 2, 3])), plays=draw(st.integers(0, 99)),
        time_to_answer_s=draw(seconds), position=draw(st.none() | st.integers(1, 999)),
        effect_claimed=draw(st.sampled_from([None, True, False])), effect=draw(st.sampled_from([None, *EffectOutcome])),
        transcript_shown=draw(st.booleans()), given_wall_s=draw(seconds)
    )  # fmt: skip
    return lambda id_, trial, clip: replace(template, id=id_, trial_id=trial, clip_sha256=clip)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(judgments(), min_size=1, max_size=6, unique_by=lambda make: make("", "", "").rater))
def test_any_judgment_survives_export_and_import_in_any_format(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Callable[[str, str, str], Judgment]]
) -> None:
    tmp_path = tmp_path_factory.mktemp("any")
    folder = store_session(tmp_path / "s1", answers(1))
    ((trial, (_, clip)),) = clips_of(folder).items()
    give(folder, [make(f"j{number}", trial, clip.sha256) for number, make in enumerate(rows)])
    files = [tmp_path / f"f.{kind}" for kind in FORMATS]
    export_options = [option for kind, file in zip(FORMATS, files, strict=True) for option in (f"--{kind}", str(file))]
    assert harness("export", folder, *export_options).exit_code == 0
    for file in files:
        copy = bare(folder, tmp_path / file.suffix)
        succeeded(harness("import", copy, file))
        assert said(copy) == said(folder)
