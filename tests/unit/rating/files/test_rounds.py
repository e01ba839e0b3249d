"""Round, training, gold and rater-key files; files of judgments, each problem with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.validate import command as validate
from harness.model.choices import JudgmentFormat as Format
from harness.model.errors import InputError, InputProblems
from harness.model.judgment import (
    Category,
    Exercise,
    GoldItem,
    ItemFilter,
    JudgmentStatus,
    ProposalRule,
    ProposalShown,
    RaterAction,
    RaterKeys,
    RatingRound,
    StopRule,
    TranscriptPolicy,
)
from harness.rating.exercises import BUILT_IN_EXERCISES
from harness.rating.files.reading import (
    MAX_CELL_CHARS,
    JudgmentFile,
    ParsedJudgment,
    format_from_suffix,
    read_judgments,
)
from harness.rating.files.rounds import NAMED_KEYS, load_gold, load_rater_keys, load_training, read_round
from tests.files import file_with

TRAINING = """
training: own
exercises:
  - id: timer
    query: set a timer for ten minutes
    response: done
    category: correct
    accept: [inferrable]
    why: it runs
    effect: a timer of ten minutes runs
    core_capability: true
"""
GOLD = """
gold: known
responses:
  - {session: s1, trial: moons-kitchen-1, category: correct, accept: [findable], why: both are named}
  - {session: s2, trial: moons-kitchen-1, category: wrong}
"""
WHOLE = """
round: spring
title: Spring round
sessions: [runs/a*, ../other]
seed: 7
items:
  devices: [kitchen]
  classes: [facts, timers]
  queries: [moons]
  trials: [moons-kitchen-1]
  conditions: {noise: [quiet, pink 10 dB], voice: [ann]}
  limit: 300
transcript: never
raters: [ann, ben, cem]
raters_per_item: 2
training: files/training.yaml
pass_share: 0.5
gold: files/gold.yaml
break_after_min: 40
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a round, with two sessions of three below it, one beside it, and a folder that is none."""
    root = tmp_path / "round"
    for name in ("runs/a1", "runs/a2", "runs/b1", "runs/apart", "files", "../other"):
        (root / name).mkdir(parents=True)
    for name in ("runs/a1", "runs/a2", "runs/b1", "../other"):
        (root / name / "log.sqlite").touch()
    (root / "files" / "training.yaml").write_text(TRAINING)
    (root / "files" / "gold.yaml").write_text(GOLD)
    return root


def written(folder: Path, text: str) -> Path:
    return file_with(folder / "round.yaml", text)


def test_round_file_with_every_key_is_read(folder: Path) -> None:
    path = written(folder, WHOLE)
    read = read_round(path)
    assert read.exercises != BUILT_IN_EXERCISES
    assert read == RatingRound(
        id="spring",
        title="Spring round",
        path=str(path),
        sessions=tuple(str(run.resolve()) for run in (folder / "runs/a1", folder / "runs/a2", folder / "../other")),
        seed=7,
        items=ItemFilter(
            ("kitchen",),
            ("facts", "timers"),
            ("moons",),
            ("moons-kitchen-1",),
            (("noise", "quiet"), ("noise", "pink 10 dB"), ("voice", "ann")),
            300,
        ),
        transcript=TranscriptPolicy.NEVER,
        raters=("ann", "ben", "cem"),
        raters_per_item=2,
        exercises=load_training(folder / "files" / "training.yaml"),
        pass_share=0.5,
        gold=load_gold(folder / "files" / "gold.yaml"),
        break_after_min=40,
    )


def test_missing_round_keys_use_defaults(folder: Path) -> None:
    read = read_round(written(folder, "round: spring\nsessions: [runs/a1]\n"))
    default = RatingRound()
    assert read.exercises == BUILT_IN_EXERCISES
    assert (read.title, len(read.sessions)) == ("spring", 1)
    assert (read.items, read.transcript, read.pass_share, read.break_after_min) == (
        default.items,
        default.transcript,
        default.pass_share,
        default.break_after_min,
    )
    assert read_round(written(folder, "round: spring\nsessions: [runs/a1]\ntraining: none\n")).exercises == ()


def test_a_session_matched_by_two_patterns_is_taken_once(folder: Path) -> None:
    assert len(read_round(written(folder, "round: r\nsessions: [runs/*, runs/a1]\n")).sessions) == 3


def test_signs_of_patterns_in_the_path_of_a_round_file_stand_for_themselves(folder: Path) -> None:
    moved = folder.rename(folder.with_name("round [1]"))
    assert len(read_round(written(moved, "round: r\nsessions: [runs/a*, ../other]\n")).sessions) == 3


def test_proposals_name_their_sources(folder: Path) -> None:
    head = "round: r\nsessions: [runs/a1]\n"
    sources = tuple(str((folder / source).resolve()) for source in ("runs/a2", "../other"))
    round_ = read_round(written(folder, head + "proposals: {from: [runs/a2, ../other, runs/a2]}\n"))
    assert round_.proposals == ProposalRule(sources, "tfidf", ProposalShown.AFTER)
    round_ = read_round(written(folder, head + "proposals: {from: [../other], classifier: own, show: before}\n"))
    assert round_.proposals == ProposalRule(sources[1:], "own", ProposalShown.BEFORE)


def test_proposals_take_settings_of_their_classifier_as_texts(folder: Path) -> None:
    lines = "proposals: {from: [../other], settings: {strength: 0.5, words: 3, balanced: yes}}\n"
    round_ = read_round(written(folder, "round: r\nsessions: [runs/a1]\n" + lines))
    assert round_.proposals is not None
    assert round_.proposals.settings == (("strength", "0.5"), ("words", "3"), ("balanced", "yes"))


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ("  from:\n    - runs/b1\n    - runs/a*\n", 6, "'runs/a*' matches 'a1', which this round judges"),
        ("  from:\n    - runs/b1\n    - runs/apart\n", 6, "'runs/apart' matches no session folder"),
        ("  from: [runs/b1]\n  show: later\n", 5, "later"),
        ("  from: []\n", 4, ""),
        ("  show: after\n", 4, "from"),
        ("  from: [runs/b1]\n  clasifier: tfidf\n", 5, "clasifier"),
        ("  from: [runs/b1]\n  settings:\n    words: 2\n    strenght: 3\n", 7, "tfidf has no setting 'strenght'"),
        ("  from: [runs/b1]\n  settings: {strength: 1,\n    words: 9}\n", 6, "it must be at most 5"),
        ("  from: [runs/b1]\n  settings:\n    words: [2]\n", 6, "a setting is neither text nor a number"),
        ("  from: [runs/b1]\n  settings: {balanced: true}\n", 5, "a setting is neither text nor a number"),
        ("  from: [runs/b1]\n  classifier: own\n  settings: {words: 2}\n", 5, "there is no intent classifier 'own'"),
    ],
)
def test_proposal_mistakes_are_reported_with_their_line(folder: Path, lines: str, line: int, message: str) -> None:
    with pytest.raises(InputProblems) as caught:
        read_round(written(folder, f"round: r\nsessions: [runs/a1]\nproposals:\n{lines}"))
    (problem,) = caught.value.problems
    assert problem.place is not None
    assert (Path(problem.place.file).name, problem.place.line) == ("round.yaml", line)
    assert message in problem.what


def test_error_in_a_referenced_file_names_that_file(folder: Path) -> None:
    (folder / "files" / "gold.yaml").write_text(
        "gold: known\nresponses:\n  - {session: s1, trial: t, category: best}\n"
    )
    (folder / "files" / "training.yaml").write_text("gold: known\n")
    with pytest.raises(InputProblems) as caught:
        read_round(written(folder, WHOLE))
    places = [(Path(problem.place.file).name, problem.place.line) for problem in caught.value.problems if problem.place]
    assert places == [("gold.yaml", 3), ("training.yaml", 1)]


def test_exercises_and_known_answers_are_read(folder: Path) -> None:
    assert load_training(folder / "files" / "training.yaml") == (
        Exercise(
            "timer",
            "set a timer for ten minutes",
            "done",
            Category.CORRECT,
            "it runs",
            (Category.INFERRABLE,),
            "a timer of ten minutes runs",
            True,
        ),
    )
    assert load_gold(folder / "files" / "gold.yaml") == (
        GoldItem("s1", "moons-kitchen-1", Category.CORRECT, (Category.FINDABLE,), "both are named"),
        GoldItem("s2", "moons-kitchen-1", Category.WRONG),
    )


def test_keys_that_are_given_replace_the_defaults(tmp_path: Path) -> None:
    path = file_with(
        tmp_path / "keys.yaml",
        "rater_keys: mine\ncorrect: 2\npartially_correct: 1\nplay: enter\nskip: '?'\naid: f1\nundo: Ü\n",
    )
    keys, default = load_rater_keys(path), RaterKeys()
    assert (keys.category("2"), keys.category("1")) == (Category.CORRECT, Category.PARTIALLY_CORRECT)
    assert keys.action("enter") is RaterAction.PLAY
    assert (keys.action("?"), keys.action("f1"), keys.action("Ü")) == (
        RaterAction.SKIP,
        RaterAction.AID,
        RaterAction.UNDO,
    )
    assert keys.action("x") is None
    assert keys.categories[Category.WRONG] == default.categories[Category.WRONG]
    assert keys.actions[RaterAction.HOLD] == default.actions[RaterAction.HOLD]


@pytest.mark.parametrize("key", [*NAMED_KEYS, "é", '"', "5"])
def test_every_key_of_the_keyboard_may_be_named(tmp_path: Path, key: str) -> None:
    path = tmp_path / "keys.yaml"
    quoted = "'\"'" if key == '"' else key
    path.write_text(f"rater_keys: mine\nwrong: {quoted}\n")
    if key in ("5", "space"):  # theirs by default
        with pytest.raises(InputError, match=r"Assign another key to .* in this file as well"):
            load_rater_keys(path)
    else:
        assert load_rater_keys(path).category(key) is Category.WRONG


def test_validate_describes_each_file_of_a_round(folder: Path, tmp_path: Path) -> None:
    written(folder, WHOLE)
    (folder / "keys.yaml").write_text("rater_keys: mine\nplay: enter\n")
    result = CliRunner().invoke(validate, [str(folder)])
    assert result.exit_code == 0, result.output
    lines = {line.split("/")[-1] for line in result.output.splitlines()}
    assert lines == {
        "round.yaml: round spring: 3 sessions, 3 named raters",
        "training.yaml: training of 1 exercise",
        "gold.yaml: gold of 2 known answers",
        "keys.yaml: rater keys are valid",
    }


def test_old_key_file_opens_after_new_actions_were_added(tmp_path: Path) -> None:
    path = file_with(tmp_path / "keys.yaml", "rater_keys: mine\nplay_slower: left\nplay_query: right\nwrong: e\n")
    keys = load_rater_keys(path)
    assert (keys.actions[RaterAction.PLAY_SLOWER], keys.category("e")) == ("left", Category.WRONG)
    assert {keys.actions[action] for action in (RaterAction.EARLIER, RaterAction.LATER, RaterAction.FIND)} == {
        "f12",
        "f11",
        "f10",
    }


def test_rules_that_stop_or_delay_raters_are_read(folder: Path) -> None:
    plain = "round: r\nsessions: [runs/a1]\ntraining: none\n"
    gold = f"{plain}gold: files/gold.yaml\n"
    assert not read_round(written(folder, plain)).must_hear
    assert read_round(written(folder, f"{plain}must_hear: true\n")).must_hear
    assert read_round(written(folder, f"{gold}stop: {{after: 2, below: 0.5}}\n")).stop == StopRule(2, 0.5)
    for text, message in (
        (f"{plain}stop: {{below: 0.5}}\n", "`stop` needs known answers"),
        (f"{gold}stop: {{after: 3, below: 0.5}}\n", "there are only 2"),
        (f"{gold}stop: {{after: 2}}\n", "below"),
    ):
        with pytest.raises(InputProblems) as caught:
            read_round(written(folder, text))
        assert message in str(caught.value.problems[0])


WORDS = {
    **{category.value: category for category in Category},
    "partially correct": Category.PARTIALLY_CORRECT,
    "9": Category.WRONG,
}
HEAD = "trial,rater,category"


def read(tmp_path: Path, content: str | bytes, kind: Format = Format.CSV, **names: str) -> JudgmentFile:
    path = file_with(tmp_path / f"f.{kind.value}", content if isinstance(content, bytes) else content.encode())
    return read_judgments(path, kind, WORDS, names)


def only(tmp_path: Path, content: str, kind: Format = Format.CSV, **names: str) -> ParsedJudgment:
    judgments = read(tmp_path, content, kind, **names)
    assert judgments.problems == ()
    (row,) = judgments.rows
    return row


def refused(tmp_path: Path, content: str | bytes, kind: Format = Format.CSV, **names: str) -> InputError:
    with pytest.raises(InputError) as caught:
        read(tmp_path, content, kind, **names)
    error = caught.value
    return error.problems[0] if isinstance(error, InputProblems) else error


def problem(tmp_path: Path, content: str, kind: Format = Format.CSV) -> InputError:
    judgments = read(tmp_path, content, kind)
    assert (judgments.rows, judgments.bad_count, len(judgments.problems)) == ((), 1, 1)
    return judgments.problems[0]


def test_a_row_with_every_column_is_read(tmp_path: Path) -> None:
    row = only(
        tmp_path,
        "session,trial,attempt,take,rater,category,sub_flags,flags,confidence,comment,heard_ms,time_to_answer_s,"
        "transcript_shown,given_wall_s,adjudicates\n"
        's1,t1,2,1,ann,Partially  Correct,too_little;World Knowledge Gap,cut response,3,"says, ""no""",1500,2.5,'
        'no,2026-01-31T10:00:00+01:00,"[""a;b"", ""c""]"\n',
    )
    assert (row.line, row.category, row.status) == (2, Category.PARTIALLY_CORRECT, JudgmentStatus.SUBMITTED)
    assert row.values == {
        "session": "s1", "trial": "t1", "attempt": 2, "take": 1, "rater": "ann",
        "sub_flags": ("too_little", "world_knowledge_gap"), "flags": ("cut_response",), "confidence": 3,
        "comment": 'says, "no"', "heard_ms": 1500, "time_to_answer_s": 2.5, "transcript_shown": False,
        "given_wall_s": 1769850000.0, "adjudicates": ("a;b", "c")
    }  # fmt: skip


def test_categories_may_be_keys_or_labels_and_rows_have_a_status(tmp_path: Path) -> None:
    assert only(tmp_path, f"{HEAD}\nt1,ann,9\n").category is Category.WRONG
    skipped = only(tmp_path, "trial,rater,category,status\nt1,ann,,Skipped\n")
    assert (skipped.status, skipped.category) == (JudgmentStatus.SKIPPED, None)


def test_columns_can_be_renamed(tmp_path: Path) -> None:
    row = only(tmp_path, "Item,Judge,Label,Extra\nt1,ann,wrong,x\n", Item="trial", Judge="rater")
    assert (row.text("trial"), row.text("rater"), row.category) == ("t1", "ann", Category.WRONG)
    assert read(tmp_path, f"{HEAD},device,condition.voice,mood\nt1,ann,wrong,a,b,c\n").ignored_columns == ("mood",)
    error = refused(tmp_path, f"{HEAD}\nt1,ann,wrong\n", item="trial")
    assert "no column 'item'" in error.what
    assert "no field 'trail'" in refused(tmp_path, "item,rater,category\nt1,ann,wrong\n", item="trail").what


@pytest.mark.parametrize(
    ("row", "message", "remedy"),
    [
        ("t1,ann,corect", "'corect' is not a category", "Did you mean 'correct'?"),
        ("t1,ann,", "the row has no category", "skipped"),
        ("t1,,wrong", "the row has no rater", "Add the rater's pseudonym"),
        (",ann,wrong", "the row does not identify a response", "clip_sha256"),
        ("t1,ann", "2 fields, but the header has 3", "Add a field for each column"),
        (f"t1,{'a' * 101},wrong", " is not a valid rater name", "1 to 100 printable"),
        (f"t1,ann,{'w' * (MAX_CELL_CHARS + 1)}", "category: the text has 100,001 characters", "at most 100,000"),
    ],
)
def test_a_wrong_row_has_its_line_and_a_remedy(tmp_path: Path, row: str, message: str, remedy: str) -> None:
    error = problem(tmp_path, f"{HEAD}\n{row}\n")
    assert message in error.what
    assert remedy in error.remedy
    assert error.place is not None
    assert error.place.line == 2


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("confidence", "4", "the confidence cannot be 4"),
        ("confidence", "sure", "'sure' is not a whole number"),
        ("plays", "-1", "`plays` is -1"),
        ("attempt", "0", "`attempt` is 0"),
        ("heard_ms", "1.5", "'1.5' is not a whole number"),
        ("heard_ms", "9" * 17, "is not a whole number"),
        ("time_to_answer_s", "nan", "'nan' is not a number"),
        ("time_to_answer_s", "1e999", "'1e999' is not a number"),
        ("proposed_probability", "1.5", "`proposed_probability` cannot be 1.5"),
        ("proposal_shown", "later", "'later' is not a valid value of proposal_shown"),
        ("unaided", "best", "'best' is not a valid value of unaided"),
        ("given_wall_s", "2026-01-31T10:00:00", "is not a number"),
        ("transcript_shown", "perhaps", "is not true or false"),
        ("sub_flags", "too_little", "cannot be used with wrong"),
        ("sub_flags", "recoverabel", "is not a valid value of sub_flags"),
        ("flags", "noise", "is not a valid value of flags"),
        ("effect", "rigth", "is not a valid value of effect"),
        ("status", "skipped", "the row has the status `skipped`, but also a category"),
        ("adjudicates", "[1]", "is not a list of words"),
        ("adjudicates", "[[", "is not a list"),
        ("span_start_s", "1.5", "only one of `span_start_s` and `span_end_s`"),
    ],
)
def test_a_wrong_cell_is_reported(tmp_path: Path, column: str, value: str, message: str) -> None:
    assert message in problem(tmp_path, f"{HEAD},{column}\nt1,ann,wrong,{value}\n").what


def test_every_wrong_row_is_told_and_the_right_ones_are_kept(tmp_path: Path) -> None:
    judgments = read(tmp_path, f"{HEAD}\nt1,ann,wrong\nt2,ann,\nt3,ann,correct\nt4,,wrong\n\nt5,ann\n")
    assert [row.line for row in judgments.rows] == [2, 4]
    assert sorted(error.place.line for error in judgments.problems if error.place) == [3, 5, 7]
    assert judgments.bad_count == 3
    result = read(tmp_path, HEAD + "\n" + "t,ann,no\n" * 300)
    assert (result.bad_count, len(result.problems), result.problems[-1].what) == (300, 51, "and 250 more problems")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        (f"{HEAD}\n", "the file has no rows"),
        ("trial,category\nt1,wrong\n", "no column `rater`"),
        ("trial,rater\nt1,ann\n", "no column `category`"),
        ("rater,category\nann,wrong\n", "no column identifies the response"),
        ("trial,rater,category,rater\nt1,ann,wrong,bob\n", "two columns are named 'rater'"),
        ("trial,rater,category,label\nt1,ann,wrong,wrong\n", "two columns contain category"),
        ("trial,rater,,category\nt1,ann,,wrong\n", "column 3 has no name"),
        ("trial;rater;category\nt1;ann;wrong\n", "the columns are separated by semicolons, not by commas"),
        (f'{HEAD}\nt1,ann,"wrong\n', "a quote is not closed"),
        (f"{HEAD}\nt1,a\0nn,wrong\n", "a NUL character"),
        (f"{HEAD}\nt1,ann\x1b[31m,wrong\n", "the control character U+001B"),
        (f"{HEAD}\nt1,Jürgen,wrong\n".encode("latin-1"), "byte 0xfc is not UTF-8"),
        (f"{HEAD}\nt1,ann,wrong\n".encode("utf-16"), "the file is not UTF-8"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 100, "is not UTF-8"),
    ],
)
def test_a_file_that_is_not_a_table_is_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    assert message in refused(tmp_path, content).what


def test_a_byte_order_mark_windows_ends_and_marked_cells(tmp_path: Path) -> None:
    row = only(tmp_path, "\ufefftrial,rater,category,comment\r\nt1,ann,wrong,'=1+1\r\n")
    assert row.text("comment") == "=1+1"
    assert only(tmp_path, f"{HEAD},comment\nt1,ann,wrong,'tis so\n").text("comment") == "'tis so"


def test_a_file_as_a_spreadsheet_saves_it(tmp_path: Path) -> None:
    row = only(
        tmp_path,
        f'sep=;\r\n{HEAD.replace(",", ";")};comment;span_start_s;span_end_s\r\nt1;ann;wrong;"a\r\nb";1,5;2\r\n',
    )
    assert (row.line, row.text("comment"), row.values["span_start_s"]) == (3, "a\r\nb", 1.5)


def test_other_encodings_when_asked_for(tmp_path: Path) -> None:
    path = file_with(tmp_path / "f.csv", f"{HEAD}\nt1,Jürgen,wrong\n".encode("latin-1"))
    assert read_judgments(path, Format.CSV, WORDS, encoding="latin-1").rows[0].text("rater") == "Jürgen"


def test_json_lines(tmp_path: Path) -> None:
    row = only(
        tmp_path,
        '{"trial": "t1", "rater": "ann", "category": "wrong", "sub_flags": ["recoverable"],'
        ' "plays": 2, "heard_ms": 1e3, "comment": "a\\u001bb", "transcript_shown": true, '
        '"position": null, "device": {"any": "thing"}}\n',
        Format.JSONL,
    )
    assert row.values == {
        "trial": "t1", "rater": "ann", "sub_flags": ("recoverable",), "plays": 2, "heard_ms": 1000,
        "comment": "a\x1bb", "transcript_shown": True
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "a line must be an object"),
        ('{"trial": "t1"', "not a JSON object"),
        ('{"trial": "t1", "trial": "t2"}', "a key occurs twice"),
        ('{"trial": "t1", "plays": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "not a JSON object"),
        ('{"a":' * 100_000, "not a JSON object"),
        ('{"trial": "t1", "rater": "ann", "category": "wrong", "plays": true}', "plays: 'True' is not a whole number"),
        ('{"trial": "t1", "rater": ["ann"], "category": "wrong"}', "is not text"),
        ('{"trial": "t1", "rater": "ann", "category": "wrong", "comment": "\\ud800"}', "an incomplete character"),
        ('{"trial": "t1", "rater": "ann", "category": "wrong", "aid_path": ["\\ud800"]}', "an incomplete character"),
        ('{"trial": "t1", "rater": "ann", "category": "wrong", "plays": 1' + "0" * 30 + "}", "is not a whole number"),
    ],
)
def test_a_wrong_json_line_is_reported_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    right = '{"trial": "t0", "rater": "ann", "category": "wrong"}'
    judgments = read(tmp_path, f"{right}\n{line}\n", Format.JSONL)
    assert (len(judgments.rows), judgments.bad_count) == (1, 1)
    assert message in judgments.problems[0].what
    assert judgments.problems[0].place is not None
    assert judgments.problems[0].place.line == 2


def test_a_parquet_file_of_another_program_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    table = pyarrow.table({
        "trial": ["t1", "t2"], "rater": ["ann", None], "category": ["wrong", "wrong"], "plays": [2.0, float("nan")]
    })  # fmt: skip
    pyarrow.parquet.write_table(table, path)
    judgments = read_judgments(path, Format.PARQUET, WORDS)
    assert judgments.rows[0].values == {"trial": "t1", "rater": "ann", "plays": 2}
    assert str(judgments.problems[0]).startswith(f"{path}:2: the row has no rater")
    for content in (b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", b"trial,rater\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="is not Parquet"):
            read_judgments(path, Format.PARQUET, WORDS)


def test_the_suffix_decides_the_format() -> None:
    suffixes = ("a.CSV", "a.jsonl", "a.ndjson", "a.parquet")
    formats = [format_from_suffix(Path(name)) for name in suffixes]
    assert formats == [Format.CSV, Format.JSONL, Format.JSONL, Format.PARQUET]
    with pytest.raises(InputError, match="suffix"):
        format_from_suffix(Path("a.xlsx"))


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.text(max_size=3))


@given(
    st.dictionaries(
        st.sampled_from(["trial", "rater", "category", "plays", "comment", "flags", "span_start_s"]), values
    )
)
def test_any_object_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, row: dict[str, object]) -> None:
    folder = tmp_path_factory.mktemp("any")
    try:
        judgments = read(folder, json.dumps(row) + "\n", Format.JSONL)
    except InputError:
        return
    assert len(judgments.rows) + judgments.bad_count == 1
