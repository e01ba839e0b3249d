"""The spotter's tables are what the tools make of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.firmware.c_programs import CORE

TOOLS = CORE.parent / "tools"
NETWORK = CORE / "spotter" / "vh_spotter_tables.h"


def printed(tool: str, *arguments: str | Path, limit_s: float = 60) -> bytes:
    command = [sys.executable, str(TOOLS / tool), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=True, timeout=limit_s).stdout


def test_the_signal_tables_are_made_anew() -> None:
    assert printed("signal_tables.py") == (CORE / "spotter" / "vh_spotter_signal.h").read_bytes()


def test_the_network_was_changed_by_nobody_since_it_was_written() -> None:
    assert printed("network_header.py", NETWORK) == NETWORK.read_bytes()


def test_a_number_changed_by_hand_keeps_its_place(tmp_path: Path) -> None:
    """That the reading of a header reads its numbers: another weight comes out as another weight, in the same place."""
    changed = NETWORK.read_text(encoding="ascii").replace("= {\n    -45,", "= {\n    -44,", 1)
    assert changed != NETWORK.read_text(encoding="ascii")
    other = tmp_path / "tables.h"
    other.write_text(changed, encoding="ascii")
    assert printed("network_header.py", other) == other.read_bytes()


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_training_makes_the_same_network(tmp_path: Path) -> None:
    """About ten minutes on two idle cores; needs espeak-ng, flite and hibari of the same versions."""
    assert printed("train_spotter.py", "--cache", tmp_path, limit_s=7000) == NETWORK.read_bytes()
