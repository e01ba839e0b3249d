"""MQTT of the firmware: each frame and its JSON; the client on a scripted clock against written packets."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paho.mqtt.enums import CallbackAPIVersion

from tests.conformance.mqtt_bench import Broker
from tests.unit.firmware.mqtt_script import (
    CONNACK,
    CONNECT,
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBLISH,
    Packet,
    Script,
    build_script,
    connected,
    length,
    packets,
    publish,
)


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
    7, struct.pack("<QH", 9, 32768), short("timer"), b"\x02", short("min"), short("ten"), short("x"), short("")
)
HELLO = struct.pack("<HIQII", 1, 0xCAFE0001, 99, 16000, 16384) + short("s") + b"\x01" + short("alexa")
PONG = struct.pack("<IQQB", 5, 6, 7, 1)
CASES = [
    (0x84, 3, WAKE, "wake", '{"seq": 3, "time_us": 5000001, "sample": 77120, "score": 1.0, "phrase": "alexa"}'),
    (
        0x86,
        4,
        event(1, struct.pack("<QB", 2, 1), 'ça "va"\n\x07'.encode()),
        "transcript",
        r'{"seq": 4, "time_us": 1, "sample": 2, "final": true, "text": "ça \"va\"\n\u0007"}',
    ),
    (
        0x87,
        5,
        INTENT,
        "intent",
        '{"seq": 5, "time_us": 7, "sample": 9, "score": 0.500008, "name": "timer", "slots": {"min": "ten", "x": ""}}',
    ),
    (0x88, 6, event(1, b"\xff\xc3"), "response", r'{"seq": 6, "time_us": 1, "text": "\ufffd\ufffd"}'),
    (
        0x89,
        7,
        event(2**63, b"\x04so"),
        "status",
        '{"seq": 7, "time_us": 9223372036854775808, "state": "dialogue_open", "detail": "so"}',
    ),
    (0x8A, 0, event(1, b"\x02careful"), "log", '{"time_us": 1, "level": 2, "text": "careful"}'),
    (0x8B, 8, event(1, b"\x02\x01what"), "error", '{"seq": 8, "time_us": 1, "code": 258, "text": "what"}'),
    (
        0x81,
        0,
        HELLO,
        "hello",
        '{"protocol": 1, "time_us": 99, "rate_hz": 16000, "window": 16384, "firmware": "s", "wake_phrases": ["alexa"]}',
    ),
    (0x82, 0, PONG, "pong", '{"token": 5, "received_us": 6, "sent_us": 7, "listening": true}'),
    (0x83, 0, struct.pack("<QI", 16000, 4), "ack", '{"next": 16000, "events": 4, "command": 0}'),
    (0x85, 0, struct.pack("<I", 12), "ack", '{"next": 0, "events": 0, "command": 12}'),
]


@pytest.mark.parametrize(("kind", "seq", "payload", "topic", "expected"), CASES, ids=[case[3] for case in CASES])
def test_each_frame_of_the_board_becomes_the_documented_json(
    board: Script, kind: int, seq: int, payload: bytes, topic: str, expected: str
) -> None:
    connected(board)
    assert board.tell(f"frame {kind} {seq} {payload.hex()}") == ["taken 1"]
    board.at(1)
    [packet] = [packet for packet in board.take() if packet.kind == PUBLISH]
    name, document, number = packet.publish()
    assert name == f"vh/kit/{topic}"
    assert json.loads(document) == {"boot": "cafe0001", **json.loads(expected)}
    assert bool(packet.first & 1) == (topic == "status")
    assert (number > 0) == (topic not in {"ack", "pong"})


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.integers(0x80, 0x8C), payload=st.binary(max_size=1024))
def test_any_frame_becomes_json_or_is_refused(program: Path, kind: int, payload: bytes) -> None:
    with Script(program, "board") as board:
        connected(board)
        board.tell(f"frame {kind} 1 {payload.hex()}")
        board.at(1)
        documents = [packet.publish()[1] for packet in board.take() if packet.kind == PUBLISH]
        assert len(documents) == 1 - board.counters()["unsaid"]
        for document in documents:
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
def test_unreadable_messages_are_counted_and_not_executed(board: Script, topic: str, payload: bytes) -> None:
    connected(board)
    assert board.feed(publish(f"vh/kit/{topic}", payload)) == []
    assert board.counters()["bad_json"] == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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


def test_a_new_connection_repeats_the_status_and_requests_a_hello(board: Script) -> None:
    board.tell(f"frame 137 1 {event(1, bytes([5])).hex()}")
    connected(board)
    board.tell("lost")
    board.take()
    assert board.at(1.3) == ["connect"]
    board.feed(CONNACK)
    assert board.at(1.3) == ["frame 6 0 "]
    publications = {packet.publish()[:2] for packet in board.take() if packet.kind == PUBLISH}
    assert {(topic, json.loads(document)["seq"]) for topic, document in publications} == {("vh/kit/status", 1)}


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
                self._socket = socket.create_connection(("127.0.0.1", self._port), 60)
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

    def until(self, reached: Callable[[], bool], patience_s: float = 120) -> None:
        end = time.monotonic() + patience_s
        while not reached():
            assert time.monotonic() < end, self.said
            self.turn()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None


@pytest.mark.skipif(shutil.which("mosquitto") is None, reason="mosquitto is not installed")
def test_mosquitto_takes_events_gives_commands_and_tells_the_last_will(board: Script, tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        _speak(board, broker.port)


def _speak(board: Script, port: int) -> None:
    heard: list[tuple[str, bytes, bool]] = []
    host = paho.Client(CallbackAPIVersion.VERSION2)
    host.on_message = lambda _client, _user, message: heard.append((message.topic, message.payload, message.retain))
    ready: list[int] = []
    host.on_subscribe = lambda *_: ready.append(1)
    host.on_connect = lambda *_: host.subscribe("vh/kit/#", 1)
    host.connect("127.0.0.1", port)
    host.loop_start()
    wire = Wire(board, port)
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


@pytest.fixture
def client(program: Path) -> Iterator[Script]:
    with Script(program, "client") as script:
        yield script


def kinds(packets: list[Packet]) -> list[int]:
    return [packet.kind for packet in packets]


def test_connect_packets_contain_the_configured_values(client: Script) -> None:
    assert client.at(1) == ["connect"]
    [packet] = client.take()
    strings = b"".join(
        struct.pack(">H", len(text)) + text for text in (b"lone", b"last/will", b"gone", b"tester", b"secret")
    )
    # Name and password, will retained with QoS 1, clean session; keepalive 4 s.
    assert (packet.first, packet.body) == (0x10, b"\x00\x04MQTT\x04\xee\x00\x04" + strings)
    assert client.feed(CONNACK) == ["online 1"]
    client.at(1)
    [subscribe] = client.take()
    assert (subscribe.first, subscribe.body[2:]) == (0x82, b"\x00\x09to/lone/#\x01")
    client.feed(b"\x90\x03" + subscribe.body[:2] + b"\x80")
    assert client.counters()["denied"] == 1


def test_back_off_doubles_up_to_its_limit_and_starts_anew_after_a_session(client: Script) -> None:
    client.tell("reachable 0")
    now, tried = 0.0, []
    while len(tried) < 7:
        if client.at(now):
            tried.append(now)
        now += 0.01
    waits = [round(later - sooner, 2) for sooner, later in pairwise(tried)]
    assert waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0], abs=0.011)
    client.tell("reachable 1")
    connected(client, now + 1)
    assert client.tell("lost") == ["online 0"]
    assert client.at(now + 1.05) == []
    assert client.at(now + 1.1) == ["connect"]


def test_connecting_is_retried_after_a_refusal_or_without_connack(client: Script) -> None:
    client.at(1)
    assert client.at(1.99) == []
    assert client.at(2.0) == []
    assert client.at(2.1) == ["connect"]
    assert client.feed(b"\x20\x02\x00\x05") == []
    assert client.counters()["refused"] == 1
    assert client.at(2.31) == ["connect"]
    assert kinds(client.take()) == [CONNECT] * 3


def test_the_client_pings_and_gives_up_after_a_silent_keepalive(client: Script) -> None:
    connected(client)
    client.at(2.9)
    assert client.take() == []
    client.at(3.0)
    assert kinds(client.take()) == [PINGREQ]
    client.feed(PINGRESP)
    client.at(5.0)
    assert kinds(client.take()) == [PINGREQ]
    # Anything heard is life; the answer may queue behind it.
    client.tell("time 8000000")
    assert client.feed(publish("to/lone/x", b"1")) == ["message 0 to/lone/x 31"]
    assert client.at(9.1) == []
    assert client.at(12.0) == ["online 0"]
    assert client.counters()["lost"] == 1


def test_qos_1_is_kept_repeated_with_dup_and_released_by_its_puback(client: Script) -> None:
    assert client.tell("publish 1 0 from/lone 6f6e65") == ["taken 1"]
    connected(client)
    client.tell("publish 1 1 from/lone 74776f")
    client.at(1.2)
    first_time = [packet for packet in client.take() if packet.kind == PUBLISH]
    client.tell("lost")
    client.at(1.4)
    client.feed(CONNACK)
    client.at(1.4)
    repeated = [packet for packet in client.take() if packet.kind == PUBLISH]
    assert [packet.publish()[:2] for packet in repeated] == [("from/lone", b"one"), ("from/lone", b"two")]
    assert [packet.first for packet in repeated] == [0x3A, 0x3B]
    assert client.at(2.3) == []
    assert client.take() == []
    client.feed(b"\x40\x02" + repeated[0].publish()[2].to_bytes(2, "big"))
    client.at(2.5)
    assert [packet.publish()[1] for packet in client.take() if packet.kind == PUBLISH] == [b"two"]
    client.feed(b"\x40\x02" + repeated[1].publish()[2].to_bytes(2, "big"))
    client.feed(b"\x40\x02\x77\x77")
    counters = client.counters()
    assert (counters["published"], counters["in_flight"], counters["malformed"]) == (2, 0, 0)
    assert counters["repeated"] >= 2
    assert first_time or repeated


def test_the_link_is_given_up_when_a_publish_is_never_acknowledged(client: Script) -> None:
    connected(client)
    client.tell("publish 1 0 from/lone 6f6e65")
    replies: list[str] = []
    for tenth in range(10, 100):
        replies += client.at(tenth / 10)
        client.feed(PINGRESP if tenth % 5 == 0 else b"")
        if replies:
            break
    assert replies == ["online 0"]
    assert [packet.first for packet in client.take() if packet.kind == PUBLISH] == [0x32] + [0x3A] * 5


def test_a_ninth_unacknowledged_publish_is_refused(client: Script) -> None:
    connected(client)
    answers = [client.tell(f"publish 1 0 t {i:02x}") for i in range(9)]
    assert answers == [["taken 1"]] * 8 + [["taken 0"]]
    client.at(1)
    numbers = [packet.publish()[2] for packet in client.take() if packet.kind == PUBLISH]
    assert len(set(numbers)) == 8
    client.feed(b"\x40\x02" + numbers[3].to_bytes(2, "big"))
    assert client.tell("publish 1 0 t 08") == ["taken 1"]
    assert client.tell(f"publish 1 0 t {'00' * 1300}") == ["taken 0"]
    assert client.tell("publish 0 0 t 09") == ["taken 1"]


def test_a_slow_line_gets_whole_packets_in_order(client: Script) -> None:
    connected(client)
    for i in range(8):
        client.tell(f"publish 1 0 topic/{i} {i:02x}" + "ab" * 600)
    for _ in range(2000):
        client.tell("room 5")
        client.at(1)
    publications = [packet.publish() for packet in client.take() if packet.kind == PUBLISH]
    assert [topic for topic, _, _ in publications] == [f"topic/{i}" for i in range(8)]
    assert all(payload == bytes([i]) + b"\xab" * 600 for i, (_, payload, _) in enumerate(publications))


def test_incoming_messages_are_acknowledged_whatever_the_pieces(client: Script) -> None:
    connected(client)
    stream = (
        publish("to/lone/a", b"\x00\xff" * 300, 7)
        + publish("to/lone/b", b"")
        + publish("to/lone/c", b"x", 8, retained=True)
    )
    answers = [line for byte in stream for line in client.feed(bytes([byte]))]
    assert answers == [f"message 1 to/lone/a {'00ff' * 300}", "message 0 to/lone/b ", "message 1r to/lone/c 78"]
    assert [(packet.kind, packet.body) for packet in client.take()] == [(PUBACK, b"\x00\x07"), (PUBACK, b"\x00\x08")]


def test_oversized_messages_are_skipped_counted_and_acknowledged(client: Script) -> None:
    connected(client)
    fits = publish("to/lone/a", bytes(1280 - 13), 8)
    assert client.feed(publish("to/lone/a", bytes(2000), 7) + fits) == [f"message 1 to/lone/a {'00' * 1267}"]
    assert [packet.body for packet in client.take()] == [b"\x00\x07", b"\x00\x08"]
    assert client.counters()["oversize"] == 1


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00",
        b"\x36\x05\x00\x01a\x00\x01",  # QoS 3
        b"\x34\x05\x00\x01a\x00\x01",  # QoS 2: not subscribed
        b"\x32\x05\x00\x01a\x00\x00",  # packet id 0
        b"\x30\x03\x00\x09a",  # the topic is longer than the packet
        b"\x30\x00",
        b"\x30\xff\xff\xff\xff\x01",
        b"\x40\x03\x00\x01\x00",
        b"\x20\x02\x00\x00",  # a second CONNACK
        b"\x90\x02\x00\x01",
        b"\xd0\x01\x00",
        b"\x10\x00",
    ],
)
def test_invalid_mqtt_data_drops_the_connection_but_not_the_next(client: Script, garbage: bytes) -> None:
    connected(client)
    assert client.feed(garbage) == ["online 0"]
    assert client.counters()["malformed"] == 1
    assert client.feed(b"\xff" * 10) == []
    connected(client, 3)
    assert client.feed(publish("to/lone/x", b"1")) == ["message 0 to/lone/x 31"]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.builds(
                lambda first, body: bytes([first]) + length(len(body)) + body,
                st.sampled_from([0x20, 0x30, 0x32, 0x3B, 0x40, 0x90, 0xD0]),
                st.binary(max_size=1400),
            ),
            st.just(CONNACK),
        ),
        max_size=12,
    )
)
@pytest.mark.parametrize("mode", ["client", "board"])
def test_client_survives_any_bytes_and_can_reconnect(program: Path, mode: str, pieces: list[bytes]) -> None:
    with Script(program, mode) as script:
        now = 1.0
        for piece in pieces:
            script.at(now)
            script.feed(piece)
            now += 0.4
        script.tell("lost")
        script.take()
        connected(script, now + 10)
        assert script.counters()["state"] == 2
