"""Serial ports: found by path or adapter, opened exclusively, and described when a board does not answer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from harness.devices.serial.options import SerialOptions
from harness.devices.serial.port import OpenPort, PortLocation, explain_silence, find_port, hold_back
from harness.model.errors import DeviceError
from tests.known import known


def adapter(path: str, serial_number: str, vid: int = 0x10C4, pid: int = 0xEA60) -> ListPortInfo:
    port = ListPortInfo(path)
    port.vid, port.pid, port.serial_number = vid, pid, serial_number
    return port


def test_ports_are_found_by_path_serial_number_and_ids(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ports = [adapter("/dev/ttyUSB1", "B"), adapter("/dev/ttyUSB0", "A"), adapter("/dev/ttyACM0", "C", 0x2341, 0x805A)]
    monkeypatch.setattr(list_ports, "comports", lambda: ports)
    path = tmp_path / "port"
    path.touch()
    assert find_port(SerialOptions(port=str(path))) == PortLocation(str(path))
    assert find_port(SerialOptions(usb="A")) == PortLocation("/dev/ttyUSB0", "A")
    assert find_port(SerialOptions(usb="2341:805A")) == PortLocation("/dev/ttyACM0", "C")
    with pytest.raises(DeviceError, match=r"2 ports match `usb: 10c4:ea60`: /dev/ttyUSB0 .*A.*, /dev/ttyUSB1 .*B"):
        find_port(SerialOptions(usb="10c4:ea60"))
    assert find_port(SerialOptions(usb="10c4:ea60"), usb_serial="B") == PortLocation("/dev/ttyUSB1", "B")
    with pytest.raises(DeviceError, match="no port matches `usb: Z`"):
        find_port(SerialOptions(usb="Z"))


def test_an_adapter_that_comes_back_under_another_name_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(list_ports, "comports", lambda: [adapter("/dev/ttyUSB7", "A")])
    gone = str(tmp_path / "ttyUSB0")
    assert find_port(SerialOptions(port=gone), usb_serial="A") == PortLocation("/dev/ttyUSB7", "A")
    with pytest.raises(DeviceError, match="does not exist"):
        find_port(SerialOptions(port=gone))


def test_another_board_that_takes_the_name_of_a_lost_one_is_not_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "ttyUSB0"
    path.touch()
    ports = [adapter(str(path), "B"), adapter("/dev/ttyUSB1", "A")]
    monkeypatch.setattr(list_ports, "comports", lambda: ports)
    assert find_port(SerialOptions(port=str(path))) == PortLocation(str(path), "B")
    assert find_port(SerialOptions(port=str(path)), usb_serial="A") == PortLocation("/dev/ttyUSB1", "A")
    ports.pop()
    with pytest.raises(DeviceError, match="is no longer the adapter A"):
        find_port(SerialOptions(port=str(path)), usb_serial="A")
    with pytest.raises(DeviceError, match="no port matches"):
        find_port(SerialOptions(usb="10c4:ea60"), usb_serial="A")


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
            OpenPort(path, 9600)
        holder.communicate("\n")
    OpenPort(path, 9600).close()


def test_invalid_port_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DeviceError, match="not a serial port"):
        OpenPort(str(tmp_path / "file"), 9600)
    with pytest.raises(DeviceError, match="cannot be opened"):
        OpenPort(str(tmp_path / "none"), 9600)


def test_ftdi_hold_back_time_is_read_from_its_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.devices.serial.port.USB_SERIAL", tmp_path)
    (tmp_path / "ttyUSB7").mkdir()
    (tmp_path / "ttyUSB7" / "latency_timer").write_text("1\n", encoding="ascii")
    usb, acm = SerialOptions(port="/dev/ttyUSB7"), SerialOptions(port="/dev/ttyACM0")
    assert hold_back(usb, usb.port) == (pytest.approx(0.002), True)
    assert hold_back(acm, acm.port) == (0.016, False)


def test_received_bytes_without_an_answer_are_described() -> None:
    assert explain_silence(b"", 0)[0] == "no bytes received"
    assert (
        explain_silence(b"hi\r\nI (5) main: hello\r\n", 22)[0]
        == '22 bytes of text received, such as "I (5) main: hello"'
    )
    description, remedy = explain_silence(bytes(range(256)), 9000)
    assert description == "9000 bytes received that are neither text nor frames"
    assert "`baud`" in remedy
    assert "\x1b" not in explain_silence(b"plain text that is long enough, and \x1b[31mred", 45)[0]
