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
from harness.offline.gathered import demand_columns, gather
from harness.offline.lists import read_lists


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
    found = gather("yes")
    assert found.names == FOUND
    assert found.columns == {"folder": ("", "ann", "ann", "bob", "bob")}
    assert gather("yes/").names == FOUND
    assert gather("yes/ann/1.wav").names == ("yes/ann/1.wav",)


def test_a_pattern_and_a_list_on_standard_input_name_files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gather("yes/*/1.*").names == ("yes/ann/1.wav", "yes/bob/1.flac")
    assert set(gather("yes/**/*").names) == set(FOUND)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"yes/top.wav\r\n\nyes/ann/1.wav\n")))
    assert gather("-").names == ("yes/top.wav", "yes/ann/1.wav")


def test_the_sound_of_a_zip_is_read_in_place(here: Path) -> None:
    sound = io.BytesIO()
    soundfile.write(sound, [0.0] * 160, 16000, format="WAV")
    with zipfile.ZipFile("y.zip", "w") as archive:
        for name in ("ann/1.wav", "readme.txt"):
            archive.writestr(name, sound.getvalue())
    found = gather("y.zip")
    assert (len(found.names), found.columns) == (1, {"folder": ("ann",)})
    (file,) = read_lists([], [], [], [found]).files
    assert file.path == f"zip://ann/1.wav::file://{here / 'y.zip'}"


ROWS = [{"audio": "1.wav", "talker": "ann", "age": 30}, {"audio": "2.WAV", "talker": "ann", "age": None}]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_columns_of_a_manifest_are_known_of_each_file(here: Path, suffix: str) -> None:
    path = here / "yes" / "ann" / f"m.{suffix}"
    if suffix == "csv":
        path.write_text("audio,talker,age\n1.wav, ann,30\n2.WAV,ann,\n", "utf-8")
    elif suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n\n" for row in ROWS), "utf-8")
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    manifest = gather(str(path))
    assert manifest.columns == {"folder": ("", ""), "talker": ("ann", "ann"), "age": ("30", "")}
    listing = read_lists([], [], [], [gather("yes/bob"), manifest], [gather("yes/top.wav")])
    assert [os.path.relpath(file.path) for file in listing.files][2:] == [
        "yes/ann/1.wav",
        "yes/ann/2.WAV",
        "yes/top.wav",
    ]
    assert listing.columns["talker"] == {ListKind.INV: ["", "", "ann", "ann"], ListKind.OOV: [""]}
    demand_columns(tuple(listing.columns), ["age"])
    with pytest.raises(InputError, match=r"no recording has the column 'talkr'.*Did you mean 'talker'"):
        demand_columns(tuple(listing.columns), ["talkr"])


@pytest.mark.parametrize(
    ("place", "content", "said"),
    [
        ("nowhere", None, "no such file or folder"),
        ("no/*.wav", None, "no sound file matches"),
        ("empty/", None, "there are no sound files here"),
        ("a.tar.gz", b"x", "Unpack it, and name the folder: tar xf a.tar.gz"),
        ("list.txt", b"a.wav\n", "Give a list with -i or -o"),
        ("a.zip", b"x", "this archive cannot be read"),
        ("m.csv", b"talker,age\nann,30\n", "no column names the sound files"),
        ("m.csv", b"audio,age\na.wav,30,x\n", "m.csv:2: more fields than the 2 of the header"),
        ("m.csv", b"audio,age\n,30\n", "m.csv:2: the row has no audio"),
        ("m.jsonl", b'{"audio": "a.wav"}\n[1]\n', "m.jsonl:2: the line is not an object"),
        ("m.jsonl", b"{", "this manifest cannot be read"),
        ("m.parquet", b"PAR", "this is not Parquet"),
    ],
)
def test_what_is_wrong_is_said(here: Path, place: str, content: bytes | None, said: str) -> None:
    (here / "empty").mkdir()
    if content is not None:
        Path(place).write_bytes(content)
    with pytest.raises(InputError) as refused:
        gather(place)
    assert said in str(refused.value)
