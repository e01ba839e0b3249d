"""`make test` that is interrupted: whatever it had started is gone after 10 s."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from tests.leftovers import MARK, end_all, left
from tests.seen import until

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]
MOMENTS = (
    ("timed", "tests.conformance"),  # pytest collects
    ("timed", "pulseaudio"),
    ("timed", "harness.lab.assistant"),
    ("live", "mosquitto"),
    ("live", "harness.session.engine"),
)


def runs(run: str, word: str) -> bool:
    """Whether a process of a run has that word in its command line."""
    return any(word.replace(".", "/") in line or word in line for line in map(_command, left(run)))


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
@pytest.mark.parametrize(("group", "word"), MOMENTS)
def test_nothing_is_left_of_an_interrupted_run(tmp_path: Path, group: str, word: str, number: signal.Signals) -> None:
    run = "/".join(filter(None, (os.environ.get(MARK), uuid.uuid4().hex)))
    with (tmp_path / "said").open("w+b") as output:
        started = subprocess.Popen(
            [sys.executable, "setup/test.py", group], cwd=ROOT, env=os.environ | {MARK: run},
            stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
        try:
            until(lambda: runs(run, word) and started.poll() is None, 240, f"{word} did not start")
            os.killpg(started.pid, number)
            started.wait(10)
            until(lambda: not left(run), 10, "processes are left")
        finally:
            end_all(run)
        output.seek(0)
        text = output.read().decode(errors="replace")
    assert "Traceback" not in text
    if number != signal.SIGKILL:
        assert started.returncode == 128 + number
        assert text.splitlines()[-1] == (
            f"The tests were interrupted by {number.name}; everything that they had started has ended."
        )


def test_nothing_is_left_of_a_pytest_that_is_killed(tmp_path: Path) -> None:
    run = "/".join(filter(None, (os.environ.get(MARK), uuid.uuid4().hex)))
    with (tmp_path / "said").open("w+b") as output:
        command = [sys.executable, "-m", "pytest", "-n2", "tests/conformance/test_lab.py", "tests/unit/lab"]
        started = subprocess.Popen(command, cwd=ROOT, env=os.environ | {MARK: run}, stdout=output, stderr=output)
        try:
            until(lambda: runs(run, "harness.lab.assistant"), 240, "the lab did not start")
            started.kill()
            started.wait(10)
            until(lambda: not left(run), 10, "processes are left")
        finally:
            end_all(run)
