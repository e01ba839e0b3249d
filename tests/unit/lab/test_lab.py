"""The virtual lab as a whole. Its real parts run in tests/conformance/test_lab.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.base.child_process import process_of_pid, save_process
from harness.cli.lab import command
from harness.lab.lab import DEFAULT_ROOM, PARTS
from harness.model.errors import LabError
from tests.known import known


def test_a_lab_whose_parts_do_not_answer_is_not_called_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_LAB", str(tmp_path))
    (tmp_path / "lab.json").write_text(f'{{"room": "{DEFAULT_ROOM}"}}')
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as frozen:
        for part in PARTS:
            save_process(tmp_path / f"{part.replace(' ', '_')}.pid", known(process_of_pid(frozen.pid)))
        with pytest.raises(LabError, match=r"not healthy: .*broker: does not answer; assistant: no heartbeat yet"):
            CliRunner().invoke(command, ["up"], catch_exceptions=False)
