"""The board's messages over MQTT (docs/framing.md, MQTT): each frame and its JSON, bad messages, and mosquitto."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paho.mqtt.enums import CallbackAPIVersion

from tests.unit.firmware.mqtt_script import CONNACK, PUBLISH, Script, build_script, connected, packets, publish


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_script(tmp_path_factory.mktemp("mqtt"))


@pytest.fixture
def board(program: Path) -> Iterator[Script]:
    with Script(program, "board") as script:
        yield script


def event(time_us: int, *rest: bytes) -> bytes:
    return struct.pack("<Q", time_us) + b"".join(rest)


def short(text: str) -> bytes:
    return bytes([len(text.encode())]) + text.encode()


WAKE = event(5_000_001, struct.pack("<QH", 77_120, 65_535), b"alexa")
INTENT = event(
    7, struct.pack("<QH", 9, 32768), short("set_timer"), b"\x02", short("minutes"), short("ten"), short("x"), short("")
)
HELLO = struct.pack("<HIQII", 1, 0xCAFE0001, 99, 16000, 16384) + short("stub 1") + b"\x01" + short("alexa")
CASES = [
    (0x84, 3, WAKE, "wake", {"seq": 3, "time_us": 5_000_001, "sample": 77_120, "score": 1.0, "phrase": "alexa"}),
    (
        0x86,
        4,
        event(1, struct.pack("<QB", 2, 1), 'ça "va"\n\x07'.encode()),
        "transcript",
        {"seq": 4, "time_us": 1, "sample": 2, "final": True, "text": 'ça "va"\n\x07'},
    ),
    (
        0x87,
        5,
        INTENT,
        "intent",
        {
            "seq": 5,
            "time_us": 7,
            "sample": 9,
            "score": 0.500008,
            "name": "set_timer",
            "slots": {"minutes": "ten", "x": ""},
        },
    ),
    (0x88, 6, event(1, b"\xff\xc3"), "response", {"seq": 6, "time_us": 1, "text": "\ufffd\ufffd"}),
    (
        0x89,
        7,
        event(2**63, b"\x04so"),
        "status",
        {"seq": 7, "time_us": 2**63, "state": "dialogue_open", "detail": "so"},
    ),
    (0x8A, 0, event(1, b"\x02careful"), "log", {"time_us": 1, "level": 2, "text": "careful"}),
    (0x8B, 8, event(1, b"\x02\x01what"), "error", {"seq": 8, "time_us": 1, "code": 258, "text": "what"}),
    (
        0x81,
        0,
        HELLO,
        "hello",
        {
            "protocol": 1,
            "time_us": 99,
            "rate_hz": 16000,
            "window": 16384,
            "firmware": "stub 1",
            "wake_phrases": ["alexa"],
        },
    ),
    (
        0x82,
        0,
        struct.pack("<IQQB", 5, 6, 7, 1),
        "pong",
        {"token": 5, "received_us": 6, "sent_us": 7, "listening": True},
    ),
    (0x83, 0, struct.pack("<QI", 16000, 4), "ack", {"next": 16000, "events": 4, "command": 0}),
    (0x85, 0, struct.pack("<I", 12), "ack", {"next": 0, "events": 0, "command": 12}),
]


@pytest.mark.parametrize(("kind", "seq", "payload", "topic", "said"), CASES, ids=[case[3] for case in CASES])
def test_each_frame_of_the_board_is_the_json_of_the_page(
    board: Script, kind: int, seq: int, payload: bytes, topic: str, said: dict[str, object]
) -> None:
    connected(board)
    assert board.tell(f"frame {kind} {seq} {payload.hex()}") == ["taken 1"]
    board.at(1)
    [packet] = [packet for packet in board.take() if packet.kind == PUBLISH]
    name, document, number = packet.publish()
    assert name == f"vh/kit/{topic}"
    assert json.loads(document) == {"boot": "cafe0001", **said}
    assert bool(packet.first & 1) == (topic == "status")
    assert (number > 0) == (topic not in {"ack", "pong"})


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.integers(0x80, 0x8C), payload=st.binary(max_size=1024))
def test_any_frame_is_json_or_refused(program: Path, kind: int, payload: bytes) -> None:
    with Script(program, "board") as board:
        connected(board)
        board.tell(f"frame {kind} 1 {payload.hex()}")
        board.at(1)
        said = [packet.publish()[1] for packet in board.take() if packet.kind == PUBLISH]
        assert len(said) == 1 - board.counters()["unsaid"]
        for document in said:
            assert json.loads(document)["boot"] == "cafe0001"


COMMANDS = [
    ("in/ping", b"4294967295", "frame 1 0 ffffffff"),
    (
        "in/text",
        json.dumps({"number": 9, "text": 'a "b" \u00e9\U0001f600\n'}).encode(),
        "frame 2 9 " + 'a "b" \u00e9\U0001f600\n'.encode().hex(),
    ),
    ("in/text", '{"x":[{"number":1},null,-1.5e3,"]"],"text":"é","number":2}'.encode(), "frame 2 2 c3a9"),
    ("in/set", b' {"value": -1, "key": 2, "number": 10} ', "frame 4 10 02ffffffff"),
    ("in/audio", bytes(range(20)), "frame 3 0 " + bytes(range(20)).hex()),
    ("in/reset", b"", "frame 5 0 "),
    ("in/hello", b"", "frame 6 0 "),
]


@pytest.mark.parametrize(("topic", "payload", "frame"), COMMANDS)
def test_each_message_to_the_board_is_its_frame(board: Script, topic: str, payload: bytes, frame: str) -> None:
    connected(board)
    assert board.feed(publish(f"vh/kit/{topic}", payload, 3)) == [frame]
    assert board.feed(publish(f"vh/kit/{topic}", payload, 4, retained=True)) == []
    assert board.counters()["retained"] == 1


@pytest.mark.parametrize(
    ("topic", "payload"),
    [
        ("in/ping", b""),
        ("in/ping", b"4294967296"),
        ("in/ping", b"1x"),
        ("in/text", b""),
        ("in/text", b'{"number":0,"text":"a"}'),
        ("in/text", b'{"number":1.0,"text":"a"}'),
        ("in/text", b'{"number":1,"number":2,"text":"a"}'),
        ("in/text", b'{"number":1,"text":"a"} x'),
        ("in/text", b'{"number":1,"text":"\xff"}'),
        ("in/text", b'{"number":1,"text":"\\ud800"}'),
        ("in/text", b'{"number":1,"text":["a"]}'),
        ("in/text", b'{"number":1,"text":"' + b"a" * 1025 + b'"}'),
        ("in/text", b'{"number":1,"text":"a","b":' + b"[" * 9 + b"]" * 9 + b"}"),
        ("in/set", b'{"number":1,"key":256,"value":0}'),
        ("in/set", b'{"number":1,"key":1,"value":2147483648}'),
        ("in/audio", bytes(1025)),
    ],
)
def test_what_cannot_be_read_is_counted_and_not_carried_out(board: Script, topic: str, payload: bytes) -> None:
    connected(board)
    assert board.feed(publish(f"vh/kit/{topic}", payload)) == []
    assert board.counters()["bad_json"] == 1


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.characters(codec="utf-8"), max_size=60),
    number=st.integers(1, 2**32 - 1),
    ascii_only=st.booleans(),
    other=st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
)
def test_json_that_python_writes_is_read(
    program: Path, text: str, number: int, ascii_only: bool, other: object
) -> None:
    document = json.dumps({"other": other, "number": number, "text": text}, ensure_ascii=ascii_only).encode()
    with Script(program, "board") as board:
        connected(board)
        assert board.feed(publish("vh/kit/in/text", document)) == [f"frame 2 {number} {text.encode().hex()}"]


def test_after_a_new_connection_the_status_is_said_again_and_hello_asked_for(board: Script) -> None:
    board.tell(f"frame 137 1 {event(1, bytes([5])).hex()}")
    connected(board)
    board.tell("lost")
    board.take()
    assert board.at(1.3) == ["connect"]
    board.feed(CONNACK)
    assert board.at(1.3) == ["frame 6 0 "]
    said = {packet.publish()[:2] for packet in board.take() if packet.kind == PUBLISH}
    assert {(topic, json.loads(document)["seq"]) for topic, document in said} == {("vh/kit/status", 1)}


class Wire:
    """Carries bytes between the script and a broker's socket."""

    def __init__(self, script: Script, port: int) -> None:
        self._script, self._port = script, port
        self._socket: socket.socket | None = None
        self.said: list[str] = []

    def turn(self) -> None:
        """A poll on the real clock, and what there is to carry both ways."""
        script = self._script
        script.raw.clear()
        for line in script.at(time.monotonic()):
            if line == "connect":
                self.close()
                self._socket = socket.create_connection(("127.0.0.1", self._port), 5)
                self._socket.settimeout(0.01)
            self.said.append(line)
        if self._socket is None:
            return
        self._socket.sendall(bytes(script.raw))
        script.raw.clear()
        try:
            came = self._socket.recv(4096)
        except TimeoutError:
            return
        if not came:
            self.close()
            self.said += script.tell("lost")
            return
        self.said += script.feed(came)
        self._socket.sendall(bytes(script.raw))

    def until(self, reached: Callable[[], bool], patience_s: float = 10) -> None:
        end = time.monotonic() + patience_s
        while not reached():
            assert time.monotonic() < end, self.said
            self.turn()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None


@pytest.fixture
def broker_port(tmp_path: Path) -> Iterator[int]:
    if shutil.which("mosquitto") is None:
        pytest.skip("mosquitto is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    settings_file = tmp_path / "mosquitto.conf"
    settings_file.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
    broker = subprocess.Popen(["mosquitto", "-c", settings_file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except ConnectionError:
                assert time.monotonic() < end
        yield port
    finally:
        broker.terminate()
        broker.wait(10)


def test_mosquitto_takes_events_gives_commands_and_tells_the_last_will(board: Script, broker_port: int) -> None:
    heard: list[tuple[str, bytes, bool]] = []
    host = paho.Client(CallbackAPIVersion.VERSION2)
    host.on_message = lambda _client, _user, message: heard.append((message.topic, message.payload, message.retain))
    ready: list[int] = []
    host.on_subscribe = lambda *_: ready.append(1)
    host.on_connect = lambda *_: host.subscribe("vh/kit/#", 1)
    host.connect("127.0.0.1", broker_port)
    host.loop_start()
    wire = Wire(board, broker_port)
    try:
        wire.until(lambda: bool(ready) and board.counters()["state"] == 2)
        for number in range(1, 41):
            payload = event(number, struct.pack("<QH", number, 60000), b"alexa")
            wire.until(
                lambda payload=payload, number=number: board.tell(f"frame 132 {number} {payload.hex()}") == ["taken 1"]
            )
        wire.until(lambda: board.counters()["in_flight"] == 0)
        wire.until(lambda: sum(topic == "vh/kit/wake" for topic, _, _ in heard) == 40)
        assert [json.loads(payload)["seq"] for topic, payload, _ in heard if topic == "vh/kit/wake"] == list(
            range(1, 41)
        )
        host.publish("vh/kit/in/text", json.dumps({"number": 1, "text": "hello"}), 1)
        host.publish("vh/kit/in/audio", bytes(5000), 1)
        host.publish("vh/kit/in/audio", bytes(1000), 1)
        wire.until(lambda: any(line.startswith("frame 3 ") for line in wire.said))
        assert "frame 2 1 " + b"hello".hex() in wire.said
        assert board.counters()["oversize"] == 1
        assert board.counters()["malformed"] == 0
        wire.close()
        wire.until(lambda: any(topic == "vh/kit/status" and b"gone" in payload for topic, payload, _ in heard))
    finally:
        host.disconnect()
        host.loop_stop()
        wire.close()
    assert not packets(bytes(board.raw))[1]
