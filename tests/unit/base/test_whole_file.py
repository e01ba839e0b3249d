"""Files that are written whole, and what is no file."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from harness.base.whole_file import WholeFile, whole_folder, write_whole
from harness.model.errors import LogError


def test_a_file_is_there_whole_or_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    write_whole(target, b"one")
    write_whole(target, b"two")
    assert target.read_bytes() == b"two"
    for wrong in (tmp_path, tmp_path / "none" / "page.html"):
        with pytest.raises(LogError):
            write_whole(wrong, b"three")
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_stays_and_what_it_means_is_written(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    link = tmp_path / "latest.html"
    link.symlink_to(Path("pages", "one.html"))
    for content in (b"one", b"two"):
        write_whole(link, content)
        assert (link.is_symlink(), (tmp_path / "pages" / "one.html").read_bytes()) == (True, content)


def test_a_named_pipe_takes_it_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_whole(pipe, b"one")
    reader.join(30)
    assert read == [b"one"]
    assert pipe.is_fifo()


def test_a_folder_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), whole_folder(tmp_path / "made") as part:
        (part / "none" / "one").write_text("1")
    assert list(tmp_path.iterdir()) == []
    with whole_folder(tmp_path / "made") as part:
        (part / "one").write_text("1")
    assert [path.name for path in tmp_path.rglob("*")] == ["made", "one"]


def test_a_stream_that_is_not_kept_leaves_what_was_there(tmp_path: Path) -> None:
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
