"""The commands of docs/scoring.md print what the page shows, and the page names every key of the JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "scoring.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
EXAMPLES = [text.removeprefix("$ ").partition("\n") for kind, text in BLOCKS if kind == "console"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the page shows: reference and hypothesis side by side, another hypothesis, a list."""
    both, other = [text for kind, text in BLOCKS if not kind and "(ann_1)" in text]
    columns = [re.split(r" {2,}", line) for line in both.splitlines()]
    (conditions,) = [text for kind, text in BLOCKS if kind == "csv"]
    files = {
        "ref.trn": "".join(f"{row[0]}\n" for row in columns),
        "hyp.trn": "".join(f"{row[1]}\n" for row in columns if len(row) > 1),
        "hyp2.trn": other,
        "conditions.csv": conditions,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "harness"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from harness.cli import main; main()" "$@"\n')
    program.chmod(0o755)
    return tmp_path


def printed(folder: Path, command: str) -> str:
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    environment.pop("COLUMNS", None)
    ran = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert not ran.stderr
    return ran.stdout


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize(("command", "expected"), [(command, text) for command, _, text in EXAMPLES])
def test_what_the_page_shows_is_what_is_printed(folder: Path, command: str, expected: str) -> None:
    assert command.startswith("harness score ")
    assert printed(folder, command).splitlines() == expected.splitlines()


def keys(found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        for key, value in found.items():
            yield key
            yield from keys(value)
    elif isinstance(found, list):
        for one in found:
            yield from keys(one)


def test_every_key_of_the_json_is_named(folder: Path) -> None:
    options = "--groups conditions.csv --cross noise,level_dbfs --json -"
    found = json.loads(printed(folder, f"harness score -r ref.trn -h hyp.trn -h hyp2.trn {options}"))
    assert [key for key in dict.fromkeys(keys(found)) if f"`{key}`" not in PAGE] == []
