"""The tutorials do what they say: files are written, commands run in order, and their output is the page's.

In a ```console block a line that begins with `$ ` is a command, and what follows is its output: `…` stands for the
rest of a line, or, alone on a line, for any number of lines. A block with `title="NAME"` is a file. The exit status is
0 unless a command is followed by `# exit status N`. A page with `<!-- tested: soak -->` runs in make soak only; one
with `<!-- tested: sound -->` needs the virtual lab.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
LIMIT_S = 900


@dataclass(frozen=True)
class Step:
    command: str
    output: str
    status: int


def steps(block: str) -> Iterator[Step]:
    for text in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = text.replace("\\\n", "").partition("\n")
        match = re.search(r"\s*# exit status (\d)$", command)
        yield Step(command[: match.start()] if match else command, output, int(match[1]) if match else 0)


def expected(output: str) -> re.Pattern[str]:
    lines = []
    for line in output.rstrip("\n").split("\n"):
        text = "[^\n]*?".join(re.escape(part.rstrip()) for part in line.split("…"))
        lines.append("(?:[^\n]*\n)*?" if line.strip() == "…" else f"{text}[ ]*\n" if line else "\n")
    return re.compile("".join(lines) + r"\s*" if output.strip() else r"[\s\S]*")


@pytest.fixture
def place() -> Iterator[tuple[Path, dict[str, str]]]:
    folder = Path(tempfile.mkdtemp(prefix="vh-"))  # a socket's path has 107 bytes at most
    (folder / "work").mkdir()
    for name in ("firmware_stubs", "scenarios", "devices"):
        (folder / "work" / name).symlink_to(ROOT / name)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {
        **os.environ, "PATH": path, "HARNESS_LAB": str(folder / "lab"), "HARNESS_RUNTIME": str(folder / "run"),
        "COLUMNS": "120", "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    yield folder / "work", environment
    if (folder / "lab").exists():
        subprocess.run(["harness", "lab", "down"], env=environment, capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)


def marks(page: Path) -> list[pytest.MarkDecorator]:
    text = page.read_text(encoding="utf-8")
    return [getattr(pytest.mark, name) for name in ("soak", "sound") if f"<!-- tested: {name} -->" in text]


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("page", [pytest.param(path, id=path.stem, marks=marks(path)) for path in PAGES])
def test_the_commands_of_a_tutorial_give_its_output(page: Path, place: tuple[Path, dict[str, str]]) -> None:
    folder, environment = place
    started: list[int] = []
    try:
        for kind, title, block in BLOCK.findall(page.read_text(encoding="utf-8")):
            if title:
                (folder / title).parent.mkdir(parents=True, exist_ok=True)
                (folder / title).write_text(block, encoding="utf-8")
            elif kind == "console":
                for step in steps(block):
                    result = subprocess.Popen(
                        ["bash", "-c", step.command], cwd=folder, env=environment, text=True, start_new_session=True,
                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    )  # fmt: skip
                    started.append(result.pid)
                    output, _ = result.communicate(timeout=LIMIT_S)
                    output = "\n".join(line.rstrip() for line in output.split("\n"))
                    assert result.returncode == step.status, f"$ {step.command}\n{output}"
                    assert expected(step.output).fullmatch(output), (
                        f"$ {step.command}\n{output}\n--- the page:\n{step.output}"
                    )
                    moved = re.fullmatch(r"cd (\S+)", step.command)
                    folder = folder / moved[1] if moved else folder
    finally:
        for pid in started:  # what a step left running in the background
            try:
                os.killpg(pid, signal.SIGTERM)
            except ProcessLookupError:
                continue


def test_at_least_one_tutorial_exists() -> None:
    assert PAGES
