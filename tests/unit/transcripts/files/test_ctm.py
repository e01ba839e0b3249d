"""ctm files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.transcript import TimedWord
from harness.transcripts.files.timed import read_ctm
from tests.unit.transcripts.files.told import Told, assert_told, read_or_refused, told, written


def test_each_line_is_a_word_with_its_times(tmp_path: Path) -> None:
    text = ";; made up\nf1 A 0.10 .25 Hello 0.98\n\n  f1\tB -1 1e-1 you\nf1 A 7 0 there NA\n"
    assert read_ctm(written(tmp_path, "a.ctm", text)) == (
        TimedWord("f1", "A", 0.1, 0.25, "Hello", 0.98, 2),
        TimedWord("f1", "B", -1.0, 0.1, "you", None, 4),
        TimedWord("f1", "A", 7.0, 0.0, "there", None, 5),
    )


def test_a_file_of_comments_alone_has_no_words(tmp_path: Path) -> None:
    assert read_ctm(written(tmp_path, "a.ctm", ";; nothing was heard\n")) == ()


ALTERNATIVES = """f A 1.0 0.2 a
f A * * <ALT_BEGIN>
f A 1.3 0.1 um
f A * * <ALT>
f A 1.3 0.2 you
f A 1.6 0.1 know
f A * * <alt>
f A * * <ALT_END>
f A 1.5 0.1 b
"""


def test_alternatives_become_one_word_with_the_times_of_its_latest(tmp_path: Path) -> None:
    words = read_ctm(written(tmp_path, "a.ctm", ALTERNATIVES))
    assert [word.text for word in words] == ["a", "{ um / you know / @ }", "b"]
    assert (words[1].start_s, words[1].duration_s, words[1].line) == (1.6, 0.1, 2)


WRONG: list[tuple[str, Told]] = [
    ("f A 1\n", [(1, 6, "3 fields")]),
    ("f A 1 2 a 0.5 lex\n", [(1, 15, "7 fields")]),
    ("f A one 2 a\n", [(1, 5, "the start 'one' is not a number")]),
    ("f A 1 nan a\n", [(1, 7, "the duration 'nan'")]),
    ("f A inf 1_0 a\n", [(1, 5, "the start 'inf'"), (1, 9, "the duration '1_0'")]),
    ("f A 1e999 1 a\n", [(1, 5, "the start")]),
    ("f A * * a\n", [(1, 5, "the start"), (1, 7, "the duration")]),
    ("f A 1 -0.1 a\n", [(1, 7, "the duration -0.1 is negative")]),
    ("f A 1 1 a good\n", [(1, 11, "the confidence 'good'")]),
    ("f A 2 1 a\ng A 1 1 b\nF A 1 1 c\n", [(3, 5, "begins before the one in line 1")]),
    ("f A * * <ALT>\n", [(1, 9, "<ALT> without <ALT_BEGIN>")]),
    ("f A * * <ALT_BEGIN>\nf A 1 1 a\n", [(1, 1, "is not closed")]),
    ("f A * * <ALT_BEGIN>\nf A * * <ALT_BEGIN>\n", [(2, 9, "within alternatives"), (1, 1, "is not closed")]),
    ("f A * * <ALT_BEGIN>\nf A 1 1 a\nf A * * <ALT_END>\n", [(1, 1, "a single alternative")]),
    ("f A * * <ALT_BEGIN>\nf A * * <ALT>\nf A * * <ALT_END>\n", [(1, 1, "without a word")]),
    ("f A * * <ALT_BEGIN>\nf B 1 1 a\n", [(1, 1, "is not closed")]),
    ("f A 1 1 <ALT_BEGIN>\nf A 1 1 a\nf A * * <ALT>\nf A 2 1 b\nf A * * <ALT_END>\n", [(1, 5, "has no times")]),
]


@pytest.mark.parametrize(("content", "wanted"), WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, content: str, wanted: Told) -> None:
    assert_told(told(read_ctm, written(tmp_path, "a.ctm", content)), wanted)


FIELD = st.sampled_from(["f", "A", "1", "0.5", "-1", "*", "<ALT_BEGIN>", "<ALT>", "<ALT_END>", "word", "nan"])


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(FIELD, max_size=7).map(" ".join), max_size=8))
def test_any_lines_are_read_or_refused(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "a.ctm", "\n".join(lines))
        words = read_or_refused(read_ctm, path)
        assert words is None or (all(word.duration_s >= 0 for word in words))
