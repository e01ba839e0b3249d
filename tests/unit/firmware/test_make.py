"""`make` of the firmware: one at a time, and without the Arm compiler."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import time
from pathlib import Path

from tests.conformance.boards import FIRMWARE, built

MAKE = ("make", "--no-print-directory")


def test_without_the_arm_compiler_the_rest_is_built() -> None:
    built("posix")
    built("host")
    command = [*MAKE, "-C", str(FIRMWARE), "all", "ARM=no-such-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == 0, done.stderr
    assert "no-such-gcc is missing" in done.stderr
    assert "apt-get install gcc-arm-none-eabi" in done.stderr
    assert (FIRMWARE / "build" / "posix" / "vh_board").exists()


def test_who_asks_for_the_arm_image_is_told_the_package(tmp_path: Path) -> None:
    command = [*MAKE, "-C", str(FIRMWARE), "qemu_ast1030", "ARM=no-such-", f"BUILD={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "no-such-gcc is missing: apt-get install gcc-arm-none-eabi" in done.stderr


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
    _, said = second.communicate(timeout=20)
    assert second.returncode == 0, said
    assert (tmp_path / "built").exists()
