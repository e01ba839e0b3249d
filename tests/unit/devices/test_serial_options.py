"""What a serial connection may say, what a profile adds, and how its port is found."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from harness.base.clocks import HostClock
from harness.devices.framing.board_words import observation
from harness.devices.serial.device import SerialDevice
from harness.devices.serial.options import FramingChoice, SerialInjection, SerialOptions
from harness.devices.serial.port import Port, find, hold_back_s, no_answer
from harness.devices.wire.audio_link import AudioLink
from harness.devices.wire.messages import ErrorCode, ErrorEvent
from harness.model.bench import AudioDialogue, AudioInput, ConsoleSettings, DeviceProfile, Framing
from harness.model.errors import DeviceError, InputError
from harness.model.observation import Intent, LinkBack, LinkLost, LogLine, Observation
from harness.model.time import Stamp
from harness.session.wording import in_words


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"port": ""}, "either a `port` or a `usb`"),
        ({"usb": "1234"}, "either a `port` or a `usb`"),
        ({"baud": -1}, "baud"),
        ({"ping_period_s": 0.0}, "ping_period_s"),
        ({"answer_limit_s": 1.5}, "answer_limit_s"),
        ({"framing": FramingChoice.NONE, "injection": SerialInjection.VH}, "injection vh needs framing vh"),
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
    assert SerialOptions(port="x", injection=SerialInjection.NONE).dialogue(vh) is None
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


def test_first_bytes() -> None:
    assert no_answer(b"", 0)[0] == "nothing came from it"
    assert no_answer(b"hi\r\nI (5) main: hello\r\n", 22)[0] == '22 bytes of text came, such as "I (5) main: hello"'
    seen, remedy = no_answer(bytes(range(256)), 9000)
    assert seen == "9000 bytes came that are neither text nor frames"
    assert "`baud`" in remedy
    assert "\x1b" not in no_answer(b"plain text that is long enough, and \x1b[31mred", 45)[0]


def test_causes_in_words() -> None:
    assert in_words("link_lost: a_b: the port is gone") == "link lost: a_b: the port is gone"
    assert in_words("engine_ended") == "engine ended"


def test_that_a_board_understood_nothing_is_evidence_and_other_errors_are_lines() -> None:
    told_of = [observation(ErrorEvent(1, code, "so"), "dut", Stamp(1.0), AudioLink()) for code in ErrorCode]
    assert [(type(one), getattr(one, "name", None)) for one in told_of] == [(LogLine, None), (Intent, "")]
