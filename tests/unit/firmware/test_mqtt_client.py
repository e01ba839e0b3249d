"""The firmware's MQTT client: on a scripted clock against written packets, and with garbage."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
    publish,
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_script(tmp_path_factory.mktemp("mqtt"))


@pytest.fixture
def client(program: Path) -> Iterator[Script]:
    with Script(program, "client") as script:
        yield script


def kinds(found: list[Packet]) -> list[int]:
    return [packet.kind for packet in found]


def test_connect_says_all_that_was_configured(client: Script) -> None:
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


def test_no_connack_and_a_refusal_are_tried_again(client: Script) -> None:
    client.at(1)
    assert client.at(1.99) == []
    assert client.at(2.0) == []
    assert client.at(2.1) == ["connect"]
    assert client.feed(b"\x20\x02\x00\x05") == []
    assert client.counters()["refused"] == 1
    assert client.at(2.31) == ["connect"]
    assert kinds(client.take()) == [CONNECT] * 3


def test_pings_and_gives_up_after_a_silent_keepalive(client: Script) -> None:
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
    again = [packet for packet in client.take() if packet.kind == PUBLISH]
    assert [packet.publish()[:2] for packet in again] == [("from/lone", b"one"), ("from/lone", b"two")]
    assert [packet.first for packet in again] == [0x3A, 0x3B]
    assert client.at(2.3) == []
    assert client.take() == []
    client.feed(b"\x40\x02" + again[0].publish()[2].to_bytes(2, "big"))
    client.at(2.5)
    assert [packet.publish()[1] for packet in client.take() if packet.kind == PUBLISH] == [b"two"]
    client.feed(b"\x40\x02" + again[1].publish()[2].to_bytes(2, "big"))
    client.feed(b"\x40\x02\x77\x77")
    counters = client.counters()
    assert (counters["published"], counters["in_flight"], counters["malformed"]) == (2, 0, 0)
    assert counters["repeated"] >= 2
    assert first_time or again


def test_the_link_is_given_up_when_a_publish_is_never_acknowledged(client: Script) -> None:
    connected(client)
    client.tell("publish 1 0 from/lone 6f6e65")
    said: list[str] = []
    for tenth in range(10, 100):
        said += client.at(tenth / 10)
        client.feed(PINGRESP if tenth % 5 == 0 else b"")
        if said:
            break
    assert said == ["online 0"]
    assert [packet.first for packet in client.take() if packet.kind == PUBLISH] == [0x32] + [0x3A] * 5


def test_eight_are_in_flight_and_the_ninth_is_refused_until_one_is_acknowledged(client: Script) -> None:
    connected(client)
    taken = [client.tell(f"publish 1 0 t {i:02x}") for i in range(9)]
    assert taken == [["taken 1"]] * 8 + [["taken 0"]]
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
    found = [packet.publish() for packet in client.take() if packet.kind == PUBLISH]
    assert [topic for topic, _, _ in found] == [f"topic/{i}" for i in range(8)]
    assert all(payload == bytes([i]) + b"\xab" * 600 for i, (_, payload, _) in enumerate(found))


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


def test_what_is_too_large_is_skipped_counted_and_acknowledged(client: Script) -> None:
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
def test_what_is_no_mqtt_drops_the_connection_and_a_new_one_works(client: Script, garbage: bytes) -> None:
    connected(client)
    assert client.feed(garbage) == ["online 0"]
    assert client.counters()["malformed"] == 1
    assert client.feed(b"\xff" * 10) == []
    connected(client, 3)
    assert client.feed(publish("to/lone/x", b"1")) == ["message 0 to/lone/x 31"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
def test_any_bytes_leave_it_sound_and_able_to_connect(program: Path, mode: str, pieces: list[bytes]) -> None:
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
