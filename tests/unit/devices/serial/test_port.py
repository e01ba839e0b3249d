"""Opening a serial port."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.devices.serial.port import open_port
from harness.model.errors import DeviceError
from tests.known import known

HOLDER = "import serial, sys; port = serial.Serial(sys.argv[1], exclusive=True); print('open', flush=True); input()"


@pytest.fixture
def path() -> Iterator[str]:
    ours, theirs = os.openpty()
    yield os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


def test_a_port_that_another_program_has_open_is_refused_with_its_name(path: str) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdin=pipe, stdout=pipe, text=True) as holder:
        assert known(holder.stdout).readline() == "open\n"
        with pytest.raises(DeviceError, match=rf"in use: \S+ \(process {holder.pid}\) has it open"):
            open_port(path, 9600, timeout=0)
        holder.communicate("\n")
    open_port(path, 9600, timeout=0).close()


def test_invalid_port_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DeviceError, match="not a serial port"):
        open_port(str(tmp_path / "file"), 9600, timeout=0)
    with pytest.raises(DeviceError, match="cannot be opened"):
        open_port(str(tmp_path / "none"), 9600, timeout=0)
