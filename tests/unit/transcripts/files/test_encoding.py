"""Bytes to text."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.transcripts.files.encoding import read_text
from harness.transcripts.files.transcripts import read_trn
from tests.unit.transcripts.files.told import Told, assert_told, problems_of, told, written


def test_bytes_that_are_not_utf_8_are_told_line_by_line_with_the_remedy(tmp_path: Path) -> None:
    path = written(tmp_path, "a.trn", b"\xef\xbb\xbfa (x_1)\r\ncaf\xe9 (x_2)\r\n\xc3\xa9t\xe9 (x_3)\n")
    problems = problems_of(read_text, path)
    assert_told(told(read_text, path), [(2, 4, "byte 0xe9 is not UTF-8"), (3, 3, "byte 0xe9 is not UTF-8")])
    assert all("--encoding latin-1" in one.remedy for one in problems)


def test_another_encoding_is_read_when_it_is_named(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, "a.trn", b"caf\xe9 (x)"), "latin-1") == "café (x)\n"
    assert read_text(written(tmp_path, "b.trn", "café (x)\r\n".encode("utf-16")), "UTF-16") == "café (x)\n"
    assert read_trn(tmp_path / "a.trn", "latin-1").encoding == "latin-1"


@pytest.mark.parametrize("encoding", ["latin-9000", "rot13", "base64", "undefined", "", "a\0b"])
def test_an_encoding_that_is_none_is_told(tmp_path: Path, encoding: str) -> None:
    path = written(tmp_path, "a.trn", "é (x)")
    if encoding:
        assert_told(told(lambda one: read_text(one, encoding), path), [(0, 0, "no encoding is called")])
    else:
        assert read_text(path, encoding) == "é (x)\n"


CONTROL: list[tuple[bytes, Told]] = [
    (b"a\0b (x)\n", [(1, 2, "a NUL character")]),
    (b"a (x)\nb \x1b[2J (y)\r\n\x07 (z)\n", [(2, 3, "U+001B"), (3, 1, "U+0007")]),
    (b"a\x0cb (x)\n", [(1, 2, "U+000C")]),
    ("a\x85b (x)\n".encode(), [(1, 2, "U+0085")]),
    ("é\u2028b (x)\n".encode(), [(1, 2, "U+2028")]),
    ("a (x)\n\ufeffb (y)\n".encode(), [(2, 1, "U+FEFF")]),
    ("é (x)\nb\x7f (y)\n".encode(), [(2, 2, "U+007F")]),
    (b"a\x0b\xe9 (x)\nb\xff (y)\n", [(1, 2, "U+000B"), (2, 2, "byte 0xff is not UTF-8")]),
]


@pytest.mark.parametrize(("content", "wanted"), CONTROL)
def test_control_characters_are_refused(tmp_path: Path, content: bytes, wanted: Told) -> None:
    assert_told(told(read_text, written(tmp_path, "a.trn", content)), wanted)


def test_half_of_a_pair_is_no_text(tmp_path: Path) -> None:
    path = written(tmp_path, "a.trn", b"a (x)\n\\ud800 (y)\n")
    assert_told(told(lambda one: read_text(one, "unicode_escape"), path), [(2, 1, "U+D800")])


def test_a_file_of_windows_that_is_read_as_latin_1_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, "a.trn", b"it\x92s (x)\n")
    (problem,) = problems_of(lambda one: read_text(one, "latin-1"), path)
    assert "--encoding cp1252" in problem.remedy
    assert read_text(path, "cp1252") == "it’s (x)\n"


@pytest.mark.parametrize("content", ["a (x)\n".encode("utf-16"), "é".encode("utf-16-be")])
def test_a_file_in_utf_16_is_recognised_or_told(tmp_path: Path, content: bytes) -> None:
    (problem,) = problems_of(read_text, written(tmp_path, "a.trn", content))
    assert "encoding" in problem.remedy or "NUL" in problem.what or "utf-16" in problem.remedy


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    assert_told(told(read_text, tmp_path), [(0, 0, "a folder")])
    assert_told(told(read_text, tmp_path / "none.trn"), [(0, 0, "no such file")])
    with pytest.raises(InputError, match="cannot be read"):
        read_text(Path("a\0b.trn"))
    locked = written(tmp_path, "locked.trn", "a (x)\n")
    locked.chmod(0)
    if not os.access(locked, os.R_OK):
        assert_told(told(read_text, locked), [(0, 0, "cannot be read: Permission denied")])
