"""A console behind a bridge in the network: socket://host:port on a bench."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.base.clocks import HostClock
from harness.devices.serial.device import SerialDevice
from harness.devices.serial.options import FramingChoice, SerialOptions
from harness.devices.serial.port import hold_back_s
from harness.model.errors import DeviceError
from harness.model.observation import LinkBack, LinkLost, LogLine, Observation


def until(holds: Callable[[], object]) -> None:
    limit_s = time.monotonic() + 10.0
    while not holds():
        assert time.monotonic() < limit_s
        time.sleep(0.01)


def test_lines_of_a_bridge_its_loss_and_its_return() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    url = f"socket://127.0.0.1:{server.getsockname()[1]}"
    around = SimpleNamespace(clock=HostClock(), profile=None, folder=Path(), sound_server="system", seed=0)
    device = SerialDevice("board", SerialOptions(port=url, framing=FramingChoice.NONE), around)  # type: ignore[arg-type]
    seen: list[Observation] = []
    device.open(seen.append)
    try:
        bridge, _ = server.accept()
        bridge.sendall(b"hello\n")
        until(lambda: any(isinstance(one, LogLine) and one.text == "hello" for one in seen))
        bridge.close()
        until(lambda: any(isinstance(one, LinkLost) for one in seen))
        bridge, _ = server.accept()
        until(lambda: any(isinstance(one, LinkBack) for one in seen))
        bridge.close()
    finally:
        device.close()
        server.close()
    with pytest.raises(DeviceError, match="cannot be reached"):
        device.open(seen.append)


def test_an_ftdi_driver_says_what_it_holds_back(tmp_path: Path) -> None:
    (tmp_path / "ttyUSB7").mkdir()
    (tmp_path / "ttyUSB7" / "latency_timer").write_text("1\n", encoding="ascii")
    assert hold_back_s("/dev/ttyUSB7", tmp_path) == pytest.approx(0.002)
    assert hold_back_s("/dev/ttyACM0", tmp_path) is None
