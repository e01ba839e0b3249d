"""trn files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.model.errors import InputProblems
from harness.model.transcript import Transcripts
from harness.transcripts.files.transcripts import parted_at_once, parted_line_by_line, read_trn
from tests.unit.transcripts.files.told import Told, assert_told, problems_of, read_or_refused, told, written


def test_each_line_is_a_text_and_its_id(tmp_path: Path) -> None:
    path = written(tmp_path, "a.trn", "what day  is\tit (spk1_001)\n(spk1_002)\n  Play MUSIC(Spk2_001)  \n")
    assert read_trn(path) == Transcripts(
        str(path),
        ids=("spk1_001", "spk1_002", "Spk2_001"),
        texts=("what day is it", "", "Play MUSIC"),
        lines=(1, 2, 3),
        speakers=("", "", ""),
    )


def test_blank_lines_and_comments_are_skipped_and_lines_still_count(tmp_path: Path) -> None:
    read = read_trn(written(tmp_path, "a.trn", ";; made (yesterday)\n\na b (x_1)\n \t\n;;\nc (x_2)"))
    assert (read.ids, read.texts, read.lines) == (("x_1", "x_2"), ("a b", "c"), (3, 6))


def test_marks_of_networks_stay_in_the_text(tmp_path: Path) -> None:
    read = read_trn(written(tmp_path, "a.trn", "i (uh) { want / need / @ } it (x_1)\nso;; (x) y (x_2)\n"))
    assert read.texts == ("i (uh) { want / need / @ } it", "so;; (x) y")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_line_ends_of_any_system_and_a_byte_order_mark(tmp_path: Path, ending: str) -> None:
    read = read_trn(written(tmp_path, "a.trn", f"\ufeffa b (x_1){ending}ñ (x_2){ending}"))
    assert (read.ids, read.texts, read.lines) == (("x_1", "x_2"), ("a b", "ñ"), (1, 2))


WRONG: list[tuple[str, Told]] = [
    ("a b\nc (x_1)\n", [(1, 4, "no id")]),
    ("a b (x_1\n", [(1, 5, "not closed")]),
    ("a b x_1)\n", [(1, 9, "not balanced")]),
    ("a b (x_1))\n", [(1, 5, "not balanced")]),
    ("\ta  b ( )  \n", [(1, 7, "the id is empty")]),
    ("a (x\t1)\n", [(1, 3, "has a space")]),
    ("a b (x_1) c\n", [(1, 5, "does not end with its id, but with 'c'")]),
    ("a b ()\n", [(1, 5, "the id is empty")]),
    ("a b ( )\n", [(1, 5, "the id is empty")]),
    ("a b (x 1)\n", [(1, 5, "the id 'x 1' has a space")]),
    ("a (x_1)\nb (x_2)\nc (X_1)\n", [(3, 4, "'X_1' is there already, in line 1")]),
    ("a (x_1)\nb\nc (x_1)\n", [(2, 2, "no id"), (3, 4, "in line 1")]),
    (";; nothing\n", [(0, 0, "no transcripts")]),
    ("", [(0, 0, "empty")]),
    ("\n \r\n", [(0, 0, "empty")]),
    ("a (b (id1)\nid2)\n", [(2, 5, "not balanced")]),
]


@pytest.mark.parametrize(("content", "wanted"), WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, content: str, wanted: Told) -> None:
    assert_told(told(read_trn, written(tmp_path, "a.trn", content)), wanted)


def test_at_most_fifty_problems_are_told_and_the_rest_is_counted(tmp_path: Path) -> None:
    problems = problems_of(read_trn, written(tmp_path, "a.trn", "no id\n" * 173))
    assert len(problems) == 51
    assert problems[-1].what == "and 123 more problems"


def test_a_file_of_comments_alone_has_no_transcripts(tmp_path: Path) -> None:
    assert_told(told(read_trn, written(tmp_path, "a.trn", ";; one\n;; two\n")), [(0, 0, "no transcripts")])


def test_a_line_of_more_than_a_megabyte(tmp_path: Path) -> None:
    read = read_trn(written(tmp_path, "a.trn", f"{'word ' * 400_000}(x_1)\n"))
    assert len(read.texts[0].split()) == 400_000


LINES = st.lists(
    st.text(st.sampled_from("ab ()_;1\t"), max_size=12)
    | st.from_regex(r" \([ab][0-9]{1,2}\)", fullmatch=True)
    | st.from_regex(r"[ab\u00e4\u00a0]{0,3} ?\(?[ab] ?\([abA\u00c4][0-9]{1,2}\)[ \t]?", fullmatch=True),
    min_size=1,
    max_size=6,
)


@settings(deadline=None, max_examples=500)
@given(LINES)
@example(["a (a1)", " (b(b1)"])
@example(["a (a1)", " (b1)", " (b2)", "(b (b3)"])
def test_a_file_is_the_same_parted_at_once_or_line_by_line(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    try:
        wanted = parted_line_by_line(text, "a.trn")
    except InputProblems:
        assert parted_at_once(text) is None
        return
    found = parted_at_once(text)
    assert found is not None
    assert tuple(map(list, found)) == wanted


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=80) | st.text(max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "a.trn", content)
        transcripts = read_or_refused(read_trn, path)
    assert transcripts is None or (len(set(transcripts.ids)) == len(transcripts) > 0)
