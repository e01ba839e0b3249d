"""Two boards of one bench, one on a serial line and one at a broker, and how much they have heard by their own word."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import paho.mqtt.client as mqtt
import serial
from paho.mqtt.enums import CallbackAPIVersion

from harness.devices.wire.adpcm import Encoding
from harness.devices.wire.audio_sender import PROBE_SAMPLE
from harness.devices.wire.frames import Decoder, WireFrame
from harness.devices.wire.messages import Audio, AudioAck, decode, encode, to_frame
from tests.conformance.boards import PosixBoard, QemuBoard, posix_board, qemu_board
from tests.conformance.mqtt_bench import Broker
from tests.files import file_with

WIRED, RADIO = "wired", "radio"
BENCH = """\
bench: truth
operator: absent
devices:
  wired:
    profile: vh_board
    connection: {{driver: serial, port: {port}, encoding: {encoding}, answer_limit_s: 30, write_limit_s: 30}}
  radio:
    profile: vh_board_mqtt
    connection:
      driver: mqtt
      address: "127.0.0.1:{broker}"
      encoding: {encoding}
      answer_wait_s: 30
      keepalive_s: 30
      hello_wait_s: 30
"""
"""Patient: on a busy machine a process may stand still for seconds, and these tests are about other faults."""


@dataclass(frozen=True)
class TwoBoards:
    """One board on a serial line, another one at a broker."""

    wired: PosixBoard | QemuBoard
    radio: PosixBoard | QemuBoard
    broker: int

    def bench(self, folder: Path, encoding: str = "pcm16") -> Path:
        return file_with(
            folder / "bench.yaml", BENCH.format(port=self.wired.port, broker=self.broker, encoding=encoding)
        )

    def heard(self) -> dict[str, int]:
        """By device, the samples since its boot, as it says itself. Nobody else may have its port open."""
        return {
            WIRED: _settled(lambda: heard_by_line(self.wired.port)),
            RADIO: _settled(lambda: heard_by_broker(self.broker, RADIO)),
        }


_PROBE = Audio(Encoding.PCM16, PROBE_SAMPLE, b"\0\0")


def heard_by_broker(port: int, device: str) -> int:
    """The sample that the board expects next, as it says when it is given one that it does not expect."""
    answers: list[int] = []
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.on_message = lambda _, __, message: answers.append(json.loads(message.payload)["next"])
    client.connect("127.0.0.1", port)
    client.subscribe(f"vh/{device}/ack")
    deadline = time.monotonic() + 60
    asked_s = 0.0
    while not answers:
        assert time.monotonic() < deadline, "the board at the broker does not say what it has heard"
        if time.monotonic() - asked_s > 0.5:
            client.publish(f"vh/{device}/in/audio", encode(_PROBE)[1])
            asked_s = time.monotonic()
        client.loop(0.05)
    client.disconnect()
    return answers[-1]


def heard_by_line(port: str) -> int:
    """The sample that the board expects next."""
    decoder = Decoder()
    deadline = time.monotonic() + 60
    with _free(port, deadline) as line:
        while time.monotonic() < deadline:
            line.write(to_frame(_PROBE) + bytes(14))
            for frame in decoder.feed(line.read(4096)):
                if isinstance(frame, WireFrame) and isinstance(ack := decode(frame), AudioAck):
                    return ack.next
    raise AssertionError("the board on the line does not say what it has heard")


def _free(port: str, deadline: float) -> serial.Serial:
    """The open port, as soon as the last thread of a killed engine has let it go."""
    while True:
        try:
            return serial.Serial(port, exclusive=True, timeout=0.2)
        except serial.SerialException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _settled(ask: Callable[[], int]) -> int:
    """The answer when nothing is on its way any more."""
    answers = [ask()]
    while len(answers) < 3 or len(set(answers[-3:])) > 1:
        time.sleep(0.1)  # what a killed engine has left in a pipe comes in this time, or another answer tells
        answers.append(ask())
    return answers[-1]


@contextmanager
def two_posix_boards(folder: Path, *, cable: bool = False) -> Iterator[TwoBoards]:
    """cable: put one into the serial line, for its faults."""
    with Broker(folder) as broker, ExitStack() as stack:
        options = ("--device", RADIO, "--mqtt", f"127.0.0.1:{broker.port}")
        wired = stack.enter_context(posix_board(_made(folder / WIRED), cable=cable))
        radio = stack.enter_context(posix_board(_made(folder / RADIO), *options))
        yield TwoBoards(wired, radio, broker.port)


@contextmanager
def two_qemu_boards(folder: Path) -> Iterator[TwoBoards]:
    with Broker(folder) as broker, ExitStack() as stack:
        wired = stack.enter_context(qemu_board(_made(folder / WIRED)))
        radio = stack.enter_context(qemu_board(_made(folder / RADIO), device=RADIO, broker=broker.port))
        yield TwoBoards(wired, radio, broker.port)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
