"""The examples that fit the virtual lab run there to their end, and every trial is finished."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.model.record import SessionStarted, TrialFinished
from tests.conformance.engine_runs import rows
from tests.unit.scenario.test_docs import EXAMPLES, ROOT

LAB = "scenarios/benches/virtual_lab.yaml"
IN_THE_LAB = [path for path in EXAMPLES if LAB in path.read_text(encoding="utf-8") and path.stem != "over_night"]


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    folder = Path(tempfile.mkdtemp(prefix="vh-"))  # a socket's path has 107 bytes at most
    variables = {**os.environ, "HARNESS_LAB": str(folder / "lab"), "HARNESS_RUNTIME": str(folder / "run")}
    harness("lab", "up", environment=variables)
    yield variables
    harness("lab", "down", environment=variables)
    shutil.rmtree(folder, ignore_errors=True)


def harness(*arguments: str, environment: dict[str, str]) -> int:
    program = [sys.executable, "-c", "from harness.cli import main; main()", *arguments]
    return subprocess.run(program, cwd=ROOT, env=environment, check=False, capture_output=True).returncode


@pytest.mark.soak
@pytest.mark.sound
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("example", IN_THE_LAB, ids=[path.stem for path in IN_THE_LAB])
def test_an_example_runs_to_its_end(example: Path, environment: dict[str, str], tmp_path: Path) -> None:
    status = harness(
        "run", str(example), "--bench", LAB, "--plain", "--unattended", "--sessions", str(tmp_path),
        environment=environment,
    )  # fmt: skip
    assert status in (0, 1), "a limit may fail, since the lab's assistant is not perfect"
    (folder,) = tmp_path.iterdir()
    records = [entry.record for entry in rows(folder)]
    planned = next(record for record in records if isinstance(record, SessionStarted)).trials
    assert {trial.id for trial in planned} == {
        record.trial_id for record in records if isinstance(record, TrialFinished)
    }
