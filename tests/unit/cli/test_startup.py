"""What a command imports before it works (benchmarks/bench_startup.py has the seconds); `harness` alone."""

from __future__ import annotations

import os
import pty
import random
import shutil
import subprocess
import sys
import wave
from collections.abc import Sequence
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

sys.argv = ["harness", "score", "-r", "r.trn", "-H", "h.trn"]
main()
"""


SHOW = """
import sys
from harness.cli import main

sys.argv = ["harness", "report", "show", "session"]
main()
"""

EVALUATE = """
import os
import sys
from harness.cli import main

sys.argv = ["harness", "evaluate", "-t", "microwakeword:okay_nabu", "--oov", "files.txt", "-l", "a.log"]
try:
    main()
finally:
    assert len(os.listdir("/proc/self/task")) == 1, "NumPy's library has started threads"
"""

LOAD = """
from harness.engines.offline_loading import load_engine, task_of

load_engine(task_of("microwakeword:okay_nabu"))
"""

ENGINES = """
import sys
from harness.engines.offline_loading import catalogue

assert len(list(catalogue())) > 5
"""

ROWS = ("harness.model.bench", "harness.model.record", "harness.model.feed")
"""Modules with many types, each of which takes a while to make."""
HTTP = ("http.client", "ssl", "urllib.request")
NEVER = {
    "harness.base.guard": (*HEAVY, *HTTP, *ROWS, "asyncio", "dataclasses", "email.message", "importlib.metadata"),
    "harness.sound.child": (*HEAVY, *HTTP, *ROWS, "asyncio", "email.message", "importlib.metadata", "statistics"),
    "harness.devices.mqtt.broker": ("importlib.metadata", "numpy", "paho", "pydantic", "yaml", *ROWS),
    "harness.lab.keeper": ("numpy", "paho", "scipy", "soundfile", *ROWS),
    "harness.lab.assistant.__main__": ("pyaudio", "scipy", "harness.model.feed", "harness.model.record"),
    "harness.sound.recogniser_process": ("pydantic", "scipy", "soundfile", "yaml", *ROWS),
    "harness.offline.worker": ("pydantic", "regex", "scipy", "soundfile", "yaml", *ROWS),
    "harness.offline.evaluation": ("pydantic", "regex", "rich", "scipy", "soxr", "yaml", *HTTP, *ROWS),
    "harness.session.engine.engine": (
        "asyncio", "paho", "regex", "rich", "scipy", "textual", "tomllib", "yaml", *HTTP, "harness.base.findings",
        "harness.scenario", "harness.session.bench_checks", "harness.sound.calibration",
        "harness.transcripts.spoken_text",
    ),
    "harness.session.summary": ("regex", "rich", "scipy", "soundfile", "soxr", "tomllib", "yaml", *HTTP),
}  # fmt: skip
"""Modules that start a process, or that a command begins with → what they must not import."""


def imported(program: str, folder: Path, watched: Sequence[str] = HEAVY) -> set[str]:
    """Which of the watched modules a program has imported at its end."""
    root = Path(__file__).parents[3]
    last = f"\nprint('@', *(one for one in {watched!r} if one in sys.modules))"
    body = f"import sys\nsys.path.insert(0, {str(root)!r})\ntry:\n" + "\n".join(
        f"    {line}" for line in program.strip().split("\n")
    )
    result = subprocess.run(
        [sys.executable, "-c", body + "\nexcept SystemExit:\n    pass" + last],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return set(result.stdout.rpartition("@")[2].split())


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    assert imported(ALL_HELP, tmp_path) == set()


@pytest.mark.transformer
def test_help_imports_nothing_heavy_where_torch_is_installed(tmp_path: Path) -> None:
    assert find_spec("torch")
    assert imported(ALL_HELP, tmp_path) == set()


def test_scoring_one_line_imports_numpy_only(tmp_path: Path) -> None:
    (tmp_path / "r.trn").write_text("the cat sat (a_1)\n")
    (tmp_path / "h.trn").write_text("the cat sit (a_1)\n")
    assert imported(ONE_LINE, tmp_path) == {"numpy"}


@pytest.mark.parametrize("module", NEVER)
def test_modules_do_not_import_rarely_needed_libraries(module: str, tmp_path: Path) -> None:
    assert imported(f"import {module}", tmp_path, NEVER[module]) == set()


def test_engines_are_listed_without_an_http_client(tmp_path: Path) -> None:
    """The package of Moonshine imports one, to download models."""
    assert imported(ENGINES, tmp_path, ("moonshine_voice", "requests", "urllib3")) == set()


def test_a_session_without_word_errors_is_shown_without_scipy(tmp_path: Path) -> None:
    """Its interval of a share and its delays: SciPy takes longer to import than such a session to show."""
    shutil.copytree(Path(__file__).parents[2] / "data" / "unsealed" / "session", tmp_path / "session")
    assert imported(SHOW, tmp_path, ("numpy", "numpy.ma", "regex", "scipy", "soundfile", "yaml")) == {"numpy"}


def test_an_evaluation_imports_only_what_it_needs(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "noise.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(random.Random(1).randbytes(32000))
    (tmp_path / "files.txt").write_text("noise.wav\n")
    watched = ("harness.model.scenario", "numpy.ma", "numpy.random", "soundfile")
    assert imported(EVALUATE, tmp_path, watched) == set()
    assert imported(LOAD, tmp_path, ("numpy.random",)) == set()


def test_python_does_not_search_all_objects_when_a_command_ends(tmp_path: Path) -> None:
    program = "import atexit, gc, sys\natexit.register(lambda: print(gc.get_freeze_count() > 0))\n"
    program += "from harness.cli import main\nsys.argv = ['harness', '--version']\nmain()"
    result = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "True"


def test_the_help_lists_nine_entries_in_24_lines() -> None:
    result = CliRunner().invoke(group, [])
    assert result.exit_code == 2
    assert len(result.output.splitlines()) <= 24
    lines = result.output.partition("\nCommands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == list(ENTRIES)
    assert len(ENTRIES) == 9


def test_first_steps_are_offered_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    program = [sys.executable, "-c", "from harness.cli import main; main()"]
    with subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        os.write(ours, b"help\n")
        assert running.wait(60) == 0
    output = os.read(ours, 65536).decode()
    os.close(ours)
    assert "three-minute tour" in output
    assert "harness admin devices" in output
