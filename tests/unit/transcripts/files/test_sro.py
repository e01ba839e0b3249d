""".sro files, which the conversions and the scoring read alike."""

from __future__ import annotations

import io
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import InputError, Place
from harness.model.transcript import Transcripts
from harness.transcripts.files import sro as seen_ids
from harness.transcripts.files.sro import SeenIds, converted_blocks, read_sro
from harness.transcripts.snor import Form, words
from tests.unit.transcripts.files.told import Told, assert_told, read_or_refused, told, written


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
    ("what day\nx (a b)", [(1, 9, "no id"), (2, 3, "one token")]),
    ("a (ab)\nb (cd)\nc (AB)\n", [(3, 3, "'AB' is there already, in line 1")]),
    ("a\x0bb (ab)\nb\u2028c\n", [(1, 2, "U+000B"), (2, 2, "U+2028")]),
    (b"caf\xe9 (ab)\na\0 (cd)\n", [(1, 4, "byte 0xe9"), (2, 2, "NUL")]),
    (b"\xff\xfea\0\n\0", [(1, 1, "byte 0xff"), (2, 1, "NUL")]),
    (";; one\n\n", [(0, 0, "no transcripts")]),
    (" \n", [(0, 0, "empty")]),
]


@pytest.mark.parametrize(("content", "wanted"), WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, content: str | bytes, wanted: Told) -> None:
    assert_told(told(read_sro, written(tmp_path, "a.sro", content)), wanted)


def test_another_encoding_is_read_when_it_is_named(tmp_path: Path) -> None:
    read = read_sro(written(tmp_path, "a.sro", "café (x1)\n".encode("utf-16")), "utf-16")
    assert (read.texts, read.encoding) == (("café ",), "utf-16")
    assert_told(told(lambda path: read_sro(path, "rot13"), tmp_path / "a.sro"), [(0, 0, "no encoding")])


def converted(content: bytes) -> tuple[dict[int, str], set[int]]:
    """What `harness snor` makes of the lines, by number, and the numbers of those that it refuses."""
    blocks = list(converted_blocks(io.BytesIO(content).read, "x", Form.LEXICAL))
    lines = [line for block in blocks for line in block.lines]
    wrong = {problem.place.line for block in blocks for problem in block.problems if problem.place}
    numbers = (number for number in range(1, len(lines) + len(wrong) + 1) if number not in wrong)
    return dict(zip(numbers, lines, strict=True)), wrong


LINE = st.text(st.sampled_from("ab1<>[]()*-. \t;\x0b\x85\u2028\xa0\ufeff\0"), max_size=12) | st.sampled_from(
    [";; (ab)", "a <b> (b1)", "[uh] c (1 d) (b2)", "a) (b3)"]
)


@settings(deadline=None, max_examples=300)
@given(st.lists(LINE, min_size=1, max_size=4).map("\n".join).map(str.encode) | st.binary(max_size=40))
def test_what_is_scored_is_what_is_converted(content: bytes) -> None:
    said, wrong = converted(content)
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
            assert said[line] == scored
    others = (text for number, text in said.items() if number not in read.lines)
    assert all(not text or text.lstrip().startswith(";;") for text in others)


LONGEST = 9000


def test_an_id_that_comes_again_is_told_with_its_first_place() -> None:
    seen = SeenIds()
    assert seen.repeated(["A", "B"], "a.sro", [1, 4]) == {}
    assert seen.repeated(["C", "B", "C"], "b.sro", [1, 2, 3]) == {1: "a.sro:4", 2: "b.sro:1"}
    assert seen.repeated([], "b.sro", []) == {}
    assert seen.repeated(["A"], "a.sro", [1]) == {0: "a.sro:1"}


def test_of_many_ids_none_is_missed_and_none_is_made_up() -> None:
    rng = random.Random(3)
    total = 3 * seen_ids.REMEMBERED
    ids = [f"U{number}" for number in range(total)]
    again = sorted(rng.sample(range(total), 500))
    stream = ids + [ids[number] for number in again] + ["NEW", "NEW"]
    told: dict[int, str] = {}
    seen = SeenIds()
    start = 0
    while start < len(stream):
        end = start + rng.randint(1, LONGEST)
        found = seen.repeated(stream[start:end], "a", range(start + 1, end + 1))
        told.update({start + index: where for index, where in found.items()})
        start = end
    assert sorted(told) == [*range(total, total + 500), len(stream) - 1]
    for position, number in enumerate(again, total):
        remembered = number < seen_ids.REMEMBERED - LONGEST
        assert told[position] == f"a:{number + 1}" if remembered else told[position] in ("", f"a:{number + 1}")
