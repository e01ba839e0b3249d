"""Commands in surroundings that a service, a container or a closed window gives them (tests/surroundings.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SWEEP = [sys.executable, "-m", "tests.surroundings"]
ROOT = Path(__file__).parents[2]


def test_each_command_ends_in_order_in_one_of_the_surroundings() -> None:
    result = subprocess.run([*SWEEP, "--sample"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_each_command_ends_in_order_in_all_of_them() -> None:
    result = subprocess.run(SWEEP, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
