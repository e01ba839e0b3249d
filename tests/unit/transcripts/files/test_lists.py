"""CSV lists."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import InputError, InputProblems
from harness.model.transcript import ColumnGrouping, Groupings, Transcripts
from harness.transcripts.files.lists import read_csv, read_groups, read_labels, refuse_other_list
from harness.transcripts.files.transcripts import read_pair
from tests.known import known
from tests.unit.transcripts.files.told import Told, assert_told, read_or_refused, told, written


def test_a_row_is_an_audio_file_and_its_text(tmp_path: Path) -> None:
    text = '\ufeffaudio,reference\r\na/1.wav, turn  it on \r\n\r\n"b,2.wav","say ""hi"", you\r\ntwo"\r\nc.wav,\r\n'
    read = read_csv(written(tmp_path, "a.csv", text))
    assert read.ids == ("a/1.wav", "b,2.wav", "c.wav")
    assert read.texts == ("turn it on", 'say "hi", you two', "")
    assert read.lines == (2, 4, 6)


def test_a_first_row_that_is_no_header_is_a_row(tmp_path: Path) -> None:
    assert read_csv(written(tmp_path, "a.csv", "audio,hello\nfile,text me\n")).ids == ("audio", "file")
    assert read_csv(written(tmp_path, "b.csv", "a.wav,hello\naudio,reference\n")).ids == ("a.wav", "audio")


def test_a_text_may_stand_in_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "refs").mkdir()
    (tmp_path / "here").mkdir()
    written(tmp_path, "refs/1.TXT", "turn it\non\n")
    written(tmp_path, "refs/2.txt", "")
    written(tmp_path, "here/3.txt", b"caf\xe9")
    monkeypatch.chdir(tmp_path / "here")
    path = written(tmp_path, "a.csv", "a.wav,refs/1.TXT\nb.wav,refs/2.txt\nc.wav,3.txt\n")
    assert read_csv(path, "latin-1").texts == ("turn it on", "", "café")
    assert_told(told(read_csv, path), [(3, 1, "3.txt:1:4: byte 0xe9 is not UTF-8")])


def test_a_header_can_say_that_texts_are_files(tmp_path: Path) -> None:
    written(tmp_path, "1.lab", "turn it on")
    assert read_csv(written(tmp_path, "a.csv", "Audio,Reference file\na.wav,1.lab\n")).texts == ("turn it on",)


def test_a_header_can_say_that_texts_are_texts(tmp_path: Path) -> None:
    assert read_csv(written(tmp_path, "a.csv", "audio,heard\na.wav,open notes.txt\n")).texts == ("open notes.txt",)


def test_case_of_file_names_counts(tmp_path: Path) -> None:
    assert read_csv(written(tmp_path, "a.csv", "a.wav,x\nA.wav,y\n")).ids == ("a.wav", "A.wav")


WRONG: list[tuple[str, Told]] = [
    ("a.wav\n", [(1, 1, "1 field,")]),
    ("a.wav,turn it on, please\n", [(1, 1, "3 fields")]),
    ("a.wav,x\n\n,y\na.wav,z\n", [(3, 1, "names no audio file"), (4, 1, "there already, in line 1")]),
    ("a.wav,none.txt\n", [(1, 1, "there is no such file")]),
    (f"a.wav,{'open my list ' * 30}now.txt\n", [(1, 1, "File name too long")]),
    ("audio,reference_file\na.wav,\n", [(2, 1, "folder")]),
    ('a.wav,"turn\nit on\n', [(1, 1, "a quote is not closed")]),
    ('a.wav,"turn" it\nb.wav,x\nb.wav,"y"\n', [(1, 1, "not CSV"), (3, 1, "in line 2")]),
    ("audio,reference\n", [(0, 0, "no rows")]),
]


@pytest.mark.parametrize(("content", "wanted"), WRONG)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, content: str, wanted: Told) -> None:
    assert_told(told(read_csv, written(tmp_path, "a.csv", content)), wanted)


def test_a_field_of_more_than_a_megabyte(tmp_path: Path) -> None:
    read = read_csv(written(tmp_path, "a.csv", f'a.wav,"{"word " * 400_000}"\n'))
    assert len(read.texts[0].split()) == 400_000


@settings(deadline=None, max_examples=200)
@given(st.text(st.sampled_from('ab,"\n\r .'), max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "a.csv", text)
        read = read_or_refused(read_csv, path)
        assert read is None or (len(set(read.ids)) == len(read) > 0)


LIST = 'voice,id,level_dbfs,note\nann,a_1,-26,\n\n bob ,b_1, -38 ,"said  ""hm"",\nthen left"\n'


def read(folder: Path, text: str | bytes, *, case_counts: bool = False, encoding: str | None = None) -> Groupings:
    path = folder / "groups.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_groups(path, encoding, case_counts=case_counts)


@pytest.mark.parametrize("text", [LIST.encode(), b"\xef\xbb\xbf" + LIST.replace("\n", "\r\n").encode()])
def test_each_column_but_the_id_is_a_grouping(tmp_path: Path, text: bytes) -> None:
    found = read(tmp_path, text)
    assert found.ids == ("a_1", "b_1")
    assert found.groupings == (
        ColumnGrouping("voice", ("ann", "bob")),
        ColumnGrouping("level_dbfs", ("-26", "-38")),
        ColumnGrouping("note", ("", 'said "hm", then left')),
    )


def test_other_encodings_are_named(tmp_path: Path) -> None:
    text = "id,room\na_1,Küche\n".encode("latin-1")
    assert read(tmp_path, text, encoding="latin-1").groupings[0].labels == ("Küche",)
    with pytest.raises(InputProblems, match=r"groups\.csv:2:6: byte 0xfc is not UTF-8"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", ["the file is empty"]),
        ("id,voice\n", ["the list has no rows below its header"]),
        ("voice,level\nann,-26\n", [":1:1: the header has no column id"]),
        ("Id,level\na_1,-26\n", ["the header has no column id, but Id: case counts"]),
        ("id;voice\na_1;ann\n", ["the header has no column id", "columns are parted by commas"]),
        ("id\na_1\n", ["the header has the column id alone"]),
        ("id,voice,\na_1,ann,\n", ["column 3 has no name"]),
        ("id,voice,voice\na_1,ann,bob\n", ["two columns are called 'voice'"]),
        ("id,id\na_1,a_1\n", ["two columns are called 'id'"]),
        ("id,voice\na_1\nb_1,bob,x\n", [":2:1: 1 field, where the header has 2", ":3:1: 3 fields, where"]),
        ("id,voice\n ,ann\n", [":2:1: the row has no id"]),
        ("id,voice\na_1,ann\n\nA_1,ann\n", [":4:1: the id 'A_1' is there already, in line 2"]),
        ('id,voice\na_1,"ann\n', ["a quote is not closed"]),
        ("id,voice\na_1,a\0n\n", ["groups.csv:2:6: "]),
    ],
)
def test_what_is_wrong_is_told_at_once(tmp_path: Path, text: str, wrong: list[str]) -> None:
    with pytest.raises(InputError) as told:
        read(tmp_path, text)
    assert all(one in str(told.value) for one in wrong), str(told.value)


def test_names_of_audio_files_keep_their_case(tmp_path: Path) -> None:
    text = "id,voice\na.wav,ann\nA.wav,bob\n"
    assert read(tmp_path, text, case_counts=True).ids == ("a.wav", "A.wav")
    with pytest.raises(InputProblems):
        read(tmp_path, text)


def test_a_list_of_other_utterances_is_refused(tmp_path: Path) -> None:
    found = read(tmp_path, "id,voice\nann_1,ann\n")
    refuse_other_list(found, Transcripts("ref.trn", ("x_1", "ANN_1"), ("", ""), (1, 2), ("", "")))
    with pytest.raises(InputError, match="no id of this list is one of the references: its first is 'ann_1'"):
        refuse_other_list(found, Transcripts("ref.trn", ("ann-1",), ("",), (1,), ("",)))


SEGMENTS = """;; CATEGORY "0" "" ""
;; LABEL "O" "Overall" "Everything"
;; CATEGORY "1" "Focus" "Conditions"
;; LABEL "F1" "Spontaneous//speech" ""
;; LABEL "F0" "Read" ""
;; LABEL "F2" "Read" ""
f A ann 0 1 <O,F0,x> one
f A ann 1 2 <o,f1> IGNORE_TIME_SEGMENT_IN_SCORING
f A bob 2 3 <o,f1,X> two
f A bob 3 4 three
f A ann 4 5 <O,,y> four
f A cy 5 6 <O,F2> five
"""


def labels(folder: Path, segments: str, taken: tuple[str, ...] = ()) -> Groupings | None:
    stm = written(folder, "r.stm", segments)
    references, _ = read_pair(stm, written(folder, "h.ctm", "f A 0 1 one\n"))
    return read_labels(stm, references, taken=taken)


def test_each_place_of_the_labels_is_a_grouping(tmp_path: Path) -> None:
    found = known(labels(tmp_path, SEGMENTS))
    assert found.ids == ("ann-000", "bob-000", "bob-001", "ann-001", "cy-000")
    assert found.groupings == (
        ColumnGrouping("label 1", ("Overall", "Overall", "", "Overall", "Overall"), ("Overall",)),
        ColumnGrouping("Focus", ("Read", "Spontaneous speech", "", "", "Read (F2)"),
                 ("Spontaneous speech", "Read", "Read (F2)")),
        ColumnGrouping("label 3", ("x", "x", "", "y", "")),
    )  # fmt: skip


def test_labels_make_way_for_columns_of_a_list(tmp_path: Path) -> None:
    found = known(labels(tmp_path, SEGMENTS, taken=("Focus", "label 3")))
    assert [one.name for one in found.groupings] == ["label 1", "Focus (label 2)", "label 3 (label 3)"]


@pytest.mark.parametrize("text", ["f A ann 0 1 one\n", "f A ann 0 1 <> one <two>\n", "f A ann 0 1 <,,> one\n"])
def test_a_file_without_labels_has_no_groupings(tmp_path: Path, text: str) -> None:
    assert labels(tmp_path, text) is None
