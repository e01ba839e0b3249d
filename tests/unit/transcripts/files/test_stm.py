"""stm files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.transcript import Segment
from harness.transcripts.files.timed import Label, Segments, read_stm
from tests.unit.transcripts.files.told import Told, assert_told, read_or_refused, told, written

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
        (Label("o", "Overall", "All of it"), Label("f", "Women", "")),
    )


WRONG: list[tuple[str, Told]] = [
    ("f A s 1\n", [(1, 8, "4 fields")]),
    ("f\n", [(1, 2, "1 field,")]),
    ("f A s one 2 a\n", [(1, 7, "the begin 'one'")]),
    ("f A s nan inf a\n", [(1, 7, "the begin 'nan'"), (1, 11, "the end 'inf'")]),
    ("f A s 2 1.5 a\n", [(1, 9, "ends (1.5) before it begins (2)")]),
    ("f A s 2 3 <o, f> a\n", [(1, 11, "the labels '<o,' are not closed")]),
    ("f A s 2 3 a\nf B s 1 2 a\nf A t 1 2 a\n", [(3, 7, "begins before the one in line 1")]),
    (";; nothing\n", [(0, 0, "no segments")]),
]


@pytest.mark.parametrize(("content", "wanted"), WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, content: str, wanted: Told) -> None:
    assert_told(told(read_stm, written(tmp_path, "a.stm", content)), wanted)


FIELD = st.sampled_from(["f", "A", "1", "0.5", "-1", "<o>", "<", ";;", "word", "\t", '"'])


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(FIELD, max_size=8).map(" ".join), max_size=6))
def test_any_lines_are_read_or_refused(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "a.stm", "\n".join(lines))
        read = read_or_refused(read_stm, path)
        assert read is None or (all(one.end_s >= one.start_s for one in read.segments))
