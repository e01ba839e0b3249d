"""CSV lists."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.transcripts.files.lists import read_csv
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
