"""Reference texts of a -c list."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.model.offline import RejectReason
from harness.offline.one_file import LONGEST_BYTES, read_reference
from harness.sound.wave_file import UnusableSound


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"turn on the light", "turn on the light"),
        (b"  turn on\r\nthe light\n\n", "turn on the light"),
        (b"\xef\xbb\xbfturn on", "turn on"),
        ("schalte das Licht ein – für Åsa".encode(), "schalte das Licht ein – für Åsa"),
    ],
)
def test_reads(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    assert read_reference(str(path)) == text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b" \n\t\n", "empty"),
        (b"caf\xe9", "not UTF-8 at byte 3"),
        ("text".encode("utf-16"), "not UTF-8"),
        (b"a\0b", "NUL"),
        (b"x" * (LONGEST_BYTES + 1), "longer than 1 MiB"),
    ],
)
def test_refuses(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(UnusableSound, match=words) as refused:
        read_reference(str(path))
    assert refused.value.reason is RejectReason.REFERENCE
    assert str(path) in refused.value.detail


def test_only_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in ((tmp_path / "pipe", "a pipe"), (Path("/dev/zero"), "a device"), (tmp_path / "no", "No such")):
        with pytest.raises(UnusableSound, match=words) as refused:
            read_reference(str(path))
        assert refused.value.reason is RejectReason.REFERENCE
