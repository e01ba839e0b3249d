"""`harness demo` and its virtual lab."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness.base.child_process import process_of_pid
from harness.lab.lab import Lab
from tests.conformance.engine_runs import wait_for
from tests.known import known

pytestmark = [pytest.mark.sound, pytest.mark.speech]


def test_killed_demo_takes_its_lab_down_after_its_run(tmp_path: Path) -> None:
    short = Path(tempfile.mkdtemp(prefix="vh-", dir="/tmp"))
    program = [sys.executable, "-c", "from harness.cli import main; main()", "demo", "--short", "--plain"]
    lab = Lab(short / "voice-harness" / "demo-lab")
    with subprocess.Popen(
        [*program, "--sessions", str(tmp_path)],
        env={**os.environ, "HARNESS_RUNTIME": str(short)},
        stdout=subprocess.PIPE,
    ) as demo:
        for _ in range(2):  # that the lab starts, and a line of the run
            assert known(demo.stdout).readline()
        (path,) = tmp_path.glob("*/engine.json")
        engine = known(process_of_pid(json.loads(path.read_text())["pid"]))
        demo.kill()
    assert all(part.pid for part in lab.status())
    assert engine.end()
    wait_for(lambda: not any(part.pid for part in lab.status()), 60, "the end of the lab")
    shutil.rmtree(short, ignore_errors=True)  # the lab's keeper removes files, too
