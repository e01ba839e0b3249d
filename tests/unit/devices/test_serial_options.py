"""What a serial connection may say, and how its port is found; the dialogue of TFLM without a line."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from harness.devices.serial.device import SerialDevice
from harness.devices.serial.options import FramingChoice, SerialInjection, SerialOptions
from harness.devices.serial.peers import ANSWER_LIMIT_S, TflmDialogue
from harness.devices.serial.port import Port, find, hold_back_s, no_answer
from harness.model.bench import AudioDialogue, AudioInput, ConsoleSettings, DeviceProfile, Framing
from harness.model.errors import DeviceError, InputError
from harness.model.observation import LinkBack, LinkLost, LogLine
from harness.session.wording import in_words
from tests.seen import Around, Seen


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"port": ""}, "either `port` or `usb`"),
        ({"usb": "1234"}, "either `port` or `usb`"),
        ({"baud": -1}, "baud"),
        ({"ping_period_s": 0.0}, "ping_period_s"),
        ({"answer_limit_s": 1.5}, "answer_limit_s"),
        ({"framing": FramingChoice.NONE, "injection": SerialInjection.VH}, "`injection: vh` needs `framing: vh`"),
    ],
)
def test_contradictory_options_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        SerialOptions(**{"port": "/dev/ttyUSB0", **changes})  # type: ignore[arg-type]


def profile(framing: Framing, audio: AudioDialogue | None) -> DeviceProfile:
    input_ = AudioInput(audio) if audio is not None else None
    return DeviceProfile("p", "p", "p", "0", (), console=ConsoleSettings(framing=framing), audio=input_)


def test_profile_supplies_options_missing_from_the_bench() -> None:
    options = SerialOptions(port="x")
    lines, vh = profile(Framing.LINES, None), profile(Framing.VH, AudioDialogue.VH)
    assert not options.is_framed(lines)
    assert options.is_framed(vh)
    assert options.is_framed(None)
    assert options.dialogue(lines) is None
    assert options.dialogue(vh) is AudioDialogue.VH
    assert options.dialogue(profile(Framing.LINES, AudioDialogue.TFLM)) is AudioDialogue.TFLM
    assert SerialOptions(port="x", injection=SerialInjection.NONE).dialogue(vh) is None
    assert SerialOptions(port="x", framing=FramingChoice.VH).is_framed(lines)


def adapter(path: str, serial_number: str, vid: int = 0x10C4, pid: int = 0xEA60) -> ListPortInfo:
    port = ListPortInfo(path)
    port.vid, port.pid, port.serial_number = vid, pid, serial_number
    return port


def test_ports_are_found_by_path_serial_number_and_ids(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = [adapter("/dev/ttyUSB1", "B"), adapter("/dev/ttyUSB0", "A"), adapter("/dev/ttyACM0", "C", 0x2341, 0x805A)]
    monkeypatch.setattr(list_ports, "comports", lambda: there)
    path = tmp_path / "port"
    path.touch()
    assert find(SerialOptions(port=str(path))) == Port(str(path))
    assert find(SerialOptions(usb="A")) == Port("/dev/ttyUSB0", "A")
    assert find(SerialOptions(usb="2341:805A")) == Port("/dev/ttyACM0", "C")
    with pytest.raises(DeviceError, match=r"2 ports match `usb: 10c4:ea60`: /dev/ttyUSB0 .*A.*, /dev/ttyUSB1 .*B"):
        find(SerialOptions(usb="10c4:ea60"))
    assert find(SerialOptions(usb="10c4:ea60"), usb_serial="B") == Port("/dev/ttyUSB1", "B")
    with pytest.raises(DeviceError, match="no port matches `usb: Z`"):
        find(SerialOptions(usb="Z"))


def test_an_adapter_that_comes_back_under_another_name_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(list_ports, "comports", lambda: [adapter("/dev/ttyUSB7", "A")])
    gone = str(tmp_path / "ttyUSB0")
    assert find(SerialOptions(port=gone), usb_serial="A") == Port("/dev/ttyUSB7", "A")
    with pytest.raises(DeviceError, match="does not exist"):
        find(SerialOptions(port=gone))


def test_lines_loss_and_return_of_a_network_bridge_are_reported() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    url = f"socket://127.0.0.1:{server.getsockname()[1]}"
    device = SerialDevice("board", SerialOptions(port=url, framing=FramingChoice.NONE), Around())
    seen = Seen()
    device.open(seen)
    try:
        bridge, _ = server.accept()
        bridge.sendall(b"hello\n")
        assert seen.first(LogLine).text == "hello"
        bridge.close()
        seen.first(LinkLost)
        bridge, _ = server.accept()
        seen.first(LinkBack)
        bridge.close()
    finally:
        device.close()
        server.close()
    with pytest.raises(DeviceError, match="cannot be reached"):
        device.open(seen)


def test_ftdi_hold_back_time_is_read_from_its_driver(tmp_path: Path) -> None:
    (tmp_path / "ttyUSB7").mkdir()
    (tmp_path / "ttyUSB7" / "latency_timer").write_text("1\n", encoding="ascii")
    assert hold_back_s("/dev/ttyUSB7", tmp_path) == pytest.approx(0.002)
    assert hold_back_s("/dev/ttyACM0", tmp_path) is None


def test_received_bytes_without_an_answer_are_described() -> None:
    assert no_answer(b"", 0)[0] == "no bytes received"
    assert no_answer(b"hi\r\nI (5) main: hello\r\n", 22)[0] == '22 bytes of text received, such as "I (5) main: hello"'
    seen, remedy = no_answer(bytes(range(256)), 9000)
    assert seen == "9000 bytes received that are neither text nor frames"
    assert "`baud`" in remedy
    assert "\x1b" not in no_answer(b"plain text that is long enough, and \x1b[31mred", 45)[0]


def test_causes_are_worded_for_people() -> None:
    assert in_words("link_lost: a_b: the port is gone") == "link lost: a_b: the port is gone"
    assert in_words("engine_ended") == "engine ended"


ALL = 10**9


def begun(samples: int = 100) -> TflmDialogue:
    dialogue = TflmDialogue()
    dialogue.begin(np.arange(samples, dtype=np.int16), 0.0)
    assert dialogue.output(ALL, 0.0) == b"!TEST\n"
    return dialogue


def test_the_tflm_dialogue_sends_a_whole_sound() -> None:
    dialogue = begun(100)
    dialogue.take("!OK TEST 181", 0.1)  # an odd size is made even: samples are not cut in two
    first = dialogue.output(ALL, 0.1).decode().splitlines()
    assert first[0] == "!DATA audio-pcm-16khz-mono-s16 200"
    assert len(first[1]) == 240
    assert (dialogue.sent, dialogue.acknowledged) == (90, 0)
    dialogue.take("!DATA_ACK 180", 0.2)
    assert dialogue.output(ALL, 0.2).count(b"\n") == 1
    dialogue.take("!DATA_ACK 20", 0.3)
    assert dialogue.acknowledged == 100
    assert not dialogue.complete
    dialogue.take("!OK DATA audio-pcm-16khz-mono-s16 200", 0.4)
    assert dialogue.complete
    assert not dialogue.active


def test_a_dialogue_without_an_answer_ends_after_five_seconds() -> None:
    dialogue = begun()
    dialogue.tick(ANSWER_LIMIT_S - 0.1)
    assert dialogue.active
    dialogue.tick(ANSWER_LIMIT_S + 0.1)
    assert not dialogue.active
    assert "no answer" in dialogue.failed
    dialogue.begin(np.zeros(4, np.int16), 9.0)
    assert dialogue.output(ALL, 9.0) == b"!TEST\n"  # who knows what it is waiting for


def test_data_lines_wait_until_their_samples_are_due() -> None:
    dialogue = begun(1000)
    dialogue.take("!OK TEST 200", 0.0)
    assert dialogue.output(50, 0.0) == b""
    assert dialogue.output(100, 0.1).startswith(b"!DATA ")


@pytest.mark.parametrize("line", ["!OK TEST", "!OK TEST 999999999999", "!DATA_ACK", "!WHAT", "!"])
def test_malformed_answers_do_not_change_the_dialogue(line: str) -> None:
    dialogue = begun()
    dialogue.take(line, 0.1)
    assert dialogue.active
    assert dialogue.output(ALL, 0.1) == b""


def test_wrong_acknowledgement_ends_the_dialogue() -> None:
    dialogue = begun()
    dialogue.take("!OK TEST 100", 0.1)
    dialogue.output(ALL, 0.1)
    dialogue.take("!DATA_ACK 60", 0.2)
    assert "60 bytes of a line of 100" in dialogue.failed
