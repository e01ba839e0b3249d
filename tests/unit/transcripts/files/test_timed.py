"""ctm files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.transcript import Segment, TimedWord
from harness.transcripts.files.timed import SegmentLabel, Segments, cut, read_ctm, read_stm
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


WRONG_CTM: list[tuple[str, Told]] = [
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


WRONG_STM: list[tuple[str, Told]] = [
    ("f A s 1\n", [(1, 8, "4 fields")]),
    ("f\n", [(1, 2, "1 field,")]),
    ("f A s one 2 a\n", [(1, 7, "the begin 'one'")]),
    ("f A s nan inf a\n", [(1, 7, "the begin 'nan'"), (1, 11, "the end 'inf'")]),
    ("f A s 2 1.5 a\n", [(1, 9, "ends (1.5) before it begins (2)")]),
    ("f A s 2 3 <o, f> a\n", [(1, 11, "the labels '<o,' are not closed")]),
    ("f A s 2 3 a\nf B s 1 2 a\nf A t 1 2 a\n", [(3, 7, "begins before the one in line 1")]),
    (";; nothing\n", [(0, 0, "no segments")]),
]


@pytest.mark.parametrize(
    ("read", "content", "wanted"),
    [*((read_ctm, *one) for one in WRONG_CTM), *((read_stm, *one) for one in WRONG_STM)],
)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, read: Callable[[Path], object], content: str, wanted: Told
) -> None:
    assert_told(told(read, written(tmp_path, "a.txt", content)), wanted)


CTM_FIELD = st.sampled_from(["f", "A", "1", "0.5", "-1", "*", "<ALT_BEGIN>", "<ALT>", "<ALT_END>", "word", "nan"])


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(CTM_FIELD, max_size=7).map(" ".join), max_size=8))
def test_any_lines_of_ctm_are_read_or_refused(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "a.ctm", "\n".join(lines))
        words = read_or_refused(read_ctm, path)
        assert words is None or (all(word.duration_s >= 0 for word in words))


EXAMPLE = """;; CATEGORY "0" "" ""
;; LABEL "o" "Overall" "All of it"
;;LABEL "f" "Women" ""
f1 A ann 0.0 2.5 <o,f> turn  it { on / up }
f1 A bob 2.5 3 ignore_time_segment_in_scoring
f1 B Ann 1.5 1.5
f1 A BOB 3 4 <o>
"""


def test_each_line_is_a_segment(tmp_path: Path) -> None:
    path = written(tmp_path, "a.stm", EXAMPLE)
    assert read_stm(path) == Segments(
        str(path),
        (
            Segment("f1", "A", "ann", 0.0, 2.5, "turn it { on / up }", ("o", "f"), False, 4),
            Segment("f1", "A", "bob", 2.5, 3.0, "ignore_time_segment_in_scoring", (), True, 5),
            Segment("f1", "B", "ann", 1.5, 1.5, "", (), False, 6),
            Segment("f1", "A", "bob", 3.0, 4.0, "", ("o",), False, 7),
        ),
        (SegmentLabel("o", "Overall", "All of it"), SegmentLabel("f", "Women", "")),
    )


STM_FIELD = st.sampled_from(["f", "A", "1", "0.5", "-1", "<o>", "<", ";;", "word", "\t", '"'])


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(STM_FIELD, max_size=8).map(" ".join), max_size=6))
def test_any_lines_of_stm_are_read_or_refused(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "a.stm", "\n".join(lines))
        read = read_or_refused(read_stm, path)
        assert read is None or (all(one.end_s >= one.start_s for one in read.segments))


def word(text: str, start_s: float, duration_s: float = 0.2, file: str = "f", channel: str = "A") -> TimedWord:
    return TimedWord(file, channel, start_s, duration_s, text, None, 1)


def segment(start_s: float, end_s: float, file: str = "f", channel: str = "A", ignored: bool = False) -> Segment:
    return Segment(file, channel, "s", start_s, end_s, "", (), ignored, 1)


def texts(words: list[TimedWord], segments: list[Segment]) -> list[str]:
    return ["".join(one.text for one in piece) for piece in cut(words, segments)]


def test_the_midpoint_says_where_a_word_belongs_and_a_border_is_of_the_later() -> None:
    words = [word("a", 0.7), word("b", 0.9), word("c", 1.0)]
    assert texts(words, [segment(0, 1), segment(1, 2)]) == ["a", "bc"]


def test_words_outside_go_to_the_first_the_next_and_the_last() -> None:
    words = [word("a", -5), word("b", 3), word("c", 99)]
    assert texts(words, [segment(1, 2), segment(4, 5), segment(6, 7)]) == ["a", "b", "c"]


def test_of_two_segments_that_overlap_the_earlier_takes_what_lies_in_both() -> None:
    assert texts([word("a", 0.5), word("b", 1.5), word("c", 2.5)], [segment(0, 2), segment(1, 3)]) == ["ab", "c"]


def test_a_segment_that_is_not_scored_takes_its_words_too() -> None:
    assert texts([word("a", 0.5), word("b", 1.5)], [segment(0, 1, ignored=True), segment(1, 2)]) == ["a", "b"]


def test_files_and_channels_are_apart_and_case_does_not_count() -> None:
    words = [word("a", 0.1), word("b", 0.1, channel="B"), word("c", 9, file="F", channel="a"), word("d", 0, file="g")]
    segments = [segment(0, 1), segment(0, 1, channel="b"), segment(1, 2), segment(0, 1, "h")]
    assert texts(words, segments) == ["a", "b", "c", ""]


times = st.lists(st.integers(0, 40), min_size=1, max_size=8).map(sorted)


@given(times, times)
def test_no_word_is_lost_and_their_order_stays(starts: list[int], ends: list[int]) -> None:
    words = [word(chr(97 + number), start / 4) for number, start in enumerate(starts)]
    segments = [segment(end / 4 - 1, end / 4) for end in ends]
    assert "".join(texts(words, segments)) == "".join(one.text for one in words)
