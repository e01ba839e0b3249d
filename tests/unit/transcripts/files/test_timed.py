"""ctm, stm and sro files."""

from __future__ import annotations

import io
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import InputError, Place
from harness.model.transcript import Segment, TimedWord, Transcripts
from harness.transcripts.files import sro as seen_ids
from harness.transcripts.files.sro import SeenIds, converted_blocks, read_sro
from harness.transcripts.files.timed import Segments, cut_by_segments, read_ctm, read_stm
from harness.transcripts.snor import SnorForm, words
from tests.unit.transcripts.files.told import Told, assert_told, read_or_refused, told, written


def test_each_line_is_a_word_with_its_times(tmp_path: Path) -> None:
    text = ";; made up\nf1 A 0.10 .25 Hello 0.98\n\n  f1\tB -1 1e-1 you\nf1 A 7 0 there NA\n"
    assert read_ctm(written(tmp_path, "a.ctm", text)) == (
        TimedWord("f1", "A", 0.1, 0.25, "Hello", 0.98, 2),
        TimedWord("f1", "B", -1.0, 0.1, "you", None, 4),
        TimedWord("f1", "A", 7.0, 0.0, "there", None, 5),
    )


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


def test_a_word_of_nists_rt_evaluations_has_a_type_and_a_speaker(tmp_path: Path) -> None:
    text = "f A 1 1 a 0.9 lex ann\nf A 2 1 um NA fp ann\nf A 3 1 b 1.0 LEX\nf A 4 1 c 0.5 1\nf A 5 -0.1 d\n"
    text += "f A * * <ALT_BEGIN>\nf A 6 1 e- 0.1 frag\nf A * * <ALT>\nf A * * @\nf A * * <ALT>\n"
    text += "f A 6 1 e 1 lex\nf A * * <ALT_END>\n"
    words = read_ctm(written(tmp_path, "a.ctm", text))
    assert [word.text for word in words if word.is_scored] == ["a", "b", "c", "d", "{ @ / @ / e }"]
    assert [word.text for word in words if not word.is_scored] == ["um"]
    assert (words[4].start_s, words[4].duration_s) == (5.0, -0.1)
    assert words[5].times == ((0.0, 0.0), (0.0, 0.0), (6.0, 7.0))


WRONG_CTM: list[tuple[str, Told]] = [
    ("f A 1\n", [(1, 6, "3 fields")]),
    ("f A 1 2 a 0.5 lex ann x\n", [(1, 23, "9 fields")]),
    ("f A 1 2 a 0.5 word\n", [(1, 15, "the type 'word' is not one of lex, frag, fp")]),
    ("f A 1 2 a 0.5 1 ann\n", [(1, 15, "the type '1' is not one of")]),
    ("f A one 2 a\n", [(1, 5, "the start 'one' is not a number")]),
    ("f A 1 nan a\n", [(1, 7, "the duration 'nan'")]),
    ("f A inf 1_0 a\n", [(1, 5, "the start 'inf'"), (1, 9, "the duration '1_0'")]),
    ("f A 1e999 1 a\n", [(1, 5, "the start")]),
    ("f A * * a\n", [(1, 5, "the start"), (1, 7, "the duration")]),
    ("f A 1 1 a good\n", [(1, 11, "the confidence 'good'")]),
    ("f A 2 1 a\ng A 1 1 b\nF A 1 1 c\n", [(3, 5, "begins before the one on line 1")]),
    ("f A * * <ALT>\n", [(1, 9, "<ALT> without <ALT_BEGIN>")]),
    ("f A * * <ALT_BEGIN>\nf A 1 1 a\n", [(1, 1, "is not closed")]),
    ("f A * * <ALT_BEGIN>\nf A * * <ALT_BEGIN>\n", [(2, 9, "must not be nested"), (1, 1, "is not closed")]),
    ("f A * * <ALT_BEGIN>\nf A 1 1 a\nf A * * <ALT_END>\n", [(1, 1, "only one alternative")]),
    ("f A * * <ALT_BEGIN>\nf A * * <ALT>\nf A * * <ALT_END>\n", [(1, 1, "contain no words")]),
    ("f A * * <ALT_BEGIN>\nf B 1 1 a\n", [(1, 1, "is not closed")]),
    ("f A 1 1 <ALT_BEGIN>\nf A 1 1 a\nf A * * <ALT>\nf A 2 1 b\nf A * * <ALT_END>\n", [(1, 5, "must not have times")]),
]


WRONG_STM: list[tuple[str, Told]] = [
    ("f A s 1\n", [(1, 8, "4 fields")]),
    ("f\n", [(1, 2, "1 field,")]),
    ("f A s one 2 a\n", [(1, 7, "the start 'one'")]),
    ("f A s nan inf a\n", [(1, 7, "the start 'nan'"), (1, 11, "the end 'inf'")]),
    ("f A s 2 1.5 a\n", [(1, 9, "ends (1.5) before it begins (2)")]),
    ("f A s 2 3 <o, f> a\n", [(1, 11, "the labels '<o,' are not closed")]),
    ("f A s 2 3 a\nf B s 1 2 a\nf A t 1 2 a\n", [(3, 7, "begins before the one on line 1")]),
    (";; nothing\n", [(0, 0, "no segments")]),
]


@pytest.mark.parametrize(
    ("read", "content", "expected"),
    [*((read_ctm, *case) for case in WRONG_CTM), *((read_stm, *case) for case in WRONG_STM)],
)
def test_timed_file_mistakes_are_reported_with_their_place(
    tmp_path: Path, read: Callable[[Path], object], content: str, expected: Told
) -> None:
    assert_told(told(read, written(tmp_path, "a.txt", content)), expected)


CTM_FIELD = st.sampled_from(["f", "A", "1", "0.5", "-1", "*", "<ALT_BEGIN>", "<ALT>", "<ALT_END>", "word", "nan"])


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
        (("o", "Overall"), ("f", "Women")),
    )


STM_FIELD = st.sampled_from(["f", "A", "1", "0.5", "-1", "<o>", "<", ";;", "word", "\t", '"'])


@given(st.lists(st.lists(STM_FIELD, max_size=8).map(" ".join), max_size=6))
def test_any_lines_of_stm_are_read_or_refused(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "a.stm", "\n".join(lines))
        read = read_or_refused(read_stm, path)
        assert read is None or (all(segment.end_s >= segment.start_s for segment in read.segments))


def word(text: str, start_s: float, duration_s: float = 0.2, file: str = "f", channel: str = "A") -> TimedWord:
    return TimedWord(file, channel, start_s, duration_s, text, None, 1)


def segment(start_s: float, end_s: float, file: str = "f", channel: str = "A", ignored: bool = False) -> Segment:
    return Segment(file, channel, "s", start_s, end_s, "", (), ignored, 1)


def texts(words: list[TimedWord], segments: list[Segment]) -> list[str]:
    return ["".join(word.text for word in piece) for piece in cut_by_segments(words, segments)]


def test_word_goes_to_the_segment_of_its_midpoint() -> None:
    words = [word("a", 0.7), word("b", 0.9), word("c", 1.0)]
    assert texts(words, [segment(0, 1), segment(1, 2)]) == ["a", "bc"]


def test_words_outside_segments_go_to_the_next_or_last_one() -> None:
    words = [word("a", -5), word("b", 3), word("c", 99)]
    assert texts(words, [segment(1, 2), segment(4, 5), segment(6, 7)]) == ["a", "b", "c"]


def test_overlap_of_segments_belongs_to_the_earlier_one() -> None:
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
    assert "".join(texts(words, segments)) == "".join(timed_word.text for timed_word in words)


def test_each_line_is_a_text_with_its_spaces_and_its_id(tmp_path: Path) -> None:
    text = "\ufeff;; (notes)\n\n  what day (1) is  it (1 what date) (bb00e1sx)\r\n[uh] show:(Bn0051sx)\t\n(bt1)"
    path = written(tmp_path, "a.sro", text)
    assert read_sro(path) == Transcripts(
        str(path),
        ids=("bb00e1sx", "Bn0051sx", "bt1"),
        texts=("  what day (1) is  it (1 what date) ", "[uh] show:", ""),
        lines=(3, 4, 5),
        speakers=("", "", ""),
    )


WRONG: list[tuple[str | bytes, Told]] = [
    ("what day (1) is it (1)\n", [(1, 20, "'(1)' is an edit cue")]),
    ("what day (1) is it (1 what date) \n", [(1, 20, "is an edit cue")]),
    ("what day (x)\n", [(1, 10, "two or more characters")]),
    ("what day\nx (a b)", [(1, 9, "no id"), (2, 3, "single token")]),
    ("a (ab)\nb (cd)\nc (AB)\n", [(3, 3, "'AB' occurs twice, first on line 1")]),
    ("a\x0bb (ab)\nb\u2028c\n", [(1, 2, "U+000B"), (2, 2, "U+2028")]),
    (b"caf\xe9 (ab)\na\0 (cd)\n", [(1, 4, "byte 0xe9"), (2, 2, "NUL")]),
    (b"\xff\xfea\0\n\0", [(1, 1, "byte 0xff"), (2, 1, "NUL")]),
    (";; one\n\n", [(0, 0, "no transcripts")]),
    (" \n", [(0, 0, "empty")]),
]


@pytest.mark.parametrize(("content", "expected"), WRONG)
def test_sro_mistakes_are_reported_with_their_place(tmp_path: Path, content: str | bytes, expected: Told) -> None:
    assert_told(told(read_sro, written(tmp_path, "a.sro", content)), expected)


def converted(content: bytes) -> tuple[dict[int, str], set[int]]:
    """What `harness snor` makes of the lines, by number, and the numbers of those that it refuses."""
    blocks = list(converted_blocks(io.BytesIO(content).read, "x", SnorForm.LEXICAL))
    lines = [line for block in blocks for line in block.lines]
    wrong = {problem.place.line for block in blocks for problem in block.problems if problem.place}
    numbers = (number for number in range(1, len(lines) + len(wrong) + 1) if number not in wrong)
    return dict(zip(numbers, lines, strict=True)), wrong


LINE = st.text(st.sampled_from("ab1<>[]()*-. \t;\x0b\x85\u2028\xa0\ufeff\0"), max_size=12) | st.sampled_from(
    [";; (ab)", "a <b> (b1)", "[uh] c (1 d) (b2)", "a) (b3)"]
)


@given(st.lists(LINE, min_size=1, max_size=4).map("\n".join).map(str.encode) | st.binary(max_size=40))
def test_scored_text_equals_converted_text(content: bytes) -> None:
    text_by_line, wrong = converted(content)
    with tempfile.TemporaryDirectory() as folder:
        read = read_or_refused(read_sro, written(Path(folder), "a.sro", content))
    if read is None:
        return
    for text, id_, line in zip(read.texts, read.ids, read.lines, strict=True):
        try:
            scored = " ".join((*words(text, place=Place("x", line), with_id=False), f"({id_.upper()})"))
        except InputError:
            assert line in wrong
        else:
            assert text_by_line[line] == scored
    others = (text for number, text in text_by_line.items() if number not in read.lines)
    assert all(not text or text.lstrip().startswith(";;") for text in others)


LONGEST = 9000


def test_a_repeated_id_is_reported_with_its_first_place() -> None:
    ids = SeenIds()
    assert ids.repeated(["A", "B"], "a.sro", [1, 4]) == {}
    assert ids.repeated(["C", "B", "C"], "b.sro", [1, 2, 3]) == {1: "a.sro:4", 2: "b.sro:1"}
    assert ids.repeated([], "b.sro", []) == {}
    assert ids.repeated(["A"], "a.sro", [1]) == {0: "a.sro:1"}


def test_repeated_ids_are_found_exactly_among_many() -> None:
    rng = random.Random(3)
    total = 3 * seen_ids.MAX_PLACES_KEPT
    ids = [f"U{number}" for number in range(total)]
    numbers = sorted(rng.sample(range(total), 500))
    stream = ids + [ids[number] for number in numbers] + ["NEW", "NEW"]
    place_by_position: dict[int, str] = {}
    ids_seen = SeenIds()
    start = 0
    while start < len(stream):
        end = start + rng.randint(1, LONGEST)
        repeats = ids_seen.repeated(stream[start:end], "a", range(start + 1, end + 1))
        place_by_position.update({start + index: place for index, place in repeats.items()})
        start = end
    assert sorted(place_by_position) == [*range(total, total + 500), len(stream) - 1]
    for position, number in enumerate(numbers, total):
        remembered = number < seen_ids.MAX_PLACES_KEPT - LONGEST
        assert (
            place_by_position[position] == f"a:{number + 1}"
            if remembered
            else place_by_position[position] in ("", f"a:{number + 1}")
        )
