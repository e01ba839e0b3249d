"""What a serial connection may say, what a profile adds, and how its port is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from harness.devices.serial.options import FramingChoice, Injection, SerialOptions
from harness.devices.serial.port import Port, find
from harness.model.bench import AudioDialogue, AudioInput, ConsoleSettings, DeviceProfile, Framing
from harness.model.errors import DeviceError, InputError


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"port": ""}, "either a `port` or a `usb`"),
        ({"usb": "1234"}, "either a `port` or a `usb`"),
        ({"baud": -1}, "baud"),
        ({"ping_period_s": 0.0}, "ping_period_s"),
        ({"answer_limit_s": 1.5}, "answer_limit_s"),
        ({"framing": FramingChoice.NONE, "injection": Injection.VH}, "injection vh needs framing vh"),
    ],
)
def test_options_that_cannot_be_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        SerialOptions(**{"port": "/dev/ttyUSB0", **changes})  # type: ignore[arg-type]


def profile(framing: Framing, audio: AudioDialogue | None) -> DeviceProfile:
    input_ = AudioInput(audio) if audio is not None else None
    return DeviceProfile("p", "p", "p", "0", (), console=ConsoleSettings(framing=framing), audio=input_)


def test_the_profile_says_what_the_bench_does_not() -> None:
    options = SerialOptions(port="x")
    lines, vh = profile(Framing.LINES, None), profile(Framing.VH, AudioDialogue.VH)
    assert not options.framed(lines)
    assert options.framed(vh)
    assert options.framed(None)
    assert options.dialogue(lines) is None
    assert options.dialogue(vh) is AudioDialogue.VH
    assert options.dialogue(profile(Framing.LINES, AudioDialogue.TFLM)) is AudioDialogue.TFLM
    assert SerialOptions(port="x", injection=Injection.NONE).dialogue(vh) is None
    assert SerialOptions(port="x", framing=FramingChoice.VH).framed(lines)


def adapter(path: str, serial_number: str, vid: int = 0x10C4, pid: int = 0xEA60) -> ListPortInfo:
    one = ListPortInfo(path)
    one.vid, one.pid, one.serial_number = vid, pid, serial_number
    return one


def test_ports_are_found_by_path_serial_number_and_ids(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = [adapter("/dev/ttyUSB1", "B"), adapter("/dev/ttyUSB0", "A"), adapter("/dev/ttyACM0", "C", 0x2341, 0x805A)]
    monkeypatch.setattr(list_ports, "comports", lambda: there)
    path = tmp_path / "port"
    path.touch()
    assert find(SerialOptions(port=str(path))) == Port(str(path))
    assert find(SerialOptions(usb="A")) == Port("/dev/ttyUSB0", "A")
    assert find(SerialOptions(usb="2341:805A")) == Port("/dev/ttyACM0", "C")
    with pytest.raises(DeviceError, match=r"2 ports are 10c4:ea60: /dev/ttyUSB0 .*A.*, /dev/ttyUSB1 .*B"):
        find(SerialOptions(usb="10c4:ea60"))
    assert find(SerialOptions(usb="10c4:ea60"), usb_serial="B") == Port("/dev/ttyUSB1", "B")
    with pytest.raises(DeviceError, match="no port is Z"):
        find(SerialOptions(usb="Z"))


def test_an_adapter_that_comes_back_under_another_name_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(list_ports, "comports", lambda: [adapter("/dev/ttyUSB7", "A")])
    gone = str(tmp_path / "ttyUSB0")
    assert find(SerialOptions(port=gone), usb_serial="A") == Port("/dev/ttyUSB7", "A")
    with pytest.raises(DeviceError, match="there is no"):
        find(SerialOptions(port=gone))
