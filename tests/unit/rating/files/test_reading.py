"""Files of judgments: what may stand in them, and hostile ones, each problem with its line and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.choices import JudgmentFormat as Format
from harness.model.errors import InputError, InputProblems
from harness.model.judgment import Category, JudgmentStatus
from harness.rating.files.reading import LONGEST_CELL, ReadJudgments, WrittenJudgment, format_of, read_judgments

WORDS = {**{one.value: one for one in Category}, "partially correct": Category.PARTIALLY_CORRECT, "9": Category.WRONG}
HEAD = "trial,rater,category"


def read(tmp_path: Path, content: str | bytes, kind: Format = Format.CSV, **names: str) -> ReadJudgments:
    path = tmp_path / f"f.{kind.value}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_judgments(path, kind, WORDS, names)


def only(tmp_path: Path, content: str, kind: Format = Format.CSV, **names: str) -> WrittenJudgment:
    found = read(tmp_path, content, kind, **names)
    assert found.problems == ()
    (row,) = found.rows
    return row


def refused(tmp_path: Path, content: str | bytes, kind: Format = Format.CSV, **names: str) -> InputError:
    with pytest.raises(InputError) as caught:
        read(tmp_path, content, kind, **names)
    error = caught.value
    return error.problems[0] if isinstance(error, InputProblems) else error


def problem(tmp_path: Path, content: str, kind: Format = Format.CSV) -> InputError:
    found = read(tmp_path, content, kind)
    assert (found.rows, found.bad, len(found.problems)) == ((), 1, 1)
    return found.problems[0]


def test_a_row_of_every_column(tmp_path: Path) -> None:
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


def test_keys_labels_and_statuses(tmp_path: Path) -> None:
    assert only(tmp_path, f"{HEAD}\nt1,ann,9\n").category is Category.WRONG
    skipped = only(tmp_path, "trial,rater,category,status\nt1,ann,,Skipped\n")
    assert (skipped.status, skipped.category) == (JudgmentStatus.SKIPPED, None)


def test_columns_may_be_called_otherwise(tmp_path: Path) -> None:
    row = only(tmp_path, "Item,Judge,Label,Extra\nt1,ann,wrong,x\n", Item="trial", Judge="rater")
    assert (row.text("trial"), row.text("rater"), row.category) == ("t1", "ann", Category.WRONG)
    assert read(tmp_path, f"{HEAD},device,condition.voice,mood\nt1,ann,wrong,a,b,c\n").left_out == ("mood",)
    error = refused(tmp_path, f"{HEAD}\nt1,ann,wrong\n", item="trial")
    assert "no column 'item'" in error.what
    assert "no field 'trail'" in refused(tmp_path, "item,rater,category\nt1,ann,wrong\n", item="trail").what


@pytest.mark.parametrize(
    ("row", "what", "remedy"),
    [
        ("t1,ann,corect", "'corect' is no category", "Did you mean 'correct'?"),
        ("t1,ann,", "the row has no category", "skipped"),
        ("t1,,wrong", "the row names no rater", "Write who judged"),
        (",ann,wrong", "the row names no response", "clip_sha256"),
        ("t1,ann", "2 fields, where the header has 3", "Write one for each column"),
        (f"t1,{'a' * 101},wrong", " is no name", "at most 100"),
        (f"t1,ann,{'w' * (LONGEST_CELL + 1)}", "category: a cell of 100,001 characters", "At most 100,000"),
    ],
)
def test_a_wrong_row_has_its_line_and_a_remedy(tmp_path: Path, row: str, what: str, remedy: str) -> None:
    error = problem(tmp_path, f"{HEAD}\n{row}\n")
    assert what in error.what
    assert remedy in error.remedy
    assert error.place is not None
    assert error.place.line == 2


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        ("confidence", "4", "the confidence is 4"),
        ("confidence", "sure", "'sure' is not a whole number"),
        ("plays", "-1", "plays is -1"),
        ("attempt", "0", "attempt is 0"),
        ("heard_ms", "1.5", "'1.5' is not a whole number"),
        ("heard_ms", "9" * 17, "is not a whole number"),
        ("time_to_answer_s", "nan", "'nan' is not a number"),
        ("time_to_answer_s", "1e999", "'1e999' is not a number"),
        ("proposed_probability", "1.5", "proposed_probability is 1.5"),
        ("proposal_shown", "later", "'later' is no word for proposal_shown"),
        ("unaided", "best", "'best' is no word for unaided"),
        ("given_wall_s", "2026-01-31T10:00:00", "is not a number"),
        ("transcript_shown", "perhaps", "neither true nor false"),
        ("sub_flags", "too_little", "does not go with wrong"),
        ("sub_flags", "recoverabel", "is no word for sub_flags"),
        ("flags", "noise", "is no word for flags"),
        ("effect", "rigth", "is no word for effect"),
        ("status", "skipped", "the row is skipped and has a category"),
        ("adjudicates", "[1]", "is no list of words"),
        ("adjudicates", "[[", "is no list"),
        ("span_start_s", "1.5", "one of them is missing"),
    ],
)
def test_a_wrong_cell(tmp_path: Path, column: str, value: str, what: str) -> None:
    assert what in problem(tmp_path, f"{HEAD},{column}\nt1,ann,wrong,{value}\n").what


def test_every_wrong_row_is_told_and_the_right_ones_are_kept(tmp_path: Path) -> None:
    found = read(tmp_path, f"{HEAD}\nt1,ann,wrong\nt2,ann,\nt3,ann,correct\nt4,,wrong\n\nt5,ann\n")
    assert [one.line for one in found.rows] == [2, 4]
    assert sorted(error.place.line for error in found.problems if error.place) == [3, 5, 7]
    assert found.bad == 3
    many = read(tmp_path, HEAD + "\n" + "t,ann,no\n" * 300)
    assert (many.bad, len(many.problems), many.problems[-1].what) == (300, 51, "and 250 more problems")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "the file is empty"),
        (f"{HEAD}\n", "the file has no rows"),
        ("trial,category\nt1,wrong\n", "no column is rater"),
        ("trial,rater\nt1,ann\n", "no column is category"),
        ("rater,category\nann,wrong\n", "no column says which response is judged"),
        ("trial,rater,category,rater\nt1,ann,wrong,bob\n", "two columns are called 'rater'"),
        ("trial,rater,category,label\nt1,ann,wrong,wrong\n", "two columns are category"),
        ("trial,rater,,category\nt1,ann,,wrong\n", "column 3 has no name"),
        ("trial;rater;category\nt1;ann;wrong\n", "columns are parted by commas here"),
        (f'{HEAD}\nt1,ann,"wrong\n', "a quote is not closed"),
        (f"{HEAD}\nt1,a\0nn,wrong\n", "a NUL character"),
        (f"{HEAD}\nt1,ann\x1b[31m,wrong\n", "the control character U+001B"),
        (f"{HEAD}\nt1,Jürgen,wrong\n".encode("latin-1"), "byte 0xfc is not UTF-8"),
        (f"{HEAD}\nt1,ann,wrong\n".encode("utf-16"), "the file is not UTF-8"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 100, "is not UTF-8"),
    ],
)
def test_a_file_that_is_no_table(tmp_path: Path, content: str | bytes, what: str) -> None:
    assert what in refused(tmp_path, content).what


def test_a_byte_order_mark_windows_ends_and_marked_cells(tmp_path: Path) -> None:
    row = only(tmp_path, "\ufefftrial,rater,category,comment\r\nt1,ann,wrong,'=1+1\r\n")
    assert row.text("comment") == "=1+1"
    assert only(tmp_path, f"{HEAD},comment\nt1,ann,wrong,'tis so\n").text("comment") == "'tis so"


def test_other_encodings_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_bytes(f"{HEAD}\nt1,Jürgen,wrong\n".encode("latin-1"))
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
    ("line", "what"),
    [
        ("[1]", "a line holds an object"),
        ('{"trial": "t1"', "not a JSON object"),
        ('{"trial": "t1", "trial": "t2"}', "a key stands there twice"),
        ('{"trial": "t1", "plays": NaN}', "NaN is no JSON"),
        ("[" * 100_000, "not a JSON object"),
        ('{"a":' * 100_000, "not a JSON object"),
        ('{"trial": "t1", "rater": "ann", "category": "wrong", "plays": true}', "plays: 'True' is not a whole number"),
        ('{"trial": "t1", "rater": ["ann"], "category": "wrong"}', "is no text"),
        ('{"trial": "t1", "rater": "ann", "category": "wrong", "comment": "\\ud800"}', "half a character"),
        ('{"trial": "t1", "rater": "ann", "category": "wrong", "aid_path": ["\\ud800"]}', "half a character"),
        ('{"trial": "t1", "rater": "ann", "category": "wrong", "plays": 1' + "0" * 30 + "}", "is not a whole number"),
    ],
)
def test_wrong_json(tmp_path: Path, line: str, what: str) -> None:
    right = '{"trial": "t0", "rater": "ann", "category": "wrong"}'
    found = read(tmp_path, f"{right}\n{line}\n", Format.JSONL)
    assert (len(found.rows), found.bad) == (1, 1)
    assert what in found.problems[0].what
    assert found.problems[0].place is not None
    assert found.problems[0].place.line == 2


def test_parquet_of_others(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    table = pyarrow.table({
        "trial": ["t1", "t2"], "rater": ["ann", None], "category": ["wrong", "wrong"], "plays": [2.0, float("nan")]
    })  # fmt: skip
    pyarrow.parquet.write_table(table, path)
    found = read_judgments(path, Format.PARQUET, WORDS)
    assert found.rows[0].values == {"trial": "t1", "rater": "ann", "plays": 2}
    assert str(found.problems[0]).startswith(f"{path}:2: the row names no rater")
    for content in (b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1", b"trial,rater\n"):
        path.write_bytes(content)
        with pytest.raises(InputError, match="no Parquet"):
            read_judgments(path, Format.PARQUET, WORDS)


def test_formats_by_suffix() -> None:
    suffixes = ("a.CSV", "a.jsonl", "a.ndjson", "a.parquet")
    assert [format_of(Path(one)) for one in suffixes] == [Format.CSV, Format.JSONL, Format.JSONL, Format.PARQUET]
    with pytest.raises(InputError, match="suffix"):
        format_of(Path("a.xlsx"))


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.text(max_size=3))


@settings(max_examples=150)
@given(
    st.dictionaries(
        st.sampled_from(["trial", "rater", "category", "plays", "comment", "flags", "span_start_s"]), values
    )
)
def test_any_object_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, row: dict[str, object]) -> None:
    folder = tmp_path_factory.mktemp("any")
    try:
        found = read(folder, json.dumps(row) + "\n", Format.JSONL)
    except InputError:
        return
    assert len(found.rows) + found.bad == 1
