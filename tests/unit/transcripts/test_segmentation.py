"""Words cut by segments; tests/conformance/scoring/test_sclite_segments.py compares it with sclite."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.model.transcript import Segment, TimedWord
from harness.transcripts.files.timed import cut


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
