"""What a command imports before it works (benchmarks/bench_startup.py has the seconds); `harness` alone."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import ENTRIES, group

HEAVY = (
    "amqtt", "av", "dask", "faster_whisper", "matplotlib", "numpy", "onnxruntime", "paho", "pyarrow", "pydantic",
    "pymicro_wakeword", "rapidfuzz", "regex", "requests", "rich", "scipy", "serial", "sklearn", "soundfile", "soxr",
    "sqlite3", "starlette", "textual", "torch", "transformers", "uvicorn", "webrtcvad", "yaml",
)  # fmt: skip

ALL_HELP = """
import sys
import click
from harness.cli import group
from tests.unit.cli.walking import commands

told = [command.get_help(click.Context(command, info_name=name)) for name, command in commands(group)]
assert len(told) > 40, len(told)
"""

ONE_LINE = """
import sys
from harness.cli import main

sys.argv = ["harness", "score", "-r", "r.trn", "-h", "h.trn"]
main()
"""


def imported(program: str, folder: Path) -> set[str]:
    """Which of the heavy packages a program has imported at its end."""
    root = Path(__file__).parents[3]
    last = f"\nprint('@', *(one for one in {HEAVY!r} if one in sys.modules))"
    body = f"import sys\nsys.path.insert(0, {str(root)!r})\ntry:\n" + "\n".join(
        f"    {line}" for line in program.strip().split("\n")
    )
    done = subprocess.run(
        [sys.executable, "-c", body + "\nexcept SystemExit:\n    pass" + last],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("@")[2].split())


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    assert imported(ALL_HELP, tmp_path) == set()


@pytest.mark.transformer
def test_help_imports_nothing_heavy_where_torch_is_installed(tmp_path: Path) -> None:
    assert find_spec("torch")
    assert imported(ALL_HELP, tmp_path) == set()


def test_a_score_of_one_line_imports_arrays_alone(tmp_path: Path) -> None:
    (tmp_path / "r.trn").write_text("the cat sat (a_1)\n")
    (tmp_path / "h.trn").write_text("the cat sit (a_1)\n")
    assert imported(ONE_LINE, tmp_path) == {"numpy"}


def test_the_help_lists_nine_entries_in_24_lines() -> None:
    result = CliRunner().invoke(group, [])
    assert result.exit_code == 2
    assert len(result.output.splitlines()) <= 24
    listed = result.output.partition("\nCommands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == list(ENTRIES)
    assert len(ENTRIES) == 9


def test_a_terminal_is_offered_what_to_do_first() -> None:
    ours, theirs = pty.openpty()
    program = [sys.executable, "-c", "from harness.cli import main; main()"]
    with subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        os.write(ours, b"help\n")
        assert running.wait(60) == 0
    said = os.read(ours, 65536).decode()
    os.close(ours)
    assert "three-minute tour" in said
    assert "harness admin devices" in said
