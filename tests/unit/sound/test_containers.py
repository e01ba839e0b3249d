"""What a file is by its first bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import soundfile

from harness.model.offline import RejectReason
from harness.sound.sound_files import UnusableSound
from harness.sound.wave_file import is_wave_file
from tests.unit.sound.wave_heads import tone

ENCODING, UNREADABLE = RejectReason.ENCODING, RejectReason.UNREADABLE


@pytest.mark.parametrize(
    ("start", "reason", "words"),
    [
        (b"OggS\0\2", ENCODING, "Ogg"),
        (b"\xff\xfb\x90\x64", ENCODING, "MP3"),
        (b"\xff\xf3\x14\xc4", ENCODING, "MP3"),
        (b"\0\0\0\x20ftypM4A ", ENCODING, "MPEG-4"),
        (b"\x1a\x45\xdf\xa3\x9f\x42", ENCODING, "WebM"),
        (b"#!AMR-WB\n", ENCODING, "AMR"),
        ("a.wav\n".encode("utf-16-le"), UNREADABLE, "known"),
        (b"\xff\xfea\0.\0", UNREADABLE, "known"),
        (b"\xff\xff\xff\xff", UNREADABLE, "known"),
        (b"\xff", UNREADABLE, "known"),
        (b"RIFF\0\0\0\0AVI LIST", UNREADABLE, "known"),
        (b"version https://git-lfs.github.com/spec/v1", UNREADABLE, "known"),
        (b"<!DOCTYPE html>", UNREADABLE, "known"),
    ],
)
def test_what_is_not_read(start: bytes, reason: RejectReason, words: str) -> None:
    with pytest.raises(UnusableSound, match=words) as refused:
        is_wave_file(start)
    assert refused.value.reason is reason


READS = """
import sys, soundfile
from harness.sound.sound_files import UnusableSound, open_sound
try:
    soundfile.read(sys.argv[2]) if sys.argv[1] == "plainly" else open_sound(sys.argv[2], 16000, resample=False)
except UnusableSound:
    pass
"""


def test_forms_whose_readers_print_are_not_tried(tmp_path: Path) -> None:
    path = tmp_path / "a.sds"
    soundfile.write(path, tone(3000), 16000, "PCM_16")
    content = bytearray(path.read_bytes())
    content[21] = 0  # the first block's mark
    path.write_bytes(content)
    printed = {
        way: subprocess.run([sys.executable, "-c", READS, way, str(path)], capture_output=True, check=True)
        for way in ("plainly", "ours")
    }
    assert b"Error" in printed["plainly"].stdout
    assert (printed["ours"].stdout, printed["ours"].stderr) == (b"", b"")
