"""Lists of files of audio: names as people and programs write them, where they are found, what is listed twice."""

from __future__ import annotations

import gc
import hashlib
import os
import re
import threading
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.errors import InputError, InputProblems, Place
from harness.model.offline import ListKind, RejectReason
from harness.offline.journal_lines import ListFacts
from harness.offline.lists import Listing, read_lists
from tests.files import file_with

TWICE, BOTH = RejectReason.TWICE, RejectReason.BOTH


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with some files in it."""
    current = tmp_path / "here"
    current.mkdir()
    monkeypatch.chdir(current)
    for name in ("a.wav", "b.wav", "c.wav", "a.txt", "b.txt"):
        (current / name).write_bytes(b"")
    return current


def listed(content: bytes, name: str = "inv.txt") -> str:
    Path(name).write_bytes(content)
    return name


def inv(content: bytes) -> Listing:
    return read_lists([listed(content)], [], [])


def names(listing: Listing) -> list[str]:
    return [file.listed for file in listing.files]


def rejections(listing: Listing) -> list[RejectReason | None]:
    return [file.rejected for file in listing.files]


def refusal(inv: Sequence[str] = (), oov: Sequence[str] = (), referenced: Sequence[str] = ()) -> str:
    with pytest.raises(InputError) as refused:
        read_lists(inv, oov, referenced)
    assert refused.value.exit_code == 2
    return str(refused.value)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"a.wav\nb.wav\n", id="as-the-manual-has-it"),
        pytest.param(b"a.wav\nb.wav", id="no-end-of-the-last-line"),
        pytest.param(b"a.wav\r\nb.wav\r\n", id="windows"),
        pytest.param(b"\xef\xbb\xbfa.wav\nb.wav\n", id="byte-order-mark"),
        pytest.param(b"\n\na.wav\n\n  \t\nb.wav\n\n\n", id="blank-lines"),
    ],
)
def test_a_list_has_one_path_per_line(here: Path, content: bytes) -> None:
    listing = inv(content)
    assert names(listing) == ["a.wav", "b.wav"]
    assert [file.path for file in listing.files] == [str(here / "a.wav"), str(here / "b.wav")]
    assert [file.number for file in listing.files] == [0, 1]
    assert rejections(listing) == [None, None]
    assert listing.lists == (
        ListFacts("inv.txt", hashlib.sha256(content).hexdigest(), ListKind.INV, len(listing.files)),
    )


@pytest.mark.parametrize(
    "name", ["#1.wav", "-a.wav", "a b.wav", "a,b.wav", '"a".wav', "a\\b.wav", "ä ö.wav", "a\tb.wav", " a.wav", "a.wav "]
)
def test_file_names_are_taken_literally(here: Path, name: str) -> None:
    Path(name).write_bytes(b"")
    listing = inv(name.encode() + b"\n")
    assert names(listing) == [name]


def test_a_file_name_that_is_not_utf_8_survives(here: Path) -> None:
    raw = b"caf\xe9 \xff\xfe.wav"
    Path(os.fsdecode(raw)).write_bytes(b"")
    [file] = inv(raw + b"\n").files
    assert os.fsencode(file.path) == os.fsencode(here) + b"/" + raw
    assert file.listed.encode("utf-8", "surrogateescape") == raw
    assert Path(file.path).exists()


def test_blanks_around_a_name_that_is_there_without_them_are_refused(here: Path) -> None:
    listed(b"a.wav\nb.wav \n\tc.wav\n")
    with pytest.raises(InputProblems) as refused:
        read_lists(["inv.txt"], [], [])
    assert [str(problem.place) for problem in refused.value.problems] == ["inv.txt:2", "inv.txt:3"]
    assert "there are spaces around b.wav. Remove them" in str(refused.value)


def test_blanks_around_a_name_that_is_nowhere_stay_for_the_rejection_to_show(here: Path) -> None:
    assert names(inv(b"gone.wav \n")) == ["gone.wav "]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "this list contains no files", id="empty"),
        pytest.param(b"\n \r\n\t\n", "this list contains no files", id="blank"),
        pytest.param("a.wav\n".encode("utf-16"), "UTF-16", id="utf-16"),
        pytest.param(b"a.wav\n\0b.wav\n", "inv.txt:2: this is not text", id="nul"),
        pytest.param(b"RIFF\x24\x00\x00\x00WAVEfmt ", "a sound file", id="a-sound-file"),
        pytest.param(b"x" * 100_000, "inv.txt:1: a line has more than 64 KiB", id="one-long-line"),
        pytest.param(b"a.wav\n" + b"x" * 3_000_000 + b"\n", "inv.txt:2: a line has more", id="long-line-over-blocks"),
    ],
)
def test_invalid_list_is_refused(here: Path, content: bytes, words: str) -> None:
    assert words in refusal([listed(content)])


def test_a_list_that_cannot_be_read_is_refused(here: Path) -> None:
    assert "gone.txt: this list cannot be read: No such file" in refusal(["gone.txt"])
    assert "this is a folder" in refusal([str(here)])
    assert "a device" in refusal(["/dev/zero"])
    Path("loop").symlink_to("loop")
    assert "symbolic links" in refusal(["loop"])
    assert "not a file name" in refusal(["a\0b"])


def test_a_pipe_is_read_as_a_list(here: Path) -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(b"a.wav\nb.wav\n"))
    writer.start()
    listing = read_lists(["pipe"], [], [])
    writer.join()
    assert names(listing) == ["a.wav", "b.wav"]
    assert listing.bases == (str(here),)


def test_names_are_searched_in_the_current_folder_then_beside_the_list(here: Path) -> None:
    folder = here.parent / "corpus"
    (folder / "deep").mkdir(parents=True)
    for name in ("a.wav", "x.wav", "deep/y.wav"):
        (folder / name).write_bytes(b"")
    (folder / "inv.txt").write_bytes(b"a.wav\nx.wav\ndeep/y.wav\ngone.wav\n/abs/z.wav\n")
    listing = read_lists(["../corpus/inv.txt"], [], [])
    assert [file.path for file in listing.files] == [
        str(here / "a.wav"),
        str(folder / "x.wav"),
        str(folder / "deep/y.wav"),
        str(here / "gone.wav"),
        "/abs/z.wav",
    ]
    assert listing.bases == (str(here), str(folder))


def test_bases_are_those_of_all_lists_each_once(here: Path) -> None:
    folder = here.parent / "corpus"
    folder.mkdir()
    (folder / "x.wav").write_bytes(b"")
    (folder / "oov.txt").write_bytes(b"x.wav\n")
    listed(f"{here}/a.wav\n".encode(), "absolute.txt")
    listing = read_lists([listed(b"b.wav\n"), "absolute.txt"], [str(folder / "oov.txt")], [])
    assert listing.bases == (str(here), str(folder))


def test_a_folder_in_which_nothing_was_found_is_no_base(here: Path) -> None:
    listing = inv(b"gone.wav\n")
    assert listing.bases == ()
    assert listing.files[0].path == str(here / "gone.wav")


def test_the_same_file_is_known_by_any_of_its_names(here: Path) -> None:
    Path("link.wav").symlink_to("a.wav")
    Path("folder").symlink_to(".")
    Path("sub").mkdir()
    content = (
        f"a.wav\n./a.wav\nsub/../a.wav\n{here}/a.wav\nfile://{here}/a.wav\nlink.wav\nfolder/a.wav\n.//a.wav\nb.wav\n"
    )
    assert rejections(inv(content.encode())) == [None, *[TWICE] * 7, None]


def test_a_copy_and_a_hard_link_are_files_of_their_own(here: Path) -> None:
    os.link("a.wav", "hard.wav")
    assert rejections(inv(b"a.wav\nhard.wav\n")) == [None, None]


def test_files_listed_twice_are_refused_even_if_they_are_missing(here: Path) -> None:
    Path("loop.wav").symlink_to("loop.wav")
    assert rejections(inv(b"gone.wav\n./gone.wav\nno/gone.wav\nloop.wav\n./loop.wav\n")) == [
        None,
        TWICE,
        None,
        None,
        TWICE,
    ]


def test_duplicates_within_and_across_list_kinds_are_rejected(here: Path) -> None:
    first, second = listed(b"a.wav\nb.wav\na.wav\n", "1"), listed(b"b.wav\nc.wav\n", "2")
    listing = read_lists([first, second], [listed(b"./c.wav\nx.wav\nx.wav\n", "3")], [])
    assert rejections(listing) == [None, None, TWICE, TWICE, BOTH, BOTH, None, TWICE]
    inside = [(ListKind.INV, 0, "a.wav"), (ListKind.INV, 1, "b.wav"), (ListKind.INV, 2, "a.wav")]
    assert [(file.kind, file.number, file.listed) for file in listing.files[:3]] == inside
    assert [(file.kind, file.number) for file in listing.files[4:6]] == [(ListKind.INV, 4), (ListKind.OOV, 0)]


def test_a_csv_list_has_audio_and_reference_paths(here: Path) -> None:
    Path("a, b.wav").write_bytes(b"")
    Path('say "hey".txt').write_bytes(b"")
    content = b'a.wav,a.txt\r\n\n"a, b.wav","say ""hey"".txt"\nb.wav,/x/b.txt\n'
    listing = read_lists([], [listed(b"c.wav\n", "oov")], [listed(content, "c.csv")])
    assert [(file.kind, file.listed, file.reference, file.line) for file in listing.files] == [
        (ListKind.REFERENCED, "a.wav", str(here / "a.txt"), 1),
        (ListKind.REFERENCED, "a, b.wav", str(here / 'say "hey".txt'), 3),
        (ListKind.REFERENCED, "b.wav", "/x/b.txt", 4),
        (ListKind.OOV, "c.wav", "", 1),
    ]


def test_a_reference_is_found_beside_the_list(here: Path) -> None:
    folder = here.parent / "corpus"
    folder.mkdir()
    (folder / "say.txt").write_bytes(b"")
    (folder / "c.csv").write_bytes(b"a.wav,say.txt\n")
    listing = read_lists([], [], ["../corpus/c.csv"])
    assert (listing.files[0].path, listing.files[0].reference) == (str(here / "a.wav"), str(folder / "say.txt"))
    assert listing.bases == (str(here), str(folder))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param(b"a.wav", "expected two fields, `audio,reference`, but found 1", id="one"),
        pytest.param(b"a.wav,a.txt,x", "expected two fields, `audio,reference`, but found 3", id="three"),
        pytest.param(b"a.wav,", "a field is empty", id="no-reference"),
        pytest.param(b",a.txt", "a field is empty", id="no-audio"),
        pytest.param(b'"a.wav"x,a.txt', "not CSV:", id="text-behind-a-quote"),
        pytest.param(b"a.wav, a.txt", "there are spaces around a.txt", id="blank-behind-the-comma"),
    ],
)
def test_every_wrong_line_of_a_csv_list_is_reported(here: Path, line: bytes, words: str) -> None:
    listed(b"a.wav,a.txt\n" + line + b"\nb.wav,b.txt\n" + line + b"\n", "c.csv")
    message = refusal(referenced=["c.csv"])
    assert re.search(rf"c\.csv:2:(1:)? {words}", message)
    assert re.search(r"c\.csv:4:(1:)? ", message)


def test_a_list_of_only_wrong_lines_stops_early(here: Path) -> None:
    listed(b"a.wav\n" * 100_000, "c.csv")
    with pytest.raises(InputProblems) as refused:
        read_lists([], [], ["c.csv"])
    assert len(refused.value.problems) == 20


def test_many_lines_take_little_memory_a_file(here: Path) -> None:
    count = 40_000
    content = b"".join(b"corpus/speaker%05d/utterance%07d.wav\n" % (number // 500, number) for number in range(count))
    name = listed(content)
    del content
    gc.collect()
    tracemalloc.start()
    try:
        listing = read_lists([name], [], [])
        current, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(listing.files) == count
    assert listing.files[39_999].listed == "corpus/speaker00079/utterance0039999.wav"
    assert current / count < 150
    assert peak / count < 250


WORDS = st.text(st.characters(blacklist_characters="\n\r\0/", codec="utf-8"), min_size=1, max_size=20).filter(
    lambda name: name.strip(" \t\x0b\x0c") == name and not name.startswith("\ufeff")
)


@given(st.lists(WORDS, min_size=1, max_size=10), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_any_file_names_are_read_back_unchanged(
    tmp_path_factory: pytest.TempPathFactory, written: list[str], end: str, last_ends: bool
) -> None:
    path = file_with(
        tmp_path_factory.getbasetemp() / "names.txt", (end.join(written) + (end if last_ends else "")).encode()
    )
    listing = read_lists([str(path)], [], [])
    assert names(listing) == written
    earlier: set[str] = set()
    for file in listing.files:
        assert (file.rejected is TWICE) == (file.listed in earlier)
        earlier.add(file.listed)


FEW = st.lists(st.sampled_from(["a", "b", "./b", "c", "x/../c", "d"]), min_size=1, max_size=8)


@given(FEW, FEW, FEW)
def test_duplicate_detection_equals_pairwise_comparison(
    tmp_path_factory: pytest.TempPathFactory, first: list[str], second: list[str], out: list[str]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    paths = [folder / "one.txt", folder / "two.txt", folder / "out.txt"]
    for path, lines in zip(paths, (first, second, out), strict=True):
        path.write_text("\n".join(lines))
    inside, outside = [name[-1] for name in first + second], [name[-1] for name in out]
    expected = []
    for part in (inside, outside):
        for index, name in enumerate(part):
            repeated = TWICE if name in part[:index] else None
            expected.append(BOTH if name in inside and name in outside else repeated)
    assert rejections(read_lists([str(paths[0]), str(paths[1])], [str(paths[2])], [])) == expected


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_give_a_list_or_a_refusal_with_a_place(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, csv: bool
) -> None:
    path = file_with(tmp_path_factory.getbasetemp() / "any.txt", content)
    try:
        listing = read_lists([] if csv else [str(path)], [], [str(path)] if csv else [])
    except InputError as refused:
        place = refused.place
    else:
        place = Place(str(path))
        assert len(listing.files) > 0
        for file in listing.files:
            assert file.path
    assert place is not None
    assert place.file == str(path)
