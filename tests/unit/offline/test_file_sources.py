"""Folders, patterns, archives and manifests as lists of recordings."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import soundfile

from harness.model.errors import InputError
from harness.model.offline import ListKind
from harness.offline.evaluation import listing_of, talkers_of
from harness.offline.file_sources import collect_files, demand_columns
from harness.offline.lists import read_lists
from harness.offline.one_file import read_reference
from harness.offline.request import EvaluationRequest


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("yes/ann/1.wav", "yes/ann/2.WAV", "yes/bob/1.flac", "yes/top.wav", "yes/notes.txt", "yes/bob/x.mp3"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    return tmp_path


FOUND = ("yes/top.wav", "yes/ann/1.wav", "yes/ann/2.WAV", "yes/bob/1.flac", "yes/bob/x.mp3")


def test_a_folder_is_every_sound_below_it_in_the_order_of_names(here: Path) -> None:
    (here / "yes" / "bob" / "again").symlink_to(here / "yes")  # a ring
    files = collect_files("yes")
    assert files.names == FOUND
    assert files.columns == {"folder": ("", "ann", "ann", "bob", "bob")}
    assert collect_files("yes/").names == FOUND
    assert collect_files("yes/ann/1.wav").names == ("yes/ann/1.wav",)


def test_a_pattern_and_a_list_on_standard_input_name_files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert collect_files("yes/*/1.*").names == ("yes/ann/1.wav", "yes/bob/1.flac")
    assert set(collect_files("yes/**/*").names) == set(FOUND)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"yes/top.wav\r\n\nyes/ann/1.wav\n")))
    assert collect_files("-").names == ("yes/top.wav", "yes/ann/1.wav")


def test_the_sound_of_a_zip_is_read_in_place(here: Path) -> None:
    sound = io.BytesIO()
    soundfile.write(sound, [0.0] * 160, 16000, format="WAV")
    with zipfile.ZipFile("y.zip", "w") as archive:
        for name in ("ann/1.wav", "readme.txt"):
            archive.writestr(name, sound.getvalue())
    files = collect_files("y.zip")
    assert (len(files.names), files.columns) == (1, {"folder": ("ann",)})
    (file,) = read_lists([], [], [], [files]).files
    assert file.path == f"zip://ann/1.wav::file://{here / 'y.zip'}"


ROWS = [{"audio": "1.wav", "talker": "ann", "age": 30}, {"audio": "2.WAV", "talker": "ann", "age": None}]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_manifest_columns_are_kept_for_each_file(here: Path, suffix: str) -> None:
    path = here / "yes" / "ann" / f"m.{suffix}"
    if suffix == "csv":
        path.write_text("audio,talker,age\n1.wav, ann,30\n2.WAV,ann,\n", "utf-8")
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n\n" for row in ROWS), "utf-8")
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    manifest = collect_files(str(path))
    assert manifest.columns == {"folder": ("", ""), "talker": ("ann", "ann"), "age": ("30", "")}
    listing = read_lists([], [], [], [collect_files("yes/bob"), manifest], [collect_files("yes/top.wav")])
    assert [os.path.relpath(file.path) for file in listing.files][2:] == [
        "yes/ann/1.wav",
        "yes/ann/2.WAV",
        "yes/top.wav",
    ]
    assert listing.columns["talker"] == {ListKind.INV: ["", "", "ann", "ann"], ListKind.OOV: [""]}
    demand_columns(tuple(listing.columns), ["age"])
    with pytest.raises(InputError, match=r"no recording has the column 'talkr'.*Did you mean 'talker'"):
        demand_columns(tuple(listing.columns), ["talkr"])
    with pytest.raises(InputError, match=r"Columns: age, folder$"):
        demand_columns(("folder", "age", "folder"), ["x"])  # files and labels both have folders


@pytest.mark.parametrize(
    ("place", "content", "message"),
    [
        ("nowhere", None, "no such file or folder"),
        ("no/*.wav", None, "no sound file matches"),
        ("empty/", None, "no sound files were found"),
        ("a.tar.gz", b"x", "Unpack the archive with `tar xf a.tar.gz`, then use the folder"),
        ("list.txt", b"a.wav\n", "Use -i or --oov for a list of files"),
        ("a.zip", b"x", "this archive cannot be read"),
        ("m.csv", b"talker,age\nann,30\n", "no column lists the sound files"),
        ("m.csv", b"audio,age\na.wav,30,x\n", "m.csv:2: the row has 3 cells, but the header has 2"),
        ("m.csv", b"audio,age\n,30\n", "m.csv:2: the column audio is empty"),
        ("m.jsonl", b'{"audio": "a.wav"}\n[1]\n', "m.jsonl:2: the line is not a JSON object"),
        ("m.jsonl", b"{", "this manifest cannot be read"),
        ("m.parquet", b"PAR", "this is not Parquet"),
    ],
)
def test_invalid_file_lists_are_refused_with_the_reason(
    here: Path, place: str, content: bytes | None, message: str
) -> None:
    (here / "empty").mkdir()
    if content is not None:
        Path(place).write_bytes(content)
    with pytest.raises(InputError) as refused:
        collect_files(place)
    assert message in str(refused.value)


def test_tables_saved_by_spreadsheets_are_read(here: Path) -> None:
    path = here / "yes" / "ann" / "m.csv"
    path.write_bytes('sep=;\r\nFile;talker\r\n1.wav;"J\xf6rg\r\nM."\r\n'.encode("cp1252"))
    with pytest.raises(InputError, match=r"m.csv:3:9: byte 0xf6 is not UTF-8.*--encoding"):
        collect_files(str(path))
    assert collect_files(str(path), "cp1252").columns["talker"] == ("J\xf6rg\r\nM.",)
    path.write_text("sep=;\naudio;phrase_end_s;distance\n1.wav; 1,5 ;1,5\n", "utf-8")
    columns = collect_files(str(path)).columns
    assert (columns["phrase_end_s"], columns["distance"]) == (("1.5",), ("1,5",))
    path.write_text("audio;talker\n1.wav;ann\n", "utf-8")
    with pytest.raises(InputError, match=r"m.csv:1:1: the columns are separated by semicolons, not by commas"):
        collect_files(str(path))


@pytest.mark.parametrize("name", ["talker", "Talker", "SPEAKER"])
def test_the_column_of_talkers_may_be_in_upper_case(here: Path, name: str) -> None:
    (here / "m.csv").write_text(f"Audio,{name}\n1.wav,ann\n2.wav,bob\n", "utf-8")
    request = EvaluationRequest(inside=("m.csv",))
    talkers = talkers_of(request, listing_of(request, str))
    assert (talkers.column, talkers.labels()) == (name, {ListKind.INV: ["ann", "bob"]})


def common_voice(here: Path) -> str:
    for name in ("clips/cv_1.wav", "clips/cv_1.mp3", "clips/cv_2.mp3"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_bytes(b"")
    rows = [("c1", "cv_1.mp3", 'Say ""hi"" now.'), ("c2", "cv_2.mp3", "Stop, please."), ("c2", "cv_3.mp3", "Gone.")]
    table = "client_id\tpath\tsentence\n" + "".join("\t".join(row) + "\n" for row in rows)
    (here / "validated.tsv").write_text(table, "utf-8")
    return "validated.tsv"


def test_a_table_of_common_voice_finds_its_clips(here: Path) -> None:
    place = common_voice(here)
    files = collect_files(place)
    assert files.names == ("clips/cv_1.wav", "clips/cv_2.mp3", "cv_3.mp3")
    assert files.columns["client_id"] == ("c1", "c2", "c2")
    for listing in (read_lists([place], [], []), read_lists([], [], [], [files])):
        assert [file.path for file in listing.files][:2] == [
            str(here / "clips" / f"cv_{n}") for n in ("1.wav", "2.mp3")
        ]
    listing = read_lists([], [], [place])
    assert [file.kind for file in listing.files] == [ListKind.REFERENCED] * 3
    assert [read_reference(file.reference) for file in listing.files] == ['Say "hi" now.', "Stop, please.", "Gone."]
    assert listing.columns["client_id"] == {ListKind.REFERENCED: ["c1", "c2", "c2"]}


def kaldi(here: Path, **files: str) -> str:
    folder = here / "kaldi"
    folder.mkdir()
    for name, text in files.items():
        (folder / name.replace("wav", "wav.scp")).write_text(text, "utf-8")
    return "kaldi/wav.scp"


def test_a_list_of_kaldi_has_its_words_and_talkers_beside_it(here: Path) -> None:
    (here / "yes" / "a b.wav").write_bytes(b"")
    place = kaldi(here, wav="u1 yes/top.wav\nu2  yes/a b.wav \n", text="u2 turn it on\nu1 stop\n", utt2spk="u1 ann\n")
    files = collect_files(place)
    assert (files.names, files.columns["speaker"], files.columns["id"]) == (
        ("yes/top.wav", "yes/a b.wav"), ("ann", ""), ("u1", "u2"),
    )  # fmt: skip
    assert [read_reference(file.reference) for file in read_lists([], [], [place]).files] == ["stop", "turn it on"]
    assert [file.listed for file in read_lists([], [place], []).files] == ["yes/top.wav", "yes/a b.wav"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"wav": "u1 yes/top.wav\nu2 sph2pipe -f wav x.sph |\n"}, "wav.scp:2: the sound of 'u2' comes from a command"),
        ({"wav": "u1 data/raw.ark:15\n"}, "wav.scp:1: the sound of 'u1' is in a Kaldi archive"),
        ({"wav": "u1 a.wav\nu1 b.wav\n"}, "wav.scp:2: 'u1' is already on line 1"),
        ({"wav": "u1\n"}, "wav.scp:1: 'u1' has no file"),
        ({"wav": "u1 a.wav\n", "segments": "s1 u1 0 1\n"}, "segments: this file cuts the recordings in wav.scp"),
        ({"wav": "u1 a.wav\n"}, "wav.scp: the list has no transcripts of its recordings.*`text` next to it"),
        ({"wav": "u1 a.wav\nu2 b.wav\n", "text": "u1 hi\n"}, "wav.scp: the list has no transcript for b.wav"),
    ],
)
def test_unsupported_kaldi_entries_are_refused(here: Path, files: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_lists([], [], [kaldi(here, **files)])


def test_a_list_header_declares_that_the_list_has_texts(here: Path) -> None:
    (here / "c.csv").write_text('\ufeffsep=;\r\naudio;text\r\nyes/top.wav;"turn; off"\r\n', "utf-8")
    (file,) = read_lists([], [], ["c.csv"]).files
    assert (file.listed, file.line, read_reference(file.reference)) == ("yes/top.wav", 3, "turn; off")
    (here / "c.csv").write_text("audio,reference\nyes/top.wav,yes/notes.txt\n", "utf-8")
    (file,) = read_lists([], [], ["c.csv"]).files
    assert (file.listed, file.reference) == ("yes/top.wav", str(here / "yes/notes.txt"))
    (here / "c.csv").write_text("yes/top.wav;yes/notes.txt\n", "utf-8")
    with pytest.raises(InputError, match=r"c.csv:1:1: the columns are separated by semicolons"):
        read_lists([], [], ["c.csv"])
