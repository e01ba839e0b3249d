"""What a command imports before it works; benchmarks/bench_startup.py prints the seconds that this takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_a_score_of_one_line_imports_arrays_alone(tmp_path: Path) -> None:
    (tmp_path / "r.trn").write_text("the cat sat (a_1)\n")
    (tmp_path / "h.trn").write_text("the cat sit (a_1)\n")
    assert imported(ONE_LINE, tmp_path) == {"numpy"}
