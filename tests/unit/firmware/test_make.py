"""`make` of the firmware, and that the spotter's tables are what the tools make of them."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conformance.boards import FIRMWARE, built
from tests.unit.firmware.c_programs import CORE

MAKE = ("make", "--no-print-directory")


def test_without_the_arm_compiler_the_rest_is_built() -> None:
    built("posix")
    built("host")
    command = [*MAKE, "-C", str(FIRMWARE), "all", "ARM=no-such-"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert result.returncode == 0, result.stderr
    assert "no-such-gcc is missing" in result.stderr
    assert "apt-get install gcc-arm-none-eabi" in result.stderr
    assert (FIRMWARE / "build" / "posix" / "vh_board").exists()


def test_building_the_arm_image_without_its_compiler_names_the_package(tmp_path: Path) -> None:
    command = [*MAKE, "-C", str(FIRMWARE), "qemu_ast1030", "ARM=no-such-", f"BUILD={tmp_path}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode != 0
    assert "no-such-gcc is missing: apt-get install gcc-arm-none-eabi" in result.stderr


def test_a_second_make_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    shutil.copy(FIRMWARE / "Makefile", tmp_path)
    (tmp_path / "build.mk").write_text("posix:\n\t@touch built\n", encoding="ascii")
    with (tmp_path / "Makefile").open() as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        second = subprocess.Popen(
            [*MAKE, "-C", str(tmp_path), "posix"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert second.stderr is not None
        assert "another make is at work" in second.stderr.readline()
        time.sleep(0.2)  # time in which it would do what it must not
        assert second.poll() is None
        assert not (tmp_path / "built").exists()
    _, stderr = second.communicate(timeout=60)
    assert second.returncode == 0, stderr
    assert (tmp_path / "built").exists()


TOOLS = CORE.parent / "tools"
NETWORK = CORE / "spotter" / "vh_spotter_tables.h"


def printed(tool: str, *arguments: str | Path, limit_s: float = 60) -> bytes:
    command = [sys.executable, str(TOOLS / tool), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=True, timeout=limit_s).stdout


def test_the_signal_tables_are_reproducible() -> None:
    assert printed("signal_tables.py") == (CORE / "spotter" / "vh_spotter_signal.h").read_bytes()


def test_generated_network_file_has_no_manual_changes() -> None:
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
def test_training_reproduces_the_shipped_network(tmp_path: Path) -> None:
    """About ten minutes on two idle cores; needs espeak-ng, flite and hibari of the same versions."""
    assert printed("train_spotter.py", "--cache", tmp_path, limit_s=7000) == NETWORK.read_bytes()
