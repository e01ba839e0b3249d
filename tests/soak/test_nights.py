"""Ten thousand nights drawn from seeds, held against what the devices did. HARNESS_NIGHTS says how many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).parents[2]
NIGHTS = int(os.environ.get("HARNESS_NIGHTS", "10000"))


@pytest.mark.soak
def test_ten_thousand_nights() -> None:
    command = [sys.executable, "-m", "tests.nights", "--seeds", f"0:{NIGHTS}"]
    shown = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
    sys.stdout.write(shown.stdout)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert f"0 of {NIGHTS} nights broken" in shown.stdout
