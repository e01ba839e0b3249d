"""Lines of streams, and files that are written whole."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.base.text_file import MAX_LINE_CHARS, checked_encoding, fault_in, line_blocks
from harness.base.whole_file import WholeFile, atomic_folder, temporary_path_for, temporary_paths_of, write_atomically
from harness.model.errors import InputError, LogError, Place
from tests.known import known


def in_pieces(content: bytes, size: int) -> Callable[[int], bytes]:
    source = io.BytesIO(content)
    return lambda _: source.read(size)


def lines_of(content: bytes, size: int = 1 << 16, encoding: str = "utf-8") -> list[str]:
    out: list[str] = []
    for block in line_blocks(in_pieces(content, size), "x", encoding):
        assert block.first == len(out) + 1
        out += block.lines
    return out


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_blocks_may_be_cut_anywhere(size: int) -> None:
    content = "\ufeffé a\r\n\r\nb\rc\n\nd\r".encode()
    assert lines_of(content, size) == ["é a", "", "b", "c", "", "d"]


@pytest.mark.parametrize(
    ("content", "lines"), [(b"", []), (b"\n", [""]), (b"a", ["a"]), (b"a\n", ["a"]), (b"\r\r\n", ["", ""])]
)
def test_the_last_line_is_read_with_or_without_a_line_end(content: bytes, lines: list[str]) -> None:
    assert lines_of(content) == lines


@given(st.text(st.sampled_from("ab\r\né\u2028\x85"), max_size=12), st.integers(1, 7))
def test_only_line_feeds_and_carriage_returns_end_lines(text: str, size: int) -> None:
    joined = text.replace("\r\n", "\n").replace("\r", "\n")
    assert lines_of(text.encode(), size) == joined.removesuffix("\n").split("\n") * bool(joined)


def test_lines_are_decoded_in_the_named_encoding() -> None:
    assert lines_of("café\n".encode("latin-1"), 1, "latin-1") == ["café"]
    assert lines_of("a ’b\nc".encode("utf-16"), 3, "utf-16") == ["a ’b", "c"]
    assert checked_encoding("latin1") == "iso8859-1"
    for wrong in ("foo", "rot13", "\0", "hex"):
        with pytest.raises(InputError):
            checked_encoding(wrong)


def test_decoded_lone_surrogate_is_a_fault() -> None:
    (block,) = line_blocks(in_pieces(b"a +2AA- b\n", 100), "x", "utf-7")
    fault = known(fault_in(block.lines[0], Place("x", 1), "utf-7"))
    assert fault.what == "this is the half character U+D800"


def test_undecodable_text_names_its_line() -> None:
    content = "a\nb\n".encode("utf-16") + b"\x00\xd8\n\0"
    with pytest.raises(InputError) as caught:
        list(line_blocks(in_pieces(content, 4), "x", "utf-16"))
    assert caught.value.place == Place("x", 3)


@pytest.mark.parametrize(
    ("content", "column", "message"),
    [
        (b"caf\xe9 x", 4, "byte 0xe9 is not UTF-8"),
        ("é é ".encode() + b"\xff", 5, "byte 0xff is not UTF-8"),
        (b"\xed\xa0\x80", 1, "byte 0xed is not UTF-8"),
        (b"ab\0", 3, "this is a NUL character"),
        (b"\x1b[31m", 1, "this is the control character U+001B"),
        ("a\x92s".encode(), 2, "this is the control character U+0092"),
    ],
)
def test_invalid_text_is_reported_with_its_column(content: bytes, column: int, message: str) -> None:
    (block,) = line_blocks(in_pieces(b"fine\n" + content + b"\n", 100), "x")
    assert block.faulty
    assert fault_in(block.lines[0], Place("x", 1), "utf-8") is None
    fault = known(fault_in(block.lines[1], Place("x", 2), "utf-8"))
    assert (fault.what, fault.place) == (message, Place("x", 2, column))
    assert fault.remedy


@given(st.binary(max_size=40), st.integers(1, 9))
def test_any_bytes_are_split_into_lines_and_faults(content: bytes, size: int) -> None:
    for block in line_blocks(in_pieces(content, size), "x"):
        faults = [fault_in(line, Place("x", 1), "utf-8") for line in block.lines]
        assert block.faulty == any(faults)
        fine = [line for line, fault in zip(block.lines, faults, strict=True) if fault is None]
        assert "\n".join(fine).encode().decode() == "\n".join(fine)


def test_an_endless_line_is_cut_and_reading_continues() -> None:
    long = b"a" * (MAX_LINE_CHARS + 3 * (1 << 18))
    blocks = list(line_blocks(io.BytesIO(b"one\n" + long + b"\nthree\n" + long).read, "x"))
    assert [(block.first, block.cut) for block in blocks] == [(1, False), (2, True), (3, False), (4, True)]
    assert [len(block.lines[0]) for block in blocks] == [3, MAX_LINE_CHARS, 5, MAX_LINE_CHARS]


def test_a_failed_atomic_write_leaves_the_file_unchanged(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    write_atomically(target, b"one")
    write_atomically(target, b"two")
    assert target.read_bytes() == b"two"
    for wrong in (tmp_path, tmp_path / "none" / "page.html"):
        with pytest.raises(LogError):
            write_atomically(wrong, b"three")
    assert list(tmp_path.iterdir()) == [target]


def test_a_name_of_nearly_255_bytes_is_written(tmp_path: Path) -> None:
    for letter in ("x", "é", "\U0001f642"):
        target = tmp_path / (letter * (255 // len(letter.encode())))
        write_atomically(target, b"whole")
        assert target.read_bytes() == b"whole"
        part = temporary_path_for(target)
        part.touch()
        assert temporary_paths_of(target) == [part]


def test_writing_to_a_link_replaces_its_target_and_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    link = tmp_path / "latest.html"
    link.symlink_to(Path("pages", "one.html"))
    for content in (b"one", b"two"):
        write_atomically(link, content)
        assert (link.is_symlink(), (tmp_path / "pages" / "one.html").read_bytes()) == (True, content)


def test_writing_to_a_named_pipe_keeps_the_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, b"one")
    reader.join(30)
    assert read == [b"one"]
    assert pipe.is_fifo()


def test_a_folder_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_folder(tmp_path / "made") as part:
        (part / "none" / "one").write_text("1")
    assert list(tmp_path.iterdir()) == []
    with atomic_folder(tmp_path / "made") as part:
        (part / "one").write_text("1")
    assert [path.name for path in tmp_path.rglob("*")] == ["made", "one"]


def test_a_folder_gets_its_name_when_all_below_it_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, fsync = [], os.fsync

    def recorded_fsync(descriptor: int) -> None:
        fsync(descriptor)
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    with atomic_folder(tmp_path / "made") as part:
        (part / "clips").mkdir()
        (part / "clips" / "one.wav").write_text("1")
    assert sorted(synced[1:-1]) == ["clips", "one.wav"]
    assert (synced[0].startswith(".made."), synced[-1]) == (True, tmp_path.name)


def test_rewritten_file_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "private.json"
    target.write_bytes(b"before")
    target.chmod(0o600)
    write_atomically(target, b"after")
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"after", 0o600)


def test_unsaved_write_leaves_the_existing_file(tmp_path: Path) -> None:
    target = tmp_path / "found.json"
    target.write_bytes(b"before")
    target.chmod(0o640)
    with WholeFile(str(target)) as file:
        file.write(b"after")
    assert (target.read_bytes(), list(tmp_path.iterdir())) == (b"before", [target])
    with WholeFile(str(target)) as file:
        file.write(b"after")
        file.keep()
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"after", 0o640)
    with (
        pytest.raises(LogError, match=r"none/found\.json cannot be written"),
        WholeFile(f"{tmp_path}/none/found.json") as file,
    ):
        file.keep()
