"""Standard output that is closed, has no buffer, or knows ASCII alone; errors on a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from harness.cli import main; main()"]
TRN = "one → two (s_1)\n"


def run(*arguments: str, shell: str = '"$@"', **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = ["sh", "-c", f"exec {shell}", "sh", *COMMAND, *arguments]
    return subprocess.run(command, capture_output=True, check=False, env=os.environ | environment)


@pytest.fixture
def scored(tmp_path: Path) -> list[str]:
    path = tmp_path / "a.trn"
    path.write_text(TRN, encoding="utf-8")
    return ["score", "-r", str(path), "-h", str(path), "--alignments", "all"]


def test_closed_streams_are_told(scored: list[str]) -> None:
    closed = run(*scored, shell='"$@" >&-')
    assert closed.returncode == 3
    assert closed.stderr.startswith(b"harness: standard output is closed")
    assert run(*scored[:3], "-h", "none.trn", shell='"$@" 2>&-').returncode == 2
    no_input = run("score", "-r", "-", "--reference-format", "trn", "-h", scored[2], shell='"$@" <&-')
    assert no_input.returncode == 2
    assert no_input.stderr.startswith(b"harness: standard input is closed")


def test_signs_of_ours_are_drawn_in_ascii_and_others_escaped(scored: list[str]) -> None:
    printed = run(*scored, PYTHONIOENCODING="ascii").stdout.decode("ascii")
    assert "HYP:  one > two" in printed
    assert "\n-----" in printed
    assert "\\u" not in printed


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="no limit of file sizes here")
def test_without_a_buffer_no_part_is_lost_in_silence(tmp_path: Path) -> None:
    big = tmp_path / "big.sro"
    big.write_text("".join(f"word word (a{number})\n" for number in range(10_000)), encoding="utf-8")
    limited = f'sh -c \'trap "" XFSZ; ulimit -f 64; exec "$@" > {tmp_path}/out\' sh "$@"'
    for verb in (["snor", "--to", "lsn", str(big)], ["score", "-r", str(big), "-h", str(big), "--json", "-"]):
        done = run(*verb, shell=limited, PYTHONUNBUFFERED="1")
        assert done.returncode == 3
        assert done.stderr.startswith(b"harness: standard output cannot be written: File too large")


def test_names_of_files_cannot_steer_a_terminal(scored: list[str]) -> None:
    done = run(*scored[:3], "-h", "a\x1b[31m.trn")
    assert done.returncode == 2
    assert b"a\\e[31m.trn: there is no such file" in done.stderr
