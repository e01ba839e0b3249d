"""The MQTT client of the firmware as a process that obeys lines, and the packets that it sends as Python values."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.known import known
from tests.unit.firmware.c_programs import CORE, build

CONNECT, PUBLISH, PUBACK, SUBSCRIBE, PINGREQ = 1, 3, 4, 8, 12
CONNACK = b"\x20\x02\x00\x00"
PINGRESP = b"\xd0\x00"


def build_script(folder: Path) -> Path:
    """The program, with the sanitizers."""
    sources = [Path(__file__).with_name("mqtt_script.c"), *sorted((CORE / "mqtt").glob("*.c")), CORE / "vh_messages.c"]
    return build(sources, folder / "mqtt_script")


@dataclass(frozen=True, slots=True)
class Packet:
    """first: type and flags. body: what follows the remaining length."""

    first: int
    body: bytes

    @property
    def kind(self) -> int:
        return self.first >> 4

    def publish(self) -> tuple[str, bytes, int]:
        """Topic, payload and packet id (0 with QoS 0)."""
        end = 2 + int.from_bytes(self.body[:2], "big")
        qos = self.first >> 1 & 3
        number = int.from_bytes(self.body[end : end + 2], "big") if qos else 0
        return self.body[2:end].decode(), self.body[end + (2 if qos else 0) :], number


def packets(sent: bytes) -> tuple[list[Packet], bytes]:
    """Whole packets, and what is left of the last one."""
    whole_packets = []
    while len(sent) >= 2:
        length, position, shift = 0, 1, 0
        while position < len(sent):
            length |= (sent[position] & 0x7F) << shift
            shift, position = shift + 7, position + 1
            if not sent[position - 1] & 0x80:
                break
        else:
            break
        if len(sent) < position + length:
            break
        whole_packets.append(Packet(sent[0], sent[position : position + length]))
        sent = sent[position + length :]
    return whole_packets, sent


def publish(topic: str, payload: bytes, number: int = 0, retained: bool = False) -> bytes:
    """A PUBLISH as a broker sends it; QoS 1 when it has a number."""
    name = topic.encode()
    body = len(name).to_bytes(2, "big") + name + (number.to_bytes(2, "big") if number else b"") + payload
    return bytes([0x30 | (2 if number else 0) | retained]) + length(len(body)) + body


def length(value: int) -> bytes:
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7F
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


class Script:
    """A running program of mqtt_script.c. A fault that a sanitizer finds ends it, and the next line says so."""

    def __init__(self, program: Path, mode: str) -> None:
        self._process = subprocess.Popen(
            [program, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._rest = b""
        self.packets: list[Packet] = []
        self.raw = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _, stderr = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, stderr.decode()

    def tell(self, line: str) -> list[str]:
        """What it answers, without what it sent: that is kept in `packets`."""
        stdin, stdout = known(self._process.stdin), known(self._process.stdout)
        stdin.write(line.encode() + b"\n")
        stdin.flush()
        answers = []
        while (reply := stdout.readline()) != b".\n":
            assert reply, self._process.communicate()[1].decode()
            answer = reply.decode(errors="replace").rstrip("\n")
            word, _, rest = answer.partition(" ")
            if word == "sent":
                self.raw += bytes.fromhex(rest)
                new_packets, self._rest = packets(self._rest + bytes.fromhex(rest))
                self.packets += new_packets
            else:
                if word == "connect":
                    self._rest = b""
                answers.append(answer)
        return answers

    def feed(self, data: bytes) -> list[str]:
        return self.tell(f"feed {data.hex()}") if data else []

    def at(self, seconds: float) -> list[str]:
        """The clock set, and a poll."""
        self.tell(f"time {round(seconds * 1e6)}")
        return self.tell("poll")

    def take(self) -> list[Packet]:
        """Packets since the last time."""
        received, self.packets = self.packets, []
        return received

    def counters(self) -> dict[str, int]:
        pairs = " ".join(line.partition(" ")[2] for line in self.tell("counters")).split()
        return {name: int(value) for name, _, value in (pair.partition("=") for pair in pairs)}


def connected(script: Script, at_s: float = 1.0) -> Script:
    """Online, with nothing left to read."""
    script.at(at_s)
    script.feed(CONNACK)
    script.at(at_s)
    number = next(packet.body[:2] for packet in script.take() if packet.kind == SUBSCRIBE)
    script.feed(b"\x90\x03" + number + b"\x01")
    return script
