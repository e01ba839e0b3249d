"""CSV lists, normalisation files, encodings, and the examples of docs/reference/transcript-formats.md."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from harness.base.text_file import read_text
from harness.cli.validate import command
from harness.model.errors import InputError, InputProblems
from harness.model.transcript import ColumnGrouping, Groupings, Normalisation, Rewriting, Transcripts
from harness.transcripts.files.lists import read_csv, read_groups, read_labels, refuse_other_list
from harness.transcripts.files.normalisation_file import NormalisationKeys, load_normalisation
from harness.transcripts.files.timed import read_ctm, read_stm
from harness.transcripts.files.transcripts import read_pair, read_transcripts, read_trn
from harness.transcripts.readings import rewrite
from harness.transcripts.words import normalise
from tests.files import file_with
from tests.known import known
from tests.unit.transcripts.files.told import Told, assert_told, problems_of, read_or_refused, told, written


def test_a_row_is_an_audio_file_and_its_text(tmp_path: Path) -> None:
    text = '\ufeffaudio,reference\r\na/1.wav, turn  it on \r\n\r\n"b,2.wav","say ""hi"", you\r\ntwo"\r\nc.wav,\r\n'
    read = read_csv(written(tmp_path, "a.csv", text))
    assert read.ids == ("a/1.wav", "b,2.wav", "c.wav")
    assert read.texts == ("turn it on", 'say "hi", you two', "")
    assert read.lines == (2, 4, 6)


def test_a_first_row_without_column_names_is_data(tmp_path: Path) -> None:
    assert read_csv(written(tmp_path, "a.csv", "audio,hello\nfile,text me\n")).ids == ("audio", "file")
    assert read_csv(written(tmp_path, "b.csv", "a.wav,hello\naudio,reference\n")).ids == ("a.wav", "audio")


def test_a_csv_row_may_name_a_text_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "refs").mkdir()
    (tmp_path / "here").mkdir()
    written(tmp_path, "refs/1.TXT", "turn it\non\n")
    written(tmp_path, "refs/2.txt", "")
    written(tmp_path, "here/3.txt", b"caf\xe9")
    monkeypatch.chdir(tmp_path / "here")
    path = written(tmp_path, "a.csv", "a.wav,refs/1.TXT\nb.wav,refs/2.txt\nc.wav,3.txt\n")
    assert read_csv(path, "latin-1").texts == ("turn it on", "", "café")
    assert_told(told(read_csv, path), [(3, 1, "3.txt:1:4: byte 0xe9 is not UTF-8")])


def test_a_header_can_say_whether_texts_are_files(tmp_path: Path) -> None:
    written(tmp_path, "1.lab", "turn it on")
    assert read_csv(written(tmp_path, "a.csv", "Audio,Reference file\na.wav,1.lab\n")).texts == ("turn it on",)
    assert read_csv(written(tmp_path, "a.csv", "audio,heard\na.wav,open notes.txt\n")).texts == ("open notes.txt",)
    assert read_csv(written(tmp_path, "a.csv", "path,sentence\na.wav,turn it on\n")).texts == ("turn it on",)


WRONG: list[tuple[str, Told]] = [
    ("a.wav\n", [(1, 1, "1 field,")]),
    ("a.wav,turn it on, please\n", [(1, 1, "3 fields")]),
    ("a.wav,x\n\n,y\na.wav,z\n", [(3, 1, "does not name an audio file"), (4, 1, "already on line 1")]),
    ("a.wav,none.txt\n", [(1, 1, "there is no such file")]),
    (f"a.wav,{'open my list ' * 30}now.txt\n", [(1, 1, "File name too long")]),
    ("audio,reference_file\na.wav,\n", [(2, 1, "folder")]),
    ('a.wav,"turn\nit on\n', [(1, 1, "a quote is not closed")]),
    ('a.wav,"turn" it\nb.wav,x\nb.wav,"y"\n', [(1, 1, "not CSV"), (3, 1, "on line 2")]),
    ("audio,reference\n", [(0, 0, "no rows")]),
    ("name,words\na.wav,x\nb.wav,y\n", [(1, 1, "'name' looks like a header")]),
]


@pytest.mark.parametrize(("content", "expected"), WRONG)
def test_csv_mistakes_are_reported_with_their_line(tmp_path: Path, content: str, expected: Told) -> None:
    assert_told(told(read_csv, written(tmp_path, "a.csv", content)), expected)


def test_a_field_of_more_than_a_megabyte_is_read(tmp_path: Path) -> None:
    read = read_csv(written(tmp_path, "a.csv", f'a.wav,"{"word " * 400_000}"\n'))
    assert len(read.texts[0].split()) == 400_000


@given(st.text(st.sampled_from('ab,"\n\r .'), max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), "a.csv", text)
        read = read_or_refused(read_csv, path)
        assert read is None or (len(set(read.ids)) == len(read) > 0)


LIST = 'voice,id,level_dbfs,note\nann,a_1,-26,\n\n bob ,b_1, -38 ,"said  ""hm"",\nthen left"\n'


def read(folder: Path, text: str | bytes, *, case_counts: bool = False, encoding: str | None = None) -> Groupings:
    path = file_with(folder / "groups.csv", text.encode() if isinstance(text, str) else text)
    return read_groups(path, encoding, case_counts=case_counts)


@pytest.mark.parametrize("text", [LIST.encode(), b"\xef\xbb\xbf" + LIST.replace("\n", "\r\n").encode()])
def test_each_column_except_the_id_is_a_grouping(tmp_path: Path, text: bytes) -> None:
    listing = read(tmp_path, text)
    assert listing.ids == ("a_1", "b_1")
    assert listing.groupings == (
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
        ("voice,level\nann,-26\n", [":1:1: the header has no column `id`"]),
        ("Id,level\na_1,-26\n", ["the header has no column `id`, only `Id`: case matters"]),
        ("id;voice\na_1;ann\n", ["the columns are separated by semicolons, not by commas", "sep=;"]),
        ("id\na_1\n", ["the header has only the column `id`"]),
        ("id,voice,\na_1,ann,\n", ["column 3 has no name"]),
        ("id,voice,voice\na_1,ann,bob\n", ["two columns are named 'voice'"]),
        ("id,id\na_1,a_1\n", ["two columns are named 'id'"]),
        ("id,voice\na_1\nb_1,bob,x\n", [":2:1: 1 field, but the header has 2", ":3:1: 3 fields, but"]),
        ("id,voice\n ,ann\n", [":2:1: the row has no id"]),
        ("id,voice\na_1,ann\n\nA_1,ann\n", [":4:1: the id 'A_1' is already on line 2"]),
        ('id,voice\na_1,"ann\n', ["a quote is not closed"]),
        ("id,voice\na_1,a\0n\n", ["groups.csv:2:6: "]),
    ],
)
def test_group_list_mistakes_are_reported_at_once(tmp_path: Path, text: str, wrong: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert all(part in str(caught.value) for part in wrong), str(caught.value)


def test_names_of_audio_files_keep_their_case(tmp_path: Path) -> None:
    text = "id,voice\na.wav,ann\nA.wav,bob\n"
    assert read(tmp_path, text, case_counts=True).ids == ("a.wav", "A.wav")
    with pytest.raises(InputProblems):
        read(tmp_path, text)


def test_a_list_of_other_utterances_is_refused(tmp_path: Path) -> None:
    listing = read(tmp_path, "id,voice\nann_1,ann\n")
    refuse_other_list(listing, Transcripts("ref.trn", ("x_1", "ANN_1"), ("", ""), (1, 2), ("", "")))
    with pytest.raises(InputError, match="no id in this list matches a reference: the first is 'ann_1'"):
        refuse_other_list(listing, Transcripts("ref.trn", ("ann-1",), ("",), (1,), ("",)))


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


def labels(folder: Path, segments: str, columns: tuple[str, ...] = ()) -> Groupings | None:
    stm = written(folder, "r.stm", segments)
    references, _ = read_pair(stm, written(folder, "h.ctm", "f A 0 1 one\n"))
    return read_labels(stm, references, taken=columns)


def test_each_label_position_is_a_grouping(tmp_path: Path) -> None:
    listing = known(labels(tmp_path, SEGMENTS))
    assert listing.ids == ("ann-000", "bob-000", "bob-001", "ann-001", "cy-000")
    assert listing.groupings == (
        ColumnGrouping("label 1", ("Overall", "Overall", "", "Overall", "Overall"), ("Overall",)),
        ColumnGrouping("Focus", ("Read", "Spontaneous speech", "", "", "Read (F2)"),
                 ("Spontaneous speech", "Read", "Read (F2)")),
        ColumnGrouping("label 3", ("x", "x", "", "y", "")),
    )  # fmt: skip


def test_label_names_avoid_list_columns(tmp_path: Path) -> None:
    listing = known(labels(tmp_path, SEGMENTS, columns=("Focus", "label 3")))
    assert [grouping.name for grouping in listing.groupings] == ["label 1", "Focus (label 2)", "label 3 (label 3)"]


@pytest.mark.parametrize("text", ["f A ann 0 1 one\n", "f A ann 0 1 <> one <two>\n", "f A ann 0 1 <,,> one\n"])
def test_a_file_without_labels_has_no_groupings(tmp_path: Path, text: str) -> None:
    assert labels(tmp_path, text) is None


LAMPS = """# What our lamps understand.
normalisation: lamps
base: plain
same:
  - [Light bulb, lightbulb]
  - ["OK, lamp!", okay lamp]
  - [uh, ""]
"""


def saved(folder: Path, text: str) -> Path:
    return file_with(folder / "lamps.yaml", text)


def test_both_sides_of_a_pair_are_normalised_by_the_base(tmp_path: Path) -> None:
    list_ = load_normalisation(saved(tmp_path, LAMPS))
    pairs = ((("light", "bulb"), ("lightbulb",)), (("ok", "lamp"), ("okay", "lamp")), (("uh",), ()))
    assert list_ == Rewriting("lamps", Normalisation.PLAIN, pairs)
    assert rewrite(normalise("OK lamp: uh, the light bulb.", list_.base), list_) == ("okay", "lamp", "the", "lightbulb")


def test_redundant_pair_is_dropped_without_an_error(tmp_path: Path) -> None:
    """Lists that were written before it did stay valid."""
    text = 'normalisation: x\nbase: spoken\nsame:\n - [uh, ""]\n - [colour, color]\n - [lamp, light]\n'
    list_ = load_normalisation(saved(tmp_path, text))
    assert list_.same == ((("lamp",), ("light",)),)


WRONG_LISTS = [
    ("same: [[a, b]]", 1, "the first key is 'same'", "normalisation"),
    ("kind: normalisation", 1, "the first key is 'kind'", "normalisation"),
    ("normalisation: Big Lamps\nbase: plain\nsame: [[a, b]]", 1, "is not a name", "lowercase letters"),
    ("normalisation: x\nsame: [[a, b]]", 1, "'base' is missing", "base"),
    ("normalisation: x\nbase: plain", 1, "'same' is missing", "same"),
    ("normalisation: x\nbase: plain\nsame: []", 3, "is empty", "at least one"),
    ("normalisation: x\nbase: expanded_snor\nsame: [[a, b]]", 2, "is not supported", "plain"),
    ("normalisation: x\nbase: plian\nsame: [[a, b]]", 2, "is not supported", "Did you mean 'plain'"),
    ("normalisation: x\nbase: plain\nsame: [[a, b, c]]", 3, "3 texts", "[light bulb, lightbulb]"),
    ("normalisation: x\nbase: plain\nsame:\n - [a, 1]", 4, "expected text", "quotes"),
    ("normalisation: x\nbase: plain\nsame:\n - [a, ]", 4, "1 texts", "[light bulb"),
    ("normalisation: x\nbase: plain\nsame: {a: b}", 3, "expected a list", "Use"),
    ("normalisation: x\nbase: plain\nsme: [[a, b]]\nsame: [[a, b]]", 3, "no key 'sme'", "same"),
    ("normalisation: x\nbase: plain\nsame:\n - [a b, c]\n - [A  b., d]", 5, "already on line 4", "Remove"),
    ("normalisation: x\nbase: plain\nsame:\n - ['!', c]", 4, "the base 'plain' leaves nothing of '!'", "keeps"),
    ("normalisation: x\nbase: plain\nsame:\n - [A, a]", 4, "are already the same", "Remove"),
    ("normalisation: x\nbase: snor\nsame:\n - [<a, b]", 4, "cannot be read as snor", ""),
    (f"normalisation: x\nbase: plain\nsame: [{', '.join(f'[a{n}, b]' for n in range(201))}]", 3, "too long", "200"),
]


@pytest.mark.parametrize(("text", "line", "message", "remedy"), WRONG_LISTS)
def test_normalisation_mistakes_are_reported_with_their_place(
    tmp_path: Path, text: str, line: int, message: str, remedy: str
) -> None:
    with pytest.raises(InputError) as raised:
        load_normalisation(saved(tmp_path, text))
    error = raised.value
    problem = error.problems[0] if isinstance(error, InputProblems) else error
    assert problem.place
    assert problem.place.line == line
    assert message in problem.what
    assert remedy in problem.remedy


def test_validate_recognises_normalisation_files(tmp_path: Path) -> None:
    ran = CliRunner().invoke(command, [str(saved(tmp_path, LAMPS))])
    assert (ran.exit_code, ran.stdout.partition(": ")[2]) == (0, "normalisation lamps: plain, then 3 pairs\n")
    assert CliRunner().invoke(command, [str(saved(tmp_path, "normalisation: x\n"))]).exit_code == 2


PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "transcript-formats.md").read_text(encoding="utf-8")


def example(folder: Path, format: str) -> Path:
    (text,) = re.findall(rf"```{format}\n(.*?)```", PAGE, re.DOTALL)
    return written(folder, f"example.{format}", text)


@pytest.mark.parametrize(
    ("format", "ids"),
    [
        ("trn", ("ann_001", "ann_002", "bob_001")),
        ("sro", ("bn0051sx", "bb00e1sx")),
        ("csv", ("kitchen/001.wav", "kitchen/002.wav")),
    ],
)
def test_transcript_examples_of_the_page_are_read(tmp_path: Path, format: str, ids: tuple[str, ...]) -> None:
    assert read_transcripts(example(tmp_path, format)).ids == ids


def test_ctm_and_stm_examples_of_the_page_are_read(tmp_path: Path) -> None:
    words, segments = example(tmp_path, "ctm"), example(tmp_path, "stm")
    assert [word.text for word in read_ctm(words)] == ["turn", "it", "{ on / up }"]
    assert [id_ for id_, _ in read_stm(segments).labels] == ["o"]
    references, hypotheses = read_pair(segments, words)
    assert references.ids == ("ann-000", "bob-000")
    assert hypotheses.texts == ("turn it { on / up }", "")


def test_the_normalisation_example_of_the_page_is_read(tmp_path: Path) -> None:
    assert len(load_normalisation(example(tmp_path, "yaml")).same) == 3
    assert all(f"`{key}`" in PAGE for key in NormalisationKeys.model_fields)


def test_invalid_utf_8_is_reported_line_by_line_with_a_remedy(tmp_path: Path) -> None:
    path = written(tmp_path, "a.trn", b"\xef\xbb\xbfa (x_1)\r\ncaf\xe9 (x_2)\r\n\xc3\xa9t\xe9 (x_3)\n")
    problems = problems_of(read_text, path)
    assert_told(told(read_text, path), [(2, 4, "byte 0xe9 is not UTF-8"), (3, 3, "byte 0xe9 is not UTF-8")])
    assert all("--encoding latin-1" in problem.remedy for problem in problems)


def test_another_encoding_is_read_when_it_is_named(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, "a.trn", b"caf\xe9 (x)"), "latin-1") == "café (x)\n"
    assert read_text(written(tmp_path, "b.trn", "café (x)\r\n".encode("utf-16")), "UTF-16") == "café (x)\n"
    assert read_trn(tmp_path / "a.trn", "latin-1").encoding == "latin-1"


@pytest.mark.parametrize("encoding", ["latin-9000", "rot13", "base64", "undefined", "", "a\0b"])
def test_an_unknown_encoding_is_refused(tmp_path: Path, encoding: str) -> None:
    path = written(tmp_path, "a.trn", "é (x)")
    if encoding:
        assert_told(told(lambda source: read_text(source, encoding), path), [(0, 0, "there is no encoding")])
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


@pytest.mark.parametrize(("content", "expected"), CONTROL)
def test_control_characters_are_refused(tmp_path: Path, content: bytes, expected: Told) -> None:
    assert_told(told(read_text, written(tmp_path, "a.trn", content)), expected)


def test_a_lone_surrogate_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a.trn", b"a (x)\n\\ud800 (y)\n")
    assert_told(told(lambda source: read_text(source, "unicode_escape"), path), [(2, 1, "U+D800")])
    windows = written(tmp_path, "b.trn", b"it\x92s (x)\n")
    assert "--encoding cp1252" in problems_of(lambda source: read_text(source, "latin-1"), windows)[0].remedy


@pytest.mark.parametrize("content", ["a (x)\n".encode("utf-16"), "é".encode("utf-16-be")])
def test_a_utf_16_file_is_recognised_or_refused(tmp_path: Path, content: bytes) -> None:
    (problem,) = problems_of(read_text, written(tmp_path, "a.trn", content))
    assert "encoding" in problem.remedy or "NUL" in problem.what or "utf-16" in problem.remedy


def test_missing_or_unreadable_file_is_reported(tmp_path: Path) -> None:
    assert_told(told(read_text, tmp_path), [(0, 0, "a folder")])
    assert_told(told(read_text, tmp_path / "none.trn"), [(0, 0, "no such file")])
    with pytest.raises(InputError, match="cannot be read"):
        read_text(Path("a\0b.trn"))
    locked = written(tmp_path, "locked.trn", "a (x)\n")
    locked.chmod(0)
    if not os.access(locked, os.R_OK):
        assert_told(told(read_text, locked), [(0, 0, "cannot be read: Permission denied")])
